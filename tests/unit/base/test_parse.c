/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"

static void reads_unsigned(void **state)
{
        static const struct {
                const char *in;
                int r;
                uint64_t v;
        } cases[] = {
                { "0", 0, 0 },
                { "007", 0, 7 },
                { "18446744073709551615", 0, UINT64_MAX },
                { "18446744073709551616", -ERANGE, 0 },
                { "99999999999999999999999999", -ERANGE, 0 },
                { "99999999999999999999999999x", -EINVAL, 0 },
                { "", -EINVAL, 0 },
                { "-1", -EINVAL, 0 },
                { "+1", -EINVAL, 0 },
                { " 1", -EINVAL, 0 },
                { "1 ", -EINVAL, 0 },
                { "1e3", -EINVAL, 0 },
                { "0x10", -EINVAL, 0 },
                { "1.0", -EINVAL, 0 },
                { "\xd9\xa1", -EINVAL, 0 }, /* Arabic one */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t v = 0;

                check_case(cases[i].in);
                check_i64_eq(parse_u64(str_from(cases[i].in), &v), cases[i].r);
                check_u64_eq(v, cases[i].v);
        }
        check_i64_eq(parse_u64(STR_NULL, &(uint64_t){ 0 }), -EINVAL);
        check_i64_eq(parse_u64(STR("1\0"), &(uint64_t){ 0 }), -EINVAL);
}

static void reads_signed(void **state)
{
        static const struct {
                const char *in;
                int r;
                int64_t v;
        } cases[] = {
                { "0", 0, 0 },
                { "-0", 0, 0 },
                { "-5", 0, -5 },
                { "9223372036854775807", 0, INT64_MAX },
                { "9223372036854775808", -ERANGE, 0 },
                { "-9223372036854775808", 0, INT64_MIN },
                { "-9223372036854775809", -ERANGE, 0 },
                { "-", -EINVAL, 0 },
                { "--1", -EINVAL, 0 },
                { "- 1", -EINVAL, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int64_t v = 0;

                check_case(cases[i].in);
                check_i64_eq(parse_i64(str_from(cases[i].in), &v), cases[i].r);
                check_i64_eq(v, cases[i].v);
        }
}

static void reads_limited(void **state)
{
        uint64_t v = 0;
        uint16_t port = 0;

        check_i64_eq(parse_u64_max(STR("10"), 10, &v), 0);
        check_u64_eq(v, 10);
        check_i64_eq(parse_u64_max(STR("11"), 10, &v), -ERANGE);
        check_i64_eq(parse_port(STR("1"), &port), 0);
        check_i64_eq(parse_port(STR("65535"), &port), 0);
        check_u64_eq(port, 65535);
        check_i64_eq(parse_port(STR("0"), &port), -ERANGE);
        check_i64_eq(parse_port(STR("65536"), &port), -ERANGE);
        check_i64_eq(parse_port(STR("http"), &port), -EINVAL);
        check_u64_eq(port, 65535);
}

static void reads_durations(void **state)
{
        static const struct {
                const char *in;
                int r;
                usec_t v;
        } cases[] = {
                { "250ms", 0, 250000 },
                { "30s", 0, 30000000 },
                { "5m", 0, 300000000 },
                { "1h", 0, UINT64_C(3600000000) },
                { "0s", 0, 0 },
                { "5124095576h", 0, UINT64_C(5124095576) * 3600000000 },
                { "5124095577h", -ERANGE, 0 },
                { "99999999999999999999s", -ERANGE, 0 },
                { "30", -EINVAL, 0 },
                { "s", -EINVAL, 0 },
                { "", -EINVAL, 0 },
                { "1.5s", -EINVAL, 0 },
                { "-1s", -EINVAL, 0 },
                { "1 s", -EINVAL, 0 },
                { "1S", -EINVAL, 0 },
                { "1d", -EINVAL, 0 },
                { "1h30m", -EINVAL, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                usec_t v = 0;

                check_case(cases[i].in);
                check_i64_eq(parse_duration(str_from(cases[i].in), &v), cases[i].r);
                check_u64_eq(v, cases[i].v);
        }
}

static void reads_bytes(void **state)
{
        static const struct {
                const char *in;
                int r;
                uint64_t v;
        } cases[] = {
                { "512", 0, 512 },
                { "1k", 0, 1000 },
                { "64Ki", 0, 65536 },
                { "10M", 0, 10000000 },
                { "1Mi", 0, 1048576 },
                { "3G", 0, UINT64_C(3000000000) },
                { "2Gi", 0, UINT64_C(2147483648) },
                { "1T", 0, UINT64_C(1000000000000) },
                { "1Ti", 0, UINT64_C(1099511627776) },
                { "16777215Ti", 0, UINT64_C(16777215) << 40 },
                { "16777216Ti", -ERANGE, 0 },
                { "", -EINVAL, 0 },
                { "Ki", -EINVAL, 0 },
                { "1K", -EINVAL, 0 },
                { "1ki", -EINVAL, 0 },
                { "1KiB", -EINVAL, 0 },
                { "1.5Gi", -EINVAL, 0 },
                { "1 Gi", -EINVAL, 0 },
                { "-1", -EINVAL, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t v = 0;

                check_case(cases[i].in);
                check_i64_eq(parse_bytes(str_from(cases[i].in), &v), cases[i].r);
                check_u64_eq(v, cases[i].v);
        }
        check_i64_eq(parse_bytes(STR_NULL, &(uint64_t){ 0 }), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_unsigned), cmocka_unit_test(reads_signed),
                cmocka_unit_test(reads_limited),  cmocka_unit_test(reads_durations),
                cmocka_unit_test(reads_bytes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
