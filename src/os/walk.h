/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_WALK_H
#define HUTCH_OS_WALK_H

/*
 * The one way in which this program reads directories: a tree entry by entry (struct walk), the
 * names of one directory (walk_names), and removing a tree (struct walk_remove). All of it works by
 * descriptors and follows no symbolic link.
 *
 * The caller pulls entries and may do anything between two calls. A call does a small, bounded
 * amount of work (it reads at most one buffer of a directory), so a walk can be cut into slices; a
 * call that found no entry yet returns WALK_AGAIN.
 *
 *         r = walk_open(&w, TAKE_FD(fd), &(struct walk_options){ .flags = WALK_SORTED });
 *         while ((r = walk_next(&w, &entry)) > 0)
 *                 …
 *         walk_close(&w);
 *
 * Order. A directory comes before its content as WALK_DIR and after it as WALK_DIR_END. Within a
 * directory the order is the kernel's, or with WALK_SORTED ascending by bytes. The root itself is
 * not an entry.
 *
 * Links. Each directory is opened by its name in its parent's descriptor with O_NOFOLLOW |
 * O_DIRECTORY. One that is replaced by a link after it was seen is not entered, but reported as
 * WALK_FAILED with -ENOTDIR or -ELOOP.
 *
 * Bounds. At most WALK_OPEN_MAX descriptors are open, with WALK_READ_SIZE bytes each. In deeper
 * trees the outer directories are closed and opened again on the way back through "..", which
 * must lead to the same inode: otherwise the tree was moved meanwhile and the walk ends with
 * -ESTALE. Entries that are created or removed meanwhile in a directory that was closed may be missed
 * or seen twice (reading continues at the kernel's position); otherwise the guarantees are those of
 * readdir(3). Names kept for sorting take at most WALK_SORT_MAX bytes, plus WALK_SORT_MIN for each
 * level, however many names there are (os/names.h). A level costs some 60 bytes besides; there are at
 * most WALK_DEPTH_MAX of them. Paths relative to the root are at most path_max bytes long: an entry
 * with a longer one is reported as WALK_FAILED with -ENAMETOOLONG (its path is that of its directory)
 * and left out.
 */

#include <dirent.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/compiler.h"

#define WALK_OPEN_MAX  32
#define WALK_READ_SIZE 8192
#define WALK_DEPTH_MAX 65536
#define WALK_SORT_MAX  (8 * MiB)
#define WALK_SORT_MIN  (16 * KiB)

enum walk_event {
        WALK_ENTRY,   /* not a directory */
        WALK_DIR,     /* a directory; walk_skip leaves its content out */
        WALK_DIR_END, /* the same, after its content */
        WALK_FAILED,  /* a directory could not be opened or read (further); the walk continues */
        WALK_AGAIN,   /* nothing yet; call again */
};

struct walk_entry {
        enum walk_event event;
        int error;          /* WALK_FAILED: negative errno */
        int dirfd;          /* of the containing directory; the walk's, valid until the next call */
        const char *name;   /* in that directory */
        struct str path;    /* relative to the root, NUL-terminated; valid until the next call */
        unsigned depth;     /* 1 for the entries of the root */
        unsigned char type; /* DT_REG …; never DT_UNKNOWN */
};

enum walk_flags {
        WALK_SORTED = 1 << 0,
};

struct walk_options {
        unsigned flags;
        unsigned depth_max; /* directories at this depth are reported, not entered; 0: no limit */
        size_t path_max;    /* 0: PATH_MAX - 1 */
        size_t sort_max;    /* 0: WALK_SORT_MAX */
};

struct walk_level;

struct walk {
        struct walk_options _options;
        struct walk_level *_levels; /* the root first */
        size_t _n, _room;
        size_t _n_open;   /* innermost levels that have a descriptor */
        size_t _sorting;  /* bytes of names held by all levels */
        struct buf _path; /* of the entry reported last */
        int _state;
        size_t _name_at; /* where its name starts in _path */
};

/* Takes rootfd, a directory open for reading, whatever it returns. -ENOMEM, or fstat's error. */
int walk_open(struct walk *w, int rootfd, const struct walk_options *options) must_check;
void walk_close(struct walk *w);

/* 1 with *ret filled, 0 at the end, or the negative errno that ended the walk. */
int walk_next(struct walk *w, struct walk_entry *ret) must_check;

/* Right after WALK_DIR: its content is left out; WALK_DIR_END comes all the same. */
void walk_skip(struct walk *w);

/* --- one directory --- */

/* Calls fn for each name in the directory at (dirfd, path), except "." and "..", in the kernel's
 * order. dirfd may be an O_PATH descriptor or AT_FDCWD. Stops at the first value other than 0 that fn
 * returns, and returns it; a negative errno if the directory cannot be opened or read. fn may remove
 * the entry. */
typedef int walk_name_fn(void *data, const char *name);
int walk_names(int dirfd, const char *path, walk_name_fn *fn, void *data) must_check;

/* --- removing a tree --- */

/*
 * Removes a file, a link or a tree, in steps, with the guarantees above: a directory that is
 * replaced by a link half-way is not entered, and depth costs no descriptors.
 *
 * Entries that vanish meanwhile are fine, and so is a root that does not exist. Entries that appear
 * meanwhile are removed too, by walking again, up to WALK_REMOVE_PASSES times; after that the result
 * is -ENOTEMPTY. The first entry that cannot be removed ends it with its errno and its path; what was
 * removed is gone. A directory of ours without write permission gets it if its content cannot be
 * removed otherwise.
 */

#define WALK_REMOVE_PASSES   8
#define WALK_REMOVE_PATH_MAX (16 * MiB)

struct walk_remove {
        struct walk walk;
        int _parent;       /* the caller's */
        const char *_name; /* the caller's */
        int _passes;
        bool _walking;
};

/* parentfd and name must stay valid until walk_remove_done. Nothing is removed yet. */
void walk_remove_init(struct walk_remove *rm, int parentfd, const char *name);
void walk_remove_done(struct walk_remove *rm);

/* A piece of the work: 1 there is more, 0 done, or a negative errno. */
int walk_remove_step(struct walk_remove *rm) must_check;

/* All steps, for trees known to be small and for callers that may block. */
int walk_remove_all(int parentfd, const char *name) must_check;

/* After an error: the path it is about, below the root; empty for the root itself. */
struct str walk_remove_path(const struct walk_remove *rm);

#endif
