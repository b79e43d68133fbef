/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_REGISTRY_STORE_KEYS_H
#define HUTCH_REGISTRY_STORE_KEYS_H

/*
 * The keys of the store; registry.h lists them.
 *
 * Records and owner indexes have the keys and values of PURISTA's own registry, so each finds the other's. All other keys
 * begin with "hutch:", as none of PURISTA's does ("hutch:store:" is reserved: store/redis_scripts.h).
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

/* An owner's key may be longer than some stores accept. Above OWNER_TEXT_MAX it is replaced by "%sha256:" and the digest.
 * No owner's key begins so, because a '%' in it is written "%25". */
#define OWNER_TEXT_MAX  512
#define OWNER_KEY_SIZE  (16 + OWNER_TEXT_MAX)
#define OWNER_LONG_MARK "%sha256:"

/* The buffer's maximum is OWNER_KEY_SIZE or more; the owner is complete. */
void add_owner_key(struct buf *b, const char *prefix, const struct owner *o);

/* PURISTA's older generation knew no scopes, and its owner keys end before them. Returns that key: a view of the beginning
 * of `key`. The null view if there is none: the owner has a scope of its own, or the key is a digest. */
struct str legacy_owner_key(struct str key, const struct owner *o);

/* The value of an owner's key: the id as a JSON string. */
#define INDEX_VALUE_SIZE (SANDBOX_ID_MAX + 2)
struct str index_value(struct str id, char ret[static INDEX_VALUE_SIZE]);

/* The id in such a value; the null view if there is no valid one. */
struct str index_id(struct str value);

#endif
