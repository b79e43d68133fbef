/* SPDX-License-Identifier: Apache-2.0 */
#include "os/file.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

/* --- reading --- */

static int check_regular(const struct stat *st)
{
        if (S_ISDIR(st->st_mode))
                return -EISDIR;
        return S_ISREG(st->st_mode) ? 0 : -EINVAL;
}

/* Checked twice: opening a device can have effects (rewind a tape, arm a watchdog), so it is not opened
 * at all; and the opened file need not be the one checked before. */
int file_open_read(const char *path, struct stat *ret_st, int *ret_fd)
{
        scoped(fd_closep) int fd = -EBADF;
        struct stat st;
        int r;

        if (stat(path, &st) < 0)
                return -errno;
        r = check_regular(&st);
        if (r < 0)
                return r;
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        r = check_regular(&st);
        if (r < 0)
                return r;
        if (ret_st)
                *ret_st = st;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

bool file_size_is_unknown(int fd, const struct stat *st)
{
        /* Files of sysfs report 4096 and have less. */
        static const unsigned long kinds[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC, DEBUGFS_MAGIC,
                                               TRACEFS_MAGIC, SECURITYFS_MAGIC };
        struct statfs fs;
        char byte;

        /* If it cannot be read, the caller will notice. */
        if (st->st_size == 0)
                return pread(fd, &byte, 1, 0) != 0;
        if (fstatfs(fd, &fs) < 0)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if ((unsigned long) fs.f_type == kinds[i])
                        return true;
        return false;
}

/* --- owner and mode --- */

int file_set_attrs(const char *path, const struct file_attrs *attrs)
{
        if ((attrs->uid != FILE_ID_KEEP || attrs->gid != FILE_ID_KEEP)
            && chown(path, attrs->uid, attrs->gid) < 0)
                return -errno;
        if (attrs->mode != FILE_MODE_KEEP && chmod(path, attrs->mode) < 0)
                return -errno;
        return 0;
}

/* --- directories --- */

/* Of a directory just created, by descriptor: its path may mean another one by now. O_PATH
 * descriptors cannot be used with fchmod, but their owner can be changed. */
static int set_dir_attrs(int fd, const struct file_attrs *attrs, bool last)
{
        scoped(fd_closep) int opened = -EBADF;

        if ((attrs->uid != FILE_ID_KEEP || attrs->gid != FILE_ID_KEEP)
            && fchownat(fd, "", attrs->uid, attrs->gid, AT_EMPTY_PATH) < 0)
                return -errno;
        if (!last || attrs->mode == FILE_MODE_KEEP)
                return 0;
        opened = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (opened < 0 || fchmod(opened, attrs->mode) < 0)
                return -errno;
        return 0;
}

/* Descends into a directory; 1 if it had to be created. */
static int step_down(int *fd, const char *name, mode_t mode)
{
        int made = 0, next;

        next = openat(*fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (next < 0 && errno == ENOENT) {
                made = mkdirat(*fd, name, mode) == 0;
                if (!made && errno != EEXIST)
                        return -errno;
                /* A dangling link makes mkdir fail, and cannot be descended into. */
                next = openat(*fd, name,
                              O_PATH | O_DIRECTORY | O_CLOEXEC | (made ? O_NOFOLLOW : 0));
        }
        if (next < 0)
                return -errno;
        (void) fd_close(*fd);
        *fd = next;
        return made;
}

int file_mkdirs(const char *path, mode_t mode, const struct file_attrs *attrs, bool *ret_made,
                int *ret_fd)
{
        scoped(fd_closep) int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct str rest = str_from(path), part;
        char name[NAME_MAX + 1];
        bool made = false;
        int r;

        if (fd < 0)
                return -errno;
        ASSERT(path[0] == '/');
        while (str_ends_with(rest, STR("/")) || str_ends_with(rest, STR("/.")))
                rest.n--;
        while (str_split(&rest, '/', &part)) {
                if (part.n == 0)
                        continue;
                if (part.n > NAME_MAX)
                        return -ENAMETOOLONG;
                memcpy(name, part.p, part.n);
                name[part.n] = '\0';
                r = step_down(&fd, name, mode);
                if (r < 0)
                        return r;
                made = r > 0;
                if (made)
                        r = set_dir_attrs(fd, attrs, /* last= */ !rest.p);
                if (r < 0)
                        return r;
        }
        if (ret_made)
                *ret_made = made;
        if (ret_fd)
                *ret_fd = TAKE_FD(fd);
        return 0;
}

int file_make_parents(const char *path, mode_t mode, const struct file_attrs *attrs)
{
        const struct file_attrs owner = { attrs->uid, attrs->gid, FILE_MODE_KEEP };
        const char *slash = strrchr(path, '/');
        char dir[PATH_MAX];
        size_t n;

        ASSERT(slash);
        n = slash == path ? 1 : (size_t) (slash - path);
        if (n >= sizeof(dir))
                return -ENAMETOOLONG;
        memcpy(dir, path, n);
        dir[n] = '\0';
        return file_mkdirs(dir, mode, &owner, NULL, NULL);
}

/* --- moving --- */

int file_move(const char *from, const char *to)
{
        struct stat st;
        int r = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) < 0 ? -errno : 0;

        /* Not supported by the file system or the kernel; EINVAL may also mean a directory into itself,
         * for which rename returns the same. */
        if (r != -EINVAL && r != -ENOSYS)
                return r;
        if (lstat(to, &st) == 0)
                return -EEXIST;
        return rename(from, to) < 0 ? -errno : 0;
}
