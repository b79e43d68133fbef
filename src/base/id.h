/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_ID_H
#define HUTCH_BASE_ID_H

/*
 * Names that nobody can guess: UUID version 4 and 32 hexadecimal digits, from getrandom(2).
 *
 * A source keeps some random bytes in store, because a system call for each request id would be
 * one of its dearest parts. Bytes are used once and wiped. A forked child must not go on with its
 * parent's source (both would hand out the same names): ids_init again after fork.
 */

#include "base/compiler.h"
#include "base/str.h"

#define ID_HEX_LEN  32
#define ID_UUID_LEN 36

struct ids {
        void (*fill)(struct ids *s, void *p, size_t n); /* tests put their own here */
        bool direct;    /* ask fill for each name, keep nothing in store */
        uint64_t count; /* of the counting source */
        size_t left;    /* unused bytes, at the front of the pool */
        unsigned char pool[512];
};

/* From getrandom; the kernel's pool is ready long before us, so this does not fail. */
void ids_init(struct ids *s);

void ids_random(struct ids *s, void *p, size_t n);
void ids_hex(struct ids *s, char ret[static ID_HEX_LEN + 1]);
void ids_uuid(struct ids *s, char ret[static ID_UUID_LEN + 1]);

/* The same form of bytes that come from elsewhere, a digest: six of their bits are lost. */
void id_uuid_from(const unsigned char from[static 16], char ret[static ID_UUID_LEN + 1]);

/* 32 hexadecimal digits, lower case only. */
bool id_is_hex(struct str s);

#endif
