/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_TEXT_H
#define HUTCH_MODEL_TEXT_H

/* The few forms of names that all rules of the model are made of. ASCII, whatever the locale. */

#include "base/compiler.h"
#include "base/str.h"

/* [a-z0-9]([-a-z0-9]*[a-z0-9])?, up to 63: a part of a host name, and of names we make ours from. */
bool text_is_dns_label(struct str s);

/* Such labels with dots between them, up to 253. */
bool text_is_dns_name(struct str s);

/* [A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?, up to max: Kubernetes' names and values of labels. */
bool text_is_label(struct str s, size_t max);

/* Not empty, up to max, valid UTF-8 without control characters: what may be shown and logged. */
bool text_is_clean(struct str s, size_t max);

/* Up to max, valid UTF-8 without NUL; may be empty: an argument of a program. */
bool text_is_argument(struct str s, size_t max);

/* Absolute, without control characters, empty, "." and ".." components; "/" is one, too. */
bool text_is_plain_path(struct str s);

/* A foreign value for an error message: quoted, escaped, cut. QUOTED lives as long as its block. */
#define TEXT_QUOTE_MAX 80
const char *text_quote(struct str s, char ret[static TEXT_QUOTE_MAX]);
#define QUOTED(s) text_quote((s), (char[TEXT_QUOTE_MAX]){ 0 })

#endif
