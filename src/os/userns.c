/* SPDX-License-Identifier: Apache-2.0 */
#include "os/userns.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "os/clone.h"
#include "os/fd.h"
#include "os/virtual_file.h"

#define PROC_PATH_MAX 64

/* --- in the child --- */

/* It keeps its capabilities across the change of ids: some kernels let only privileged processes create
 * user namespaces. Then it waits until the parent's end of the socket is closed: a parent death signal
 * is reset when ids change. */
never_returns static void child(uint32_t first, int socket)
{
        char nothing;
        int r = 0;

        if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0
            || syscall(SYS_setresgid, -1, first, -1) < 0
            || syscall(SYS_setresuid, -1, first, -1) < 0 || unshare(CLONE_NEWUSER) < 0)
                r = -errno;
        if (send(socket, &r, sizeof(r), MSG_NOSIGNAL) != sizeof(r))
                _exit(1);
        _exit(read(socket, &nothing, sizeof(nothing)) == 0 ? 0 : 1);
}

/* --- in the parent --- */

static int write_map(pid_t pid, const char *name, const struct userns_range *range)
{
        char path[PROC_PATH_MAX], text[64];

        (void) snprintf(text, sizeof(text), "0 %u %u\n", range->first, range->count);
        (void) snprintf(path, sizeof(path), "/proc/%d/%s", (int) pid, name);
        return virtual_file_write_at(AT_FDCWD, path, text);
}

static int take(pid_t pid, int ready, const struct userns_range *range, int *ret_fd)
{
        char path[PROC_PATH_MAX];
        int fd, r;

        if (read(ready, &r, sizeof(r)) != sizeof(r))
                return -ECHILD;
        if (r == 0)
                r = write_map(pid, "uid_map", range);
        if (r == 0)
                r = write_map(pid, "gid_map", range);
        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), "/proc/%d/ns/user", (int) pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

int userns_make(const struct userns_range *range, int *ret_fd)
{
        scoped(fd_closep) int pidfd = -EBADF, theirs = -EBADF, ours = -EBADF, fd = -EBADF;
        int pair[2], status, ended, r;
        pid_t pid;

        if (range->first == 0 || range->count == 0 || range->count > UINT32_MAX - range->first)
                return -EINVAL;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        theirs = pair[1];
        pid = clone_child(&(struct clone_child){ .cgroup = -EBADF }, &pidfd);
        if (pid < 0)
                return pid;
        if (pid == 0) {
                (void) fd_close(ours);
                child(range->first, theirs);
        }
        (void) fd_close(TAKE_FD(theirs)); /* so that the death of the child is an end of file */
        r = take(pid, ours, range, &fd);
        ended = pidfd_kill(pidfd, SIGKILL);
        if (ended == 0)
                ended = pidfd_wait(pidfd, &status);
        if (r == 0)
                r = ended;
        if (r == 0)
                *ret_fd = TAKE_FD(fd);
        return r;
}

/* The ids are set after entering, because they are those of the namespace. Raw system calls: glibc's
 * functions would signal threads, of which there are none. */
int userns_enter(int fd)
{
        if (setns(fd, CLONE_NEWUSER) < 0 || syscall(SYS_setgroups, 0, NULL) < 0
            || syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
                return -errno;
        return 0;
}
