/* SPDX-License-Identifier: Apache-2.0 */
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include "base/base.h"
#include "os/clone.h"
#include "os/fd.h"
#include "warden/nursery.h"
#include "warden/patience.h"
#include "warden/warden_impl.h"

#define PAUSE      USEC_PER_SEC /* after a failure that would only come again */
#define COMING_MAX 2            /* so that the nursery need not wait for the next question */

/* --- uids --- */

static uint32_t range_of(const struct warden *w, uint32_t uid_first)
{
        return (uid_first - w->config->uids.base) / PLAN_UIDS;
}

bool pool_take_uids(struct warden *w, uint32_t uid_first)
{
        unsigned char *taken = &w->pool.uids[range_of(w, uid_first)];

        if (*taken)
                return false;
        *taken = 1;
        return true;
}

void pool_free_uids(struct warden *w, uint32_t uid_first)
{
        w->pool.uids[range_of(w, uid_first)] = 0;
}

/* In turns, so that a range rests before somebody else has it. 0 if there is none: never root's. */
static uint32_t find_uids(struct warden *w)
{
        const struct plan_uids *u = &w->config->uids;

        for (uint32_t i = 0; i < u->ranges; i++) {
                const uint32_t range = (w->pool.next + i) % u->ranges;
                const uint32_t first = u->base + range * PLAN_UIDS;

                if (!pool_take_uids(w, first))
                        continue;
                w->pool.next = (range + 1) % u->ranges;
                return first;
        }
        return 0;
}

/* --- the nursery --- */

static void nursery_spoke(struct warden *w, struct source *source);

static int open_nursery(struct warden *w)
{
        int fd = -EBADF, r = nursery_start(&w->ground, &fd, &w->pool.nursery_pidfd);

        if (r == 0)
                r = source_add(w, &w->pool.nursery, fd, nursery_spoke);
        if (r < 0)
                (void) fd_close(fd);
        return r;
}

int pool_ask(struct warden *w, enum nursery_work work, uint32_t uid_first)
{
        int r = w->pool.nursery.fd >= 0 ? 0 : open_nursery(w);

        return r == 0 ? nursery_ask(w->pool.nursery.fd, work, uid_first) : r;
}

/* Until it has said something, or is no more. */
static void wait_for_nursery(struct warden *w)
{
        struct pollfd p = { .fd = w->pool.nursery.fd, .events = POLLIN };

        if (poll(&p, 1, -1) > 0)
                nursery_spoke(w, &w->pool.nursery);
}

/* Those of a group that is being removed, if there are no others. */
static uint32_t get_uids(struct warden *w)
{
        uint32_t first = find_uids(w);

        while (first == 0 && (first = leave_now(w)) == 0 && w->leaving.asked > 0) {
                wait_for_nursery(w);
                first = find_uids(w);
        }
        return first;
}

/* --- seeds --- */

static int make(struct warden *w, struct seed *ret)
{
        uint32_t first = get_uids(w);
        int r;

        if (first == 0)
                return -EUSERS;
        r = seed_make(&w->ground, first, ret);
        if (r < 0 && r != -EEXIST) /* a group of that name: somebody's, so the uids are his */
                pool_free_uids(w, first);
        return r;
}

static void drop(struct warden *w, struct pool_seed *p)
{
        source_remove(w, &p->source);
        list_remove(&p->node);
        w->pool.n--;
        free(p);
}

static void discard(struct warden *w, struct pool_seed *p)
{
        struct seed s = p->seed;
        int r;

        drop(w, p);
        r = seed_remove(&w->ground, &s);
        if (r < 0)
                (void) log_err(r, w->log, "can't remove a seed");
        else
                pool_free_uids(w, s.uid_first);
}

static void rest(struct warden *w)
{
        w->pool.not_before = clock_mono(&clock_system) + PAUSE;
}

/* One byte: it is ready. The end of the stream: it has ended, ready or not. */
static void seed_spoke(struct warden *w, struct source *source)
{
        struct pool_seed *p = container_of(source, struct pool_seed, source);
        char byte;
        ssize_t n = recv(p->seed.socket, &byte, 1, MSG_DONTWAIT);

        if (n == 1 && !p->ready) {
                p->ready = true;
                return;
        }
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        log_warn(w->log, "a seed has ended before its time");
        rest(w);
        discard(w, p);
}

/* --- from the nursery --- */

/* Of one whose descriptors have not come: it ends because its socket has, and is ours to reap. */
static void look_for(const struct warden *w, struct seed *s)
{
        char name[SEED_GROUP_MAX];

        seed_group_name(s->uid_first, name);
        if (w->ground.tree && cgroup_open(w->ground.tree, name, &s->group) == 0)
                s->pidfd = cgroup_pidfd(&s->group);
}

static void close_nursery(struct warden *w)
{
        struct pool *pool = &w->pool;
        const int fd = pool->nursery.fd;
        int status;

        source_remove(w, &pool->nursery);
        (void) fd_close(fd);
        if (pool->nursery_pidfd >= 0 && pidfd_kill(pool->nursery_pidfd, SIGKILL) == 0)
                (void) !pidfd_wait(pool->nursery_pidfd, &status);
        pool->nursery_pidfd = fd_close(pool->nursery_pidfd);
        leave_ask_again(w);
        list_for_each (n, &pool->seeds) {
                struct pool_seed *p = container_of(n, struct pool_seed, node);

                if (!p->coming)
                        continue;
                look_for(w, &p->seed);
                pool->coming--;
                discard(w, p);
        }
}

static struct pool_seed *find_coming(const struct warden *w, uint32_t uid_first)
{
        list_for_each (n, &w->pool.seeds) {
                struct pool_seed *p = container_of(n, struct pool_seed, node);

                if (p->coming && p->seed.uid_first == uid_first)
                        return p;
        }
        return NULL;
}

static void has_come(struct warden *w, struct pool_seed *p, const struct seed *s)
{
        int r;

        p->seed = *s;
        r = source_add(w, &p->source, s->socket, seed_spoke);
        if (r == 0)
                return;
        (void) log_err(r, w->log, "can't watch a seed");
        discard(w, p);
}

/* A group of that name is somebody's, so the uids are his. */
static void has_failed(struct warden *w, struct pool_seed *p, int result)
{
        if (result != -EEXIST)
                pool_free_uids(w, p->seed.uid_first);
        drop(w, p);
        rest(w);
        (void) log_err(result, w->log, "can't make a seed");
}

static void nursery_spoke(struct warden *w, struct source *source)
{
        struct nursery_answer a;
        struct pool_seed *p;
        int r = nursery_receive(source->fd, &a);

        if (r == -EAGAIN)
                return;
        if (r > 0 && a.work == NURSERY_REMOVE) {
                leave_answered(w, a.seed.uid_first, a.result);
                return;
        }
        p = r > 0 ? find_coming(w, a.seed.uid_first) : NULL;
        if (!p) {
                seed_close(&a.seed);
                log_warn(w->log, "who makes seeds has ended");
                close_nursery(w);
                rest(w);
                return;
        }
        p->coming = false;
        w->pool.coming--;
        if (a.result == 0)
                has_come(w, p, &a.seed);
        else
                has_failed(w, p, a.result);
}

static int ask(struct warden *w)
{
        struct pool_seed *p;
        uint32_t first = find_uids(w);
        int r;

        if (first == 0)
                return -EUSERS;
        r = pool_ask(w, NURSERY_MAKE, first);
        if (r < 0) {
                pool_free_uids(w, first);
                return r;
        }
        p = xnew(struct pool_seed);
        *p = (struct pool_seed){ .source = SOURCE_NULL, .seed = SEED_NULL, .coming = true };
        p->seed.uid_first = first;
        list_append(&w->pool.seeds, &p->node);
        w->pool.n++;
        w->pool.coming++;
        return 0;
}

int pool_until(const struct warden *w)
{
        const usec_t now = clock_mono(&clock_system), then = w->pool.not_before;

        if (w->pool.n >= w->config->seeds || w->pool.coming >= COMING_MAX)
                return -1;
        if (w->room.building > 0 && patience_of_pool(w->pool.n, w->config->seeds) > 0)
                return -1;
        return then <= now ? 0 : (int) ((then - now) / USEC_PER_MSEC) + 1;
}

void pool_fill(struct warden *w)
{
        int r = room_for_seed(w) ? ask(w) : -EMFILE;

        if (r == 0)
                return;
        rest(w);
        if (r != -EUSERS && r != -EMFILE)
                (void) log_err(r, w->log, "can't make a seed");
}

void pool_put_off(struct warden *w)
{
        usec_t rest = patience_of_pool(w->pool.n, w->config->seeds);

        w->pool.not_before = MAX_OF(w->pool.not_before, clock_mono(&clock_system) + rest);
        leave_put_off(w);
}

/* --- for sandboxes --- */

static struct pool_seed *find_best(const struct warden *w)
{
        struct pool_seed *best = NULL;

        list_for_each (n, &w->pool.seeds) {
                struct pool_seed *p = container_of(n, struct pool_seed, node);

                if (!p->coming && (!best || (p->ready && !best->ready)))
                        best = p;
        }
        return best;
}

/* One that is coming is here sooner than one that is begun now, and may have the last uids. */
static struct pool_seed *wait_for_one(struct warden *w)
{
        struct pool_seed *best;

        while (!(best = find_best(w)) && w->pool.coming > 0)
                wait_for_nursery(w);
        return best;
}

int pool_take(struct warden *w, struct seed *ret, bool *ret_ready, struct err *e)
{
        struct pool_seed *best = wait_for_one(w);
        int r;

        if (best) {
                *ret = best->seed;
                *ret_ready = best->ready;
                drop(w, best);
                pool_put_off(w);
                return 0;
        }
        *ret_ready = false;
        r = make(w, ret);
        if (r == -EUSERS)
                return err_set(e, ERR_EXHAUSTED, "all %u ranges of uids are in use",
                               w->config->uids.ranges);
        return r < 0 ? err_errno(e, r, "make a seed") : 0;
}

void pool_open(struct warden *w)
{
        list_init(&w->pool.seeds);
        leave_open(w);
        w->pool.nursery = SOURCE_NULL;
        w->pool.nursery_pidfd = -EBADF;
        w->pool.uids = xcalloc(w->config->uids.ranges, 1);
}

void pool_close(struct warden *w)
{
        close_nursery(w);
        list_for_each (n, &w->pool.seeds)
                discard(w, container_of(n, struct pool_seed, node));
        leave_close(w);
        free(w->pool.uids);
}
