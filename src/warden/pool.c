/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/socket.h>

#include "base/base.h"
#include "os/fd.h"
#include "warden/patience.h"
#include "warden/warden_impl.h"

#define PAUSE USEC_PER_SEC /* after a failure that would only come again */

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

/* --- seeds --- */

static int make(struct warden *w, struct seed *ret)
{
        uint32_t first = find_uids(w);
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
        w->pool.not_before = clock_mono(&clock_system) + PAUSE;
        discard(w, p);
}

bool pool_wants(const struct warden *w)
{
        return w->pool.n < w->config->seeds && clock_mono(&clock_system) >= w->pool.not_before;
}

void pool_fill(struct warden *w)
{
        struct pool_seed *p;
        int r;

        if (!room_for_seed(w)) {
                w->pool.not_before = clock_mono(&clock_system) + PAUSE;
                return;
        }
        p = xnew(struct pool_seed);
        p->source = SOURCE_NULL;
        r = make(w, &p->seed);
        if (r < 0) {
                free(p);
                w->pool.not_before = clock_mono(&clock_system) + PAUSE;
                if (r != -EUSERS)
                        (void) log_err(r, w->log, "can't make a seed");
                return;
        }
        list_append(&w->pool.seeds, &p->node);
        w->pool.n++;
        r = source_add(w, &p->source, p->seed.socket, seed_spoke);
        if (r < 0) {
                (void) log_err(r, w->log, "can't watch a seed");
                discard(w, p);
        }
}

/* Making a seed takes longer than what a seed has to do with its orders, and stops every fork of the
 * machine for a moment where it joins groups of version 1. */
static void put_off(struct warden *w)
{
        usec_t rest = patience_of_pool((unsigned) w->pool.n, w->config->seeds);

        w->pool.not_before = MAX_OF(w->pool.not_before, clock_mono(&clock_system) + rest);
}

int pool_take(struct warden *w, struct seed *ret, bool *ret_ready, struct err *e)
{
        struct pool_seed *best = NULL;
        int r;

        list_for_each (n, &w->pool.seeds) {
                struct pool_seed *p = container_of(n, struct pool_seed, node);

                if (!best || (p->ready && !best->ready))
                        best = p;
        }
        if (best) {
                *ret = best->seed;
                *ret_ready = best->ready;
                drop(w, best);
                put_off(w);
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
        w->pool.uids = xcalloc(w->config->uids.ranges, 1);
}

void pool_close(struct warden *w)
{
        list_for_each (n, &w->pool.seeds)
                discard(w, container_of(n, struct pool_seed, node));
        free(w->pool.uids);
}
