/* SPDX-License-Identifier: Apache-2.0 */
#include "os/users.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/lib/check.h"

struct world {
        char dir[64], passwd[80], group[80];
        struct users *users;
};

static void write_file(const char *path, struct str text)
{
        scoped(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        check_true(fd >= 0);
        check_i64_eq(write(fd, text.p, text.n), text.n);
}

static void world_open(struct world *w, struct str passwd, struct str group)
{
        (void) snprintf(w->dir, sizeof(w->dir), "%s/usersXXXXXX", check_tmp());
        check_true(mkdtemp(w->dir) != NULL);
        (void) snprintf(w->passwd, sizeof(w->passwd), "%s/passwd", w->dir);
        (void) snprintf(w->group, sizeof(w->group), "%s/group", w->dir);
        if (passwd.p)
                write_file(w->passwd, passwd);
        if (group.p)
                write_file(w->group, group);
        w->users = users_new(w->passwd, w->group);
        users_refresh(w->users);
}

static void world_close(struct world *w)
{
        users_free(w->users);
        (void) unlink(w->passwd);
        (void) unlink(w->group);
        check_i64_eq(rmdir(w->dir), 0);
}

#define PASSWD                                   \
        "root:x:0:0:root:/root:/bin/sh\n"        \
        "ann:x:1000:100:Ann,,,:/home/ann:\n"     \
        "ann:x:1001:1001::/home/other:/bin/sh\n" \
        "twin:x:1000:1000::/home/twin:/bin/sh\n" \
        "bob:x:2000:2000::/home/bob"
#define GROUP                      \
        "root:x:0:\n"              \
        "users:x:100:bob\n"        \
        "wheel:x:10:root,ann\n"    \
        "audio:x:29:ann,annabel\n" \
        "audio2:x:29:ann\n"        \
        "own:x:100:ann\n"

static void users_are_found_by_name_and_number(void **state)
{
        static const struct {
                const char *name;
                bool found;
                uint32_t uid, gid;
                const char *home;
        } cases[] = {
                { "root", true, 0, 0, "/root" },
                { "ann", true, 1000, 100, "/home/ann" }, /* the first of two lines */
                { "twin", true, 1000, 1000, "/home/twin" },
                { "bob", false, 0, 0, NULL }, /* a field is missing */
                { "an", false, 0, 0, NULL },
                { "", false, 0, 0, NULL },
        };
        struct world w;
        struct user u;

        world_open(&w, STR(PASSWD), STR(GROUP));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].name);
                check_i64_eq(users_by_name(w.users, str_from(cases[i].name), &u), cases[i].found);
                if (!cases[i].found)
                        continue;
                check_u64_eq(u.uid, cases[i].uid);
                check_u64_eq(u.gid, cases[i].gid);
                check_str_eq(u.home, cases[i].home);
        }
        check_true(users_by_id(w.users, 1000, &u));
        check_str_eq(u.name, "ann");
        check_true(users_by_id(w.users, 1001, &u));
        check_false(users_by_id(w.users, 5, &u));
        world_close(&w);
}

static void texts_become_numbers(void **state)
{
        static const struct {
                const char *text;
                int r;
                uint32_t uid;
        } cases[] = {
                { "ann", 0, 1000 },
                { "4242", 0, 4242 },
                { "0", 0, 0 },
                { "nobody-here", -ENOENT, 0 },
                { "", -ENOENT, 0 },
                { "-1", -ENOENT, 0 },
                { "4294967294", 0, 4294967294u },
                { "4294967295", -ERANGE, 0 },
                { "99999999999999999999999", -ERANGE, 0 },
        };
        struct world w;
        uint32_t id;

        world_open(&w, STR(PASSWD), STR(GROUP));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].text);
                check_i64_eq(users_uid_from_text(w.users, str_from(cases[i].text), &id),
                             cases[i].r);
                if (cases[i].r == 0)
                        check_u64_eq(id, cases[i].uid);
        }
        check_i64_eq(users_gid_from_text(w.users, STR("wheel"), &id), 0);
        check_u64_eq(id, 10);
        check_i64_eq(users_gid_from_text(w.users, STR("77"), &id), 0);
        check_u64_eq(id, 77);
        check_i64_eq(users_gid_from_text(w.users, STR("whee"), &id), -ENOENT);
        world_close(&w);
}

static void a_user_has_the_groups_that_name_it(void **state)
{
        struct world w;
        struct user u;
        gid_t list[8];

        world_open(&w, STR(PASSWD), STR(GROUP));
        check_true(users_by_name(w.users, STR("ann"), &u));
        check_u64_eq(users_groups(w.users, &u, list, ARRAY_SIZE(list)), 3);
        check_u64_eq(list[0], 100);
        check_u64_eq(list[1], 10);
        check_u64_eq(list[2], 29);
        check_u64_eq(users_groups(w.users, &u, list, 2), 2);
        world_close(&w);
}

static void names_are_shown_or_else_numbers(void **state)
{
        struct world w;
        char text[64];
        struct buf b;

        world_open(&w, STR(PASSWD "\nod\"d:x:7:7::/:/\n"), STR(GROUP));
        buf_init_fixed(&b, text, sizeof(text));
        users_add_owner(&b, w.users, 1000);
        users_add_owner(&b, w.users, 555);
        users_add_owner(&b, w.users, 7);
        users_add_group(&b, w.users, 29);
        users_add_group(&b, w.users, 31);
        check_str_eq(buf_str(&b), "\"ann\"\"555\"\"od\\\"d\"\"audio\"\"31\"");
        world_close(&w);
}

static void bad_lines_are_no_lines(void **state)
{
        static const struct str bad[] = {
                STR("x:1:1\n"),
                STR(":x:1:1::/:/\n"),
                STR("x:x:-1:1::/:/\n"),
                STR("x:x:1x:1::/:/\n"),
                STR("x:x:4294967295:1::/:/\n"),
                STR("x:x:1:99999999999::/:/\n"),
                STR("x:x:1:1::/\0:/\n"),
                STR("\n\n::::::\n"),
        };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct world w;
                struct user u;

                check_case(bad[i].p);
                world_open(&w, bad[i], bad[i]);
                check_false(users_by_id(w.users, 1, &u));
                check_false(users_by_name(w.users, STR("x"), &u));
                check_true(users_group_name(w.users, 1).p == NULL || i == 5);
                world_close(&w);
        }
}

static void what_is_no_file_is_empty(void **state)
{
        struct world w;
        struct user u;

        world_open(&w, STR_NULL, STR_NULL);
        check_false(users_by_id(w.users, 0, &u));
        check_i64_eq(mkfifo(w.passwd, 0600), 0);
        users_refresh(w.users);
        check_false(users_by_id(w.users, 0, &u));
        check_i64_eq(unlink(w.passwd), 0);
        check_i64_eq(symlink("/dev/zero", w.passwd), 0);
        users_refresh(w.users);
        check_false(users_by_id(w.users, 0, &u));
        world_close(&w);
}

/* A line without end, then more than is read; and the last number is cut in half. */
static void an_endless_file_is_read_in_part(void **state)
{
        scoped(freep) char *text = xcalloc(1, USERS_FILE_MAX + 64);
        static const char first[] = "ann:x:1:1::/:/\n";
        static const char last[] = "bob:x:2:2::/:/bin/sh-and-more";
        struct world w;
        struct user u;

        memset(text, 'a', USERS_FILE_MAX + 64);
        memcpy(text, first, sizeof(first) - 1);
        text[USERS_FILE_MAX - 21] = '\n';
        memcpy(text + USERS_FILE_MAX - 20, last, sizeof(last) - 1);
        world_open(&w, str_of(text, USERS_FILE_MAX + 64), STR(""));
        check_true(users_by_name(w.users, STR("ann"), &u));
        check_false(users_by_name(w.users, STR("bob"), &u));
        check_false(users_by_id(w.users, 2, &u));
        world_close(&w);
}

static void changes_are_seen_after_a_refresh(void **state)
{
        struct world w;
        struct user u;

        world_open(&w, STR("ann:x:1:1::/:/\n"), STR(""));
        check_true(users_by_id(w.users, 1, &u));
        check_i64_eq(unlink(w.passwd), 0);
        users_refresh(w.users);
        check_false(users_by_id(w.users, 1, &u));
        write_file(w.passwd, STR("bob:x:22:1::/:/\n"));
        check_false(users_by_id(w.users, 22, &u));
        users_refresh(w.users);
        check_true(users_by_id(w.users, 22, &u));
        world_close(&w);
}

static void what_could_not_be_read_is_read_later(void **state)
{
        struct rlimit was, none;
        struct user user;
        struct world w;

        world_open(&w, STR_NULL, STR_NULL);
        write_file(w.passwd, STR(PASSWD));
        check_i64_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
        none = (struct rlimit){ 0, was.rlim_max };
        check_i64_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
        users_refresh(w.users);
        check_i64_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
        check_false(users_by_id(w.users, 0, &user));
        users_refresh(w.users);
        check_true(users_by_id(w.users, 0, &user));
        world_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(users_are_found_by_name_and_number),
                cmocka_unit_test(texts_become_numbers),
                cmocka_unit_test(a_user_has_the_groups_that_name_it),
                cmocka_unit_test(names_are_shown_or_else_numbers),
                cmocka_unit_test(bad_lines_are_no_lines),
                cmocka_unit_test(what_is_no_file_is_empty),
                cmocka_unit_test(an_endless_file_is_read_in_part),
                cmocka_unit_test(what_could_not_be_read_is_read_later),
                cmocka_unit_test(changes_are_seen_after_a_refresh),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
