/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "os/clone.h"
#include "os/fd.h"
#include "warden/netns_process.h"
#include "warden/resolvers.h"
#include "warden/subnet.h"
#include "warden/warden_impl.h"

#define PAUSE    USEC_PER_SEC /* before another netns_process, if one has ended at once */
#define END_WAIT 5000         /* milliseconds for taking rules away */

static_assert((int) PLAN_NETWORK_NONE == (int) NETNS_KIND_NONE
                      && (int) PLAN_NETWORK_PRIVATE == (int) NETNS_KIND_PRIVATE,
              "a plan's networks are the pool's kinds");

static const char *name_of(size_t kind)
{
        return plan_network_to_string((int) kind);
}

/* --- those that are ready --- */

static bool push(struct network_kind *k, const struct pooled_netns *item)
{
        if (k->n >= k->max)
                return false;
        k->ready[(k->head + k->n++) % k->max] = *item;
        return true;
}

static struct pooled_netns pop(struct network_kind *k)
{
        struct pooled_netns item = k->ready[k->head];

        k->head = (k->head + 1) % k->max;
        k->n--;
        return item;
}

static void drop_all(struct network *n)
{
        for (size_t i = 0; i < NETNS_KINDS; i++)
                while (n->kinds[i].n > 0)
                        (void) fd_close(pop(&n->kinds[i]).fd);
}

/* --- those that wait for one --- */

static void serve_waiters(struct warden *w, struct network_kind *k)
{
        while (k->n > 0 && !list_empty(&k->waiters)) {
                struct instance *x =
                        container_of(list_first(&k->waiters), struct instance, waiters);

                list_remove(&x->waiters);
                instance_build(w, x);
        }
}

static void fail_waiters(struct warden *w, struct network_kind *k, const struct err *e)
{
        while (!list_empty(&k->waiters)) {
                struct instance *x =
                        container_of(list_first(&k->waiters), struct instance, waiters);

                list_remove(&x->waiters);
                instance_abort(w, x, e);
        }
}

/* --- the netns_process --- */

static void close_process(struct warden *w)
{
        struct network *n = &w->network;

        source_remove(w, &n->source);
        n->socket = fd_close(n->socket);
        if (n->pidfd >= 0) {
                int status;

                (void) !pidfd_kill(n->pidfd, SIGKILL);
                (void) !pidfd_wait(n->pidfd, &status);
        }
        n->pidfd = fd_close(n->pidfd);
        drop_all(n);
}

static void lost_process(struct warden *w)
{
        struct network *n = &w->network;
        const usec_t now = clock_mono(&clock_system);

        log_warn(w->log, "the netns_process of networks has ended: starting another one");
        close_process(w);
        n->not_before = now < n->started + PAUSE ? now + PAUSE : now;
}

/* One that does not listen any more is replaced; the next one is told by adoption. */
static void say(struct warden *w, enum netns_msg_kind what, const struct pooled_netns *item)
{
        const struct netns_msg m = { .what = what, .kind = item->kind, .index = item->index };

        if (w->network.socket >= 0
            && netns_process_send(w->network.socket, &m, -EBADF, MSG_DONTWAIT) < 0)
                lost_process(w);
}

static void hear_failure(struct warden *w, const struct netns_msg *m)
{
        struct network_kind *k = &w->network.kinds[m->kind];
        struct err e;

        (void) err_set(&e, m->code, "there is no network '%s': %s", name_of(m->kind), m->text);
        log_warn(w->log, "%s", e.message);
        if (m->permanent)
                k->refused = e;
        k->is_refused |= m->permanent;
        fail_waiters(w, k, &e);
}

static void hear(struct warden *w, const struct netns_msg *m, int fd)
{
        const struct pooled_netns item = { m->kind, m->index, fd };

        if (m->what == NETNS_MSG_FAILED)
                hear_failure(w, m);
        else if (m->what != NETNS_MSG_READY || fd < 0 || !push(&w->network.kinds[m->kind], &item))
                (void) fd_close(fd);
        else
                serve_waiters(w, &w->network.kinds[m->kind]);
}

static void process_spoke(struct warden *w, struct source *s)
{
        struct netns_msg m;
        int fd, r = netns_process_receive(s->fd, &m, &fd, MSG_DONTWAIT);

        if (r == -EAGAIN)
                return;
        if (r <= 0 || m.kind >= NETNS_KINDS)
                lost_process(w);
        else
                hear(w, &m, fd);
}

/* --- its start --- */

/* First the descriptor, then the question whether the process still lives that it was found by. */
static int open_netns(const struct instance *x, int *ret_fd)
{
        scoped(fd_closep) int fd = -EBADF;
        char path[64];
        int r;

        if (x->net.fd >= 0) {
                fd = fcntl(x->net.fd, F_DUPFD_CLOEXEC, 3);
        } else {
                (void) snprintf(path, sizeof(path), "/proc/%d/ns/net", (int) x->zygote.pid);
                fd = open(path, O_RDONLY | O_CLOEXEC);
        }
        r = fd < 0 ? -errno : pidfd_kill(x->zygote.pidfd, 0);
        if (r == 0)
                *ret_fd = TAKE_FD(fd);
        return r;
}

static int have_adopted(struct warden *w, struct instance *x)
{
        const struct netns_msg m = { .what = NETNS_MSG_ADOPT,
                                     .kind = x->net.kind,
                                     .index = x->net.index };
        scoped(fd_closep) int fd = -EBADF;

        if (!x->has_net)
                return 0;
        if (open_netns(x, &fd) < 0) {
                x->has_net = false; /* its end will be noticed */
                return 0;
        }
        return netns_process_send(w->network.socket, &m, fd, 0);
}

static int start(struct warden *w)
{
        const struct netns_msg go = { .what = NETNS_MSG_START };
        struct network *n = &w->network;
        int r = netns_process_start(&n->config, w->ctx.data, &n->socket, &n->pidfd);

        n->started = clock_mono(&clock_system);
        for (struct tree_node *t = tree_from(&w->instances, STR("")); t && r == 0;
             t = tree_after(&w->instances, t->key))
                r = have_adopted(w, container_of(t, struct instance, by_id));
        if (r == 0)
                r = netns_process_send(n->socket, &go, -EBADF, 0);
        return r == 0 ? source_add(w, &n->source, n->socket, process_spoke) : r;
}

int network_timeout(const struct warden *w)
{
        const usec_t now = clock_mono(&clock_system), then = w->network.not_before;

        if (w->network.socket >= 0)
                return -1;
        return then <= now ? 0 : (int) ((then - now) / USEC_PER_MSEC) + 1;
}

void network_start(struct warden *w)
{
        struct err e;
        int r = start(w);

        if (r == 0)
                return;
        close_process(w);
        w->network.not_before = clock_mono(&clock_system) + PAUSE;
        (void) err_errno(&e, r, "start a netns_process of networks");
        log_warn(w->log, "%s", e.message);
        for (size_t i = 0; i < NETNS_KINDS; i++)
                fail_waiters(w, &w->network.kinds[i], &e);
}

/* --- of a sandbox --- */

int network_check(const struct warden *w, enum plan_network network, struct err *e)
{
        const struct network_kind *k = &w->network.kinds[network];

        return k->is_refused ? err_set(e, k->refused.code, "%s", k->refused.message) : 0;
}

int network_take(struct warden *w, struct instance *x)
{
        struct network_kind *k = &w->network.kinds[x->spec.network];

        if (k->n == 0) {
                list_append(&k->waiters, &x->waiters);
                return -EAGAIN;
        }
        x->net = pop(k);
        x->has_net = true;
        say(w, NETNS_MSG_TAKEN, &x->net);
        return 0;
}

void network_return(struct warden *w, struct instance *x)
{
        list_remove(&x->waiters);
        x->net.fd = fd_close(x->net.fd);
        if (x->has_net)
                say(w, NETNS_MSG_RETURNED, &x->net);
        x->has_net = false;
}

/* --- opening, closing --- */

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
                               "there is no network 'private': it is switched off on this host");
        }
        if (resolvers_find(&c->dns, &w->resolv) == 0 && !c->no_private)
                log_warn(w->log, "sandboxes have no resolver: give --dns one that they can reach");
        w->ctx.resolv = buf_str(&w->resolv).p;
        network_start(w);
        return 0;
}

/* With the last sandbox go the rules. */
void network_close(struct warden *w)
{
        struct network *n = &w->network;
        struct pollfd p = { .fd = n->pidfd, .events = POLLIN };

        if (n->socket >= 0 && w->instances.n == 0 && list_empty(&w->waiting)) {
                say(w, NETNS_MSG_SHUTDOWN, &(struct pooled_netns){ NETNS_KIND_NONE, 0, -EBADF });
                (void) !poll(&p, 1, END_WAIT);
        }
        close_process(w);
        for (size_t i = 0; i < NETNS_KINDS; i++)
                free(n->kinds[i].ready);
}
