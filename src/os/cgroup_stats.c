/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cgroup_stats.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/virtual_file.h"

#define TEXT_MAX (8 * KiB)

/* A file that is not there counts nothing. */
static ssize_t get(int dir, const char *file, char ret[static TEXT_MAX])
{
        scoped(fd_closep) int fd = openat(dir, file, O_RDONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
                return errno == ENOENT || errno == EBADF ? 0 : -errno;
        n = read(fd, ret, TEXT_MAX - 1);
        return n < 0 ? -errno : n;
}

static int get_number(int dir, const char *file, uint64_t *ret)
{
        char text[TEXT_MAX];
        ssize_t n = get(dir, file, text);

        if (n <= 0)
                return (int) n;
        if (text[n - 1] == '\n')
                n--;
        return parse_u64_max(str_of(text, (size_t) n), UINT64_MAX, ret);
}

static int get_value(int dir, const char *file, struct str key, uint64_t *ret)
{
        char text[TEXT_MAX];
        ssize_t n = get(dir, file, text);
        int r;

        if (n <= 0)
                return (int) n;
        r = virtual_file_value(str_of(text, (size_t) n), key, ret);
        return r == -ENODATA ? 0 : r;
}

static int count_memory(int dir, bool unified, struct cgroup_stats *c)
{
        uint64_t cached = 0;
        int r = get_number(dir, unified ? "memory.current" : "memory.usage_in_bytes", &c->memory);

        if (r == 0)
                r = get_value(dir, "memory.stat",
                              unified ? STR("inactive_file") : STR("total_inactive_file"), &cached);
        c->memory -= MIN_OF(c->memory, cached);
        if (r < 0)
                return r;
        return get_value(dir, unified ? "memory.events" : "memory.oom_control", STR("oom_kill"),
                         &c->oom_kills);
}

/* The unified hierarchy counts time whether it has a controller of processors or not. */
static int count_cpu(const struct cgroup *g, struct cgroup_stats *c)
{
        uint64_t nsec = 0;
        int r;

        if (g->parts[CGROUP_UNIFIED] >= 0)
                return get_value(g->parts[CGROUP_UNIFIED], "cpu.stat", STR("usage_usec"),
                                 &c->cpu_usec);
        r = get_number(g->parts[CGROUP_CPU], "cpuacct.usage", &nsec);
        c->cpu_usec = nsec / 1000;
        return r;
}

int cgroup_stats(const struct cgroup_tree *t, const struct cgroup *g, struct cgroup_stats *ret)
{
        const bool v2 = t->unified_controls;
        struct cgroup_stats c = { 0 };
        int r = count_cpu(g, &c);

        if (r == 0)
                r = count_memory(g->parts[v2 ? CGROUP_UNIFIED : CGROUP_MEMORY], v2, &c);
        if (r == 0)
                r = get_number(g->parts[v2 ? CGROUP_UNIFIED : CGROUP_PIDS], "pids.current",
                               &c.processes);
        if (r == 0)
                *ret = c;
        return r;
}
