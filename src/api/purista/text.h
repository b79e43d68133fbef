/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_PURISTA_TEXT_H
#define HUTCH_API_PURISTA_TEXT_H

/*
 * A JSON text that is made while it is sent: short pieces that are ready, and long strings (a file, what
 * a command printed) that become JSON piece by piece, as fast as the reader takes them. So a large answer
 * neither needs its own size once more nor keeps the loop while it is written.
 */

#include "base/buf.h"
#include "http/req.h"

#define PURISTA_PIECES_MAX 24

struct purista_text {
        struct buf plain;
        struct {
                size_t from, to; /* in `plain` */
                struct str raw;  /* or this, as a JSON string; has to stay. p is NULL: the former */
        } pieces[PURISTA_PIECES_MAX];
        size_t n;

        size_t at, sent; /* which piece, and how much of it is out */
};

void purista_text_init(struct purista_text *t);
void purista_text_done(struct purista_text *t);
void purista_text_reset(struct purista_text *t);

/* As it is. */
void purista_text_add(struct purista_text *t, struct str json);
void purista_text_addf(struct purista_text *t, const char *fmt, ...) printf_like(2, 3);

/* As a JSON string; invalid UTF-8 becomes U+FFFD. A short one, now; or a long one, when it is sent. */
void purista_text_add_string(struct purista_text *t, struct str s);
void purista_text_add_long(struct purista_text *t, struct str s);

/* Takes the next part of at most HTTP_WRITE_MAX bytes; false at the end. */
bool purista_text_next(struct purista_text *t, struct buf *part);

#endif
