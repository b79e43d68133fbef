/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/data_dir.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "base/secret.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/virtual_file.h"

#define OTHERS_WRITE (S_IWGRP | S_IWOTH)
#define OTHERS_ANY   (S_IRWXG | S_IRWXO)

/* --- the directory --- */

/* The name of a new directory is on disk when its parent is synced. */
static int make_dir(const char *path, struct err *e)
{
        scoped(fd_closep) int fd = -EBADF;
        char parent[PATH_MAX];
        bool made;
        int r = file_mkdirs(path, 0700, &FILE_ATTRS_KEEP, &made, NULL);

        if (r == 0 && made
            && snprintf(parent, sizeof(parent), "%s/..", path) >= (int) sizeof(parent))
                r = -ENAMETOOLONG;
        if (r == 0 && made) {
                fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                r = fd < 0 || fsync(fd) < 0 ? -errno : 0;
        }
        return r < 0 ? err_errno(e, r, "create the directory %s", path) : 0;
}

static int check_data_dir(const char *path, struct err *e)
{
        struct stat st;
        bool shared;

        if (stat(path, &st) < 0)
                return err_errno(e, -errno, "check the data directory %s", path);
        if (st.st_uid != geteuid() && st.st_uid != 0)
                return err_set(e, ERR_FORBIDDEN,
                               "the data directory %s belongs to user %u, not to us (%u)", path,
                               (unsigned) st.st_uid, (unsigned) geteuid());
        /* Shared with root, as hutchd/privilege.h creates it: the group is ours, and files of root stay root's. */
        shared = st.st_uid == 0 && st.st_gid == getegid()
                 && (st.st_mode & 07777) == (S_ISVTX | 0770);
        if (st.st_mode & OTHERS_WRITE && !shared)
                return err_set(e, ERR_FORBIDDEN,
                               "others may write to the data directory %s; chmod 700 it", path);
        return 0;
}

int data_dir_path(const struct data_dir *d, const char *name, char *ret, size_t size, struct err *e)
{
        int n = snprintf(ret, size, "%s/%s", d->path, name);

        if (n < 0 || (size_t) n >= size)
                return err_errno(e, -ENAMETOOLONG, "the path of %s in %s", name, d->path);
        return 0;
}

int data_dir_driver(const struct data_dir *d, const char *driver, char *ret, size_t size,
                    struct err *e)
{
        int n = snprintf(ret, size, "%s/drivers/%s", d->path, driver);

        if (n < 0 || (size_t) n >= size)
                return err_errno(e, -ENAMETOOLONG, "the directory of driver %s", driver);
        return make_dir(ret, e);
}

/* --- the lock --- */

/*
 * A record lock belongs to the process and ends with it. A lock of flock(2) or F_OFD_SETLK belongs to the open file
 * description, which a child shares between fork and exec: a hutchd that was killed while it started a helper would
 * seem to hold the lock for a moment longer.
 *
 * The price: closing any descriptor of the file releases the lock, so no other code opens it.
 */
static int take_lock(struct data_dir *d, struct err *e)
{
        const struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
        struct flock holder = all;
        scoped(fd_closep) int fd = -EBADF;
        char path[PATH_MAX], who[32] = "";
        int r = data_dir_path(d, "lock", path, sizeof(path), e);

        if (r < 0)
                return r;
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return err_errno(e, -errno, "open %s", path);
        if (fcntl(fd, F_SETLK, &all) == 0) {
                d->_lock = TAKE_FD(fd);
                return 0;
        }
        if (errno != EAGAIN && errno != EACCES)
                return err_errno(e, -errno, "lock %s", path);
        if (fcntl(fd, F_GETLK, &holder) == 0 && holder.l_type != F_UNLCK && holder.l_pid > 0)
                (void) snprintf(who, sizeof(who), ", process %d", (int) holder.l_pid);
        return err_set(e, ERR_CONFLICT, "the data directory %s is in use by another hutchd%s",
                       d->path, who);
}

/* --- files that are created once --- */

static int write_once(const char *path, struct str bytes, struct ids *ids, struct err *e)
{
        struct file_attrs attrs = FILE_ATTRS_KEEP;
        struct atomic_file f = ATOMIC_FILE_NULL;
        int r;

        attrs.mode = 0600;
        r = atomic_file_open(&f, path, ids);
        if (r == 0)
                r = atomic_file_write(&f, bytes.p, bytes.n);
        if (r == 0)
                r = atomic_file_commit(&f, &attrs);
        if (r == 0)
                r = atomic_file_sync_dir(&f);
        atomic_file_discard(&f);
        return r < 0 ? err_errno(e, r, "write %s", path) : 0;
}

/* Reads a file of exactly that size; 0 if it does not exist. */
static int read_once(const char *path, char *ret, size_t size, struct err *e)
{
        char text[128];
        struct stat st;
        ssize_t n;

        ASSERT(size < sizeof(text) - 1);
        if (lstat(path, &st) < 0)
                return errno == ENOENT ? 0 : err_errno(e, -errno, "check %s", path);
        n = virtual_file_read(path, text, sizeof(text));
        if (n < 0)
                return err_errno(e, (int) n, "read %s", path);
        if ((size_t) n != size) {
                wipe(text, sizeof(text));
                return err_set(e, ERR_INTERNAL,
                               "%s is damaged: it has %zd bytes instead of %zu; restore it from a "
                               "copy",
                               path, n, size);
        }
        if (st.st_mode & OTHERS_ANY) {
                wipe(text, sizeof(text));
                return err_set(e, ERR_FORBIDDEN, "others may read or write %s; chmod 600 it", path);
        }
        memcpy(ret, text, size);
        wipe(text, sizeof(text));
        return 1;
}

static int take_installation(struct data_dir *d, struct ids *ids, struct err *e)
{
        char path[PATH_MAX], store[PATH_MAX], text[ID_HEX_LEN + 1] = "";
        int r = data_dir_path(d, "installation", path, sizeof(path), e);

        if (r == 0)
                r = data_dir_path(d, "store.sqlite", store, sizeof(store), e);
        if (r == 0)
                r = read_once(path, text, sizeof(text), e);
        if (r < 0)
                return r;
        if (r > 0) {
                if (text[ID_HEX_LEN] != '\n' || !id_is_hex(str_of(text, ID_HEX_LEN)))
                        return err_set(e, ERR_INTERNAL,
                                       "%s is damaged: expected 32 hexadecimal digits; restore it "
                                       "from a copy",
                                       path);
                memcpy(d->installation, text, ID_HEX_LEN);
                return 0;
        }
        if (access(store, F_OK) == 0)
                return err_set(e, ERR_INTERNAL,
                               "%s is missing, but %s exists; restore it from a copy, or start "
                               "over in another directory",
                               path, store);
        ids_hex(ids, d->installation);
        memcpy(text, d->installation, ID_HEX_LEN);
        text[ID_HEX_LEN] = '\n';
        return write_once(path, str_of(text, sizeof(text)), ids, e);
}

static int take_secret(struct data_dir *d, struct ids *ids, struct err *e)
{
        char path[PATH_MAX];
        int r = data_dir_path(d, "secret", path, sizeof(path), e);

        if (r == 0)
                r = read_once(path, (char *) d->secret, sizeof(d->secret), e);
        if (r != 0)
                return MIN_OF(r, 0);
        ids_random(ids, d->secret, sizeof(d->secret));
        return write_once(path, str_of((const char *) d->secret, sizeof(d->secret)), ids, e);
}

/* --- all --- */

int data_dir_open(struct data_dir *d, const char *path, struct ids *ids, struct err *e)
{
        int r;

        *d = (struct data_dir){ .path = path, ._lock = -EBADF };
        r = make_dir(path, e);
        if (r == 0)
                r = check_data_dir(path, e);
        if (r == 0)
                r = take_lock(d, e);
        if (r == 0)
                r = take_installation(d, ids, e);
        if (r == 0)
                r = take_secret(d, ids, e);
        if (r < 0)
                data_dir_close(d);
        return r;
}

void data_dir_close(struct data_dir *d)
{
        d->_lock = fd_close(d->_lock);
        wipe(d->secret, sizeof(d->secret));
}
