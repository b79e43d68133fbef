/* SPDX-License-Identifier: Apache-2.0 */

/*
 * libuv can tell the user's home directory and for that calls getpwuid_r, whose glibc form loads shared
 * libraries at run time: useless in a static program that runs in foreign root file systems, and a
 * tenth of its size. We never ask libuv; this takes the function's place. Users and groups are
 * looked up in os/users.c.
 */

#include <errno.h>
#include <pwd.h>

#include "base/banned.h"

/* NOLINTNEXTLINE(readability-*): glibc's names and types. */
int getpwuid_r(uid_t uid, struct passwd *pwd, char *buf, size_t size, struct passwd **ret)
{
        (void) uid;
        (void) pwd;
        (void) buf;
        (void) size;
        *ret = NULL;
        return ENOENT;
}
