/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "warden/nursery.h"
#include "warden/patience.h"
#include "warden/warden_impl.h"

#define WAITING_MAX 256          /* beyond it nobody waits for a quiet moment */
#define ASKED_MAX   2            /* so that the nursery need not wait for the next question */
#define PAUSE       USEC_PER_SEC /* after a failure that would only come again */

/* A group without processes. */
struct leaver {
        struct list node;
        uint32_t uid_first;
        bool asked; /* the nursery is at it */
        bool warned;
};

static struct leaver *find(const struct warden *w, bool asked, uint32_t uid_first)
{
        list_for_each (n, &w->leaving.groups) {
                struct leaver *l = container_of(n, struct leaver, node);

                if (l->asked == asked && (uid_first == 0 || l->uid_first == uid_first))
                        return l;
        }
        return NULL;
}

static void drop(struct warden *w, struct leaver *l)
{
        list_remove(&l->node);
        w->leaving.n--;
        w->leaving.asked -= l->asked;
        free(l);
}

static void ask(struct warden *w)
{
        struct leaver *l = find(w, false, 0);
        int r = l ? pool_ask(w, NURSERY_REMOVE, l->uid_first) : 0;

        if (l && r == 0) {
                l->asked = true;
                w->leaving.asked++;
        }
        if (r < 0)
                w->leaving.not_before = clock_mono(&clock_system) + PAUSE;
}

static usec_t patience(const struct warden *w)
{
        return patience_of_pool(WAITING_MAX - MIN_OF(w->leaving.n, (unsigned) WAITING_MAX),
                                WAITING_MAX);
}

void leave_put_off(struct warden *w)
{
        w->leaving.not_before =
                MAX_OF(w->leaving.not_before, clock_mono(&clock_system) + patience(w));
}

void leave_add(struct warden *w, uint32_t uid_first)
{
        struct leaver *l = xnew(struct leaver);

        l->uid_first = uid_first;
        list_append(&w->leaving.groups, &l->node);
        w->leaving.n++;
        leave_put_off(w);
        /* Under a load that has no end there is no idle time either. */
        if (w->leaving.n > WAITING_MAX && w->leaving.asked < ASKED_MAX)
                ask(w);
}

int leave_until(const struct warden *w)
{
        const usec_t now = clock_mono(&clock_system), then = w->leaving.not_before;

        if (w->leaving.n == w->leaving.asked || w->leaving.asked >= ASKED_MAX)
                return -1;
        if (w->room.building > 0 && patience(w) > 0)
                return -1;
        return then <= now ? 0 : (int) ((then - now) / USEC_PER_MSEC) + 1;
}

void leave_next(struct warden *w)
{
        ask(w);
}

/* What can't be removed is tried again: as long as it is there its uids are nobody else's. */
void leave_answered(struct warden *w, uint32_t uid_first, int result)
{
        struct leaver *l = find(w, true, uid_first);

        if (!l)
                return;
        if (result == 0) {
                pool_free_uids(w, uid_first);
                drop(w, l);
                return;
        }
        if (!l->warned)
                (void) log_err(result, w->log, "can't remove the control group of uid %u",
                               uid_first);
        l->warned = true;
        l->asked = false;
        w->leaving.asked--;
        list_remove(&l->node);
        list_append(&w->leaving.groups, &l->node);
        w->leaving.not_before = clock_mono(&clock_system) + PAUSE;
}

void leave_ask_again(struct warden *w)
{
        list_for_each (n, &w->leaving.groups)
                container_of(n, struct leaver, node)->asked = false;
        w->leaving.asked = 0;
}

static int remove_now(struct warden *w, const struct leaver *l)
{
        char name[SEED_GROUP_MAX];

        seed_group_name(l->uid_first, name);
        return w->ground.tree ? cgroup_remove(w->ground.tree, name) : 0;
}

uint32_t leave_now(struct warden *w)
{
        struct leaver *l = find(w, false, 0);
        uint32_t first = 0;

        if (l && remove_now(w, l) == 0) {
                first = l->uid_first;
                drop(w, l);
        }
        return first;
}

void leave_open(struct warden *w)
{
        list_init(&w->leaving.groups);
}

/* The nursery has ended. What stays is found by the next warden. */
void leave_close(struct warden *w)
{
        list_for_each (n, &w->leaving.groups) {
                struct leaver *l = container_of(n, struct leaver, node);

                (void) !remove_now(w, l);
                drop(w, l);
        }
}
