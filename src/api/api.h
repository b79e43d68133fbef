/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_API_H
#define HUTCH_API_API_H

/*
 * The HTTP APIs of hutchd: what their handlers share, and how they are mounted on a server.
 *
 *         api_open(&api, server)    when the injected resources exist, before the server listens
 *         api_drain(&api)           with http_server_drain: ends streams that would never end
 *         api_close(&api)           when the server is freed
 *         api_free(&api)            when the loop has run once after that
 *
 * Handlers are thin: they turn a request into an operation of the service, wait for it (api/call.h), and turn its result
 * into a response (api/response.h). They hold no rules. Authentication and authorization happen before a handler runs
 * (the scope of its route, api/access/access.h).
 */

#include "http/anonymous.h"
#include "http/client.h"
#include "http/req.h"
#include "http/route.h"
#include "http/server.h"
#include "service/service.h"

/* Who may use a route; a column of the route tables. */
enum api_scope {
        API_READ = 1 << 0,    /* any role; its tenant */
        API_WRITE = 1 << 1,   /* user, admin */
        API_ADMIN = 1 << 2,   /* admin */
        API_INGRESS = 1 << 3, /* to a port of a sandbox: a token of that port, or user and admin */
        API_BRIDGE = 1 << 4,  /* a bridge, on behalf of others */
};

/* What params[0] of a route names; a column of the route tables. */
enum api_route_names {
        ROUTE_SANDBOX =
                1, /* a sandbox: the request is logged under its id, and forwarded to its node */
        ROUTE_OWNED_SANDBOX, /* the same, but logged by its handler, once the caller is known to own it */
};

/* The description of a route: members of struct http_doc in their order, then designated ones. */
#define API_DOC(var, id, summary, tag, status, ...) \
        static const struct http_doc var = { id, summary, tag, status, ##__VA_ARGS__ }

struct api_bridge;
struct audit;
struct event_hub;
struct log_file;
struct purista_config;

/* One of several nodes on one store. */
struct api_cluster {
        struct str secret_key; /* shared by all nodes */
        struct str node;
        struct str process; /* nodes_process */
};

/* Duration of requests, without those of lasting routes. */
#define API_LATENCY_BUCKETS 14
extern const usec_t api_latency_bounds[API_LATENCY_BUCKETS]; /* the last is infinity */

struct api_latency {
        uint64_t buckets[API_LATENCY_BUCKETS]; /* not cumulative */
        uint64_t usec;                         /* sum */
};

/* The injected resources: http_server_set_data(server, &api). All outlive the server. */
struct api {
        struct service *service;
        struct keyring *keyring;
        struct http_client
                *sandbox_client; /* to agents and other nodes; hutchd sets its timeouts */
        struct audit *audit;     /* NULL: no audit log */
        const struct log_file *access_file; /* may be NULL */
        const uint64_t *log_lost;           /* lines; may be NULL */
        struct ids *ids;
        const struct clock *clock;

        struct str secret;         /* of the installation; signs tokens */
        struct str public_address; /* host[:port] for clients; null view: the request's Host */
        struct str preview_domain; /* in lower case, without a port; null view: none */
        bool insecure;             /* without keys, any Host is accepted */
        bool keys_needed; /* reachable from other hosts: without any key, every request is refused */
        unsigned requests_max;                /* in flight, without lasting ones; 0: no limit */
        const struct purista_config *purista; /* NULL: not offered */
        const struct api_bridge *bridges;
        size_t n_bridges;
        const struct api_cluster *cluster; /* NULL: a single node */
        const char *store;                 /* name of the store, for /metrics; may be NULL */

        /* --- set by api_open --- */
        struct event_hub *events;
        struct http_anonymous anonymous;    /* in the audit log */
        struct timeout_kind agent_deadline; /* of requests that the API itself sends to an agent */
        struct api_latency latency;
        char *openapi; /* the OpenAPI document */
        size_t openapi_n;
};

static inline struct api *api_of(const struct http_req *req)
{
        return http_server_data(req->server);
}

/* There are no keys, so every caller is an administrator. Not so if other hosts can reach us, nor if there was a key
 * before: removing the last key locks the API. 127.0.0.1 is no exception: a proxy in front of us may let anyone in. */
static inline bool api_is_open(const struct api *api)
{
        return !keyring_is_enforced(api->keyring) && !api->keys_needed;
}

/* The settings of hutchd.yaml(5) for the caps of http/share.h. NULL: there is no such cap. */
extern const char *const api_cap_settings[HTTP_PARTY_MAX_][HTTP_USE_MAX_];

/* Set by access_authorize for every scope but HTTP_SCOPE_PUBLIC. */
static inline const struct caller *api_caller(const struct http_req *req)
{
        return req->principal;
}

/* A negative errno if a route table is wrong. */
int api_open(struct api *api, struct http_server *server) must_check;
void api_drain(struct api *api);
void api_close(struct api *api);
void api_free(struct api *api);

/* All APIs; ends in NULL. */
extern const struct http_api *const api_all[];

#endif
