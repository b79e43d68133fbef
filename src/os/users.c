/* SPDX-License-Identifier: Apache-2.0 */
#include "os/users.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/file.h"

/* Small: reserved memory stays allocated, in an agent that has a quarter of a mebibyte. */
#define READ_SIZE (4 * KiB)

struct line {
        uint32_t id;
        uint32_t at; /* where it starts in the text */
};

/* Detects changes of the file. */
struct stamp {
        uint64_t dev, ino, size;
        int64_t mtime, mtime_nsec, ctime, ctime_nsec;
};

/* One file. */
struct table {
        char *path;
        struct buf text;    /* whole lines */
        struct line *lines; /* the well-formed ones, by number */
        size_t n;
        struct stamp stamp;
};

struct users {
        struct table passwd;
        struct table group;
};

/* --- lines --- */

enum {
        PASSWD_NAME,
        PASSWD_PASSWORD,
        PASSWD_UID,
        PASSWD_GID,
        PASSWD_GECOS,
        PASSWD_HOME,
        PASSWD_SHELL,
        PASSWD_FIELDS
};
enum { GROUP_NAME, GROUP_PASSWORD, GROUP_GID, GROUP_MEMBERS, GROUP_FIELDS };

static int parse_id(struct str s, uint32_t *ret)
{
        uint64_t v;
        /* The largest number means "unchanged" to chown(2) and setresuid(2). */
        int r = parse_u64_max(s, USERS_ID_NONE - 1, &v);

        if (r == 0)
                *ret = (uint32_t) v;
        return r;
}

/* Whether the line has at least n fields; further separators belong to the last one. */
static bool split(struct str line, struct str *ret, size_t n)
{
        struct str rest = line;

        if (memchr(line.p, '\0', line.n))
                return false;
        for (size_t i = 0; i < n; i++)
                if (!str_split(&rest, ':', &ret[i]))
                        return false;
        return ret[0].n > 0;
}

static bool parse_user(struct str line, struct user *ret)
{
        struct str f[PASSWD_FIELDS] = { 0 };

        if (!split(line, f, PASSWD_FIELDS) || parse_id(f[PASSWD_UID], &ret->uid) < 0
            || parse_id(f[PASSWD_GID], &ret->gid) < 0)
                return false;
        ret->name = f[PASSWD_NAME];
        ret->home = f[PASSWD_HOME];
        ret->shell = f[PASSWD_SHELL];
        return true;
}

struct group {
        uint32_t gid;
        struct str name;
        struct str members; /* with commas */
};

static bool parse_group(struct str line, struct group *ret)
{
        struct str f[GROUP_FIELDS] = { 0 };

        if (!split(line, f, GROUP_FIELDS) || parse_id(f[GROUP_GID], &ret->gid) < 0)
                return false;
        ret->name = f[GROUP_NAME];
        ret->members = f[GROUP_MEMBERS];
        return true;
}

static bool line_id(const struct users *u, const struct table *t, struct str line, uint32_t *ret)
{
        struct user user = { 0 };
        struct group group = { 0 };

        if (t == &u->passwd) {
                if (!parse_user(line, &user))
                        return false;
                *ret = user.uid;
                return true;
        }
        if (!parse_group(line, &group))
                return false;
        *ret = group.gid;
        return true;
}

/* --- reading --- */

/* False if it could not be opened or read to its end. */
static bool read_text(struct table *t)
{
        scoped(fd_closep) int fd = -EBADF;
        ssize_t n = 1;

        if (file_open_read(t->path, NULL, &fd) < 0)
                return false;
        while (n > 0 && buf_room(&t->text) > 0) {
                size_t want = MIN_OF(READ_SIZE, buf_room(&t->text));
                char *p = buf_reserve(&t->text, want);

                n = p ? read(fd, p, want) : -1;
                buf_advance(&t->text, n > 0 ? (size_t) n : 0);
        }
        /* The limit may have cut a line, and half a number is another number. */
        if (buf_room(&t->text) == 0)
                while (t->text.n > 0 && buf_str(&t->text).p[t->text.n - 1] != '\n')
                        buf_truncate(&t->text, t->text.n - 1);
        return n >= 0;
}

static int compare_lines(const void *a, const void *b)
{
        const struct line *x = a, *y = b;

        if (x->id != y->id)
                return x->id < y->id ? -1 : 1;
        return x->at < y->at ? -1 : x->at > y->at;
}

static void build_index(const struct users *u, struct table *t)
{
        struct str rest = buf_str(&t->text), line;
        size_t room = 0;
        uint32_t id;

        for (size_t i = 0; i < rest.n; i++)
                room += rest.p[i] == '\n';
        /* At most USERS_FILE_MAX / 2 lines can be well-formed. */
        t->lines = xcalloc(room + 1, sizeof(*t->lines));
        t->n = 0;
        while (str_split(&rest, '\n', &line))
                if (line_id(u, t, line, &id))
                        t->lines[t->n++] =
                                (struct line){ id, (uint32_t) (line.p - buf_str(&t->text).p) };
        qsort(t->lines, t->n, sizeof(*t->lines), compare_lines);
}

/* The stamp is taken before reading: a change in between is noticed the next time. A failed read, for
 * lack of descriptors perhaps, is retried the next time. */
static void refresh(const struct users *u, struct table *t)
{
        struct stamp now = { 0 };
        struct stat st;

        if (stat(t->path, &st) == 0)
                now = (struct stamp){
                        .dev = st.st_dev,
                        .ino = st.st_ino,
                        .size = (uint64_t) st.st_size,
                        .mtime = st.st_mtim.tv_sec,
                        .mtime_nsec = st.st_mtim.tv_nsec,
                        .ctime = st.st_ctim.tv_sec,
                        .ctime_nsec = st.st_ctim.tv_nsec,
                };
        if (memcmp(&now, &t->stamp, sizeof(now)) == 0)
                return;
        t->stamp = now;
        free(t->lines);
        buf_done(&t->text);
        buf_init(&t->text, USERS_FILE_MAX);
        if (!read_text(t))
                t->stamp = (struct stamp){ 0 };
        build_index(u, t);
}

static void table_init(struct table *t, const char *path)
{
        t->path = xstrndup_str(str_from(path));
        buf_init(&t->text, USERS_FILE_MAX);
}

static void table_done(struct table *t)
{
        free(t->path);
        free(t->lines);
        buf_done(&t->text);
}

struct users *users_new(const char *passwd, const char *group)
{
        struct users *u = xnew(struct users);

        table_init(&u->passwd, passwd ? passwd : "/etc/passwd");
        table_init(&u->group, group ? group : "/etc/group");
        return u;
}

void users_free(struct users *u)
{
        if (!u)
                return;
        table_done(&u->passwd);
        table_done(&u->group);
        free(u);
}

void users_refresh(struct users *u)
{
        refresh(u, &u->passwd);
        refresh(u, &u->group);
}

/* --- queries --- */

/* The first line of that number, or the null view. */
static struct str find_line(const struct table *t, uint32_t id)
{
        struct str rest, line = STR("");
        size_t lo = 0, hi = t->n;

        while (lo < hi) {
                size_t mid = lo + (hi - lo) / 2;

                if (t->lines[mid].id < id)
                        lo = mid + 1;
                else
                        hi = mid;
        }
        if (lo == t->n || t->lines[lo].id != id)
                return STR_NULL;
        rest = str_skip(buf_str(&t->text), t->lines[lo].at);
        (void) str_split(&rest, '\n', &line);
        return line;
}

bool users_by_id(const struct users *u, uint32_t uid, struct user *ret)
{
        struct str line = find_line(&u->passwd, uid);
        struct user found = { 0 };

        if (!line.p || !parse_user(line, &found))
                return false;
        *ret = found;
        return true;
}

bool users_by_name(const struct users *u, struct str name, struct user *ret)
{
        struct str rest = buf_str(&u->passwd.text), line;
        struct user found = { 0 };

        while (str_split(&rest, '\n', &line)) {
                if (!str_starts_with(line, name) || !parse_user(line, &found)
                    || !str_eq(found.name, name))
                        continue;
                *ret = found;
                return true;
        }
        return false;
}

struct str users_group_name(const struct users *u, uint32_t gid)
{
        struct str line = find_line(&u->group, gid);
        struct group found = { 0 };

        return line.p && parse_group(line, &found) ? found.name : STR_NULL;
}

/* A text that is not a number is an unknown name. */
static int id_or_unknown(struct str text, uint32_t *ret)
{
        int r = parse_id(text, ret);

        return r == -EINVAL ? -ENOENT : r;
}

int users_uid_from_text(const struct users *u, struct str text, uint32_t *ret)
{
        struct user found = { 0 };

        if (!users_by_name(u, text, &found))
                return id_or_unknown(text, ret);
        *ret = found.uid;
        return 0;
}

int users_gid_from_text(const struct users *u, struct str text, uint32_t *ret)
{
        struct str rest = buf_str(&u->group.text), line;
        struct group found = { 0 };

        while (str_split(&rest, '\n', &line)) {
                if (!str_starts_with(line, text) || !parse_group(line, &found)
                    || !str_eq(found.name, text))
                        continue;
                *ret = found.gid;
                return 0;
        }
        return id_or_unknown(text, ret);
}

/* --- the groups of a user --- */

static bool has_member(struct str members, struct str name)
{
        struct str member;

        while (str_split(&members, ',', &member))
                if (str_eq(str_trim(member), name))
                        return true;
        return false;
}

size_t users_groups(const struct users *u, const struct user *user, gid_t *ret, size_t max)
{
        struct str rest = buf_str(&u->group.text), line;
        struct group group = { 0 };
        size_t n = 0;

        ret[n++] = user->gid;
        while (n < max && str_split(&rest, '\n', &line)) {
                size_t i = 0;

                if (!parse_group(line, &group) || !has_member(group.members, user->name))
                        continue;
                while (i < n && ret[i] != group.gid)
                        i++;
                if (i == n)
                        ret[n++] = group.gid;
        }
        return n;
}

/* --- output --- */

static void add_name(struct buf *b, struct str name, uint32_t id)
{
        if (name.p)
                buf_add_quoted(b, name);
        else
                buf_addf(b, "\"%u\"", id);
}

void users_add_owner(struct buf *b, const struct users *u, uint32_t uid)
{
        struct user found = { 0 };

        (void) users_by_id(u, uid, &found);
        add_name(b, found.name, uid);
}

void users_add_group(struct buf *b, const struct users *u, uint32_t gid)
{
        add_name(b, users_group_name(u, gid), gid);
}
