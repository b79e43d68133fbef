/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store_remote.h"

#include <stdio.h>

#include "base/base.h"

/*
 * The last request of each key is in a tree, so that the next one finds it and queues after it. They are not pipelined: a
 * server may refuse one request for a reason that is gone when the next one arrives (a forgotten script, another worker), and
 * repeating the first would then reorder them.
 */

/* --- replies --- */

int remote_bad_reply(struct store_req *req, const char *server)
{
        return err_set(&req->err, ERR_INTERNAL,
                       "the reply of %s makes no sense; is it a %s server?", server, server);
}

int remote_add_entry(struct store_scan *sc, struct store_entry entry, const char *server)
{
        bool exclusive;
        struct str start = store_scan_start(sc, &exclusive);

        if (entry.key.n == 0 || entry.key.n > STORE_KEY_MAX || entry.value.n > STORE_VALUE_MAX
            || entry.version == 0 || !str_starts_with(entry.key, sc->prefix)
            || str_cmp(entry.key, start) < (exclusive ? 1 : 0))
                return remote_bad_reply(&sc->req, server);
        if (sc->n > 0 && str_cmp(sc->entries[sc->n - 1].key, entry.key) >= 0)
                return remote_bad_reply(&sc->req, server);
        if (!store_scan_add(sc, entry) && store_scan_result(sc) == 0)
                return remote_bad_reply(&sc->req, server);
        return store_scan_result(sc);
}

/* --- requests --- */

/* Removes it from the queue of its key: the next one is sent. */
void remote_finish(struct remote_request *x, int result)
{
        struct store_req *req = x->req;
        struct remote *r = x->remote;
        bool last = x->node._size > 0;

        timeout_clear(&x->timeout);
        list_remove(&x->in_waiting);
        tree_remove(&r->last, &x->node);
        if (x->sent)
                r->n_in_flight--;
        if (x->before)
                x->before->behind = x->behind;
        if (x->before && last)
                tree_add(&r->last, &x->before->node, x->node.key);
        if (x->behind)
                x->behind->before = x->before;
        if (x->behind && !x->before)
                list_prepend(&r->waiting, &x->behind->in_waiting);
        free(x);
        store_finish(req, result);
}

static int give_up(struct remote_request *x)
{
        const struct remote *r = x->remote;
        const char *uncertain = x->sent && store_call_writes(x->req) ? "; it may have been written"
                                                                     : "";

        if (r->connected || !r->failure[0])
                return err_set(&x->req->err, ERR_UNAVAILABLE, "%s at %s: %s%s", r->ops->server,
                               r->where, r->connected ? "no reply in time" : "not connected yet",
                               uncertain);
        return err_set(&x->req->err, ERR_UNAVAILABLE, "%s%s", r->failure, uncertain);
}

void remote_send_waiting(struct remote *r)
{
        struct list *n = list_first(&r->waiting), *next;

        for (; n && r->n_in_flight < REMOTE_IN_FLIGHT_MAX; n = next) {
                struct remote_request *x = container_of(n, struct remote_request, in_waiting);

                next = n->next == &r->waiting ? NULL : n->next;
                if (!r->ops->has_room(r, store_req_value(x->req).n + STORE_KEY_MAX))
                        return;
                list_remove(n);
                x->sent = true;
                r->n_in_flight++;
                r->ops->send(r, x);
        }
}

/* --- the connection --- */

void remote_connected(struct remote *r)
{
        if (r->backoff.failures > 0)
                log_fields(r->log, LOG_INFO, "store connection restored",
                           LOG_F_STR("server", str_from(r->ops->server)),
                           LOG_F_STR("address", str_from(r->where)));
        backoff_reset(&r->backoff);
        r->connected = true;
        remote_send_waiting(r);
}

usec_t remote_disconnected(struct remote *r, const char *why)
{
        r->connected = false;
        (void) snprintf(r->failure, sizeof(r->failure), "%s", why);
        if (r->backoff.failures == 0)
                log_fields(r->log, LOG_WARN, "no store connection, trying again",
                           LOG_F_STR("server", str_from(r->ops->server)),
                           LOG_F_STR("address", str_from(r->where)),
                           LOG_F_STR("reason", str_from(why)));
        return backoff_next(&r->backoff);
}

/* In front: it is the oldest. */
void remote_retry(struct remote_request *x)
{
        x->sent = false;
        x->remote->n_in_flight--;
        list_prepend(&x->remote->waiting, &x->in_waiting);
}

/* A read whose time is up is not sent again. */
void remote_lost(struct remote_request *x)
{
        if (!store_call_writes(x->req) && x->timeout.kind)
                remote_retry(x);
        else
                remote_finish(x, give_up(x));
}

/* The reply to a request that was sent may still come: only closing the connection prevents that. */
static void timed_out(struct timeout *t)
{
        struct remote_request *x = container_of(t, struct remote_request, timeout);

        if (x->sent)
                x->remote->ops->drop(x->remote, "it does not respond");
        else
                remote_finish(x, give_up(x)); /* no room, or no connection */
}

/* --- the backend --- */

/* A request that was sent can't be canceled. */
void remote_cancel(struct store *s, struct store_req *req)
{
        struct remote *r = container_of(s, struct remote, store);
        struct str key = store_req_key(req);
        struct tree_node *last = key.p ? tree_get(&r->last, key) : NULL;
        struct remote_request *x = last ? container_of(last, struct remote_request, node) : NULL;

        while (x && x->req != req)
                x = x->before;
        if (!key.p)
                list_for_each (n, &r->waiting)
                        if (container_of(n, struct remote_request, in_waiting)->req == req)
                                x = container_of(n, struct remote_request, in_waiting);
        if (x && !x->sent)
                remote_finish(x, err_set(&req->err, ERR_CANCELED,
                                         "canceled before it was sent to %s", r->ops->server));
}

void remote_run(struct store *s)
{
        struct remote *r = container_of(s, struct remote, store);

        for (struct store_req *req; (req = store_next(s));) {
                const struct store_scan *sc = req->_call == STORE_CALL_SCAN ? STORE_AS(scan, req)
                                                                            : NULL;
                struct str key = store_req_key(req);
                struct tree_node *before = key.p ? tree_get(&r->last, key) : NULL;
                int result = r->ops->check ? r->ops->check(req) : 0;
                struct remote_request *x;

                if (sc && MAX_OF(sc->prefix.n, sc->after.n) > STORE_KEY_MAX)
                        result = err_set(&req->err, ERR_TOO_LARGE,
                                         "a prefix or cursor above %zu bytes", STORE_KEY_MAX);
                if (result < 0) {
                        store_finish(req, result);
                        continue;
                }
                x = xcalloc(1, r->ops->request_size);
                x->remote = r;
                x->req = req;
                timeout_init(&x->timeout);
                timeout_set(&x->timeout, &r->wait);
                list_init(&x->in_waiting);
                if (before) {
                        x->before = container_of(before, struct remote_request, node);
                        x->before->behind = x;
                        tree_remove(&r->last, before);
                } else {
                        list_append(&r->waiting, &x->in_waiting);
                }
                if (key.p)
                        tree_add(&r->last, &x->node, key);
        }
        remote_send_waiting(r);
}

void remote_init(struct remote *r, const struct store_ops *store_ops, const struct remote_ops *ops,
                 struct net_loop *loop, usec_t wait)
{
        store_init(&r->store, store_ops, loop);
        r->ops = ops;
        list_init(&r->waiting);
        tree_init(&r->last);
        timeout_kind_init(&r->wait, loop, wait, timed_out);
        r->backoff = (struct backoff){ REMOTE_BACKOFF_MIN, REMOTE_BACKOFF_MAX, 0 };
}

void remote_done(struct remote *r)
{
        timeout_kind_close(&r->wait);
}
