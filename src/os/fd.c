/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fd.h"

#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"

int fd_close(int fd)
{
        if (fd >= 0) {
                int saved = errno;

                /* Linux frees the descriptor even when close reports EINTR: never try again. */
                (void) close(fd);
                errno = saved;
        }
        return -EBADF;
}

void fd_closep(int *fd)
{
        *fd = fd_close(*fd);
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
