/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_ACCESS_INGRESS_H
#define HUTCH_API_ACCESS_INGRESS_H

/*
 * The way into a sandbox: scope API_INGRESS. A request names a door, that is a sandbox and a port, in one
 * of two ways:
 *
 *         /sandboxes/{id}/proxy/{port}…            the first two parameters of the path; the second
 *                                                  may carry a token (api/access/token.h)
 *         {id}-{port}.{preview domain}             the Host; a token may come as the cookie or the
 *                                                  query parameter hutch_token
 *
 * and may show one of these:
 *
 *         a token                  in the path, cookie or query as above, or as one of the headers that
 *                                  GET …/endpoints/{port} names
 *         an API key               OPEN-SANDBOX-API-KEY, X-API-Key, or under the names of the token's
 *                                  headers, as the Go SDK has it; of the sandbox's tenant, not of role
 *                                  read. Not Authorization: that may be meant for the app.
 *
 * One that is valid is enough, whatever else is shown. Without keys nothing is demanded, unless the
 * sandbox was made with secureAccess: then a token is.
 *
 * Who shows nothing gets 401 for every id alike; who may not see a sandbox gets 404, as if it did not
 * exist. Pages of other origins get 403, unless their request carries a token in path, query or header,
 * that is one that no browser adds by itself.
 */

#include "api/api.h"

#define HEADER_EXECD  "X-EXECD-ACCESS-TOKEN"
#define HEADER_EGRESS "OPENSANDBOX-EGRESS-AUTH"
#define HEADER_SECURE "OpenSandbox-Secure-Access"

#define TOKEN_NAME "hutch_token" /* of the cookie and of the query parameter */

#define PORT_AGENT  44772
#define PORT_EGRESS 18080

/* Under which name clients send the token of that port. */
struct str ingress_token_header(uint16_t port);

struct door {
        struct str id;
        uint16_t port;       /* 0: it was none */
        struct str token;    /* of the path; null view: there is none */
        bool is_preview;     /* by Host */
        bool by_query;       /* the token of the query is the one that was good */
        struct str by_token; /* which one was; null view: it was not by a token */
};

/* api_caller(req), and through which door he came. Handlers get it from ingress_target_of. */
struct auth_context {
        struct caller caller;
        struct door door;
        bool is_bridge;        /* of scope API_BRIDGE */
        struct str bridge_key; /* the name of its key; null view: it is known by its user */
        bool forwarded; /* by another node (api/forward.h), which says whether he is known, and */
        bool is_identified;
        bool acts; /* is a bridge that acts for the caller */
};

/* The handler's view after authorization. */
static inline const struct door *ingress_target_of(const struct http_req *req)
{
        return &container_of(req->principal, struct auth_context, caller)->door;
}

/* Called by access_authorize. 0, or negative after a reply. Afterwards the sandbox exists and the
 * caller may see it, and the port is valid. */
int access_authorize_ingress(struct http_req *req);

/* The one answer for what is not there, or not for this caller. */
void ingress_not_found(struct http_req *req);

#endif
