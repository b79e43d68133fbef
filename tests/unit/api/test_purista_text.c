/* SPDX-License-Identifier: Apache-2.0 */
#include "api/purista/text.h"

#include "base/base.h"
#include "tests/lib/check.h"

/* All of it, and that no part is larger than it may be. */
static void collect(struct purista_text *t, struct buf *all)
{
        scoped(buf_done) struct buf part;

        buf_init(&part, HTTP_WRITE_MAX);
        while (purista_text_next(t, &part)) {
                check_false(buf_failed(&part));
                buf_add_str(all, buf_str(&part));
                buf_reset(&part);
        }
}

/* Pieces of a long text are what the whole would be, wherever its characters lie. */
static void a_long_text_is_the_same_in_pieces(void **state)
{
        static const char *const units[] = { "x",    "\xc3\xbc", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                             "\x01", "\xff",     "\xe2\x82",     "a\xf0\x9f" };

        for (size_t u = 0; u < ARRAY_SIZE(units); u++)
                for (size_t shift = 0; shift < 4; shift++) {
                        scoped(buf_done) struct buf raw, all, want;
                        struct purista_text t;

                        buf_init(&raw, MiB);
                        buf_init(&all, 8 * MiB);
                        buf_init(&want, 8 * MiB);
                        buf_add(&raw, "yyy", shift);
                        while (raw.n < 200 * KiB)
                                buf_add_str(&raw, str_from(units[u]));
                        purista_text_init(&t);
                        purista_text_addf(&t, "{\"%s\":", "a");
                        purista_text_add_long(&t, buf_str(&raw));
                        purista_text_add(&t, STR(",\"b\":"));
                        purista_text_add_long(&t, STR("short\n"));
                        purista_text_add(&t, STR("}"));
                        check_u64_eq(t.n, 3);
                        collect(&t, &all);
                        buf_add_str(&want, STR("{\"a\":"));
                        buf_add_quoted(&want, buf_str(&raw));
                        buf_add_str(&want, STR(",\"b\":\"short\\n\"}"));
                        check_u64_eq(all.n, want.n);
                        check_true(str_eq(buf_str(&all), buf_str(&want)));
                        purista_text_done(&t);
                }
}

static void short_ones_are_one_piece(void **state)
{
        scoped(buf_done) struct buf all;
        struct purista_text t;

        buf_init(&all, KiB);
        purista_text_init(&t);
        purista_text_add(&t, STR("junk"));
        purista_text_reset(&t);
        purista_text_add(&t, STR("["));
        purista_text_add_string(&t, STR("\""));
        purista_text_add_long(&t, STR(""));
        purista_text_add(&t, STR("]"));
        check_u64_eq(t.n, 1);
        collect(&t, &all);
        check_str_eq(buf_str(&all), "[\"\\\"\"\"\"]");
        purista_text_done(&t);
}

static void paths_are_literal(void **state)
{
        static const struct {
                const char *path, *agent;
        } cases[] = {
                { "a/b", "a/b" },
                { "/a b", "/a b" },
                { "~/x", "./~/x" },
                { "a~", "a~" },
                { "file:///etc", "./file:///etc" },
                { "/a/$HOME/\xc3\xbc", "file:///a/%24HOME/%C3%BC" },
                { "$x", "file:///workspace/%24x" },
                { "", "" },
        };
        struct arena a;
        struct str got;

        arena_init(&a, MiB);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].path);
                check_i64_eq(purista_agent_path(&a, str_from(cases[i].path), &got), 0);
                check_str_eq(got, cases[i].agent);
        }
        check_i64_eq(purista_agent_path(&a, STR_NULL, &got), 0);
        check_true(!got.p);
        arena_done(&a);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_long_text_is_the_same_in_pieces),
                cmocka_unit_test(short_ones_are_one_piece),
                cmocka_unit_test(paths_are_literal),
        };

        return cmocka_run_group_tests_name("purista_text", tests, NULL, NULL);
}
