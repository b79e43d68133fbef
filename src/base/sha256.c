/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <endian.h>
#include <string.h>

#include "base/secret.h"

#include "base/banned.h"

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2,
};

static uint32_t ror(uint32_t v, unsigned by)
{
        return v >> by | v << (32 - by);
}

/* The eight words rotate through v[] by index instead of by copying: round i calls v[(k - i) % 8]
 * what the standard calls a (k = 0) to h (k = 7). */
#define V(k) v[((k) + 64 - i) % 8]

static void absorb(uint32_t h[static 8], const uint8_t *block)
{
        uint32_t w[64], v[8];

        for (size_t i = 0; i < 16; i++) {
                uint32_t word;

                memcpy(&word, block + 4 * i, sizeof(word));
                w[i] = be32toh(word);
        }
        for (size_t i = 16; i < 64; i++) {
                uint32_t a = w[i - 15], b = w[i - 2];

                w[i] = w[i - 16] + w[i - 7] + (ror(a, 7) ^ ror(a, 18) ^ a >> 3)
                       + (ror(b, 17) ^ ror(b, 19) ^ b >> 10);
        }
        memcpy(v, h, sizeof(v));
        for (size_t i = 0; i < 64; i++) {
                uint32_t a = V(0), e = V(4);
                uint32_t t = V(7) + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25))
                             + ((e & V(5)) ^ (~e & V(6))) + round_constants[i] + w[i];

                V(3) += t;
                V(7) = t + (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22))
                       + ((a & V(1)) ^ (a & V(2)) ^ (V(1) & V(2)));
        }
        for (size_t i = 0; i < 8; i++)
                h[i] += v[i];
        wipe(w, sizeof(w));
        wipe(v, sizeof(v));
}

void sha256_init(struct sha256 *s)
{
        /* The same of the square roots of the first eight primes. */
        static const uint32_t start[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                           0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

        memcpy(s->_h, start, sizeof(start));
        s->_n = 0;
}

void sha256_add(struct sha256 *s, const void *p, size_t n)
{
        const uint8_t *at = p;

        while (n > 0) {
                size_t used = s->_n % SHA256_BLOCK;
                size_t take = MIN_OF(n, SHA256_BLOCK - used);

                memcpy(s->_block + used, at, take);
                s->_n += take;
                at += take;
                n -= take;
                if (used + take == SHA256_BLOCK)
                        absorb(s->_h, s->_block);
        }
}

void sha256_finish(struct sha256 *s, uint8_t ret[static SHA256_SIZE])
{
        static const uint8_t pad[SHA256_BLOCK] = { 0x80 };
        uint64_t bits = htobe64(s->_n * 8);
        size_t used = s->_n % SHA256_BLOCK;

        /* A one bit, zeros, and the length, up to the end of a block. */
        sha256_add(s, pad, (used < 56 ? 56 : 56 + SHA256_BLOCK) - used);
        sha256_add(s, &bits, sizeof(bits));
        for (size_t i = 0; i < 8; i++) {
                uint32_t v = htobe32(s->_h[i]);

                memcpy(ret + 4 * i, &v, sizeof(v));
        }
        wipe(s, sizeof(*s));
}

void sha256(const void *p, size_t n, uint8_t ret[static SHA256_SIZE])
{
        struct sha256 s;

        sha256_init(&s);
        sha256_add(&s, p, n);
        sha256_finish(&s, ret);
}

/* --- HMAC --- */

void hmac_sha256(struct str key, struct str text, uint8_t ret[static HMAC_SHA256_SIZE])
{
        uint8_t block[SHA256_BLOCK] = { 0 }, inner[SHA256_SIZE];
        struct sha256 s;

        if (key.n > sizeof(block))
                sha256(key.p, key.n, block);
        else if (key.n > 0)
                memcpy(block, key.p, key.n);
        for (size_t i = 0; i < sizeof(block); i++)
                block[i] ^= 0x36;
        sha256_init(&s);
        sha256_add(&s, block, sizeof(block));
        sha256_add(&s, text.p, text.n);
        sha256_finish(&s, inner);

        for (size_t i = 0; i < sizeof(block); i++)
                block[i] ^= 0x36 ^ 0x5c;
        sha256_init(&s);
        sha256_add(&s, block, sizeof(block));
        sha256_add(&s, inner, sizeof(inner));
        sha256_finish(&s, ret);
        wipe(block, sizeof(block));
        wipe(inner, sizeof(inner));
}
