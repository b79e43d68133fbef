/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/options.h"

#include "base/base.h"
#include "tests/lib/check.h"

static enum options_result parse(const char *const *words, struct options *o, struct buf *text)
{
        int n = 0;

        while (words[n])
                n++;
        return hutchd_options_parse(n, (char **) words, o, text);
}

static void test_nothing_said_is_nothing_set(void **state)
{
        static const char *const words[] = { "hutchd", NULL };
        scoped(buf_done) struct buf text;
        struct options o;

        buf_init(&text, KiB);
        check_i64_eq(parse(words, &o, &text), OPTIONS_RUN);
        check_true(!o.config && !o.data && !o.check_config && !o.insecure && !o.access_log);
        check_u64_eq(o.n_listen + o.n_drivers + o.max_connections, 0);
        check_true(!o.has_log_level && !o.has_log_format && !o.has_drain_timeout);
}

static void test_everything_said_is_set(void **state)
{
        static const char *const words[] = { "hutchd",
                                             "--listen=127.0.0.1:1",
                                             "--listen",
                                             "unix:/x",
                                             "--data",
                                             "dir",
                                             "--driver",
                                             "a",
                                             "--driver=b",
                                             "--config=f",
                                             "--check-config",
                                             "--insecure",
                                             "--log-level=debug",
                                             "--log-format=json",
                                             "--access-log",
                                             "--max-connections=9",
                                             "--drain-timeout=0s",
                                             NULL };
        scoped(buf_done) struct buf text;
        struct options o;

        buf_init(&text, KiB);
        check_i64_eq(parse(words, &o, &text), OPTIONS_RUN);
        check_u64_eq(o.n_listen, 2);
        check_true(sock_addr_is_unix(&o.listen[1]));
        check_z_eq(o.data, "dir");
        check_u64_eq(o.n_drivers, 2);
        check_z_eq(o.drivers[0], "a");
        check_z_eq(o.config, "f");
        check_true(o.check_config && o.insecure && o.access_log);
        check_true(o.has_log_level && o.has_log_format && o.has_drain_timeout);
        check_i64_eq(o.log_level, LOG_DEBUG);
        check_i64_eq(o.log_format, LOG_JSON);
        check_u64_eq(o.max_connections, 9);
        check_u64_eq(o.drain_timeout, 0);
}

static void test_complaints(void **state)
{
        static const struct {
                const char *words[4];
                const char *part;
        } cases[] = {
                { { "hutchd", "--config=" }, "--config=: not a file" },
                { { "hutchd", "--data=" }, "--data=: not a directory" },
                { { "hutchd", "--driver=A/b" }, "not the name of a driver" },
                { { "hutchd", "--driver=a", "--driver=a" }, "is given twice" },
                { { "hutchd", "--insecure=yes" }, "takes no value" },
                { { "hutchd", "--drain-timeout=5" }, "try 10s" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(buf_done) struct buf text;
                struct options o;

                buf_init(&text, KiB);
                check_case(cases[i].part);
                check_i64_eq(parse(cases[i].words, &o, &text), OPTIONS_EXIT_USAGE);
                check_true(strstr(buf_str(&text).p, cases[i].part));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_nothing_said_is_nothing_set),
                cmocka_unit_test(test_everything_said_is_set),
                cmocka_unit_test(test_complaints),
        };

        return cmocka_run_group_tests_name("hutchd/options", tests, NULL, NULL);
}
