/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "warden/refill.h"
#include "warden/warden_impl.h"

#define WAITING_MAX   256          /* more than that do not wait for an idle moment */
#define REQUESTED_MAX 2            /* so that the zygote server always has the next one at hand */
#define PAUSE         USEC_PER_SEC /* after a failure, which is likely to happen again */

/* The empty cgroup of a destroyed instance. */
struct removal {
        struct list node;
        uint32_t uid_first;
        bool requested; /* from the zygote server */
        bool warned;
};

/* The oldest; uid_first 0: any. */
static struct removal *find(const struct warden *w, bool requested, uint32_t uid_first)
{
        list_for_each (n, &w->removals.list) {
                struct removal *l = container_of(n, struct removal, node);

                if (l->requested == requested && (uid_first == 0 || l->uid_first == uid_first))
                        return l;
        }
        return NULL;
}

static void drop(struct warden *w, struct removal *l)
{
        list_remove(&l->node);
        w->removals.n--;
        w->removals.requested -= l->requested;
        free(l);
}

void removal_next(struct warden *w)
{
        struct removal *l = find(w, false, 0);
        int r = l ? zygote_pool_request(w, ZYGOTE_SERVER_REMOVE, l->uid_first) : 0;

        if (l && r == 0) {
                l->requested = true;
                w->removals.requested++;
        }
        if (r < 0)
                w->removals.not_before = clock_mono(&clock_system) + PAUSE;
}

static usec_t delay(const struct warden *w)
{
        return refill_delay(WAITING_MAX - MIN_OF(w->removals.n, (unsigned) WAITING_MAX),
                            WAITING_MAX);
}

void removal_defer(struct warden *w)
{
        w->removals.not_before =
                MAX_OF(w->removals.not_before, clock_mono(&clock_system) + delay(w));
}

void removal_add(struct warden *w, uint32_t uid_first)
{
        struct removal *l = xnew(struct removal);

        l->uid_first = uid_first;
        list_append(&w->removals.list, &l->node);
        w->removals.n++;
        removal_defer(w);
        /* A load that never pauses leaves no idle time. */
        if (w->removals.n > WAITING_MAX && w->removals.requested < REQUESTED_MAX)
                removal_next(w);
}

int removal_timeout(const struct warden *w)
{
        if (w->removals.n == w->removals.requested || w->removals.requested >= REQUESTED_MAX)
                return -1;
        return refill_timeout(MAX_OF(w->removals.not_before, delay(w) > 0 ? busy_until(w) : 0));
}

/* A cgroup that can't be removed is tried again; until then its uid range stays in use. */
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
                (void) log_err(result, w->log, "can't remove the cgroup of uid %u", uid_first);
        l->warned = true;
        l->requested = false;
        w->removals.requested--;
        list_remove(&l->node);
        list_append(&w->removals.list, &l->node);
        w->removals.not_before = clock_mono(&clock_system) + PAUSE;
}

void removal_retry_all(struct warden *w)
{
        list_for_each (n, &w->removals.list)
                container_of(n, struct removal, node)->requested = false;
        w->removals.requested = 0;
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

/* The zygote server has exited. The next warden finds what can't be removed. */
void removal_close(struct warden *w)
{
        list_for_each (n, &w->removals.list) {
                struct removal *l = container_of(n, struct removal, node);

                (void) !remove_now(w, l);
                drop(w, l);
        }
}
