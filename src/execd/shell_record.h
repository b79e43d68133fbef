/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_SHELL_RECORD_H
#define HUTCH_EXECD_SHELL_RECORD_H

/*
 * What a living shell says when a run is over (execd/shell.h), found among whatever else it says:
 *
 *         NUL <nonce> SP '=' NUL
 *         NUL <nonce> SP <exit status> NUL
 *         NUL <nonce> SP '+' <directory> NUL
 *
 * in this order, once for each run. The first comes from a fresh shell only, when it has taken over
 * what an earlier one saved; '-' in place of '+' if the variables could not be saved. The nonce is ours and new for each run. Everything between two NULs that is not of this form is
 * ignored, however long.
 */

#include "base/buf.h"
#include "base/id.h"

struct shell_record {
        bool begun; /* said by a fresh shell */
        bool complete;
        int status;      /* 0 to 255; -1: not heard yet */
        bool saved;      /* the variables */
        const char *cwd; /* absolute, shorter than PATH_MAX; NULL if it is not, valid until begin */

        char _nonce[ID_HEX_LEN + 1];
        struct buf _part; /* of what is between two NULs */
        bool _overlong;   /* and could not be kept */
        char *_cwd;
};

void shell_record_init(struct shell_record *r);
void shell_record_done(struct shell_record *r);

/* Forgets what came before, and expects the record of a run with this nonce. */
void shell_record_begin(struct shell_record *r, const char nonce[static ID_HEX_LEN + 1]);

/* True for the bytes that complete the record. */
bool shell_record_feed(struct shell_record *r, struct str bytes);

#endif
