/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_FORWARD_H
#define HUTCH_API_FORWARD_H

/*
 * Requests for sandboxes of other nodes on the same store (docs/internals/cluster.md).
 *
 * A request is passed on once: the node that gets one from another (api/access/peer.h) answers it, whatever it has. It is
 * passed on as a whole, before its body was asked for, by the proxy that also leads into sandboxes; so streams,
 * uploads and protocol switches go through like anything else. Who asks was found out by the first node, and is
 * believed by the second; whether he may, the second decides as well.
 *
 * Without other nodes nothing here costs more than a comparison.
 */

#include "api/api.h"

/* Whether this request may be passed on at all. */
bool forward_is_allowed(const struct http_req *req);

/* What the first node has yet to decide, once the record is known (NULL: there is none): 0, or negative after a
 * reply. Good for the time of the call. */
typedef int forward_check_fn(struct http_req *req, const struct sandbox *record);

/* For authorize. True: the sandbox is not here, and the request was taken: it is passed on, answered, or given
 * back to its own route, later. check may be NULL. */
bool forward_if_remote(struct http_req *req, struct str id, forward_check_fn *check);

/* To that node, with that body, which is taken; NULL: with the request's own, which was not asked for yet. What
 * becomes of it is the proxy's business from now on. */
void forward_to(struct http_req *req, const struct service_node *node, struct buf *body);

/* What others have passed on, and what is refused while the lease is over: 1, 0 if it was not passed on, negative after a
 * reply. After 1 there is a auth_context (api/access/ingress.h), whose caller is known or not. */
int forward__receive(struct http_req *req);

static inline int forward_receive(struct http_req *req)
{
        return api_of(req)->cluster ? forward__receive(req) : 0;
}

#endif
