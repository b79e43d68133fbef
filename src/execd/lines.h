/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_LINES_H
#define HUTCH_EXECD_LINES_H

/*
 * Splits output into lines.
 *
 * A line ends with LF, CR or CR LF, which are not part of it. Bytes after the last line end are kept until
 * more arrive. A line that is longer than the maximum is returned in pieces of at most that size, cut
 * between UTF-8 characters where possible. A CR ends its line at once: an LF that follows, even in a later
 * piece of input, belongs to it.
 *
 * A line that is complete in the input is not copied.
 */

#include "base/buf.h"

/* Even if every byte needs a six-byte escape, the event of a piece fits into one write (HTTP_WRITE_MAX), and
 * into the line buffers of all known clients. */
#define LINES_MAX (32 * KiB)
#define LINES_MIN 4 /* one character */

struct lines {
        struct buf _partial;
        size_t _given;  /* bytes of _partial that were returned last, to be dropped */
        bool _after_cr; /* an LF would belong to the previous line */
};

/* max: LINES_MAX, or less in tests. */
void lines_init(struct lines *l, size_t max);
void lines_done(struct lines *l);

/* Removes the next line from *input; *ret is valid until the next call. False when the input is consumed. */
bool lines_next(struct lines *l, struct str *input, struct str *ret);

/* After the last input: the line without an end. False if there is none. */
bool lines_remainder(struct lines *l, struct str *ret);

#endif
