/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/file_info.h"

#include <fcntl.h>

#include "base/base.h"
#include "execd/api.h"
#include "execd/path.h"

/* --- responses --- */

int file_info_stat(int dirfd, const char *name, struct statx *ret)
{
        int r = statx(dirfd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
                      STATX_BASIC_STATS | STATX_BTIME, ret);

        return r < 0 ? -errno : 0;
}

/* A time before 1970 is shown as 1970. */
static void add_time(struct buf *b, struct str key, const struct statx_timestamp *t)
{
        char text[TIME_RFC3339_MAX];
        usec_t wall = 0;

        if (t->tv_sec >= 0)
                wall = (usec_t) t->tv_sec * USEC_PER_SEC + t->tv_nsec / 1000;
        buf_add_str(b, key);
        buf_add(b, text, time_to_rfc3339(wall, text));
}

void file_info_add(struct buf *b, struct str abs_path, const struct statx *st,
                   const struct users *u)
{
        unsigned mode = st->stx_mode;

        buf_add_str(b, STR("{\"path\":"));
        buf_add_quoted(b, abs_path);
        if (!str_is_utf8(abs_path)) {
                buf_add_str(b, STR(",\"uri\":\""));
                path_add_uri(b, abs_path);
                buf_add_char(b, '"');
        }
        buf_add_str(b, STR(",\"type\":\""));
        buf_add_str(b, S_ISREG(mode)   ? STR("file")
                       : S_ISDIR(mode) ? STR("directory")
                       : S_ISLNK(mode) ? STR("symlink")
                                       : STR("other"));
        buf_add_str(b, STR("\",\"size\":"));
        buf_add_u64(b, st->stx_size);
        add_time(b, STR(",\"modified_at\":\""), &st->stx_mtime);
        add_time(b, STR("\",\"created_at\":\""),
                 st->stx_mask & STATX_BTIME ? &st->stx_btime : &st->stx_ctime);
        buf_add_str(b, STR("\",\"owner\":"));
        users_add_owner(b, u, st->stx_uid);
        buf_add_str(b, STR(",\"group\":"));
        users_add_group(b, u, st->stx_gid);
        buf_addf(b, ",\"mode\":%o}", mode & 0777U);
}

/* --- requests --- */

int permission_resolve(const struct permission *p, const struct users *u, struct file_attrs *ret,
                       struct err *e)
{
        struct file_attrs attrs = FILE_ATTRS_KEEP;
        int64_t left = p->mode;
        mode_t mode = 0;

        for (unsigned shift = 0; left > 0; shift += 3, left /= 10) {
                if (left % 10 > 7 || shift > 9)
                        return err_set(e, ERR_INVALID,
                                       "mode must be octal digits as 644 or 0, at most 7777");
                mode |= (mode_t) (left % 10) << shift;
        }
        if (p->mode < 0)
                return err_set(e, ERR_INVALID, "mode must not be negative");
        if (p->mode > 0)
                attrs.mode = mode;
        if (p->owner.n > 0 && users_uid_from_text(u, p->owner, &attrs.uid) < 0)
                return err_set(e, ERR_NOT_FOUND, "there is no user '%.*s'", PROBLEM_PATH(p->owner));
        if (p->group.n > 0 && users_gid_from_text(u, p->group, &attrs.gid) < 0)
                return err_set(e, ERR_NOT_FOUND, "there is no group '%.*s'",
                               PROBLEM_PATH(p->group));
        *ret = attrs;
        return 0;
}
