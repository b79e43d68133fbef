/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_ALLOC_H
#define HUTCH_BASE_ALLOC_H

/*
 * Allocators that abort when there is no memory.
 *
 * For our own small objects only. Anything whose size an outsider chooses goes through a bounded
 * buffer (base/buf.h) or the request arena, which return failure instead. The client library does
 * not use this file: a library never aborts its program.
 */

#include <stdlib.h>

#include "base/compiler.h"
#include "base/str.h"

void *xcalloc(size_t n, size_t size) must_check;
void *xrealloc(void *p, size_t n, size_t size) must_check;

/* A NUL-terminated copy. A NUL inside the view stays inside. */
char *xstrndup_str(struct str s) must_check;

#define xnew(type) ((type *) xcalloc(1, sizeof(type)))

/* For scoped(freep). */
static inline void freep(void *p)
{
        void **q = p;

        free(*q);
}

#endif
