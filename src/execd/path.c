/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/path.h"

#include <limits.h>
#include <unistd.h>

#include "base/base.h"
#include "http/url.h"

#define URI_PREFIX    "file://"
#define VARIABLES_MAX 16     /* each may read the file of variables */
#define SHOWN         "%.*s" /* of what a client wrote, in a message */
#define SHOWN_MAX     ((size_t) 100)
#define SHOWN_ARG(s)  (int) MIN_OF((s).n, SHOWN_MAX), (s).p

/* --- variables --- */

static bool is_name_start(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_name(char c)
{
        return is_name_start(c) || (c >= '0' && c <= '9');
}

static struct str take_name(struct str s)
{
        size_t n = 0;

        while (n < s.n && is_name(s.p[n]))
                n++;
        return str_of(s.p, n);
}

/* The value goes into b at once: it may live in memory of this call only. */
static int add_variable(const struct agent *a, struct str name, struct buf *b, struct err *e)
{
        struct arena arena;
        struct str value;

        arena_init(&arena, 2 * ENV_FILE_MAX);
        value = environment_get(&a->env, &arena, name);
        buf_add_str(b, value);
        arena_done(&arena);
        if (!value.p)
                return err_set(e, ERR_NOT_FOUND,
                               "the path refers to the undefined environment variable '" SHOWN "'",
                               SHOWN_ARG(name));
        return 0;
}

/* What *rest, which begins behind a '$', begins with. A '$' before anything but a name is itself:
 * files are called "price$5". */
static int expand_one(const struct agent *a, struct str *rest, struct buf *b, struct err *e)
{
        bool braced = rest->n > 0 && rest->p[0] == '{';
        struct str name = take_name(str_skip(*rest, braced));

        if (!braced && (name.n == 0 || !is_name_start(name.p[0]))) {
                buf_add_char(b, '$');
                return 0;
        }
        if (braced
            && (name.n == 0 || !is_name_start(name.p[0]) || name.n + 1 >= rest->n
                || rest->p[name.n + 1] != '}'))
                return err_set(e, ERR_INVALID,
                               "'${' in a path must be followed by a variable's name and '}'");
        *rest = str_skip(*rest, name.n + (braced ? 2 : 0));
        return add_variable(a, name, b, e);
}

static int expand_variables(const struct agent *a, struct str given, struct buf *b, struct err *e)
{
        size_t count = 0;
        ssize_t at;
        int r;

        while ((at = str_find(given, '$')) >= 0) {
                buf_add_str(b, str_of(given.p, (size_t) at));
                given = str_skip(given, (size_t) at + 1);
                if (++count > VARIABLES_MAX)
                        return err_set(e, ERR_INVALID, "the path has more than %d dollar signs",
                                       VARIABLES_MAX);
                r = expand_one(a, &given, b, e);
                if (r < 0)
                        return r;
        }
        buf_add_str(b, given);
        return 0;
}

/* --- homes --- */

static int add_own_home(const struct agent *a, struct buf *b, struct err *e)
{
        struct err unused;
        struct user user;

        if (add_variable(a, STR("HOME"), b, &unused) == 0 && b->n > 0)
                return 0;
        users_refresh(a->users);
        if (!users_by_id(a->users, geteuid(), &user) || user.home.n == 0)
                return err_set(e, ERR_NOT_FOUND, "there is no home directory: HOME is not set");
        buf_add_str(b, user.home);
        return 0;
}

static int add_home(const struct agent *a, struct str name, struct buf *b, struct err *e)
{
        struct user user;

        if (name.n == 0)
                return add_own_home(a, b, e);
        users_refresh(a->users);
        if (!users_by_name(a->users, name, &user) || user.home.n == 0)
                return err_set(e, ERR_NOT_FOUND,
                               "there is no user '" SHOWN "' with a home directory",
                               SHOWN_ARG(name));
        buf_add_str(b, user.home);
        return 0;
}

/* "~" and "~name" at the beginning, then the rest as it is. */
static int expand_home(const struct agent *a, struct str path, struct buf *b, struct err *e)
{
        ssize_t slash = str_find(path, '/');
        size_t n = slash < 0 ? path.n : (size_t) slash;
        int r = add_home(a, str_of(path.p + 1, n - 1), b, e);

        if (r == 0)
                buf_add_str(b, str_skip(path, n));
        return r;
}

/* --- the whole --- */

static int decode_uri(struct str given, struct buf *b, struct err *e)
{
        struct str path = str_skip(given, sizeof(URI_PREFIX) - 1);
        char room[3 * PATH_MAX]; /* as long as a path can be when all of it is encoded */
        size_t n;

        if (str_starts_with(path, STR("localhost/")))
                path = str_skip(path, sizeof("localhost") - 1);
        if (!str_starts_with(path, STR("/")))
                return err_set(e, ERR_INVALID, "a file: URI must begin with 'file:///'");
        if (path.n > sizeof(room))
                return err_set(e, ERR_INVALID, "the path is too long");
        memcpy(room, path.p, path.n);
        if (url_decode_in_place(room, path.n, 0, &n) < 0)
                return err_set(e, ERR_INVALID, "a file: URI has a bad percent-encoding");
        buf_add(b, room, n);
        return 0;
}

static int expand(const struct agent *a, struct str given, struct buf *b, struct err *e)
{
        char room[PATH_MAX];
        struct buf vars;
        int r;

        if (str_starts_with(given, STR(URI_PREFIX)))
                return decode_uri(given, b, e);
        buf_init_fixed(&vars, room, sizeof(room));
        r = expand_variables(a, given, &vars, e);
        if (r < 0)
                return r;
        b->failed |= vars.failed;
        if (str_starts_with(buf_str(&vars), STR("~")))
                return expand_home(a, buf_str(&vars), b, e);
        buf_add_str(b, buf_str(&vars));
        return 0;
}

/* Puts the workspace before a relative path. */
static void add_base(const struct agent *a, struct str path, struct buf *b)
{
        if (path.p[0] != '/') {
                buf_add_str(b, a->config.workspace);
                buf_add_char(b, '/');
        }
        buf_add_str(b, path);
}

int path_resolve(const struct agent *a, struct arena *arena, struct str given, struct str *ret,
                 struct err *e)
{
        char expanded[PATH_MAX], absolute[PATH_MAX];
        struct buf path, whole;
        struct str copy;
        int r;

        buf_init_fixed(&path, expanded, sizeof(expanded));
        buf_init_fixed(&whole, absolute, sizeof(absolute));
        r = expand(a, given, &path, e);
        if (r < 0)
                return r;
        if (path.n == 0 && !buf_failed(&path))
                return err_set(e, ERR_INVALID, "the path is empty");
        add_base(a, buf_str(&path), &whole);
        if (buf_failed(&path) || buf_failed(&whole))
                return err_set(e, ERR_INVALID, "the path is too long");
        if (memchr(whole.p, '\0', whole.n))
                return err_set(e, ERR_INVALID, "the path contains a NUL byte");
        copy = arena_dup_str(arena, buf_str(&whole));
        if (!copy.p)
                return err_set(e, ERR_EXHAUSTED, "the request has too many paths");
        *ret = copy;
        return 0;
}

void path_add_uri(struct buf *b, struct str path)
{
        buf_add_str(b, STR(URI_PREFIX));
        url_encode_path(b, path);
}
