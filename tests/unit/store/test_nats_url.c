/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "store/nats_url.h"
#include "tests/lib/check.h"

static void urls_are_taken_apart(void **state)
{
        static const struct {
                const char *url, *host;
                unsigned port;
                bool tls;
        } cases[] = {
                { "nats://127.0.0.1:4223", "127.0.0.1", 4223, false },
                { "nats://localhost", "localhost", 4222, false },
                { "tls://nats.example.org", "nats.example.org", 4222, true },
                { "tls://[::1]:5000", "::1", 5000, true },
                { "nats://[fe80::1]", "fe80::1", 4222, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct str rest = str_from(cases[i].url);
                struct nats_url url;

                check_case(cases[i].url);
                check_true(!nats_url_take(&rest, &url));
                check_str_eq(url.host, cases[i].host);
                check_u64_eq(url.port, cases[i].port);
                check_true(url.tls == cases[i].tls);
                check_u64_eq(rest.n, 0);
        }
}

static void several_come_one_after_the_other(void **state)
{
        struct str rest = STR("nats://a:1,tls://b,nats://[::1]:3");
        struct nats_url url;
        unsigned n = 0;

        for (; rest.n > 0; n++)
                check_true(!nats_url_take(&rest, &url));
        check_u64_eq(n, 3);
        check_u64_eq(url.port, 3);
}

static void what_is_none_is_refused(void **state)
{
        static const char *const urls[] = {
                "",           "nats://",        "localhost:4222", "http://a",        "nats://a:0",
                "nats://a:x", "nats://a:99999", "nats://u:p@a",   "nats://t@a",      "nats://a/b",
                "nats://a,",  ",nats://a",      "nats://[::1",    "nats://[::1]x",   "nats://a b",
                "nats://[]",  "nats://a:1:2",   "nats://a\x01",   "nats://\xc3\xa4",
        };

        for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
                struct str rest = str_from(urls[i]);
                struct nats_url url;

                check_case(urls[i]);
                check_true(nats_url_take(&rest, &url) != NULL);
        }
}

static void names_of_buckets(void **state)
{
        static const struct {
                const char *name;
                bool good;
        } cases[] = {
                { "hutch", true },
                { "Hutch_2-a", true },
                { "", false },
                { "a.b", false },
                { "a b", false },
                { "a*", false },
                { "1234567890123456789012345678901234567890123456789012345678901234", true },
                { "12345678901234567890123456789012345678901234567890123456789012345", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].name);
                check_true(nats_is_bucket(str_from(cases[i].name)) == cases[i].good);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(urls_are_taken_apart),
                cmocka_unit_test(several_come_one_after_the_other),
                cmocka_unit_test(what_is_none_is_refused),
                cmocka_unit_test(names_of_buckets),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
