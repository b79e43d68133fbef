/* SPDX-License-Identifier: Apache-2.0 */
#include "http/client.h"

#include "base/base.h"
#include "http/client_impl.h"

const struct http_client_config http_client_defaults = {
        .head_max = HTTP_HEAD_MAX,
        .idle_max = 64,
        .idle_total = 1024,
        .idle_timeout = 30 * USEC_PER_SEC,
        .connect_timeout = 5 * USEC_PER_SEC,
        .write_timeout = 60 * USEC_PER_SEC,
        .head_timeout = USEC_INFINITY, /* a command may run for hours before it prints something */
        .body_timeout = USEC_INFINITY, /* and an event stream may be silent for as long */
        .tunnel_timeout = USEC_INFINITY,
        .half_closed_timeout = 60 * USEC_PER_SEC,
};

struct http_client *http_client_new(struct net_loop *l, const struct http_client_config *config)
{
        struct http_client *cl = xnew(struct http_client);

        cl->loop = l;
        cl->config = config ? *config : http_client_defaults;
        list_init(&cl->conns);
        for (size_t i = 0; i < ARRAY_SIZE(cl->buckets); i++)
                list_init(&cl->buckets[i]);
        timeout_kind_init(&cl->idle_timeout, l, cl->config.idle_timeout, client_conn__timed_out);
        timeout_kind_init(&cl->connect_timeout, l, cl->config.connect_timeout,
                          client_conn__timed_out);
        timeout_kind_init(&cl->write_timeout, l, cl->config.write_timeout, client_conn__timed_out);
        timeout_kind_init(&cl->head_timeout, l, cl->config.head_timeout, client_conn__timed_out);
        timeout_kind_init(&cl->body_timeout, l, cl->config.body_timeout, client_conn__timed_out);
        timeout_kind_init(&cl->tunnel_timeout, l, cl->config.tunnel_timeout, http_pump_timed_out);
        timeout_kind_init(&cl->half_closed_timeout, l, cl->config.half_closed_timeout,
                          http_pump_timed_out);
        (void) uv_timer_init(&l->uv, &cl->last);
        uv_unref((uv_handle_t *) &cl->last);
        return cl;
}

static void release_client(uv_handle_t *h)
{
        struct http_client *cl = container_of((uv_timer_t *) h, struct http_client, last);
        http_client_freed_fn *freed = cl->freed;
        void *data = cl->freed_data;

        free(cl);
        if (freed)
                freed(data);
}

void client__check_end(struct http_client *cl)
{
        if (!cl->freeing || cl->stats.connections > 0 || cl->live_calls > 0
            || uv_is_closing((uv_handle_t *) &cl->last))
                return;
        /* libuv runs close callbacks in reverse order: the handle whose callback frees the memory
         * of the others is closed first. */
        uv_close((uv_handle_t *) &cl->last, release_client);
        timeout_kind_close(&cl->idle_timeout);
        timeout_kind_close(&cl->connect_timeout);
        timeout_kind_close(&cl->write_timeout);
        timeout_kind_close(&cl->head_timeout);
        timeout_kind_close(&cl->body_timeout);
        timeout_kind_close(&cl->tunnel_timeout);
        timeout_kind_close(&cl->half_closed_timeout);
}

void http_client_free(struct http_client *cl, http_client_freed_fn *freed, void *data)
{
        if (!cl)
                return;
        cl->freeing = true;
        cl->freed = freed;
        cl->freed_data = data;
        list_for_each (n, &cl->conns) {
                struct http_client_conn *c = container_of(n, struct http_client_conn, node);

                if (c->call)
                        http_call_cancel(c->call);
                else
                        client_conn__close(c, -ESHUTDOWN);
        }
        client__check_end(cl);
}

struct http_client_stats http_client_stats(const struct http_client *cl)
{
        return cl->stats;
}

/* --- endpoints --- */

/*
 * The most recently used connection is taken first. The others age and are closed by the idle
 * timeout, so the pool shrinks to what is needed.
 */

struct http_endpoint *endpoint__get(struct http_client *cl, const struct sock_addr *addr)
{
        const unsigned char *p = (const unsigned char *) &addr->ss;
        struct http_endpoint *e;
        struct list *bucket;
        uint32_t h = 2166136261U; /* FNV-1a: addresses are not chosen by an attacker */

        for (socklen_t i = 0; i < addr->len; i++)
                h = (h ^ p[i]) * 16777619U;
        bucket = &cl->buckets[h % CLIENT_BUCKETS];
        list_for_each (n, bucket) {
                e = container_of(n, struct http_endpoint, node);
                if (e->addr.len == addr->len && memcmp(&e->addr.ss, &addr->ss, addr->len) == 0)
                        return e;
        }
        e = xnew(struct http_endpoint);
        e->addr = *addr;
        list_init(&e->idle);
        list_append(bucket, &e->node);
        return e;
}

void endpoint__unref(struct http_endpoint *e)
{
        if (--e->n_conns > 0)
                return;
        list_remove(&e->node);
        free(e);
}

bool endpoint__give_idle(struct http_endpoint *e, struct http_client_conn *c)
{
        struct http_client *cl = c->client;
        struct timeout *oldest;

        if (e->n_idle >= cl->config.idle_max)
                return false;
        /* Descriptors are shared by all endpoints: closes the connection that has been idle longest. */
        if (cl->stats.idle >= cl->config.idle_total) {
                oldest = timeout_oldest(&cl->idle_timeout);
                if (!oldest)
                        return false;
                client_conn__close(container_of(oldest, struct http_client_conn, timeout), 0);
        }
        list_prepend(&e->idle, &c->idle_node);
        e->n_idle++;
        return true;
}
