/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/json_stream.h"

#include "base/base.h"
#include "tests/lib/check.h"

static int collect(void *data, struct str object)
{
        struct buf *b = data;

        buf_add_char(b, '<');
        buf_add_str(b, object);
        buf_add_char(b, '>');
        return str_eq(object, STR("{\"stop\":1}")) ? -ECANCELED : 0;
}

struct outcome {
        int fed, ended;
        char text[512];
};

/* In pieces of `step` bytes: what comes out must not depend on it. */
static void run(const char *in, size_t step, size_t max, struct outcome *ret)
{
        struct str left = str_from(in);
        struct json_stream p;
        struct buf b;

        *ret = (struct outcome){ 0 };
        buf_init_fixed(&b, ret->text, sizeof(ret->text));
        json_stream_init(&p, max, collect, &b);
        while (left.n > 0 && ret->fed == 0) {
                ret->fed = json_stream_feed(&p, str_of(left.p, MIN_OF(step, left.n)));
                left = str_skip(left, step);
        }
        ret->ended = json_stream_end(&p);
        json_stream_done(&p);
}

static void objects_are_found_however_the_stream_is_cut(void **state)
{
        static const struct {
                const char *name, *in, *out;
                int fed, ended;
        } cases[] = {
                { "nothing", "", "", 0, 0 },
                { "an empty list", "[]", "", 0, 0 },
                { "null for a list", "null\n", "", 0, 0 },
                { "a list", "[{\"a\":1}, {\"b\":[{}]}]\n", "<{\"a\":1}><{\"b\":[{}]}>", 0, 0 },
                { "one behind the other", "{}\r\n{\"a\":{}}", "<{}><{\"a\":{}}>", 0, 0 },
                { "brackets in texts", "{\"a\":\"}]{\\\"\"}{}", "<{\"a\":\"}]{\\\"\"}><{}>", 0, 0 },
                { "an object that does not end", "[{\"a\":1", "", 0, -EBADMSG },
                { "a list that does not end", "[{}", "<{}>", 0, -EBADMSG },
                { "a number", "[1]", "", -EBADMSG, -EBADMSG },
                { "something behind a list", "[]{}", "", -EBADMSG, 0 },
                { "a list in a list", "[[{}]]", "", -EBADMSG, -EBADMSG },
                { "the receiver ends it", "{\"stop\":1}{}", "<{\"stop\":1}>", -ECANCELED, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (size_t step = 1; step < 20; step++) {
                        struct outcome o;

                        check_case(cases[i].name);
                        run(cases[i].in, step, 1000, &o);
                        check_i64_eq(o.fed, cases[i].fed);
                        check_i64_eq(o.ended, cases[i].ended);
                        check_z_eq(o.text, cases[i].out);
                }
}

static void an_object_has_a_size_and_a_depth(void **state)
{
        char deep[200];
        struct outcome o;

        run("{\"a\":12}", 3, 8, &o);
        check_i64_eq(o.fed, 0);
        run("{\"a\":123}", 3, 8, &o);
        check_i64_eq(o.fed, -EFBIG);
        memset(deep, '{', sizeof(deep) - 1);
        deep[sizeof(deep) - 1] = '\0';
        run(deep, 7, 1000, &o);
        check_i64_eq(o.fed, -EBADMSG);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(objects_are_found_however_the_stream_is_cut),
                cmocka_unit_test(an_object_has_a_size_and_a_depth),
        };

        return cmocka_run_group_tests_name("json_stream", tests, NULL, NULL);
}
