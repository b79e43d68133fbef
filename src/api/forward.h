/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_FORWARD_H
#define HUTCH_API_FORWARD_H

/*
 * Forwards requests to the node of the cluster that owns the sandbox (docs/internals/cluster.md). forward.c explains how.
 * Without a cluster nothing here costs more than a comparison.
 */

#include "api/api.h"

/* Whether this request may be forwarded: there are other nodes, and none of them has forwarded it to us. */
bool forward_is_allowed(const struct http_req *req);

/* The part of authorization that needs the record (NULL: there is none): 0, or negative after a reply. The record is valid
 * during the call. */
typedef int forward_check_fn(struct http_req *req, const struct sandbox *record);

/* For authorize. True: this node does not have the sandbox, and the request is held. Later it is forwarded, answered, or
 * continued by its own route here. check may be NULL: the caller is authorized already. */
bool forward_if_remote(struct http_req *req, struct str id, forward_check_fn *check);

/* Forwards to that node. body is taken; NULL: the request's own body, which must not have been read yet. The response is
 * the proxy's from now on. */
void forward_to(struct http_req *req, const struct service_node *node, struct buf *body);

/* In a cluster: accepts a request that another node has forwarded, and refuses every request while the lease of this node has
 * expired: 1, 0 if it was not forwarded, negative after a reply. After 1 there is an auth_context (api/access/access.h), whose
 * caller is identified or not. */
int forward_receive(struct http_req *req);

#endif
