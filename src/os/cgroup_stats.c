/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base.h"
#include "os/cgroup.h"
#include "os/fd.h"
#include "os/virtual_file.h"

#define EVENTS_MAX 1024 /* bytes of memory.events */

/* --- usage --- */

/* A file or a line that is missing counts nothing. */
static int optional(int r)
{
        return r == -ENOENT || r == -EBADF || r == -ENODATA ? 0 : r;
}

static int get_number(int dir, const char *file, uint64_t *ret)
{
        return optional(virtual_file_number_at(dir, file, ret));
}

static int get_value(int dir, const char *file, struct str key, uint64_t *ret)
{
        return optional(virtual_file_value_at(dir, file, key, ret));
}

int cgroup_stats(const struct cgroup_tree *t, const struct cgroup *g, struct cgroup_stats *ret)
{
        const bool v2 = t->unified_controls;
        const int top = g->parts[CGROUP_UNIFIED], commands = g->parts[CGROUP_COMMANDS],
                  memory = v2 ? commands : g->parts[CGROUP_MEMORY];
        struct cgroup_stats c = { 0 };
        uint64_t cached = 0, cpu_nsec = 0;
        int r;

        /* v2 counts CPU time with or without a CPU controller. */
        if (top >= 0) {
                r = get_value(top, "cpu.stat", STR("usage_usec"), &c.cpu_usec);
        } else {
                r = get_number(g->parts[CGROUP_CPU], "cpuacct.usage", &cpu_nsec);
                c.cpu_usec = cpu_nsec / 1000;
        }
        if (r == 0)
                r = get_number(memory, v2 ? "memory.current" : "memory.usage_in_bytes", &c.memory);
        if (r == 0)
                r = get_value(memory, "memory.stat",
                              v2 ? STR("inactive_file") : STR("total_inactive_file"), &cached);
        c.memory -= MIN_OF(c.memory, cached);
        if (r == 0)
                r = get_value(memory, v2 ? "memory.events" : "memory.oom_control", STR("oom_kill"),
                              &c.oom_kills);
        if (r == 0)
                r = get_number(v2 ? commands : g->parts[CGROUP_PIDS], "pids.current", &c.processes);
        if (r == 0)
                *ret = c;
        return r;
}

/* --- the OOM killer --- */

/* Reading the file from its beginning also makes it ready again. */
static uint64_t read_kills(int fd)
{
        char text[EVENTS_MAX];
        uint64_t kills = 0;
        ssize_t n = pread(fd, text, sizeof(text), 0);

        if (n > 0 && virtual_file_value(str_of(text, (size_t) n), STR("oom_kill"), &kills) < 0)
                kills = 0;
        return kills;
}

int cgroup_oom_open(const struct cgroup_tree *t, const struct cgroup *g, struct cgroup_oom *ret)
{
        const int memory = g->parts[CGROUP_MEMORY];
        scoped(fd_closep) int event = -EBADF, about = -EBADF;
        char text[32];
        int fd, r;

        if (t->unified_controls) {
                fd = openat(g->parts[CGROUP_COMMANDS], "memory.events", O_RDONLY | O_CLOEXEC);
                if (fd < 0)
                        return -errno;
                *ret = (struct cgroup_oom){ fd, POLLPRI, read_kills(fd) };
                return 0;
        }
        /* The kernel uses the second descriptor only during this registration. */
        event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (event >= 0)
                about = openat(memory, "memory.oom_control", O_RDONLY | O_CLOEXEC);
        if (event < 0 || about < 0)
                return -errno;
        (void) snprintf(text, sizeof(text), "%d %d", event, about);
        r = virtual_file_write_at(memory, "cgroup.event_control", text);
        if (r == 0)
                *ret = (struct cgroup_oom){ TAKE_FD(event), POLLIN, 0 };
        return r;
}

void cgroup_oom_close(struct cgroup_oom *o)
{
        o->fd = fd_close(o->fd);
}

/* The kernel also writes to an eventfd when the cgroup is removed; it is not watched any more then. */
bool cgroup_oom_happened(struct cgroup_oom *o)
{
        uint64_t n = 0;

        if (o->events == POLLIN)
                return read(o->fd, &n, sizeof(n)) == sizeof(n) && n > 0;
        n = o->kills;
        o->kills = read_kills(o->fd);
        return o->kills > n;
}

bool cgroup_was_full(const struct cgroup_tree *t, const struct cgroup *g)
{
        const int dir = g->parts[CGROUP_MEMORY];
        uint64_t limit, most;

        if (t->unified_controls || virtual_file_number_at(dir, "memory.limit_in_bytes", &limit) < 0
            || virtual_file_number_at(dir, "memory.max_usage_in_bytes", &most) < 0)
                return true;
        return most >= limit - limit / 64;
}
