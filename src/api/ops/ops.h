/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPS_OPS_H
#define HUTCH_API_OPS_OPS_H

/*
 * For operators and load balancers: GET /health, /version and /openapi.json, which need no key and reveal nothing about
 * tenants, and GET /metrics in Prometheus' text format, which is for admins because it counts sandboxes.
 */

#include "api/api.h"

extern const struct http_api api_ops;

/* Appends all metrics. */
void metrics_write(struct buf *b, const struct api *api, struct http_server *server);

/* Appends the OpenAPI document of these APIs; the list ends in NULL. */
void openapi_write(struct buf *b, const struct http_api *const *apis);

#endif
