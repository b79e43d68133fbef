/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_ACCESS_ACCESS_IMPL_H
#define HUTCH_API_ACCESS_ACCESS_IMPL_H

/* What the two ways in, to the API and into a sandbox, share. Internal to src/api/access. Checks
 * return false after they have replied. */

#include "api/access/access.h"
#include "api/access/ingress.h"

/* Whether Host is a name of this machine. Asks nothing if there are keys. */
bool access__check_host(struct http_req *req);

/* Every Origin of the request. */
bool access__check_origin(struct http_req *req);

/* Whether an Origin is the host that was asked, or the public address. */
bool access__origin_is_ours(struct http_req *req, struct str origin);

/* Makes the caller: what `key` says is copied; NULL: everybody, of an installation without keys. */
bool access__set_caller(struct http_req *req, const struct api_key *key);

/* One that is bound to a tenant only: who came with a token. */
bool access__set_token_caller(struct http_req *req, struct str tenant);

/* A bridge, which is no tenant: its own name is for the records of what it did. NULL: by its user. */
bool access__set_bridge(struct http_req *req, const struct api_key *key);

/* The key that a request shows; the null view if it shows none. */
struct str access__key_of(struct http_req *req);

/* 401 with the code that tells a missing key from a wrong one. */
void access__unauthorized(struct http_req *req, bool missing);

/* 403 if the caller's role does not allow it. */
bool access__check_role(struct http_req *req, uint32_t scope);

#endif
