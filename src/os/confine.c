/* SPDX-License-Identifier: Apache-2.0 */
#include "os/confine.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"

int confine_no_new_privs(void)
{
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int confine_seccomp(const struct sock_filter *filter, size_t n)
{
        struct sock_fprog prog = { (unsigned short) n, (struct sock_filter *) (uintptr_t) filter };

        if (n == 0 || n > BPF_MAXINSNS)
                return -EINVAL;
        return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0 ? -errno : 0;
}

int confine_keyring(void)
{
        if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
                return -errno;
        return 0;
}

static int set_limit(const struct confine_limit *l)
{
        struct rlimit old, new = { l->soft, l->hard };

        if (setrlimit((__rlimit_resource_t) l->resource, &new) == 0)
                return 0;
        if (errno != EPERM || getrlimit((__rlimit_resource_t) l->resource, &old) < 0)
                return -errno;
        new.rlim_max = MIN_OF(new.rlim_max, old.rlim_max);
        new.rlim_cur = MIN_OF(new.rlim_cur, new.rlim_max);
        return setrlimit((__rlimit_resource_t) l->resource, &new) < 0 ? -errno : 0;
}

int confine_limits(const struct confine_limit *limits, size_t n)
{
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++)
                r = set_limit(&limits[i]);
        return r;
}

/* First all out of the way, because one may have the number of another. dup2 clears close-on-exec. */
int confine_descriptors(int *fds, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                fds[i] = fcntl(fds[i], F_DUPFD, (int) n);
                if (fds[i] < 0)
                        return -errno;
        }
        for (size_t i = 0; i < n; i++)
                if (dup2(fds[i], (int) i) < 0)
                        return -errno;
        return syscall(SYS_close_range, (unsigned) n, ~0U, CLOSE_RANGE_CLOEXEC) < 0 ? -errno : 0;
}
