/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_PERMISSION_H
#define HUTCH_EXECD_PERMISSION_H

/*
 * {"owner":"ann","group":"users","mode":644} as it comes in requests.
 *
 * The decimal digits of mode are the octal mode. What is absent, empty or 0 stays as it is. Owner
 * and group are names, or numbers as text.
 */

#include "base/err.h"
#include "base/json.h"
#include "os/file.h"
#include "os/users.h"

struct permission {
        struct str owner, group;
        int64_t mode;
};

/* For the table of a struct T with a struct permission called m. */
#define PERMISSION_FIELDS(T, m)                                                                   \
        JSON_STR(T, m.owner, "owner", JSON_NULL_OK), JSON_STR(T, m.group, "group", JSON_NULL_OK), \
                JSON_I64(T, m.mode, "mode", JSON_NULL_OK)

/* ERR_INVALID for a mode that is none, ERR_NOT_FOUND for an unknown user or group. users_refresh is
 * the caller's. */
int permission_resolve(const struct permission *p, const struct users *u, struct file_attrs *ret,
                       struct err *e) must_check;

#endif
