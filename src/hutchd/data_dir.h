/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_DATA_DIR_H
#define HUTCH_HUTCHD_DATA_DIR_H

/*
 * The data directory: everything that an installation of hutchd keeps.
 *
 *         lock             held by the one process that uses the directory
 *         installation     the id of this installation, 32 hexadecimal digits, created once
 *         secret           32 random bytes, created once: signs tokens of sandboxes
 *         store.sqlite     records and keys (docs/internals/store.md)
 *         audit.log        the audit log, unless another path is configured
 *         drivers/NAME/    data of a driver
 *
 * A missing directory is created with mode 0700. It must belong to us (or root), and no one else may write to it:
 * whoever can put files here can become an administrator. Files that are created once are written aside, synced and
 * renamed, so they are complete or absent; a damaged one is an error and is left alone.
 *
 * Sandboxes are found again by the installation id. A directory with a store and without an id has lost it, and with it
 * all sandboxes: that is refused, not repaired with a new id.
 */

#include "base/err.h"
#include "base/id.h"
#include "base/str.h"

#define DATA_SECRET_SIZE 32

struct data_dir {
        const char *path; /* of the caller */
        char installation[ID_HEX_LEN + 1];
        uint8_t secret[DATA_SECRET_SIZE];

        int _lock;
};

/* Blocks on the disk: for the start of the program. ERR_CONFLICT if another hutchd uses it, ERR_FORBIDDEN if others may
 * write, ERR_EXHAUSTED if the disk is full, ERR_INTERNAL if a file is damaged. The path must stay valid. */
int data_dir_open(struct data_dir *d, const char *path, struct ids *ids, struct err *e) must_check;

/* Releases the lock and wipes the secret. A process opens a data directory once. */
void data_dir_close(struct data_dir *d);

/* A path in the directory. -ENAMETOOLONG, as error. */
int data_dir_path(const struct data_dir *d, const char *name, char *ret, size_t size, struct err *e)
        must_check;

/* The directory of a driver, which is created. */
int data_dir_driver(const struct data_dir *d, const char *driver, char *ret, size_t size,
                    struct err *e) must_check;

#endif
