/* SPDX-License-Identifier: Apache-2.0 */
#include "os/confine.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/keyctl.h>
#include <linux/seccomp.h>
#include <stddef.h>
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

int confine_clone3(void)
{
        static const struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };

        return confine_seccomp(filter, ARRAY_SIZE(filter));
}

int confine_keyring(void)
{
        if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 && errno != ENOSYS)
                return -errno;
        return 0;
}

int confine_limit(const char *name, rlim_t soft, rlim_t hard)
{
        static const struct {
                const char *name;
                __rlimit_resource_t resource;
        } names[] = {
                { "core", RLIMIT_CORE },
                { "memlock", RLIMIT_MEMLOCK },
                { "msgqueue", RLIMIT_MSGQUEUE },
                { "nice", RLIMIT_NICE },
                { "nofile", RLIMIT_NOFILE },
                { "rtprio", RLIMIT_RTPRIO },
                { "sigpending", RLIMIT_SIGPENDING },
        };
        struct rlimit old, new = { soft, hard };
        size_t i = 0;

        while (i < ARRAY_SIZE(names) && strcmp(names[i].name, name) != 0)
                i++;
        if (i == ARRAY_SIZE(names))
                return -EINVAL;
        if (setrlimit(names[i].resource, &new) == 0)
                return 0;
        if (errno != EPERM || getrlimit(names[i].resource, &old) < 0)
                return -errno;
        new.rlim_max = MIN_OF(new.rlim_max, old.rlim_max);
        new.rlim_cur = MIN_OF(new.rlim_cur, new.rlim_max);
        return setrlimit(names[i].resource, &new) < 0 ? -errno : 0;
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

/* --- capabilities --- */

#define CAPS_MAX 64 /* bits of a set; the kernel returns EINVAL after its last */

static int set_sets(uint64_t permitted)
{
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        const uint32_t low = (uint32_t) permitted, high = (uint32_t) (permitted >> 32);
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {
                { .permitted = low, .effective = low },
                { .permitted = high, .effective = high },
        };

        return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

int caps_bound(uint64_t keep)
{
        for (unsigned i = 0; i < CAPS_MAX; i++) {
                if (keep & CAP_BIT(i))
                        continue;
                if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) < 0)
                        return errno == EINVAL ? 0 : -errno;
        }
        return 0;
}

int caps_reduce(uint64_t keep)
{
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
        int r = caps_bound(keep);

        if (r < 0)
                return r;
        if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0
            || syscall(SYS_capget, &head, data) < 0)
                return -errno;
        return set_sets((data[0].permitted | (uint64_t) data[1].permitted << 32) & keep);
}

int caps_drop(void)
{
        return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ? -errno : set_sets(0);
}
