/* SPDX-License-Identifier: Apache-2.0 */
#include "os/caps.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"

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
