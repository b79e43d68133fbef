/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fd.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"

int fd_close(int fd)
{
        if (fd >= 0) {
                int saved = errno;

                /* Linux frees the descriptor even when close reports EINTR: never retry. */
                (void) close(fd);
                errno = saved;
        }
        return -EBADF;
}

void fd_closep(int *fd)
{
        *fd = fd_close(*fd);
}

/* First all out of the way, because one may have the number of another. */
int fd_keep_only(int *const *fds, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                int fd = fcntl(*fds[i], F_DUPFD_CLOEXEC, (int) n + 3);

                if (fd < 0)
                        return -errno;
                *fds[i] = fd;
        }
        for (size_t i = 0; i < n; i++) {
                if (dup3(*fds[i], (int) i + 3, O_CLOEXEC) < 0)
                        return -errno;
                *fds[i] = (int) i + 3;
        }
        return syscall(SYS_close_range, (unsigned) n + 3, ~0U, 0) < 0 ? -errno : 0;
}

int64_t fd_limit_raise(void)
{
        struct rlimit lim;

        if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
                return -errno;
        if (lim.rlim_cur < lim.rlim_max) {
                lim.rlim_cur = lim.rlim_max;
                if (setrlimit(RLIMIT_NOFILE, &lim) < 0)
                        return -errno;
        }
        return lim.rlim_cur > INT32_MAX ? INT32_MAX : (int64_t) lim.rlim_cur;
}
