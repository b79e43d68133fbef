/* SPDX-License-Identifier: Apache-2.0 */
#include "store/redis_reader.h"

#include "base/base.h"
#include "tests/lib/check.h"

/* How many answers there are, and how it ends. */
static int read_all(struct redis_reader *r, struct str bytes, int *ret_last)
{
        redisReply *reply;
        int n = 0;

        *ret_last = redis_reader_feed(r, bytes);
        while (*ret_last == 0 && (*ret_last = redis_reader_next(r, &reply)) > 0) {
                freeReplyObject(reply);
                *ret_last = 0;
                n++;
                if (n > 10)
                        break;
        }
        return n;
}

static void answers_are_read_and_nonsense_is_refused(void **state)
{
        static const struct {
                const char *name, *bytes;
                int n, last;
        } cases[] = {
                { "status", "+OK\r\n", 1, 0 },
                { "half", "$5\r\nhel", 0, 0 },
                { "two", ":1\r\n$-1\r\n", 2, 0 },
                { "a pair", "*2\r\n$1\r\n7\r\n$1\r\nv\r\n", 1, 0 },
                { "scan", "*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n", 1, 0 },
                { "http", "HTTP/1.1 400 Bad Request\r\n\r\n", 0, -EPROTO },
                { "a long array", "*3002\r\n", 0, -EPROTO },
                { "a huge array", "*2147483647\r\n", 0, -EPROTO },
                { "an array in three", "*3\r\n*1\r\n:1\r\n", 0, -EPROTO },
                { "too deep", "*2\r\n*2\r\n*2\r\n", 0, -EPROTO },
                { "negative", "$-2\r\n", 0, -EPROTO },
                { "no number", "$x\r\n", 0, -EPROTO },
                { "a huge string", "$9223372036854775807\r\n", 0, 0 },
        };
        int last;

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct redis_reader r;

                check_case(cases[i].name);
                redis_reader_init(&r);
                check_i64_eq(read_all(&r, str_from(cases[i].bytes), &last), cases[i].n);
                check_i64_eq(last, cases[i].last);
                redis_reader_done(&r);
        }
}

/* A string that was announced, and comes, until it is too much. */
static void an_endless_answer_is_refused(void **state)
{
        static char zeros[64 * KiB];
        struct redis_reader r;
        int last = 0;
        size_t fed = 0;

        redis_reader_init(&r);
        check_i64_eq(read_all(&r, STR("$1000000000\r\n"), &last), 0);
        for (; last == 0; fed += sizeof(zeros))
                check_i64_eq(read_all(&r, str_of(zeros, sizeof(zeros)), &last), 0);
        check_i64_eq(last, -ENOBUFS);
        check_true(fed <= REDIS_REPLY_MAX + 2 * sizeof(zeros));
        redis_reader_done(&r);
}

/* Bytes are counted by answer, not by connection. */
static void many_answers_are_no_large_one(void **state)
{
        static char value[STORE_VALUE_MAX];
        struct redis_reader r;
        int last;

        redis_reader_init(&r);
        memset(value, 'x', sizeof(value));
        for (int i = 0; i < 16; i++) {
                check_i64_eq(read_all(&r, STR("$1048576\r\n"), &last), 0);
                check_i64_eq(read_all(&r, str_of(value, sizeof(value)), &last), 0);
                check_i64_eq(read_all(&r, STR("\r\n"), &last), 1);
                check_i64_eq(last, 0);
        }
        redis_reader_done(&r);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(answers_are_read_and_nonsense_is_refused),
                cmocka_unit_test(an_endless_answer_is_refused),
                cmocka_unit_test(many_answers_are_no_large_one),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
