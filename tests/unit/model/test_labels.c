/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "model/labels.h"
#include "model/limits.h"

#define TEN(x) x x x x x x x x x x
#define SIXTY  TEN("abcdef")

static void test_pairs(void **state)
{
        static const struct {
                const char *key, *value;
                bool ok;
        } cases[] = {
                { "a", "", true },
                { "a", "b", true },
                { "a", "B-_.9", true },
                { "app.kubernetes.io/name", "x", true },
                { "a-b.c/D_e", "x", true },
                { "a/b", "1", true },
                { "purista.userId", "u", true },
                { SIXTY "abc", SIXTY "abc", true },
                { SIXTY "abcd", "", false },
                { "a", SIXTY "abcd", false },
                { SIXTY "." SIXTY "." SIXTY "." SIXTY ".abcdefghi/" SIXTY "abc", "v", true },
                { SIXTY "." SIXTY "." SIXTY "." SIXTY ".abcdefghij/a", "v", false },
                { "", "v", false },
                { "/a", "v", false },
                { "a/", "v", false },
                { "a/b/c", "v", false },
                { "A/b", "v", false },
                { "a..b/c", "v", false },
                { "-a", "v", false },
                { "a-", "v", false },
                { "a b", "v", false },
                { "\xc3\xa4", "v", false },
                { "a", "two words", false },
                { "a", "-b", false },
                { "a", "b.", false },
                { "a", "\xc3\xa4", false },
                { "a", "b\n", false },
                { "opensandbox.io/x", "v", false },
                { "opensandbox.io/", "v", false },
                { "OpenSandbox.io/x", "v", false },
                { "my.opensandbox.io/x", "v", true },
                { "opensandbox.io", "v", true }, /* a name without a prefix */
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct json_pair p = { str_from(cases[i].key), str_from(cases[i].value) };
                struct err e;

                check_case(cases[i].key);
                check_i64_eq(labels_check(&(struct json_map){ &p, 1 }, &e),
                             cases[i].ok ? 0 : ERR_RETURN(ERR_INVALID));
        }
}

static void test_messages_name_the_key(void **state)
{
        struct json_pair reserved = { STR("opensandbox.io/id"), STR("1") };
        struct json_pair value = { STR("name"), STR("Data Processing") };
        struct err e;

        check_true(labels_check(&(struct json_map){ &reserved, 1 }, &e) < 0);
        check_z_eq(e.message, "metadata key \"opensandbox.io/id\": the prefix is reserved");
        check_true(labels_check(&(struct json_map){ &value, 1 }, &e) < 0);
        check_z_eq(e.message,
                   "metadata \"name\": the value \"Data Processing\" must be empty or 1 to "
                   "63 letters, digits, '-', '_' or '.', and begin and end with a letter "
                   "or digit");
}

static void test_bounds(void **state)
{
        static struct json_pair pairs[LABELS_MAX + 1];
        static char keys[LABELS_MAX + 1][300];
        struct json_map map = { pairs, LABELS_MAX };
        struct err e;

        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
                (void) snprintf(keys[i], sizeof(keys[i]), "k%zu", i);
                pairs[i] = (struct json_pair){ str_from(keys[i]), STR("v") };
        }
        check_i64_eq(labels_check(&map, &e), 0);
        map.n++;
        check_true(labels_check(&map, &e) < 0);
        check_z_eq(e.message, "metadata: more than 128 keys");
        map.n--;
        for (size_t i = 0; i < map.n; i++) {
                (void) snprintf(keys[i], sizeof(keys[i]), SIXTY "." SIXTY "." SIXTY "/k%zu", i);
                pairs[i].key = str_from(keys[i]);
        }
        check_true(labels_check(&map, &e) < 0);
        check_z_eq(e.message, "metadata: more than 16384 bytes");
}

struct patch_case {
        const char *what;
        struct json_pair old[4], patch[4], now[4];
        bool refused;
};

static size_t count(const struct json_pair *p)
{
        size_t n = 0;

        while (n < 4 && p[n].key.p)
                n++;
        return n;
}

static void check_patch(struct patch_case *c)
{
        struct json_map old = { c->old, count(c->old) }, patch = { c->patch, count(c->patch) };
        struct json_map ret = { 0 };
        struct arena a;
        struct err e;
        int r;

        arena_init(&a, 64 * KiB);
        check_case(c->what);
        r = labels_patch(&old, &patch, &a, &ret, &e);
        check_i64_eq(r, c->refused ? ERR_RETURN(ERR_INVALID) : 0);
        check_u64_eq(ret.n, count(c->now));
        for (size_t i = 0; i < ret.n; i++) {
                check_view_eq(ret.items[i].key, c->now[i].key);
                check_view_eq(ret.items[i].value, c->now[i].value);
        }
        arena_done(&a);
}

#define A1                         \
        {                          \
                STR("a"), STR("1") \
        }
#define B2                         \
        {                          \
                STR("b"), STR("2") \
        }
#define A3                         \
        {                          \
                STR("a"), STR("3") \
        }
#define NO_A                       \
        {                          \
                STR("a"), STR_NULL \
        }

static void test_patches(void **state)
{
        struct patch_case cases[] = {
                { "nothing", { A1, B2 }, { { STR_NULL } }, { A1, B2 }, false },
                { "sets in place", { A1, B2 }, { A3 }, { A3, B2 }, false },
                { "adds at the end", { B2 }, { A1 }, { B2, A1 }, false },
                { "deletes", { A1, B2 }, { NO_A }, { B2 }, false },
                { "deletes the last", { A1 }, { NO_A }, { { STR_NULL } }, false },
                { "deletes what is not there", { B2 }, { NO_A }, { B2 }, false },
                { "sets to empty",
                  { A1 },
                  { { STR("a"), STR("") } },
                  { { STR("a"), STR("") } },
                  false },
                { "refuses a bad value",
                  { A1 },
                  { { STR("a"), STR("x y") } },
                  { { STR_NULL } },
                  true },
                { "refuses a reserved key",
                  { A1 },
                  { { STR("opensandbox.io/a"), STR("1") } },
                  { { STR_NULL } },
                  true },
                { "refuses to delete one",
                  { A1 },
                  { { STR("opensandbox.io/a"), STR_NULL } },
                  { { STR_NULL } },
                  true },
                { "refuses a bad key",
                  { A1 },
                  { { STR("a b"), STR_NULL } },
                  { { STR_NULL } },
                  true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check_patch(&cases[i]);
}

/* A deleted key stays deleted, whatever patch follows. */
static void test_a_deleted_key_does_not_come_back(void **state)
{
        struct json_pair first[] = { A1, B2 }, without_a[] = { NO_A },
                         other[] = { { STR("c"), STR("4") } };
        struct json_map now = { first, 2 };
        struct arena a;
        struct err e;

        arena_init(&a, 64 * KiB);
        check_i64_eq(labels_patch(&now, &(struct json_map){ without_a, 1 }, &a, &now, &e), 0);
        check_i64_eq(labels_patch(&now, &(struct json_map){ other, 1 }, &a, &now, &e), 0);
        check_u64_eq(now.n, 2);
        check_true(!labels_find(&now, STR("a")) && labels_find(&now, STR("c")));
        arena_done(&a);
}

static void test_a_patch_may_not_make_too_many(void **state)
{
        static struct json_pair old[LABELS_MAX], patch[2 * LABELS_MAX + 1];
        static char keys[3 * LABELS_MAX + 1][8];
        struct json_map ret = { 0 }, full = { old, LABELS_MAX };
        struct arena a;
        struct err e;

        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                (void) snprintf(keys[i], sizeof(keys[i]), "k%zu", i);
        for (size_t i = 0; i < ARRAY_SIZE(old); i++)
                old[i] = (struct json_pair){ str_from(keys[i]), STR("v") };
        for (size_t i = 0; i < ARRAY_SIZE(patch); i++)
                patch[i] = (struct json_pair){ str_from(keys[LABELS_MAX + i]), STR("v") };
        arena_init(&a, MiB);
        check_true(labels_patch(&full, &(struct json_map){ patch, 1 }, &a, &ret, &e) < 0);
        check_true(labels_patch(&full, &(struct json_map){ patch, ARRAY_SIZE(patch) }, &a, &ret, &e)
                   < 0);
        check_true(!ret.items);
        arena_done(&a);
        arena_init(&a, 0);
        check_i64_eq(labels_patch(&full, &(struct json_map){ 0 }, &a, &ret, &e),
                     ERR_RETURN(ERR_TOO_LARGE));
        arena_done(&a);
}

static void test_bodies_of_patches(void **state)
{
        static const struct {
                const char *body, *loc, *what; /* NULL: fine */
        } cases[] = {
                { "{}", NULL, NULL },
                { "{\"a\":\"1\",\"b\":null}", NULL, NULL },
                { "[]", "", "must be an object" },
                { "null", "", "is required" },
                { "{\"a\":1}", "\"a\"", "must be a string" },
                { "{\"a\":\"1\",\"a\":\"2\"}", "", NULL },
                { "", "", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct json_map patch = { 0 };
                struct json_error e = { "" };
                struct arena a;

                arena_init(&a, 64 * KiB);
                check_case(cases[i].body);
                check_i64_eq(labels_decode_patch(str_from(cases[i].body), &a, &patch, &e),
                             cases[i].loc ? -EINVAL : 0);
                if (cases[i].loc)
                        check_z_eq(e.loc, cases[i].loc);
                if (cases[i].what)
                        check_z_eq(e.message + e.text_at, cases[i].what);
                check_true(patch.n < 2 || (patch.items[0].value.p && !patch.items[1].value.p));
                arena_done(&a);
        }
}

static void test_filters(void **state)
{
        struct json_pair labels[] = { A1, B2, { STR("e"), STR("") } };
        struct json_map have = { labels, 3 };
        static const struct {
                const char *what;
                struct json_pair filter[2];
                bool matches;
        } cases[] = {
                { "empty", { { STR_NULL } }, true },
                { "one", { A1 }, true },
                { "both", { A1, B2 }, true },
                { "one of two", { A1, { STR("b"), STR("1") } }, false },
                { "another value", { A3 }, false },
                { "another key", { { STR("c"), STR("1") } }, false },
                { "a beginning", { { STR("a"), STR("") } }, false },
                { "case", { { STR("A"), STR("1") } }, false },
                { "an empty value", { { STR("e"), STR("") } }, true },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct json_pair filter[2] = { cases[i].filter[0], cases[i].filter[1] };
                struct json_map want = { filter, (size_t) !!filter[0].key.p + !!filter[1].key.p };

                check_case(cases[i].what);
                check_i64_eq(labels_match(&have, &want), cases[i].matches);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_pairs),
                cmocka_unit_test(test_messages_name_the_key),
                cmocka_unit_test(test_bounds),
                cmocka_unit_test(test_patches),
                cmocka_unit_test(test_a_deleted_key_does_not_come_back),
                cmocka_unit_test(test_a_patch_may_not_make_too_many),
                cmocka_unit_test(test_bodies_of_patches),
                cmocka_unit_test(test_filters),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
