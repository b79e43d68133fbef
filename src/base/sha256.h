/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_SHA256_H
#define HUTCH_BASE_SHA256_H

/*
 * SHA-256 (FIPS 180-4): for names derived from texts, for keys that are kept as their digest only,
 * and under HMAC (base/hmac.h). One shot, or in pieces:
 *
 *         struct sha256 s;
 *         sha256_init(&s);
 *         sha256_add(&s, head.p, head.n);
 *         sha256_add(&s, body.p, body.n);
 *         sha256_finish(&s, digest);
 *
 * A bare digest authenticates nothing: whoever knows H(secret + text) can make H of a longer text.
 * Tokens go through base/hmac.h.
 */

#include "base/compiler.h"

#define SHA256_SIZE  32
#define SHA256_BLOCK 64

struct sha256 {
        uint32_t _h[8];
        uint64_t _n; /* bytes so far */
        uint8_t _block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *p, size_t n);

/* Wipes *s: what was added may have been a secret. */
void sha256_finish(struct sha256 *s, uint8_t ret[static SHA256_SIZE]);

void sha256(const void *p, size_t n, uint8_t ret[static SHA256_SIZE]);

#endif
