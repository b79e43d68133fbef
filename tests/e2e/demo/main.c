/* SPDX-License-Identifier: Apache-2.0 */

/*
 * http_demo LISTEN DIRECTORY UPSTREAM|- [SETTING=DURATION]…
 *
 * Settings are the timeouts of the server (head, idle, body, write, linger, drain) and conns=N.
 */

#include <signal.h>
#include <stdio.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/e2e/demo/demo.h"

#define OPEN HTTP_SCOPE_PUBLIC

static const struct http_route routes[] = {
        { METHOD_GET, "/hello", OPEN, .exec = demo_hello },
        { METHOD_POST, "/echo", OPEN, .body = HTTP_BODY_COLLECT, .exec = demo_echo },
        { METHOD_ANY, "/echo-stream", OPEN, .body = HTTP_BODY_STREAM, .exec = demo_echo_stream },
        { METHOD_POST, "/greet", OPEN, HTTP_JSON(struct demo_greeting, demo_greeting_fields),
          .exec = demo_greet },
        { METHOD_GET, "/closed", .exec = demo_hello },
        { METHOD_GET, "/file/{name}", OPEN, .exec = demo_file },
        { METHOD_POST, "/upload", OPEN, .body = HTTP_BODY_STREAM, .exec = demo_upload },
        { METHOD_ANY, "/proxy/{rest...}", OPEN, .body = HTTP_BODY_STREAM, .exec = demo_proxy },
        { METHOD_GET, "/events", OPEN, .exec = demo_events },
        { METHOD_GET, "/ws", OPEN, .exec = demo_ws },
};

static const struct http_api api = {
        .name = "demo",
        .prefix = "",
        .routes = routes,
        .n_routes = ARRAY_SIZE(routes),
};

static int set(struct http_server_config *c, struct str setting)
{
        const struct {
                struct str name;
                usec_t *value;
        } timeouts[] = {
                { STR("head"), &c->head_timeout },     { STR("idle"), &c->idle_timeout },
                { STR("body"), &c->body_timeout },     { STR("write"), &c->write_timeout },
                { STR("linger"), &c->linger_timeout }, { STR("drain"), &c->drain_timeout },
        };
        struct str name, value = setting;
        uint64_t n;

        (void) str_split(&value, '=', &name);
        for (size_t i = 0; i < ARRAY_SIZE(timeouts); i++)
                if (str_eq(name, timeouts[i].name))
                        return parse_duration(value, timeouts[i].value);
        if (!str_eq(name, STR("conns")) || parse_u64_max(value, 1000000, &n) < 0)
                return -EINVAL;
        c->conns_max = (unsigned) n;
        return 0;
}

static int listen_and_say(struct demo *d, const char *address)
{
        char text[SOCK_ADDR_TEXT_MAX];
        struct sock_addr addr;
        int fd, r = sock_addr_from_string(str_from(address), &addr);

        if (r == 0)
                r = sock_listen(&addr, &fd);
        if (r == 0)
                r = sock_local_addr(fd, &addr);
        if (r == 0)
                r = http_server_listen(d->server, fd);
        if (r < 0)
                return r;
        sock_addr_to_string(&addr, text);
        printf("http_demo: listening on %s\n", text);
        (void) fflush(stdout);
        return 0;
}

static void drained(void *data)
{
        struct demo *d = data;

        http_server_free(d->server, NULL, NULL);
        http_client_free(d->client, NULL, NULL);
        http_sse_group_close(&d->events);
        http_ws_group_close(&d->sockets);
}

static void on_signal(uv_signal_t *h, int number)
{
        struct demo *d = h->data;

        (void) number;
        http_server_drain(d->server, drained, d);
        uv_close((uv_handle_t *) h, NULL);
}

static int start(struct demo *d, int argc, char **argv)
{
        struct http_server_config config = http_server_defaults;

        for (int i = 4; i < argc; i++)
                if (set(&config, str_from(argv[i])) < 0)
                        return -EINVAL;
        if (net_loop_init(&d->loop, &clock_system) < 0)
                return -ENOMEM;
        d->directory = argv[2];
        d->has_upstream = sock_addr_from_string(str_from(argv[3]), &d->upstream) == 0;
        d->server = http_server_new(&d->loop, &config, NULL);
        d->client = http_client_new(&d->loop, NULL);
        http_server_set_data(d->server, d);
        http_sse_group_init(&d->events, &d->loop, HTTP_SSE_FIELDS, 0);
        http_ws_group_init(&d->sockets, &d->loop, 0, 5 * USEC_PER_SEC);
        if (http_server_add_api(d->server, &api) < 0)
                return -EINVAL;
        return listen_and_say(d, argv[1]);
}

int main(int argc, char **argv)
{
        static struct demo d;
        uv_signal_t term;

        if (argc < 4 || start(&d, argc, argv) < 0) {
                fprintf(stderr, "usage: http_demo LISTEN DIRECTORY UPSTREAM|- [SETTING=VALUE]…\n");
                return 2;
        }
        (void) fd_limit_raise();
        (void) signal(SIGPIPE, SIG_IGN);
        (void) uv_signal_init(&d.loop.uv, &term);
        term.data = &d;
        (void) uv_signal_start(&term, on_signal, SIGTERM);
        net_loop_run(&d.loop);
        net_loop_done(&d.loop);
        return 0;
}
