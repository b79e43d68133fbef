/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/resource.h>

#include "base/base.h"
#include "warden/warden_impl.h"

/* What each needs. A zygote has its process, its socket and its groups; one that is being made also a
 * record, a report and a network. */
#define OURS              64
#define ZYGOTE_FDS_NEEDED (CGROUP_PART_MAX_ + 2)
#define BUILD_FDS_NEEDED  (ZYGOTE_FDS_NEEDED + 3)

/* For a page of scan, for answers, and for what is opened for a moment. */
#define RESERVE 256

/* Looked up each time: an administrator may raise it while we run (prlimit(1)). */
static uint64_t limit(void)
{
        struct rlimit l;

        return getrlimit(RLIMIT_NOFILE, &l) < 0 ? 1024 : (uint64_t) l.rlim_cur;
}

/* Counted, not looked up: before Linux 6.2 the kernel tells it only by listing them all. */
static uint64_t in_use(const struct warden *w)
{
        uint64_t n = OURS + w->instances.n + w->fd_budget.watched
                     + (uint64_t) w->pool.n * ZYGOTE_FDS_NEEDED
                     + w->fd_budget.building * BUILD_FDS_NEEDED;

        for (size_t i = 0; i < NETNS_KINDS; i++)
                n += w->network.kinds[i].n;
        return n;
}

/* Whoever gets a zygote that is there needs only the rest. */
int fd_budget_check(const struct warden *w, struct err *e)
{
        const uint64_t max = limit();
        const unsigned more = BUILD_FDS_NEEDED - (w->pool.n > 0 ? ZYGOTE_FDS_NEEDED : 0);

        if (in_use(w) + more + RESERVE <= max)
                return 0;
        return err_set(e, ERR_EXHAUSTED,
                       "hutch-warden may have %llu files open, which is as many as %zu sandboxes "
                       "need: raise LimitNOFILE= of the service, or the hard limit (ulimit -Hn) "
                       "it is started with",
                       (unsigned long long) max, w->instances.n);
}

bool fd_budget_has_zygote(const struct warden *w)
{
        const uint64_t max = limit();

        return (uint64_t) (w->pool.n + 1) * ZYGOTE_FDS_NEEDED <= max / 4
               && in_use(w) + ZYGOTE_FDS_NEEDED + BUILD_FDS_NEEDED + RESERVE <= max;
}

bool fd_budget_has_watch(const struct warden *w)
{
        const uint64_t max = limit();

        return w->fd_budget.watched < max / 4 && in_use(w) + BUILD_FDS_NEEDED + RESERVE < max;
}
