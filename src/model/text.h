/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_TEXT_H
#define HUTCH_MODEL_TEXT_H

/* The shapes of names from which the rules of the model are built. ASCII, independent of the locale. */

#include "base/compiler.h"
#include "base/str.h"

/* [a-z0-9]([-a-z0-9]*[a-z0-9])?, up to 63: a part of a host name. */
bool text_is_dns_label(struct str s);

/* Such labels, separated by dots, up to 253. */
bool text_is_dns_name(struct str s);

/* [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?, up to max: names and values of Kubernetes labels. */
bool text_is_label(struct str s, size_t max);

/* Not empty, up to max, valid UTF-8 without control characters: safe to show and to log. */
bool text_is_clean(struct str s, size_t max);

/* Up to max, valid UTF-8 without NUL; may be empty: an argument of a program. */
bool text_is_argument(struct str s, size_t max);

/* Absolute, without control characters, empty, "." and ".." components; "/" is valid. */
bool text_is_plain_path(struct str s);

/* A client's value for an error message: quoted, escaped, cut. QUOTED lives as long as its block. */
#define TEXT_QUOTE_MAX 80
const char *text_quote(struct str s, char ret[static TEXT_QUOTE_MAX]);
#define QUOTED(s) text_quote((s), (char[TEXT_QUOTE_MAX]){ 0 })

#endif
