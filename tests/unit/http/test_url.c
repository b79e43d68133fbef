/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "http/url.h"

/* --- targets --- */

static void test_split(void **state)
{
        static const struct {
                struct str in;
                enum url_form form;
                const char *authority, *path, *query;
        } cases[] = {
                { STR("/"), URL_ORIGIN, NULL, "/", NULL },
                { STR("/a/b"), URL_ORIGIN, NULL, "/a/b", NULL },
                { STR("/a?"), URL_ORIGIN, NULL, "/a", "" },
                { STR("/a?b=c&d?e"), URL_ORIGIN, NULL, "/a", "b=c&d?e" },
                { STR("/?x"), URL_ORIGIN, NULL, "/", "x" },
                { STR("//host/a"), URL_ORIGIN, NULL, "//host/a", NULL },
                { STR("/%zz"), URL_ORIGIN, NULL, "/%zz", NULL },
                { STR("*"), URL_ASTERISK, NULL, "*", NULL },
                { STR("http://host"), URL_ABSOLUTE, "host", "/", NULL },
                { STR("HTTPS://host:80/"), URL_ABSOLUTE, "host:80", "/", NULL },
                { STR("http://[::1]:8080/a?b"), URL_ABSOLUTE, "[::1]:8080", "/a", "b" },
                { STR("http://host?b"), URL_ABSOLUTE, "host", "/", "b" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct url_target t;

                check_i64_eq(url_split(cases[i].in, &t), 0);
                check_i64_eq(t.form, cases[i].form);
                check_str_eq(t.authority, cases[i].authority);
                check_str_eq(t.path, cases[i].path);
                check_str_eq(t.query, cases[i].query);
        }
}

static void test_split_refuses(void **state)
{
        static const struct str bad[] = {
                STR_NULL,
                STR(""),
                STR("a"),
                STR("?a"),
                STR("**"),
                STR("/a b"),
                STR("/a#b"),
                STR("/a\tb"),
                STR("/a\0b"),
                STR("/a\x7f"),
                STR("/\xc3\xa9"),
                STR("http:/a"),
                STR("http://"),
                STR("http:///a"),
                STR("http://?a"),
                STR("http://user@host/"),
                STR("http://user:pw@host/"),
                STR("http://host:x/"),
                STR("http://host:99999/"),
                STR("ftp://host/"),
                STR("host:443"),
        };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                struct url_target t;

                if (url_split(bad[i], &t) != -EINVAL)
                        fail_msg("'%.*s' was taken", STR_ARG(bad[i]));
        }
}

/* --- percent-encoding --- */

static void test_decode(void **state)
{
        static const struct {
                struct str in;
                unsigned flags;
                const char *out; /* NULL: -EINVAL */
        } cases[] = {
                { STR(""), 0, "" },
                { STR("abc"), 0, "abc" },
                { STR("a+b"), 0, "a+b" },
                { STR("a+b"), URL_PLUS_IS_SPACE, "a b" },
                { STR("a%2Bb"), URL_PLUS_IS_SPACE, "a+b" },
                { STR("%41%62%2f%2F"), 0, "Ab//" },
                { STR("%25%34%31"), 0, "%41" },
                { STR("%01%10%ff"), 0, "\x01\x10\xff" },
                { STR("%"), 0, NULL },
                { STR("%4"), 0, NULL },
                { STR("a%4"), 0, NULL },
                { STR("%4g"), 0, NULL },
                { STR("%g4"), 0, NULL },
                { STR("%%41"), 0, NULL },
                { STR("%+1"), URL_PLUS_IS_SPACE, NULL },
                { STR("%00"), 0, NULL },
                { STR("a%00b"), 0, NULL },
                { STR("a\0b"), 0, NULL },
        };
        struct arena a;

        arena_init(&a, 64 * KiB);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                int want = cases[i].out ? 0 : -EINVAL;
                char copy[32];
                struct str got;
                size_t n;

                check_i64_eq(url_decode(&a, cases[i].in, cases[i].flags, &got), want);
                if (want == 0)
                        check_str_eq(got, cases[i].out);
                memcpy(copy, cases[i].in.p, cases[i].in.n);
                check_i64_eq(url_decode_in_place(copy, cases[i].in.n, cases[i].flags, &n), want);
                if (want == 0)
                        check_str_eq(str_of(copy, n), cases[i].out);
        }
        arena_done(&a);
}

static void test_decode_needs_no_memory_for_plain_text(void **state)
{
        struct str in = STR("plain"), got;
        struct arena a;

        arena_init(&a, 0);
        check_i64_eq(url_decode(&a, in, 0, &got), 0);
        assert_ptr_equal(got.p, in.p);
        check_i64_eq(url_decode(&a, STR("%41"), 0, &got), -ENOMEM);
        arena_done(&a);
}

static void test_encode(void **state)
{
        struct buf b;

        buf_init(&b, 1 * KiB);
        url_encode(&b, STR("aZ09-._~ /?&=+%\xc3\xa9\0"));
        check_str_eq(buf_str(&b), "aZ09-._~%20%2F%3F%26%3D%2B%25%C3%A9%00");
        buf_reset(&b);
        url_encode_path(&b, STR("/a b/c?"));
        check_str_eq(buf_str(&b), "/a%20b/c%3F");
        buf_reset(&b);
        url_encode(&b, STR_NULL);
        check_i64_eq(b.n, 0);
        buf_done(&b);
}

static void test_encode_decodes_back(void **state)
{
        struct arena a;
        struct buf b;
        char all[255];
        struct str got;

        for (size_t i = 0; i < sizeof(all); i++)
                all[i] = (char) (i + 1);
        arena_init(&a, 64 * KiB);
        buf_init(&b, 1 * KiB);
        url_encode(&b, str_of(all, sizeof(all)));
        check_i64_eq(url_decode(&a, buf_str(&b), URL_PLUS_IS_SPACE, &got), 0);
        check_true(str_eq(got, str_of(all, sizeof(all))));
        buf_done(&b);
        arena_done(&a);
}

/* --- query --- */

static void test_query_next(void **state)
{
        struct str rest = STR("&a=1&&b&c=&=d&e=f=g&"), key, value;
        static const struct {
                const char *key, *value;
        } want[] = { { "a", "1" }, { "b", NULL }, { "c", "" }, { "", "d" }, { "e", "f=g" } };

        for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
                check_true(url_query_next(&rest, &key, &value));
                check_str_eq(key, want[i].key);
                check_str_eq(value, want[i].value);
        }
        check_false(url_query_next(&rest, &key, &value));
        check_false(url_query_next(&rest, &key, &value));
        rest = STR_NULL;
        check_false(url_query_next(&rest, &key, &value));
}

static void test_query_get(void **state)
{
        static const struct {
                struct str query;
                int r;
                const char *value;
        } cases[] = {
                { STR("name=x"), 1, "x" },
                { STR("a=b&name=x&name=y"), 1, "x" },
                { STR("name=a+b%2B%26"), 1, "a b+&" },
                { STR("n%61me=x"), 1, "x" },
                { STR("name"), 1, "" },
                { STR("name="), 1, "" },
                { STR("nam=x&names=y&Name=z"), 0, NULL },
                { STR(""), 0, NULL },
                { STR_NULL, 0, NULL },
                { STR("name=%"), -EINVAL, NULL },
                { STR("name=%00"), -EINVAL, NULL },
                { STR("x%=1&name=x"), -EINVAL, NULL },
                { STR("x=%&name=x"), 1, "x" },
        };
        struct arena a;

        arena_init(&a, 64 * KiB);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct str rest = cases[i].query, value;

                check_i64_eq(url_query_each(&a, &rest, "name", &value), cases[i].r);
                if (cases[i].value)
                        check_str_eq(value, cases[i].value);
        }
        arena_done(&a);
}

static void test_query_each(void **state)
{
        struct str rest = STR("t=1&x=2&t=%33&t"), value;
        struct arena a;

        arena_init(&a, 64 * KiB);
        check_i64_eq(url_query_each(&a, &rest, "t", &value), 1);
        check_str_eq(value, "1");
        check_i64_eq(url_query_each(&a, &rest, "t", &value), 1);
        check_str_eq(value, "3");
        check_i64_eq(url_query_each(&a, &rest, "t", &value), 1);
        check_str_eq(value, "");
        check_i64_eq(url_query_each(&a, &rest, "t", &value), 0);
        arena_done(&a);
}

/* --- grammar --- */

static void test_hosts(void **state)
{
        static const struct {
                struct str in;
                bool want;
        } cases[] = {
                { STR("localhost"), true },
                { STR("example.com:8080"), true },
                { STR("127.0.0.1"), true },
                { STR("127.0.0.1:1"), true },
                { STR("host:"), true },
                { STR("a_b-c~d.e"), true },
                { STR("a%20b"), true },
                { STR("[::1]"), true },
                { STR("[::1]:65535"), true },
                { STR("[2001:db8::1]:"), true },
                { STR("[::ffff:1.2.3.4]"), true },
                { STR_NULL, false },
                { STR(""), false },
                { STR(":80"), false },
                { STR("host:0"), false },
                { STR("host:65536"), false },
                { STR("host:80:80"), false },
                { STR("host:+80"), false },
                { STR("host: 80"), false },
                { STR("ho st"), false },
                { STR("host/"), false },
                { STR("user@host"), false },
                { STR("a%2"), false },
                { STR("a%zz"), false },
                { STR("a\0b"), false },
                { STR("h\xc3\xa9"), false },
                { STR("a\\b"), false },
                { STR("a?b"), false },
                { STR("a#b"), false },
                { STR("::1"), false },
                { STR("[::1"), false },
                { STR("[]"), false },
                { STR("[::1]x"), false },
                { STR("[::1]x:80"), false },
                { STR("[1.2.3.4]"), false },
                { STR("[::1%eth0]"), false },
                { STR("[::1\0]"), false },
                { STR("[v1.a]"), false },
                { STR("[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]"), false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (http_host_is_valid(cases[i].in) != cases[i].want)
                        fail_msg("'%.*s'", STR_ARG(cases[i].in));
}

static void test_long_host(void **state)
{
        char name[256];

        memset(name, 'a', sizeof(name));
        check_true(http_host_is_valid(str_of(name, 255)));
        check_false(http_host_is_valid(str_of(name, 256)));
}

static void test_tokens(void **state)
{
        static const char allowed[] = "!#$%&'*+-.^_`|~0123456789"
                                      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

        for (int c = 0; c < 256; c++) {
                char text[3] = { 'a', (char) c, 'b' };
                bool want = memchr(allowed, c, sizeof(allowed) - 1);

                check_i64_eq(http_token_is_valid(str_of(text, 3)), want);
        }
        check_false(http_token_is_valid(STR("")));
        check_false(http_token_is_valid(STR_NULL));
}

static void test_field_values(void **state)
{
        for (int c = 0; c < 256; c++) {
                char text[3] = { 'a', (char) c, 'b' };
                bool want = c != '\r' && c != '\n' && c != '\0';

                check_i64_eq(http_field_value_is_valid(str_of(text, 3)), want);
        }
        check_true(http_field_value_is_valid(STR("")));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_split),
                cmocka_unit_test(test_split_refuses),
                cmocka_unit_test(test_decode),
                cmocka_unit_test(test_decode_needs_no_memory_for_plain_text),
                cmocka_unit_test(test_encode),
                cmocka_unit_test(test_encode_decodes_back),
                cmocka_unit_test(test_query_next),
                cmocka_unit_test(test_query_get),
                cmocka_unit_test(test_query_each),
                cmocka_unit_test(test_hosts),
                cmocka_unit_test(test_long_host),
                cmocka_unit_test(test_tokens),
                cmocka_unit_test(test_field_values),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
