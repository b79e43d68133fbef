/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_PRIVILEGE_H
#define HUTCH_HUTCHD_PRIVILEGE_H

/*
 * hutchd faces the network and does not run as root. Started as root, it opens what needs root and becomes another user
 * for good: no capabilities, also none in the bounding set, no_new_privs, and the seccomp filter of sandboxes
 * (plan/seccomp.h), because hutchd needs no more of the kernel than the programs in there.
 *
 * The configuration key `user` names the user. Without it, and with the driver native, it is "hutch", or on a host
 * without that user the uid below those of the sandboxes (hutchd/uid_claims.h). Without both, hutchd stays who it is.
 *
 * The data directory then belongs to root and the group of that user (root:hutch 1770). hutchd can neither rename nor
 * replace what belongs to root in it, above all the directory of the warden, so the warden cannot be redirected.
 * Everything else in it belongs to hutchd.
 */

#include <sys/types.h>

#include "base/err.h"
#include "hutchd/config.h"
#include "os/users.h"

#define PRIVILEGE_USER "hutch"

struct identity {
        bool change; /* false: no change */
        bool own;    /* there is no user with this uid: it belongs to the installation */
        uid_t uid;
        gid_t gid;
        gid_t groups[64]; /* supplementary */
        size_t n_groups;
        char name[64];
};

/* Chooses the user. ERR_NOT_FOUND if it does not exist, ERR_FORBIDDEN if we cannot or must not become it. */
int identity_choose(const struct config *c, struct identity *ret, struct err *e) must_check;

/* Acts as that user until identity_restore, so that paths the user controls cannot mislead root. */
int identity_switch(const struct identity *i, struct err *e) must_check;
void identity_restore(void);

/* Becomes that user for good. */
int identity_become(const struct identity *i, struct err *e) must_check;

/* Creates the data directory, or a directory in it, for both root and the user. Files that root alone has used so far
 * become the user's. */
int identity_share_data(const struct identity *i, const char *path, struct err *e) must_check;

#endif
