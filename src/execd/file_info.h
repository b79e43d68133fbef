/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_FILE_INFO_H
#define HUTCH_EXECD_FILE_INFO_H

/*
 * Files in the JSON of the API: what responses report about a file, and the owner, group and mode that
 * requests set.
 */

#include <sys/stat.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "os/file.h"
#include "os/users.h"

/* --- in responses ---
 *
 * The same object in /files/info, in searches and in directory listings:
 *
 *         {"path":"/a/b","type":"file","size":5,"modified_at":"…","created_at":"…",
 *          "owner":"root","group":"root","mode":644}
 *
 * type is file, directory, symlink or other; mode has the permission bits as octal digits. A path that
 * is not UTF-8 appears with replacement characters and carries its exact bytes in "uri". */

/* Does not follow a symlink and triggers no automount. dirfd may be AT_FDCWD. */
int file_info_stat(int dirfd, const char *name, struct statx *ret) must_check;

/* Appends the object. The caller calls users_refresh, once for many files. */
void file_info_add(struct buf *b, struct str abs_path, const struct statx *st,
                   const struct users *u);

/* --- in requests ---
 *
 * {"owner":"ann","group":"users","mode":644}: the decimal digits of mode are the octal mode. A member
 * that is absent, empty or 0 leaves the attribute unchanged. Owner and group are names, or numbers as
 * text. */

struct permission {
        struct str owner, group;
        int64_t mode;
};

/* For the table of a struct T with a struct permission called m. */
#define PERMISSION_FIELDS(T, m)                                                                   \
        JSON_STR(T, m.owner, "owner", JSON_NULL_OK), JSON_STR(T, m.group, "group", JSON_NULL_OK), \
                JSON_I64(T, m.mode, "mode", JSON_NULL_OK)

/* ERR_INVALID for an invalid mode, ERR_NOT_FOUND for an unknown user or group. The caller calls
 * users_refresh. */
int permission_resolve(const struct permission *p, const struct users *u, struct file_attrs *ret,
                       struct err *e) must_check;

#endif
