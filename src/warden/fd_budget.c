/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/resource.h>

#include "base/base.h"
#include "warden/warden_impl.h"

/* A zygote has its pidfd, its socket and its cgroups; an instance that is being built also a record, a
 * report and a network namespace. */
#define OURS              64
#define ZYGOTE_FDS_NEEDED (CGROUP_PART_MAX_ + 2)
#define BUILD_FDS_NEEDED  (ZYGOTE_FDS_NEEDED + 3)

/* For a page of scan, for replies, and for what is opened for a moment. */
#define RESERVE 256

/* Read each time: an administrator may raise it meanwhile (prlimit(1)). */
static uint64_t fd_limit(void)
{
        struct rlimit l;

        return getrlimit(RLIMIT_NOFILE, &l) < 0 ? 1024 : (uint64_t) l.rlim_cur;
}

/* Counted: before Linux 6.2 the kernel can only list them all. */
static uint64_t in_use(const struct warden *w)
{
        uint64_t n = OURS + w->instances.n + w->fds.watched
                     + (uint64_t) w->pool.n * ZYGOTE_FDS_NEEDED
                     + w->fds.building * BUILD_FDS_NEEDED;

        for (size_t i = 0; i < NETNS_KINDS; i++)
                n += w->network.kinds[i].n;
        return n;
}

int fd_budget_check(const struct warden *w, struct err *e)
{
        const uint64_t max = fd_limit();
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
        const uint64_t max = fd_limit();

        return (uint64_t) (w->pool.n + 1) * ZYGOTE_FDS_NEEDED <= max / 4
               && in_use(w) + ZYGOTE_FDS_NEEDED + BUILD_FDS_NEEDED + RESERVE <= max;
}

bool fd_budget_has_watch(const struct warden *w)
{
        const uint64_t max = fd_limit();

        return w->fds.watched < max / 4 && in_use(w) + BUILD_FDS_NEEDED + RESERVE < max;
}
