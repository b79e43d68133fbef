/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_PRIVILEGE_H
#define HUTCH_HUTCHD_PRIVILEGE_H

/*
 * hutchd faces the network and is not root. Started as root it opens what only root can, and becomes
 * somebody else for good: no capability, not even in its bounding set, no_new_privs, and the filter of
 * system calls that holds in sandboxes (plan/seccomp.h), because hutchd needs no more of the kernel than
 * the programs in there.
 *
 * Who that is says `user`. With the driver native, whose launcher starts it as root, it is otherwise
 * the user "hutch"; on a machine without one, a number that is nobody's. Without that driver, and
 * without `user`, it stays who it is.
 *
 * The data folder belongs to root then, and to the group of that user (root:hutch 1770): what is
 * root's in it, the warden's folder above all, hutchd can neither rename nor replace, and the warden
 * is never led somewhere else. Everything else in it is hutchd's own.
 */

#include <sys/types.h>

#include "base/err.h"
#include "hutchd/config.h"
#include "os/users.h"

#define PRIVILEGE_USER         "hutch"
#define PRIVILEGE_FALLBACK_UID 268435455U /* below the uids of sandboxes, above those of people */

struct identity {
        bool change; /* else we stay who we are */
        uid_t uid;
        gid_t gid;
        gid_t groups[64]; /* supplementary */
        size_t n_groups;
        char name[64];
};

/* Whom to become. ERR_NOT_FOUND for a user that is not there, ERR_FORBIDDEN if it can't or must not
 * be. */
int identity_choose(const struct config *c, struct identity *ret, struct err *e) must_check;

/* As that user, until `leave`, for what it could do itself as well: then nothing can be done by
 * leading root astray. */
int identity_switch(const struct identity *i, struct err *e) must_check;
void identity_restore(void);

/* For good. */
int identity_become(const struct identity *i, struct err *e) must_check;

/* Makes the data folder, or a folder in it, so that both can be at home in it. What root alone had
 * used so far becomes the user's. */
int identity_share_data(const struct identity *i, const char *path, struct err *e) must_check;

#endif
