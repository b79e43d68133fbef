/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_ID_H
#define HUTCH_BASE_ID_H

/*
 * Ids that cannot be guessed: UUID version 4 and 32 hexadecimal digits, from getrandom(2).
 *
 * A source keeps a pool of random bytes, because a system call for each request id would be one of
 * the most expensive parts of a request. Bytes are used once and wiped. A forked child must not use
 * its parent's source, or both would produce the same ids: it calls ids_init again.
 */

#include "base/compiler.h"
#include "base/str.h"

#define ID_HEX_LEN  32
#define ID_UUID_LEN 36

struct ids {
        void (*fill)(struct ids *s, void *p, size_t n); /* replaced by tests */
        bool direct;                                    /* call fill for each id, keep no pool */
        uint64_t count;                                 /* for tests */
        size_t left;                                    /* unused bytes, at the front of the pool */
        unsigned char pool[512];
};

/* From getrandom, whose pool is initialised long before we start, so this does not fail. */
void ids_init(struct ids *s);

void ids_random(struct ids *s, void *p, size_t n);
void ids_hex(struct ids *s, char ret[static ID_HEX_LEN + 1]);
void ids_uuid(struct ids *s, char ret[static ID_UUID_LEN + 1]);

/* A UUID from given bytes, a digest for example; six of their bits are lost. */
void id_uuid_from(const unsigned char from[static 16], char ret[static ID_UUID_LEN + 1]);

/* 32 hexadecimal digits, lower case only. */
bool id_is_hex(struct str s);

#endif
