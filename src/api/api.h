/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_API_H
#define HUTCH_API_API_H

/*
 * What the HTTP adapters share: what they are given, who asks, and what a route demands of him.
 *
 * Handlers are thin: they turn a request into a command of the service, wait for it, and turn its
 * result into an answer. They know no rule. Identity is settled before a handler runs (the scope of
 * its route, api/access/access.h), errors become statuses in one place (api/problem.h).
 */

#include "http/client.h"
#include "http/req.h"
#include "http/route.h"
#include "http/server.h"
#include "service/service.h"

/* What a route demands; a column of the route tables. */
enum api_scope {
        API_READ = 1 << 0,    /* any role; its tenant */
        API_WRITE = 1 << 1,   /* user, admin */
        API_ADMIN = 1 << 2,   /* admin */
        API_INGRESS = 1 << 3, /* into a sandbox: a token of sandbox and port, or user and admin */
        API_BRIDGE = 1 << 4,  /* acts for others: api/access/bridge.h */
};

/* What params[0] of a route names; a column of the route tables. */
enum api_route_names {
        ROUTE_SANDBOX =
                1, /* a sandbox: the request is logged under its id, and forwarded to its node */
        ROUTE_OWNED_SANDBOX, /* the same, but logged by its handler, once the caller is known to own it */
};

struct api_bridge;
struct audit;
struct event_hub;
struct purista_config;

/* One of several nodes on one store. */
struct api_cluster {
        struct str secret_key; /* that all of them have */
        struct str node;
        struct str process; /* nodes_process */
};

/* How long requests took; those that last as long as their client likes do not count. */
#define API_LATENCY_BUCKETS 14
extern const usec_t api_latency_bounds[API_LATENCY_BUCKETS]; /* the last: infinity */

struct api_latency {
        uint64_t buckets[API_LATENCY_BUCKETS]; /* not cumulative */
        uint64_t usec;                         /* sum */
};

/* The injected resources: http_server_set_data(server, &api). All outlive the server. */
struct api {
        struct service *service;
        struct keyring *keyring;
        struct http_client *into; /* for requests into sandboxes; timeouts are chosen by hutchd */
        struct audit *audit;      /* NULL: none is kept */
        struct ids *ids;
        const struct clock *clock;

        struct str secret;         /* of the installation: signs tokens */
        struct str public_address; /* host[:port] that clients are told; null view: the request's */
        struct str
                preview_domain; /* a domain name in lower case, without a port; null view: none */
        bool insecure;          /* without keys: also for hosts that are not this machine */
        bool keys_needed;       /* others can reach us: without any key, nobody gets in */
        unsigned requests_max;  /* in flight at once, without lasting ones; 0: no limit */
        const struct purista_config *purista; /* NULL: not offered */
        const struct api_bridge *bridges;
        size_t n_bridges;
        const struct api_cluster *cluster; /* NULL: there are no others */
        const char *store; /* name of the store that is used, for /metrics; may be NULL */

        /* --- made by api_open (api/mount.h) --- */
        struct event_hub *events;
        struct timeout_kind agent_deadline; /* of what the API itself asks of an agent */
        struct api_latency latency;
        char *openapi; /* the description of all routes */
        size_t openapi_n;
};

static inline struct api *api_of(const struct http_req *req)
{
        return http_server_data(req->server);
}

/* There are no keys, so everybody who reaches us is an administrator. Not so if others can reach us, nor
 * if there was a key before: whoever removes the last one has locked the door, not opened it. Who
 * reaches 127.0.0.1 may be the whole world, through a proxy in front of us. */
static inline bool api_is_open(const struct api *api)
{
        return !keyring_is_enforced(api->keyring) && !api->keys_needed;
}

/* Who asks; set by access_authorize for every scope but HTTP_SCOPE_PUBLIC. */
static inline const struct caller *api_caller(const struct http_req *req)
{
        return req->principal;
}

#endif
