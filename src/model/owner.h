/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_OWNER_H
#define HUTCH_MODEL_OWNER_H

/*
 * Whose sandbox it is: organization, project, user, and a scope that tells several sandboxes of one
 * user in one project apart.
 *
 * The tuple is complete or it is nothing: a record without all of its parts is refused, and what a
 * driver finds in its runtime without them is not adopted. Parts are texts of the client's choice:
 * compared byte by byte, never trimmed or folded here.
 *
 * Joined, for keys of a store and for names derived from it, the parts are escaped: ':' becomes
 * "%3A" and '%' becomes "%25", so "a:b" + "c" never equals "a" + "b:c". Ordinary parts hold neither
 * and look the same with and without, which keeps our derived names equal to those of PURISTA, which
 * does not escape.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

enum scope_kind {
        SCOPE_SHARED_PROJECT_USER, /* the default, and the only one without a key */
        SCOPE_AGENT_RUN,
        SCOPE_AGENT_INSTANCE,
        SCOPE_CONVERSATION,
        SCOPE_RUNTIME_INSTANCE,
        SCOPE_CUSTOM,
        SCOPE_KIND_MAX_,
        SCOPE_KIND_INVALID_ = -EINVAL,
};

/* "shared-project-user", "agent-run" … */
ENUM_DECLARE(scope_kind);

struct scope {
        int kind;       /* enum scope_kind */
        struct str key; /* null for SCOPE_SHARED_PROJECT_USER */
};

struct owner {
        struct str organization_id;
        struct str project_id;
        struct str user_id;
        struct scope scope;
};

extern const struct json_field scope_fields[];

/* ERR_INVALID with the name of the part that is missing, too long or not clean text. */
int owner_check(const struct owner *o, struct err *e) must_check;

bool owner_is_complete(const struct owner *o);
bool owner_eq(const struct owner *a, const struct owner *b);

/* Appends organization:project:user:scope[:key], escaped. The owner must be complete. */
void owner_add_key(struct buf *b, const struct owner *o);

/* The owner of such a text: exactly what owner_add_key writes, anything else is -EINVAL, so that one
 * owner has one key. Memory comes from the arena (-ENOMEM). */
int owner_from_key(struct str key, struct arena *a, struct owner *ret) must_check;

/* The name of the sandbox that an owner gets when the same call must give the same name: "sb-" and
 * the first 32 hexadecimal digits of the SHA-256 of its key. */
#define OWNER_SANDBOX_ID_LEN 35
void owner_sandbox_id(const struct owner *o, char ret[static OWNER_SANDBOX_ID_LEN + 1]);

#endif
