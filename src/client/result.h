/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_RESULT_H
#define HUTCH_CLIENT_RESULT_H

/*
 * Results: structs that callers get, with everything they point to in one arena behind them, so that
 * one function frees any of them and nothing in one can be forgotten.
 */

#include "base/arena.h"
#include "base/buf.h"

/* A zeroed struct of that size, or NULL. */
void *result_new(size_t size) must_check;

/* Of a result that is whole, or of one that is still being filled. NULL is fine. */
void result_free(void *result);

/* The memory behind it. */
struct arena *result_arena(void *result);

/* The buffer's memory goes with the result from now on; what was in it can be pointed to. At most two
 * of them. Always NUL-terminated, also if it never held anything; NULL: no memory. */
const char *result_adopt(void *result, struct buf *b) must_check;

/* It holds a secret: it is overwritten before it is freed. */
void result_mark_secret(void *result);

#endif
