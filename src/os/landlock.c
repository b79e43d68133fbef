/* SPDX-License-Identifier: Apache-2.0 */
#include "os/landlock.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

/* As in <linux/landlock.h> of Linux 6.12; the headers of a build may be older. */
#define FS_EXECUTE     (1ULL << 0)
#define FS_WRITE_FILE  (1ULL << 1)
#define FS_READ_FILE   (1ULL << 2)
#define FS_READ_DIR    (1ULL << 3)
#define FS_REMOVE_DIR  (1ULL << 4)
#define FS_REMOVE_FILE (1ULL << 5)
#define FS_MAKE_DIR    (1ULL << 7)
#define FS_MAKE_REG    (1ULL << 8)
#define FS_MAKE_SOCK   (1ULL << 9)
#define FS_REFER       (1ULL << 13)
#define FS_TRUNCATE    (1ULL << 14)
#define FS_IOCTL_DEV   (1ULL << 15)
#define FS_OF_FILES    (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

#define NET_BIND_TCP    (1ULL << 0)
#define NET_CONNECT_TCP (1ULL << 1)

#define SCOPE_ABSTRACT (1ULL << 0)
#define SCOPE_SIGNAL   (1ULL << 1)

#define GET_VERSION 1U
#define RULE_PATH   1
#define RULE_PORT   2

#define ABI_REFER    2
#define ABI_TRUNCATE 3
#define ABI_NET      4
#define ABI_IOCTL    5
#define ABI_SCOPE    6

struct ruleset_attr {
        uint64_t fs, net, scoped;
};

struct path_attr {
        uint64_t access;
        int32_t parent;
};

struct port_attr {
        uint64_t access, port;
};

unsigned landlock_abi(void)
{
        long r = syscall(SYS_landlock_create_ruleset, NULL, 0, GET_VERSION);

        return r > 0 ? (unsigned) r : 0;
}

/* Rights that the kernel knows: a rule set with another one is refused. */
static uint64_t fs_known(unsigned abi)
{
        uint64_t known = FS_REFER - 1;

        if (abi >= ABI_REFER)
                known |= FS_REFER;
        if (abi >= ABI_TRUNCATE)
                known |= FS_TRUNCATE;
        if (abi >= ABI_IOCTL)
                known |= FS_IOCTL_DEV;
        return known;
}

int landlock_open(struct landlock *l, unsigned scopes)
{
        const unsigned abi = landlock_abi();
        struct ruleset_attr attr = { .fs = fs_known(abi) };
        long fd;

        if (abi == 0)
                return -EOPNOTSUPP;
        if (abi >= ABI_NET)
                attr.net = (scopes & LANDLOCK_BIND ? NET_BIND_TCP : 0)
                           | (scopes & LANDLOCK_CONNECT ? NET_CONNECT_TCP : 0);
        if (abi >= ABI_SCOPE)
                attr.scoped = (scopes & LANDLOCK_SIGNALS ? SCOPE_SIGNAL : 0)
                              | (scopes & LANDLOCK_ABSTRACT ? SCOPE_ABSTRACT : 0);
        /* An older kernel accepts a larger structure if what it does not know is zero. */
        fd = syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
        if (fd < 0)
                return -errno;
        *l = (struct landlock){ (int) fd, abi };
        return 0;
}

void landlock_close(struct landlock *l)
{
        l->fd = fd_close(l->fd);
}

int landlock_allow(struct landlock *l, int fd, unsigned access)
{
        static const struct {
                unsigned access;
                uint64_t rights;
        } table[] = {
                { LANDLOCK_READ, FS_READ_FILE },
                { LANDLOCK_LIST, FS_READ_DIR },
                { LANDLOCK_WRITE, FS_WRITE_FILE | FS_TRUNCATE },
                { LANDLOCK_EXECUTE, FS_EXECUTE },
                { LANDLOCK_FILES, FS_MAKE_REG | FS_REMOVE_FILE | FS_REFER },
                { LANDLOCK_DIRS, FS_MAKE_DIR | FS_REMOVE_DIR | FS_REFER },
                { LANDLOCK_SOCKETS, FS_MAKE_SOCK | FS_REMOVE_FILE },
                { LANDLOCK_MAKE_DIR, FS_MAKE_DIR },
        };
        struct path_attr attr = { .parent = fd };
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (access & table[i].access)
                        attr.access |= table[i].rights;
        attr.access &= fs_known(l->abi) & (S_ISDIR(st.st_mode) ? UINT64_MAX : FS_OF_FILES);
        if (attr.access == 0)
                return 0;
        return syscall(SYS_landlock_add_rule, l->fd, RULE_PATH, &attr, 0) < 0 ? -errno : 0;
}

/* -EINVAL: the rule set does not restrict it. */
static int allow_port(struct landlock *l, uint64_t access, uint16_t port)
{
        const struct port_attr attr = { access, port };

        if (l->abi < ABI_NET)
                return 0;
        if (syscall(SYS_landlock_add_rule, l->fd, RULE_PORT, &attr, 0) == 0 || errno == EINVAL)
                return 0;
        /* A kernel without TCP. */
        return errno == EAFNOSUPPORT ? 0 : -errno;
}

int landlock_allow_bind(struct landlock *l, uint16_t port)
{
        return allow_port(l, NET_BIND_TCP, port);
}

int landlock_allow_connect(struct landlock *l, uint16_t port)
{
        return allow_port(l, NET_CONNECT_TCP, port);
}

int landlock_enter(struct landlock *l)
{
        return syscall(SYS_landlock_restrict_self, l->fd, 0) < 0 ? -errno : 0;
}
