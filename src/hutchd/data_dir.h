/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_DATA_DIR_H
#define HUTCH_HUTCHD_DATA_DIR_H

/*
 * The data folder: everything that an installation of hutchd keeps.
 *
 *         lock             held by the one process that uses the folder
 *         installation     the id of this installation, 32 hexadecimal digits, made once
 *         secret           32 random bytes, made once: signs tokens of sandboxes
 *         store.sqlite     records and keys (docs/internals/store.md)
 *         audit.log        who did what, if nobody configured another place
 *         drivers/NAME/    a driver's own
 *
 * The folder is made if it is missing, with mode 0700. It must be ours (or root's), and nobody else
 * may write into it: who can put files here can make himself an administrator. What is made once is
 * written aside, brought to disk and renamed, so it is there whole or not at all; what is there but
 * can't be right is an error and is left as it is.
 *
 * The id is what sandboxes are found again by. A folder with a store and without an id has lost it,
 * and with it everything that runs: that is refused, not papered over with a new one.
 */

#include "base/err.h"
#include "base/id.h"
#include "base/str.h"

#define DATA_SECRET_SIZE 32

struct data {
        const char *path; /* the caller's */
        char installation[ID_HEX_LEN + 1];
        uint8_t secret[DATA_SECRET_SIZE];

        int _lock;
};

/* Blocks (it writes and waits for the disk): for the time of the program's start. ERR_CONFLICT if
 * another hutchd has it, ERR_FORBIDDEN if others may write, ERR_EXHAUSTED if the disk is full,
 * ERR_INTERNAL if something in it is damaged. The path must stay. */
int data_dir_open(struct data *d, const char *path, struct ids *ids, struct err *e) must_check;

/* Gives up the lock and wipes the secret. A process opens a folder once. */
void data_dir_close(struct data *d);

/* A path in the folder. -ENAMETOOLONG, as error. */
int data_dir_path(const struct data *d, const char *name, char *ret, size_t size, struct err *e)
        must_check;

/* The folder of a driver, which exists afterwards. */
int data_dir_driver(const struct data *d, const char *driver, char *ret, size_t size, struct err *e)
        must_check;

#endif
