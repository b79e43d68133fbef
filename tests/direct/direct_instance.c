/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/direct/direct_impl.h"

struct instance *instance_get(struct direct *d, struct str id)
{
        struct map_node *n = map_get(&d->instances, id);

        return n ? container_of(n, struct instance, by_id) : NULL;
}

/* --- its end --- */

static void poll_closed(uv_handle_t *h)
{
        struct instance *b = container_of((uv_poll_t *) h, struct instance, poll);
        struct direct *d = b->d;

        (void) fd_close(b->pidfd);
        free(b);
        d->open--;
        direct__close_go_on(d);
}

void instance_forget(struct instance *b)
{
        map_remove(&b->d->instances, &b->by_id);
        list_remove(&b->node);
        uv_close((uv_handle_t *) &b->poll, poll_closed);
}

static void supervisor_ended(uv_poll_t *poll, int status, int events)
{
        struct instance *b = container_of(poll, struct instance, poll);
        struct driver_health how;
        siginfo_t info;
        char message[128];

        (void) waitid(P_PIDFD, (id_t) b->pidfd, &info, WEXITED | WNOHANG); /* if it is our child */
        instance_forget(b);
        if (b->ended) {
                b->ended(b);
        } else if (!b->quiet) {
                how = dir_health(b->d, str_from(b->id), message);
                driver_notify_died(&b->d->driver, str_from(b->id), &how);
        }
}

int instance_watch(struct direct *d, struct str id, pid_t pid, int pidfd, struct instance **ret)
{
        struct instance *b = xnew(struct instance);
        int r;

        b->d = d;
        b->pid = pid;
        b->pidfd = pidfd;
        (void) snprintf(b->id, sizeof(b->id), "%.*s", STR_ARG(id));
        r = uv_poll_init(&d->driver.loop->uv, &b->poll, pidfd);
        if (r < 0) {
                (void) fd_close(pidfd);
                free(b);
                return r;
        }
        (void) uv_poll_start(&b->poll, UV_READABLE, supervisor_ended);
        map_add(&d->instances, &b->by_id, str_from(b->id));
        list_append(&d->all_instances, &b->node);
        d->open++;
        *ret = b;
        return 0;
}

/* --- finding it --- */

/* Locks of an open file, not of our process: those would be gone when any other descriptor of the file
 * is closed. Both kinds keep each other out. */
static int lock_holder(int fd, pid_t *ret)
{
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

        if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
                return -errno;
        *ret = lock.l_type == F_UNLCK ? 0 : lock.l_pid;
        return 0;
}

/* 1: the holder, by a descriptor that can't mean another process; 0: now we hold it; -EAGAIN: the
 * holder has changed meanwhile. */
static int find_supervisor(int fd, pid_t *ret_pid, int *ret_pidfd)
{
        struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        scoped(fd_closep) int pidfd = -EBADF;
        pid_t before = 0, after = 0;
        int r = lock_holder(fd, &before);

        if (r < 0)
                return r;
        if (before <= 0)
                return fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
        pidfd = pidfd_open(before, 0);
        if (pidfd < 0)
                return errno == ESRCH ? -EAGAIN : -errno;
        r = lock_holder(fd, &after);
        if (r < 0 || before != after)
                return r < 0 ? r : -EAGAIN;
        *ret_pid = before;
        *ret_pidfd = TAKE_FD(pidfd);
        return 1;
}

int instance_adopt(struct direct *d, struct str id, struct instance **ret, int *ret_lock)
{
        scoped(fd_closep) int dir = -EBADF, fd = -EBADF;
        struct instance *known = instance_get(d, id);
        int r, pidfd = -EBADF;
        pid_t pid = 0;

        if (known) {
                *ret = known;
                return 1;
        }
        r = dir_open(d, id, &dir);
        if (r < 0)
                return r;
        fd = openat(dir, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        /* Whose lock was removed has ended, or is ending. */
        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        do
                r = find_supervisor(fd, &pid, &pidfd);
        while (r == -EAGAIN);
        if (r > 0) {
                r = instance_watch(d, id, pid, pidfd, ret);
                return r < 0 ? r : 1;
        }
        if (r == 0 && ret_lock)
                *ret_lock = TAKE_FD(fd);
        return r;
}
