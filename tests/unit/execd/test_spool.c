/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/spool.h"

#include <sys/resource.h>
#include <signal.h>

#include "base/base.h"
#include "tests/lib/check.h"

static struct net_loop loop;

static int set_up(void **state)
{
        return net_loop_init(&loop, &clock_system);
}

static int tear_down(void **state)
{
        net_loop_done(&loop);
        return 0;
}

/* Everything that is kept, from an offset on. */
static void check_kept(const struct spool *s, uint64_t from, const char *should)
{
        char text[256];
        size_t n = 0;

        for (uint64_t at = from; at < spool_end(s);) {
                ssize_t got = spool_read(s, at, text + n, sizeof(text) - n);

                check_true(got > 0);
                n += (size_t) got;
                at += (uint64_t) got;
        }
        check_view_eq(str_of(text, n), str_from(should));
}

static void test_the_oldest_goes_first(void **state)
{
        static const struct {
                const char *name;
                const char *writes[4];
                uint64_t start, end;
                const char *kept;
        } cases[] = {
                { "nothing", { NULL }, 0, 0, "" },
                { "fits", { "abc", "def" }, 0, 6, "abcdef" },
                { "just fits", { "abcde", "fghij" }, 0, 10, "abcdefghij" },
                { "one too many", { "abcdefghij", "k" }, 1, 11, "bcdefghijk" },
                { "over the seam", { "abcdefg", "hijklmn" }, 4, 14, "efghijklmn" },
                { "larger than all", { "0123456789abcdefghijklmno" }, 15, 25, "fghijklmno" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct spool *s;

                check_case(cases[i].name);
                check_i64_eq(spool_new(&loop, check_tmp(), 10, &s), 0);
                for (size_t k = 0; k < 4 && cases[i].writes[k]; k++)
                        spool_add(s, str_from(cases[i].writes[k]));
                check_u64_eq(spool_start(s), cases[i].start);
                check_u64_eq(spool_end(s), cases[i].end);
                check_kept(s, cases[i].start, cases[i].kept);
                spool_unref(s);
        }
}

struct reader {
        struct spool_reader reader;
        int calls;
};

static void more(struct net_task *t)
{
        container_of(t, struct reader, reader.task)->calls++;
}

static void test_readers_are_notified_once_a_turn(void **state)
{
        struct reader r = { 0 };
        struct spool *s;

        check_i64_eq(spool_new(&loop, check_tmp(), 100, &s), 0);
        spool_wait(s, &r.reader, more);
        spool_add(s, STR("a"));
        spool_add(s, STR("b"));
        check_i64_eq(r.calls, 0);
        net_loop_run_once(&loop, false);
        check_i64_eq(r.calls, 1);
        spool_finish(s);
        net_loop_run_once(&loop, false);
        check_i64_eq(r.calls, 2);
        check_true(spool_finished(s));
        spool_add(s, STR("c"));
        spool_unwait(&r.reader);
        net_loop_run_once(&loop, false);
        check_i64_eq(r.calls, 2);
        spool_unref(s);
}

/* A full disk, as far as a process can make one: the output is lost, the offsets advance. */
static void test_what_cannot_be_written_is_lost(void **state)
{
        struct rlimit old, small = { 8, 8 };
        struct spool *s;

        check_i64_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
        small.rlim_max = old.rlim_max;
        (void) signal(SIGXFSZ, SIG_IGN);
        check_i64_eq(spool_new(&loop, check_tmp(), 100, &s), 0);
        check_i64_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
        spool_add(s, STR("12345678"));
        spool_add(s, STR("90"));
        check_i64_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
        check_u64_eq(spool_start(s), 10);
        spool_add(s, STR("ab"));
        check_kept(s, spool_start(s), "ab");
        spool_unref(s);
}

static void test_no_such_directory(void **state)
{
        struct spool *s;

        check_i64_eq(spool_new(&loop, "/nonexistent", 100, &s), -ENOENT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_the_oldest_goes_first, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_readers_are_notified_once_a_turn, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_what_cannot_be_written_is_lost, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(test_no_such_directory, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
