/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPENSANDBOX_OPENSANDBOX_H
#define HUTCH_API_OPENSANDBOX_OPENSANDBOX_H

/*
 * The lifecycle API of OpenSandbox: the published description, and where real clients differ from it, what they need.
 *
 * Each resource is a file with its handlers and, at its end, its route table, which is served twice: bare and under /v1.
 * Clients use either.
 *
 *         static const struct http_route routes[] = { … };
 *         OPENSANDBOX_API(opensandbox_pools, "pools", routes);
 */

#include "api/access/access.h"
#include "api/api.h"
#include "api/response.h"

#define OPENSANDBOX_AT(at, title, table)                                                           \
        {                                                                                          \
                .name = (title), .prefix = (at), .routes = (table), .n_routes = ARRAY_SIZE(table), \
                .authorize = access_authorize, .invalid = api_fail_body                            \
        }

#define OPENSANDBOX_API(var, title, table)                                 \
        const struct http_api var[2] = { OPENSANDBOX_AT("", title, table), \
                                         OPENSANDBOX_AT("/v1", title, table) }

/* For tables that are served under /v1 only. */
#define OPENSANDBOX_API_V1(var, title, table) \
        const struct http_api var[1] = { OPENSANDBOX_AT("/v1", title, table) }

extern const struct http_api opensandbox_diagnostics[2];
extern const struct http_api opensandbox_endpoints[2];
extern const struct http_api opensandbox_metrics_events[1];
extern const struct http_api opensandbox_pools[2];
extern const struct http_api opensandbox_preview; /* has hosts of its own */
extern const struct http_api opensandbox_proxy[2];
extern const struct http_api opensandbox_sandboxes[2];
extern const struct http_api opensandbox_snapshots[2];

/* The handler of POST /sandboxes. */
void create_sandbox(struct http_req *req);

/* The scheme by which the client came: http, or https if a proxy in front of hutchd says so. */
struct str client_scheme(struct http_req *req);

#endif
