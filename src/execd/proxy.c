/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/local_port.h"
#include "http/proxy.h"

/*
 * /proxy/{port}/…: requests of any method, and protocol switches, to servers inside the sandbox.
 *
 * The client's Host goes on. Servers compare it with Origin (Jupyter, Rails, most WebSocket servers)
 * and put it into redirects, and with X-Forwarded-Host gone nothing else tells them by which name
 * they were called. Dev servers that let only known names in (vite, webpack) let in addresses and
 * localhost; whoever publishes a sandbox under a name of its own decides in front of us what they
 * are to see.
 */

#define PLAIN STR("text/plain; charset=utf-8")

/* What opens the sandbox, or all of them, is nothing that its servers should learn. The last one may be
 * of somebody who knows, see below. */
static const struct str not_for_servers[] = {
        STR("X-EXECD-ACCESS-TOKEN"),
        STR("OPEN-SANDBOX-API-KEY"),
        STR("X-Forwarded-Host"),
};

/* Who comes by a unix socket is our own server. It has written these headers anew, and knows whether the
 * client came by TLS, and to which name. */
static bool knows_the_client(const struct http_req *req)
{
        return str_eq(req->peer, STR("unix")) && http_req_header(req, STR("X-Forwarded-Proto")).p;
}

static void reply_text(struct http_req *req, int status, const char *text)
{
        http_reply(req, status, PLAIN, str_from(arena_printf(&req->arena, "%s\n", text)));
}

/* Clients know one answer for everything that can go wrong behind. */
static void failed(struct http_req *req, const struct http_problem *p)
{
        if (p->status < 500)
                reply_text(req, p->status, p->message);
        else
                reply_text(req, 502, "Bad Gateway");
}

static void any_proxy(struct http_req *req)
{
        struct agent *a = agent_of(req);
        struct local_port *port = arena_new(&req->arena, struct local_port);
        int r = port ? local_port_from_string(a, req->params[0], port) : -ENOMEM;
        bool told = knows_the_client(req);

        if (r < 0) {
                reply_text(req, r == -EPERM ? 403 : 400, local_port_error(r));
                return;
        }
        http_proxy(req,
                   &(struct http_proxy_target){ .client = a->client,
                                                .addr = &port->v4,
                                                .fallback = &port->v6,
                                                .prefix = STR("/"),
                                                .rest = req->params[1],
                                                .flags = HTTP_PROXY_FORWARDED_FOR
                                                         | (told ? 0 : HTTP_PROXY_FORWARDED_PROTO)
                                                         | HTTP_PROXY_KEEP_HOST,
                                                .strip = not_for_servers,
                                                .n_strip = ARRAY_SIZE(not_for_servers) - told,
                                                .failed = failed });
}

/* What {port} does not match: a segment is never empty. */
static void any_nowhere(struct http_req *req)
{
        reply_text(req, 400, "port is required");
}

static const struct http_route routes[] = {
        { METHOD_ANY, "/proxy", .scope = SCOPE_TOKEN, .exec = any_nowhere },
        { METHOD_ANY, "/proxy/{nothing...}", .scope = SCOPE_TOKEN, .exec = any_nowhere },
        { METHOD_ANY, "/proxy/{port}", .scope = SCOPE_TOKEN, .body = HTTP_BODY_STREAM,
          .exec = any_proxy },
        { METHOD_ANY, "/proxy/{port}/{rest...}", .scope = SCOPE_TOKEN, .body = HTTP_BODY_STREAM,
          .exec = any_proxy },
};

const struct http_api api_proxy = EXECD_API("proxy", routes);
