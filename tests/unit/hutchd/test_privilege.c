/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/privilege.h"

#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/virtual_file.h"
#include "tests/lib/apart.h"
#include "tests/lib/fake_root.h"

#define NEEDS "only root can become another user"

/* Nobody's on any host. */
#define UID   268435000U
#define GID   268435001U
#define OTHER 268435002U

static const struct identity other_user = { .change = true,
                                            .uid = UID,
                                            .gid = GID,
                                            .groups = { GID },
                                            .n_groups = 1,
                                            .name = "other_user" };

/* --- who --- */

static void test_choice_of_user(void **state)
{
        static const struct {
                const char *name, *user, *driver;
                enum err_code code; /* 0: none */
                bool change;
                uid_t uid;
        } cases[] = {
                { "not configured", NULL, "fake", 0, false, 0 },
                { "a number", "268435000", "fake", 0, true, UID },
                { "a number, and sandboxes of our own", "268435000", "native", 0, true, UID },
                { "root, who may without them", "root", "fake", 0, true, 0 },
                { "root, with them", "root", "native", ERR_FORBIDDEN, false, 0 },
                { "root by its number, with them", "0", "native", ERR_FORBIDDEN, false, 0 },
                { "a user that is not there", "no-such-user", "native", ERR_NOT_FOUND, false, 0 },
                { "a number that is none", "-1", "fake", ERR_NOT_FOUND, false, 0 },
        };

        (void) state;
        if (!apart_possible())
                skip_because(NEEDS);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const struct config c = { .user = cases[i].user,
                                          .drivers = { cases[i].driver },
                                          .n_drivers = 1 };
                struct identity who;
                struct err e = { 0 };

                check_case(cases[i].name);
                check_i64_eq(identity_choose(&c, &who, &e),
                             cases[i].code ? ERR_RETURN(cases[i].code) : 0);
                if (cases[i].code)
                        continue;
                check_u64_eq(who.change, cases[i].change);
                check_u64_eq(who.uid, cases[i].uid);
        }
}

static void test_native_without_a_user_is_not_root(void **state)
{
        const struct config c = { .own_uid = 268435455,
                                  .drivers = { "fake", "native" },
                                  .n_drivers = 2 };
        struct identity who;
        struct err e;

        (void) state;
        if (!apart_possible())
                skip_because(NEEDS);
        check_i64_eq(identity_choose(&c, &who, &e), 0);
        check_true(who.change && who.uid != 0 && who.gid != 0 && who.n_groups > 0);
        for (size_t i = 0; i < who.n_groups; i++)
                check_true(who.groups[i] != 0);
        check_true((who.own && who.uid == c.own_uid) || strcmp(who.name, PRIVILEGE_USER) == 0);
}

static int not_root_chooses(void *data)
{
        const struct config other = { .user = "268435002", .drivers = { "fake" }, .n_drivers = 1 };
        const struct config same = { .user = "268435000", .drivers = { "fake" }, .n_drivers = 1 };
        struct identity who;
        struct err e;

        (void) data;
        apart_check(setgroups(0, NULL) == 0 && setgid(GID) == 0 && setuid(UID) == 0);
        apart_check(identity_choose(&other, &who, &e) == ERR_RETURN(ERR_FORBIDDEN));
        apart_check(identity_choose(&same, &who, &e) == 0 && !who.change);
        apart_check(identity_become(&who, &e) == 0 && geteuid() == UID);
        return 0;
}

static void test_only_root_changes_the_user(void **state)
{
        (void) state;
        if (!apart_possible())
                skip_because(NEEDS);
        apart_run(not_root_chooses, NULL, 0);
}

/* --- for a while, for good --- */

static int enters_and_leaves(void *data)
{
        struct err e;

        (void) data;
        apart_check(identity_switch(&other_user, &e) == 0);
        apart_check(geteuid() == UID && getegid() == GID && getuid() == 0);
        apart_check(getgroups(0, NULL) == 1);
        apart_check(faccessat(AT_FDCWD, "/proc/1/environ", R_OK, AT_EACCESS) < 0);
        identity_restore();
        apart_check(geteuid() == 0 && getegid() == 0);
        return 0;
}

/* The value of a line of /proc/self/status, which is a number of that base. */
static uint64_t status_of(const char *key, int base)
{
        char text[4096], *line;

        if (virtual_file_read("/proc/self/status", text, sizeof(text)) < 0)
                return UINT64_MAX;
        line = strstr(text, key);
        return line ? strtoull(line + strlen(key), NULL, base) : UINT64_MAX;
}

static int becomes(void *data)
{
        static const char *const sets[] = { "\nCapInh:\t", "\nCapPrm:\t", "\nCapEff:\t",
                                            "\nCapBnd:\t", "\nCapAmb:\t" };
        uid_t r, e, s;
        struct err err;

        (void) data;
        apart_check(identity_become(&other_user, &err) == 0);
        apart_check(getresuid(&r, &e, &s) == 0 && r == UID && e == UID && s == UID);
        apart_check(getresgid(&r, &e, &s) == 0 && r == GID && e == GID && s == GID);
        apart_check(getgroups(0, NULL) == 1);
        for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
                apart_check(status_of(sets[i], 16) == 0);
        apart_check(status_of("\nNoNewPrivs:\t", 10) == 1 && status_of("\nSeccomp:\t", 10) == 2);
        apart_check(setuid(0) < 0 && seteuid(0) < 0 && setgroups(0, NULL) < 0);
        identity_restore(); /* of no use to another user */
        apart_check(geteuid() == UID);
        return 0;
}

static void test_for_a_while_and_for_good(void **state)
{
        (void) state;
        if (!apart_possible())
                skip_because(NEEDS);
        check_case("for a while");
        apart_run(enters_and_leaves, NULL, 0);
        check_case("for good");
        apart_run(becomes, NULL, 0);
}

/* --- the data directory --- */

static struct stat stat_of(const struct fake_root *t, const char *name)
{
        struct stat st = { 0 };

        check_i64_eq(lstat(fake_root_path(t, name), &st), 0);
        return st;
}

static void check_shared(const struct fake_root *t, const char *name)
{
        const struct stat st = stat_of(t, name);

        check_u64_eq(st.st_uid, 0);
        check_u64_eq(st.st_gid, GID);
        check_u64_eq(st.st_mode & 07777, S_ISVTX | 0770);
}

static void test_directories_are_shared(void **state)
{
        static const struct {
                const char *name;
                uid_t owner;
                mode_t mode; /* 0: there is none */
                enum err_code code;
        } cases[] = {
                { "none yet", 0, 0, 0 },
                { "root's alone", 0, 0700, 0 },
                { "root's, for others to read", 0, 0755, 0 },
                { "the user's own", UID, 0700, 0 },
                { "another user's", OTHER, 0777, ERR_FORBIDDEN },
        };

        (void) state;
        if (!apart_possible())
                skip_because(NEEDS);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fake_root t = { 0 };
                struct err e = { 0 };

                check_case(cases[i].name);
                fake_root_open(&t);
                fake_root_parents(&t, "/a/data");
                if (cases[i].mode) {
                        check_i64_eq(mkdir(fake_root_path(&t, "/a/data"), 0700), 0);
                        check_i64_eq(chmod(fake_root_path(&t, "/a/data"), cases[i].mode), 0);
                        check_i64_eq(chown(fake_root_path(&t, "/a/data"), cases[i].owner, 0), 0);
                }
                check_i64_eq(identity_share_data(&other_user, fake_root_path(&t, "/a/data"), &e),
                             cases[i].code ? ERR_RETURN(cases[i].code) : 0);
                if (cases[i].code)
                        check_u64_eq(stat_of(&t, "/a/data").st_uid, cases[i].owner);
                else
                        check_shared(&t, "/a/data");
                fake_root_close(&t);
        }
}

/* Of what root alone could have put there, and only files of ours: neither where a link leads, nor what has
 * another name elsewhere. */
static void test_what_root_used_is_handed_over(void **state)
{
        static const struct {
                const char *name;
                mode_t mode;
                uid_t lock; /* whose that is then */
        } cases[] = {
                { "no one else could write there", 0755, UID },
                { "a group could", 0770, 0 },
                { "everyone could", 0757, 0 },
        };

        (void) state;
        if (!apart_possible())
                skip_because(NEEDS);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fake_root t = { 0 };
                char outside[PATH_MAX];
                struct err e;

                check_case(cases[i].name);
                fake_root_open(&t);
                fake_root_put(&t, "/outside", "");
                fake_root_put(&t, "/data/lock", "");
                fake_root_put(&t, "/data/other", "");
                fake_root_put(&t, "/data/drivers/native/x", "");
                (void) snprintf(outside, sizeof(outside), "%s", fake_root_path(&t, "/outside"));
                check_i64_eq(link(outside, fake_root_path(&t, "/data/secret")), 0);
                check_i64_eq(symlink(outside, fake_root_path(&t, "/data/installation")), 0);
                check_i64_eq(chmod(fake_root_path(&t, "/data"), cases[i].mode), 0);
                check_i64_eq(identity_share_data(&other_user, fake_root_path(&t, "/data"), &e), 0);
                check_shared(&t, "/data");
                check_u64_eq(stat_of(&t, "/data/lock").st_uid, cases[i].lock);
                check_u64_eq(stat_of(&t, "/outside").st_uid, 0);
                check_u64_eq(stat_of(&t, "/data/installation").st_uid, 0);
                check_u64_eq(stat_of(&t, "/data/other").st_uid, 0);
                check_u64_eq(stat_of(&t, "/data/drivers/native").st_uid, 0);
                fake_root_close(&t);
        }
}

static void test_no_link_is_shared(void **state)
{
        char target[PATH_MAX];
        struct fake_root t = { 0 };
        struct err e;

        (void) state;
        if (!apart_possible())
                skip_because(NEEDS);
        fake_root_open(&t);
        fake_root_put(&t, "/elsewhere/x", "");
        (void) snprintf(target, sizeof(target), "%s", fake_root_path(&t, "/elsewhere"));
        check_i64_eq(symlink(target, fake_root_path(&t, "/data")), 0);
        check_true(identity_share_data(&other_user, fake_root_path(&t, "/data"), &e) < 0);
        check_u64_eq(stat_of(&t, "/elsewhere").st_gid, getegid());
        fake_root_close(&t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_choice_of_user),
                cmocka_unit_test(test_native_without_a_user_is_not_root),
                cmocka_unit_test(test_only_root_changes_the_user),
                cmocka_unit_test(test_for_a_while_and_for_good),
                cmocka_unit_test(test_directories_are_shared),
                cmocka_unit_test(test_what_root_used_is_handed_over),
                cmocka_unit_test(test_no_link_is_shared),
        };

        return cmocka_run_group_tests_name("privilege", tests, NULL, NULL);
}
