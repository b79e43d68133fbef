/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_BASE64_H
#define HUTCH_BASE_BASE64_H

/*
 * Base64 with the standard alphabet and padding (RFC 4648, section 4).
 *
 * Decoding is strict: no line ends, no other alphabet, no missing padding, and the unused bits of
 * the last character must be zero. So each byte sequence has exactly one accepted text.
 */

#include "base/compiler.h"
#include "base/str.h"

/* Length of the text of n bytes, without a NUL. */
#define BASE64_ENCODED(n) (((n) + 2) / 3 * 4)
/* The most bytes that n characters can hold. */
#define BASE64_DECODED_MAX(n) ((n) / 4 * 3)

/* Writes BASE64_ENCODED(n) characters to ret, no NUL, and returns their number. */
size_t base64_encode(const void *p, size_t n, char *ret);

/* Writes to ret, which has room for BASE64_DECODED_MAX(s.n) bytes; *ret_n is how many were written.
 * -EINVAL if it is not base64; the content of ret is then unspecified. */
int base64_decode(struct str s, void *ret, size_t *ret_n) must_check;

#endif
