/* SPDX-License-Identifier: Apache-2.0 */
#include "os/caps.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"

#define CAPS_MAX 64 /* bits of a set; the kernel says EINVAL behind its last */

static int get_sets(struct caps *ret)
{
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

        if (syscall(SYS_capget, &head, data) < 0)
                return -errno;
        ret->permitted = data[0].permitted | (uint64_t) data[1].permitted << 32;
        ret->effective = data[0].effective | (uint64_t) data[1].effective << 32;
        ret->inheritable = data[0].inheritable | (uint64_t) data[1].inheritable << 32;
        return 0;
}

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

int caps_get(struct caps *ret)
{
        struct caps c = { 0 };
        int r = get_sets(&c);

        if (r < 0)
                return r;
        for (unsigned i = 0; i < CAPS_MAX; i++) {
                int bounding = prctl(PR_CAPBSET_READ, i, 0, 0, 0);

                if (bounding < 0)
                        break;
                if (bounding > 0)
                        c.bounding |= CAP_BIT(i);
                if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, i, 0, 0) > 0)
                        c.ambient |= CAP_BIT(i);
        }
        *ret = c;
        return 0;
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
        struct caps c = { 0 };
        int r = caps_bound(keep);

        if (r == 0 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
                r = -errno;
        if (r == 0)
                r = get_sets(&c);
        return r < 0 ? r : set_sets(c.permitted & keep);
}

int caps_drop(void)
{
        return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ? -errno : set_sets(0);
}
