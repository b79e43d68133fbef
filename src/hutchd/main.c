/* SPDX-License-Identifier: Apache-2.0 */

/* hutchd: wires the parts and runs the loop; nothing else. */

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "api/ops/ops.h"
#include "base/base.h"
#include "http/server.h"
#include "hutchd/options.h"
#include "net/loop.h"
#include "os/fd.h"
#include "os/socket.h"

/* Descriptors that belong to no connection: listeners, the loop, the log. */
#define FDS_RESERVED 256

/* And those of one: its socket, and a file or a connection behind the proxy. */
#define FDS_PER_CONNECTION 2

struct hutchd {
        struct net_loop loop;
        struct log_sink sink;
        struct log_ctx log;
        struct http_server *server;
        uv_signal_t signals[2];
        bool stopping;
};

/* Gives up everything that keeps the loop running; also what was only half started. */
static void stop(struct hutchd *d)
{
        for (size_t i = 0; i < ARRAY_SIZE(d->signals); i++)
                if (d->signals[i].loop)
                        uv_close((uv_handle_t *) &d->signals[i], NULL);
        http_server_free(d->server, NULL, NULL);
}

static void drained(void *data)
{
        struct hutchd *d = data;

        log_info(&d->log, "stopped");
        stop(d);
}

static void on_signal(uv_signal_t *h, int signum)
{
        struct hutchd *d = h->data;

        if (d->stopping) {
                log_info(&d->log, "%s again: ending at once", strsignal(signum));
                stop(d);
                return;
        }
        d->stopping = true;
        log_info(&d->log, "%s: finishing what runs, accepting nothing new", strsignal(signum));
        http_server_drain(d->server, drained, d);
}

static int watch_signals(struct hutchd *d)
{
        static const int numbers[] = { SIGTERM, SIGINT };

        static_assert(ARRAY_SIZE(numbers) == ARRAY_SIZE(d->signals), "signals out of step");
        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
                int r = uv_signal_init(&d->loop.uv, &d->signals[i]);

                d->signals[i].data = d;
                if (r == 0)
                        r = uv_signal_start(&d->signals[i], on_signal, numbers[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Listens and says so, on standard output: the one line scripts wait for. */
static int listen_on(struct hutchd *d, const struct sock_addr *addr)
{
        char text[SOCK_ADDR_TEXT_MAX];
        struct sock_addr real;
        int fd, r;

        sock_addr_to_string(addr, text);
        r = sock_listen(addr, &fd);
        if (r < 0) {
                fprintf(stderr, "hutchd: can't listen on %s: %s%s\n", text, strerror(-r),
                        r == -EADDRINUSE ? "; stop what runs there or choose another --listen"
                                         : "");
                return r;
        }
        r = http_server_listen(d->server, fd);
        if (r == 0)
                r = sock_local_addr(fd, &real);
        if (r < 0)
                return log_err(r, &d->log, "can't listen on %s", text);
        sock_addr_to_string(&real, text);
        printf("hutchd: listening on %s\n", text);
        (void) fflush(stdout);
        return 0;
}

static int start(struct hutchd *d, const struct options *o)
{
        struct http_server_config config = http_server_defaults;
        int64_t fds = fd_limit_raise(), room;
        int r;

        config.access_log = o->access_log;
        config.drain_timeout = o->drain_timeout;
        if (o->max_connections > 0)
                config.conns_max = (unsigned) o->max_connections;
        room = (fds - FDS_RESERVED) / FDS_PER_CONNECTION;
        if (room > 0 && config.conns_max > room) {
                config.conns_max = (unsigned) room;
                if (o->max_connections > 0)
                        log_warn(&d->log, "only %u connections: the limit of open files is %lld",
                                 config.conns_max, (long long) fds);
        }
        d->server = http_server_new(&d->loop, &config, &d->log);
        r = http_server_add_api(d->server, &api_ops);
        if (r == 0)
                r = watch_signals(d);
        if (r < 0)
                return log_err(r, &d->log, "can't start");
        for (size_t i = 0; i < o->n_listen; i++) {
                r = listen_on(d, &o->listen[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

int main(int argc, char **argv)
{
        struct hutchd d = { 0 };
        scoped(buf_done) struct buf text;
        struct options o;
        enum options_result parsed;
        int r;

        buf_init(&text, BUF_MAX_LOG_LINE);
        parsed = hutchd_options_parse(argc, argv, &o, &text);
        if (parsed != OPTIONS_RUN) {
                (void) fputs(buf_str(&text).p, parsed == OPTIONS_EXIT_OK ? stdout : stderr);
                return parsed == OPTIONS_EXIT_OK ? 0 : 2;
        }
        d.sink = (struct log_sink){ .fd = STDERR_FILENO,
                                    .level = o.log_level,
                                    .format = o.log_format,
                                    .clock = &clock_system };
        log_ctx_init_root(&d.log, &d.sink);
        (void) signal(SIGPIPE, SIG_IGN); /* a client that is gone is an error code, not our end */
        r = net_loop_init(&d.loop, &clock_system);
        if (r < 0) {
                (void) log_err(r, &d.log, "can't make an event loop");
                return 1;
        }
        r = start(&d, &o);
        if (r < 0)
                stop(&d);
        net_loop_run(&d.loop);
        net_loop_done(&d.loop);
        return r < 0 ? 1 : 0;
}
