/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "os/cgroup.h"
#include "os/virtual_file.h"

/*
 * Theory of operation.
 *
 * The problem. A removed memory cgroup stays in the kernel, "dying", as long as one page of the page cache is charged to
 * it, and every walk over cgroups visits it. Kernel memory moves to the parent, and pages of deleted files are freed.
 * What remains are pages of others that processes of the cgroup touched first: blocks of the file system, most of all
 * those of directories that were made in it, and files of the image. Without memory pressure they stay for good. On a
 * host that has had many mounts a dying cgroup costs a megabyte: the kernel allocates 1 KiB for every 64 mounted file
 * systems that ever existed at a time, in every memory cgroup.
 *
 * So the pages are reclaimed before the removal. Up to a limit: more than RECLAIM_MAX is likely to be an interpreter and
 * its libraries, which the next sandbox would have to read from the disk again, and be charged with. Those are few,
 * because the next sandbox finds them in the cache.
 *
 * v1 has memory.force_empty for that, and counters that are exact but for some pages that each CPU sets aside. v2 has
 * memory.reclaim, and the number in memory.stat, which lags behind by up to 64 pages per CPU, for two seconds at most.
 * Before Linux 5.19 it has none, and cgroups die slowly.
 */

#define RECLAIM_MAX MiB

static int charged_pages(int dir, bool v2, uint64_t *ret)
{
        uint64_t all = 0, kernel = 0;
        int r;

        if (v2)
                return virtual_file_value_at(dir, "memory.stat", STR("file"), ret);
        r = virtual_file_number_at(dir, "memory.usage_in_bytes", &all);
        if (r == 0)
                r = virtual_file_number_at(dir, "memory.kmem.usage_in_bytes", &kernel);
        if (r == 0)
                *ret = all - MIN_OF(all, kernel);
        return r;
}

int cgroup_reclaim(const struct cgroup_tree *t, const struct cgroup *g)
{
        const bool v2 = t->unified_controls;
        const int dir = g->parts[v2 ? CGROUP_UNIFIED : CGROUP_MEMORY];
        uint64_t bytes = 0;
        char text[32];
        int r = charged_pages(dir, v2, &bytes);

        if (r < 0 || bytes == 0 || bytes > RECLAIM_MAX)
                return r;
        if (!v2)
                return virtual_file_write_at(dir, "memory.force_empty", "0");
        (void) snprintf(text, sizeof(text), "%llu", (unsigned long long) bytes);
        return virtual_file_write_at(dir, "memory.reclaim", text);
}
