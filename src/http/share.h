/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_SHARE_H
#define HUTCH_HTTP_SHARE_H

/*
 * Shares: how much of the server one party uses now, and the most that it may use.
 *
 * A party is an address, a tenant or an API key. Its share has three counts: requests in flight, streams
 * (requests that last as long as the client likes, http_route.lasting), and connections. Without caps one
 * party could use up what all share, and the others would wait or get 503.
 *
 * Before authentication a connection belongs to the address that it comes from: an IPv4 address, the first
 * 64 bits of an IPv6 address, or the user of a unix socket. An address at its cap loses its oldest
 * connection that waits for a request, or for the remainder of a head; so a new one always gets in, and
 * connections that were opened and left push out each other.
 *
 * A request that is authenticated is charged to its tenant and its key (http_req_charge), and so is its
 * connection, until a request of another party comes over it: proxies in front of us use one connection for
 * several tenants. A party at its cap of connections loses its own oldest idle one; if all are busy, the
 * request is refused. The caps of requests and streams refuse at once. Others notice nothing of it.
 *
 * Counts are kept in a table by name; a share exists only while it is in use. The cost for a request is
 * constant: two look-ups.
 */

#include "base/compiler.h"
#include "base/list.h"
#include "base/map.h"
#include "base/str.h"

struct http_req;

enum http_party {
        HTTP_PARTY_ADDRESS, /* of a connection before authentication: the cap of connections only */
        HTTP_PARTY_TENANT,
        HTTP_PARTY_KEY,
        HTTP_PARTY_MAX_,
};

enum http_use {
        HTTP_USE_REQUESTS,
        HTTP_USE_STREAMS,
        HTTP_USE_CONNECTIONS,
        HTTP_USE_MAX_,
};

/* One number for each party and use: caps (0: no cap), or how often a cap was hit. */
struct http_caps {
        unsigned max[HTTP_PARTY_MAX_][HTTP_USE_MAX_];
};

struct http_share {
        struct map_node by_name;
        enum http_party party;
        unsigned refs; /* of requests and connections */
        unsigned used[HTTP_USE_MAX_];
        struct list waiting; /* of struct conn_share: the oldest first */
        char name[];         /* the party and its name */
};

/* A cap that was hit. */
struct http_cap {
        enum http_party party;
        enum http_use use;
        unsigned max;
};

struct http_parties {
        struct str tenant;
        struct str key;        /* null view: none */
        bool keeps_connection; /* the connection is that of a program which acts for several tenants */
};

/* Charges the request to these parties, until its last reference is dropped; and its connection, until it is
 * closed or a request of others comes over it. -EBUSY if that would exceed a cap; nothing is charged then. At
 * most once for a request. */
int http_req_charge(struct http_req *req, const struct http_parties *parties, struct http_cap *ret)
        must_check;

#endif
