/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_DECODE_IMPL_H
#define HUTCH_CLIENT_DECODE_IMPL_H

/* What the files that make decode.h share. */

#include "client/decode.h"
#include "client/result.h"

/* NULL: *ret_code says why. */
json_t *decode__parse(struct str text, int *ret_code);
void decode__freep(json_t **doc);

/* A string, copied; NULL if it is none. */
const char *decode__copy(struct decode *d, const json_t *v);

/* The result if it is whole and nothing was lacking, else NULL and why. */
void *decode__finish(void *result, const struct decode *d, bool whole, int *ret_code);

/* A result that is made of one document. `fill` says whether it is whole. */
struct decode_kind {
        size_t size;
        bool (*fill)(struct decode *d, const json_t *doc, void *result);
        bool secret;
};

void *decode__make(const struct decode_kind *kind, struct str text, const void *more,
                   int *ret_code);

#endif
