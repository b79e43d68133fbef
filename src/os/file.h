/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_FILE_H
#define HUTCH_OS_FILE_H

/*
 * Files and folders of a tree that somebody else may be changing at the same time.
 *
 * Nothing here waits: what is not a regular file is refused before it is opened, and a FIFO that
 * was put there in between is opened without waiting and then refused. Paths are NUL-terminated,
 * and the kernel follows links in them.
 */

#include <limits.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "base/id.h"

/* --- reading --- */

/* -EISDIR, -EINVAL for what else is not a regular file, or open's error. ret_st may be NULL. */
int file_open_read(const char *path, struct stat *ret_st, int *ret_fd) must_check;

/* Whether reads tell a file's content and its size does not: /proc, /sys and their like. */
bool file_size_is_unknown(int fd, const struct stat *st);

/* --- owner and mode --- */

#define FILE_ID_KEEP   UINT32_MAX
#define FILE_MODE_KEEP ((mode_t) -1)

struct file_attrs {
        uint32_t uid, gid; /* FILE_ID_KEEP */
        mode_t mode;       /* with setuid, setgid and sticky; FILE_MODE_KEEP */
};

#define FILE_ATTRS_KEEP ((struct file_attrs){ FILE_ID_KEEP, FILE_ID_KEEP, FILE_MODE_KEEP })

/* Owner first: changing it takes setuid away. Follows a link at the end of the path. */
int file_set_attrs(const char *path, const struct file_attrs *attrs) must_check;

/* --- folders --- */

/* mkdir -p. Those that are made get `mode` less the umask, and the owner of `attrs`; the last one,
 * if it was made, its mode, too. *ret_made tells whether it was (may be NULL), *ret_fd is an O_PATH
 * descriptor of it (may be NULL). -ENOTDIR if something else is in the way. What was made before a
 * failure stays. */
int file_mkdirs(const char *path, mode_t mode, const struct file_attrs *attrs, bool *ret_made,
                int *ret_fd) must_check;

/* The folder that the path is in, in the same way; of `attrs` only the owner counts. */
int file_make_parents(const char *path, mode_t mode, const struct file_attrs *attrs) must_check;

/* --- moving --- */

/* rename that replaces nothing: -EEXIST. Where the filesystem can't promise that, there is a gap
 * between looking and moving. */
int file_move(const char *from, const char *to) must_check;

/* --- writing --- */

/*
 * A file that takes the place of another when it is complete, or appears when there was none:
 *
 *         r = atomic_file_open(&f, path, ids);
 *         r = atomic_file_write(&f, p, n);            as often as there is something
 *         r = atomic_file_commit(&f, &attrs);
 *         r = atomic_file_sync_dir(&f);
 *         atomic_file_discard(&f);                    always; after a commit it does nothing
 *
 * Until the commit the data are in a file of a random hidden name in the same folder, and what was
 * there stays as it was; discard removes the hidden one. A link at the end of the path is followed
 * and what it points to is replaced, or made. Other hard links keep the old content.
 *
 * Some files can't be replaced, only overwritten: those something is mounted upon (/etc/hosts in
 * containers), and those in folders we may not write to. They are emptied by the first write
 * and filled in place, and a failure leaves a part. Whoever reads the old content while it writes
 * must not have them (atomic_file_is_in_place).
 */
struct atomic_file {
        int fd;          /* to write to, or -EBADF */
        bool exists;     /* something will be replaced, as it looked last: */
        struct stat old; /* its owner and mode are kept unless attrs say otherwise */

        int _dir;
        bool _in_place, _emptied;
        uint64_t _written;
        uint64_t _pushed;  /* given to the disk */
        uint64_t _pushing; /* of these, not waited for */
        char _name[NAME_MAX + 1];
        char _temp[sizeof(".hutch-") + ID_HEX_LEN]; /* "" when there is none */
};

static inline bool atomic_file_is_in_place(const struct atomic_file *f)
{
        return f->_in_place;
}

/* The null file, for a discard without an open. */
#define ATOMIC_FILE_NULL ((struct atomic_file){ .fd = -EBADF, ._dir = -EBADF })

/* The folder must exist. -EISDIR, -EINVAL for what else is not a regular file, -ELOOP … */
int atomic_file_open(struct atomic_file *f, const char *path, struct ids *ids) must_check;

/* What will be replaced, to read it: the path may lead somewhere else by now. */
int atomic_file_open_old(const struct atomic_file *f, int *ret_fd) must_check;

/* Also tells the kernel, every few MiB, to begin bringing the data to disk, so that the commit has
 * little left to wait for. */
int atomic_file_write(struct atomic_file *f, const void *p, size_t n) must_check;

/* Begins with that at once, for a file whose commit will come later. */
void atomic_file_start_writeback(struct atomic_file *f);

/* The file takes its place, with its data on disk. A new file without a mode gets 0777 less the
 * umask; a file whose owner can't be kept becomes ours. */
int atomic_file_commit(struct atomic_file *f, const struct file_attrs *attrs) must_check;

/* Behind a commit: its folder is on disk, too. A step of its own, because of many files of one
 * folder the first that settles does it for all. */
int atomic_file_sync_dir(struct atomic_file *f) must_check;
void atomic_file_discard(struct atomic_file *f);

#endif
