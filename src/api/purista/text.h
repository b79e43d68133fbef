/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_PURISTA_TEXT_H
#define HUTCH_API_PURISTA_TEXT_H

/*
 * A JSON text that is written while it is sent: short pieces are ready at once, long strings (a file, the output of a
 * command) are escaped slice by slice, as fast as the reader takes them. A large response therefore neither needs a
 * second copy of itself nor blocks the loop.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "http/req.h"

#define PURISTA_PIECES_MAX 24

struct purista_text {
        struct buf plain;
        struct {
                size_t from, to; /* in `plain` */
                struct str
                        raw; /* or this, sent as a JSON string; must outlive the text. p is NULL: the former */
        } pieces[PURISTA_PIECES_MAX];
        size_t n;

        size_t at, sent; /* which piece, and how much of it is out */
};

void purista_text_init(struct purista_text *t);
void purista_text_done(struct purista_text *t);
void purista_text_reset(struct purista_text *t);

/* JSON, verbatim. */
void purista_text_add(struct purista_text *t, struct str json);
void purista_text_addf(struct purista_text *t, const char *fmt, ...) printf_like(2, 3);

/* A JSON string; invalid UTF-8 becomes U+FFFD. The first escapes it now, the second when it is sent. */
void purista_text_add_string(struct purista_text *t, struct str s);
void purista_text_add_long(struct purista_text *t, struct str s);

/* before, "name": and the string; before is "{" or ",". */
void purista_text_add_member(struct purista_text *t, const char *before, const char *name,
                             struct str value);

/* Takes the next part of at most HTTP_WRITE_MAX bytes; false at the end. */
bool purista_text_next(struct purista_text *t, struct buf *part);

/* --- texts of callers --- */

#define PURISTA_WORKSPACE "/workspace" /* relative paths start here */

/* A path as the agent takes it literally: the agent expands variables and home directories, because execd's own clients
 * expect that; callers of PURISTA do not. 0, or -ENOMEM. The null view and "" stay. */
int purista_agent_path(struct arena *a, struct str path, struct str *ret) must_check;

/* For messages: cut to that size, control characters replaced. */
#define PURISTA_PRINTABLE_MAX 128
const char *purista_printable(struct str text, char ret[static PURISTA_PRINTABLE_MAX]);

#endif
