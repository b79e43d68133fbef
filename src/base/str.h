/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_STR_H
#define HUTCH_BASE_STR_H

/*
 * A view of bytes: pointer and length, passed by value, owning nothing.
 *
 * The bytes need not end in NUL and may contain one. A view is valid as long as the bytes it points
 * to; views into a request live as long as the request's arena. The null view (p == NULL) means
 * "absent" where a function says so; an empty view has p != NULL and n == 0.
 */

#include <string.h>
#include <sys/types.h>

#include "base/compiler.h"

struct str {
        const char *p;
        size_t n;
};

#define STR(literal) ((struct str){ "" literal "", sizeof(literal) - 1 })
#define STR_NULL     ((struct str){ NULL, 0 })

/* For printf: "%.*s", STR_ARG(s). Text from outside goes through log fields or buf_add_quoted. */
#define STR_ARG(s) (int) MIN_OF((s).n, (size_t) INT32_MAX), ((s).p ? (s).p : "")

static inline struct str str_from(const char *z)
{
        return (struct str){ z, z ? strlen(z) : 0 };
}

static inline struct str str_of(const char *p, size_t n)
{
        return (struct str){ p, n };
}

static inline bool str_eq(struct str a, struct str b)
{
        return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Orders as memcmp does, a prefix before longer texts: below, at or above 0. */
int str_cmp(struct str a, struct str b);

/* ASCII only, whatever the locale. */
bool str_caseeq(struct str a, struct str b);
bool str_starts_with(struct str s, struct str prefix);
bool str_ends_with(struct str s, struct str suffix);

/* Takes a time that depends on the lengths only; for tokens and keys. */
bool str_eq_secret(struct str a, struct str b);

/* Without leading and trailing spaces and tabs. */
struct str str_trim(struct str s);

/* First position of c, or -1. */
ssize_t str_find(struct str s, char c);

/* From byte `from` on; empty if there are fewer. */
struct str str_skip(struct str s, size_t from);

/* Removes the part before the first `sep` from *rest and returns true; the part may be empty. At the
 * end *rest becomes the null view, and the next call returns false:
 *
 *         while (str_split(&rest, ',', &item))
 */
bool str_split(struct str *rest, char sep, struct str *ret_part);

/* --- UTF-8 --- */

/* Well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool str_is_utf8(struct str s);

/* Bytes of the well-formed character that s begins with, or 0 if there is none. */
size_t str_utf8_char(struct str s, uint32_t *ret_code_point);

/* The longest prefix of at most max bytes that does not split a character. */
struct str str_utf8_cut(struct str s, size_t max);

/* --- hexadecimal --- */

/* Writes 2 * n lower case digits, no NUL. */
void hex_encode(char *ret, const void *p, size_t n);

#endif
