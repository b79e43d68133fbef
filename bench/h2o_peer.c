/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The peer of http_bench: a small server on libh2o, one thread and one loop, with the same JSON response. With an
 * upstream it also is a reverse proxy to a unix socket, with libh2o's own handler, which keeps its upstream
 * connections as ours does.
 *
 *         h2o_peer [SOCKET]
 *
 *         GET /json      the response
 *         GET /proxy/…   passed to SOCKET as /…
 */

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <h2o.h>

#include "bench/response.h"

#define ACCEPT_BATCH    64
#define PROXY_TIMEOUT   (30 * 1000) /* milliseconds */
#define PROXY_KEEPALIVE (10 * 1000)

static h2o_globalconf_t config;
static h2o_context_t context;
static h2o_accept_ctx_t accept_ctx;

static void die(const char *what)
{
        fprintf(stderr, "h2o_peer: %s: %s\n", what, strerror(errno));
        exit(1);
}

static int reply_json(h2o_handler_t *self, h2o_req_t *req)
{
        (void) self;
        if (!h2o_memis(req->method.base, req->method.len, H2O_STRLIT("GET")))
                return -1;
        req->res.status = 200;
        req->res.reason = "OK";
        req->res.content_length = sizeof(RESPONSE_JSON) - 1; /* else it would send chunks */
        h2o_add_header(&req->pool, &req->res.headers, H2O_TOKEN_CONTENT_TYPE, NULL,
                       H2O_STRLIT(RESPONSE_TYPE));
        h2o_send_inline(req, H2O_STRLIT(RESPONSE_JSON));
        return 0;
}

static void add_proxy(h2o_hostconf_t *host, const char *socket_path)
{
        /* Its own name for a unix upstream is no valid Host. */
        h2o_proxy_config_vars_t vars = { .io_timeout = PROXY_TIMEOUT,
                                         .preserve_host = 1,
                                         .keepalive_timeout = PROXY_KEEPALIVE };
        char text[256];
        h2o_url_t upstream;
        int n = snprintf(text, sizeof(text), "http://[unix:%s]/", socket_path);

        if (n < 0 || (size_t) n >= sizeof(text)
            || h2o_url_parse(text, (size_t) n, &upstream) != 0) {
                fprintf(stderr, "h2o_peer: %s: not the path of a socket\n", socket_path);
                exit(2);
        }
        h2o_proxy_register_reverse_proxy(h2o_config_register_path(host, "/proxy/", 0), &upstream,
                                         &vars);
}

static void on_accept(h2o_socket_t *listener, const char *error)
{
        h2o_socket_t *sock;

        if (error)
                return;
        for (int i = 0; i < ACCEPT_BATCH && (sock = h2o_evloop_socket_accept(listener)); i++)
                h2o_accept(&accept_ctx, sock);
}

static void listen_and_say(h2o_loop_t *loop)
{
        struct sockaddr_in addr = { .sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t len = sizeof(addr);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || bind(fd, (struct sockaddr *) &addr, len) < 0 || listen(fd, SOMAXCONN) < 0
            || getsockname(fd, (struct sockaddr *) &addr, &len) < 0)
                die("listen");
        h2o_socket_read_start(h2o_evloop_socket_create(loop, fd, H2O_SOCKET_FLAG_DONT_READ),
                              on_accept);
        printf("h2o_peer: listening on http://127.0.0.1:%d\n", ntohs(addr.sin_port));
        (void) fflush(stdout);
}

int main(int argc, char **argv)
{
        h2o_hostconf_t *host;

        (void) signal(SIGPIPE, SIG_IGN);
        h2o_config_init(&config);
        host = h2o_config_register_host(&config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
        h2o_create_handler(h2o_config_register_path(host, "/json", 0), sizeof(h2o_handler_t))
                ->on_req = reply_json;
        if (argc > 1)
                add_proxy(host, argv[1]);

        h2o_context_init(&context, h2o_evloop_create(), &config);
        accept_ctx.ctx = &context;
        accept_ctx.hosts = config.hosts;
        listen_and_say(context.loop);
        while (h2o_evloop_run(context.loop, INT32_MAX) == 0)
                ;
        return 1;
}
