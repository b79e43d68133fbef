/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPS_OPS_H
#define HUTCH_API_OPS_OPS_H

/* What operators and load balancers ask: GET /health, /version and /metrics. No identity is needed
 * and nothing about tenants is told. */

#include "http/route.h"
#include "http/server.h"

extern const struct http_api api_ops;

/* The server's counters in Prometheus' text format. */
void api_metrics_write(struct buf *b, const struct http_server_stats *s);

#endif
