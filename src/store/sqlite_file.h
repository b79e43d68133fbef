/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_SQLITE_FILE_H
#define HUTCH_STORE_SQLITE_FILE_H

/*
 * An SQLite file of ours: opens, checks, upgrades and locks it.
 *
 * A file carries our application id and a table `meta` of named numbers, one of which is the version of its schema. A schema
 * is the list of the steps that lead to it: version n is an empty file after the first n steps. Steps are only ever added. A
 * file of a higher version is refused.
 *
 * Nothing is written before the file was found to be intact, ours, and not newer than this program.
 *
 * Journal: write-ahead, synchronous=FULL, so what is committed survives a power cut. Locking: exclusive from the first access
 * until sqlite3_close, so no other process can even read the file meanwhile; the kernel releases the lock with the process.
 */

#include <sqlite3.h>

#include "base/err.h"

struct sqlite_schema {
        int application_id;
        const char *const *steps; /* SQL */
        int n;
};

int sqlite_file_open(const char *path, const struct sqlite_schema *schema, sqlite3 **ret,
                     struct err *e) must_check;

/* For scoped(). */
void sqlite_file_closep(sqlite3 **db);

/* Maps SQLite's result: a full disk is ERR_EXHAUSTED, a failing one ERR_UNAVAILABLE, a damaged file ERR_INTERNAL. */
int sqlite_file_error(sqlite3 *db, int rc, const char *what, struct err *e);

/* The first column of the first row; 0 if there is no row. */
int sqlite_file_number(sqlite3 *db, const char *sql, int64_t *ret, struct err *e) must_check;

#endif
