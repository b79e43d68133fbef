/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_CAPS_GET_H
#define HUTCH_TESTS_LIB_CAPS_GET_H

/* All capability sets of the calling process, as bits. */

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/confine.h"

struct caps {
        uint64_t bounding, permitted, effective, inheritable, ambient;
};

static inline int caps_get(struct caps *ret)
{
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

        *ret = (struct caps){ 0 };
        if (syscall(SYS_capget, &head, data) < 0)
                return -errno;
        ret->permitted = data[0].permitted | (uint64_t) data[1].permitted << 32;
        ret->effective = data[0].effective | (uint64_t) data[1].effective << 32;
        ret->inheritable = data[0].inheritable | (uint64_t) data[1].inheritable << 32;
        for (unsigned i = 0; i < 64; i++) {
                int bounding = prctl(PR_CAPBSET_READ, i, 0, 0, 0);

                if (bounding < 0)
                        break; /* behind the kernel's last */
                if (bounding > 0)
                        ret->bounding |= CAP_BIT(i);
                if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, i, 0, 0) > 0)
                        ret->ambient |= CAP_BIT(i);
        }
        return 0;
}

#endif
