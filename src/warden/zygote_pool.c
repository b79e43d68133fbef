/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/base.h"
#include "os/clone.h"
#include "os/fd.h"
#include "warden/refill.h"
#include "warden/warden_impl.h"

#define PAUSE         USEC_PER_SEC /* after a failure, which is likely to happen again */
#define REQUESTED_MAX 2            /* so that the zygote server always has the next one at hand */

/* --- uid ranges --- */

static unsigned char *range_of(struct warden *w, uint32_t uid_first)
{
        return &w->pool.uids[(uid_first - w->config->uids.base) / PLAN_UIDS];
}

bool uids_take(struct warden *w, uint32_t uid_first)
{
        unsigned char *in_use = range_of(w, uid_first);

        if (*in_use)
                return false;
        *in_use = 1;
        return true;
}

void uids_free(struct warden *w, uint32_t uid_first)
{
        *range_of(w, uid_first) = 0;
}

/* In turn, so that a range is reused as late as possible. 0: none is free. */
static uint32_t find_uids(struct warden *w)
{
        const struct plan_uids *u = &w->config->uids;

        for (uint32_t i = 0; i < u->ranges; i++) {
                const uint32_t range = (w->pool.next_range + i) % u->ranges;
                const uint32_t first = u->base + range * PLAN_UIDS;

                if (!uids_take(w, first))
                        continue;
                w->pool.next_range = (range + 1) % u->ranges;
                return first;
        }
        return 0;
}

/* --- zygotes --- */

static void drop(struct warden *w, struct pooled_zygote *p)
{
        source_remove(w, &p->source);
        list_remove(&p->node);
        w->pool.n--;
        free(p);
}

static void discard(struct warden *w, struct pooled_zygote *p)
{
        struct zygote s = p->zygote;
        int r;

        drop(w, p);
        r = zygote_remove(&w->ctx, &s);
        if (r < 0)
                (void) log_err(r, w->log, "can't remove a zygote");
        else
                uids_free(w, s.uid_first);
}

static void pause_pool(struct warden *w)
{
        w->pool.not_before = clock_mono(&clock_system) + PAUSE;
}

/* One byte: it is ready. End of file: it has exited. */
static void zygote_spoke(struct warden *w, struct source *source)
{
        struct pooled_zygote *p = container_of(source, struct pooled_zygote, source);
        char byte;
        ssize_t n = recv(p->zygote.socket, &byte, 1, MSG_DONTWAIT);

        if (n == 1 && !p->ready) {
                p->ready = true;
                return;
        }
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        log_warn(w->log, "a zygote exited unexpectedly");
        pause_pool(w);
        discard(w, p);
}

/* --- the zygote server --- */

/* Zygotes whose descriptors have not come exit with their socket; they are ours to reap. */
static void close_server(struct warden *w)
{
        struct zygote_pool *pool = &w->pool;
        const int fd = pool->server.fd;
        int status;

        source_remove(w, &pool->server);
        (void) fd_close(fd);
        if (pool->server_pidfd >= 0 && pidfd_kill(pool->server_pidfd, SIGKILL) == 0)
                (void) !pidfd_wait(pool->server_pidfd, &status);
        pool->server_pidfd = fd_close(pool->server_pidfd);
        removal_retry_all(w);
        list_for_each (n, &pool->zygotes) {
                struct pooled_zygote *p = container_of(n, struct pooled_zygote, node);
                char name[ZYGOTE_CGROUP_MAX];

                if (!p->requested)
                        continue;
                zygote_cgroup_name(p->zygote.uid_first, name);
                if (w->ctx.tree && cgroup_open(w->ctx.tree, name, &p->zygote.group) == 0)
                        p->zygote.pidfd = cgroup_pidfd(&p->zygote.group);
                pool->requested--;
                discard(w, p);
        }
}

static void zygote_arrived(struct warden *w, struct pooled_zygote *p,
                           const struct zygote_server_reply *a)
{
        int r = a->result;

        p->requested = false;
        w->pool.requested--;
        if (r < 0) {
                if (r != -EEXIST) /* that cgroup is in use, so the uid range is, too */
                        uids_free(w, p->zygote.uid_first);
                drop(w, p);
                pause_pool(w);
                (void) log_err(r, w->log, "can't make a zygote");
                return;
        }
        p->zygote = a->zygote;
        r = source_add(w, &p->source, a->zygote.socket, EPOLLIN, zygote_spoke);
        if (r < 0) {
                (void) log_err(r, w->log, "can't watch a zygote");
                discard(w, p);
        }
}

static void server_spoke(struct warden *w, struct source *source)
{
        struct zygote_server_reply a;
        int r = zygote_server_receive(source->fd, &a);

        if (r == -EAGAIN)
                return;
        if (r > 0 && a.op == ZYGOTE_SERVER_REMOVE) {
                removal_done(w, a.zygote.uid_first, a.result);
                return;
        }
        list_for_each (n, &w->pool.zygotes) {
                struct pooled_zygote *p = container_of(n, struct pooled_zygote, node);

                if (r > 0 && p->requested && p->zygote.uid_first == a.zygote.uid_first) {
                        zygote_arrived(w, p, &a);
                        return;
                }
        }
        zygote_close(&a.zygote);
        log_warn(w->log, "the zygote server exited");
        close_server(w);
        pause_pool(w);
}

int zygote_pool_request(struct warden *w, enum zygote_server_op op, uint32_t uid_first)
{
        int fd = -EBADF, r = 0;

        if (w->pool.server.fd < 0) {
                r = zygote_server_start(&w->ctx, &fd, &w->pool.server_pidfd);
                if (r == 0)
                        r = source_add(w, &w->pool.server, fd, EPOLLIN, server_spoke);
                if (r < 0)
                        (void) fd_close(fd);
        }
        return r == 0 ? zygote_server_request(w->pool.server.fd, op, uid_first) : r;
}

/* Blocks until the server replies or exits. */
static void wait_for_server(struct warden *w)
{
        struct pollfd p = { .fd = w->pool.server.fd, .events = POLLIN };

        if (poll(&p, 1, -1) > 0)
                server_spoke(w, &w->pool.server);
}

/* --- filling --- */

int zygote_pool_timeout(const struct warden *w)
{
        if (w->pool.n >= w->config->zygotes || w->pool.requested >= REQUESTED_MAX)
                return -1;
        return refill_timeout(
                MAX_OF(w->pool.not_before,
                       refill_delay(w->pool.n, w->config->zygotes) > 0 ? busy_until(w) : 0));
}

void zygote_pool_fill(struct warden *w)
{
        const uint32_t first = fd_budget_has_zygote(w) ? find_uids(w) : 0;
        struct pooled_zygote *p;
        int r;

        if (first == 0) {
                pause_pool(w);
                return;
        }
        r = zygote_pool_request(w, ZYGOTE_SERVER_MAKE, first);
        if (r < 0) {
                uids_free(w, first);
                pause_pool(w);
                if (r != -EUSERS && r != -EMFILE)
                        (void) log_err(r, w->log, "can't make a zygote");
                return;
        }
        p = xnew(struct pooled_zygote);
        *p = (struct pooled_zygote){ .source = SOURCE_NULL,
                                     .zygote = ZYGOTE_NULL,
                                     .requested = true };
        p->zygote.uid_first = first;
        list_append(&w->pool.zygotes, &p->node);
        w->pool.n++;
        w->pool.requested++;
}

void zygote_pool_defer(struct warden *w)
{
        const usec_t delay = refill_delay(w->pool.n, w->config->zygotes);

        w->pool.not_before = MAX_OF(w->pool.not_before, clock_mono(&clock_system) + delay);
        removal_defer(w);
}

/* --- taking --- */

static struct pooled_zygote *find_best(const struct warden *w)
{
        struct pooled_zygote *best = NULL;

        list_for_each (n, &w->pool.zygotes) {
                struct pooled_zygote *p = container_of(n, struct pooled_zygote, node);

                if (!p->requested && (!best || (p->ready && !best->ready)))
                        best = p;
        }
        return best;
}

int zygote_pool_take(struct warden *w, struct zygote *ret, bool *ret_ready, struct err *e)
{
        struct pooled_zygote *best;
        uint32_t first;
        int r;

        /* A requested one arrives sooner than one that is begun now, and may have the last uids. */
        while (!(best = find_best(w)) && w->pool.requested > 0)
                wait_for_server(w);
        if (best) {
                *ret = best->zygote;
                *ret_ready = best->ready;
                drop(w, best);
                zygote_pool_defer(w);
                return 0;
        }
        /* If no uid range is free, that of a cgroup that is waiting to be removed. */
        first = find_uids(w);
        while (first == 0 && (first = removal_now(w)) == 0 && w->removals.requested > 0) {
                wait_for_server(w);
                first = find_uids(w);
        }
        if (first == 0)
                return err_set(e, ERR_EXHAUSTED, "all %u uid ranges are in use",
                               w->config->uids.ranges);
        *ret_ready = false;
        r = zygote_make(&w->ctx, first, ret);
        if (r < 0 && r != -EEXIST) /* that cgroup is in use, so the uid range is, too */
                uids_free(w, first);
        return r < 0 ? err_errno(e, r, "make a zygote") : 0;
}

void zygote_pool_open(struct warden *w)
{
        list_init(&w->pool.zygotes);
        list_init(&w->removals.list);
        w->pool.server = SOURCE_NULL;
        w->pool.server_pidfd = -EBADF;
        w->pool.uids = xcalloc(w->config->uids.ranges, 1);
}

void zygote_pool_close(struct warden *w)
{
        close_server(w);
        list_for_each (n, &w->pool.zygotes)
                discard(w, container_of(n, struct pooled_zygote, node));
        removal_close(w);
        free(w->pool.uids);
}
