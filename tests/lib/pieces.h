/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_PIECES_H
#define HUTCH_TESTS_LIB_PIECES_H

/*
 * Feeds an input in pieces, to test that the result of a parser does not depend on how it is cut.
 *
 * Each piece is a heap block of exactly its size: an access beyond it is seen by the sanitizer, and
 * a pointer kept beyond the call too.
 */

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* The first piece has `first` bytes, each later one `step`; 0 stands for all that is left. */
struct cut {
        size_t first;
        size_t step;
};

#define CUT_NONE     ((struct cut){ 0, 0 })
#define CUT_BYTES    ((struct cut){ 1, 1 })
#define CUT_AT(n)    ((struct cut){ (n), 0 })
#define CUT_EVERY(n) ((struct cut){ (n), (n) })

/* Negative stops the feeding and is returned. */
typedef int pieces_fn(void *arg, char *p, size_t n);

static inline int pieces_feed(struct str input, struct cut cut, pieces_fn *feed, void *arg)
{
        size_t want = cut.first;
        int r = 0;

        for (size_t at = 0; at < input.n && r >= 0; want = cut.step) {
                size_t n = want == 0 || want > input.n - at ? input.n - at : want;
                char *p = malloc(n);

                if (!p)
                        abort();
                memcpy(p, input.p + at, n);
                r = feed(arg, p, n);
                free(p);
                at += n;
        }
        return r;
}

#endif
