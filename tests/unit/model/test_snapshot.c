/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "model/limits.h"
#include "model/snapshot.h"

#define SAMPLE_HEAD                                                                   \
        "{\"schema\":1,\"id\":\"snap-1\",\"sandboxId\":\"sb-1\",\"name\":\"before\"," \
        "\"tenant\":\"t\",\"node\":\"n\",\"driver\":\"fake\",\"createdAt\":5,"
#define SAMPLE_STATUS                                                                         \
        "\"status\":{\"state\":\"Failed\",\"reason\":\"snapshot_gone\",\"message\":\"gone\"," \
        "\"lastTransitionAt\":7}"
#define SAMPLE SAMPLE_HEAD SAMPLE_STATUS ",\"version\":3}"
#define SMALL                                                                             \
        "{\"schema\":1,\"id\":\"s\",\"sandboxId\":\"b\",\"tenant\":\"t\",\"node\":\"n\"," \
        "\"driver\":\"d\",\"createdAt\":0,\"status\":{\"state\":\"Creating\","            \
        "\"lastTransitionAt\":0},\"version\":1}"

static void test_a_record_reads_back_as_it_was_written(void **state)
{
        static const char *const cases[] = { SAMPLE, SMALL };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(snapshot_freep) struct snapshot *s = NULL, *copy = NULL;
                scoped(buf_done) struct buf b;
                struct err e = { 0 };

                buf_init(&b, 4 * KiB);
                check_i64_eq(snapshot_decode(str_from(cases[i]), &s, &e), 0);
                check_z_eq(e.message, "");
                copy = snapshot_copy(s);
                snapshot_freep(&s);
                snapshot_encode(&b, copy);
                check_str_eq(buf_str(&b), cases[i]);
        }
}

static void test_texts_that_are_not_records(void **state)
{
        static const struct {
                const char *text, *message;
                enum err_code code;
        } cases[] = {
                { "", "snapshot record: ", ERR_INVALID },
                { "[]", "snapshot record: ", ERR_INVALID },
                { "{\"schema\":2}", "newer hutchd", ERR_UNSUPPORTED },
                { SAMPLE_HEAD SAMPLE_STATUS "}", "version", ERR_INVALID },
                { SAMPLE_HEAD SAMPLE_STATUS ",\"version\":1,\"more\":1}", "more", ERR_INVALID },
                { SAMPLE_HEAD
                  "\"status\":{\"state\":\"Paused\",\"lastTransitionAt\":1},\"version\":1}",
                  "state", ERR_INVALID },
                { SAMPLE_HEAD "\"status\":{\"state\":\"Ready\",\"reason\":\"a b\","
                              "\"lastTransitionAt\":1},\"version\":1}",
                  "reason is not a label", ERR_INVALID },
                { "{\"schema\":1,\"id\":\"../s\",\"sandboxId\":\"b\",\"tenant\":\"t\",\"node\":\"n\","
                  "\"driver\":\"d\",\"createdAt\":0,\"status\":{\"state\":\"Ready\","
                  "\"lastTransitionAt\":0},\"version\":1}",
                  "id: is not an id", ERR_INVALID },
                { "{\"schema\":1,\"id\":\"s\",\"sandboxId\":\"b\",\"tenant\":\"\\u0001\","
                  "\"node\":\"n\",\"driver\":\"d\",\"createdAt\":0,\"status\":{\"state\":\"Ready\","
                  "\"lastTransitionAt\":0},\"version\":1}",
                  "tenant: is empty", ERR_INVALID },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct snapshot *s = NULL;
                struct err e = { 0 };

                check_case(cases[i].text);
                check_i64_eq(snapshot_decode(str_from(cases[i].text), &s, &e),
                             ERR_RETURN(cases[i].code));
                check_true(strstr(e.message, cases[i].message) != NULL);
                check_true(!s);
        }
}

static struct snapshot *made(void)
{
        const struct snapshot_facts f = { .id = STR("snap-1"),
                                          .sandbox_id = STR("sb-1"),
                                          .tenant = STR("t"),
                                          .node = STR("n"),
                                          .driver = STR("fake"),
                                          .now_ms = 5 };
        struct snapshot *s = NULL;
        struct err e;

        check_i64_eq(snapshot_make(&f, &s, &e), 0);
        return s;
}

static void test_a_new_one_is_being_created(void **state)
{
        scoped(snapshot_freep) struct snapshot *s = made();
        struct snapshot_facts bad = { .id = STR("A"), .sandbox_id = STR("sb-1") };
        struct snapshot *none = NULL;
        struct err e;

        check_i64_eq(s->status.state, SNAPSHOT_CREATING);
        check_i64_eq(s->created_ms, 5);
        check_i64_eq(s->version, 1);
        check_true(!s->name.p);
        check_i64_eq(snapshot_make(&bad, &none, &e), ERR_RETURN(ERR_INVALID));
}

static void test_state_transitions(void **state)
{
        static const char *const allowed[SNAPSHOT_STATE_MAX_] = {
                [SNAPSHOT_CREATING] = ".RF.",
                [SNAPSHOT_READY] = "..FD",
                [SNAPSHOT_FAILED] = "...D",
                [SNAPSHOT_DELETING] = ".RF.",
        };

        for (int from = 0; from < SNAPSHOT_STATE_MAX_; from++)
                for (int to = 0; to < SNAPSHOT_STATE_MAX_; to++) {
                        scoped(snapshot_freep) struct snapshot *s = made();
                        const struct snapshot_step step = { .state = (enum snapshot_state) to,
                                                            .reason = STR("why"),
                                                            .message = STR("a\nb"),
                                                            .at_ms = 9 };
                        bool legal = allowed[from][to] != '.';
                        struct err e;

                        s->status.state = from;
                        check_i64_eq(snapshot_change(s, &step, &e),
                                     legal ? 0 : ERR_RETURN(ERR_CONFLICT));
                        check_i64_eq(s->status.state, legal ? to : from);
                        check_i64_eq(s->status.changed_ms, legal ? 9 : 5);
                        if (legal)
                                check_str_eq(s->status.message, "a b");
                        check_i64_eq(snapshot_check(s, &e), 0);
                }
}

static void test_names_of_states(void **state)
{
        check_i64_eq(snapshot_state_from_string(STR("Ready")), SNAPSHOT_READY);
        check_i64_eq(snapshot_state_from_string(STR("ready")), -EINVAL);
        check_i64_eq(snapshot_state_from_string(STR("Running")), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_record_reads_back_as_it_was_written),
                cmocka_unit_test(test_texts_that_are_not_records),
                cmocka_unit_test(test_a_new_one_is_being_created),
                cmocka_unit_test(test_state_transitions),
                cmocka_unit_test(test_names_of_states),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
