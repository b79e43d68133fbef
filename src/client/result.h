/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_RESULT_H
#define HUTCH_CLIENT_RESULT_H

/* Results: structs returned to callers. Everything they point to is in one arena, so one function frees
 * any of them. */

#include "base/arena.h"
#include "base/buf.h"

/* A zeroed struct of that size, or NULL. */
void *result_new(size_t size) must_check;

/* Accepts NULL and results that are not complete. */
void result_free(void *result);

struct arena *result_arena(void *result);

/* The result takes over the memory of a buffer; at most two per result. Returns its content, NUL-terminated
 * even if it is empty, or NULL without memory. */
const char *result_adopt(void *result, struct buf *b) must_check;

/* The result contains a secret: it is overwritten when it is freed. */
void result_mark_secret(void *result);

#endif
