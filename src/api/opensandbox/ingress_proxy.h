/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPENSANDBOX_INGRESS_PROXY_H
#define HUTCH_API_OPENSANDBOX_INGRESS_PROXY_H

/*
 * The ways into a sandbox: where a port of it can be reached, and the reverse proxy that makes it so.
 *
 *         GET /sandboxes/{id}/endpoints/{port}        where, and with which token
 *         ANY /sandboxes/{id}/proxy/{port}/…          through our own origin
 *         ANY {id}-{port}.{preview domain}/…          through an origin of the app's own
 *
 * Code behind a sandbox's port is hostile, and below /sandboxes/{id}/proxy it shares an origin with the
 * API and with all other sandboxes. There its pages are kept in the browser's sandbox (they have the
 * origin "null", which the API refuses), get no cookies and set none, and headers that would speak for
 * the whole origin are dropped. A preview host is an origin of its own: cookies and Authorization are
 * the app's business there.
 *
 * Who may come in is api/access/ingress.h; what is removed and added is told in docs/internals/proxy.md.
 */

#include "api/api.h"

/* What a kind of proxy does with messages. */
struct ingress_proxy_kind {
        const struct str *strip; /* names that must not enter, besides those of all */
        size_t n_strip;
        http_exec_fn *headers;                                      /* adds ours to the answer */
        int (*answer)(struct http_req *req, struct http_header *h); /* see http_proxy_filter_fn */
};

/* What one request brings along, besides. */
struct ingress_proxy_extra {
        struct str strip;  /* one more name; may be null */
        struct str cookie; /* the Cookie that enters; null: none does */
};

/* Lets the request in through its door (ingress_target_of), at `rest` below the port's root, or says why
 * not. */
void ingress_proxy(struct http_req *req, const struct ingress_proxy_kind *kind,
                   const struct ingress_proxy_extra *extra, struct str rest);

/* http, or https if a proxy in front of us says that this is how the client came. */
struct str ingress_scheme(struct http_req *req);

#endif
