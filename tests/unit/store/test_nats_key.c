/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "store/nats_key.h"
#include "tests/lib/check.h"

static struct str encode(struct buf *b, struct str key)
{
        buf_reset(b);
        nats_key_encode(b, key);
        check_false(buf_failed(b));
        return buf_str(b);
}

static void keys_have_one_form_and_come_back(void **state)
{
        static const struct {
                struct str key;
                const char *text;
        } cases[] = {
                { { "sandbox:registry:a1b2-c3_d4", 27 }, "sandbox.registry.a1b2-c3_d4" },
                { { "sandbox:owner:o:p:u:s", 21 }, "sandbox.owner.o.p.u.s" },
                { { "sandbox:owner:o%3A:p:u:", 23 }, "sandbox.owner.o=253A.p.u.=" },
                { { "sandbox/a", 9 }, "sandbox/a" },
                { { "a.b", 3 }, "a=2Eb" },
                { { "a=b", 3 }, "a=3Db" },
                { { "=", 1 }, "=3D" },
                { { ":", 1 }, "=.=" },
                { { "::", 2 }, "=.=.=" },
                { { ":a", 2 }, "=.a" },
                { { "a:", 2 }, "a.=" },
                { { "a::b", 4 }, "a.=.b" },
                { { "a b*>", 5 }, "a=20b=2A=3E" },
                { { "\0", 1 }, "=00" },
                { { "\xff\x80", 2 }, "=FF=80" },
        };
        scoped(buf_done) struct buf b;
        char back[NATS_KEY_MAX];
        size_t n;

        buf_init(&b, NATS_KEY_MAX);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].text);
                check_str_eq(encode(&b, cases[i].key), cases[i].text);
                check_i64_eq(nats_key_decode(buf_str(&b), back, &n), 0);
                check_view_eq(str_of(back, n), cases[i].key);
        }
}

static void what_is_the_form_of_no_key_is_refused(void **state)
{
        static const char *const texts[] = {
                "",    ".",   "a.",  ".a",  "a..b", "=",   "==",   "=4",   "=41",   "=3A",
                "=2D", "=2e", "=zz", "a=",  "a.=.", "a b", "a*",   "a.>",  "a\x7f", "=.a=",
                "a=0", "a==", "=2F", "=5F", "=30",  "=0g", "\xc3", "a.=2", "a.=61", "$a",
        };
        char back[64];
        size_t n;

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                check_case(texts[i]);
                check_i64_eq(nats_key_decode(str_from(texts[i]), back, &n), -EINVAL);
        }
}

/* Whatever the bytes: an allowed form, at most three times as long, that comes back. */
static void any_bytes_go_there_and_back(void **state)
{
        scoped(buf_done) struct buf b;
        char key[STORE_KEY_MAX], back[NATS_KEY_MAX];
        uint32_t random = 1;
        size_t n;

        buf_init(&b, NATS_KEY_MAX);
        for (size_t size = 1; size <= STORE_KEY_MAX; size += size < 64 ? 1 : 61) {
                for (size_t i = 0; i < size; i++) {
                        random = random * 1664525 + 1013904223;
                        key[i] = (char) (random >> 16);
                        if (random >> 30 == 0)
                                key[i] = ':';
                }
                encode(&b, str_of(key, size));
                check_i64_eq(nats_key_decode(buf_str(&b), back, &n), 0);
                check_true(str_eq(str_of(back, n), str_of(key, size)));
                for (size_t i = 0; i < b.n; i++)
                        check_true(strchr(
                                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-/_=.",
                                buf_str(&b).p[i]));
        }
        memset(key, 0, sizeof(key));
        check_u64_eq(encode(&b, str_of(key, sizeof(key))).n, NATS_KEY_MAX);
}

static void prefixes_become_wildcards(void **state)
{
        static const struct {
                const char *prefix, *text;
        } cases[] = {
                { "", ">" },
                { "a", ">" },
                { "sandbox:registry:", "sandbox.registry.>" },
                { "a:b", "a.>" },
                { ":", "=.>" },
                { "a::", "a.=.>" },
                { "a b:c d", "a=20b.>" },
        };
        scoped(buf_done) struct buf b;

        buf_init(&b, NATS_KEY_MAX);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].prefix);
                buf_reset(&b);
                nats_key_wildcard(&b, str_from(cases[i].prefix));
                check_str_eq(buf_str(&b), cases[i].text);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(keys_have_one_form_and_come_back),
                cmocka_unit_test(what_is_the_form_of_no_key_is_refused),
                cmocka_unit_test(any_bytes_go_there_and_back),
                cmocka_unit_test(prefixes_become_wildcards),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
