/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "http/client_impl.h"

/*
 * Endpoints and their idle connections. The connection used last is lent first: the others grow
 * old and leave by the idle timeout, so the pool shrinks to what is needed.
 */

/* FNV-1a; the keys are ours or the operator's, nobody gains by colliding them. */
static struct list *bucket_of(struct http_client *cl, const struct sock_addr *addr)
{
        const unsigned char *p = (const unsigned char *) &addr->ss;
        uint32_t h = 2166136261U;

        for (socklen_t i = 0; i < addr->len; i++)
                h = (h ^ p[i]) * 16777619U;
        return &cl->buckets[h % CLIENT_BUCKETS];
}

static bool same_addr(const struct sock_addr *a, const struct sock_addr *b)
{
        return a->len == b->len && memcmp(&a->ss, &b->ss, a->len) == 0;
}

struct http_endpoint *endpoint__find(struct http_client *cl, const struct sock_addr *addr,
                                     bool make)
{
        struct list *bucket = bucket_of(cl, addr);
        struct http_endpoint *e;

        list_for_each (n, bucket) {
                e = container_of(n, struct http_endpoint, node);
                if (same_addr(&e->addr, addr))
                        return e;
        }
        if (!make)
                return NULL;
        e = xnew(struct http_endpoint);
        e->addr = *addr;
        list_init(&e->idle);
        list_append(bucket, &e->node);
        return e;
}

void endpoint__ref(struct http_endpoint *e)
{
        e->n_conns++;
}

void endpoint__unref(struct http_endpoint *e)
{
        if (--e->n_conns > 0)
                return;
        list_remove(&e->node);
        free(e);
}

struct http_client_conn *endpoint__take_idle(struct http_endpoint *e)
{
        struct list *n = list_first(&e->idle);

        if (!n)
                return NULL;
        list_remove(n);
        e->n_idle--;
        return container_of(n, struct http_client_conn, idle_node);
}

/* Whoever has idled longest, at whatever endpoint, goes: descriptors are everybody's. */
static bool evict_idle(struct http_client *cl)
{
        struct timeout *t;

        if (cl->stats.idle < cl->config.idle_total)
                return true;
        t = timeout_oldest(&cl->idle_timeout);
        if (!t)
                return false;
        client_conn__close(container_of(t, struct http_client_conn, timeout), 0);
        return true;
}

bool endpoint__give_idle(struct http_endpoint *e, struct http_client_conn *c)
{
        if (e->n_idle >= c->client->config.idle_max || !evict_idle(c->client))
                return false;
        list_prepend(&e->idle, &c->idle_node);
        e->n_idle++;
        return true;
}

void http_client_close_idle(struct http_client *cl, const struct sock_addr *to)
{
        struct http_endpoint *e = endpoint__find(cl, to, /* make= */ false);

        if (!e)
                return;
        /* Closing takes a connection out of the list and keeps the endpoint until `closed`. */
        list_for_each (n, &e->idle)
                client_conn__close(container_of(n, struct http_client_conn, idle_node), 0);
}
