/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_USERS_H
#define HUTCH_OS_USERS_H

/*
 * Users and groups from /etc/passwd and /etc/group, without the C library's NSS, which loads shared
 * objects from whatever root it runs in.
 *
 * The files belong to the sandbox and are not trusted: only regular files are read, only their first
 * USERS_FILE_MAX bytes, and malformed lines are ignored. Of several lines with one name or number the
 * first counts. A file that cannot be read counts as empty.
 *
 *         users_refresh(agent->users);                        once per request
 *         users_add_owner(b, agent->users, st.st_uid);        any number of times
 *
 * The content is cached, with an index by number; users_refresh checks the files (two stat calls) and
 * reads those that have changed. Views are valid until the next users_refresh.
 */

#include <sys/types.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"

#define USERS_FILE_MAX   (1 * MiB)
#define USERS_GROUPS_MAX 1024 /* groups of one user; the kernel allows 65536 */
#define USERS_ID_NONE    UINT32_MAX

struct users;

struct user {
        uint32_t uid;
        uint32_t gid; /* primary */
        struct str name;
        struct str home;  /* may be empty */
        struct str shell; /* may be empty */
};

/* --- life cycle --- */

/* Nothing is read yet. The paths are copied; NULL: those in /etc. */
struct users *users_new(const char *passwd, const char *group) must_check;
void users_free(struct users *u);
void users_refresh(struct users *u);

/* --- queries --- */

bool users_by_name(const struct users *u, struct str name, struct user *ret);
bool users_by_id(const struct users *u, uint32_t uid, struct user *ret);

/* The null view if the group has no name. */
struct str users_group_name(const struct users *u, uint32_t gid);

/* A name, or a number, which need not be in the file. -ENOENT for a name, -ERANGE for a number that is
 * too large. */
int users_uid_from_text(const struct users *u, struct str text, uint32_t *ret) must_check;
int users_gid_from_text(const struct users *u, struct str text, uint32_t *ret) must_check;

/* The groups of this user, as initgroups(3) sets them: the primary one first, no duplicates. Returns how
 * many were written, at most max, which is at least 1. */
size_t users_groups(const struct users *u, const struct user *user, gid_t *ret, size_t max);

/* Appends the name, or the number if there is none, as a JSON string. */
void users_add_owner(struct buf *b, const struct users *u, uint32_t uid);
void users_add_group(struct buf *b, const struct users *u, uint32_t gid);

#endif
