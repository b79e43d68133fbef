/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_LINES_H
#define HUTCH_EXECD_LINES_H

/*
 * Output cut into lines.
 *
 * A line ends with LF, CR, or CR LF, which are not part of it. What is behind the last end is kept
 * until more comes; a line longer than the maximum is given out in pieces of at most that, cut between
 * two UTF-8 characters where there are any. A CR ends its line at once: an LF that comes next, even
 * in a later piece of input, belongs to it.
 *
 * A line that is whole in the input is not copied.
 */

#include "base/buf.h"

/* Escaped six-fold and in its event, a piece still fits into one write (HTTP_WRITE_MAX), and into
 * the line buffers of all known clients. */
#define LINES_MAX (32 * KiB)
#define LINES_MIN 4 /* one character */

struct lines {
        struct buf _partial;
        size_t _given;  /* bytes of _partial given out last, to be dropped */
        bool _after_cr; /* an LF would belong to the line before */
};

/* max: LINES_MAX, or less in tests. */
void lines_init(struct lines *l, size_t max);
void lines_done(struct lines *l);

/* Takes the next line off *input; *ret is valid until the next call. False when the input is used up. */
bool lines_next(struct lines *l, struct str *input, struct str *ret);

/* After the last input: what was not ended. False if there is nothing. */
bool lines_remainder(struct lines *l, struct str *ret);

#endif
