/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/path.h"

#include <limits.h>
#include <unistd.h>

#include "base/base.h"
#include "http/url.h"

#define URI_PREFIX     "file://"
#define VARIABLES_MAX  16     /* each may read the environment file */
#define EXCERPT        "%.*s" /* client text in a message, truncated */
#define EXCERPT_MAX    ((size_t) 100)
#define EXCERPT_ARG(s) (int) MIN_OF((s).n, EXCERPT_MAX), (s).p

/* --- variables --- */

static bool is_name_start(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Copies the value into b: it may live in the arena of this call. */
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
                               "the path refers to the undefined environment variable '" EXCERPT
                               "'",
                               EXCERPT_ARG(name));
        return 0;
}

/* A '$' before anything but a name is literal: "price$5" is a file name. */
static int expand_variables(const struct agent *a, struct str given, struct buf *b, struct err *e)
{
        size_t count = 0;
        ssize_t at;
        int r;

        while ((at = str_find(given, '$')) >= 0) {
                bool braced, named;
                struct str name;

                buf_add_str(b, str_of(given.p, (size_t) at));
                given = str_skip(given, (size_t) at + 1);
                if (++count > VARIABLES_MAX)
                        return err_set(e, ERR_INVALID, "the path has more than %d dollar signs",
                                       VARIABLES_MAX);
                braced = str_starts_with(given, STR("{"));
                name = str_of(given.p + braced, 0);
                while (braced + name.n < given.n
                       && (is_name_start(name.p[name.n])
                           || (name.p[name.n] >= '0' && name.p[name.n] <= '9')))
                        name.n++;
                named = name.n > 0 && is_name_start(name.p[0]);
                if (!braced && !named) {
                        buf_add_char(b, '$');
                        continue;
                }
                if (braced && (!named || name.n + 1 >= given.n || given.p[name.n + 1] != '}'))
                        return err_set(
                                e, ERR_INVALID,
                                "'${' in a path must be followed by a variable's name and '}'");
                given = str_skip(given, name.n + (braced ? 2 : 0));
                r = add_variable(a, name, b, e);
                if (r < 0)
                        return r;
        }
        buf_add_str(b, given);
        return 0;
}

/* --- home directories --- */

static int add_home(const struct agent *a, struct str name, struct buf *b, struct err *e)
{
        struct err unused;
        struct user user;

        if (name.n == 0 && add_variable(a, STR("HOME"), b, &unused) == 0 && b->n > 0)
                return 0;
        users_refresh(a->users);
        if (name.n == 0) {
                if (!users_by_id(a->users, geteuid(), &user) || user.home.n == 0)
                        return err_set(e, ERR_NOT_FOUND,
                                       "there is no home directory: HOME is not set");
        } else if (!users_by_name(a->users, name, &user) || user.home.n == 0) {
                return err_set(e, ERR_NOT_FOUND,
                               "there is no user '" EXCERPT "' with a home directory",
                               EXCERPT_ARG(name));
        }
        buf_add_str(b, user.home);
        return 0;
}

/* --- the complete path --- */

static int decode_uri(struct str given, struct buf *b, struct err *e)
{
        struct str path = str_skip(given, sizeof(URI_PREFIX) - 1);
        char room[3 * PATH_MAX]; /* a path in which every byte is encoded */
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
        struct str path;
        size_t n = 0;
        int r;

        if (str_starts_with(given, STR(URI_PREFIX)))
                return decode_uri(given, b, e);
        buf_init_fixed(&vars, room, sizeof(room));
        r = expand_variables(a, given, &vars, e);
        if (r < 0)
                return r;
        b->failed |= vars.failed;
        path = buf_str(&vars);
        if (str_starts_with(path, STR("~"))) {
                ssize_t slash = str_find(path, '/');

                n = slash < 0 ? path.n : (size_t) slash;
                r = add_home(a, str_of(path.p + 1, n - 1), b, e);
        }
        if (r == 0)
                buf_add_str(b, str_skip(path, n));
        return r;
}

int path_resolve(const struct agent *a, struct arena *arena, struct str given, struct str *ret,
                 struct err *e)
{
        char expanded[PATH_MAX], absolute[PATH_MAX];
        struct buf path, full;
        struct str copy;
        int r;

        buf_init_fixed(&path, expanded, sizeof(expanded));
        buf_init_fixed(&full, absolute, sizeof(absolute));
        r = expand(a, given, &path, e);
        if (r < 0)
                return r;
        if (path.n == 0 && !buf_failed(&path))
                return err_set(e, ERR_INVALID, "the path is empty");
        if (buf_str(&path).p[0] != '/') {
                buf_add_str(&full, a->config.workspace);
                buf_add_char(&full, '/');
        }
        buf_add_str(&full, buf_str(&path));
        if (buf_failed(&path) || buf_failed(&full))
                return err_set(e, ERR_INVALID, "the path is too long");
        if (memchr(full.p, '\0', full.n))
                return err_set(e, ERR_INVALID, "the path contains a NUL byte");
        copy = arena_dup_str(arena, buf_str(&full));
        if (!copy.p)
                return err_set(e, ERR_EXHAUSTED, "the request has too many paths");
        *ret = copy;
        return 0;
}

struct str path_clean(struct arena *arena, struct str path)
{
        char *p = arena_alloc(arena, path.n + 2);
        struct str part;
        size_t n = 0;

        if (!p)
                return STR_NULL;
        while (str_split(&path, '/', &part)) {
                if (part.n == 0 || str_eq(part, STR(".")))
                        continue;
                p[n++] = '/';
                memcpy(p + n, part.p, part.n);
                n += part.n;
        }
        if (n == 0)
                p[n++] = '/';
        p[n] = '\0';
        return str_of(p, n);
}

void path_add_uri(struct buf *b, struct str path)
{
        buf_add_str(b, STR(URI_PREFIX));
        url_encode_path(b, path);
}
