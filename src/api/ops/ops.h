/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPS_OPS_H
#define HUTCH_API_OPS_OPS_H

/*
 * What operators and load balancers ask: GET /health, /version and /openapi.json, which need no
 * identity and tell nothing about tenants, and GET /metrics in Prometheus' text format, which is for
 * admins: numbers of sandboxes are somebody's business.
 */

#include "api/api.h"

extern const struct http_api api_ops;

/* The numbers of the whole program. */
void metrics_write(struct buf *b, const struct api *api, struct http_server *server);

#endif
