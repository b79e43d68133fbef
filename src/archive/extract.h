/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ARCHIVE_EXTRACT_H
#define HUTCH_ARCHIVE_EXTRACT_H

/*
 * Entries of a foreign archive become files below a directory, and nowhere else.
 *
 * Names are taken apart, and each directory is opened from the one before without following links.
 * So an entry can't leave the target, neither by its name nor by a link, be it one of the archive,
 * one that was there before, or one that somebody puts there meanwhile. Refused, before anything of
 * that entry is done (earlier ones stay):
 *
 *         names that are absolute or have a ".." part
 *         names that lead through a link, or through anything else that is no directory
 *         a directory where something else is, and anything else where a directory is
 *         hard links to what is not a regular file in the target
 *         devices and FIFOs
 *
 * A file is written under a random hidden name and takes its place when it is complete, replacing
 * what was there; links too. Directories that are there are kept as they are; those that an entry's
 * name needs are made. A symbolic link may point anywhere: nothing here follows it.
 *
 * Kept are permission bits and the sticky bit whatever the umask is (setuid and setgid are not),
 * the times of files and links, and owners, by number, if wanted. A directory that its owner may
 * not write to gets its mode at the end. Nothing is synced to disk.
 */

#include "base/buf.h"
#include "base/err.h"
#include "base/id.h"
#include "archive/tar.h"

#define EXTRACT_LATE_MAX (8 * MiB) /* names of directories whose modes wait */

struct extract {
        uint64_t entries; /* done */
        uint64_t bytes;   /* written to files */

        int _root;
        bool _keep_owner;
        struct ids *_ids;
        const struct tar_entry *_entry; /* under way; the caller's */
        int _dir;                       /* where it goes, or -EBADF: _root itself */
        struct buf _dir_name;           /* of _dir, relative to the root */
        struct buf _name;               /* of the entry, without empty and "." parts */
        size_t _leaf;                   /* where its last part begins */
        int _file;
        char _temp[sizeof(".hutch-") + ID_HEX_LEN]; /* "" when there is none */
        struct buf _late;                           /* directories that get their mode at the end */
};

/* Takes rootfd, which may be an O_PATH descriptor. */
void extract_init(struct extract *x, int rootfd, bool keep_owner, struct ids *ids);

/* Removes what is unfinished. */
void extract_done(struct extract *x);

/* All: 0, or negative with *e filled: ERR_INVALID for an entry that is refused, else by errno. The
 * entry must stay until extract_entry_end. */
int extract_entry(struct extract *x, const struct tar_entry *entry, struct err *e) must_check;
int extract_data(struct extract *x, struct str data, struct err *e) must_check;
int extract_entry_end(struct extract *x, struct err *e) must_check;

/* After the last entry, until it returns 0: 1 there is more to do. */
int extract_finish(struct extract *x, struct err *e) must_check;

#endif
