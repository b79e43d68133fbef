/* SPDX-License-Identifier: Apache-2.0 */
#include "http/server.h"

#include "base/base.h"
#include "http/conn.h"

const struct http_server_config http_server_defaults = {
        .head_max = HTTP_HEAD_MAX,
        .target_max = HTTP_TARGET_MAX,
        .conns_max = 16384,
        .head_timeout = 10 * USEC_PER_SEC,
        .idle_timeout = 75 * USEC_PER_SEC,
        .body_timeout = 30 * USEC_PER_SEC,
        .write_timeout = 60 * USEC_PER_SEC,
        .linger_timeout = 3 * USEC_PER_SEC,
        .drain_timeout = 10 * USEC_PER_SEC,
};

/* --- listening --- */

static void listener_closed(struct net_listener *n)
{
        struct http_listener *l = container_of(n, struct http_listener, net);
        struct http_server *s = l->server;

        free(l);
        s->open_handles--;
        http_server__check_end(s);
}

static const struct net_listener_ops listener_ops = {
        .accepted = http_conn_accepted,
        .closed = listener_closed,
};

int http_server_listen(struct http_server *s, int fd)
{
        struct http_listener *l = xnew(struct http_listener);
        int r;

        l->server = s;
        r = listener_open(&l->net, s->loop, fd, &listener_ops);
        if (r < 0) {
                free(l);
                return r;
        }
        list_append(&s->listeners, &l->node);
        s->open_handles++;
        return 0;
}

void http_server_serve(struct http_server *s, int fd)
{
        struct sock_addr peer = { .len = sizeof(peer.ss) };
        struct http_listener none = { .server = s };

        if (getpeername(fd, (struct sockaddr *) &peer.ss, &peer.len) < 0)
                peer = (struct sock_addr){ .len = sizeof(sa_family_t), .ss.ss_family = AF_UNIX };
        http_conn_accepted(&none.net, fd, &peer);
}

static void stop_listening(struct http_server *s)
{
        list_for_each (n, &s->listeners) {
                list_remove(n);
                listener_close(&container_of(n, struct http_listener, node)->net);
        }
}

/* --- life cycle --- */

static void release_server(uv_handle_t *h)
{
        struct http_server *s = container_of((uv_timer_t *) h, struct http_server, drain_timer);
        http_server_freed_fn *freed = s->freed;
        void *data = s->freed_data;

        net_task_cancel(&s->end);
        http_router_free(s->router);
        map_done(&s->shares);
        list_for_each (n, &s->spare_reqs) {
                struct http_req *req = container_of(n, struct http_req, _free);

                list_remove(n);
                arena_done(&req->arena);
                free(req);
        }
        free(s);
        if (freed)
                freed(data);
}

static bool is_in_use(const struct http_server *s)
{
        return s->stats.connections > 0 || s->open_handles > 0 || s->live_reqs > 0;
}

static void end_task(struct net_task *t)
{
        struct http_server *s = container_of(t, struct http_server, end);

        if (is_in_use(s))
                return;
        if (s->draining && s->drained) {
                http_server_freed_fn *drained = s->drained;

                s->drained = NULL;
                (void) uv_timer_stop(&s->drain_timer);
                drained(s->drained_data);
                return; /* the callback may have freed the server */
        }
        if (s->freeing && !uv_is_closing((uv_handle_t *) &s->drain_timer)) {
                /* libuv runs close callbacks in reverse order: the handle whose callback frees the
                 * memory of the others is closed first. */
                uv_close((uv_handle_t *) &s->drain_timer, release_server);
                http_anonymous_close(&s->anonymous);
                timeout_kind_close(&s->head_timeout);
                timeout_kind_close(&s->idle_timeout);
                timeout_kind_close(&s->body_timeout);
                timeout_kind_close(&s->write_timeout);
                timeout_kind_close(&s->linger_timeout);
        }
}

void http_server__check_end(struct http_server *s)
{
        if ((s->draining || s->freeing) && !is_in_use(s))
                net_task_queue(s->loop, &s->end);
}

struct http_server *http_server_new(struct net_loop *l, const struct http_server_config *config,
                                    const struct log_ctx *log)
{
        struct http_server *s = xnew(struct http_server);

        s->loop = l;
        s->config = config ? *config : http_server_defaults;
        if (log)
                log_ctx_init(&s->log, log);
        s->body_window = s->config.body_rate_min * s->config.body_timeout / USEC_PER_SEC;
        s->router = http_router_new();
        list_init(&s->listeners);
        list_init(&s->conns);
        list_init(&s->strangers);
        map_init(&s->shares);
        list_init(&s->spare_reqs);
        ids_init(&s->ids);
        net_task_init(&s->end, end_task);
        timeout_kind_init(&s->head_timeout, l, s->config.head_timeout, conn__timed_out);
        timeout_kind_init(&s->idle_timeout, l, s->config.idle_timeout, conn__timed_out);
        timeout_kind_init(&s->body_timeout, l, s->config.body_timeout, conn__timed_out);
        timeout_kind_init(&s->write_timeout, l, s->config.write_timeout, conn__timed_out);
        timeout_kind_init(&s->linger_timeout, l, s->config.linger_timeout, conn__timed_out);
        http_anonymous_init(&s->anonymous, l, http_server__log_omitted);
        (void) uv_timer_init(&l->uv, &s->drain_timer);
        uv_unref((uv_handle_t *) &s->drain_timer);
        return s;
}

static void close_all(struct http_server *s)
{
        list_for_each (n, &s->conns)
                http_conn_close(container_of(n, struct http_conn, node), -ESHUTDOWN);
}

void http_server_free(struct http_server *s, http_server_freed_fn *freed, void *data)
{
        if (!s)
                return;
        s->freeing = true;
        s->drained = NULL;
        s->freed = freed;
        s->freed_data = data;
        stop_listening(s);
        close_all(s);
        http_server__check_end(s);
}

static void drain_expired(uv_timer_t *t)
{
        close_all(container_of(t, struct http_server, drain_timer));
}

void http_server_drain(struct http_server *s, http_server_freed_fn *drained, void *data)
{
        if (s->draining)
                return;
        s->draining = true;
        s->drained = drained;
        s->drained_data = data;
        stop_listening(s);
        list_for_each (n, &s->conns)
                http_conn_retire(container_of(n, struct http_conn, node));
        (void) uv_timer_start(&s->drain_timer, drain_expired,
                              s->config.drain_timeout / USEC_PER_MSEC, 0);
        http_server__check_end(s);
}

/* --- set-up and queries --- */

int http_server_add_api(struct http_server *s, const struct http_api *api)
{
        return http_router_add(s->router, api);
}

void http_server_set_data(struct http_server *s, void *data)
{
        s->data = data;
}

void *http_server_data(const struct http_server *s)
{
        return s->data;
}

void http_server_on_request_done(struct http_server *s, http_request_done_fn *ended)
{
        s->ended = ended;
}

struct http_server_stats http_server_stats(const struct http_server *s)
{
        return s->stats;
}

struct net_loop *http_server_loop(const struct http_server *s)
{
        return s->loop;
}
