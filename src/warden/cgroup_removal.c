/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "warden/zygote_server.h"
#include "warden/refill.h"
#include "warden/warden_impl.h"

#define WAITING_MAX   256          /* beyond it nobody waits for a quiet moment */
#define REQUESTED_MAX 2            /* so that the nursery need not wait for the next question */
#define PAUSE         USEC_PER_SEC /* after a failure that would only come again */

/* A group without processes. */
struct removal {
        struct list node;
        uint32_t uid_first;
        bool asked; /* the nursery is at it */
        bool warned;
};

static struct removal *find(const struct warden *w, bool asked, uint32_t uid_first)
{
        list_for_each (n, &w->removals.groups) {
                struct removal *l = container_of(n, struct removal, node);

                if (l->asked == asked && (uid_first == 0 || l->uid_first == uid_first))
                        return l;
        }
        return NULL;
}

static void drop(struct warden *w, struct removal *l)
{
        list_remove(&l->node);
        w->removals.n--;
        w->removals.asked -= l->asked;
        free(l);
}

static void ask(struct warden *w)
{
        struct removal *l = find(w, false, 0);
        int r = l ? zygote_pool_request(w, ZYGOTE_SERVER_REMOVE, l->uid_first) : 0;

        if (l && r == 0) {
                l->asked = true;
                w->removals.asked++;
        }
        if (r < 0)
                w->removals.not_before = clock_mono(&clock_system) + PAUSE;
}

static usec_t removal_delay(const struct warden *w)
{
        return refill_delay(WAITING_MAX - MIN_OF(w->removals.n, (unsigned) WAITING_MAX),
                            WAITING_MAX);
}

void removal_defer(struct warden *w)
{
        w->removals.not_before =
                MAX_OF(w->removals.not_before, clock_mono(&clock_system) + removal_delay(w));
}

void removal_add(struct warden *w, uint32_t uid_first)
{
        struct removal *l = xnew(struct removal);

        l->uid_first = uid_first;
        list_append(&w->removals.groups, &l->node);
        w->removals.n++;
        removal_defer(w);
        /* Under a load that has no end there is no idle time either. */
        if (w->removals.n > WAITING_MAX && w->removals.asked < REQUESTED_MAX)
                ask(w);
}

int removal_timeout(const struct warden *w)
{
        const usec_t now = clock_mono(&clock_system), then = w->removals.not_before;

        if (w->removals.n == w->removals.asked || w->removals.asked >= REQUESTED_MAX)
                return -1;
        if (w->fd_budget.building > 0 && removal_delay(w) > 0)
                return -1;
        return then <= now ? 0 : (int) ((then - now) / USEC_PER_MSEC) + 1;
}

void removal_next(struct warden *w)
{
        ask(w);
}

/* What can't be removed is tried again: as long as it is there its uids are nobody else's. */
void removal_done(struct warden *w, uint32_t uid_first, int result)
{
        struct removal *l = find(w, true, uid_first);

        if (!l)
                return;
        if (result == 0) {
                uids_free(w, uid_first);
                drop(w, l);
                return;
        }
        if (!l->warned)
                (void) log_err(result, w->log, "can't remove the cgroup of uid %u",
                               uid_first);
        l->warned = true;
        l->asked = false;
        w->removals.asked--;
        list_remove(&l->node);
        list_append(&w->removals.groups, &l->node);
        w->removals.not_before = clock_mono(&clock_system) + PAUSE;
}

void removal_retry_all(struct warden *w)
{
        list_for_each (n, &w->removals.groups)
                container_of(n, struct removal, node)->asked = false;
        w->removals.asked = 0;
}

static int remove_now(struct warden *w, const struct removal *l)
{
        char name[ZYGOTE_CGROUP_MAX];

        zygote_cgroup_name(l->uid_first, name);
        return w->ctx.tree ? cgroup_remove(w->ctx.tree, name) : 0;
}

uint32_t removal_now(struct warden *w)
{
        struct removal *l = find(w, false, 0);
        uint32_t first = 0;

        if (l && remove_now(w, l) == 0) {
                first = l->uid_first;
                drop(w, l);
        }
        return first;
}

void removal_open(struct warden *w)
{
        list_init(&w->removals.groups);
}

/* The nursery has ended. What stays is found by the next warden. */
void removal_close(struct warden *w)
{
        list_for_each (n, &w->removals.groups) {
                struct removal *l = container_of(n, struct removal, node);

                (void) !remove_now(w, l);
                drop(w, l);
        }
}
