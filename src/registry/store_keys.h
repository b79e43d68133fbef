/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_REGISTRY_STORE_KEYS_H
#define HUTCH_REGISTRY_STORE_KEYS_H

/*
 * Names of what is in the store; registry.h has the list.
 *
 * Records and owners' indexes are where PURISTA's own registry has them, and as it writes them: it
 * finds ours, and we find its. All else has a prefix of ours, which none of PURISTA's keys begins with
 * ("hutch:store:" is taken: store/redis_scripts.h).
 */

#include "model/limits.h"
#include "model/owner.h"
#include "store/store.h"

#define RECORD_PREFIX   "sandbox:registry:"
#define OWNER_PREFIX    "sandbox:owner:"
#define LOCK_PREFIX     "hutch:lock:"
#define API_KEY_PREFIX  "hutch:key:"
#define SNAPSHOT_PREFIX "hutch:snapshot:"
#define NODE_PREFIX     "hutch:node:"

#define RECORD_KEY_SIZE (sizeof(RECORD_PREFIX) + SANDBOX_ID_MAX)

/* The id must be valid; ret gets no NUL. */
struct str record_key(struct str id, char ret[static RECORD_KEY_SIZE]);

/* An owner's key may be longer than some stores take. Above OWNER_TEXT_MAX its place is taken by
 * "%sha256:" and the digest; no owner's key begins so, because a '%' of its own is written "%25". */
#define OWNER_TEXT_MAX  512
#define OWNER_KEY_SIZE  (16 + OWNER_TEXT_MAX)
#define OWNER_LONG_MARK "%sha256:"

/* The buffer's maximum is OWNER_KEY_SIZE or more; the owner is complete. */
void add_owner_key(struct buf *b, const char *prefix, const struct owner *o);

/* PURISTA's older generation knew no scopes, and its keys end before them. Such a key of the owner, of
 * whom `key` is the other one: a view of its beginning. The null view if there is none: he has a scope of
 * his own, or his key is a digest. */
struct str legacy_owner_key(struct str key, const struct owner *o);

/* What is stored at an owner's key: the id as a JSON text, in quotes. */
#define INDEX_VALUE_SIZE (SANDBOX_ID_MAX + 2)
struct str index_value(struct str id, char ret[static INDEX_VALUE_SIZE]);

/* The id in it; the null view if there is no valid one. */
struct str index_id(struct str value);

#endif
