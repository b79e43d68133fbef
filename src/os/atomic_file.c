/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/file.h"

#define LINKS_MAX  40        /* as many as the kernel follows */
#define PUSH_BYTES (4 * MiB) /* of writeback started at a time */

/* --- finding the target --- */

/* Replaces the path by the target of the link at its end. Magic links (/proc/PID/fd) are refused: their text is
 * only a hint, the file may have another name by now, or none ("/tmp/x (deleted)"). */
static int follow_link(char path[static PATH_MAX])
{
        scoped(fd_closep) int fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        char link[PATH_MAX], joined[PATH_MAX];
        const char *slash = strrchr(path, '/');
        int dir_n = slash ? (int) (slash - path) : 0, len;
        struct statfs fs;
        ssize_t n;

        if (fd < 0 || fstatfs(fd, &fs) < 0)
                return -errno;
        if ((unsigned long) fs.f_type == PROC_SUPER_MAGIC)
                return -EINVAL;
        n = readlinkat(fd, "", link, sizeof(link) - 1);
        if (n < 0)
                return -errno;
        link[n] = '\0';
        if (link[0] == '/')
                dir_n = 0;
        len = snprintf(joined, sizeof(joined), "%.*s%s%s", dir_n, path, link[0] == '/' ? "" : "/",
                       link);
        if (len < 0 || (size_t) len >= sizeof(joined))
                return -ENAMETOOLONG;
        memcpy(path, joined, (size_t) len + 1);
        return 0;
}

/* Follows links at the end of the path, to a file or to nothing. We do by hand what open(O_CREAT) would
 * do, because the new file is created in the directory of the target; but the kernel decides whether
 * these links may be followed (fs.protected_symlinks), so stat comes first. */
static int find_target(const char *given, char ret[static PATH_MAX])
{
        struct stat st;
        int r;

        if (strlen(given) >= PATH_MAX)
                return -ENAMETOOLONG;
        memcpy(ret, given, strlen(given) + 1);
        if (stat(ret, &st) < 0 && errno != ENOENT)
                return -errno;
        for (int i = 0; i < LINKS_MAX; i++) {
                if (lstat(ret, &st) < 0)
                        return errno == ENOENT ? 0 : -errno;
                if (!S_ISLNK(st.st_mode))
                        return 0;
                r = follow_link(ret);
                if (r < 0)
                        return r;
        }
        return -ELOOP;
}

/* Splits the path: opens its directory, copies its last name. "x/", "." and ".." name directories. */
static int open_parent(struct atomic_file *f, char path[static PATH_MAX])
{
        char *slash = strrchr(path, '/');
        const char *name = slash ? slash + 1 : path;
        size_t n = strlen(name);

        if (n == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
                return -EISDIR;
        if (n > NAME_MAX)
                return -ENAMETOOLONG;
        memcpy(f->_name, name, n + 1);
        if (slash)
                slash[slash == path] = '\0';
        f->_dir = open(slash ? path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        return f->_dir < 0 ? -errno : 0;
}

static int stat_old(struct atomic_file *f)
{
        f->exists = false;
        if (fstatat(f->_dir, f->_name, &f->old, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (S_ISDIR(f->old.st_mode))
                return -EISDIR;
        if (!S_ISREG(f->old.st_mode))
                return -EINVAL;
        f->exists = true;
        return 0;
}

/* --- the two ways of writing --- */

static int open_in_place(struct atomic_file *f)
{
        struct stat st;

        f->fd = openat(f->_dir, f->_name,
                       O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (f->fd < 0 || fstat(f->fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        f->_in_place = true;
        return 0;
}

static int create_temp(struct atomic_file *f)
{
        f->fd = openat(f->_dir, f->_temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       0600);
        return f->fd < 0 ? -errno : 0;
}

/* The hidden file is named after the descriptor of its directory, which is ours alone while it is open: the kernel
 * remembers every name that was ever looked up and not found, and in a sandbox it looks in the image, too, whose
 * directories remain. Random names would fill its cache. If there is such a file, left by another process, a random name
 * it is. */
static int open_output(struct atomic_file *f, struct ids *ids)
{
        char id[ID_HEX_LEN + 1];
        struct statx st;
        int r;

        if (f->exists
            && statx(f->_dir, f->_name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &st) == 0
            && (st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT)
            && (st.stx_attributes & STATX_ATTR_MOUNT_ROOT))
                return open_in_place(f);
        (void) snprintf(f->_temp, sizeof(f->_temp), ".hutch-%d", f->_dir);
        r = create_temp(f);
        if (r == -EEXIST) {
                ids_hex(ids, id);
                (void) snprintf(f->_temp, sizeof(f->_temp), ".hutch-%s", id);
                r = create_temp(f);
        }
        if (r == 0)
                return 0;
        f->_temp[0] = '\0';
        /* /proc returns -ENOENT where no file can be created. */
        if (f->exists && (r == -EACCES || r == -EPERM || r == -EROFS || r == -ENOENT))
                return open_in_place(f);
        return r;
}

int atomic_file_open(struct atomic_file *f, const char *path, struct ids *ids)
{
        char target[PATH_MAX];
        int r;

        *f = ATOMIC_FILE_NULL;
        r = find_target(path, target);
        if (r == 0)
                r = open_parent(f, target);
        if (r == 0)
                r = stat_old(f);
        if (r == 0)
                r = open_output(f, ids);
        if (r < 0)
                atomic_file_discard(f);
        return r;
}

int atomic_file_open_old(const struct atomic_file *f, int *ret_fd)
{
        scoped(fd_closep) int fd =
                openat(f->_dir, f->_name,
                       O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EINVAL;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

/* --- writing --- */

static int truncate_once(struct atomic_file *f)
{
        if (!f->_in_place || f->_truncated)
                return 0;
        f->_truncated = true;
        return ftruncate(f->fd, 0) < 0 ? -errno : 0;
}

int atomic_file_write(struct atomic_file *f, const void *p, size_t n)
{
        const char *bytes = p;
        int r = truncate_once(f);

        if (r < 0)
                return r;
        while (n > 0) {
                ssize_t w = write(f->fd, bytes, n);

                if (w < 0 && errno != EINTR)
                        return -errno;
                if (w == 0)
                        return -EIO;
                bytes += MAX_OF(w, 0);
                n -= (size_t) MAX_OF(w, 0);
                f->_written += (uint64_t) MAX_OF(w, 0);
        }
        if (f->_written - f->_pushed >= PUSH_BYTES)
                atomic_file_start_writeback(f);
        return 0;
}

/* Starts writeback of this range and waits for the one before, which has had time: so a disk slower than
 * the network costs many short waits and not one long wait at the end. */
void atomic_file_start_writeback(struct atomic_file *f)
{
        if (f->_pushing > 0)
                (void) sync_file_range(f->fd, (off_t) (f->_pushed - f->_pushing),
                                       (off_t) f->_pushing, SYNC_FILE_RANGE_WAIT_BEFORE);
        f->_pushing = f->_written - f->_pushed;
        (void) sync_file_range(f->fd, (off_t) f->_pushed, (off_t) f->_pushing,
                               SYNC_FILE_RANGE_WRITE);
        f->_pushed = f->_written;
}

/* --- the end --- */

/* Without privileges files cannot be given away: the copy of another user's file becomes ours, and then
 * it must not be setuid. */
static int set_attrs(struct atomic_file *f, const struct file_attrs *attrs)
{
        mode_t mode = attrs->mode, mask;

        if (mode == FILE_MODE_KEEP && f->exists)
                mode = f->old.st_mode & 07777;
        if (mode == FILE_MODE_KEEP) {
                mask = umask(077);
                (void) umask(mask);
                mode = 0777 & ~mask;
        }
        if (f->exists && !f->_in_place && fchown(f->fd, f->old.st_uid, f->old.st_gid) < 0) {
                if (errno != EPERM)
                        return -errno;
                mode &= (mode_t) ~(S_ISUID | S_ISGID);
        }
        if ((attrs->uid != FILE_ID_KEEP || attrs->gid != FILE_ID_KEEP)
            && fchown(f->fd, attrs->uid, attrs->gid) < 0)
                return -errno;
        if (f->_in_place && attrs->mode == FILE_MODE_KEEP)
                return 0;
        return fchmod(f->fd, mode) < 0 ? -errno : 0;
}

int atomic_file_commit(struct atomic_file *f, const struct file_attrs *attrs)
{
        int r = truncate_once(f);

        /* An upload of the same path may have changed or created it meanwhile. */
        if (r == 0 && !f->_in_place)
                r = stat_old(f);
        if (r == 0)
                r = set_attrs(f, attrs);
        if (r < 0)
                return r;
        if (fsync(f->fd) < 0 && errno != EINVAL)
                return -errno;
        if (f->_temp[0]) {
                if (renameat(f->_dir, f->_temp, f->_dir, f->_name) < 0)
                        return -errno;
                f->_temp[0] = '\0';
        }
        return 0;
}

/* Some file systems cannot sync directories; the data are safe nevertheless. */
int atomic_file_sync_dir(struct atomic_file *f)
{
        scoped(fd_closep) int fd = openat(f->_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0 || fsync(fd) == 0 || errno != EIO)
                return 0;
        return -errno;
}

void atomic_file_discard(struct atomic_file *f)
{
        if (f->_temp[0])
                (void) unlinkat(f->_dir, f->_temp, 0);
        f->_temp[0] = '\0';
        f->fd = fd_close(f->fd);
        f->_dir = fd_close(f->_dir);
}
