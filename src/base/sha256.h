/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_SHA256_H
#define HUTCH_BASE_SHA256_H

/*
 * SHA-256 (FIPS 180-4), for names derived from texts, for keys of which only the digest is stored,
 * and in HMAC. One shot, or in pieces:
 *
 *         struct sha256 s;
 *         sha256_init(&s);
 *         sha256_add(&s, head.p, head.n);
 *         sha256_add(&s, body.p, body.n);
 *         sha256_finish(&s, digest);
 *
 * A bare digest authenticates nothing: from H(secret + text) anyone can compute H of a longer text.
 * Tokens use hmac_sha256.
 */

#include "base/compiler.h"
#include "base/str.h"

#define SHA256_SIZE  32
#define SHA256_BLOCK 64

struct sha256 {
        uint32_t _h[8];
        uint64_t _n; /* bytes so far */
        uint8_t _block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *p, size_t n);

/* Wipes *s: the input may have been a secret. */
void sha256_finish(struct sha256 *s, uint8_t ret[static SHA256_SIZE]);

void sha256(const void *p, size_t n, uint8_t ret[static SHA256_SIZE]);

/* --- HMAC-SHA-256 (RFC 2104) --- */

#define HMAC_SHA256_SIZE SHA256_SIZE

/* A tag that only the holder of the key can compute. Compare tags with str_eq_secret, never with
 * memcmp. The signed text must be unambiguous: join parts with lengths or with a separator that no
 * part may contain, otherwise the tag of ("a", "bc") is valid for ("ab", "c"). */
void hmac_sha256(struct str key, struct str text, uint8_t ret[static HMAC_SHA256_SIZE]);

#endif
