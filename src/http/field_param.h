/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_FIELD_PARAM_H
#define HUTCH_HTTP_FIELD_PARAM_H

/*
 * The parameters behind a header field's main value (RFC 9110, 5.6.6):
 *
 *         form-data; name="file"; filename="a \"b\".txt"
 *
 *         struct str rest = field, value;
 *         field_param_value(&rest, &value);
 *         while ((r = field_param_next(&rest, &param)) > 0)
 *                 ...
 *
 * Views point into the field; a quoted value is given without its quotes but with its escapes, as
 * senders disagree on what a backslash means and only the reader of the parameter knows.
 */

#include "base/compiler.h"
#include "base/str.h"

struct field_param {
        struct str name; /* a token; compare without case */
        struct str value;
        bool quoted;
};

/* Takes what stands before the first ';' off *rest, trimmed. */
void field_param_value(struct str *rest, struct str *ret);

/* Takes the next parameter off *rest. 1, 0 at the end, -EINVAL for bad syntax. Empty parameters
 * ("a; ; b=c") are passed over. */
int field_param_next(struct str *rest, struct field_param *ret) must_check;

#endif
