/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_JSON_PATH_H
#define HUTCH_BASE_JSON_PATH_H

/*
 * The decoder's position in a document, and errors about it. Private to the JSON files.
 *
 * A path is a chain of parts on the decoder's stack, innermost first; the null path is the document
 * itself. It becomes text only for an error: volumes[2].mountPath, metadata["a\u0007"].
 */

#include "base/json.h"

enum json_part { JSON_PART_NAME, JSON_PART_INDEX, JSON_PART_KEY };

struct json_path {
        const struct json_path *up;
        enum json_part kind;
        const char *name; /* NAME: ours, printed as it is */
        size_t index;     /* INDEX */
        struct str key;   /* KEY: from outside, escaped and cut */
};

/* All fill *reterr and return -EINVAL. */
int json_path__fail(struct json_error *reterr, const struct json_path *at, const char *fmt, ...)
        printf_like(3, 4);
int json_path__fail_unknown(struct json_error *reterr, const struct json_path *at, struct str key);
int json_path__fail_enum(struct json_error *reterr, const struct json_path *at,
                         const struct enum_table *t);

#endif
