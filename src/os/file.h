/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_FILE_H
#define HUTCH_OS_FILE_H

/*
 * Files and directories of a tree that other processes may change at the same time.
 *
 * Nothing here blocks: anything but a regular file is refused before it is opened, and a FIFO that was
 * put there in between is opened without waiting and then refused. Paths are NUL-terminated, and the
 * kernel follows links in them.
 */

#include <limits.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "base/id.h"

/* --- reading --- */

/* -EISDIR, -EINVAL for what else is not a regular file, or open's error. ret_st may be NULL. */
int file_open_read(const char *path, struct stat *ret_st, int *ret_fd) must_check;

/* Whether st_size is not the length of the content: /proc, /sys and similar. */
bool file_size_is_unknown(int fd, const struct stat *st);

/* --- owner and mode --- */

#define FILE_ID_KEEP   UINT32_MAX
#define FILE_MODE_KEEP ((mode_t) -1)

struct file_attrs {
        uint32_t uid, gid; /* FILE_ID_KEEP */
        mode_t mode;       /* with setuid, setgid and sticky; FILE_MODE_KEEP */
};

#define FILE_ATTRS_KEEP ((struct file_attrs){ FILE_ID_KEEP, FILE_ID_KEEP, FILE_MODE_KEEP })

/* Owner first: changing it clears setuid. Follows a link at the end of the path. */
int file_set_attrs(const char *path, const struct file_attrs *attrs) must_check;

/* --- directories --- */

/* mkdir -p. New directories get `mode` less the umask, and the owner of `attrs`; the last one, if it is
 * new, its mode, too. *ret_made says whether it is new (may be NULL), *ret_fd is an O_PATH descriptor of
 * it (may be NULL). -ENOTDIR if something else is in the way. Directories created before a failure
 * stay. */
int file_mkdirs(const char *path, mode_t mode, const struct file_attrs *attrs, bool *ret_made,
                int *ret_fd) must_check;

/* The parent of the path, in the same way; of `attrs` only the owner counts. */
int file_make_parents(const char *path, mode_t mode, const struct file_attrs *attrs) must_check;

/* --- moving --- */

/* rename that replaces nothing: -EEXIST. Where the file system does not support that, there is a race
 * between the check and the rename. */
int file_move(const char *from, const char *to) must_check;

/* --- writing --- */

/*
 * Atomic replacement: a new file that replaces another when it is complete, or appears if there was none:
 *
 *         r = atomic_file_open(&f, path, ids);
 *         r = atomic_file_write(&f, p, n);           any number of times
 *         r = atomic_file_commit(&f, &attrs);
 *         r = atomic_file_sync_dir(&f);
 *         atomic_file_discard(&f);                   always; after a commit it only closes
 *
 * Until the commit the data are in a file of a hidden name in the same directory, and the old file
 * is untouched; discard removes the hidden one. A link at the end of the path is followed and its target
 * is replaced, or created. Other hard links keep the old content.
 *
 * Some files cannot be replaced, only overwritten: mount points (/etc/hosts in containers), and files in
 * directories that we may not write to. They are truncated by the first write and filled in place, and a
 * failure leaves a partial file. A caller that reads the old content while it writes must not use them
 * (atomic_file_is_in_place).
 */
struct atomic_file {
        int fd;          /* to write to, or -EBADF */
        bool exists;     /* the file to be replaced, as of the last check: */
        struct stat old; /* its owner and mode are kept unless attrs say otherwise */

        int _dir;
        bool _in_place, _truncated;
        uint64_t _written;
        uint64_t _pushed;  /* bytes whose writeback was started */
        uint64_t _pushing; /* of these, not yet waited for */
        char _name[NAME_MAX + 1];
        char _temp[sizeof(".hutch-") + ID_HEX_LEN]; /* "" when there is none */
};

static inline bool atomic_file_is_in_place(const struct atomic_file *f)
{
        return f->_in_place;
}

/* The null file, for a discard without an open. */
#define ATOMIC_FILE_NULL ((struct atomic_file){ .fd = -EBADF, ._dir = -EBADF })

/* The directory must exist. -EISDIR, -EINVAL for what else is not a regular file, -ELOOP … */
int atomic_file_open(struct atomic_file *f, const char *path, struct ids *ids) must_check;

/* Opens the file to be replaced for reading: the path may lead to another file by now. */
int atomic_file_open_old(const struct atomic_file *f, int *ret_fd) must_check;

/* Also starts writeback every few MiB, so that the commit has little left to wait for. */
int atomic_file_write(struct atomic_file *f, const void *p, size_t n) must_check;

/* Starts writeback at once, for a file that is committed later. */
void atomic_file_start_writeback(struct atomic_file *f);

/* Syncs the data and renames the file to its final name. A new file without a mode gets 0777 less the
 * umask; a file whose owner cannot be kept becomes ours. */
int atomic_file_commit(struct atomic_file *f, const struct file_attrs *attrs) must_check;

/* After a commit: syncs the directory. A separate step, because one sync serves all files of a
 * directory. */
int atomic_file_sync_dir(struct atomic_file *f) must_check;
void atomic_file_discard(struct atomic_file *f);

#endif
