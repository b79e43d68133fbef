/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha1.h"

#include <endian.h>
#include <string.h>

#include "base/banned.h"

#define BLOCK 64

static uint32_t rol(uint32_t v, unsigned by)
{
        return v << by | v >> (32 - by);
}

static void absorb(uint32_t h[static 5], const uint8_t *block)
{
        uint32_t w[80];
        uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

        for (size_t i = 0; i < 16; i++) {
                uint32_t v;

                memcpy(&v, block + 4 * i, sizeof(v));
                w[i] = be32toh(v);
        }
        for (size_t i = 16; i < 80; i++)
                w[i] = rol(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
        for (size_t i = 0; i < 80; i++) {
                uint32_t t = rol(a, 5) + e + w[i];

                /* The function and the constant change every twenty rounds. */
                if (i < 20)
                        t += ((b & c) | (~b & d)) + 0x5a827999;
                else if (i < 40)
                        t += (b ^ c ^ d) + 0x6ed9eba1;
                else if (i < 60)
                        t += ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
                else
                        t += (b ^ c ^ d) + 0xca62c1d6;
                e = d;
                d = c;
                c = rol(b, 30);
                b = a;
                a = t;
        }
        h[0] += a;
        h[1] += b;
        h[2] += c;
        h[3] += d;
        h[4] += e;
}

void sha1(const void *p, size_t n, uint8_t ret[static SHA1_SIZE])
{
        uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
        uint8_t tail[2 * BLOCK] = { 0 };
        const uint8_t *at = p;
        size_t left = n;
        size_t tail_n;
        uint64_t bits = htobe64((uint64_t) n * 8);

        for (; left >= BLOCK; at += BLOCK, left -= BLOCK)
                absorb(h, at);

        /* The end of the text, a one bit, zeros, and the length in bits: one block or two. */
        if (left > 0)
                memcpy(tail, at, left);
        tail[left] = 0x80;
        tail_n = left + 1 + sizeof(bits) <= BLOCK ? BLOCK : 2 * BLOCK;
        memcpy(tail + tail_n - sizeof(bits), &bits, sizeof(bits));
        for (size_t i = 0; i < tail_n; i += BLOCK)
                absorb(h, tail + i);

        for (size_t i = 0; i < 5; i++) {
                uint32_t v = htobe32(h[i]);

                memcpy(ret + 4 * i, &v, sizeof(v));
        }
}
