/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/file_info.h"

#include <fcntl.h>

#include "base/base.h"
#include "execd/path.h"

int file_info_stat(int dirfd, const char *name, struct statx *ret)
{
        if (statx(dirfd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
                  STATX_BASIC_STATS | STATX_BTIME, ret)
            < 0)
                return -errno;
        return 0;
}

static struct str type_name(unsigned mode)
{
        if (S_ISREG(mode))
                return STR("file");
        if (S_ISDIR(mode))
                return STR("directory");
        return S_ISLNK(mode) ? STR("symlink") : STR("other");
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
        buf_add_str(b, STR("{\"path\":"));
        buf_add_quoted(b, abs_path);
        if (!str_is_utf8(abs_path)) {
                buf_add_str(b, STR(",\"uri\":\""));
                path_add_uri(b, abs_path);
                buf_add_char(b, '"');
        }
        buf_add_str(b, STR(",\"type\":\""));
        buf_add_str(b, type_name(st->stx_mode));
        buf_add_str(b, STR("\",\"size\":"));
        buf_add_u64(b, st->stx_size);
        add_time(b, STR(",\"modified_at\":\""), &st->stx_mtime);
        add_time(b, STR("\",\"created_at\":\""),
                 st->stx_mask & STATX_BTIME ? &st->stx_btime : &st->stx_ctime);
        buf_add_str(b, STR("\",\"owner\":"));
        users_add_owner(b, u, st->stx_uid);
        buf_add_str(b, STR(",\"group\":"));
        users_add_group(b, u, st->stx_gid);
        buf_addf(b, ",\"mode\":%o}", st->stx_mode & 0777U);
}
