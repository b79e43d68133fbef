/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"
#include "tests/lib/clock_fake.h"

#include <time.h>

#include "base/base.h"

#define SEC(n) ((usec_t) (n) *USEC_PER_SEC)

static const struct {
        usec_t wall;
        const char *rfc3339, *http;
} timestamps[] = {
        { 0, "1970-01-01T00:00:00.000Z", "Thu, 01 Jan 1970 00:00:00 GMT" },
        { SEC(951782399), "2000-02-28T23:59:59.000Z", "Mon, 28 Feb 2000 23:59:59 GMT" },
        { SEC(951782400), "2000-02-29T00:00:00.000Z", "Tue, 29 Feb 2000 00:00:00 GMT" },
        { SEC(951868800), "2000-03-01T00:00:00.000Z", "Wed, 01 Mar 2000 00:00:00 GMT" },
        { SEC(784111777), "1994-11-06T08:49:37.000Z", "Sun, 06 Nov 1994 08:49:37 GMT" },
        { SEC(2147483648), "2038-01-19T03:14:08.000Z", "Tue, 19 Jan 2038 03:14:08 GMT" },
        { SEC(4107542400), "2100-03-01T00:00:00.000Z", "Mon, 01 Mar 2100 00:00:00 GMT" },
        { SEC(253402300799), "9999-12-31T23:59:59.000Z", "Fri, 31 Dec 9999 23:59:59 GMT" },
};

static void writes_and_reads_moments(void **state)
{
        char text[32];
        usec_t back;

        for (size_t i = 0; i < ARRAY_SIZE(timestamps); i++) {
                check_case(timestamps[i].rfc3339);
                check_u64_eq(time_to_rfc3339(timestamps[i].wall, text),
                             strlen(timestamps[i].rfc3339));
                check_z_eq(text, timestamps[i].rfc3339);
                check_i64_eq(time_from_rfc3339(str_from(text), &back), 0);
                check_u64_eq(back, timestamps[i].wall);
                check_u64_eq(time_to_http(timestamps[i].wall, text), strlen(timestamps[i].http));
                check_z_eq(text, timestamps[i].http);
                check_i64_eq(time_from_http(str_from(text), &back), 0);
                check_u64_eq(back, timestamps[i].wall);
        }
}

static void agrees_with_the_c_library(void **state)
{
        char ours[32], theirs[32];

        for (time_t t = 0; t < 253402300799; t += 86400 * 11 + 12347) {
                struct tm tm;

                check_true(gmtime_r(&t, &tm) != NULL);
                check_true(strftime(theirs, sizeof(theirs), "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0);
                time_to_http(SEC(t), ours);
                check_z_eq(ours, theirs);
        }
}

static void stops_at_the_year_9999(void **state)
{
        char text[32];

        time_to_rfc3339(USEC_INFINITY, text);
        check_z_eq(text, "9999-12-31T23:59:59.999Z");
        time_to_http(SEC(253402300800), text);
        check_z_eq(text, "Fri, 31 Dec 9999 23:59:59 GMT");
        time_to_rfc3339(SEC(1) + 999999, text);
        check_z_eq(text, "1970-01-01T00:00:01.999Z");
}

#define BAD UINT64_MAX

static const struct {
        const char *in;
        usec_t wall;
} rfc3339[] = {
        { "1970-01-01T00:00:00Z", 0 },
        { "1970-01-01t00:00:00z", 0 },
        { "1970-01-01T00:00:00+00:00", 0 },
        { "1970-01-01T00:00:00-00:00", 0 },
        { "1970-01-01T01:30:00+01:30", 0 },
        { "1969-12-31T19:00:00-05:00", 0 },
        { "1970-01-02T00:00:00+23:59", 60 * SEC(1) },
        { "1970-01-01T00:00:00.5Z", 500000 },
        { "1970-01-01T00:00:00.000001Z", 1 },
        { "1970-01-01T00:00:00.0000019Z", 1 },
        { "1970-01-01T00:00:00.123456789012345678901234567890Z", 123456 },
        { "1970-01-01T00:00:01.25-00:01", SEC(61) + 250000 },
        { "2024-02-29T00:00:00Z", SEC(1709164800) },
        { "2000-02-29T00:00:00Z", SEC(951782400) },
        { "9999-12-31T23:59:59.999999Z", SEC(253402300799) + 999999 },
        { "", BAD },
        { "1970-01-01", BAD },
        { "1970-01-01T00:00:00", BAD },
        { "1970-01-01 00:00:00Z", BAD },
        { "1970-01-01T00:00Z", BAD },
        { "1970-01-01T00:00:00.Z", BAD },
        { "1970-01-01T00:00:00,5Z", BAD },
        { "1970-01-01T00:00:00Zx", BAD },
        { "1970-01-01T00:00:00Z ", BAD },
        { " 1970-01-01T00:00:00Z", BAD },
        { "1970-01-01T00:00:00+0100", BAD },
        { "1970-01-01T00:00:00+01", BAD },
        { "1970-01-01T00:00:00+24:00", BAD },
        { "1970-01-02T00:00:00+00:60", BAD },
        { "1970-01-01T00:00:00~01:00", BAD },
        { "70-01-01T00:00:00Z", BAD },
        { "+970-01-01T00:00:00Z", BAD },
        { "1970-1-01T00:00:00Z", BAD },
        { "1970-00-01T00:00:00Z", BAD },
        { "1970-13-01T00:00:00Z", BAD },
        { "1970-01-00T00:00:00Z", BAD },
        { "1970-01-32T00:00:00Z", BAD },
        { "2023-02-29T00:00:00Z", BAD },
        { "2100-02-29T00:00:00Z", BAD },
        { "2023-04-31T00:00:00Z", BAD },
        { "1970-01-01T24:00:00Z", BAD },
        { "1970-01-01T00:60:00Z", BAD },
        { "2016-12-31T23:59:60Z", BAD },
        { "1969-12-31T23:59:59Z", BAD },
        { "1970-01-01T00:00:00+00:01", BAD },
        { "9999-12-31T23:59:59-00:01", BAD },
        { "0000-01-01T00:00:00Z", BAD },
        { "10000-01-01T00:00:00Z", BAD },
};

static void reads_rfc3339(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(rfc3339); i++) {
                usec_t wall = BAD;
                int r;

                check_case(rfc3339[i].in);
                r = time_from_rfc3339(str_from(rfc3339[i].in), &wall);
                check_i64_eq(r, rfc3339[i].wall == BAD ? -EINVAL : 0);
                check_u64_eq(wall, rfc3339[i].wall);
        }
        check_i64_eq(time_from_rfc3339(STR_NULL, &(usec_t){ 0 }), -EINVAL);
}

static void refuses_other_http_dates(void **state)
{
        static const char *const bad[] = {
                "",
                "Sun, 06 Nov 1994 08:49:37",
                "Sun, 06 Nov 1994 08:49:37 UTC",
                "Sun, 06 Nov 1994 08:49:37 GMT ",
                "Sun, 6 Nov 1994 08:49:37 GMT",
                "sun, 06 nov 1994 08:49:37 gmt",
                "Mon, 06 Nov 1994 08:49:37 GMT",
                "Sun, 31 Nov 1994 08:49:37 GMT",
                "Sun, 06 Nov 1994 24:49:37 GMT",
                "Sunday, 06-Nov-94 08:49:37 GMT",
                "Sun Nov  6 08:49:37 1994",
                "Wed, 31 Dec 1969 23:59:59 GMT",
        };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                usec_t wall = 7;

                check_case(bad[i]);
                check_i64_eq(time_from_http(str_from(bad[i]), &wall), -EINVAL);
                check_u64_eq(wall, 7);
        }
}

static void clocks_run(void **state)
{
        struct clock_fake fake;
        usec_t before = clock_mono(&clock_system);

        check_true(clock_mono(&clock_system) >= before);
        check_true(clock_wall(&clock_system) > SEC(1700000000));
        clock_fake_init(&fake, 5, 100);
        clock_fake_advance(&fake, 7);
        check_u64_eq(clock_mono(&fake.clock), 12);
        check_u64_eq(clock_wall(&fake.clock), 107);
        clock_fake_advance(&fake, USEC_INFINITY);
        check_u64_eq(clock_mono(&fake.clock), USEC_INFINITY);
        check_u64_eq(usec_add(USEC_INFINITY - 1, 1), USEC_INFINITY);
        check_u64_eq(usec_add(1, USEC_INFINITY), USEC_INFINITY);
        check_u64_eq(usec_add(1, 2), 3);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(writes_and_reads_moments),
                cmocka_unit_test(agrees_with_the_c_library),
                cmocka_unit_test(stops_at_the_year_9999),
                cmocka_unit_test(reads_rfc3339),
                cmocka_unit_test(refuses_other_http_dates),
                cmocka_unit_test(clocks_run),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
