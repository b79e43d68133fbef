/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_HMAC_H
#define HUTCH_BASE_HMAC_H

/*
 * HMAC-SHA-256 (RFC 2104): a tag that only the holder of the key can make, over a text that anybody
 * may know. Compare tags with str_eq_secret, never with memcmp.
 *
 * What is signed must have one reading: join parts with lengths or with a separator that no part
 * may hold, else the tag of ("a", "bc") opens ("ab", "c").
 */

#include "base/sha256.h"
#include "base/str.h"

#define HMAC_SHA256_SIZE SHA256_SIZE

void hmac_sha256(struct str key, struct str text, uint8_t ret[static HMAC_SHA256_SIZE]);

#endif
