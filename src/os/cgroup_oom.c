/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cgroup_oom.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/virtual_file.h"

#define TEXT_MAX 1024

/* Reading it from its beginning is also what makes it ready again. */
static uint64_t read_kills(int fd)
{
        char text[TEXT_MAX];
        uint64_t kills = 0;
        ssize_t n = pread(fd, text, sizeof(text), 0);

        if (n > 0 && virtual_file_value(str_of(text, (size_t) n), STR("oom_kill"), &kills) < 0)
                kills = 0;
        return kills;
}

static int open_unified(int dir, struct cgroup_oom *ret)
{
        int fd = openat(dir, "memory.events", O_RDONLY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        *ret = (struct cgroup_oom){ fd, POLLPRI, read_kills(fd) };
        return 0;
}

/* The kernel looks at the second descriptor only while it is told of it. */
static int open_v1(int dir, struct cgroup_oom *ret)
{
        scoped(fd_closep) int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        scoped(fd_closep) int about = openat(dir, "memory.oom_control", O_RDONLY | O_CLOEXEC);
        scoped(fd_closep) int control = openat(dir, "cgroup.event_control", O_WRONLY | O_CLOEXEC);
        char text[32];
        int n;

        if (event < 0 || about < 0 || control < 0)
                return -errno;
        n = snprintf(text, sizeof(text), "%d %d", event, about);
        if (write(control, text, (size_t) n) < 0)
                return -errno;
        *ret = (struct cgroup_oom){ TAKE_FD(event), POLLIN, 0 };
        return 0;
}

int cgroup_oom_open(const struct cgroup_tree *t, const struct cgroup *g, struct cgroup_oom *ret)
{
        return t->unified_controls ? open_unified(g->parts[CGROUP_UNIFIED], ret)
                                   : open_v1(g->parts[CGROUP_MEMORY], ret);
}

void cgroup_oom_close(struct cgroup_oom *o)
{
        o->fd = fd_close(o->fd);
}

/* The kernel also writes to an eventfd when the group is removed: nobody waits for it by then. */
bool cgroup_oom_happened(struct cgroup_oom *o)
{
        uint64_t n = 0;

        if (o->events == POLLIN)
                return read(o->fd, &n, sizeof(n)) == sizeof(n) && n > 0;
        n = o->kills;
        o->kills = read_kills(o->fd);
        return o->kills > n;
}
