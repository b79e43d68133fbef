/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_IDS_H
#define HUTCH_TESTS_LIB_IDS_H

/* Ids that can be predicted, and the form of those that cannot. */

#include "base/id.h"

static inline void ids_count(struct ids *s, void *p, size_t n)
{
        unsigned char *bytes = p;
        uint64_t v = ++s->count;

        while (n > 0) {
                bytes[--n] = (unsigned char) v;
                v >>= 8;
        }
}

/* Counts 1, 2, 3 …, big-endian at the end of each id, for tests that compare texts. */
static inline void ids_init_fake(struct ids *s)
{
        *s = (struct ids){ .fill = ids_count, .direct = true };
}

/* A UUID of version 4, in lower case. */
static inline bool id_is_uuid(struct str s)
{
        if (s.n != ID_UUID_LEN)
                return false;
        for (size_t i = 0; i < s.n; i++) {
                bool dash = i == 8 || i == 13 || i == 18 || i == 23;
                bool hex = (s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f');

                if (dash ? s.p[i] != '-' : !hex)
                        return false;
        }
        return s.p[14] == '4' && strchr("89ab", s.p[19]);
}

#endif
