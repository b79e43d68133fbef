/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/contract/store_contract.h"

#include "base/base.h"

static struct store_world world;
static const struct store_maker *the_maker;

struct store_world *store_contract_world(void)
{
        return &world;
}

int store_contract_set_up(void **state)
{
        world_open(&world, the_maker);
        return 0;
}

int store_contract_tear_down(void **state)
{
        world_close(&world);
        return 0;
}

static struct str view(const struct buf *b)
{
        return buf_str(b);
}

/* --- single keys --- */

static void what_was_put_is_got(void **state)
{
        static const struct {
                const char *name;
                struct str key, value;
        } cases[] = {
                { "text", { "sandbox/a", 9 }, { "{}", 2 } },
                { "an empty value", { "empty", 5 }, { "", 0 } },
                { "NULs in the value", { "nul", 3 }, { "\0a\0", 3 } },
                { "NULs in the key", { "\0k\0", 3 }, { "x", 1 } },
                { "a NUL more in the key", { "\0k\0\0", 4 }, { "y", 1 } },
                { "bytes that are no text", { "\xff\x80\xfe", 3 }, { "\xff\xff", 2 } },
                { "SQL", { "'; DROP TABLE entry; --", 23 }, { "%s%n*?[", 7 } },
        };
        struct buf value;
        uint64_t put, got;

        buf_init(&value, STORE_VALUE_MAX);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].name);
                check_i64_eq(world_put(&world, cases[i].key, cases[i].value, NULL), 0);
        }
        world_pause(&world);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].name);
                check_i64_eq(world_get(&world, cases[i].key, &value, &got), 0);
                check_view_eq(view(&value), cases[i].value);
                check_true(got != 0);
                check_i64_eq(world_put(&world, cases[i].key, STR("anew"), &put), 0);
                check_true(put > got);
                check_i64_eq(world_get(&world, cases[i].key, &value, &got), 0);
                check_view_eq(view(&value), STR("anew"));
                check_u64_eq(got, put);
        }
        buf_done(&value);
}

static void what_is_missing_is_not_found(void **state)
{
        check_i64_eq(world_get(&world, STR("a"), NULL, NULL), ERR_RETURN(ERR_NOT_FOUND));
        check_i64_eq(world_err()->code, ERR_NOT_FOUND);
        check_true(world_err()->message[0] != '\0');
        check_i64_eq(world_put(&world, STR("ab"), STR("1"), NULL), 0);
        check_i64_eq(world_get(&world, STR("a"), NULL, NULL), ERR_RETURN(ERR_NOT_FOUND));
        check_i64_eq(world_get(&world, STR("abc"), NULL, NULL), ERR_RETURN(ERR_NOT_FOUND));
        check_i64_eq(world_get(&world, STR("AB"), NULL, NULL), ERR_RETURN(ERR_NOT_FOUND));
        check_i64_eq(world_get(&world, STR("ab\0"), NULL, NULL), ERR_RETURN(ERR_NOT_FOUND));
}

static void what_was_removed_is_gone(void **state)
{
        check_i64_eq(world_put(&world, STR("a"), STR("1"), NULL), 0);
        check_i64_eq(world_remove(&world, STR("a"), STORE_ANY), 0);
        world_pause(&world);
        check_i64_eq(world_get(&world, STR("a"), NULL, NULL), ERR_RETURN(ERR_NOT_FOUND));
        check_i64_eq(world_remove(&world, STR("a"), STORE_ANY), 0);
        check_i64_eq(world_remove(&world, STR("never"), STORE_ANY), 0);
}

static void only_the_expected_version_is_removed(void **state)
{
        uint64_t first, second;

        check_i64_eq(world_put(&world, STR("a"), STR("1"), &first), 0);
        check_i64_eq(world_put(&world, STR("a"), STR("2"), &second), 0);
        world_pause(&world);
        check_i64_eq(world_remove(&world, STR("a"), first), ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(world_remove(&world, STR("a"), STORE_ABSENT), ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(world_remove(&world, STR("a"), UINT64_MAX - 1), ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(world_get(&world, STR("a"), NULL, NULL), 0);
        check_i64_eq(world_remove(&world, STR("a"), second), 0);
        check_i64_eq(world_remove(&world, STR("a"), second), ERR_RETURN(ERR_CONFLICT));
}

static void cas_writes_only_over_the_expected(void **state)
{
        struct buf value;
        uint64_t v1, v2, v3;

        buf_init(&value, STORE_VALUE_MAX);
        check_i64_eq(world_cas(&world, STR("k"), 1, STR("x"), NULL), ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(world_cas(&world, STR("k"), STORE_ABSENT, STR("one"), &v1), 0);
        check_i64_eq(world_cas(&world, STR("k"), STORE_ABSENT, STR("x"), NULL),
                     ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(world_err()->code, ERR_CONFLICT);
        world_pause(&world);
        check_i64_eq(world_cas(&world, STR("k"), v1, STR("two"), &v2), 0);
        check_true(v2 > v1);
        check_i64_eq(world_cas(&world, STR("k"), v1, STR("x"), NULL), ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(world_cas(&world, STR("k"), v2 + 1, STR("x"), NULL), ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(world_cas(&world, STR("k"), UINT64_MAX, STR("x"), NULL),
                     ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(world_get(&world, STR("k"), &value, &v3), 0);
        check_view_eq(view(&value), STR("two"));
        check_u64_eq(v3, v2);
        buf_done(&value);
}

/* A write with an old version must fail, whatever happened to the key in between. */
static void versions_never_come_back(void **state)
{
        uint64_t last = 0, version;

        for (int i = 0; i < 5; i++) {
                check_i64_eq(world_cas(&world, STR("k"), STORE_ABSENT, STR("v"), &version), 0);
                check_true(version > last);
                last = version;
                check_i64_eq(world_put(&world, STR("k"), STR("v"), &version), 0);
                check_true(version > last);
                check_i64_eq(world_cas(&world, STR("k"), last, STR("x"), NULL),
                             ERR_RETURN(ERR_CONFLICT));
                last = version;
                check_i64_eq(world_remove(&world, STR("k"), version), 0);
                world_pause(&world);
                check_i64_eq(world_cas(&world, STR("k"), last, STR("x"), NULL),
                             ERR_RETURN(ERR_CONFLICT));
        }
}

/* --- sizes --- */

static void sizes_have_limits(void **state)
{
        struct str key = { xcalloc(1, STORE_KEY_MAX + 1), STORE_KEY_MAX };
        struct str value = { xcalloc(1, STORE_VALUE_MAX + 1), STORE_VALUE_MAX };
        struct str long_key = { key.p, key.n + 1 }, long_value = { value.p, value.n + 1 };
        struct buf got;

        memset((char *) (uintptr_t) value.p, 0xa5, value.n);
        buf_init(&got, STORE_VALUE_MAX);
        check_i64_eq(world_put(&world, key, value, NULL), 0);
        world_pause(&world);
        check_i64_eq(world_get(&world, key, &got, NULL), 0);
        check_true(str_eq(view(&got), value));

        check_i64_eq(world_put(&world, long_key, STR("x"), NULL), ERR_RETURN(ERR_TOO_LARGE));
        check_i64_eq(world_put(&world, key, long_value, NULL), ERR_RETURN(ERR_TOO_LARGE));
        check_i64_eq(world_cas(&world, STR("k"), STORE_ABSENT, long_value, NULL),
                     ERR_RETURN(ERR_TOO_LARGE));
        check_i64_eq(world_get(&world, long_key, NULL, NULL), ERR_RETURN(ERR_TOO_LARGE));
        check_i64_eq(world_put(&world, STR(""), STR("x"), NULL), ERR_RETURN(ERR_INVALID));
        check_i64_eq(world_remove(&world, STR(""), STORE_ANY), ERR_RETURN(ERR_INVALID));
        check_i64_eq(world_get(&world, key, &got, NULL), 0);
        check_u64_eq(got.n, value.n);
        buf_done(&got);
        free((char *) (uintptr_t) key.p);
        free((char *) (uintptr_t) value.p);
}

/* --- scans --- */

static void fill(const char *const *keys)
{
        for (; *keys; keys++)
                check_i64_eq(world_put(&world, str_from(*keys), str_from(*keys), NULL), 0);
}

static void scans_are_in_key_order(void **state)
{
        static const char *const keys[] = { "b/2", "a", "b/10", "b", "c", "b/", "b0", "B/1", NULL };
        static const struct {
                const char *prefix, *keys;
        } cases[] = {
                { "", "B/1 a b b/ b/10 b/2 b0 c" },
                { "b", "b b/ b/10 b/2 b0" },
                { "b/", "b/ b/10 b/2" },
                { "b/1", "b/10" },
                { "b/3", "" },
                { "d", "" },
                { "A", "" },
        };
        struct buf text;

        buf_init(&text, 1 * KiB);
        fill(keys);
        world_pause(&world);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].prefix);
                for (unsigned limit = 1; limit < 10; limit++) {
                        world_keys(&world, str_from(cases[i].prefix), limit, &text);
                        check_str_eq(view(&text), cases[i].keys);
                }
        }
        buf_done(&text);
}

static void pages_begin_behind_the_cursor(void **state)
{
        static const char *const keys[] = { "a", "b", "b1", "b2", "b3", "c", NULL };
        static const struct {
                const char *name;
                struct str prefix, after;
                unsigned limit;
                const char *page;
                bool more;
        } cases[] = {
                { "the first", { "b", 1 }, { NULL, 0 }, 2, "b=b b1=b1", true },
                { "the second", { "b", 1 }, { "b1", 2 }, 2, "b2=b2 b3=b3", false },
                { "behind the last", { "b", 1 }, { "b3", 2 }, 2, "", false },
                { "behind a key that is gone", { "b", 1 }, { "b11", 3 }, 2, "b2=b2 b3=b3", false },
                { "a cursor before the prefix", { "b", 1 }, { "a", 1 }, 1, "b=b", true },
                { "a cursor behind the prefix", { "b", 1 }, { "c", 1 }, 9, "", false },
                { "the prefix itself", { "b", 1 }, { "b", 1 }, 9, "b1=b1 b2=b2 b3=b3", false },
                { "all", { "", 0 }, { NULL, 0 }, 9, "a=a b=b b1=b1 b2=b2 b3=b3 c=c", false },
                { "a huge limit", { "c", 1 }, { NULL, 0 }, 4000000000U, "c=c", false },
        };
        struct buf text;

        buf_init(&text, 1 * KiB);
        fill(keys);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct store_scan page = { .prefix = cases[i].prefix,
                                           .after = cases[i].after,
                                           .limit = cases[i].limit };

                check_case(cases[i].name);
                check_i64_eq(world_page(&world, &page, &text), 0);
                check_str_eq(view(&text), cases[i].page);
                check_true(page.more == cases[i].more);
        }
        check_i64_eq(world_page(&world, &(struct store_scan){ .limit = 0 }, &text),
                     ERR_RETURN(ERR_INVALID));
        buf_done(&text);
}

/* The end of a prefix is not "prefix plus one" where its last byte is the highest there is. */
static void prefixes_of_high_bytes(void **state)
{
        static const struct str keys[] = {
                { "\xfe", 1 },     { "\xfe\xff", 2 }, { "\xff", 1 },         { "\xff\x01", 2 },
                { "\xff\xfe", 2 }, { "\xff\xff", 2 }, { "\xff\xff\x01", 3 }, { "\xff\xff\xff", 3 },
        };
        static const struct {
                struct str prefix;
                unsigned n;
        } cases[] = {
                { { "\xfe", 1 }, 2 },         { { "\xfe\xff", 2 }, 1 },
                { { "\xff", 1 }, 6 },         { { "\xff\xff", 2 }, 3 },
                { { "\xff\xff\xff", 3 }, 1 }, { { "\xff\xff\xff\xff", 4 }, 0 },
                { { "\x7f", 1 }, 0 },         { { "", 0 }, 8 },
        };
        struct buf text;

        buf_init(&text, 1 * KiB);
        for (size_t i = ARRAY_SIZE(keys); i-- > 0;)
                check_i64_eq(world_put(&world, keys[i], STR(""), NULL), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct store_scan page = { .prefix = cases[i].prefix, .limit = 100 };

                check_i64_eq(world_page(&world, &page, &text), 0);
                check_u64_eq(page.n, cases[i].n);
                check_false(page.more);
        }
        buf_done(&text);
}

/* Ten values of 1 MiB don't fit on a page; they come on several. */
static void large_entries_make_small_pages(void **state)
{
        static const char names[] = "abcdefghij";
        struct str value = { xcalloc(1, STORE_VALUE_MAX), STORE_VALUE_MAX };
        struct store_scan page = { .limit = 100 };
        struct buf text, keys;

        buf_init(&text, 8 * MiB);
        buf_init(&keys, 1 * KiB);
        for (size_t i = 0; i < strlen(names); i++)
                check_i64_eq(world_put(&world, str_of(names + i, 1), value, NULL), 0);
        check_i64_eq(world_page(&world, &page, &text), 0);
        check_true(page.n > 0 && page.n < 5);
        check_true(page.more);
        world_keys(&world, STR(""), 100, &keys);
        check_str_eq(view(&keys), "a b c d e f g h i j");
        free((char *) (uintptr_t) value.p);
        buf_done(&text);
        buf_done(&keys);
}

/* What stays is seen once; what comes and goes behind the cursor or before it does no harm. */
static void pages_live_with_changes(void **state)
{
        static const char *const keys[] = { "k1", "k3", "k5", "k7", NULL };
        struct store_scan page = { .prefix = STR("k"), .limit = 2 };
        struct buf text;

        buf_init(&text, 1 * KiB);
        fill(keys);
        check_i64_eq(world_page(&world, &page, &text), 0);
        check_str_eq(view(&text), "k1=k1 k3=k3");
        check_i64_eq(world_remove(&world, STR("k3"), STORE_ANY), 0); /* the cursor itself */
        check_i64_eq(world_remove(&world, STR("k5"), STORE_ANY), 0);
        check_i64_eq(world_put(&world, STR("k2"), STR("late"), NULL), 0);
        check_i64_eq(world_put(&world, STR("k6"), STR("new"), NULL), 0);
        check_i64_eq(world_put(&world, STR("k7"), STR("other"), NULL), 0);
        world_pause(&world);
        page.after = STR("k3");
        check_i64_eq(world_page(&world, &page, &text), 0);
        check_str_eq(view(&text), "k6=new k7=other");
        check_false(page.more);
        buf_done(&text);
}

int store_contract_run(const struct store_maker *maker)
{
        static const struct CMUnitTest own[] = {
                STORE_TEST(what_was_put_is_got),
                STORE_TEST(what_is_missing_is_not_found),
                STORE_TEST(what_was_removed_is_gone),
                STORE_TEST(only_the_expected_version_is_removed),
                STORE_TEST(cas_writes_only_over_the_expected),
                STORE_TEST(versions_never_come_back),
                STORE_TEST(sizes_have_limits),
                STORE_TEST(scans_are_in_key_order),
                STORE_TEST(pages_begin_behind_the_cursor),
                STORE_TEST(prefixes_of_high_bytes),
                STORE_TEST(large_entries_make_small_pages),
                STORE_TEST(pages_live_with_changes),
        };
        struct CMUnitTest tests[64];
        size_t n = ARRAY_SIZE(own) + store_contract_flow_n;

        the_maker = maker;
        ASSERT(n <= ARRAY_SIZE(tests));
        memcpy(tests, own, sizeof(own));
        memcpy(tests + ARRAY_SIZE(own), store_contract_flow,
               store_contract_flow_n * sizeof(tests[0]));
        return _cmocka_run_group_tests(maker->name, tests, n, NULL, NULL);
}
