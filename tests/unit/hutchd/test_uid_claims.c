/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/uid_claims.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/walk.h"
#include "tests/lib/check.h"

/* Directories for claims and data below it. */
static char root[64];

static int setup(void **state)
{
        (void) state;
        (void) snprintf(root, sizeof(root), "/tmp/uids-XXXXXX");
        return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
        (void) state;
        return walk_remove_all(AT_FDCWD, root);
}

static const char *in(const char *name)
{
        static char path[2][128];
        static unsigned turn;

        turn ^= 1;
        (void) snprintf(path[turn], sizeof(path[turn]), "%s/%s", root, name);
        return path[turn];
}

/* "BASE:COUNT" or the error message of one that starts with this configuration. */
static const char *taken_by(const char *data, const char *configured, bool own)
{
        static char text[512];
        char claims[128], path[128];
        struct uid_request q = { claims, path, { 0, 0 }, own };
        struct uid_range r;
        struct err e;

        (void) snprintf(claims, sizeof(claims), "%s", in("claims"));
        (void) snprintf(path, sizeof(path), "%s", in(data));
        check_true(!configured || uid_range_parse(str_from(configured), &q.configured));
        if (uid_claims_take(&q, &r, &e) < 0)
                (void) snprintf(text, sizeof(text), "%s", e.message);
        else
                (void) snprintf(text, sizeof(text), "%u:%u", r.base, r.count);
        return text;
}

static void write_file(const char *path, const char *text, mode_t mode)
{
        scoped(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

        check_true(fd >= 0 && fchmod(fd, mode) == 0);
        check_i64_eq(write(fd, text, strlen(text)), strlen(text));
}

/* --- texts --- */

static void test_forms(void **state)
{
        static const struct {
                const char *text;
                bool ok;
                struct uid_range range;
        } cases[] = {
                { "268435456:655360000", true, { 268435456, 655360000 } },
                { "65536:65536", true, { 65536, 65536 } },
                { "65536", true, { 0, 65536 } },
                { "4294836224:65536", true, { 4294836224, 65536 } },
                { "4294901760:65536", false, { 0 } }, /* with the invalid uid */
                { "0:65536", false, { 0 } },
                { "1000:65536", false, { 0 } },
                { "65536:0", false, { 0 } },
                { "65536:1000", false, { 0 } },
                { "65537", false, { 0 } },
                { "0", false, { 0 } },
                { ":65536", false, { 0 } },
                { "65536:", false, { 0 } },
                { "65536:65536:1", false, { 0 } },
                { "-65536:65536", false, { 0 } },
                { "", false, { 0 } },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct uid_range r = { 0 };

                check_case(cases[i].text);
                check_true(uid_range_parse(str_from(cases[i].text), &r) == cases[i].ok);
                check_u64_eq(r.base, cases[i].range.base);
                check_u64_eq(r.count, cases[i].range.count);
        }
}

/* --- choosing --- */

static void test_each_has_its_own_and_keeps_it(void **state)
{
        (void) state;
        check_z_eq(taken_by("a", NULL, true), "268435456:655360000");
        check_z_eq(taken_by("b", NULL, true), "923860992:655360000"); /* one range is left out */
        for (int i = 0; i < 2; i++) {
                check_z_eq(taken_by("b", NULL, true), "923860992:655360000");
                check_z_eq(taken_by("a", NULL, true), "268435456:655360000");
        }
        check_z_eq(taken_by("c", "131072", false), "1579286528:131072");
}

static void test_a_configured_range_that_is_taken_is_refused(void **state)
{
        char expected[512];

        (void) state;
        check_z_eq(taken_by("a", "536870912:65536000", false), "536870912:65536000");
        (void) snprintf(expected, sizeof(expected),
                        "the uids 602341376:131072 of sandboxes overlap 536870912:65536000, those "
                        "of the installation in %s; set native.uids in hutchd.yaml to other ones, "
                        "or leave it out",
                        in("a"));
        check_z_eq(taken_by("b", "602341376:131072", false), expected);
        /* The one behind it is free, but not for a hutchd that is the uid before its base. */
        check_z_eq(taken_by("b", "602406912:131072", false), "602406912:131072");
        check_true(strstr(taken_by("b", "602406912:131072", true), "overlap"));
        /* What it has already is no obstacle. */
        check_z_eq(taken_by("a", "536870912:65536000", false), "536870912:65536000");
        /* Others are chosen around it. */
        check_z_eq(taken_by("c", "268435456", false), "268435456:268435456");
        check_z_eq(taken_by("d", "268435456", false), "602603520:268435456");
}

static void test_what_is_removed_or_moved_is_free(void **state)
{
        char old[128];

        (void) state;
        check_z_eq(taken_by("a", NULL, false), "268435456:655360000");
        check_i64_eq(walk_remove_all(AT_FDCWD, in("a")), 0);
        check_z_eq(taken_by("b", NULL, false), "268435456:655360000");
        (void) snprintf(old, sizeof(old), "%s", in("b"));
        check_i64_eq(rename(old, in("moved")), 0);
        check_z_eq(taken_by("moved", NULL, false), "268435456:655360000");
        check_z_eq(taken_by("b", NULL, false), "923860992:655360000");
}

static void test_a_copy_is_refused(void **state)
{
        (void) state;
        check_z_eq(taken_by("a", NULL, false), "268435456:655360000");
        check_i64_eq(mkdir(in("copy"), 0700), 0);
        write_file(in("copy/uids"), "268435456:655360000\n", 0600);
        check_true(strstr(taken_by("copy", NULL, false), "overlap"));
}

static void test_sandboxes_from_before(void **state)
{
        (void) state;
        check_i64_eq(mkdir(in("old"), 0700), 0);
        check_i64_eq(mkdir(in("old/drivers"), 0700), 0);
        check_i64_eq(mkdir(in("old/drivers/native"), 0700), 0);
        check_z_eq(taken_by("old", NULL, true), "268435456:655360000");
        check_i64_eq(unlink(in("old/uids")), 0);
        check_z_eq(taken_by("a", NULL, true), "268435456:655360000");
        check_true(strstr(taken_by("old", NULL, true), "overlap"));
}

static void test_no_room(void **state)
{
        char name[16];
        unsigned n = 0;

        (void) state;
        do
                (void) snprintf(name, sizeof(name), "x%u", n++);
        while (!strstr(taken_by(name, NULL, true), "other installations have all uids") && n < 100);
        check_u64_eq(n, 6 + 1 + 4 + 1); /* of 10000, 1000 and 100 sandboxes, and the one without */
        check_true(
                strstr(taken_by("more", "655360000", true), "no 655360000 uids in a row are free"));
        check_true(strstr(taken_by("less", "65536", true), ":65536"));
}

/* --- files of others --- */

static void test_what_root_did_not_write_does_not_count(void **state)
{
        (void) state;
        check_z_eq(taken_by("a", NULL, false), "268435456:655360000");
        /* A record that others could have written. */
        check_i64_eq(mkdir(in("b"), 0700), 0);
        write_file(in("b/uids"), "65536:65536\n", 0666);
        check_z_eq(taken_by("b", NULL, false), "923860992:655360000");
        /* Claims that are none. */
        write_file(in("claims/1"), "nonsense\n", 0600);
        write_file(in("claims/x"), "65536 own /\n", 0600);
        write_file(in("claims/65536"), "99999999999999999999 own /\n", 0600);
        write_file(in("claims/131072"), "", 0600);
        check_z_eq(taken_by("c", "65536:131072", false), "65536:131072");
        check_i64_eq(access(in("claims/1"), F_OK), -1);
        check_i64_eq(access(in("claims/x"), F_OK), -1);
}

#define POINT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                POINT(test_forms),
                POINT(test_each_has_its_own_and_keeps_it),
                POINT(test_a_configured_range_that_is_taken_is_refused),
                POINT(test_what_is_removed_or_moved_is_free),
                POINT(test_a_copy_is_refused),
                POINT(test_sandboxes_from_before),
                POINT(test_no_room),
                POINT(test_what_root_did_not_write_does_not_count),
        };

        return cmocka_run_group_tests_name("hutchd/uid_claims", tests, NULL, NULL);
}
