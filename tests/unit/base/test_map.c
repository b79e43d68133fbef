/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include "base/base.h"
#include "tests/lib/check.h"

struct thing {
        struct map_node node;
        char name[16];
};

/* The values of SipHash-1-3 with the key 00 01 … 0f over the bytes 00, 00 01, …, as its reference
 * implementation gives them. */
static void test_hash_is_siphash_1_3(void **state)
{
        static const uint64_t k[2] = { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL };
        static const struct {
                size_t n;
                uint64_t hash;
        } cases[] = {
                { 0, 0xabac0158050fc4dcULL },  { 1, 0xc9f49bf37d57ca93ULL },
                { 7, 0xd3927d989bb11140ULL },  { 8, 0x369095118d299a8eULL },
                { 15, 0xd320d86d2a519956ULL }, { 16, 0xcc4fdd1a7d908b66ULL },
                { 31, 0x2370dd1f8c21d1bcULL },
        };
        char text[32];

        for (size_t i = 0; i < sizeof(text); i++)
                text[i] = (char) i;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check_u64_eq(map_hash(k, str_of(text, cases[i].n)), cases[i].hash);
}

static void test_what_is_added_is_found_until_removed(void **state)
{
        enum { N = 1000 };
        struct thing *things = xcalloc(N, sizeof(struct thing));
        struct map m;

        map_init(&m);
        check_true(map_get(&m, STR("0")) == NULL);
        for (int i = 0; i < N; i++) {
                (void) snprintf(things[i].name, sizeof(things[i].name), "%d", i);
                map_add(&m, &things[i].node, str_from(things[i].name));
        }
        check_u64_eq(m.n, N);
        for (int i = 0; i < N; i += 2)
                map_remove(&m, &things[i].node);
        map_remove(&m, &things[0].node); /* twice is fine */
        check_u64_eq(m.n, N / 2);
        for (int i = 0; i < N; i++) {
                struct map_node *n = map_get(&m, str_from(things[i].name));

                check_true(n == (i % 2 ? &things[i].node : NULL));
        }
        map_add(&m, &things[0].node, str_from(things[0].name));
        check_true(map_get(&m, STR("0")) == &things[0].node);
        map_done(&m);
        free(things);
}

static void test_keys_are_bytes(void **state)
{
        struct thing a = { 0 }, b = { 0 };
        struct map m;

        map_init(&m);
        map_add(&m, &a.node, STR("a\0b"));
        map_add(&m, &b.node, STR("a"));
        check_true(map_get(&m, STR("a\0b")) == &a.node);
        check_true(map_get(&m, STR("a")) == &b.node);
        check_true(map_get(&m, STR("a\0c")) == NULL);
        check_true(map_get(&m, STR("")) == NULL);
        map_done(&m);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_hash_is_siphash_1_3),
                cmocka_unit_test(test_what_is_added_is_found_until_removed),
                cmocka_unit_test(test_keys_are_bytes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
