/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "base/base.h"
#include "os/clone.h"
#include "os/fd.h"
#include "warden/zygote_server.h"
#include "warden/refill.h"
#include "warden/warden_impl.h"

#define PAUSE         USEC_PER_SEC /* after a failure that would only come again */
#define REQUESTED_MAX 2            /* so that the nursery need not wait for the next question */

/* --- uids --- */

static uint32_t range_of(const struct warden *w, uint32_t uid_first)
{
        return (uid_first - w->config->uids.base) / PLAN_UIDS;
}

bool uids_take(struct warden *w, uint32_t uid_first)
{
        unsigned char *taken = &w->pool.uids[range_of(w, uid_first)];

        if (*taken)
                return false;
        *taken = 1;
        return true;
}

void uids_free(struct warden *w, uint32_t uid_first)
{
        w->pool.uids[range_of(w, uid_first)] = 0;
}

/* In turns, so that a range rests before someone else has it. 0 if there is none: never root's. */
static uint32_t find_uids(struct warden *w)
{
        const struct plan_uids *u = &w->config->uids;

        for (uint32_t i = 0; i < u->ranges; i++) {
                const uint32_t range = (w->pool.next + i) % u->ranges;
                const uint32_t first = u->base + range * PLAN_UIDS;

                if (!uids_take(w, first))
                        continue;
                w->pool.next = (range + 1) % u->ranges;
                return first;
        }
        return 0;
}

/* --- the nursery --- */

static void server_spoke(struct warden *w, struct source *source);

static int open_server(struct warden *w)
{
        int fd = -EBADF, r = zygote_server_start(&w->ctx, &fd, &w->pool.server_pidfd);

        if (r == 0)
                r = source_add(w, &w->pool.nursery, fd, server_spoke);
        if (r < 0)
                (void) fd_close(fd);
        return r;
}

int zygote_pool_request(struct warden *w, enum zygote_server_op work, uint32_t uid_first)
{
        int r = w->pool.nursery.fd >= 0 ? 0 : open_server(w);

        return r == 0 ? zygote_server_request(w->pool.nursery.fd, work, uid_first) : r;
}

/* Until it has said something, or is no more. */
static void wait_for_server(struct warden *w)
{
        struct pollfd p = { .fd = w->pool.nursery.fd, .events = POLLIN };

        if (poll(&p, 1, -1) > 0)
                server_spoke(w, &w->pool.nursery);
}

/* Those of a group that is being removed, if there are no others. */
static uint32_t get_uids(struct warden *w)
{
        uint32_t first = find_uids(w);

        while (first == 0 && (first = removal_now(w)) == 0 && w->removals.asked > 0) {
                wait_for_server(w);
                first = find_uids(w);
        }
        return first;
}

/* --- seeds --- */

static int make(struct warden *w, struct zygote *ret)
{
        uint32_t first = get_uids(w);
        int r;

        if (first == 0)
                return -EUSERS;
        r = zygote_make(&w->ctx, first, ret);
        if (r < 0 && r != -EEXIST) /* a group of that name: somebody's, so the uids are his */
                uids_free(w, first);
        return r;
}

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

static void rest(struct warden *w)
{
        w->pool.not_before = clock_mono(&clock_system) + PAUSE;
}

/* One byte: it is ready. The end of the stream: it has ended, ready or not. */
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
        log_warn(w->log, "a zygote has ended before its time");
        rest(w);
        discard(w, p);
}

/* --- from the nursery --- */

/* Of one whose descriptors have not come: it ends because its socket has, and is ours to reap. */
static void find_orphan(const struct warden *w, struct zygote *s)
{
        char name[ZYGOTE_CGROUP_MAX];

        zygote_cgroup_name(s->uid_first, name);
        if (w->ctx.tree && cgroup_open(w->ctx.tree, name, &s->group) == 0)
                s->pidfd = cgroup_pidfd(&s->group);
}

static void close_server(struct warden *w)
{
        struct pool *pool = &w->pool;
        const int fd = pool->nursery.fd;
        int status;

        source_remove(w, &pool->nursery);
        (void) fd_close(fd);
        if (pool->server_pidfd >= 0 && pidfd_kill(pool->server_pidfd, SIGKILL) == 0)
                (void) !pidfd_wait(pool->server_pidfd, &status);
        pool->server_pidfd = fd_close(pool->server_pidfd);
        removal_retry_all(w);
        list_for_each (n, &pool->seeds) {
                struct pooled_zygote *p = container_of(n, struct pooled_zygote, node);

                if (!p->coming)
                        continue;
                find_orphan(w, &p->zygote);
                pool->coming--;
                discard(w, p);
        }
}

static struct pooled_zygote *find_coming(const struct warden *w, uint32_t uid_first)
{
        list_for_each (n, &w->pool.seeds) {
                struct pooled_zygote *p = container_of(n, struct pooled_zygote, node);

                if (p->coming && p->zygote.uid_first == uid_first)
                        return p;
        }
        return NULL;
}

static void zygote_arrived(struct warden *w, struct pooled_zygote *p, const struct zygote *s)
{
        int r;

        p->zygote = *s;
        r = source_add(w, &p->source, s->socket, zygote_spoke);
        if (r == 0)
                return;
        (void) log_err(r, w->log, "can't watch a zygote");
        discard(w, p);
}

/* A group of that name is somebody's, so the uids are his. */
static void zygote_failed(struct warden *w, struct pooled_zygote *p, int result)
{
        if (result != -EEXIST)
                uids_free(w, p->zygote.uid_first);
        drop(w, p);
        rest(w);
        (void) log_err(result, w->log, "can't make a zygote");
}

static void server_spoke(struct warden *w, struct source *source)
{
        struct zygote_server_reply a;
        struct pooled_zygote *p;
        int r = zygote_server_receive(source->fd, &a);

        if (r == -EAGAIN)
                return;
        if (r > 0 && a.work == ZYGOTE_SERVER_REMOVE) {
                removal_done(w, a.zygote.uid_first, a.result);
                return;
        }
        p = r > 0 ? find_coming(w, a.zygote.uid_first) : NULL;
        if (!p) {
                zygote_close(&a.zygote);
                log_warn(w->log, "who makes seeds has ended");
                close_server(w);
                rest(w);
                return;
        }
        p->coming = false;
        w->pool.coming--;
        if (a.result == 0)
                zygote_arrived(w, p, &a.zygote);
        else
                zygote_failed(w, p, a.result);
}

static int ask(struct warden *w)
{
        struct pooled_zygote *p;
        uint32_t first = find_uids(w);
        int r;

        if (first == 0)
                return -EUSERS;
        r = zygote_pool_request(w, ZYGOTE_SERVER_MAKE, first);
        if (r < 0) {
                uids_free(w, first);
                return r;
        }
        p = xnew(struct pooled_zygote);
        *p = (struct pooled_zygote){ .source = SOURCE_NULL, .zygote = ZYGOTE_NULL, .coming = true };
        p->zygote.uid_first = first;
        list_append(&w->pool.seeds, &p->node);
        w->pool.n++;
        w->pool.coming++;
        return 0;
}

int zygote_pool_timeout(const struct warden *w)
{
        const usec_t now = clock_mono(&clock_system), then = w->pool.not_before;

        if (w->pool.n >= w->config->seeds || w->pool.coming >= REQUESTED_MAX)
                return -1;
        if (w->fd_budget.building > 0 && refill_delay(w->pool.n, w->config->seeds) > 0)
                return -1;
        return then <= now ? 0 : (int) ((then - now) / USEC_PER_MSEC) + 1;
}

void zygote_pool_fill(struct warden *w)
{
        int r = fd_budget_has_zygote(w) ? ask(w) : -EMFILE;

        if (r == 0)
                return;
        rest(w);
        if (r != -EUSERS && r != -EMFILE)
                (void) log_err(r, w->log, "can't make a zygote");
}

void zygote_pool_defer(struct warden *w)
{
        usec_t rest = refill_delay(w->pool.n, w->config->seeds);

        w->pool.not_before = MAX_OF(w->pool.not_before, clock_mono(&clock_system) + rest);
        removal_defer(w);
}

/* --- for sandboxes --- */

static struct pooled_zygote *find_best(const struct warden *w)
{
        struct pooled_zygote *best = NULL;

        list_for_each (n, &w->pool.seeds) {
                struct pooled_zygote *p = container_of(n, struct pooled_zygote, node);

                if (!p->coming && (!best || (p->ready && !best->ready)))
                        best = p;
        }
        return best;
}

/* One that is coming is here earlier_timeout than one that is begun now, and may have the last uids. */
static struct pooled_zygote *wait_for_one(struct warden *w)
{
        struct pooled_zygote *best;

        while (!(best = find_best(w)) && w->pool.coming > 0)
                wait_for_server(w);
        return best;
}

int zygote_pool_take(struct warden *w, struct zygote *ret, bool *ret_ready, struct err *e)
{
        struct pooled_zygote *best = wait_for_one(w);
        int r;

        if (best) {
                *ret = best->zygote;
                *ret_ready = best->ready;
                drop(w, best);
                zygote_pool_defer(w);
                return 0;
        }
        *ret_ready = false;
        r = make(w, ret);
        if (r == -EUSERS)
                return err_set(e, ERR_EXHAUSTED, "all %u ranges of uids are in use",
                               w->config->uids.ranges);
        return r < 0 ? err_errno(e, r, "make a zygote") : 0;
}

void zygote_pool_open(struct warden *w)
{
        list_init(&w->pool.seeds);
        removal_open(w);
        w->pool.nursery = SOURCE_NULL;
        w->pool.server_pidfd = -EBADF;
        w->pool.uids = xcalloc(w->config->uids.ranges, 1);
}

void zygote_pool_close(struct warden *w)
{
        close_server(w);
        list_for_each (n, &w->pool.seeds)
                discard(w, container_of(n, struct pooled_zygote, node));
        removal_close(w);
        free(w->pool.uids);
}
