/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_OWNER_H
#define HUTCH_MODEL_OWNER_H

/*
 * The owner of a sandbox: organization, project, user, and a scope that distinguishes several sandboxes of one user in one
 * project.
 *
 * An owner is complete or invalid: a record without all parts is refused, and a sandbox that a driver finds in its runtime
 * without them is not adopted. Parts are chosen by clients: compared byte by byte, never trimmed or folded here.
 *
 * In keys of a store the parts are joined by ':' and escaped: ':' becomes "%3A" and '%' becomes "%25", so "a:b" + "c" never
 * equals "a" + "b:c". Ordinary parts contain neither and need no escapes; so the keys equal those of PURISTA, which does not
 * escape.
 */

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

bool owner_eq(const struct owner *a, const struct owner *b);

/* Appends organization:project:user:scope[:key], escaped. The owner must be complete. */
void owner_add_key(struct buf *b, const struct owner *o);

#endif
