/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "driver/engine/engine_impl.h"
#include "model/text.h"
#include "os/fd.h"

/* A worker whose connection is closed undoes the creates that are under way, then exits. */
#define EXIT_TIMEOUT (40 * USEC_PER_SEC)
#define BACKOFF_MAX  (10 * USEC_PER_SEC)

/* --- requests --- */

static void pending_end(struct engine_pending *p, struct engine_reply *r)
{
        p->end(p, r);
        (void) fd_close(r->fd);
        free(p);
}

static void request_failed(struct worker_request *x, const struct err *e)
{
        struct engine_reply r = { .result = ERR_RETURN(e->code), .err = *e, .fd = -EBADF };

        pending_end(container_of(x, struct engine_pending, request), &r);
}

/* Requests carry secrets. */
static void encode(struct buf *b, const struct engine_request *q)
{
        buf_init(b, ENGINE_FRAME_MAX);
        buf_mark_secret(b);
        engine_request_encode(b, q);
}

struct engine_pending *engine__send(struct engine *g, struct engine_request *q,
                                    engine_part_fn *part, engine_end_fn *end, void *data)
{
        struct engine_pending *p = xnew(struct engine_pending);
        scoped(buf_done) struct buf b;

        p->engine = g;
        p->part = part;
        p->end = end;
        p->data = data;
        worker_request_init(&g->worker, &p->request, request_failed);
        q->request_id = (int64_t) p->request.id;
        encode(&b, q);
        worker_request_send(&p->request, buf_failed(&b) ? STR_NULL : buf_str(&b), -EBADF);
        return p;
}

static void post_cancel(struct engine_pending *p)
{
        struct worker *w = &p->engine->worker;
        struct engine_request q = { .call = ENGINE_CANCEL,
                                    .request_id = (int64_t) worker_next_id(w),
                                    .other = (int64_t) p->request.id };
        scoped(buf_done) struct buf b;

        encode(&b, &q);
        worker_post(w, buf_str(&b));
}

void engine__drop(struct engine_pending *p)
{
        if (worker_request_sent(&p->request))
                post_cancel(p);
        worker_request_end(&p->request);
        free(p);
}

void engine__cancel(struct engine_pending *p)
{
        struct engine_reply r = { .fd = -EBADF };

        if (worker_request_sent(&p->request))
                return post_cancel(p);
        worker_request_end(&p->request);
        r.result = err_set(&r.err, ERR_CANCELED, "canceled");
        pending_end(p, &r);
}

/* --- the conversation --- */

static void send_hello(struct worker *w)
{
        struct engine *g = container_of(w, struct engine, worker);
        struct engine_request hello = { .call = ENGINE_HELLO,
                                        .version = ENGINE_PROTOCOL_VERSION,
                                        .installation = str_from(g->installation) };
        scoped(buf_done) struct buf b;

        g->hello = worker_next_id(w);
        hello.request_id = (int64_t) g->hello;
        encode(&b, &hello);
        worker_post(w, buf_str(&b));
}

static void on_reply(struct engine *g, const struct engine_message *m, int fd)
{
        struct worker_request *x = worker_request_get(&g->worker, (uint64_t) m->request_id);
        struct engine_pending *p = x ? container_of(x, struct engine_pending, request) : NULL;
        struct engine_reply r = { .message = m, .fd = fd };

        if (m->code != 0)
                r.result = err_set(&r.err, (enum err_code)(m->code - 1), "%.*s", STR_ARG(m->text));
        if ((uint64_t) m->request_id == g->hello && r.result < 0) {
                (void) fd_close(fd);
                return worker_fail(&g->worker, "%s", r.err.message);
        }
        if ((uint64_t) m->request_id == g->hello)
                worker_ready(&g->worker);
        if (p && m->done) {
                worker_request_end(x);
                return pending_end(p, &r);
        }
        (void) fd_close(fd);
        if (p && p->part)
                p->part(p, m);
}

static void on_message(struct worker *w, struct str bytes)
{
        struct engine *g = container_of(w, struct engine, worker);
        struct engine_message m;
        struct arena a;
        struct err e;
        int fd = -EBADF, r;

        arena_init(&a, 4 * ENGINE_FRAME_MAX);
        r = engine_message_decode(bytes, &a, &m, &e);
        if (r == 0 && m.has_fd) {
                fd = worker_take_fd(w);
                r = fd < 0 ? err_set(&e, ERR_INVALID, "its descriptor is missing") : 0;
        }
        if (r < 0)
                worker_fail(w, "it broke the protocol: %s", e.message);
        else if (m.request_id > 0)
                on_reply(g, &m, fd);
        else if (m.died.p)
                engine__died(g, m.died, m.state);
        else
                engine__compare(g); /* the worker watches events (again) */
        arena_done(&a);
}

static void on_lost(struct worker *w)
{
        struct engine *g = container_of(w, struct engine, worker);

        log_fields(g->log, LOG_WARN, "engine worker lost",
                   LOG_F_STR("driver", str_from(engine_kind_to_string((int) g->kind))),
                   LOG_F_STR("error", str_from(w->error.message)));
}

static void on_closed(struct worker *w)
{
        engine__part_closed(container_of(w, struct engine, worker));
}

static const struct worker_ops worker_ops = {
        .connected = send_hello,
        .message = on_message,
        .lost = on_lost,
        .closed = on_closed,
};

/* --- starting it --- */

static void add(struct engine *g, size_t *n, const char *name, const char *value)
{
        size_t size = strlen(name) + strlen(value) + 1;

        g->argv = xrealloc(g->argv, *n + 2, sizeof(char *));
        g->argv[*n] = xcalloc(1, size);
        (void) snprintf(g->argv[*n], size, "%s%s", name, value);
        g->argv[++*n] = NULL;
}

static void make_argv(struct engine *g, const struct driver_setup *setup,
                      const struct engine_config *config)
{
        const char *socket = config->socket ? config->socket : engine_default_socket(g->kind);
        const char *slash = strrchr(setup->agent, '/');
        char text[PATH_MAX_TEXT];
        size_t n = 0;

        (void) snprintf(text, sizeof(text), "%.*s/hutch-engine", (int) (slash - setup->agent),
                        setup->agent);
        add(g, &n, "", config->worker ? config->worker : text);
        add(g, &n, "--engine=", engine_kind_to_string((int) g->kind));
        add(g, &n, "--socket=", socket);
        add(g, &n, "--directory=", setup->dir);
        add(g, &n, "--agent=", setup->agent);
        add(g, &n, "--installation=", g->installation);
        add(g, &n, "--reach=", engine_reach_to_string(config->reach));
        add(g, &n, "--network=", engine_network_to_string(config->network));
        for (size_t i = 0; i < config->host_dirs.n; i++) {
                (void) snprintf(text, sizeof(text), "%.*s", STR_ARG(config->host_dirs.items[i]));
                add(g, &n, "--host-directory=", text);
        }
        if (g->log && g->log->sink) {
                add(g, &n, "--log-level=", log_level_to_string((int) g->log->sink->level));
                add(g, &n, "--log-format=", log_format_to_string((int) g->log->sink->format));
        }
}

void engine__argv_free(struct engine *g)
{
        for (char **a = g->argv; a && *a; a++)
                free(*a);
        free(g->argv);
}

int engine__worker_open(struct engine *g, const struct driver_setup *setup,
                        const struct engine_config *config, struct err *e)
{
        bool is_service = config->worker && strncmp(config->worker, "unix:", 5) == 0;
        int r;

        (void) snprintf(g->name, sizeof(g->name), "the worker of %s",
                        engine_kind_to_string((int) g->kind));
        (void) snprintf(g->installation, sizeof(g->installation), "%.*s",
                        STR_ARG(setup->installation));
        make_argv(g, setup, config);
        r = is_service ? sock_addr_from_string(str_from(config->worker), &g->service) : 0;
        if (r < 0)
                return err_errno(e, r, "the engine worker '%s'", config->worker);
        if (!is_service && access(g->argv[0], X_OK) < 0)
                return err_errno(e, -errno, "the engine worker '%s' cannot be run", g->argv[0]);
        r = worker_open(&g->worker, g->driver.loop, &worker_ops,
                        &(struct worker_config){ .name = g->name,
                                                 .argv = is_service ? NULL : g->argv,
                                                 .address = &g->service,
                                                 .frame_max = ENGINE_FRAME_MAX,
                                                 .may_receive_fds = true,
                                                 .exit_timeout = EXIT_TIMEOUT,
                                                 .backoff_max = BACKOFF_MAX });
        return r < 0 ? err_errno(e, r, "open %s", g->name) : 0;
}
