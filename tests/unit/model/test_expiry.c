/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "model/expiry.h"

#define SECONDS(n) ((usec_t) (n) *USEC_PER_SEC)
#define FIRST      STR("11111111-1111-4111-8111-111111111111")
#define SECOND     STR("22222222-2222-4222-8222-222222222222")

static void test_a_deadline_is_fixed_on_both_clocks(void **state)
{
        struct timestamp now = { SECONDS(50), SECONDS(1000), FIRST };
        struct expiry x = expiry_after(&now, SECONDS(60));

        check_i64_eq(x.wall_ms, 1060000);
        check_i64_eq(x.mono_usec, SECONDS(110));
        check_i64_eq(x.granted_ms, 60000);
        check_true(!expiry_check(&x));
        now.mono = SECONDS(110) - 1;
        check_false(expiry_is_due(&x, &now));
        now.mono = SECONDS(110);
        check_true(expiry_is_due(&x, &now));
}

/* The wall clock is set forward or back by a day: nothing changes. */
static void test_the_wall_clock_does_not_decide(void **state)
{
        struct timestamp now = { SECONDS(50), SECONDS(100000), FIRST };
        struct expiry x = expiry_after(&now, SECONDS(60));

        now.wall = SECONDS(100000 + 86400);
        check_u64_eq(expiry_deadline(&x, &now), SECONDS(110));
        now.wall = SECONDS(100000 - 86400);
        check_u64_eq(expiry_deadline(&x, &now), SECONDS(110));
        check_false(expiry_adopt(&x, &now));
}

static void test_after_a_reboot_what_is_left_counts(void **state)
{
        static const struct {
                const char *what;
                usec_t wall, left; /* seconds */
        } cases[] = {
                { "20 s later", 1020, 40 },
                { "too late", 5000, 0 },
                { "just in time", 1060, 0 },
                { "the clock is behind: never more than was granted", 3, 60 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct timestamp before = { SECONDS(900), SECONDS(1000), FIRST };
                struct timestamp after = { SECONDS(5), SECONDS(cases[i].wall), SECOND };
                struct expiry x = expiry_after(&before, SECONDS(60));

                check_case(cases[i].what);
                check_u64_eq(expiry_deadline(&x, &after), SECONDS(5 + cases[i].left));
                check_true(expiry_adopt(&x, &after));
                check_i64_eq(x.mono_usec, SECONDS(5 + cases[i].left));
                check_i64_eq(x.wall_ms, 1060000); /* for clients */
                /* Once: from now on the new boot's clock decides. */
                after.wall += SECONDS(30);
                check_false(expiry_adopt(&x, &after));
                check_u64_eq(expiry_deadline(&x, &after), SECONDS(5 + cases[i].left));
        }
}

static void test_renewal_names_a_time_in_the_future(void **state)
{
        struct timestamp now = { SECONDS(50), SECONDS(1000), FIRST };
        struct expiry x = { .wall_ms = 7 };
        struct err e;

        check_i64_eq(expiry_at(&now, SECONDS(1000), &x, &e), ERR_RETURN(ERR_INVALID));
        check_z_eq(e.message, "the new expiration is not after now, 1970-01-01T00:16:40.000Z");
        check_i64_eq(expiry_at(&now, 0, &x, &e), ERR_RETURN(ERR_INVALID));
        check_i64_eq(x.wall_ms, 7);
        check_i64_eq(expiry_at(&now, SECONDS(1001), &x, &e), 0);
        check_i64_eq(x.wall_ms, 1001000);
        check_i64_eq(x.mono_usec, SECONDS(51));
}

static void test_times_of_clients(void **state)
{
        static const struct {
                const char *text;
                usec_t wall; /* 0 means refused */
        } cases[] = {
                { "1970-01-01T00:16:40Z", SECONDS(1000) },
                { "1970-01-01T00:16:40.5Z", SECONDS(1000) + 500000 },
                { "1970-01-01T01:16:40+01:00", SECONDS(1000) },
                { "1970-01-01T00:16:40+00:00", SECONDS(1000) },
                { "1970-01-01T00:16:40", SECONDS(1000) }, /* naive */
                { "1970-01-01T00:16:40.000001", SECONDS(1000) + 1 },
                { "", 0 },
                { "tomorrow", 0 },
                { "1970-01-01", 0 },
                { "1000", 0 },
                { "1970-01-01T00:16:40ZZ", 0 },
                { "1970-01-01T00:16:40.00000000000000000000000000000000000000000000000000000000",
                  0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                usec_t wall = 0;

                check_case(cases[i].text);
                check_i64_eq(expiry_parse_time(str_from(cases[i].text), &wall),
                             cases[i].wall ? 0 : -EINVAL);
                check_u64_eq(wall, cases[i].wall);
        }
        check_i64_eq(expiry_parse_time(STR("1970-01-01T00:16:40\0"), &(usec_t){ 0 }), -EINVAL);
}

static void test_far_deadlines_do_not_overflow(void **state)
{
        struct timestamp now = { SECONDS(50), SECONDS(1000), FIRST };
        struct expiry x = expiry_after(&now, USEC_INFINITY);

        check_i64_eq(x.mono_usec, INT64_MAX);
        check_false(expiry_is_due(&x, &now));
}

static void test_stored_values_are_checked(void **state)
{
        static const struct {
                struct expiry x;
                bool ok;
        } cases[] = {
                { { 1, 1, 1, FIRST }, true },           { { INT64_MAX, 1, 1, FIRST }, false },
                { { 1, 1, INT64_MAX, FIRST }, false },  { { 1, 1, 1, STR("") }, false },
                { { 1, 1, 1, STR("not one") }, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check_i64_eq(!expiry_check(&cases[i].x), cases[i].ok);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_deadline_is_fixed_on_both_clocks),
                cmocka_unit_test(test_the_wall_clock_does_not_decide),
                cmocka_unit_test(test_after_a_reboot_what_is_left_counts),
                cmocka_unit_test(test_renewal_names_a_time_in_the_future),
                cmocka_unit_test(test_times_of_clients),
                cmocka_unit_test(test_far_deadlines_do_not_overflow),
                cmocka_unit_test(test_stored_values_are_checked),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
