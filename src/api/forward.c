/* SPDX-License-Identifier: Apache-2.0 */
#include "api/forward.h"

#include "api/access/ingress.h"
#include "api/access/peer.h"
#include "api/problem.h"
#include "base/base.h"
#include "http/proxy.h"

static struct auth_context *auth_context_of(const struct http_req *req)
{
        return req->principal ? container_of(req->principal, struct auth_context, caller) : NULL;
}

bool forward_is_allowed(const struct http_req *req)
{
        const struct auth_context *v = auth_context_of(req);

        return api_of(req)->cluster && !(v && v->forwarded);
}

/* --- on its way --- */

static void out_of_memory(struct http_req *req)
{
        http_reply_error(req, 431, "HEADERS_TOO_LARGE", "the request is too large");
}

static struct peer_identity identity_of(const struct http_req *req)
{
        const struct auth_context *v = auth_context_of(req);

        if (!v)
                return (struct peer_identity){ 0 };
        return (struct peer_identity){
                .known = true,
                .bridge = v->is_bridge,
                .sees_all = v->caller.all_tenants,
                .tenant = v->caller.tenant,
                .principal = v->caller.principal,
                .key = v->caller.key,
                .role = v->caller.role,
        };
}

/* A node that is there and does not answer is a matter of moments, or of its lease. */
static void node_failed(struct http_req *req, const struct http_problem *p)
{
        if (p->status < 500) {
                http_reply_error(req, p->status, p->code, "%s", p->message);
                return;
        }
        api_retry_after(req, USEC_PER_SEC);
        http_reply_error(req, 503, CODE_UNAVAILABLE, "the node of this sandbox: %s", p->message);
}

/* Keys are for the first node; what opens a single sandbox is for the second as well. */
static const struct str keys[] = { STR("OPEN-SANDBOX-API-KEY"), STR("X-API-Key"),
                                   STR("Authorization") };

void forward_to(struct http_req *req, const struct service_node *node, struct buf *body)
{
        const struct api_cluster *cluster = api_of(req)->cluster;
        struct peer_identity caller = identity_of(req);
        const struct peer_binding binding = { cluster->secret_key, cluster->node,
                                              str_from(node->process), req->method_name,
                                              req->target };
        struct http_proxy_target t = {
                .client = api_of(req)->into,
                .prefix = req->path,
                .flags = HTTP_PROXY_KEEP_HOST | HTTP_PROXY_FORWARDED_FOR,
                .failed = node_failed,
                .body = body,
        };
        struct sock_addr *addr = arena_new(&req->arena, struct sock_addr);
        struct http_header *add = arena_new(&req->arena, struct http_header);

        if (!addr || !add || peer_write(&binding, &caller, &req->arena, &add->value) < 0) {
                if (body)
                        buf_done(body);
                out_of_memory(req);
                return;
        }
        if (sock_addr_from_string(str_from(node->address), addr) < 0) {
                if (body)
                        buf_done(body);
                http_reply_error(req, 503, CODE_UNAVAILABLE,
                                 "the address of node '%s' can't be read here", node->id);
                return;
        }
        add->name = STR(HEADER_FORWARDED);
        t.addr = addr;
        t.add = add;
        t.n_add = 1;
        if (req->route->scope != API_INGRESS) {
                t.strip = keys;
                t.n_strip = ARRAY_SIZE(keys);
        }
        http_proxy(req, &t);
}

/* --- where is it? --- */

struct looking {
        struct service_locate locate;
        struct http_req *req;
        forward_check_fn *check;
};

static bool may(const struct looking *x, const struct sandbox *record)
{
        return !x->check || x->check(x->req, record) == 0;
}

static void decide(struct looking *x, int result)
{
        static const struct caller anybody = { .role = ROLE_ADMIN, .all_tenants = true };
        const struct service_locate *l = &x->locate;
        struct http_req *req = x->req;

        if (result == 0) {
                if (may(x, l->req.record))
                        forward_to(req, &l->node, NULL);
        } else if (result == ERR_RETURN(ERR_NOT_FOUND)) {
                if (may(x, service_find(api_of(req)->service, &anybody, l->id)))
                        http_router_continue(req);
        } else if (!l->req.record || may(x, l->req.record)) {
                api_fail_service(req, &l->req, NULL);
        }
}

static void located(struct op *op, int result)
{
        struct looking *x = container_of(op, struct looking, locate.req.op);
        struct http_req *req = x->req;

        if (!http_req_is_gone(req))
                decide(x, result);
        http_req_unref(req); /* `x` is in its arena */
}

bool forward_if_remote(struct http_req *req, struct str id, forward_check_fn *check)
{
        static const struct caller anybody = { .role = ROLE_ADMIN, .all_tenants = true };
        struct service *service = api_of(req)->service;
        struct looking *x;

        if (!forward_is_allowed(req) || !sandbox_id_is_valid(id)
            || service_find(service, &anybody, id))
                return false;
        x = arena_new(&req->arena, struct looking);
        if (!x) {
                out_of_memory(req);
                return true;
        }
        x->req = http_req_ref(req);
        http_req_hold(req);
        x->check = check;
        x->locate.caller = check ? NULL : api_caller(req);
        x->locate.id = id;
        op_init(&x->locate.req.op, located);
        service_locate(service, &x->locate);
        return true;
}

/* --- what arrives --- */

static int refuse(struct http_req *req)
{
        http_reply_error(
                req, 403, CODE_FORBIDDEN,
                "it was passed on by a node that does not share our cluster.key_file, or that "
                "takes us for another process; ask again");
        return -EACCES;
}

static int take_identity(struct http_req *req, const struct peer_identity *caller)
{
        struct auth_context *v = arena_new(&req->arena, struct auth_context);

        if (!v) {
                out_of_memory(req);
                return -EACCES;
        }
        v->forwarded = true;
        v->is_identified = caller->known;
        v->acts = caller->bridge;
        v->caller = (struct caller){ caller->tenant, caller->principal, caller->role,
                                     caller->sees_all, caller->key };
        req->principal = &v->caller;
        if (caller->known)
                log_ctx_add_str(&req->log, "tenant", v->caller.tenant);
        return 1;
}

int forward__receive(struct http_req *req)
{
        const struct api *api = api_of(req);
        struct service_req fenced = { 0 };
        struct peer_identity caller;
        struct peer_binding binding;
        struct str text;
        int r;

        if (service_may_serve(api->service, &fenced.err) < 0) {
                fenced.retry_after = USEC_PER_SEC;
                api_fail_service(req, &fenced, NULL);
                return -EACCES;
        }
        text = http_req_header(req, STR(HEADER_FORWARDED));
        if (!text.p)
                return 0;
        binding = (struct peer_binding){ .secret_key = api->cluster->secret_key,
                                         .to = api->cluster->process,
                                         .method = req->method_name,
                                         .target = req->target };
        r = peer_read(text, &binding, &req->arena, &caller);
        return r < 0 ? refuse(req) : take_identity(req, &caller);
}
