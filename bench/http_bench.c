/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The HTTP engine under test: one loop, and a route for each kind of work.
 *
 *         http_bench ADDRESS DIR [UPSTREAM]
 *
 *         GET  /json           a small response
 *         GET  /events         one event, then silence
 *         POST /upload         the file of a multipart form, into DIR/upload
 *         GET  /file/{name}    of DIR, by sendfile
 *         ANY  /proxy/…        passed to UPSTREAM as /…
 *
 * It trusts its client, bench/run.
 */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include "base/base.h"
#include "bench/response.h"
#include "bench/http_bench.h"
#include "http/file.h"
#include "http/proxy.h"
#include "http/route.h"
#include "http/server.h"
#include "os/fd.h"

/* --- the routes --- */

static void get_json(struct http_req *req)
{
        http_reply(req, 200, STR(RESPONSE_TYPE), STR(RESPONSE_JSON));
}

static void events_gone(struct http_sse *s, int reason)
{
        (void) reason;
        free(s);
}

static const struct http_sse_ops events_ops = { .gone = events_gone };

static void get_events(struct http_req *req)
{
        struct bench *b = http_server_data(req->server);
        struct http_sse *s = xnew(struct http_sse);

        if (http_sse_begin(s, req, &b->events, &events_ops) < 0)
                free(s);
        else
                (void) !http_sse_json(s, STR(RESPONSE_JSON));
}

static void get_file(struct http_req *req)
{
        const struct bench *b = http_server_data(req->server);
        char *name = arena_dup(&req->arena, req->params[0]);
        int fd = name ? openat(b->dir, name, O_RDONLY | O_CLOEXEC) : -ENOMEM;

        if (fd < 0 || http_reply_file(req, fd, NULL) < 0)
                http_reply_error(req, 404, "NOT_FOUND", "no such file");
}

static void any_proxy(struct http_req *req)
{
        const struct bench *b = http_server_data(req->server);

        http_proxy(req, &(struct http_proxy_target){ .client = b->client,
                                                     .addr = &b->upstream,
                                                     .prefix = STR("/"),
                                                     .path = req->params[0],
                                                     .flags = HTTP_PROXY_FORWARDED });
}

static const struct http_route routes[] = {
        { METHOD_GET, "/json", HTTP_SCOPE_PUBLIC, .exec = get_json },
        { METHOD_GET, "/events", HTTP_SCOPE_PUBLIC, .exec = get_events },
        { METHOD_POST, "/upload", HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_STREAM,
          .exec = bench_post_upload },
        { METHOD_GET, "/file/{name}", HTTP_SCOPE_PUBLIC, .exec = get_file },
        { METHOD_ANY, "/proxy/{rest...}", HTTP_SCOPE_PUBLIC, .body = HTTP_BODY_STREAM,
          .exec = any_proxy },
};

static const struct http_api api = { "bench", "", routes, ARRAY_SIZE(routes) };

/* --- the program --- */

static int listen_and_say(struct http_server *s, const char *address)
{
        char text[SOCK_ADDR_TEXT_MAX];
        struct sock_addr addr;
        int fd = -EBADF, r = sock_addr_from_string(str_from(address), &addr);

        if (r == 0)
                r = sock_listen(&addr, &fd);
        if (r < 0)
                return r;
        r = sock_local_addr(fd, &addr);
        if (r == 0)
                r = http_server_listen(s, fd);
        if (r < 0)
                return r;
        sock_addr_to_string(&addr, text);
        printf("http_bench: listening on %s\n", text);
        (void) fflush(stdout);
        return 0;
}

static int start(struct bench *b, struct net_loop *l, char **argv)
{
        struct http_server *s = http_server_new(l, NULL, NULL);
        int r;

        http_server_set_data(s, b);
        http_sse_group_init(&b->events, l, HTTP_SSE_BARE, 0);
        b->client = http_client_new(l, NULL);
        b->dir = open(argv[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (b->dir < 0)
                return -errno;
        r = argv[3] ? sock_addr_from_string(str_from(argv[3]), &b->upstream) : 0;
        if (r == 0)
                r = http_server_add_api(s, &api);
        return r < 0 ? r : listen_and_say(s, argv[1]);
}

int main(int argc, char **argv)
{
        static struct bench b;
        struct net_loop loop;
        int r;

        if (argc < 3 || argc > 4) {
                fprintf(stderr, "usage: http_bench ADDRESS DIR [UPSTREAM]\n");
                return 2;
        }
        (void) signal(SIGPIPE, SIG_IGN);
        (void) fd_limit_raise();
        r = net_loop_init(&loop, &clock_system);
        if (r == 0)
                r = start(&b, &loop, argv);
        if (r < 0) {
                fprintf(stderr, "http_bench: can't start: %s\n", strerror(-r));
                return 1;
        }
        net_loop_run(&loop); /* until it is killed */
        return 0;
}
