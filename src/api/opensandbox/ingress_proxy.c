/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/ingress_proxy.h"

#include "api/access/ingress.h"
#include "api/access/peer.h"
#include "api/problem.h"
#include "base/base.h"
#include "http/proxy.h"

/*
 * A ingress_call waits for the stream to the agent and then is the proxy's. It lives in the arena of its
 * request, which it holds until the connecting is done: also if the client leaves meanwhile, for the
 * service then still writes into it.
 */

struct ingress_call {
        struct service_connect connect;
        struct http_req *req;
        const struct ingress_proxy_kind *kind;
        struct ingress_proxy_extra extra;
        struct str prefix, rest;
};

struct str ingress_scheme(struct http_req *req)
{
        struct str given = http_req_header(req, STR("X-Forwarded-Proto"));

        return str_caseeq(given, STR("https")) ? STR("https") : STR("http");
}

/* --- failures --- */

/* Real clients look for this answer when a sandbox can't be reached. */
static void reply_unreachable(struct http_req *req, int status, const char *why)
{
        http_reply_error(req, status, CODE_UNKNOWN, "Could not connect to the backend sandbox: %s",
                         why);
}

static void proxy_failed(struct http_req *req, const struct http_problem *p)
{
        if (p->status < 500)
                http_reply_error(req, p->status, p->code, "%s", p->message);
        else
                reply_unreachable(req, p->status, p->message);
}

/* --- may it? --- */

static void refuse(struct http_req *req, const struct service_req *why)
{
        if (why->err.code == ERR_NOT_FOUND)
                ingress_not_found(req);
        else
                api_fail_service(req, why, why->err.code == ERR_CONFLICT ? CODE_NOT_RUNNING : NULL);
}

/* A request into what does not run would hang, so it is told at once. */
static bool may_pass(struct http_req *req)
{
        const struct sandbox *record =
                service_find(api_of(req)->service, api_caller(req), ingress_target_of(req)->id);
        struct service_req why = { 0 };

        if (!record)
                (void) err_set(&why.err, ERR_NOT_FOUND, "gone");
        else if (service_check_ingress(record, &why.retry_after, &why.err) == 0)
                return true;
        refuse(req, &why);
        return false;
}

/* What has happened to it meanwhile tells more than what the driver makes of that. */
static void connect_failed(struct http_req *req, const struct service_req *why)
{
        if (why->err.code == ERR_CANCELED)
                refuse(req, why);
        else if (may_pass(req))
                reply_unreachable(req, 502, why->err.message);
}

/* --- through --- */

#define STRIP_MAX 20
#define ADD_MAX   4

/* What opens the sandbox, or all of them; and what a client says of where it comes from. */
static const struct str never[] = {
        STR("OPEN-SANDBOX-API-KEY"), STR("X-API-Key"),         STR(HEADER_EXECD),
        STR(HEADER_EGRESS),          STR(HEADER_SECURE),       STR("Cookie"),
        STR(HEADER_FORWARDED),       STR("Forwarded"),         STR("X-Forwarded-For"),
        STR("X-Forwarded-Host"),     STR("X-Forwarded-Proto"), STR("X-Real-IP"),
};

static size_t list_strip(const struct ingress_call *p, struct str ret[static STRIP_MAX])
{
        size_t n = 0;

        ASSERT(ARRAY_SIZE(never) + p->kind->n_strip + 1 <= STRIP_MAX);
        for (size_t i = 0; i < ARRAY_SIZE(never); i++)
                ret[n++] = never[i];
        for (size_t i = 0; i < p->kind->n_strip; i++)
                ret[n++] = p->kind->strip[i];
        if (p->extra.strip.p)
                ret[n++] = p->extra.strip;
        return n;
}

/* Only the scheme is believed: a proxy in front of us knows better, and it opens nothing. */
static struct http_header *list_add(const struct ingress_call *p, size_t *ret_n)
{
        struct http_req *req = p->req;
        struct http_header *add = arena_alloc_array(&req->arena, ADD_MAX, sizeof(*add));
        size_t n = 0;

        if (!add)
                return NULL;
        if (!str_eq(req->peer, STR("unix")))
                add[n++] = (struct http_header){ STR("X-Forwarded-For"), req->peer };
        add[n++] = (struct http_header){ STR("X-Forwarded-Proto"), ingress_scheme(req) };
        add[n++] =
                (struct http_header){ STR("X-Forwarded-Host"), http_req_header(req, STR("Host")) };
        if (p->extra.cookie.p)
                add[n++] = (struct http_header){ STR("Cookie"), p->extra.cookie };
        *ret_n = n;
        return add;
}

static void proxy(struct ingress_call *p)
{
        struct http_req *req = p->req;
        struct str strip[STRIP_MAX];
        struct http_proxy_target t = {
                .client = api_of(req)->into,
                .fd = TAKE_FD(p->connect.fd),
                .prefix = p->prefix,
                .path = p->rest,
                .flags = HTTP_PROXY_KEEP_HOST,
                .strip = strip,
                .n_strip = list_strip(p, strip),
                .filter = p->kind->answer,
                .failed = proxy_failed,
        };

        t.add = list_add(p, &t.n_add);
        if (p->kind->headers)
                p->kind->headers(req);
        http_proxy(req, &t); /* without memory for the list there is none for the rest either */
}

static void connect_done(struct op *op, int result)
{
        struct ingress_call *p = container_of(op, struct ingress_call, connect.req.op);
        struct http_req *req = p->req;

        http_req_set_hooks(req, NULL, NULL);
        if (result == 0)
                proxy(p); /* closes the stream if the client is gone */
        else if (!http_req_is_gone(req))
                connect_failed(req, &p->connect.req);
        http_req_unref(req);
}

static void client_gone(struct http_req *req, int reason)
{
        struct ingress_call *p = req->data;

        (void) reason;
        op_cancel(&p->connect.req.op);
}

static const struct http_hooks waiting = { .abort = client_gone };

/* --- the way in --- */

/* The agent serves its own port at its root and the others below /proxy. */
static struct str prefix_for(struct http_req *req, uint16_t port)
{
        char *text;

        if (port == PORT_AGENT)
                return STR("/");
        text = arena_printf(&req->arena, "/proxy/%u/", port);
        return text ? str_from(text) : STR_NULL;
}

void ingress_proxy(struct http_req *req, const struct ingress_proxy_kind *kind,
                   const struct ingress_proxy_extra *extra, struct str rest)
{
        const struct door *door = ingress_target_of(req);
        struct ingress_call *p;
        struct str prefix;

        if (door->port == PORT_EGRESS) {
                http_reply_error(req, 501, CODE_NOT_SUPPORTED,
                                 "there is no egress guard that could be asked: no driver here has "
                                 "network policies");
                return;
        }
        if (!may_pass(req))
                return;
        prefix = prefix_for(req, door->port);
        p = prefix.p ? arena_new(&req->arena, struct ingress_call) : NULL;
        if (!p) {
                http_reply_error(req, 431, "HEADERS_TOO_LARGE", "the request head is too large");
                return;
        }
        p->req = http_req_ref(req);
        p->kind = kind;
        p->extra = *extra;
        p->prefix = prefix;
        p->rest = rest;
        p->connect.caller = api_caller(req);
        p->connect.id = door->id;
        p->connect.fd = -EBADF;
        op_init(&p->connect.req.op, connect_done);
        http_req_set_hooks(req, &waiting, p);
        service_connect(api_of(req)->service, &p->connect);
        http_req_abort_on_eof(req); /* may tell at once that the client is gone */
}
