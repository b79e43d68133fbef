/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/cookie.h"

#include "base/base.h"
#include "tests/lib/check.h"

static struct arena arena;

static int set_up(void **state)
{
        arena_init(&arena, 64 * KiB);
        return 0;
}

static int tear_down(void **state)
{
        arena_done(&arena);
        return 0;
}

static void our_cookie_is_removed(void **state)
{
        static const struct {
                const char *lines[3];
                const char *rest; /* NULL: nothing is left */
        } cases[] = {
                { { "a=1; hutch_token=x; b=2" }, "a=1; b=2" },
                { { "hutch_token=x" }, NULL },
                { { "hutch_token=x; hutch_token=y" }, NULL },
                { { "a=1", "hutch_token=x", "b=2" }, "a=1; b=2" },
                { { " hutch_token = x ;a=1" }, "a=1" },
                { { "xhutch_token=1; hutch_tokenx=2" }, "xhutch_token=1; hutch_tokenx=2" },
                { { "a=hutch_token=x" }, "a=hutch_token=x" },
                { { "HUTCH_TOKEN=x" }, "HUTCH_TOKEN=x" }, /* names of cookies have a case */
                { { "a=\"1; hutch_token=x; 2\"" }, "a=\"1; 2\"" },
                { { "plain; a = b" }, "plain; a = b" },
                { { "=hutch_token=x; = y" }, "=hutch_token=x; = y" }, /* without a name */
                { { ";; ;a=1;" }, "a=1" },
                { { "" }, NULL },
                { { NULL }, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct http_headers h = { 0 };
                struct str rest;

                check_case(cases[i].lines[0] ? cases[i].lines[0] : "none");
                check_i64_eq(http_headers_add(&h, &arena, STR("Other"), STR("hutch_token=x")), 0);
                for (size_t k = 0; k < 3 && cases[i].lines[k]; k++)
                        check_i64_eq(http_headers_add(&h, &arena, k ? STR("COOKIE") : STR("Cookie"),
                                                      str_from(cases[i].lines[k])),
                                     0);
                check_i64_eq(cookie_without(&h, STR("hutch_token"), &arena, &rest), 0);
                check_true((rest.p != NULL) == (cases[i].rest != NULL));
                if (cases[i].rest)
                        check_str_eq(rest, cases[i].rest);
        }
}

static void cookies_stay_with_their_host(void **state)
{
        static const struct {
                const char *in, *out;
        } cases[] = {
                { "a=1", "a=1" },
                { "a=1; Path=/; Domain=preview.example; HttpOnly", "a=1; Path=/; HttpOnly" },
                { "a=1;domain=.preview.example", "a=1" },
                { "a=1; DOMAIN = x; Domain=y; Secure", "a=1; Secure" },
                { "a=1; Domain", "a=1" },
                { "Domain=x; Path=/", "Domain=x; Path=/" }, /* a cookie of that name */
                { "a=Domain=x", "a=Domain=x" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct str out;

                check_case(cases[i].in);
                check_i64_eq(cookie_host_only(str_from(cases[i].in), &arena, &out), 0);
                check_str_eq(out, cases[i].out);
        }
}

static void memory_may_be_gone(void **state)
{
        struct http_headers h = { 0 };
        struct arena none;
        struct str out;

        arena_init(&none, 0);
        check_i64_eq(http_headers_add(&h, &arena, STR("Cookie"), STR("a=1; b=2")), 0);
        check_i64_eq(cookie_without(&h, STR("x"), &none, &out), -ENOMEM);
        check_i64_eq(cookie_host_only(STR("a=1"), &none, &out), -ENOMEM);
        arena_done(&none);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(our_cookie_is_removed),
                cmocka_unit_test(cookies_stay_with_their_host),
                cmocka_unit_test(memory_may_be_gone),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
