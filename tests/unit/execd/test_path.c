/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/path.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/agent_world.h"

/* An agent that only resolves. */
struct world {
        struct agent agent;
        struct arena arena;
        char passwd[64];
};

static char *const vars[] = {
        (char *) "HOME=/home/me",
        (char *) "A=/a",
        (char *) "EMPTY=",
        (char *) "TILDE=~/t",
        (char *) "EXECD_SECRET=x",
        (char *) "EXECD_ENVS=",
        NULL,
};

static char *const no_home[] = { (char *) "EXECD_ENVS=", NULL };

static void world_open(struct world *w, char *const *env)
{
        FILE *f;
        int fd;

        memset(w, 0, sizeof(*w));
        (void) snprintf(w->passwd, sizeof(w->passwd), "%s/passwdXXXXXX", check_tmp());
        fd = mkstemp(w->passwd);
        check_true(fd >= 0);
        f = fdopen(fd, "w");
        check_true(f != NULL);
        check_true(fprintf(f, "ann:x:1:1::/home/ann:\nnone:x:2:2:::\nme:x:%u:1::/home/own:\n",
                           (unsigned) geteuid())
                   > 0);
        check_i64_eq(fclose(f), 0);
        w->agent.config.workspace = STR("/base");
        w->agent.users = users_new(w->passwd, "/dev/null");
        environment_init(&w->agent.env, env);
        arena_init(&w->arena, MiB);
}

static void world_close(struct world *w)
{
        users_free(w->agent.users);
        environment_done(&w->agent.env);
        arena_done(&w->arena);
        check_i64_eq(unlink(w->passwd), 0);
}

static void paths_become_absolute(void **state)
{
        static const struct {
                const char *given;
                const char *path; /* NULL: refused */
                enum err_code code;
        } cases[] = {
                { "/x", "/x", 0 },
                { "x/y", "/base/x/y", 0 },
                { ".", "/base/.", 0 },
                { "../x", "/base/../x", 0 },
                { "/a/../b", "/a/../b", 0 },
                { "~", "/home/me", 0 },
                { "~/x", "/home/me/x", 0 },
                { "~ann", "/home/ann", 0 },
                { "~ann/x/~", "/home/ann/x/~", 0 },
                { "x~", "/base/x~", 0 },
                { "~none/x", NULL, ERR_NOT_FOUND },
                { "~nobody", NULL, ERR_NOT_FOUND },
                { "$A/x", "/a/x", 0 },
                { "${A}x", "/ax", 0 },
                { "/x/$A/${A}", "/x//a//a", 0 },
                { "$TILDE", "/home/me/t", 0 },
                { "$EMPTY/x", "/x", 0 },
                { "x$EMPTY", "/base/x", 0 },
                { "$EMPTY", NULL, ERR_INVALID },
                { "$AB", NULL, ERR_NOT_FOUND },
                { "/x/${NO}", NULL, ERR_NOT_FOUND },
                { "$EXECD_SECRET", NULL, ERR_NOT_FOUND },
                { "price$5", "/base/price$5", 0 },
                { "a$", "/base/a$", 0 },
                { "$$A", "/base/$/a", 0 },
                { "${A", NULL, ERR_INVALID },
                { "${}", NULL, ERR_INVALID },
                { "${A B}", NULL, ERR_INVALID },
                { "$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1", NULL, ERR_INVALID },
                { "", NULL, ERR_INVALID },
                { "file:///a/%FF", "/a/\xff", 0 },
                { "file:///a/$A/~", "/a/$A/~", 0 },
                { "file:///a+b", "/a+b", 0 },
                { "file://localhost/a", "/a", 0 },
                { "file://host/a", NULL, ERR_INVALID },
                { "file://", NULL, ERR_INVALID },
                { "file:///a%0", NULL, ERR_INVALID },
                { "file:///a%00b", NULL, ERR_INVALID },
                { "file:x", "/base/file:x", 0 },
        };
        struct world w;

        world_open(&w, vars);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct err e = { 0 };
                struct str path;
                int r = path_resolve(&w.agent, &w.arena, str_from(cases[i].given), &path, &e);

                check_case(cases[i].given);
                check_i64_eq(r, cases[i].path ? 0 : ERR_RETURN(cases[i].code));
                if (r == 0) {
                        check_str_eq(path, cases[i].path);
                        check_i64_eq(path.p[path.n], 0);
                } else {
                        check_i64_eq(e.code, cases[i].code);
                        check_true(e.message[0] != '\0');
                }
        }
        world_close(&w);
}

static void nul_bytes_are_refused(void **state)
{
        struct world w;
        struct err e;
        struct str path;

        world_open(&w, vars);
        check_i64_eq(path_resolve(&w.agent, &w.arena, STR("/a\0b"), &path, &e),
                     ERR_RETURN(ERR_INVALID));
        check_i64_eq(path_resolve(&w.agent, &w.arena, STR("/a$A\0"), &path, &e),
                     ERR_RETURN(ERR_INVALID));
        world_close(&w);
}

static void without_HOME_the_users_file_decides(void **state)
{
        struct world w;
        struct err e;
        struct str path;

        world_open(&w, no_home);
        check_i64_eq(path_resolve(&w.agent, &w.arena, STR("~/x"), &path, &e), 0);
        check_true(str_eq(path, STR("/home/own/x")) || geteuid() == 1);
        check_i64_eq(unlink(w.passwd), 0);
        check_i64_eq(path_resolve(&w.agent, &w.arena, STR("~/x"), &path, &e),
                     ERR_RETURN(ERR_NOT_FOUND));
        check_i64_eq(symlink("/dev/null", w.passwd), 0);
        world_close(&w);
}

static void the_kernel_s_longest_path_is_the_longest(void **state)
{
        static char text[PATH_MAX + 10];
        struct world w;
        struct err e;
        struct str path;

        memset(text, 'x', sizeof(text));
        text[0] = '/';
        world_open(&w, vars);
        check_i64_eq(path_resolve(&w.agent, &w.arena, str_of(text, PATH_MAX - 1), &path, &e), 0);
        check_u64_eq(path.n, PATH_MAX - 1);
        check_true(path_resolve(&w.agent, &w.arena, str_of(text, PATH_MAX), &path, &e) < 0);
        text[0] = 'x';
        check_i64_eq(path_resolve(&w.agent, &w.arena, str_of(text, PATH_MAX - 7), &path, &e), 0);
        check_u64_eq(path.n, PATH_MAX - 1);
        check_true(path_resolve(&w.agent, &w.arena, str_of(text, PATH_MAX - 6), &path, &e) < 0);
        world_close(&w);
}

/* Encoded, a path may be three times as long as the kernel allows. */
static void the_longest_uri_is_decoded(void **state)
{
        static char uri[3 * PATH_MAX + 32] = "file:///";
        size_t n = strlen(uri);
        struct world w;
        struct err e;
        struct str path;

        for (int i = 0; i < PATH_MAX - 2; i++, n += 3)
                memcpy(uri + n, "%FF", 3);
        world_open(&w, vars);
        check_i64_eq(path_resolve(&w.agent, &w.arena, str_of(uri, n), &path, &e), 0);
        check_u64_eq(path.n, PATH_MAX - 1);
        memcpy(uri + n, "%FF", 3);
        check_i64_eq(path_resolve(&w.agent, &w.arena, str_of(uri, n + 3), &path, &e),
                     ERR_RETURN(ERR_INVALID));
        world_close(&w);
}

static void every_byte_goes_into_a_uri(void **state)
{
        scoped(buf_done) struct buf uri;

        buf_init(&uri, KiB);
        path_add_uri(&uri, STR("/a b/\xff%"));
        check_str_eq(buf_str(&uri), "file:///a%20b/%FF%25");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(paths_become_absolute),
                cmocka_unit_test(nul_bytes_are_refused),
                cmocka_unit_test(without_HOME_the_users_file_decides),
                cmocka_unit_test(the_kernel_s_longest_path_is_the_longest),
                cmocka_unit_test(the_longest_uri_is_decoded),
                cmocka_unit_test(every_byte_goes_into_a_uri),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
