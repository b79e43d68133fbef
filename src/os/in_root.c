/* SPDX-License-Identifier: Apache-2.0 */
#include "os/in_root.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

#define TRIES 16 /* a rename on another path makes the kernel return EAGAIN for a path with ".." */

int in_root_open(int root, const char *path, const struct in_root_how *how, int *ret_fd)
{
        struct open_how h = {
                .flags = (uint64_t) (unsigned) (how->flags | O_CLOEXEC),
                .mode = how->flags & O_CREAT ? how->mode : 0,
                .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS
                           | (how->no_symlinks ? RESOLVE_NO_SYMLINKS : 0),
        };

        for (int i = 0; i < TRIES; i++) {
                int fd = (int) syscall(SYS_openat2, root, path, &h, sizeof(h));

                if (fd >= 0) {
                        *ret_fd = fd;
                        return 0;
                }
                if (errno != EAGAIN)
                        return -errno;
        }
        return -EAGAIN;
}

/* --- directories --- */

/* Opens or creates the directory `name` in `at`. O_NOFOLLOW with O_PATH opens a link itself, which
 * O_DIRECTORY then refuses with ENOTDIR. */
static int open_or_mkdir(int at, const char *name, uid_t owner)
{
        scoped(fd_closep) int fd = -EBADF;
        bool made = false;
        struct stat st;

        fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT) {
                if (mkdirat(at, name, 0755) < 0 && errno != EEXIST)
                        return -errno;
                made = true;
                fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        }
        if (fd >= 0 && made && fchownat(fd, "", owner, owner, AT_EMPTY_PATH) < 0)
                return -errno;
        if (fd >= 0)
                return TAKE_FD(fd);
        if (errno == ENOTDIR && fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0
            && S_ISLNK(st.st_mode))
                return -ELOOP;
        return -errno;
}

int in_root_mkdirs(int root, const char *path, uid_t owner, int *ret_fd)
{
        scoped(fd_closep) int at = fcntl(root, F_DUPFD_CLOEXEC, 3);
        struct str rest = str_from(path), part;

        if (at < 0)
                return -errno;
        while (str_split(&rest, '/', &part)) {
                char name[NAME_MAX + 1];
                int fd;

                if (part.n == 0 || str_eq(part, STR(".")))
                        continue;
                if (part.n > NAME_MAX)
                        return -ENAMETOOLONG;
                if (str_eq(part, STR("..")))
                        return -EINVAL;
                memcpy(name, part.p, part.n);
                name[part.n] = '\0';
                fd = open_or_mkdir(at, name, owner);
                if (fd < 0)
                        return fd;
                (void) fd_close(at);
                at = fd;
        }
        *ret_fd = TAKE_FD(at);
        return 0;
}

/* --- checks --- */

int in_root_check_fs(int fd, long magic)
{
        struct statfs st;

        if (fstatfs(fd, &st) < 0)
                return -errno;
        return st.f_type == magic ? 0 : -EINVAL;
}
