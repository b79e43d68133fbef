/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_BODY_H
#define HUTCH_CLIENT_BODY_H

/*
 * Writes JSON to op->body member by member; commas are inserted. A text that is not UTF-8 rejects the
 * call, because JSON cannot represent it. NULL texts and empty lists are omitted. Nothing happens if the
 * operation has failed already.
 */

#include "client/op.h"

/* Writes "{" or "[", with its key if it has one. */
void body_open(struct op *op, const char *key, char bracket);
void body_close(struct op *op, char bracket);

void body_text(struct op *op, const char *key, const char *value);
/* Writes a JSON value unchanged; anything but exactly one value rejects the call. */
void body_json(struct op *op, const char *key, const char *value);
void body_i64(struct op *op, const char *key, int64_t value);
void body_true(struct op *op, const char *key, bool value); /* omitted if false */
void body_null(struct op *op, const char *key);
void body_map(struct op *op, const char *key, const struct hutch_pair *pairs, size_t n);
void body_texts(struct op *op, const char *key, const char *const *texts, size_t n);

#endif
