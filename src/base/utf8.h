/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_UTF8_H
#define HUTCH_BASE_UTF8_H

/*
 * Validates UTF-8 that arrives in pieces (str_is_utf8 is for a complete text).
 *
 * The same rules: no overlong forms, no surrogates, nothing above U+10FFFF. A character may be split
 * between two pieces. Ill-formed text is refused at its first wrong byte, wherever the pieces end.
 * Storage is the caller's; nothing needs to be freed.
 */

#include "base/compiler.h"

struct utf8_check {
        uint8_t _need; /* continuation bytes still expected */
        uint8_t _lo;   /* the next one lies within [_lo, _hi] */
        uint8_t _hi;
};

void utf8_check_init(struct utf8_check *c);

/* 0, or -EILSEQ with *reterr_at the index of the offending byte. It must not be called again then. */
int utf8_check_feed(struct utf8_check *c, const void *p, size_t n, size_t *reterr_at) must_check;

/* 0 if the text may end here, -EILSEQ inside a character. */
int utf8_check_finish(const struct utf8_check *c) must_check;

#endif
