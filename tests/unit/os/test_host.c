/* SPDX-License-Identifier: Apache-2.0 */
#include "os/host.h"

#include "base/base.h"
#include "tests/lib/fake_root.h"

static void test_cpu_time(void **state)
{
        static const struct {
                const char *name, *text;
                int r;
                uint64_t busy, total;
        } cases[] = {
                { "ordinary", "cpu  10 20 30 400 50 6 7 8 99 99\ncpu0 1 2 3\n", 0, 810000,
                  5310000 },
                { "old kernel", "cpu 1 0 0 9\n", 0, 10000, 100000 },
                { "too few", "cpu 1 2 3\n", -ENODATA, 0, 0 },
                { "no numbers", "cpu a b c d e\n", -ENODATA, 0, 0 },
                { "too large", "cpu 99999999999999999 1 1 1\n", -ENODATA, 0, 0 },
                { "other line", "intr 1 2 3 4\n", -ENODATA, 0, 0 },
                { "empty", "", -ENODATA, 0, 0 },
                { "missing", NULL, -ENODATA, 0, 0 },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint64_t busy = 0, total = 0;
                struct fake_root t;

                check_case(cases[i].name);
                fake_root_open(&t);
                if (cases[i].text)
                        fake_root_put(&t, "/proc/stat", cases[i].text);
                check_i64_eq(host_cpu_time(t.root, &busy, &total), cases[i].r);
                check_u64_eq(busy, cases[i].busy);
                check_u64_eq(total, cases[i].total);
                fake_root_close(&t);
        }
}

static void test_memory(void **state)
{
        static const char *const bad[] = {
                "MemTotal:  100 kB\n",
                "MemTotal: 100 kB\nMemAvailable: 200 kB\n",
                "",
                "MemTotal:",
                "MemTotal: 18446744073709551615 kB\nMemAvailable: 1 kB\n",
        };
        uint64_t used, total, real_used, real_total;
        struct fake_root t;

        (void) state;
        fake_root_open(&t);
        host_memory(t.root, &real_used, &real_total);
        check_true(real_total > MiB && real_used <= real_total);
        fake_root_put(&t, "/proc/meminfo",
                      "MemTotal:        1000 kB\nMemFree:   1 kB\nMemAvailable:  300 kB\n");
        host_memory(t.root, &used, &total);
        check_u64_eq(used, 700 * KiB);
        check_u64_eq(total, 1000 * KiB);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                check_case(bad[i]);
                fake_root_put(&t, "/proc/meminfo", bad[i]);
                host_memory(t.root, &used, &total);
                check_u64_eq(total, real_total); /* the kernel's own word */
        }
        fake_root_close(&t);
}

static void test_cpus(void **state)
{
        (void) state;
        check_true(host_cpus() >= 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_cpu_time),
                cmocka_unit_test(test_memory),
                cmocka_unit_test(test_cpus),
        };

        return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}
