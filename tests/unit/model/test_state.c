/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "model/limits.h"
#include "model/state.h"

/* Rows: from; columns: to. The whole table again, as people read it. */
static void test_every_change(void **state)
{
        static const char *const legal[STATE_MAX_] = {
                /*                     PRpaRSTF */
                [STATE_PENDING] = ".x...x.x",    [STATE_RUNNING] = "..x..xxx",
                [STATE_PAUSING] = ".x.x.xxx",    [STATE_PAUSED] = "....xxxx",
                [STATE_RESUMING] = ".x.x.xxx",   [STATE_STOPPING] = "......xx",
                [STATE_TERMINATED] = "........", [STATE_FAILED] = ".....x..",
        };

        for (int from = 0; from < STATE_MAX_; from++)
                for (int to = 0; to < STATE_MAX_; to++) {
                        struct status s = { .state = from, .reason = STR("OLD"), .changed_ms = 1 };
                        struct status_step step = { (enum state) to, STR("NEW"), STR("why"), 2 };
                        bool ok = legal[from][to] == 'x';
                        struct err e = { 0 };
                        struct arena a;

                        arena_init(&a, 64 * KiB);
                        check_case(state_to_string(from));
                        check_i64_eq(status_change(&s, &a, &step, &e),
                                     ok ? 0 : ERR_RETURN(ERR_CONFLICT));
                        check_i64_eq(s.state, ok ? to : from);
                        check_i64_eq(s.changed_ms, ok ? 2 : 1);
                        check_str_eq(s.reason, ok ? "NEW" : "OLD");
                        check_true(ok == (s.message.p != NULL));
                        arena_done(&a);
                }
}

static void test_a_refusal_names_both_states(void **state)
{
        struct status s = { .state = STATE_PAUSED };
        struct status_step step = { .state = STATE_PAUSING };
        struct err e = { 0 };
        struct arena a;

        arena_init(&a, 64 * KiB);
        check_true(status_change(&s, &a, &step, &e) < 0);
        check_z_eq(e.message, "the sandbox is Paused and cannot become Pausing");
        step.state = STATE_INVALID_;
        check_true(status_change(&s, &a, &step, &e) < 0);
        s.state = STATE_MAX_;
        check_true(status_change(&s, &a, &step, &e) < 0);
        arena_done(&a);
}

static void test_sets(void **state)
{
        for (int i = 0; i < STATE_MAX_; i++) {
                enum state s = (enum state) i;

                check_case(state_to_string(i));
                check_true(state_is_live(s) != state_is_final(s));
                check_i64_eq(state_is_final(s), s == STATE_TERMINATED || s == STATE_FAILED);
        }
        check_false(state_is_live(STATE_MAX_) || state_is_final(STATE_INVALID_));
}

static void test_names(void **state)
{
        check_i64_eq(state_from_string(STR("Running")), STATE_RUNNING);
        check_i64_eq(state_from_string(STR("running")), -EINVAL);
        check_i64_eq(state_from_string(STR("Runnin")), -EINVAL);
        check_i64_eq(state_from_string(STR("")), -EINVAL);
}

/* Drivers repeat what runtimes said, and those what the sandbox said. */
static void test_messages_are_made_clean(void **state)
{
        static char longest[2 * MESSAGE_MAX];
        static const struct {
                struct str in;
                const char *out;
        } cases[] = {
                { STR("plain \xc3\xa4"), "plain \xc3\xa4" },
                { STR("two\nlines\x1b[31m"), "two lines [31m" },
                { STR("bad \xff\xc3"), "bad ??" },
                { STR("csi \xc2\x9b!"), "csi   !" },
                { STR("nul\0!"), "nul !" },
        };
        struct status s = { .state = STATE_PENDING, .changed_ms = 7 };
        struct err e;
        struct arena a;

        arena_init(&a, 64 * KiB);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_i64_eq(status_explain(&s, &a, STR(""), cases[i].in, &e), 0);
                check_str_eq(s.message, cases[i].out);
                check_true(!s.reason.p && !status_check(&s, &state_table) && s.changed_ms == 7);
        }
        memset(longest, 'a', sizeof(longest));
        memcpy(longest + MESSAGE_MAX - 1, "\xc3\xa4", 2);
        check_i64_eq(status_explain(&s, &a, STR("R"), str_of(longest, sizeof(longest)), &e), 0);
        check_u64_eq(s.message.n, MESSAGE_MAX - 1);
        check_i64_eq(status_explain(&s, &a, STR("R"), STR(""), &e), 0);
        check_true(!s.message.p);
        arena_done(&a);
}

static void test_a_full_arena_changes_nothing(void **state)
{
        struct status s = { .state = STATE_PENDING, .reason = STR("OLD") };
        struct status_step step = { STATE_RUNNING, STR("NEW"), STR("message"), 2 };
        struct err e;
        struct arena a;

        arena_init(&a, 0);
        check_i64_eq(status_change(&s, &a, &step, &e), ERR_RETURN(ERR_TOO_LARGE));
        check_i64_eq(s.state, STATE_PENDING);
        check_str_eq(s.reason, "OLD");
        arena_done(&a);
}

static void test_stored_values_are_checked(void **state)
{
        static const struct {
                struct status s;
                bool ok;
        } cases[] = {
                { { STATE_RUNNING, STR("CONTAINER_RUNNING"), STR("fine"), 1 }, true },
                { { STATE_RUNNING, STR_NULL, STR_NULL, 0 }, true },
                { { STATE_MAX_, STR_NULL, STR_NULL, 0 }, false },
                { { -1, STR_NULL, STR_NULL, 0 }, false },
                { { STATE_RUNNING, STR(""), STR_NULL, 0 }, false },
                { { STATE_RUNNING, STR("two words"), STR_NULL, 0 }, false },
                { { STATE_RUNNING, STR_NULL, STR("a\nb"), 0 }, false },
                { { STATE_RUNNING, STR_NULL, STR_NULL, -1 }, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check_i64_eq(!status_check(&cases[i].s, &state_table), cases[i].ok);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_change),
                cmocka_unit_test(test_a_refusal_names_both_states),
                cmocka_unit_test(test_sets),
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_messages_are_made_clean),
                cmocka_unit_test(test_a_full_arena_changes_nothing),
                cmocka_unit_test(test_stored_values_are_checked),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
