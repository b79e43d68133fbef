/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ARCHIVE_EXTRACT_H
#define HUTCH_ARCHIVE_EXTRACT_H

/*
 * Extracts an archive that is not trusted below a directory, and nowhere else.
 *
 * Names are split into components, and each directory is opened from the one before without following
 * links. So an entry cannot leave the target, neither by its name nor by a link of the archive, a link
 * that existed before, or one that another process creates meanwhile. Refused, before anything of that
 * entry is done (earlier entries stay):
 *
 *         names that are absolute or have a ".." component
 *         names that lead through a link, or through anything else that is not a directory
 *         a directory where something else exists, and anything else where a directory exists
 *         hard links to anything but a regular file in the target
 *         devices and FIFOs
 *
 * A file is written under a random hidden name and renamed when it is complete, replacing what was there;
 * so are links. Existing directories are kept as they are; missing parents are created. A symbolic link
 * may point anywhere: nothing here follows it.
 *
 * Preserved are permission bits and the sticky bit regardless of the umask (setuid and setgid are not),
 * the times of files and links, and, if requested, owners by number. A directory that its owner may not
 * write to gets its mode at the end. Nothing is synced to disk.
 */

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "archive/tar.h"

#define EXTRACT_DEFERRED_MAX (8 * MiB) /* names of directories whose modes are set at the end */

struct extract {
        uint64_t entries; /* done */
        uint64_t bytes;   /* written to files */

        int _root;
        bool _keep_owner;
        struct ids *_ids;
        const struct tar_entry *_entry; /* current; the caller's */
        int _dir;                       /* its directory, or -EBADF: _root itself */
        struct buf _dir_name;           /* of _dir, relative to the root */
        struct buf _name;               /* of the entry, without empty and "." components */
        size_t _leaf;                   /* where its last component begins */
        int _file;
        char _temp[sizeof(".hutch-") + ID_HEX_LEN]; /* "" when there is none */
        struct buf _deferred;                       /* directories whose modes are set at the end */
};

/* Takes rootfd, which may be an O_PATH descriptor. */
void extract_init(struct extract *x, int rootfd, bool keep_owner, struct ids *ids);

/* Removes an incomplete file. */
void extract_done(struct extract *x);

/* All return 0, or negative with *e filled: ERR_INVALID for an entry that is refused, otherwise by errno.
 * The entry must stay valid until extract_entry_end. */
int extract_entry(struct extract *x, const struct tar_entry *entry, struct err *e) must_check;
int extract_data(struct extract *x, struct str data, struct err *e) must_check;
int extract_entry_end(struct extract *x, struct err *e) must_check;

/* After the last entry, until it returns 0; 1: there is more to do. */
int extract_finish(struct extract *x, struct err *e) must_check;

#endif
