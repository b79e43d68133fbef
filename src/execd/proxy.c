/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The port proxy: requests of any method, and protocol switches, to servers inside the sandbox
 * (/proxy/{port}/…). Raw TCP goes through execd/tunnel.h.
 *
 * Theory of operation. A client names a port, not an address: servers listen on 127.0.0.1, on [::1], or on
 * both. The proxy connects to the first and, if that refuses, to the second (http/proxy.h does both, and
 * streams both bodies with back-pressure). The agent's own ports are refused: such a request would come back
 * with the agent as its client, past every check of where a request comes from.
 *
 * Trust. What opens the sandbox must not reach its servers: the access token and the API key are stripped.
 * A request that arrives by a unix socket comes from hutchd, which has authenticated the client and written
 * the X-Forwarded headers anew; they are passed on. From any other peer X-Forwarded-Host is stripped, and
 * X-Forwarded-Proto is set here.
 *
 * The Host header of the client is passed on. Servers compare it with Origin (Jupyter, Rails, most WebSocket
 * servers) and put it into redirects. Dev servers that accept only known names (vite, webpack) accept
 * addresses and localhost; whoever publishes a sandbox under a name of its own decides, in front of the
 * agent, which Host the servers see.
 *
 * Failures. A port that is invalid is 400, one of the agent's own is 403, and every failure of the server
 * is 502 "Bad Gateway": clients know no other.
 */

#include "execd/proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/base.h"
#include "execd/api.h"
#include "http/proxy.h"

/* --- target ports --- */

int local_port_from_string(const struct agent *a, struct str text, struct local_port *ret)
{
        struct sockaddr_in *v4 = (struct sockaddr_in *) &ret->v4.ss;
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *) &ret->v6.ss;
        uint16_t port;

        if (parse_port(text, &port) < 0)
                return -EINVAL;
        for (size_t i = 0; i < a->n_listen_ports; i++)
                if (a->listen_ports[i] == port)
                        return -EPERM;
        *ret = (struct local_port){ .number = port,
                                    .v4.len = sizeof(struct sockaddr_in),
                                    .v6.len = sizeof(struct sockaddr_in6) };
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        v6->sin6_addr = in6addr_loopback;
        return 0;
}

const char *local_port_error(int r)
{
        return r == -EPERM ? "this port is the agent's own; call it directly"
                           : "not a port: give a number from 1 to 65535";
}

/* --- the proxy --- */

/* The last one is passed on if it is trustworthy. */
static const struct str stripped_headers[] = {
        STR("X-EXECD-ACCESS-TOKEN"),
        STR("OPEN-SANDBOX-API-KEY"),
        STR("X-Forwarded-Host"),
};

static void reply_text(struct http_req *req, int status, const char *text)
{
        http_reply(req, status, STR("text/plain; charset=utf-8"),
                   str_from(arena_printf(&req->arena, "%s\n", text)));
}

static void proxy_failed(struct http_req *req, const struct http_problem *p)
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
        bool from_hutchd = str_eq(req->peer, STR("unix"))
                           && http_req_header(req, STR("X-Forwarded-Proto")).p;

        if (r < 0) {
                reply_text(req, r == -EPERM ? 403 : 400, local_port_error(r));
                return;
        }
        http_proxy(req, &(struct http_proxy_target){
                                .client = a->client,
                                .addr = &port->v4,
                                .fallback = &port->v6,
                                .prefix = STR("/"),
                                .path = req->params[1],
                                .flags = HTTP_PROXY_FORWARDED_FOR
                                         | (from_hutchd ? 0 : HTTP_PROXY_FORWARDED_PROTO)
                                         | HTTP_PROXY_KEEP_HOST,
                                .strip = stripped_headers,
                                .n_strip = ARRAY_SIZE(stripped_headers) - from_hutchd,
                                .failed = proxy_failed });
}

/* Paths without a port: {port} matches no empty segment. */
static void any_without_port(struct http_req *req)
{
        reply_text(req, 400, "port is required");
}

static const struct http_route routes[] = {
        { METHOD_ANY, "/proxy", .scope = SCOPE_TOKEN, .exec = any_without_port },
        { METHOD_ANY, "/proxy/{nothing...}", .scope = SCOPE_TOKEN, .exec = any_without_port },
        { METHOD_ANY, "/proxy/{port}", .scope = SCOPE_TOKEN, .body = HTTP_BODY_STREAM,
          .exec = any_proxy },
        { METHOD_ANY, "/proxy/{port}/{rest...}", .scope = SCOPE_TOKEN, .body = HTTP_BODY_STREAM,
          .exec = any_proxy },
};

const struct http_api api_proxy = EXECD_API("proxy", routes);
