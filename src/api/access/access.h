/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_ACCESS_ACCESS_H
#define HUTCH_API_ACCESS_ACCESS_H

/*
 * Who asks, and may he? Decided once, before a handler runs and before a byte of the body is read:
 * access_authorize is the `authorize` of every API that serves sandboxes.
 *
 * With keys. A request names an API key, as OPEN-SANDBOX-API-KEY, X-API-Key or
 * Authorization: Bearer; the key says tenant, principal and role, the scope of the route (enum
 * api_scope) says which roles may. Nothing else identifies anybody: no cookie, no address. So a page
 * in somebody's browser can't borrow who he is.
 *
 * Without keys. Everybody is tenant and principal "default", an admin. Then what reaches us must not
 * come from a page: Host has to name this machine (else a name that an attacker lets point to
 * 127.0.0.1 would make his page one of ours), and Origin, if there is one, has to be the same host.
 *
 * In both cases the API refuses "Origin: null": that is what pages out of a sandbox have.
 *
 * Entering a sandbox (API_INGRESS) has rules of its own, see api/access/ingress.h. All of it is told in
 * docs/internals/access.md.
 */

#include "api/api.h"

#define DEFAULT_TENANT    "default"
#define DEFAULT_PRINCIPAL "default"

/* http_authorize_fn. Afterwards api_caller(req) is set and lives as long as the request; the log of
 * the request knows tenant and sandbox; a request of a route that does not last is counted, or was
 * refused with 503 because too many are (api->requests_max). */
int access_authorize(struct http_req *req, uint32_t scope);

#endif
