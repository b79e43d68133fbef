/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_SANDBOX_H
#define HUTCH_MODEL_SANDBOX_H

/*
 * The record of a sandbox: everything hutchd stores about it. Values of environment variables, image credentials and keys of
 * object stores are not part of it: they go to the driver. Only the names of the variables are kept.
 *
 * Lifetime. A struct sandbox has one owner and is freed by sandbox_free. All its views point into its own arena, so it
 * outlives the request or document it was made from. Replaced values stay in the arena until the record is freed; therefore a
 * change is made in a copy, which is compact,
 *
 *         next = sandbox_copy(now);
 *         r = sandbox_change(next, &step, e);
 *         next->version++;
 *         … compare-and-set in the store: now->version -> next …
 *
 * and the copy replaces the old record when it has been stored. That also makes a failed write harmless: the old record was
 * never touched.
 *
 * Stored form. One JSON object, by field table; its schema number says which table. The first members are those of PURISTA's
 * registry entry (sandboxId, organizationId, projectId, userId, containerName, createdAt, gitConfigured, scope), so PURISTA
 * can read our records; times are milliseconds since 1970. Reading is as strict as writing: unknown keys, a member that breaks
 * a rule, a text that is not canonical or another schema are errors, and nothing is returned.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/json.h"
#include "model/expiry.h"
#include "model/network.h"
#include "model/owner.h"
#include "model/resources.h"
#include "model/state.h"
#include "model/volumes.h"

/* Grows when the stored form changes its meaning. A record with a larger number was written by a newer hutchd and is
 * refused; smaller numbers would need a migration. */
#define SANDBOX_SCHEMA         1
#define SANDBOX_SCHEMA_PURISTA 0 /* not stored: see sandbox_decode_purista */

struct platform {
        struct str os;   /* linux, windows */
        struct str arch; /* amd64, arm64 */
};

extern const struct json_field platform_fields[];

struct sandbox {
        struct arena arena; /* all below */
        int64_t schema;

        /* who */
        struct str id;             /* see sandbox_id_is_valid */
        struct str container_name; /* hutch-<id>, on every driver */
        struct str node;           /* the hutchd that runs it */
        struct str tenant;         /* who may see it; quotas are counted by it */
        struct owner owner;        /* complete */
        bool owner_bound;          /* the owner's only sandbox (PURISTA); else there may be more */

        /* what */
        struct str driver;
        struct str image; /* exactly one of image and snapshot_id */
        struct str snapshot_id;
        struct platform *platform; /* NULL: any */
        struct json_strs entrypoint;
        struct json_strs env_names;
        struct resources limits;
        struct network_policy *network_policy; /* NULL: everything is allowed */
        struct json_list volumes;              /* struct volume, without secrets */
        struct json_map metadata;
        struct json_map extensions;
        bool secure_access;
        bool git_configured;

        /* when and how */
        int64_t created_ms;
        struct expiry *expiry; /* NULL: never */
        struct status status;
        struct str handle; /* of the driver: a JSON object as text, or null */

        int64_t version; /* starts at 1 and grows with each write: for compare-and-set */
};

/* --- life --- */

/* Empty; invalid until it is filled. */
struct sandbox *sandbox_new(void) must_check;
void sandbox_free(struct sandbox *s);
void sandbox_freep(struct sandbox **s);

/* NULL if there is no memory. */
struct sandbox *sandbox_copy(const struct sandbox *s) must_check;

/* --- names --- */

/* A DNS label of at most 57 characters, so that hutch-<id> and <id>-<port> are labels, too: a UUID, or "sb-" and 32 digits.
 * No id contains '/', '%' or "..". */
bool sandbox_id_is_valid(struct str id);

#define CONTAINER_PREFIX "hutch-"

/* Sets both names. The id must be valid. ERR_TOO_LARGE if there is no room. */
int sandbox_set_id(struct sandbox *s, struct str id, struct err *e) must_check;

/* --- changes: copies into the record; ERR_TOO_LARGE if there is no room --- */

/* ERR_CONFLICT if the state does not allow it: see status_change. */
int sandbox_change(struct sandbox *s, const struct status_step *to, struct err *e) must_check;

/* NULL means never. */
int sandbox_set_expiry(struct sandbox *s, const struct expiry *x, struct err *e) must_check;

/* A merge patch: see labels_patch. */
int sandbox_patch_metadata(struct sandbox *s, const struct json_map *patch, struct err *e)
        must_check;

/* A JSON object of at most HANDLE_MAX bytes, or the null view; else ERR_INVALID. It comes from a driver, which may have it from
 * a runtime. */
int sandbox_set_handle(struct sandbox *s, struct str json, struct err *e) must_check;

/* --- stored form --- */

/* ERR_INVALID with the member that breaks a rule. A valid record can be encoded and read back. */
int sandbox_check(const struct sandbox *s, struct err *e) must_check;

/* Appends; failures are b's, whose maximum must be RECORD_TEXT_MAX: a longer record could not be read back. The record must
 * have passed sandbox_check. */
void sandbox_encode(struct buf *b, const struct sandbox *s);

/* ERR_INVALID if it is not a record of ours, ERR_UNSUPPORTED if a newer hutchd wrote it. */
int sandbox_decode(struct str text, struct sandbox **ret, struct err *e) must_check;

/* An entry of PURISTA's own registry, of any generation: unknown keys are ignored, scope may be absent. It names the owner but
 * not the place: another program, out of hutchd's reach, runs the sandbox. So the result has an owner, to which it is bound, the
 * organization as its tenant, and neither node nor driver nor image; it can be read and never be written (sandbox_check
 * refuses it). ERR_INVALID if it is not such an entry, or has a schema. */
int sandbox_decode_purista(struct str text, struct sandbox **ret, struct err *e) must_check;

/* Whether it is an entry of PURISTA's own registry. */
static inline bool sandbox_is_foreign(const struct sandbox *s)
{
        return s->schema == SANDBOX_SCHEMA_PURISTA;
}

#endif
