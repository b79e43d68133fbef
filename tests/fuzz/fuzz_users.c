/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/users.h"

/* One text as both files: what is found by number is found by its name, too. */

static void check_user(const struct users *u, uint32_t uid)
{
        gid_t groups[4];
        struct user by_id, by_name;
        size_t n;

        if (!users_by_id(u, uid, &by_id))
                return;
        ASSERT(by_id.uid == uid && by_id.gid != USERS_ID_NONE && by_id.name.n > 0);
        ASSERT(!memchr(by_id.name.p, ':', by_id.name.n));
        ASSERT(!memchr(by_id.home.p, '\0', by_id.home.n));
        ASSERT(users_by_name(u, by_id.name, &by_name));
        ASSERT(str_eq(by_name.name, by_id.name));
        n = users_groups(u, &by_id, groups, ARRAY_SIZE(groups));
        ASSERT(n >= 1 && n <= ARRAY_SIZE(groups) && groups[0] == by_id.gid);
}

static void check_group(const struct users *u, uint32_t gid)
{
        struct str name = users_group_name(u, gid);
        uint32_t again;

        ASSERT(!name.p || users_gid_from_text(u, name, &again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        scoped(fd_closep) int fd = memfd_create("users", MFD_CLOEXEC);
        struct users *u;
        char path[32];

        ASSERT(fd >= 0 && write(fd, p, n) == (ssize_t) n);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        u = users_new(path, path);
        users_refresh(u);
        for (uint32_t id = 0; id < 12; id++) {
                check_user(u, id);
                check_group(u, id);
        }
        users_free(u);
        return 0;
}
