/* SPDX-License-Identifier: Apache-2.0 */
#include "os/walk.h"

#include "base/base.h"
#include "tests/lib/tree.h"

static struct tree tree;

static int setup(void **state)
{
        (void) state;
        check_case("");
        tree_open(&tree);
        return 0;
}

static int remove_all(int dirfd, const char *name)
{
        struct walk_remove rm;
        int r;

        walk_remove_init(&rm, dirfd, name);
        while ((r = walk_remove_step(&rm)) > 0)
                ;
        walk_remove_done(&rm);
        return r;
}

static int teardown(void **state)
{
        (void) state;
        check_i64_eq(remove_all(AT_FDCWD, tree.path), 0);
        tree.fd = fd_close(tree.fd);
        return 0;
}

static void test_what_is_removed_and_what_stays(void **state)
{
        static const char *const list[] = {
                "keep/",     "keep/file", "d/",  "d/e/",   "d/e/f", "d/out -> ../keep",
                "l -> keep", "file",      "p |", "empty/", NULL,
        };
        static const char *const roots[] = { "d", "l", "file", "p", "empty", "missing" };

        tree_fill(tree.fd, list);
        for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
                check_case(roots[i]);
                check_i64_eq(remove_all(tree.fd, roots[i]), 0);
                check_false(tree_has(tree.fd, roots[i]));
        }
        check_true(tree_has(tree.fd, "keep/file"));
}

static void test_ten_thousand_levels(void **state)
{
        unsigned fds = tree_open_fds();

        tree_add_deep(tree.fd, 10000, NULL);
        check_i64_eq(remove_all(tree.fd, "a"), 0);
        check_false(tree_has(tree.fd, "a"));
        check_u64_eq(tree_open_fds(), fds);
}

static void test_many_files(void **state)
{
        char name[32];

        check_i64_eq(mkdirat(tree.fd, "d", 0755), 0);
        for (int i = 0; i < 2000; i++) {
                (void) snprintf(name, sizeof(name), i % 3 ? "d/%d" : "d/%d/", i);
                tree_add(tree.fd, name);
        }
        check_i64_eq(remove_all(tree.fd, "d"), 0);
        check_false(tree_has(tree.fd, "d"));
}

/* What others do between two steps: entries vanish, appear, become links. */
static void test_changes_meanwhile(void **state)
{
        static const char *const list[] = {
                "keep/", "keep/file", "d/", "d/a/", "d/a/1", "d/b/", "d/b/1", "d/c", NULL,
        };
        struct walk_remove rm;
        bool added = false;
        int r;

        tree_fill(tree.fd, list);
        walk_remove_init(&rm, tree.fd, "d");
        for (int step = 0; (r = walk_remove_step(&rm)) > 0; step++) {
                (void) unlinkat(tree.fd, "d/c", 0);
                if (step == 3 && renameat(tree.fd, "d/b", tree.fd, "gone") == 0)
                        check_i64_eq(symlinkat("../keep", tree.fd, "d/b"), 0);
                if (!added && !tree_has(tree.fd, "d/a")) {
                        tree_add(tree.fd, "d/a/");
                        tree_add(tree.fd, "d/a/late");
                        added = true;
                }
        }
        check_i64_eq(r, 0);
        walk_remove_done(&rm);
        check_true(added);
        check_false(tree_has(tree.fd, "d"));
        check_true(tree_has(tree.fd, "keep/file"));
}

/* A process that creates entries all the time does not keep us busy for ever. */
static void test_endless_refilling_ends(void **state)
{
        struct walk_remove rm;
        char name[32];
        int r, n = 0;

        check_i64_eq(mkdirat(tree.fd, "d", 0755), 0);
        walk_remove_init(&rm, tree.fd, "d");
        do {
                (void) snprintf(name, sizeof(name), "d/%d", n++);
                tree_add(tree.fd, name);
                r = walk_remove_step(&rm);
        } while (r > 0 && n < 10000);
        check_i64_eq(r, -ENOTEMPTY);
        walk_remove_done(&rm);
}

/* Root may do all; a plain user needs the permissions that the removal gives itself. */
static void test_read_only_directory(void **state)
{
        static const char *const list[] = { "d/", "d/e/", "d/e/f", NULL };

        tree_fill(tree.fd, list);
        check_i64_eq(fchmodat(tree.fd, "d/e", 0555, 0), 0);
        check_i64_eq(fchmodat(tree.fd, "d", 0555, 0), 0);
        check_i64_eq(fchmod(tree.fd, 0777), 0);
        if (geteuid() == 0) {
                check_i64_eq(fchownat(tree.fd, "d", 65534, 65534, 0), 0);
                check_i64_eq(fchownat(tree.fd, "d/e", 65534, 65534, 0), 0);
                check_i64_eq(fchownat(tree.fd, "d/e/f", 65534, 65534, 0), 0);
                check_i64_eq(seteuid(65534), 0);
        }
        check_i64_eq(remove_all(tree.fd, "d"), 0);
        if (getuid() == 0)
                check_i64_eq(seteuid(0), 0);
        check_false(tree_has(tree.fd, "d"));
}

static void test_foreign_files_are_an_error_with_their_path(void **state)
{
        static const char *const list[] = { "d/", "d/e/", "d/e/f", NULL };
        struct walk_remove rm;
        int r;

        if (geteuid() != 0)
                skip_because("needs two users");
        tree_fill(tree.fd, list);
        check_i64_eq(fchmod(tree.fd, 0777), 0);
        check_i64_eq(seteuid(65534), 0);
        walk_remove_init(&rm, tree.fd, "d");
        while ((r = walk_remove_step(&rm)) > 0)
                ;
        check_i64_eq(seteuid(0), 0);
        check_i64_eq(r, -EACCES);
        check_str_eq(walk_remove_path(&rm), "e/f");
        walk_remove_done(&rm);
        check_true(tree_has(tree.fd, "d/e/f"));
}

#define t(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                t(test_what_is_removed_and_what_stays),
                t(test_ten_thousand_levels),
                t(test_many_files),
                t(test_changes_meanwhile),
                t(test_endless_refilling_ends),
                t(test_read_only_directory),
                t(test_foreign_files_are_an_error_with_their_path),
        };

        tree_use_memory();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
