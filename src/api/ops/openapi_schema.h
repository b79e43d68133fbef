/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPS_OPENAPI_SCHEMA_H
#define HUTCH_API_OPS_OPENAPI_SCHEMA_H

/* A struct's table as a JSON schema. */

#include "base/json.h"

enum schema_direction {
        SCHEMA_INPUT,    /* what is decoded */
        SCHEMA_RESPONSE, /* what is encoded */
};

void schema_write(struct buf *b, const struct json_field *fields, enum schema_direction way);

#endif
