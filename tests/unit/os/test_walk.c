/* SPDX-License-Identifier: Apache-2.0 */
#include "os/walk.h"

#include "base/base.h"
#include "tests/lib/tree.h"

static const char *const event_names[] = {
        [WALK_ENTRY] = "",
        [WALK_DIR] = "+",
        [WALK_DIR_END] = "-",
        [WALK_FAILED] = "!",
};

static void open_walk(struct walk *w, const struct tree *t, const struct walk_options *o)
{
        int fd = openat(t->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        check_true(fd >= 0);
        check_i64_eq(walk_open(w, fd, o), 0);
}

/* The next entry that is one. */
static int next(struct walk *w, struct walk_entry *e)
{
        int r;

        while ((r = walk_next(w, e)) > 0 && e->event == WALK_AGAIN)
                check_u64_eq(e->path.n, 0);
        return r;
}

/* The complete walk as one line. */
static void trace(const struct tree *t, const struct walk_options *o, struct buf *b)
{
        struct walk w;
        struct walk_entry e;
        int r;

        buf_init(b, MiB);
        open_walk(&w, t, o);
        while ((r = next(&w, &e)) > 0)
                buf_addf(b, "%s%.*s ", event_names[e.event], STR_ARG(e.path));
        check_i64_eq(r, 0);
        walk_close(&w);
}

static void remove_tree(struct tree *t)
{
        struct walk_remove rm;
        int r;

        walk_remove_init(&rm, AT_FDCWD, t->path);
        while ((r = walk_remove_step(&rm)) > 0)
                ;
        check_i64_eq(r, 0);
        walk_remove_done(&rm);
        t->fd = fd_close(t->fd);
}

static const char *const sample[] = {
        "b", "a/", "a/y", "a/x/", "a/x/1", "a.txt", "c/", "l -> a", "p |", NULL,
};

static void test_order_and_depth(void **state)
{
        static const struct {
                const char *name;
                unsigned depth;
                const char *want;
        } cases[] = {
                { "all", 0, "+a +a/x a/x/1 -a/x a/y -a a.txt b +c -c l p " },
                { "one level", 1, "+a -a a.txt b +c -c l p " },
                { "two levels", 2, "+a +a/x -a/x a/y -a a.txt b +c -c l p " },
        };
        struct tree t;

        tree_open(&t);
        tree_fill(t.fd, sample);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(buf_done) struct buf b;

                check_case(cases[i].name);
                trace(&t,
                      &(struct walk_options){ .flags = WALK_SORTED, .depth_max = cases[i].depth },
                      &b);
                check_str_eq(buf_str(&b), cases[i].want);
        }
        remove_tree(&t);
}

static void test_types_and_names(void **state)
{
        static const unsigned char types[] = { DT_DIR, DT_LNK, DT_FIFO, DT_REG };
        static const char *const list[] = { "a/", "b -> a", "c |", "d", NULL };
        struct walk_entry e;
        struct tree t;
        struct walk w;
        size_t i = 0;

        tree_open(&t);
        tree_fill(t.fd, list);
        open_walk(&w, &t, &(struct walk_options){ .flags = WALK_SORTED });
        while (next(&w, &e) > 0) {
                if (e.event == WALK_DIR_END)
                        continue;
                check_i64_eq(e.type, types[i++]);
                check_true(tree_has(e.dirfd, e.name));
                check_u64_eq(e.depth, 1);
        }
        check_u64_eq(i, 4);
        walk_close(&w);
        remove_tree(&t);
}

static void test_skip(void **state)
{
        scoped(buf_done) struct buf b;
        struct walk_entry e;
        struct tree t;
        struct walk w;

        buf_init(&b, 1000);
        tree_open(&t);
        tree_fill(t.fd, sample);
        open_walk(&w, &t, &(struct walk_options){ .flags = WALK_SORTED });
        while (next(&w, &e) > 0) {
                buf_addf(&b, "%s%.*s ", event_names[e.event], STR_ARG(e.path));
                if (e.event == WALK_DIR)
                        walk_skip(&w);
        }
        check_str_eq(buf_str(&b), "+a -a a.txt b +c -c l p ");
        walk_close(&w);
        remove_tree(&t);
}

/* The case a thief would make: a directory is seen, then replaced by a link before it is opened. */
static void test_directory_swapped_for_a_link_is_not_entered(void **state)
{
        static const char *const list[] = { "d/", "d/inside", "outside/", "outside/secret", NULL };
        struct walk_entry e;
        struct tree t;
        struct walk w;

        tree_open(&t);
        tree_fill(t.fd, list);
        open_walk(&w, &t, &(struct walk_options){ .flags = WALK_SORTED });
        check_i64_eq(next(&w, &e), 1);
        check_str_eq(e.path, "d");
        check_i64_eq(renameat(t.fd, "d", t.fd, "moved"), 0);
        check_i64_eq(symlinkat("outside", t.fd, "d"), 0);
        check_i64_eq(next(&w, &e), 1);
        check_i64_eq(e.event, WALK_FAILED);
        check_true(e.error == -ENOTDIR || e.error == -ELOOP);
        check_i64_eq(next(&w, &e), 1);
        check_i64_eq(e.event, WALK_DIR_END);
        check_str_eq(e.path, "d");
        walk_close(&w);
        remove_tree(&t);
}

/* More levels than descriptors: outer directories are closed, and read on afterwards. */
static void test_deep_trees_need_few_descriptors(void **state)
{
        static const char *const more[] = { "0", "z", "y/", "y/1", NULL };
        static const unsigned flags[] = { 0, WALK_SORTED };
        struct tree t;

        tree_open(&t);
        tree_add_deep(t.fd, 200, more);
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
                unsigned fds = tree_open_fds(), files = 0, enters = 0, leaves = 0, deepest = 0;
                struct walk_entry e;
                struct walk w;

                check_case(flags[i] ? "sorted" : "unsorted");
                open_walk(&w, &t, &(struct walk_options){ .flags = flags[i] });
                while (next(&w, &e) > 0) {
                        files += e.event == WALK_ENTRY;
                        enters += e.event == WALK_DIR;
                        leaves += e.event == WALK_DIR_END;
                        deepest = MAX_OF(deepest, e.depth);
                        check_true(e.event != WALK_FAILED);
                        check_true(tree_has(e.dirfd, e.name));
                        if (e.depth % 50 == 0)
                                check_true(tree_open_fds() <= fds + WALK_OPEN_MAX);
                }
                check_u64_eq(files, 600);
                check_u64_eq(enters, 400);
                check_u64_eq(leaves, 400);
                check_u64_eq(deepest, 202);
                walk_close(&w);
                check_u64_eq(tree_open_fds(), fds);
        }
        remove_tree(&t);
}

static void test_paths_too_long_are_reported(void **state)
{
        struct walk_entry e = { 0 };
        unsigned failed = 0;
        struct tree t;
        struct walk w;

        tree_open(&t);
        tree_add_deep(t.fd, 30, NULL);
        open_walk(&w, &t, &(struct walk_options){ .path_max = 20 });
        while (next(&w, &e) > 0) {
                check_true(e.path.n <= 20);
                failed += e.event == WALK_FAILED && e.error == -ENAMETOOLONG;
        }
        check_u64_eq(failed, 1);
        walk_close(&w);
        remove_tree(&t);
}

/* A parked directory must be the one we find behind "..". */
static void test_tree_moved_away_ends_the_walk(void **state)
{
        static const char *const list[] = { "other/", NULL };
        struct walk_entry e;
        struct tree t;
        struct walk w;
        int r;

        tree_open(&t);
        tree_add_deep(t.fd, 60, NULL);
        tree_fill(t.fd, list);
        open_walk(&w, &t, &(struct walk_options){ .flags = WALK_SORTED });
        while ((r = next(&w, &e)) > 0 && e.depth < 60)
                ;
        check_i64_eq(r, 1);
        check_i64_eq(renameat(t.fd, "a/a", t.fd, "other/a"), 0);
        while ((r = next(&w, &e)) > 0)
                check_true(e.depth > 1);
        check_i64_eq(r, -ESTALE);
        walk_close(&w);
        remove_tree(&t);
}

static void test_many_names_are_sorted_in_bounded_memory(void **state)
{
        enum { N = 3000 };
        char name[220], last[256] = "";
        struct walk_entry e;
        unsigned got = 0;
        struct tree t;
        struct walk w;

        tree_open(&t);
        memset(name, 'n', sizeof(name));
        for (unsigned i = 0; i < N; i++) {
                (void) snprintf(name + 200, 20, "%u", i * 7919 % N);
                check_i64_eq(mknodat(t.fd, name, S_IFREG | 0600, 0), 0);
        }
        open_walk(&w, &t, &(struct walk_options){ .flags = WALK_SORTED, .sort_max = 1 });
        while (next(&w, &e) > 0) {
                check_true(strcmp(e.name, last) > 0);
                (void) snprintf(last, sizeof(last), "%s", e.name);
                check_true(w._sorting <= 2 * WALK_SORT_MIN);
                got++;
        }
        check_u64_eq(got, N);
        walk_close(&w);
        remove_tree(&t);
}

static void test_unreadable_directory_is_reported_and_left(void **state)
{
        static const char *const list[] = { "a/", "b", NULL };
        struct tree t;
        scoped(buf_done) struct buf b;

        tree_open(&t);
        tree_fill(t.fd, list);
        check_i64_eq(fchmod(t.fd, 0755), 0);
        check_i64_eq(fchmodat(t.fd, "a", 0, 0), 0);
        if (getuid() == 0)
                check_i64_eq(seteuid(65534), 0);
        trace(&t, &(struct walk_options){ .flags = WALK_SORTED }, &b);
        if (getuid() == 0)
                check_i64_eq(seteuid(0), 0);
        check_str_eq(buf_str(&b), "+a !a -a b ");
        check_i64_eq(fchmodat(t.fd, "a", 0700, 0), 0);
        remove_tree(&t);
}

/* --- one directory --- */

struct listed {
        int dirfd;
        size_t n;
        const char *stop_at; /* with 7 */
        bool remove;
};

static int count_name(void *data, const char *name)
{
        struct listed *l = data;

        check_true(strcmp(name, ".") != 0 && strcmp(name, "..") != 0);
        l->n++;
        if (l->remove)
                check_i64_eq(unlinkat(l->dirfd, name, 0), 0);
        return l->stop_at && strcmp(name, l->stop_at) == 0 ? 7 : 0;
}

static void test_names_of_one_directory(void **state)
{
        struct listed all = { 0 }, stopped = { .stop_at = "b" };
        scoped(fd_closep) int path_only = -EBADF;
        struct tree t;

        tree_open(&t);
        tree_fill(t.fd, sample);
        check_i64_eq(walk_names(t.fd, ".", count_name, &all), 0);
        check_u64_eq(all.n, 6);
        check_i64_eq(walk_names(t.fd, ".", count_name, &stopped), 7);
        check_true(stopped.n >= 1 && stopped.n <= 6);

        check_case("by path, and through an O_PATH descriptor");
        all.n = 0;
        check_i64_eq(walk_names(AT_FDCWD, t.path, count_name, &all), 0);
        path_only = open(t.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        check_i64_eq(walk_names(path_only, "a", count_name, &all), 0);
        check_u64_eq(all.n, 6 + 2);

        check_case("no directory");
        check_i64_eq(walk_names(t.fd, "b", count_name, &all), -ENOTDIR);
        check_i64_eq(walk_names(t.fd, "l", count_name, &all), -ENOTDIR); /* no link is followed */
        check_i64_eq(walk_names(t.fd, "none", count_name, &all), -ENOENT);
        remove_tree(&t);
}

static void test_names_may_be_removed_meanwhile(void **state)
{
        enum { N = 3000 }; /* several buffers */
        struct listed l = { .remove = true }, left = { 0 };
        struct tree t;

        tree_open(&t);
        for (int i = 0; i < N; i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "file-%d", i);
                tree_add(t.fd, name);
        }
        l.dirfd = t.fd;
        check_i64_eq(walk_names(t.fd, ".", count_name, &l), 0);
        check_u64_eq(l.n, N);
        check_i64_eq(walk_names(t.fd, ".", count_name, &left), 0);
        check_u64_eq(left.n, 0);
        remove_tree(&t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_order_and_depth),
                cmocka_unit_test(test_types_and_names),
                cmocka_unit_test(test_skip),
                cmocka_unit_test(test_directory_swapped_for_a_link_is_not_entered),
                cmocka_unit_test(test_deep_trees_need_few_descriptors),
                cmocka_unit_test(test_paths_too_long_are_reported),
                cmocka_unit_test(test_tree_moved_away_ends_the_walk),
                cmocka_unit_test(test_many_names_are_sorted_in_bounded_memory),
                cmocka_unit_test(test_unreadable_directory_is_reported_and_left),
                cmocka_unit_test(test_names_of_one_directory),
                cmocka_unit_test(test_names_may_be_removed_meanwhile),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
