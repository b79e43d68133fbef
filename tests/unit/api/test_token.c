/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/token.h"

#include "base/base.h"
#include "tests/lib/check.h"

#define SECRET STR("0123456789abcdef0123456789abcdef")
#define ID     STR("0b5f3f0e-7d0b-4a42-9a33-1c6a8b1f2e11")
#define OTHER  STR("1b5f3f0e-7d0b-4a42-9a33-1c6a8b1f2e11")
#define NOW    UINT64_C(1800000000)
#define MADE   INT64_C(1700000000000)

static const struct token_target target = { ID, MADE, 8080 };

static struct str make(struct str secret, const struct token_target *of, uint64_t expires)
{
        static char texts[8][TOKEN_TEXT_MAX + 1];
        static unsigned next;
        char *text = texts[next++ % 8];
        size_t n = token_write(secret, of, expires, text);

        check_u64_eq(strlen(text), n);
        return str_of(text, n);
}

static void a_token_is_valid_for_its_target_only(void **state)
{
        static const struct {
                const char *name;
                struct str secret;
                struct token_target target;
                uint64_t expires, now;
                bool opens;
        } cases[] = {
                { "its own", SECRET, { ID, MADE, 8080 }, 0, NOW, true },
                { "its own, before its end", SECRET, { ID, MADE, 8080 }, NOW + 1, NOW, true },
                { "at its end", SECRET, { ID, MADE, 8080 }, NOW, NOW, false },
                { "after its end", SECRET, { ID, MADE, 8080 }, NOW - 1, NOW, false },
                { "the largest end", SECRET, { ID, MADE, 8080 }, UINT64_MAX, NOW, true },
                { "another port's", SECRET, { ID, MADE, 8081 }, 0, NOW, false },
                { "another sandbox's", SECRET, { OTHER, MADE, 8080 }, 0, NOW, false },
                { "an earlier one's of the same id",
                  SECRET,
                  { ID, MADE - 1, 8080 },
                  0,
                  NOW,
                  false },
                { "another installation's", STR("another"), { ID, MADE, 8080 }, 0, NOW, false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct str t = make(cases[i].secret, &cases[i].target, cases[i].expires);

                check_case(cases[i].name);
                check_true(token_is_valid(SECRET, t, &target, cases[i].now) == cases[i].opens);
        }
}

static void it_is_the_same_after_a_restart(void **state)
{
        static const struct token_target a = { STR("a"), 1000, 1 };

        /* Made by another implementation of HMAC: what was given out once must stay good. */
        check_str_eq(make(SECRET, &a, 0), "EaVxa9OhXn2fNxUdwT7lTGP-VzUFJm15");
        check_str_eq(make(SECRET, &a, 36), "10~HJlU-VljC-uLC28Tj6BXjzkNsnFJ1e5z");
}

static void no_other_text_is_valid(void **state)
{
        char text[TOKEN_TEXT_MAX + 8];
        struct str good = make(SECRET, &target, NOW + 60);
        struct str plain = make(SECRET, &target, 0);

        /* Every single character counts. */
        for (size_t i = 0; i < good.n; i++) {
                memcpy(text, good.p, good.n);
                text[i] = text[i] == 'a' ? 'b' : 'a';
                check_false(token_is_valid(SECRET, str_of(text, good.n), &target, NOW));
        }
        for (size_t i = 0; i < good.n; i++)
                check_false(token_is_valid(SECRET, str_of(good.p, i), &target, NOW));
        /* Nor is an end taken away, put in front, or spelled in another way. */
        check_false(token_is_valid(SECRET, str_skip(good, good.n - TOKEN_LEN), &target, NOW));
        (void) snprintf(text, sizeof(text), "zzzzzz~%.*s", STR_ARG(plain));
        check_false(token_is_valid(SECRET, str_from(text), &target, NOW));
        (void) snprintf(text, sizeof(text), "0%.*s", STR_ARG(good));
        check_false(token_is_valid(SECRET, str_from(text), &target, NOW));
        (void) snprintf(text, sizeof(text), "0~%.*s", STR_ARG(plain));
        check_false(token_is_valid(SECRET, str_from(text), &target, NOW));
        (void) snprintf(text, sizeof(text), "~%.*s", STR_ARG(plain));
        check_false(token_is_valid(SECRET, str_from(text), &target, NOW));
        (void) snprintf(text, sizeof(text), "zzzzzzzzzzzzz~%.*s", STR_ARG(plain)); /* overflows */
        check_false(token_is_valid(SECRET, str_from(text), &target, NOW));
}

static void without_a_secret_no_token_is_valid(void **state)
{
        struct str t = make(STR(""), &target, 0);

        check_false(token_is_valid(STR(""), t, &target, NOW));
        check_false(token_is_valid(STR_NULL, t, &target, NOW));
        check_false(token_is_valid(SECRET, STR_NULL, &target, NOW));
}

static void segments_are_a_port_and_a_token(void **state)
{
        static const struct {
                const char *segment;
                int r;
                uint16_t port;
                const char *token; /* NULL: none */
        } cases[] = {
                { "8080", 0, 8080, NULL },
                { "8080~t", 0, 8080, "t" },
                { "8080~1~t", 0, 8080, "1~t" },
                { "8080~", 0, 8080, "" },
                { "1", 0, 1, NULL },
                { "65535", 0, 65535, NULL },
                { "0", -EINVAL, 0, NULL },
                { "65536", -EINVAL, 0, NULL },
                { "08080", -EINVAL, 0, NULL },
                { "~t", -EINVAL, 0, NULL },
                { "", -EINVAL, 0, NULL },
                { "-1", -EINVAL, 0, NULL },
                { "+1", -EINVAL, 0, NULL },
                { "80 ", -EINVAL, 0, NULL },
                { "8080/x", -EINVAL, 0, NULL },
                { "..", -EINVAL, 0, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                uint16_t port = 0;
                struct str token = STR("untouched");

                check_case(cases[i].segment);
                check_i64_eq(token_split_segment(str_from(cases[i].segment), &port, &token),
                             cases[i].r);
                if (cases[i].r < 0)
                        continue;
                check_u64_eq(port, cases[i].port);
                check_true(str_eq(token, str_from(cases[i].token)));
                check_true((token.p != NULL) == (cases[i].token != NULL));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_token_is_valid_for_its_target_only),
                cmocka_unit_test(it_is_the_same_after_a_restart),
                cmocka_unit_test(no_other_text_is_valid),
                cmocka_unit_test(without_a_secret_no_token_is_valid),
                cmocka_unit_test(segments_are_a_port_and_a_token),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
