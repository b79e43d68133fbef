/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_HUTCH_HUTCH_H
#define HUTCH_API_HUTCH_HUTCH_H

/* Hutch's own routes, for the command line and for operators; under /v1 only. */

#include "api/access/access.h"
#include "api/api.h"
#include "api/response.h"

#define HUTCH_API(var, title, table)                                 \
        const struct http_api var = { .name = (title),               \
                                      .prefix = "/v1",               \
                                      .routes = (table),             \
                                      .n_routes = ARRAY_SIZE(table), \
                                      .authorize = access_authorize, \
                                      .invalid = api_fail_body }

extern const struct http_api hutch_drivers;
extern const struct http_api hutch_events;
extern const struct http_api hutch_images;
extern const struct http_api hutch_keys;
extern const struct http_api hutch_volumes;

#endif
