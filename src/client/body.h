/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_BODY_H
#define HUTCH_CLIENT_BODY_H

/*
 * Bodies of requests, as JSON, written into op->body member by member. Commas come by themselves. A
 * text that is not UTF-8 refuses the call, because JSON could only say something else. NULL texts and
 * empty lists are left out. The operation may be one that failed already: then nothing happens.
 */

#include "client/op.h"

/* "{" or "[", with its key in front if it has one. Begins anew if `key` is NULL and nothing is open. */
void body_open(struct op *op, const char *key, char bracket);
void body_close(struct op *op, char bracket);

void body_text(struct op *op, const char *key, const char *value);
/* A JSON value as it is; what is none, or more than one, refuses the call. */
void body_json(struct op *op, const char *key, const char *value);
void body_i64(struct op *op, const char *key, int64_t value);
void body_true(struct op *op, const char *key, bool value); /* left out if false */
void body_null(struct op *op, const char *key);
void body_map(struct op *op, const char *key, const struct hutch_pair *pairs, size_t n);
void body_texts(struct op *op, const char *key, const char *const *texts, size_t n);

#endif
