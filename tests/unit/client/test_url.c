/* SPDX-License-Identifier: Apache-2.0 */
#include "client/url.h"

#include "tests/lib/check.h"

static void addresses(void **state)
{
        static const struct {
                const char *text, *scheme, *host;
                int port; /* 0: refused */
        } cases[] = {
                { "http://localhost:8080", "http", "localhost", 8080 },
                { "http://localhost", "http", "localhost", 80 },
                { "https://a.example", "https", "a.example", 443 },
                { "HTTPS://A.example/x/v1/", "https", "A.example", 443 },
                { "http://[::1]:99/", "http", "[::1]", 99 },
                { "http://[::1]", "http", "[::1]", 80 },
                { "http://h/a/b", "http", "h", 80 },
                { "", NULL, NULL, 0 },
                { "localhost:8080", NULL, NULL, 0 },
                { "ftp://h", NULL, NULL, 0 },
                { "http://", NULL, NULL, 0 },
                { "http:///path", NULL, NULL, 0 },
                { "http://:80", NULL, NULL, 0 },
                { "http://h:0x10", NULL, NULL, 0 },
                { "http://h:99999", NULL, NULL, 0 },
                { "http://h:", NULL, NULL, 0 },
                { "http://[::1", NULL, NULL, 0 },
                { "http://[]", NULL, NULL, 0 },
                { "http://user:word@h", NULL, NULL, 0 },
                { "http://h/?q", NULL, NULL, 0 },
                { "http://h/#f", NULL, NULL, 0 },
                { "http://h/a b", NULL, NULL, 0 },
                { "http://h/\r\nX: y", NULL, NULL, 0 },
                { "http://h\\e", NULL, NULL, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct url u;
                int r;

                check_case(cases[i].text);
                r = url_parse(str_from(cases[i].text), &u);
                check_i64_eq(r, cases[i].port ? 0 : -EINVAL);
                if (r < 0)
                        continue;
                check_str_eq(u.scheme, cases[i].scheme);
                check_str_eq(u.host, cases[i].host);
                check_i64_eq(u.port, cases[i].port);
                check_false(str_ends_with(u.text, STR("/")));
        }
}

static void one_v1_whatever_was_given(void **state)
{
        static const struct {
                const char *given, *base;
        } cases[] = {
                { "http://h:1", "http://h:1/v1" },       { "http://h:1/", "http://h:1/v1" },
                { "http://h:1/v1", "http://h:1/v1" },    { "http://h:1/v1//", "http://h:1/v1" },
                { "https://h/api", "https://h/api/v1" }, { "https://h/api/v1", "https://h/api/v1" },
                { "http://h/xv1", "http://h/xv1/v1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(buf_done) struct buf b;
                struct url u;

                check_case(cases[i].given);
                buf_init(&b, URL_MAX);
                check_i64_eq(url_parse(str_from(cases[i].given), &u), 0);
                url_add_base(&b, &u);
                check_str_eq(buf_str(&b), cases[i].base);
        }
}

static void endpoints_get_the_scheme_they_lack(void **state)
{
        static const struct {
                const char *reported, *url;
        } cases[] = {
                { "h:8080/sandboxes/a/proxy/44772", "https://h:8080/sandboxes/a/proxy/44772" },
                { "10.0.0.1:40000", "https://10.0.0.1:40000" },
                { "http://h/x/", "http://h/x" },
                { "h/x/", "https://h/x" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(buf_done) struct buf b;

                check_case(cases[i].reported);
                buf_init(&b, URL_MAX);
                url_add_endpoint(&b, STR("https"), str_from(cases[i].reported));
                check_str_eq(buf_str(&b), cases[i].url);
        }
}

static void values_stay_one_segment(void **state)
{
        static const struct {
                const char *value, *escaped;
        } cases[] = {
                { "a-b_c.d~e9", "a-b_c.d~e9" },
                { "a/b", "a%2Fb" },
                { "..", "%2E%2E" },
                { ".", "%2E" },
                { "...", "..." },
                { "../x", "..%2Fx" },
                { "a b&c=d?e#f", "a%20b%26c%3Dd%3Fe%23f" },
                { "\303\244%\r\n", "%C3%A4%25%0D%0A" },
                { "", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(buf_done) struct buf b;
                char should[128];

                check_case(cases[i].value);
                buf_init(&b, URL_MAX);
                url_add(&b, "/x/{}?y={}", cases[i].value, cases[i].value);
                (void) snprintf(should, sizeof(should), "/x/%s?y=%s", cases[i].escaped,
                                cases[i].escaped);
                check_str_eq(buf_str(&b), should);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(addresses),
                cmocka_unit_test(one_v1_whatever_was_given),
                cmocka_unit_test(endpoints_get_the_scheme_they_lack),
                cmocka_unit_test(values_stay_one_segment),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
