/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/extract.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

/* For "%.*s": a name that may be long */
#define NAME_ARG(s) (int) MIN_OF((s).n, (size_t) 200), (s).p

#define OPEN_DIR  (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define MODE_MASK 01777

void extract_init(struct extract *x, int rootfd, bool keep_owner, struct ids *ids)
{
        *x = (struct extract){ ._root = rootfd,
                               ._keep_owner = keep_owner,
                               ._ids = ids,
                               ._dir = -EBADF,
                               ._file = -EBADF };
        buf_init(&x->_dir_name, TAR_NAME_MAX);
        buf_init(&x->_name, TAR_NAME_MAX);
        buf_init(&x->_deferred, EXTRACT_DEFERRED_MAX);
}

static int where(const struct extract *x)
{
        return x->_dir >= 0 ? x->_dir : x->_root;
}

static const char *leaf(const struct extract *x)
{
        return buf_str(&x->_name).p + x->_leaf;
}

static void drop_temp(struct extract *x)
{
        x->_file = fd_close(x->_file);
        if (x->_temp[0])
                (void) unlinkat(where(x), x->_temp, 0);
        x->_temp[0] = '\0';
}

void extract_done(struct extract *x)
{
        drop_temp(x);
        x->_dir = fd_close(x->_dir);
        x->_root = fd_close(x->_root);
        buf_done(&x->_dir_name);
        buf_done(&x->_name);
        buf_done(&x->_deferred);
}

/* --- errors --- */

static int refuse(struct err *e, struct str name, const char *why)
{
        return err_set(e, ERR_INVALID, "entry '%.*s': %s", NAME_ARG(name), why);
}

static int extract_fail(struct err *e, int r, struct str name)
{
        return err_errno(e, r, "extract '%.*s'", NAME_ARG(name));
}

/* --- names --- */

/* Drops empty and "." components: "./a//b/" is "a/b", "./" is "". */
static int clean_name(struct str name, struct buf *ret, struct err *e)
{
        struct str rest = name, part;

        if (str_starts_with(name, STR("/")))
                return refuse(e, name, "the name is absolute");
        buf_reset(ret);
        while (str_split(&rest, '/', &part)) {
                if (part.n == 0 || str_eq(part, STR(".")))
                        continue;
                if (str_eq(part, STR("..")))
                        return refuse(e, name, "the name has a \"..\" component");
                if (part.n > NAME_MAX)
                        return refuse(e, name, "the name is too long");
                if (ret->n > 0)
                        buf_add_char(ret, '/');
                buf_add_str(ret, part);
        }
        return buf_failed(ret) ? refuse(e, name, "the name is too long") : 0;
}

static size_t leaf_at(const struct buf *name)
{
        const char *slash = name->n ? memrchr(buf_str(name).p, '/', name->n) : NULL;

        return slash ? (size_t) (slash - buf_str(name).p) + 1 : 0;
}

/* Opens the directory of that clean name; with `create`, creates missing ones. */
static int open_dir(const struct extract *x, struct str name, bool create, int *ret)
{
        scoped(fd_closep) int fd = -EBADF;
        char part_z[NAME_MAX + 1];
        struct str part;

        while (str_split(&name, '/', &part)) {
                int at = fd >= 0 ? fd : x->_root, next;

                memcpy(part_z, part.p, part.n);
                part_z[part.n] = '\0';
                next = openat(at, part_z, OPEN_DIR);
                if (next < 0 && errno == ENOENT && create) {
                        if (mkdirat(at, part_z, 0777) < 0 && errno != EEXIST)
                                return -errno;
                        next = openat(at, part_z, OPEN_DIR);
                }
                if (next < 0)
                        return -errno;
                (void) fd_close(fd);
                fd = next;
        }
        *ret = TAKE_FD(fd);
        return 0;
}

static int refuse_way(struct err *e, int r, struct str name)
{
        if (r == -ENOTDIR || r == -ELOOP)
                return refuse(e, name,
                              "the name leads through a link or something other than a directory");
        return extract_fail(e, r, name);
}

/* --- hidden names --- */

static void make_temp(struct extract *x)
{
        char id[ID_HEX_LEN + 1];

        ids_hex(x->_ids, id);
        (void) snprintf(x->_temp, sizeof(x->_temp), ".hutch-%s", id);
}

static int no_temp(struct extract *x, int r)
{
        x->_temp[0] = '\0';
        return r;
}

/* Renames a complete file. rename does nothing if both are one file already (an existing hard link), so
 * the hidden name is removed in any case. */
static int rename_temp(struct extract *x, struct str name, struct err *e)
{
        int r = renameat(where(x), x->_temp, where(x), leaf(x)) < 0 ? -errno : 0;

        drop_temp(x);
        if (r == -EISDIR || r == -ENOTEMPTY || r == -EEXIST)
                return refuse(e, name, "a directory is in its place");
        return r < 0 ? extract_fail(e, r, name) : 0;
}

static void entry_times(const struct tar_entry *entry, struct timespec ret[2])
{
        ret[0] = (struct timespec){ .tv_nsec = UTIME_OMIT };
        ret[1] = (struct timespec){ .tv_sec = entry->mtime, .tv_nsec = entry->mtime_nsec };
}

/* --- types of entries --- */

static int begin_file(struct extract *x, struct err *e)
{
        make_temp(x);
        x->_file = openat(where(x), x->_temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                          0600);
        return x->_file < 0 ? extract_fail(e, no_temp(x, -errno), x->_entry->name) : 0;
}

static int add_symlink(struct extract *x, struct err *e)
{
        const struct tar_entry *entry = x->_entry;
        char target[PATH_MAX];
        struct timespec times[2];

        if (entry->link.n >= sizeof(target))
                return refuse(e, entry->name, "the link is too long");
        memcpy(target, entry->link.p, entry->link.n);
        target[entry->link.n] = '\0';
        make_temp(x);
        if (symlinkat(target, where(x), x->_temp) < 0)
                return extract_fail(e, no_temp(x, -errno), entry->name);
        entry_times(entry, times);
        (void) utimensat(where(x), x->_temp, times, AT_SYMLINK_NOFOLLOW);
        if (x->_keep_owner
            && fchownat(where(x), x->_temp, (uid_t) entry->uid, (gid_t) entry->gid,
                        AT_SYMLINK_NOFOLLOW)
                       < 0)
                return extract_fail(e, -errno, entry->name);
        return rename_temp(x, x->_entry->name, e);
}

/* The target is a name of the archive: relative to the root, not to the directory of the link. */
static int add_hardlink(struct extract *x, struct err *e)
{
        scoped(buf_done) struct buf other;
        scoped(fd_closep) int dir = -EBADF;
        const char *name;
        struct stat st;
        size_t at;
        int r;

        buf_init(&other, TAR_NAME_MAX);
        r = clean_name(x->_entry->link, &other, e);
        if (r < 0)
                return r;
        at = leaf_at(&other);
        r = open_dir(x, at > 0 ? str_of(buf_str(&other).p, at - 1) : STR_NULL, false, &dir);
        if (r < 0 && r != -ENOENT)
                return refuse_way(e, r, x->_entry->link);
        name = buf_str(&other).p + at;
        if (r < 0 || fstatat(dir >= 0 ? dir : x->_root, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return refuse(e, x->_entry->name,
                              "it is a hard link to a file that does not exist");
        if (!S_ISREG(st.st_mode))
                return refuse(e, x->_entry->name,
                              "it is a hard link to something other than a file");
        make_temp(x);
        if (linkat(dir >= 0 ? dir : x->_root, name, where(x), x->_temp, 0) < 0)
                return extract_fail(e, no_temp(x, -errno), x->_entry->name);
        return rename_temp(x, x->_entry->name, e);
}

/* --- directories --- */

/* Follows each name in _deferred. */
struct deferred {
        uint32_t mode;
        uint32_t name_n;
};

static int set_dir_attrs(struct extract *x)
{
        const struct tar_entry *entry = x->_entry;
        uint32_t mode = entry->mode & MODE_MASK;
        scoped(fd_closep) int fd =
                openat(where(x), leaf(x), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        if (x->_keep_owner && fchown(fd, (uid_t) entry->uid, (gid_t) entry->gid) < 0)
                return -errno;
        if (fchmod(fd, mode | 0700) < 0)
                return -errno;
        if ((mode & 0700) == 0700)
                return 0;
        buf_add_str(&x->_deferred, buf_str(&x->_name));
        buf_add(&x->_deferred, &(struct deferred){ mode, (uint32_t) x->_name.n },
                sizeof(struct deferred));
        return buf_failed(&x->_deferred) ? -ENOMEM : 0;
}

static int add_dir(struct extract *x, struct err *e)
{
        struct stat st;
        int r;

        if (mkdirat(where(x), leaf(x), 0700) == 0) {
                r = set_dir_attrs(x);
                return r < 0 ? extract_fail(e, r, x->_entry->name) : 0;
        }
        if (errno != EEXIST)
                return extract_fail(e, -errno, x->_entry->name);
        if (fstatat(where(x), leaf(x), &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))
                return 0;
        return refuse(e, x->_entry->name, "something else is in its place");
}

/* From the last to the first: directories come before those inside them, and some cannot be entered any
 * more once they have their mode. */
int extract_finish(struct extract *x, struct err *e)
{
        scoped(fd_closep) int dir = -EBADF, fd = -EBADF;
        struct str all = buf_str(&x->_deferred), name;
        struct deferred d;
        int r;

        if (all.n == 0)
                return 0;
        memcpy(&d, all.p + all.n - sizeof(d), sizeof(d));
        name = str_of(all.p + all.n - sizeof(d) - d.name_n, d.name_n);
        r = open_dir(x, name, false, &dir);
        if (r == 0)
                fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (r == 0 && (fd < 0 || fchmod(fd, d.mode) < 0))
                r = -errno;
        if (r < 0 && r != -ENOENT && r != -ENOTDIR)
                return extract_fail(e, r, name);
        buf_truncate(&x->_deferred, all.n - sizeof(d) - d.name_n);
        return 1;
}

/* --- entries --- */

int extract_entry(struct extract *x, const struct tar_entry *entry, struct err *e)
{
        static int (*const begin[])(struct extract *, struct err *) = {
                [TAR_FILE] = begin_file,
                [TAR_HARDLINK] = add_hardlink,
                [TAR_SYMLINK] = add_symlink,
                [TAR_DIR] = add_dir,
        };
        struct str dir;
        int fd = -EBADF, r = clean_name(entry->name, &x->_name, e);

        if (r < 0)
                return r;
        if (x->_keep_owner && (entry->uid >= UINT32_MAX || entry->gid >= UINT32_MAX))
                return refuse(e, entry->name, "the number of its owner is too large");
        x->_entry = entry;
        if (x->_name.n == 0) /* the target itself */
                return entry->type == TAR_DIR ? 0 : refuse(e, entry->name, "it has no name");
        if (entry->type >= ARRAY_SIZE(begin) || !begin[entry->type])
                return refuse(e, entry->name, "devices and FIFOs are not extracted");
        x->_leaf = leaf_at(&x->_name);
        dir = str_of(buf_str(&x->_name).p, x->_leaf > 0 ? x->_leaf - 1 : 0);
        if (str_eq(dir, buf_str(&x->_dir_name))) /* most entries are in that of the one before */
                return begin[entry->type](x, e);
        r = open_dir(x, dir.n > 0 ? dir : STR_NULL, /* create= */ true, &fd);
        if (r < 0)
                return refuse_way(e, r, entry->name);
        (void) fd_close(x->_dir);
        x->_dir = fd;
        buf_reset(&x->_dir_name);
        buf_add_str(&x->_dir_name, dir);
        if (buf_failed(&x->_dir_name))
                return extract_fail(e, -ENOMEM, entry->name);
        return begin[entry->type](x, e);
}

int extract_data(struct extract *x, struct str data, struct err *e)
{
        while (data.n > 0) {
                ssize_t n = write(x->_file, data.p, data.n);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return extract_fail(e, n < 0 ? -errno : -EIO, x->_entry->name);
                data = str_skip(data, (size_t) n);
                x->bytes += (uint64_t) n;
        }
        return 0;
}

int extract_entry_end(struct extract *x, struct err *e)
{
        const struct tar_entry *entry = x->_entry;
        struct timespec times[2];
        int r = 0;

        x->_entry = NULL;
        if (x->_file < 0) {
                x->entries++;
                return 0;
        }
        entry_times(entry, times);
        /* Owner first: changing it clears bits. */
        if (x->_keep_owner && fchown(x->_file, (uid_t) entry->uid, (gid_t) entry->gid) < 0)
                r = -errno;
        if (r == 0 && fchmod(x->_file, entry->mode & MODE_MASK) < 0)
                r = -errno;
        if (r < 0)
                return extract_fail(e, r, entry->name);
        /* A time that the file system cannot represent is no reason to lose the file. */
        (void) futimens(x->_file, times);
        r = rename_temp(x, entry->name, e);
        x->entries += r == 0;
        return r;
}
