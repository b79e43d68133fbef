/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "http/range.h"

static void test_ranges(void **state)
{
        static const struct {
                struct str in;
                uint64_t size;
                enum range_result result;
                uint64_t start, end;
        } cases[] = {
                { STR("bytes=0-0"), 10, RANGE_PARTIAL, 0, 0 },
                { STR("bytes=0-9"), 10, RANGE_PARTIAL, 0, 9 },
                { STR("bytes=2-5"), 10, RANGE_PARTIAL, 2, 5 },
                { STR("bytes=2-500"), 10, RANGE_PARTIAL, 2, 9 },
                { STR("bytes=9-"), 10, RANGE_PARTIAL, 9, 9 },
                { STR("bytes=0-"), 10, RANGE_PARTIAL, 0, 9 },
                { STR("bytes=-1"), 10, RANGE_PARTIAL, 9, 9 },
                { STR("bytes=-10"), 10, RANGE_PARTIAL, 0, 9 },
                { STR("bytes=-11"), 10, RANGE_PARTIAL, 0, 9 },
                { STR("BYTES=1-2"), 10, RANGE_PARTIAL, 1, 2 },
                { STR(" bytes= 1-2 "), 10, RANGE_PARTIAL, 1, 2 },
                { STR("bytes=0001-0002"), 10, RANGE_PARTIAL, 1, 2 },
                /* several: the first that can be satisfied */
                { STR("bytes=1-2,4-5"), 10, RANGE_PARTIAL, 1, 2 },
                { STR("bytes=20-, ,\t-3 , 1-2"), 10, RANGE_PARTIAL, 7, 9 },
                { STR("bytes=20-30,10-,-0"), 10, RANGE_UNSATISFIABLE, 0, 0 },
                { STR("bytes=1-2,x"), 10, RANGE_FULL, 0, 0 },
                { STR("bytes=0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0"), 10,
                  RANGE_PARTIAL, 0, 0 },
                { STR("bytes=0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0,0-0"),
                  10, RANGE_FULL, 0, 0 },
                /* none of them */
                { STR("bytes=10-"), 10, RANGE_UNSATISFIABLE, 0, 0 },
                { STR("bytes=10-20"), 10, RANGE_UNSATISFIABLE, 0, 0 },
                { STR("bytes=-0"), 10, RANGE_UNSATISFIABLE, 0, 0 },
                { STR("bytes=0-"), 0, RANGE_UNSATISFIABLE, 0, 0 },
                { STR("bytes=0-0"), 0, RANGE_UNSATISFIABLE, 0, 0 },
                { STR("bytes=-0"), 0, RANGE_UNSATISFIABLE, 0, 0 },
                { STR("bytes=-5"), 0, RANGE_FULL, 0, 0 },
                /* numbers beyond all sizes */
                { STR("bytes=0-9223372036854775807"), 10, RANGE_PARTIAL, 0, 9 },
                { STR("bytes=0-99999999999999999999999999"), 10, RANGE_PARTIAL, 0, 9 },
                { STR("bytes=-99999999999999999999999999"), 10, RANGE_PARTIAL, 0, 9 },
                { STR("bytes=99999999999999999999999999-"), 10, RANGE_UNSATISFIABLE, 0, 0 },
                { STR("bytes=18446744073709551616-"), 10, RANGE_UNSATISFIABLE, 0, 0 },
                { STR("bytes=18446744073709551616-18446744073709551617"), 10, RANGE_UNSATISFIABLE,
                  0, 0 },
                { STR("bytes=9223372036854775806-"), INT64_MAX, RANGE_PARTIAL, INT64_MAX - 1,
                  INT64_MAX - 1 },
                { STR("bytes=9223372036854775807-"), INT64_MAX, RANGE_UNSATISFIABLE, 0, 0 },
                { STR("bytes=-9223372036854775807"), INT64_MAX, RANGE_PARTIAL, 0, INT64_MAX - 1 },
                /* ignored */
                { STR_NULL, 10, RANGE_FULL, 0, 0 },
                { STR(""), 10, RANGE_FULL, 0, 0 },
                { STR("bytes"), 10, RANGE_FULL, 0, 0 },
                { STR("bytes="), 10, RANGE_FULL, 0, 0 },
                { STR("bytes=,"), 10, RANGE_FULL, 0, 0 },
                { STR("bytes=-"), 10, RANGE_FULL, 0, 0 },
                { STR("bytes=--1"), 10, RANGE_FULL, 0, 0 },
                { STR("bytes=5"), 10, RANGE_FULL, 0, 0 },
                { STR("bytes=5-4"), 10, RANGE_FULL, 0, 0 },
                { STR("bytes=a-b"), 10, RANGE_FULL, 0, 0 },
                { STR("bytes=1 - 2"), 10, RANGE_FULL, 0, 0 },
                { STR("bytes=+1-2"), 10, RANGE_FULL, 0, 0 },
                { STR("bytes=0x1-2"), 10, RANGE_FULL, 0, 0 },
                { STR("bytes=1-2-3"), 10, RANGE_FULL, 0, 0 },
                { STR("bytes =1-2"), 10, RANGE_FULL, 0, 0 },
                { STR("items=1-2"), 10, RANGE_FULL, 0, 0 },
                { STR("bytes=1-2\0"), 10, RANGE_FULL, 0, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct range got = { 0 };
                enum range_result r = range_parse(cases[i].in, cases[i].size, &got);

                check_case(cases[i].in.p ? cases[i].in.p : "absent");
                check_i64_eq(r, cases[i].result);
                if (r != RANGE_PARTIAL)
                        continue;
                check_u64_eq(got.start, cases[i].start);
                check_u64_eq(got.end, cases[i].end);
        }
}

/* Sun, 06 Nov 1994 08:49:37 GMT, and something */
#define MODIFIED (784111777 * USEC_PER_SEC + 123456)

static const struct validators strong = { STR("\"a,b\""), MODIFIED };
static const struct validators weak = { STR("W/\"a,b\""), MODIFIED };
static const struct validators undated = { STR("\"a,b\""), USEC_INFINITY };
static const struct validators untagged = { STR_NULL, MODIFIED };

static void test_if_range(void **state)
{
        static const struct {
                struct str in;
                const struct validators *v;
                bool want;
        } cases[] = {
                { STR_NULL, &strong, true },
                { STR("\"a,b\""), &strong, true },
                { STR(" \"a,b\" "), &strong, true },
                { STR("\"A,B\""), &strong, false },
                { STR("W/\"a,b\""), &strong, false },
                { STR("W/\"a,b\""), &weak, false },
                { STR("\"a,b\""), &weak, false },
                { STR("\"\""), &untagged, false },
                { STR("Sun, 06 Nov 1994 08:49:37 GMT"), &strong, true },
                { STR("Sun, 06 Nov 1994 08:49:38 GMT"), &strong, false },
                { STR("Sun, 06 Nov 1994 08:49:36 GMT"), &strong, false },
                { STR("Sun, 06 Nov 1994 08:49:37 GMT"), &undated, false },
                { STR("yesterday"), &strong, false },
                { STR("*"), &strong, false },
                { STR(""), &strong, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].in.p ? cases[i].in.p : "absent");
                check_i64_eq(range_if_range(cases[i].in, cases[i].v), cases[i].want);
        }
}

static void test_not_modified(void **state)
{
        static const struct {
                struct str none_match;
                struct str since;
                const struct validators *v;
                bool want;
        } cases[] = {
                { STR_NULL, STR_NULL, &strong, false },
                { STR("\"a,b\""), STR_NULL, &strong, true },
                { STR("W/\"a,b\""), STR_NULL, &strong, true },
                { STR("\"a,b\""), STR_NULL, &weak, true },
                { STR("\"x\", W/\"y\" ,,\"a,b\""), STR_NULL, &strong, true },
                { STR("\"x\",\"a\",\"b\""), STR_NULL, &strong, false },
                { STR("*"), STR_NULL, &strong, true },
                { STR("*"), STR_NULL, &untagged, true },
                { STR("\"a,b\""), STR_NULL, &untagged, false },
                { STR("a,b"), STR_NULL, &strong, false },
                { STR("\"a,b"), STR_NULL, &strong, false },
                { STR("W/"), STR_NULL, &strong, false },
                { STR("\""), STR_NULL, &strong, false },
                { STR(""), STR_NULL, &strong, false },
                { STR_NULL, STR("Sun, 06 Nov 1994 08:49:37 GMT"), &strong, true },
                { STR_NULL, STR("Sun, 06 Nov 1994 08:49:38 GMT"), &strong, true },
                { STR_NULL, STR("Sun, 06 Nov 1994 08:49:36 GMT"), &strong, false },
                { STR_NULL, STR("Sun, 06 Nov 1994 08:49:37 GMT"), &undated, false },
                { STR_NULL, STR("whenever"), &strong, false },
                /* the tag alone decides */
                { STR("\"x\""), STR("Sun, 06 Nov 1994 08:49:37 GMT"), &strong, false },
                { STR("\"a,b\""), STR("Sun, 06 Nov 1994 08:49:36 GMT"), &strong, true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (http_not_modified(cases[i].none_match, cases[i].since, cases[i].v)
                    != cases[i].want)
                        fail_msg("case %zu", i);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_ranges),
                cmocka_unit_test(test_if_range),
                cmocka_unit_test(test_not_modified),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
