/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_ACCESS_ACCESS_H
#define HUTCH_API_ACCESS_ACCESS_H

/*
 * Authentication and authorization. Both are decided once, before a handler runs and before a byte of the body is read:
 * access_authorize is the `authorize` of every API. docs/internals/access.md has the tables.
 *
 * With keys. A request carries an API key, as OPEN-SANDBOX-API-KEY, X-API-Key or Authorization: Bearer. The key determines
 * tenant, principal and role; the scope of the route (enum api_scope) determines which roles may use it. Nothing else
 * identifies a caller, no cookie and no address, so a page in a browser can't borrow its user's identity.
 *
 * Without keys. Every caller is tenant and principal "default", an admin. Requests must then not come from web pages: Host
 * must name this host (otherwise a DNS name that an attacker points to 127.0.0.1 would make its pages same-origin with
 * us), Origin, if present, must be the same host, and Sec-Fetch-Site must not name another site.
 *
 * In both cases the API refuses "Origin: null", which pages served by a sandbox send.
 *
 * Ingress (scope API_INGRESS) is a request to a target port of a sandbox, by one of two names:
 *
 *         /sandboxes/{id}/proxy/{port}…            the first two parameters of the path; the second may carry a token
 *                                                  (api/access/token.h)
 *         {id}-{port}.{preview domain}             the Host; a token may be in the cookie or query parameter hutch_token
 *
 * One valid credential is enough, whatever else is sent:
 *
 *         a token                  in the path, cookie or query as above, or in one of the headers that
 *                                  GET …/endpoints/{port} names
 *         an API key               of the sandbox's tenant, not of role read, as OPEN-SANDBOX-API-KEY, X-API-Key, or under
 *                                  the names of the token headers, as the Go SDK sends it. Not Authorization: that may be
 *                                  meant for the app.
 *
 * Without keys no credential is needed, unless the sandbox was created with secureAccess: then a token is.
 *
 * Bridges (scope API_BRIDGE) are programs that bring commands of others, and name the tenant and principal of each. The
 * configuration lists them, with the tenants that they may act for. A bridge is identified by
 *
 *         its user    it is connected to a unix socket of ours, and the kernel reports its uid. It needs no key then
 *         a key       the name of an API key, which it sends like any other client. A request with a key is judged by the
 *                     key alone, whatever its uid
 *
 * Neither a role nor the absence of keys makes a bridge.
 */

#include "api/api.h"

#define DEFAULT_TENANT    "default"
#define DEFAULT_PRINCIPAL "default"

/* http_authorize_fn. Afterwards api_caller(req) is set and lives as long as the request; the request's log context has
 * tenant and sandbox; the request is charged to tenant and key, or was refused with 429 because of a cap (http/share.h); one
 * of a route that is not lasting is counted, or was refused with 503 because there are too many (api->requests_max). A
 * bridge's is charged later (access_charge). After API_INGRESS the sandbox exists, the caller may see it, and the port is valid. */
int access_authorize(struct http_req *req, uint32_t scope);

/* --- ingress --- */

#define HEADER_EXECD  "X-EXECD-ACCESS-TOKEN"
#define HEADER_EGRESS "OPENSANDBOX-EGRESS-AUTH"
#define HEADER_SECURE "OpenSandbox-Secure-Access"

#define TOKEN_NAME "hutch_token" /* of the cookie and of the query parameter */

#define PORT_AGENT  44772
#define PORT_EGRESS 18080

struct ingress_target {
        struct str id;
        uint16_t port;       /* 0: invalid */
        struct str token;    /* of the path; null view: none */
        bool is_preview;     /* named by Host */
        bool by_query;       /* the valid token was in the query */
        struct str by_token; /* the valid token; null view: the caller came without one */
};

/* --- the result --- */

/* What authorization found out about a request. api_caller(req) is its first member. */
struct auth_context {
        struct caller caller;
        struct ingress_target target; /* API_INGRESS */
        bool is_bridge;               /* API_BRIDGE */
        struct str bridge_key;        /* the name of its key; null view: identified by its user */

        bool forwarded;     /* by another node (api/forward.h), which says whether */
        bool is_identified; /* the caller is known, and */
        bool acts_for;      /* it is a bridge that acts for the caller */
};

/* NULL if nothing is known about the request yet. */
static inline struct auth_context *auth_context_of(const struct http_req *req)
{
        return req->principal ? container_of(req->principal, struct auth_context, caller) : NULL;
}

/* For handlers of API_INGRESS. */
static inline const struct ingress_target *ingress_target_of(const struct http_req *req)
{
        return &auth_context_of(req)->target;
}

/* --- bridges --- */

struct api_bridge {
        int64_t uid;              /* -1: by key */
        struct str key;           /* name of an API key; null view: by user */
        struct json_strs tenants; /* "*": all */
};

/* Whether the bridge may act for that tenant, by the configuration of now: a reload may have changed it. If so, the audit
 * log records the request as the tenant's and principal's, by the bridge's key. */
bool access_bridge_act_for(struct http_req *req, struct str tenant, struct str principal);

/* --- shares --- */

#define ACCESS_WHY_MAX 200

/* Charges the request to the caller's tenant and key. False if that exceeds a cap: `ret_why` names it, and the setting. For
 * handlers of API_BRIDGE, once the tenant is known; all others are charged before they run. */
bool access_charge(struct http_req *req, char ret_why[static ACCESS_WHY_MAX]) must_check;

/* --- internal to src/api/access: checks return false, or a negative value, after they have replied --- */

/* Whether Host names this host. Always true if there are keys. */
bool access__check_host(struct http_req *req);

/* Whether an Origin is the requested host, or the public address. */
bool access__origin_is_ours(struct http_req *req, struct str origin);

/* Whether the browser says that a page of another origin has caused the request. Unlike Origin it says so for all of them,
 * also for images, links and forms that read. Programs and browsers before 2023 say nothing. */
bool access__is_cross_site(const struct http_req *req);

/* Replies 403: a page of another site sent it, and there are no keys. */
int access__refuse_cross_site(struct http_req *req);

/* The caller with that key; NULL: the default caller of an installation without keys. */
struct caller access__caller_of(const struct api_key *key);

/* Sets api_caller(req) to a copy. */
int access__set_caller(struct http_req *req, struct caller from);

/* Replies 401, with a code that distinguishes a missing credential from a wrong one. */
int access__unauthorized(struct http_req *req, bool missing);

/* Replies 403: the role does not allow it. */
int access__forbidden_role(struct http_req *req);

/* Charges the request, or replies 429 or 503: there are too many. */
int access__admit(struct http_req *req);

/* Authorizes a request of scope API_INGRESS. */
int access__authorize_ingress(struct http_req *req);

#endif
