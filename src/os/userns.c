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

/* Limits of the namespace that the caller is in. The kernel counts before it makes anything. */
static int forbid_namespaces(void)
{
        static const char *const kinds[] = { "cgroup", "ipc",  "mnt",  "net",
                                             "pid",    "time", "user", "uts" };
        char path[PROC_PATH_MAX];
        int r = 0;

        for (size_t i = 0; i < ARRAY_SIZE(kinds) && r == 0; i++) {
                (void) snprintf(path, sizeof(path), "/proc/sys/user/max_%s_namespaces", kinds[i]);
                r = virtual_file_write_at(AT_FDCWD, path, "0");
        }
        return r;
}

/* It keeps its capabilities across the change of ids: some kernels let only privileged processes create
 * user namespaces. Then it waits until the parent's end of the socket is closed: a parent death signal
 * is reset when ids change.
 *
 * A cgroup namespace shows what is below the cgroups it is made in. This process makes it, because the
 * sandbox's own first process is never in the directory that becomes its root. */
never_returns static void child(uint32_t first, const struct cgroup *group, int socket)
{
        char nothing;
        int r = group ? cgroup_join(group) : 0;

        if (r == 0 && group && unshare(CLONE_NEWCGROUP) < 0)
                r = -errno;
        if (r == 0
            && (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP) < 0
                || syscall(SYS_setresgid, -1, first, -1) < 0
                || syscall(SYS_setresuid, -1, first, -1) < 0 || unshare(CLONE_NEWUSER) < 0))
                r = -errno;
        if (r == 0 && group)
                r = forbid_namespaces();
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

static int open_namespace(pid_t pid, const char *name, int *ret_fd)
{
        char path[PROC_PATH_MAX];

        (void) snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int) pid, name);
        *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
        return *ret_fd < 0 ? -errno : 0;
}

static int take(pid_t pid, int ready, const struct userns_range *range, int *ret_fd,
                int *ret_cgroupns)
{
        int r;

        if (read(ready, &r, sizeof(r)) != sizeof(r))
                return -ECHILD;
        if (r == 0)
                r = write_map(pid, "uid_map", range);
        if (r == 0)
                r = write_map(pid, "gid_map", range);
        if (r == 0)
                r = open_namespace(pid, "user", ret_fd);
        return r == 0 && ret_cgroupns ? open_namespace(pid, "cgroup", ret_cgroupns) : r;
}

static int make(const struct userns_range *range, const struct cgroup *group, int *ret_fd,
                int *ret_cgroupns)
{
        const struct clone_child how = { .cgroup = group ? group->parts[CGROUP_UNIFIED] : -EBADF };
        scoped(fd_closep) int pidfd = -EBADF, theirs = -EBADF, ours = -EBADF, fd = -EBADF,
                              cgroupns = -EBADF;
        int pair[2], status, ended, r;
        pid_t pid;

        if (range->first == 0 || range->count == 0 || range->count > UINT32_MAX - range->first)
                return -EINVAL;
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        theirs = pair[1];
        pid = clone_child(&how, &pidfd);
        if (pid < 0)
                return pid;
        if (pid == 0) {
                (void) fd_close(ours);
                child(range->first, group, theirs);
        }
        (void) fd_close(TAKE_FD(theirs)); /* so that the death of the child is an end of file */
        r = take(pid, ours, range, &fd, group ? &cgroupns : NULL);
        ended = pidfd_kill(pidfd, SIGKILL);
        if (ended == 0)
                ended = pidfd_wait(pidfd, &status);
        if (r == 0)
                r = ended;
        if (r < 0)
                return r;
        *ret_fd = TAKE_FD(fd);
        if (ret_cgroupns)
                *ret_cgroupns = TAKE_FD(cgroupns);
        return 0;
}

int userns_make(const struct userns_range *range, int *ret_fd)
{
        return make(range, NULL, ret_fd, NULL);
}

int userns_make_sandbox(const struct userns_range *range, const struct cgroup *group, int *ret_fd,
                        int *ret_cgroupns)
{
        return make(range, group, ret_fd, ret_cgroupns);
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
