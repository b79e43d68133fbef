/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_SHELL_RECORD_H
#define HUTCH_EXECD_SHELL_RECORD_H

/*
 * The records that a persistent shell prints when a run is over (execd/shell.h), found among whatever else
 * it prints:
 *
 *         NUL <nonce> SP '=' NUL
 *         NUL <nonce> SP <exit status> NUL
 *         NUL <nonce> SP '+' <directory> NUL
 *
 * in this order, once for each run. The first comes from a fresh shell only, when it has sourced the variables
 * that an earlier one saved. '-' in place of '+' says that the variables could not be saved. The agent
 * chooses a new nonce for each run. Everything between two NULs that does not have this form is ignored,
 * however long it is.
 */

#include "base/buf.h"
#include "base/id.h"

struct shell_record {
        bool begun; /* reported by a fresh shell */
        bool complete;
        int status;      /* 0 to 255; -1: not reported yet */
        bool saved;      /* the variables */
        const char *cwd; /* absolute, shorter than PATH_MAX; NULL if it is not, valid until begin */

        char _nonce[ID_HEX_LEN + 1];
        struct buf _part; /* of the bytes between two NULs */
        bool _overlong;   /* which are too many to keep */
        char *_cwd;
};

void shell_record_init(struct shell_record *r);
void shell_record_done(struct shell_record *r);

/* Resets the parser for a run with this nonce. */
void shell_record_begin(struct shell_record *r, const char nonce[static ID_HEX_LEN + 1]);

/* True if these bytes complete the records. */
bool shell_record_feed(struct shell_record *r, struct str bytes);

#endif
