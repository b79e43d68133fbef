/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/uid_claims.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/walk.h"
#include "plan/spec.h"

#define TEXT_MAX    (PATH_MAX + 64)
#define FRESH       ".fresh" /* until it is complete */
#define CLAIMS_MAX  4096
#define NATIVE_DIR  "drivers/native"
#define MESSAGE_FIX "set native.uids in hutchd.yaml to other ones, or leave it out"

/* How many sandboxes: the first that fits. The later ones are for hosts with many installations. */
static const uint32_t sizes[] = { 10000, 1000, 100 };

struct claim {
        struct uid_range range;
        bool own;
        char data[PATH_MAX];
};

struct claims {
        int dir;
        const char *ours;  /* data directory */
        uint32_t our_base; /* that we have claimed; 0: none */
        struct claim *v;   /* of others */
        size_t n;
};

/* --- texts --- */

bool uid_range_parse(struct str text, struct uid_range *ret)
{
        struct str base = STR("0");
        const bool any = str_find(text, ':') < 0;
        uint64_t first, count;

        if (!any && !str_split(&text, ':', &base))
                return false;
        if (parse_u64_max(base, UINT32_MAX - 1, &first) < 0
            || parse_u64_max(text, UINT32_MAX, &count) < 0)
                return false;
        if ((!any && first < PLAN_UIDS) || count < PLAN_UIDS || count % PLAN_UIDS != 0
            || first + count > UINT32_MAX)
                return false;
        *ret = (struct uid_range){ (uint32_t) first, (uint32_t) count };
        return true;
}

/* Written by root, and by no one else. */
static bool read_text(int at, const char *path, char ret[static TEXT_MAX])
{
        scoped(fd_closep) int fd = openat(at, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        struct stat st;
        ssize_t n;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid()
            || (st.st_mode & (S_IWGRP | S_IWOTH)) || st.st_nlink != 1)
                return false;
        n = read(fd, ret, TEXT_MAX - 1);
        if (n <= 0 || ret[n - 1] != '\n')
                return false;
        ret[n - 1] = '\0';
        return true;
}

static int write_text(int at, const char *name, const char *text)
{
        scoped(fd_closep) int fd = -EBADF;

        if (unlinkat(at, FRESH, 0) < 0 && errno != ENOENT)
                return -errno;
        fd = openat(at, FRESH, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 || dprintf(fd, "%s\n", text) < 0 || fsync(fd) < 0
            || renameat(at, FRESH, at, name) < 0)
                return -errno;
        return 0;
}

static bool read_record(const char *data, struct uid_range *ret)
{
        char path[TEXT_MAX], text[TEXT_MAX];

        return snprintf(path, sizeof(path), "%s/" UID_RECORD, data) < (int) sizeof(path)
               && read_text(AT_FDCWD, path, text) && uid_range_parse(str_from(text), ret)
               && ret->base > 0;
}

/* --- the claims of others --- */

static bool parse_claim(const char *name, const char *text, struct claim *ret)
{
        struct str rest = str_from(text), count, own;
        uint64_t base, n;

        if (parse_u64_max(str_from(name), UINT32_MAX, &base) < 0 || !str_split(&rest, ' ', &count)
            || !str_split(&rest, ' ', &own) || !rest.p || rest.n >= sizeof(ret->data)
            || parse_u64_max(count, UINT32_MAX - base, &n) < 0)
                return false;
        ret->range = (struct uid_range){ (uint32_t) base, (uint32_t) n };
        ret->own = str_eq(own, STR("own"));
        memcpy(ret->data, rest.p, rest.n);
        ret->data[rest.n] = '\0';
        return ret->data[0] == '/';
}

/* Claims that are not valid make room. */
static int read_claim(void *data, const char *name)
{
        struct claims *all = data;
        struct uid_range record;
        char text[TEXT_MAX];
        struct claim c;

        if (name[0] == '.')
                return 0;
        if (!read_text(all->dir, name, text) || !parse_claim(name, text, &c)
            || !read_record(c.data, &record) || record.base != c.range.base
            || record.count != c.range.count)
                return unlinkat(all->dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
        if (strcmp(c.data, all->ours) == 0) {
                all->our_base = c.range.base;
                return 0;
        }
        if (all->n == CLAIMS_MAX)
                return -E2BIG;
        all->v = xrealloc(all->v, all->n + 1, sizeof(c));
        all->v[all->n++] = c;
        return 0;
}

/* The claim that has one of these uids, or NULL. */
static const struct claim *find_conflict(const struct claims *all, struct uid_range r, bool own)
{
        const uint64_t first = r.base - own, end = (uint64_t) r.base + r.count;

        for (size_t i = 0; i < all->n; i++) {
                const struct claim *c = &all->v[i];
                const uint64_t their_first = c->range.base - c->own;

                if (first < (uint64_t) c->range.base + c->range.count && their_first < end)
                        return c;
        }
        return NULL;
}

/* --- choosing --- */

/* The lowest free one. The range before the base is left free: its last uid may be that of hutchd. */
static bool find_free(const struct claims *all, uint32_t count, struct uid_range *ret)
{
        uint64_t base = UID_BASE_FIRST;

        while (base + count <= UINT32_MAX) {
                const struct uid_range r = { (uint32_t) base, count };
                const struct claim *c = find_conflict(all, r, true);

                if (!c) {
                        *ret = r;
                        return true;
                }
                base = (uint64_t) c->range.base + c->range.count + PLAN_UIDS;
                base = (base + PLAN_UIDS - 1) / PLAN_UIDS * PLAN_UIDS;
        }
        return false;
}

/* Sandboxes from before uids were recorded have the first ones. */
static bool is_older(const char *data)
{
        char path[TEXT_MAX];

        return snprintf(path, sizeof(path), "%s/" NATIVE_DIR, data) < (int) sizeof(path)
               && access(path, F_OK) == 0;
}

static int choose(const struct claims *all, const struct uid_request *q, struct uid_range *ret,
                  struct err *e)
{
        const struct uid_range configured = q->configured;
        const struct claim *other;
        struct uid_range r = { 0 };

        if (configured.base > 0)
                r = configured;
        else if (read_record(all->ours, &r))
                r.count = configured.count > 0 ? configured.count : r.count;
        else if (is_older(all->ours))
                r = (struct uid_range){ UID_BASE_FIRST, configured.count > 0
                                                                ? configured.count
                                                                : sizes[0] * PLAN_UIDS };
        other = r.base > 0 ? find_conflict(all, r, q->own) : NULL;
        if (other)
                return err_set(e, ERR_CONFLICT,
                               "the uids %u:%u of sandboxes overlap %u:%u, those of the "
                               "installation in %s; " MESSAGE_FIX,
                               r.base, r.count, other->range.base, other->range.count, other->data);
        if (r.base == 0 && configured.count > 0 && !find_free(all, configured.count, &r))
                return err_set(e, ERR_CONFLICT, "no %u uids in a row are free; " MESSAGE_FIX,
                               configured.count);
        for (size_t i = 0; r.base == 0 && i < ARRAY_SIZE(sizes); i++)
                if (!find_free(all, sizes[i] * PLAN_UIDS, &r) && i + 1 == ARRAY_SIZE(sizes))
                        return err_set(e, ERR_CONFLICT,
                                       "other installations have all uids; remove what is not "
                                       "needed in %s, or set native.uids to fewer",
                                       q->claims);
        *ret = r;
        return 0;
}

/* --- all --- */

/* The claim first: without the record it is not valid, and we still have the lock. */
static int save(const struct claims *all, const struct uid_request *q, struct uid_range r)
{
        scoped(fd_closep) int data =
                open(all->ours, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        char name[16], text[TEXT_MAX];
        int result;

        if (data < 0)
                return -errno;
        (void) snprintf(name, sizeof(name), "%u", r.base);
        (void) snprintf(text, sizeof(text), "%u %s %s", r.count, q->own ? "own" : "user",
                        all->ours);
        result = write_text(all->dir, name, text);
        (void) snprintf(text, sizeof(text), "%u:%u", r.base, r.count);
        if (result == 0)
                result = write_text(data, UID_RECORD, text);
        if (result < 0 || all->our_base == 0 || all->our_base == r.base)
                return result;
        (void) snprintf(name, sizeof(name), "%u", all->our_base);
        return unlinkat(all->dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int uid_claims_take(const struct uid_request *q, struct uid_range *ret, struct err *e)
{
        scoped(fd_closep) int dir = -EBADF;
        struct claims all = { 0 };
        char real[PATH_MAX];
        int r = file_make_parents(q->data, 0755, &FILE_ATTRS_KEEP);

        if (r == 0 && mkdir(q->data, 0700) < 0 && errno != EEXIST)
                r = -errno;
        if (r < 0)
                return err_errno(e, r, "create the directory %s", q->data);
        all.ours = realpath(q->data, real);
        if (!all.ours)
                return err_errno(e, -errno, "find the directory %s", q->data);
        if (mkdir(q->claims, 0700) < 0 && errno != EEXIST)
                return err_errno(e, -errno, "create the directory %s", q->claims);
        dir = open(q->claims, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0 || flock(dir, LOCK_EX) < 0)
                return err_errno(e, -errno, "lock the directory %s", q->claims);
        all.dir = dir;
        r = walk_names(dir, ".", read_claim, &all);
        if (r < 0)
                r = err_errno(e, r, "read the uids of other installations in %s", q->claims);
        if (r == 0)
                r = choose(&all, q, ret, e);
        if (r == 0) {
                r = save(&all, q, *ret);
                if (r < 0)
                        (void) err_errno(e, r, "record the uids of sandboxes in %s and %s",
                                         q->claims, q->data);
        }
        free(all.v);
        return r < 0 ? ERR_RETURN(e->code) : 0;
}
