/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ARCHIVE_TAR_H
#define HUTCH_ARCHIVE_TAR_H

/*
 * Tar archives as streams: bytes to entries and back, without any I/O.
 *
 * The reader accepts ustar and the older v7 format, GNU's long names (L, K) and numbers in base 256, and
 * pax headers: for one entry (x) path, linkpath, size, mtime, uid and gid; for all that follow (g) mtime,
 * uid and gid. Names of owners, access control lists and other attributes are ignored.
 *
 * It is strict where two programs could see different entries, or where data would be lost: each header's
 * checksum must be right; only regular files have content; sparse files, multi-volume archives, unknown
 * types, global names and sizes are refused with a reason; an archive must have its end marker (a block
 * of zeros), so a truncated one is detected even if it ends between two entries. Anything after the
 * marker is ignored, as other programs do.
 *
 * An entry's name is that of the archive, byte for byte, without NUL and not empty: it may be absolute,
 * contain "..", or lead through a link. The caller has to check that.
 *
 * Memory: TAR_NAME_MAX for each of two names, and TAR_PAX_MAX while a pax header is read, allocated only
 * when needed.
 */

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"

#define TAR_BLOCK    512
#define TAR_NAME_MAX 4096        /* PATH_MAX of the kernel */
#define TAR_PAX_MAX  (256 * KiB) /* one extended attribute alone may have 64 KiB */

enum tar_type {
        TAR_FILE,
        TAR_HARDLINK,
        TAR_SYMLINK,
        TAR_CHAR,
        TAR_BLOCKDEV,
        TAR_DIR,
        TAR_FIFO,
};

struct tar_entry {
        enum tar_type type;
        struct str name;
        struct str link; /* target of a link */
        uint64_t size;   /* of a file's content */
        uint32_t mode;   /* permission bits, setuid, setgid and sticky */
        uint64_t uid, gid;
        int64_t mtime;
        uint32_t mtime_nsec;
};

/* --- reading --- */

/*
 * The input is a view, which each call advances; the result is an event. After TAR_NEED_INPUT the view is
 * empty and the next piece, of any size, may be passed. So a caller may stop after any event and continue
 * later.
 *
 *         tar_reader_init(&t);
 *         for (;;)
 *                 switch (tar_reader_next(&t, &input, &data)) {
 *                 case TAR_NEED_INPUT:    input = more …, or tar_reader_finish(&t)
 *                 case TAR_HEADER:        t.entry
 *                 case TAR_DATA:          data, a view into the input
 *                 case TAR_ENTRY_END:     its content is complete
 *                 default:                t.reason
 *                 }
 */

enum tar_event {
        TAR_NEED_INPUT,
        TAR_HEADER,
        TAR_DATA,
        TAR_ENTRY_END, /* after each TAR_HEADER, also without content */
};

/* Values from extended headers. */
struct tar_extra {
        bool has_size, has_mtime, has_uid, has_gid;
        uint64_t size, uid, gid;
        int64_t mtime;
        uint32_t mtime_nsec;
};

struct tar_reader {
        struct tar_entry entry; /* valid from TAR_HEADER until the call after TAR_ENTRY_END */
        const char *reason;     /* after an error; static text */

        int _state;
        int _error;
        size_t _block_n; /* bytes of the header received so far */
        uint64_t _left;  /* of the content, or of an extended header */
        unsigned _pad;   /* padding after it */
        char _kind;      /* of the extended header: x, g, L, K */
        bool _has_extra; /* an extended header precedes the next entry */
        struct buf _ext; /* an extended header */
        struct buf _name, _link;
        bool _has_name, _has_link; /* from an extended header */
        struct tar_extra _local, _global;
        char _block[TAR_BLOCK];
};

void tar_reader_init(struct tar_reader *t);
void tar_reader_done(struct tar_reader *t);

/* An event, or -EINVAL if malformed, -ENOTSUP, -E2BIG for a header over its limit, -ENOMEM; then
 * again with each further call. */
int tar_reader_next(struct tar_reader *t, struct str *input, struct str *ret_data) must_check;

/* At the end of the input: 0 if the archive is complete, otherwise -EINVAL. */
int tar_reader_finish(struct tar_reader *t) must_check;

/* --- writing --- */

/*
 * ustar, with a pax header for values that do not fit: names that are long or not ASCII, content of 8 GiB
 * or more, large ids, times before 1970 or (TAR_WRITE_NSEC) with fractions of seconds. Names that are not
 * UTF-8 are announced (hdrcharset=BINARY).
 */

enum tar_write_flags {
        TAR_WRITE_NSEC = 1 << 0,
};

/* Appends the headers of an entry. The caller appends entry->size bytes and tar_padding of zeros. */
void tar_write_header(struct buf *b, const struct tar_entry *e, unsigned flags);

/* The maximum that one call appends, for names of up to TAR_NAME_MAX bytes. */
#define TAR_HEADER_MAX (16 * KiB)

static inline unsigned tar_padding(uint64_t size)
{
        return (unsigned) (-size & (TAR_BLOCK - 1));
}

/* Appends the end marker. */
void tar_write_end(struct buf *b);

#endif
