/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_PROXY_HEADERS_H
#define HUTCH_HTTP_PROXY_HEADERS_H

/* Which headers a proxy forwards. Internal to src/http; pure. */

#include "http/proxy.h"

/* Elements of a Connection field. Each is compared with every header, so their number is limited; real
 * ones have one or two. */
#define PROXY_CONNECTION_MAX 32

/* The headers of the forwarded request. -EBADMSG if Connection has too many elements, -ENOMEM. */
int proxy__request_headers(struct http_req *req, const struct http_proxy_target *t,
                           struct http_headers *ret) must_check;

/* Adds the headers of the upstream's response to that of req; `filter` may be NULL. The same errors, and
 * those of the filter. */
int proxy__response_headers(struct http_req *req, const struct http_headers *response,
                            http_proxy_filter_fn *filter) must_check;

#endif
