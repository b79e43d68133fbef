/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include "base/banned.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_encode(const void *p, size_t n, char *ret)
{
        const uint8_t *in = p;
        char *out = ret;

        for (; n >= 3; in += 3, n -= 3) {
                uint32_t v = (uint32_t) in[0] << 16 | (uint32_t) in[1] << 8 | in[2];

                *out++ = alphabet[v >> 18];
                *out++ = alphabet[v >> 12 & 63];
                *out++ = alphabet[v >> 6 & 63];
                *out++ = alphabet[v & 63];
        }
        if (n > 0) {
                uint32_t v = (uint32_t) in[0] << 16 | (n == 2 ? (uint32_t) in[1] << 8 : 0);

                *out++ = alphabet[v >> 18];
                *out++ = alphabet[v >> 12 & 63];
                *out++ = (char) (n == 2 ? alphabet[v >> 6 & 63] : '=');
                *out++ = '=';
        }
        return (size_t) (out - ret);
}

/* 0 to 63, or something larger for any other character. */
static uint32_t value_of(char c)
{
        if (c >= 'A' && c <= 'Z')
                return (uint32_t) (c - 'A');
        if (c >= 'a' && c <= 'z')
                return (uint32_t) (c - 'a') + 26;
        if (c >= '0' && c <= '9')
                return (uint32_t) (c - '0') + 52;
        if (c == '+')
                return 62;
        return c == '/' ? 63 : UINT32_MAX;
}

int base64_decode(struct str s, void *ret, size_t *ret_n)
{
        uint8_t *out = ret;
        size_t n = 0;

        if (s.n % 4 != 0)
                return -EINVAL;

        for (size_t at = 0; at < s.n; at += 4) {
                const char *p = s.p + at;
                bool end = at + 4 == s.n;
                size_t chars = end && p[3] == '=' ? (p[2] == '=' ? 2 : 3) : 4;
                size_t bytes = chars - 1;
                uint32_t v = 0;

                for (size_t i = 0; i < chars; i++) {
                        uint32_t d = value_of(p[i]);

                        if (d > 63)
                                return -EINVAL;
                        v |= d << (18 - 6 * i);
                }
                if (bytes < 3 && (v & (0xffffffU >> (8 * bytes))) != 0)
                        return -EINVAL;
                for (size_t i = 0; i < bytes; i++)
                        out[n++] = (uint8_t) (v >> (16 - 8 * i));
        }
        *ret_n = n;
        return 0;
}
