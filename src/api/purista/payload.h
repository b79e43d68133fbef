/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_PURISTA_PAYLOAD_H
#define HUTCH_API_PURISTA_PAYLOAD_H

/*
 * The payload of a command: JSON to members, by table, with every mistake that there is.
 *
 * Two generations of callers are served alike: the later one says projectId with each command, has
 * timeoutMs and scope, and sends files as {encoding, content}; the earlier one sends texts. Keys that
 * nobody knows are ignored. Unlike the tables of base/json.h, which stop at the first mistake and know
 * one type for each member, this tells all of them, in the words that PURISTA's own schema has for them:
 *
 *         [{"message":"Required","path":["command"]}, …]
 *
 * Views point into the document, or into the arena (decoded base64): both have to stay.
 */

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "model/owner.h"
#include "service/service.h"

#define PURISTA_TIMEOUT_MAX_MS 1800000

struct purista_payload {
        struct str sandbox_id, project_id, organization_id, user_id; /* null view: not given */
        struct str command, cwd, path;
        int64_t timeout_ms; /* 0: not given */
        struct scope scope;
        struct git_identity git;
        bool has_git;
        struct agent_file *files; /* contents are decoded */
        size_t n_files;
        size_t files_bytes; /* of all contents */
};

struct payload_decoder; /* private */

struct purista_field {
        const char *name;
        bool required;
        int (*take)(struct payload_decoder *d, const json_t *v);
};

/* Each ends in a field without a name. */
extern const struct purista_field purista_owner_fields[];   /* createSandbox, ensureSandbox */
extern const struct purista_field purista_destroy_fields[]; /* destroySandbox */
extern const struct purista_field purista_bash_fields[];
extern const struct purista_field purista_read_fields[];
extern const struct purista_field purista_write_fields[];

struct purista_decode {
        const struct purista_field *fields;
        const json_t *doc; /* NULL: there is none */
        struct str
                sandbox_id; /* of the path: need not be repeated, and must not be another; or null */
        struct arena *arena;

        struct buf issues; /* result of -EINVAL: the inside of a JSON array. To be freed */
        size_t n_issues;
};

#define PURISTA_ISSUES_MAX 32

/* 0; -EINVAL with issues; -ENOMEM if the arena is full. in->issues is made by this in any case. */
int purista_payload_decode(struct purista_decode *in, struct purista_payload *ret) must_check;

#endif
