/* SPDX-License-Identifier: Apache-2.0 */
#include "api/forward.h"

#include "api/access/access.h"
#include "api/access/peer.h"
#include "api/call.h"
#include "api/response.h"
#include "base/base.h"
#include "http/proxy.h"

/*
 * Forwarding between nodes.
 *
 * Problem. Several hutchd share one store; each runs its own sandboxes. A client may send a request to any of them, and the
 * node that gets it must serve it as if the sandbox were its own: uploads, event streams and protocol switches included.
 *
 * Invariants.
 *   - A request is forwarded at most once. The node that receives a forwarded request answers it, whatever it knows, so two
 *     nodes that disagree about an owner can't send a request in circles.
 *   - The first node authenticates; the second believes it, because the identity is signed with the key that all nodes share
 *     (api/access/peer.h), bound to this request and to this process of the second node. What the caller may do, the second
 *     node decides by its own record.
 *   - API keys do not leave the first node. Credentials of one sandbox (tokens) do: only the owner can verify them finally.
 *   - A node whose lease has expired serves nothing: another node may own its sandboxes by now.
 *
 * Steps, on the first node.
 *   1. access_authorize knows the caller and the id. forward_if_remote: not in our registry? Hold the request, before its
 *      body is read, and locate the record in the store (service_locate).
 *   2. 0: another node, which is alive, has it. The remaining check of authorization runs with that record, then forward_to
 *      hands the request to http_proxy, the same proxy that leads into sandboxes; so bodies stream.
 *   3. ERR_NOT_FOUND: no node has it, or it is ours by now (the tombstone of a lost node). The request continues here.
 *   4. ERR_UNAVAILABLE: the node is silent, or the store is away: 503 with Retry-After.
 *   Ids in bodies (bridge commands, Idempotency-Key) are located by their handlers, which pass the body that they have read.
 *
 * On the second node forward_receive checks the lease, verifies the header, and sets the caller.
 *
 * Crashes. Nothing is stored. If the second node dies, the proxy fails: 503 with Retry-After before the response head is out,
 * a broken connection after. If the first node dies, the connection to the second closes, which cancels the operation there
 * like any client that leaves. A restarted second node refuses headers that were made for its previous process.
 */

/* Administrators of all tenants see every record: authorization has its own check. */
static const struct caller any_caller = { .role = ROLE_ADMIN, .all_tenants = true };

bool forward_is_allowed(const struct http_req *req)
{
        const struct auth_context *x = auth_context_of(req);

        return api_of(req)->cluster && !(x && x->forwarded);
}

/* --- sending --- */

static void node_failed(struct http_req *req, const struct http_problem *p)
{
        if (p->status < 500) {
                http_reply_error(req, p->status, p->code, "%s", p->message);
                return;
        }
        api_retry_after(req, USEC_PER_SEC);
        http_reply_error(req, 503, CODE_UNAVAILABLE, "the node of this sandbox: %s", p->message);
}

static int sign_identity(struct http_req *req, const struct service_node *node, struct str *ret)
{
        const struct api_cluster *cluster = api_of(req)->cluster;
        const struct peer_binding binding = { cluster->secret_key, cluster->node,
                                              str_from(node->process), req->method_name,
                                              req->target };
        const struct auth_context *x = auth_context_of(req);
        struct peer_identity identity = { 0 };

        if (x)
                identity = (struct peer_identity){
                        .known = true,
                        .bridge = x->is_bridge,
                        .all_tenants = x->caller.all_tenants,
                        .tenant = x->caller.tenant,
                        .principal = x->caller.principal,
                        .key = x->caller.key,
                        .role = x->caller.role,
                };
        return peer_write(&binding, &identity, &req->arena, ret);
}

void forward_to(struct http_req *req, const struct service_node *node, struct buf *body)
{
        static const struct str keys[] = { STR("OPEN-SANDBOX-API-KEY"), STR("X-API-Key"),
                                           STR("Authorization") };
        struct http_proxy_target t = {
                .client = api_of(req)->sandbox_client,
                .prefix = req->path,
                .flags = HTTP_PROXY_KEEP_HOST | HTTP_PROXY_FORWARDED_FOR,
                .failed = node_failed,
                .body = body,
        };
        struct sock_addr *addr = arena_new(&req->arena, struct sock_addr);
        struct http_header *add = arena_new(&req->arena, struct http_header);

        if (!addr || !add || sign_identity(req, node, &add->value) < 0) {
                if (body)
                        buf_done(body);
                api_fail_head(req);
                return;
        }
        if (sock_addr_from_string(str_from(node->address), addr) < 0) {
                if (body)
                        buf_done(body);
                http_reply_error(req, 503, CODE_UNAVAILABLE, "node '%s' has an invalid address",
                                 node->id);
                return;
        }
        add->name = STR(HEADER_FORWARDED);
        t.addr = addr;
        t.add = add;
        t.n_add = 1;
        if (req->route->scope != API_INGRESS) { /* its headers may be tokens of the sandbox */
                t.strip = keys;
                t.n_strip = ARRAY_SIZE(keys);
        }
        http_proxy(req, &t);
}

/* --- locating --- */

struct locate_call {
        struct service_locate locate;
        forward_check_fn *check;
};

static void locate_done(struct http_req *req, void *operation, int result)
{
        const struct locate_call *c = operation;
        const struct sandbox *record = c->locate.req.record;
        bool not_found = result == ERR_RETURN(ERR_NOT_FOUND);

        if (http_req_is_gone(req))
                return;
        if (not_found)
                record = service_find(api_of(req)->service, &any_caller, c->locate.id);
        if (c->check && (record || result == 0 || not_found) && c->check(req, record) < 0)
                return;
        if (result == 0)
                forward_to(req, &c->locate.node, NULL);
        else if (not_found)
                http_router_continue(req);
        else
                api_fail_service(req, &c->locate.req, NULL);
}

bool forward_if_remote(struct http_req *req, struct str id, forward_check_fn *check)
{
        struct service *service = api_of(req)->service;
        struct locate_call *c;

        if (!forward_is_allowed(req) || !sandbox_id_is_valid(id)
            || service_find(service, &any_caller, id))
                return false;
        c = api_call_new(req, struct locate_call, locate.req.op, locate_done, API_CALL_DETACHED);
        if (!c)
                return true;
        http_req_hold(req);
        c->check = check;
        c->locate.caller = check ? NULL : api_caller(req);
        c->locate.id = id;
        service_locate(service, &c->locate);
        return true;
}

/* --- receiving --- */

int forward_receive(struct http_req *req)
{
        const struct api *api = api_of(req);
        struct peer_binding binding = { .method = req->method_name, .target = req->target };
        struct service_req fenced = { .retry_after = USEC_PER_SEC };
        struct peer_identity identity;
        struct auth_context *x;
        struct str text;

        if (!api->cluster)
                return 0;
        if (service_may_serve(api->service, &fenced.err) < 0) {
                api_fail_service(req, &fenced, NULL);
                return -EACCES;
        }
        text = http_req_header(req, STR(HEADER_FORWARDED));
        if (!text.p)
                return 0;
        binding.secret_key = api->cluster->secret_key;
        binding.to = api->cluster->process;
        if (peer_read(text, &binding, &req->arena, &identity) < 0) {
                http_reply_error(req, 403, CODE_FORBIDDEN,
                                 "forwarded by a node with another cluster.key_file, or meant for "
                                 "an earlier process of this node; try again");
                return -EACCES;
        }
        x = arena_new(&req->arena, struct auth_context);
        if (!x) {
                api_fail_head(req);
                return -EACCES;
        }
        x->forwarded = true;
        x->is_identified = identity.known;
        x->acts_for = identity.bridge;
        x->caller = (struct caller){ identity.tenant, identity.principal, identity.role,
                                     identity.all_tenants, identity.key };
        req->principal = &x->caller;
        if (identity.known)
                log_ctx_add_str(&req->log, "tenant", x->caller.tenant);
        return 1;
}
