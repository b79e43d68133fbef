/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_REGISTRY_KEYS_H
#define HUTCH_REGISTRY_KEYS_H

/* Names of what is in the store; registry.h has the list. */

#include "model/limits.h"
#include "model/owner.h"
#include "store/store.h"

#define RECORD_PREFIX   "sandbox/"
#define OWNER_PREFIX    "owner/"
#define LOCK_PREFIX     "lock/"
#define API_KEY_PREFIX  "key/"
#define SNAPSHOT_PREFIX "snapshot/"

#define RECORD_KEY_SIZE (sizeof(RECORD_PREFIX) + SANDBOX_ID_MAX)

/* The id must be valid; ret gets no NUL. */
struct str record_key(struct str id, char ret[static RECORD_KEY_SIZE]);

/* An owner's key may be longer than some stores take. Above OWNER_TEXT_MAX its place is taken by
 * "%sha256:" and the digest; no owner's key begins so, because a '%' of its own is written "%25". */
#define OWNER_TEXT_MAX  512
#define OWNER_KEY_SIZE  (8 + OWNER_TEXT_MAX)
#define OWNER_LONG_MARK "%sha256:"

/* The buffer's maximum is OWNER_KEY_SIZE or more; the owner is complete. */
void add_owner_key(struct buf *b, const char *prefix, const struct owner *o);

#endif
