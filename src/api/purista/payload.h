/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_PURISTA_PAYLOAD_H
#define HUTCH_API_PURISTA_PAYLOAD_H

/*
 * Decodes the payload of a command (model/purista.h) and reports every mistake in it.
 *
 * Two generations of callers are served alike: the later one sends projectId with each command, has timeoutMs and scope,
 * and sends files as {encoding, content}; the earlier one sends files as strings. Unknown keys are ignored. The tables of
 * base/json.h stop at the first mistake and allow one type per member; this decoder lists all mistakes, in the words of
 * PURISTA's own schema library:
 *
 *         [{"message":"Required","path":["command"]}, …]
 *
 * Views point into the documents, or into the arena (decoded base64): both have to stay.
 */

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "model/owner.h"
#include "model/purista.h"
#include "service/service.h"

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

struct purista_decode {
        const struct purista_command *command;
        const json_t *doc; /* NULL: there is none */
        const json_t *
                parameter; /* what a gateway took from the URL: used where doc lacks a member; or NULL */
        struct str
                sandbox_id; /* of the path: doc need not repeat it and must not differ; or null */
        struct arena *arena;

        struct buf issues; /* result of -EINVAL: the inside of a JSON array; the caller frees it */
        size_t n_issues;
};

#define PURISTA_ISSUES_MAX 32

/* 0; -EINVAL with issues; -ENOMEM if the arena is full. Initialises in->issues in any case. */
int purista_payload_decode(struct purista_decode *in, struct purista_payload *ret) must_check;

#endif
