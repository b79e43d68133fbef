/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/privilege.h"

#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "model/text.h"
#include "os/confine.h"
#include "os/fd.h"
#include "os/file.h"
#include "plan/seccomp.h"

#define SHARED_MODE (S_ISVTX | 0770)

/* --- the user --- */

static int choose(const struct config *c, const struct users *u, struct identity *ret,
                  struct err *e)
{
        const bool native = config_has_driver(c, "native");
        struct user user = { 0 };
        char number[16];
        struct str text;
        uint32_t uid = 0;

        ret->change = geteuid() == 0 && (c->user || native);
        if (!c->user && !native)
                return 0;
        (void) snprintf(number, sizeof(number), "%u", c->own_uid);
        text = str_from(c->user                                        ? c->user
                        : users_by_name(u, STR(PRIVILEGE_USER), &user) ? PRIVILEGE_USER
                                                                       : number);
        ret->own = !c->user && str_eq(text, str_from(number));
        if (users_uid_from_text(u, text, &uid) < 0)
                return err_set(e, ERR_NOT_FOUND,
                               "there is no user %s; create it, or choose another", QUOTED(text));
        ret->uid = ret->gid = ret->groups[0] = uid;
        ret->n_groups = 1;
        if (users_by_id(u, uid, &user)) {
                ret->gid = user.gid;
                ret->n_groups = users_groups(u, &user, ret->groups, ARRAY_SIZE(ret->groups));
        }
        (void) snprintf(ret->name, sizeof(ret->name), "%.*s", STR_ARG(text));
        if (native && uid == 0)
                return err_set(e, ERR_FORBIDDEN,
                               "hutchd does not stay root with the driver 'native'; choose another "
                               "user");
        if (c->user && !ret->change && uid != geteuid())
                return err_set(e, ERR_FORBIDDEN, "only root can become the user %s", ret->name);
        return 0;
}

int identity_choose(const struct config *c, struct identity *ret, struct err *e)
{
        struct users *u = users_new(NULL, NULL);
        int r;

        *ret = (struct identity){ 0 };
        users_refresh(u);
        r = choose(c, u, ret, e);
        users_free(u);
        return r;
}

/* --- temporarily --- */

int identity_switch(const struct identity *i, struct err *e)
{
        if (!i->change)
                return 0;
        if (setgroups(i->n_groups, i->groups) < 0 || setegid(i->gid) < 0 || seteuid(i->uid) < 0) {
                int r = -errno;

                identity_restore();
                return err_errno(e, r, "become the user %s", i->name);
        }
        return 0;
}

/* The groups of root are not restored: they are not needed any more. */
void identity_restore(void)
{
        if (getuid() == 0 && (seteuid(0) < 0 || setegid(0) < 0))
                abort(); /* a mixed identity is not safe to continue with */
}

/* --- for good --- */

int identity_become(const struct identity *i, struct err *e)
{
        int r;

        if (!i->change)
                return 0;
        if (setgroups(i->n_groups, i->groups) < 0)
                return err_errno(e, -errno, "become the user %s", i->name);
        r = caps_bound(0);
        if (r == 0
            && (setresgid(i->gid, i->gid, i->gid) < 0 || setresuid(i->uid, i->uid, i->uid) < 0))
                r = -errno;
        if (r == 0)
                r = caps_drop();
        if (r == 0)
                r = confine_no_new_privs();
        if (r == 0)
                r = confine_seccomp(seccomp_filter, seccomp_filter_n);
        /* There must be no way back. */
        if (r == 0 && i->uid != 0 && (setuid(0) == 0 || geteuid() == 0))
                r = -EPERM;
        return r < 0 ? err_errno(e, r, "become the user %s", i->name) : 0;
}

/* --- the data directory --- */

/* In a directory that only root could write to, so the names are not links of someone else. */
static int hand_over(int dirfd, const struct identity *i)
{
        static const char *const names[] = {
                "lock",         "installation",     "secret",
                "store.sqlite", "store.sqlite-wal", "store.sqlite-shm",
                "audit.log",
        };

        for (unsigned n = 0; n < ARRAY_SIZE(names) + CONFIG_ROTATE_MAX; n++) {
                scoped(fd_closep) int fd = -EBADF;
                char rotated[32];
                struct stat st;

                /* In a sticky directory the user could not rotate what belongs to root. */
                (void) snprintf(rotated, sizeof(rotated), "audit.log.%u",
                                n + 1 - (unsigned) ARRAY_SIZE(names));
                fd = openat(dirfd, n < ARRAY_SIZE(names) ? names[n] : rotated,
                            O_PATH | O_NOFOLLOW | O_CLOEXEC);

                if (fd < 0 && errno == ENOENT)
                        continue;
                if (fd < 0 || fstat(fd, &st) < 0)
                        return -errno;
                if (S_ISREG(st.st_mode) && st.st_uid == 0 && st.st_nlink == 1
                    && fchownat(fd, "", i->uid, i->gid, AT_EMPTY_PATH) < 0)
                        return -errno;
        }
        return 0;
}

int identity_share_data(const struct identity *i, const char *path, struct err *e)
{
        scoped(fd_closep) int fd = -EBADF;
        struct stat st;
        int r = file_make_parents(path, 0755, &FILE_ATTRS_KEEP);

        if (r == 0 && mkdir(path, 0700) < 0 && errno != EEXIST)
                r = -errno;
        if (r < 0)
                return err_errno(e, r, "create the directory %s", path);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return err_errno(e, -errno, "open the directory %s", path);
        if (fstat(fd, &st) < 0)
                return err_errno(e, -errno, "check the directory %s", path);
        if (st.st_uid != 0 && st.st_uid != i->uid)
                return err_set(e, ERR_FORBIDDEN,
                               "the directory %s belongs to user %u, neither to root nor to %s; "
                               "choose another --data or --user",
                               path, (unsigned) st.st_uid, i->name);
        if (st.st_uid == 0 && !(st.st_mode & (S_IWGRP | S_IWOTH)))
                r = hand_over(fd, i);
        if (r == 0 && (st.st_uid != 0 || st.st_gid != i->gid || (st.st_mode & 07777) != SHARED_MODE)
            && (fchown(fd, 0, i->gid) < 0 || fchmod(fd, SHARED_MODE) < 0))
                r = -errno;
        return r < 0 ? err_errno(e, r, "share the directory %s with %s", path, i->name) : 0;
}
