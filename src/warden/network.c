/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "os/clone.h"
#include "os/fd.h"
#include "warden/netns_process.h"
#include "warden/refill.h"
#include "warden/resolvers.h"
#include "warden/subnet.h"
#include "warden/warden_impl.h"

#define PAUSE         USEC_PER_SEC /* before the next netns pool process, if one exited at once */
#define SHUTDOWN_WAIT 5000         /* milliseconds, for removing the packet rules */

static_assert((int) PLAN_NETWORK_NONE == (int) NETNS_KIND_NONE
                      && (int) PLAN_NETWORK_PRIVATE == (int) NETNS_KIND_PRIVATE,
              "a plan's networks are the pool's kinds");

/* --- namespaces that are ready --- */

static struct pooled_netns pop(struct network_kind *k)
{
        struct pooled_netns item = k->ready[k->head];

        k->head = (k->head + 1) % k->max;
        k->n--;
        return item;
}

static struct instance *next_waiter(struct network_kind *k)
{
        struct instance *x;

        if (list_empty(&k->waiters))
                return NULL;
        x = container_of(list_first(&k->waiters), struct instance, netns_waiter);
        list_remove(&x->netns_waiter);
        return x;
}

static void fail_waiters(struct warden *w, struct network_kind *k, const struct err *e)
{
        struct instance *x;

        while ((x = next_waiter(k)))
                instance_abort(w, x, e);
}

/* --- the netns pool process --- */

static void close_process(struct warden *w)
{
        struct network *n = &w->network;
        int status;

        source_remove(w, &n->source);
        n->socket = fd_close(n->socket);
        if (n->pidfd >= 0) {
                (void) !pidfd_kill(n->pidfd, SIGKILL);
                (void) !pidfd_wait(n->pidfd, &status);
        }
        n->pidfd = fd_close(n->pidfd);
        for (size_t i = 0; i < NETNS_KINDS; i++)
                while (n->kinds[i].n > 0)
                        (void) fd_close(pop(&n->kinds[i]).fd);
}

static void lost_process(struct warden *w)
{
        struct network *n = &w->network;
        const usec_t now = clock_mono(&clock_system);

        log_warn(w->log, "the netns pool process exited; starting another one");
        close_process(w);
        n->not_before = now < n->started + PAUSE ? now + PAUSE : now;
}

/* A process that does not take the message is replaced; the next one adopts what is in use. */
static void send_message(struct warden *w, enum netns_msg_kind what,
                         const struct pooled_netns *item)
{
        const struct netns_msg m = { .what = what, .kind = item->kind, .index = item->index };

        if (w->network.socket >= 0
            && netns_process_send(w->network.socket, &m, -EBADF, MSG_DONTWAIT) < 0)
                lost_process(w);
}

static void process_spoke(struct warden *w, struct source *s)
{
        struct network_kind *k;
        struct instance *x;
        struct netns_msg m;
        struct err e;
        int fd, r = netns_process_receive(s->fd, &m, &fd, MSG_DONTWAIT);

        if (r == -EAGAIN)
                return;
        if (r <= 0 || m.kind >= NETNS_KINDS) {
                lost_process(w);
                return;
        }
        k = &w->network.kinds[m.kind];
        if (m.what == NETNS_MSG_FAILED) {
                (void) err_set(&e, m.code, "no network '%s' is available: %s",
                               plan_network_to_string((int) m.kind), m.text);
                log_warn(w->log, "%s", e.message);
                if (m.permanent)
                        k->refused = e;
                k->is_refused |= m.permanent;
                fail_waiters(w, k, &e);
                return;
        }
        if (m.what != NETNS_MSG_READY || fd < 0 || k->n >= k->max) {
                (void) fd_close(fd);
                return;
        }
        k->ready[(k->head + k->n++) % k->max] = (struct pooled_netns){ m.kind, m.index, fd };
        while (k->n > 0 && (x = next_waiter(k)))
                instance_build(w, x);
}

/* The descriptor first, then whether the process by which it was found still runs. If it does not, its exit will be
 * noticed. */
static int send_adopt(struct warden *w, struct instance *x)
{
        const struct netns_msg m = { .what = NETNS_MSG_ADOPT,
                                     .kind = x->net.kind,
                                     .index = x->net.index };
        scoped(fd_closep) int fd = -EBADF;
        char path[64];

        if (!x->has_net)
                return 0;
        if (x->net.fd >= 0) {
                fd = fcntl(x->net.fd, F_DUPFD_CLOEXEC, 3);
        } else {
                (void) snprintf(path, sizeof(path), "/proc/%d/ns/net", (int) x->zygote.pid);
                fd = open(path, O_RDONLY | O_CLOEXEC);
        }
        if (fd < 0 || pidfd_kill(x->zygote.pidfd, 0) < 0) {
                x->has_net = false;
                return 0;
        }
        return netns_process_send(w->network.socket, &m, fd, 0);
}

int network_timeout(const struct warden *w)
{
        return w->network.socket >= 0 ? -1 : refill_timeout(w->network.not_before);
}

void network_start(struct warden *w)
{
        const struct netns_msg start = { .what = NETNS_MSG_START };
        struct network *n = &w->network;
        int r = netns_process_start(&n->config, w->ctx.data, &n->socket, &n->pidfd);
        struct err e;

        n->started = clock_mono(&clock_system);
        for (struct tree_node *t = tree_from(&w->instances, STR("")); t && r == 0;
             t = tree_after(&w->instances, t->key))
                r = send_adopt(w, container_of(t, struct instance, by_id));
        if (r == 0)
                r = netns_process_send(n->socket, &start, -EBADF, 0);
        if (r == 0)
                r = source_add(w, &n->source, n->socket, EPOLLIN, process_spoke);
        if (r == 0)
                return;
        close_process(w);
        n->not_before = clock_mono(&clock_system) + PAUSE;
        (void) err_errno(&e, r, "start the netns pool process");
        log_warn(w->log, "%s", e.message);
        for (size_t i = 0; i < NETNS_KINDS; i++)
                fail_waiters(w, &n->kinds[i], &e);
}

/* --- for instances --- */

int network_check(const struct warden *w, enum plan_network network, struct err *e)
{
        const struct network_kind *k = &w->network.kinds[network];

        return k->is_refused ? err_set(e, k->refused.code, "%s", k->refused.message) : 0;
}

int network_take(struct warden *w, struct instance *x)
{
        struct network_kind *k = &w->network.kinds[x->spec.network];

        if (k->n == 0) {
                list_append(&k->waiters, &x->netns_waiter);
                return -EAGAIN;
        }
        x->net = pop(k);
        x->has_net = true;
        send_message(w, NETNS_MSG_TAKEN, &x->net);
        return 0;
}

void network_return(struct warden *w, struct instance *x)
{
        list_remove(&x->netns_waiter);
        x->net.fd = fd_close(x->net.fd);
        if (x->has_net)
                send_message(w, NETNS_MSG_RETURNED, &x->net);
        x->has_net = false;
}

/* --- startup, shutdown --- */

void network_init(struct warden *w)
{
        struct network *n = &w->network;

        *n = (struct network){ .source = SOURCE_NULL, .socket = -EBADF, .pidfd = -EBADF };
        for (size_t i = 0; i < NETNS_KINDS; i++)
                list_init(&n->kinds[i].waiters);
}

/* Whether a sandbox with a private network is running. */
static bool has_private(const struct warden *w)
{
        for (struct tree_node *t = tree_from(&w->instances, STR("")); t;
             t = tree_after(&w->instances, t->key)) {
                const struct instance *x = container_of(t, struct instance, by_id);

                if (x->has_net && x->net.kind == NETNS_KIND_PRIVATE)
                        return true;
        }
        return false;
}

int network_open(struct warden *w, struct err *e)
{
        const struct warden_config *c = w->config;
        const struct str name = str_from(c->installation);
        const struct subnet_request q = { { name, c->subnet4, c->subnet6 },
                                          w->ctx.data,
                                          has_private(w) };
        struct network *n = &w->network;
        int r;

        n->config = (struct netns_pool_config){ .depth = { c->networks,
                                                           c->no_private ? 0 : c->networks },
                                                .none_max = c->uids.ranges + c->networks,
                                                .close_batch = NETNS_POOL_BATCH_DEFAULT };
        r = c->no_private ? addr_plan_init(&n->config.addrs, &(struct addr_plan_config){ name })
                          : subnet_choose(&q, &n->config.addrs, e);
        if (r < 0)
                return r;
        for (size_t i = 0; i < NETNS_KINDS; i++) {
                n->kinds[i].max = MAX_OF(c->networks, 1U);
                n->kinds[i].ready = xcalloc(n->kinds[i].max, sizeof(*n->kinds[i].ready));
        }
        if (c->no_private) {
                n->kinds[NETNS_KIND_PRIVATE].is_refused = true;
                (void) err_set(&n->kinds[NETNS_KIND_PRIVATE].refused, ERR_UNSUPPORTED,
                               "the network 'private' is switched off on this host");
        }
        if (resolvers_find(&c->dns, &w->resolv) == 0 && !c->no_private)
                log_warn(w->log, "sandboxes have no resolver: set --dns to one they can reach");
        w->ctx.resolv = buf_str(&w->resolv).p;
        network_start(w);
        return 0;
}

/* The packet rules go with the last sandbox. */
void network_close(struct warden *w)
{
        struct network *n = &w->network;
        struct pollfd p = { .fd = n->pidfd, .events = POLLIN };

        if (n->socket >= 0 && w->instances.n == 0 && list_empty(&w->polled)) {
                send_message(w, NETNS_MSG_SHUTDOWN,
                             &(struct pooled_netns){ NETNS_KIND_NONE, 0, -EBADF });
                (void) !poll(&p, 1, SHUTDOWN_WAIT);
        }
        close_process(w);
        for (size_t i = 0; i < NETNS_KINDS; i++)
                free(n->kinds[i].ready);
}
