/* SPDX-License-Identifier: Apache-2.0 */
#include "base/id.h"

#include <sys/random.h>

#include "base/secret.h"

#include "base/banned.h"

static void fill_from_kernel(struct ids *s, void *p, size_t n)
{
        char *at = p;

        while (n > 0) {
                ssize_t r = getrandom(at, n, 0);

                /* An id that can be guessed is worse than none. */
                ASSERT(r > 0 || errno == EINTR);
                if (r < 0)
                        continue;
                at += r;
                n -= (size_t) r;
        }
}

void ids_init(struct ids *s)
{
        *s = (struct ids){ .fill = fill_from_kernel };
}

void ids_random(struct ids *s, void *p, size_t n)
{
        if (s->direct || n > sizeof(s->pool)) {
                s->fill(s, p, n);
                return;
        }
        if (n > s->left) {
                s->fill(s, s->pool, sizeof(s->pool));
                s->left = sizeof(s->pool);
        }
        s->left -= n;
        memcpy(p, s->pool + s->left, n);
        wipe(s->pool + s->left, n);
}

void ids_hex(struct ids *s, char ret[static ID_HEX_LEN + 1])
{
        unsigned char bytes[ID_HEX_LEN / 2];

        ids_random(s, bytes, sizeof(bytes));
        hex_encode(ret, bytes, sizeof(bytes));
        ret[ID_HEX_LEN] = '\0';
}

void id_uuid_from(const unsigned char from[static 16], char ret[static ID_UUID_LEN + 1])
{
        unsigned char bytes[16];

        memcpy(bytes, from, sizeof(bytes));
        bytes[6] = (bytes[6] & 0x0f) | 0x40; /* version 4: random */
        bytes[8] = (bytes[8] & 0x3f) | 0x80; /* variant of RFC 4122 */
        hex_encode(ret, bytes, 4);
        hex_encode(ret + 9, bytes + 4, 2);
        hex_encode(ret + 14, bytes + 6, 2);
        hex_encode(ret + 19, bytes + 8, 2);
        hex_encode(ret + 24, bytes + 10, 6);
        ret[8] = ret[13] = ret[18] = ret[23] = '-';
        ret[ID_UUID_LEN] = '\0';
}

void ids_uuid(struct ids *s, char ret[static ID_UUID_LEN + 1])
{
        unsigned char bytes[16];

        ids_random(s, bytes, sizeof(bytes));
        id_uuid_from(bytes, ret);
}

bool id_is_hex(struct str s)
{
        if (s.n != ID_HEX_LEN)
                return false;
        for (size_t i = 0; i < s.n; i++)
                if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
                        return false;
        return true;
}
