/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"

static void pieces_are_apart_and_aligned(void **state)
{
        struct arena a;
        char *pieces[200];

        arena_init(&a, 1 * MiB);
        for (size_t i = 0; i < ARRAY_SIZE(pieces); i++) {
                pieces[i] = arena_alloc(&a, i * 7 + 1);
                check_true(pieces[i] != NULL);
                check_u64_eq((uintptr_t) pieces[i] % _Alignof(max_align_t), 0);
                memset(pieces[i], (int) i, i * 7 + 1);
        }
        for (size_t i = 0; i < ARRAY_SIZE(pieces); i++)
                for (size_t k = 0; k <= i * 7; k++)
                        check_u64_eq((unsigned char) pieces[i][k], i);
        arena_done(&a);
        check_u64_eq(a.used, 0);
}

static void nothing_is_something(void **state)
{
        struct arena a;
        void *p, *q;

        arena_init(&a, 1 * MiB);
        p = arena_alloc(&a, 0);
        q = arena_alloc_array(&a, 0, 100);
        check_true(p != NULL && q != NULL && p != q);
        check_z_eq(arena_strdup(&a, NULL), "");
        check_view_eq(arena_dup_str(&a, STR_NULL), STR(""));
        arena_done(&a);
        arena_done(&a); /* twice is fine */
}

static void holds_its_maximum(void **state)
{
        static const size_t maxima[] = { 0, 1, 31, 32, 33, 100, 4095, 4096, 4097, 10000, 65536 };

        for (size_t i = 0; i < ARRAY_SIZE(maxima); i++) {
                struct arena a;
                size_t got = 0;

                arena_init(&a, maxima[i]);
                check_true(arena_alloc(&a, maxima[i] + 1) == NULL);
                while (arena_alloc(&a, 50))
                        got += 50;
                check_true(got <= maxima[i]);
                check_true(a.used <= maxima[i]);
                check_true(maxima[i] < 100 || got > 0);
                check_true(arena_alloc(&a, SIZE_MAX) == NULL);
                check_true(arena_alloc(&a, SIZE_MAX - 20) == NULL);
                check_true(arena_alloc_array(&a, SIZE_MAX / 2, 3) == NULL);
                check_true(arena_append(&a, NULL, 0, str_of("", SIZE_MAX)) == NULL);
                arena_done(&a);
        }
}

static void a_large_piece_does_not_waste_the_block(void **state)
{
        struct arena a;
        char *before, *after;

        arena_init(&a, 1 * MiB);
        before = arena_alloc(&a, 16);
        check_true(arena_alloc(&a, 100 * KiB) != NULL);
        after = arena_alloc(&a, 16);
        check_true(after == before + 16);
        arena_done(&a);
}

static void reset_keeps_one_block(void **state)
{
        struct arena a;
        void *first;

        arena_init(&a, 1 * MiB);
        arena_reset(&a);
        check_u64_eq(a.used, 0);
        check_true(arena_alloc(&a, 100) != NULL);
        for (int i = 0; i < 100; i++)
                check_true(arena_alloc(&a, 1000) && arena_alloc(&a, 8 * KiB));
        arena_reset(&a);
        check_u64_eq(a.used, ARENA_BLOCK);
        for (int i = 0; i < 10; i++) {
                first = arena_alloc(&a, 100);
                arena_reset(&a);
                check_true(arena_alloc(&a, 100) == first);
                check_u64_eq(a.used, ARENA_BLOCK);
                arena_reset(&a);
        }
        arena_done(&a);
        arena_init(&a, 1 * MiB);
        check_true(arena_alloc(&a, 8 * KiB) != NULL);
        arena_reset(&a);
        check_u64_eq(a.used, 0);
        arena_done(&a);
}

static void a_small_arena_grows_from_its_first_block(void **state)
{
        static const struct {
                size_t piece, used;
        } steps[] = {
                { 100, 512 },  { 300, 512 },  { 300, 1024 }, { 600, 2048 },
                { 900, 4096 }, { 900, 4096 }, { 900, 8192 }, { 5 * KiB, 0 },
        };
        struct arena a;
        char *pieces[ARRAY_SIZE(steps)];

        arena_init_small(&a, 1 * MiB, 512);
        for (int again = 0; again < 2; again++) {
                for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                        pieces[i] = arena_alloc(&a, steps[i].piece);
                        check_true(pieces[i] != NULL);
                        memset(pieces[i], (int) i, steps[i].piece);
                        if (steps[i].used > 0)
                                check_u64_eq(a.used, steps[i].used);
                }
                for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
                        check_true(pieces[i][steps[i].piece - 1] == (char) i);
                arena_done(&a);
        }
        check_case("a first piece that does not fit");
        check_true(arena_alloc(&a, 1000) != NULL);
        check_u64_eq(a.used, ARENA_BLOCK);
        arena_done(&a);
}

static void copies_and_formats(void **state)
{
        struct arena a;
        char *s;

        arena_init(&a, 1 * MiB);
        check_z_eq(arena_strdup(&a, "abc"), "abc");
        check_view_eq(arena_dup_str(&a, STR("a\0b")), STR("a\0b"));
        check_z_eq(arena_printf(&a, "%s-%d", "x", 7), "x-7");
        for (int n = 250; n < 260; n++) {
                s = arena_printf(&a, "%0*d", n, 1);
                check_u64_eq(strlen(s), n);
        }
        s = arena_zalloc(&a, 300);
        for (int i = 0; i < 300; i++)
                check_i64_eq(s[i], 0);
        arena_done(&a);
}

static void appends_in_place(void **state)
{
        struct arena a;
        char *p, *q;

        arena_init(&a, 1 * MiB);
        p = arena_append(&a, NULL, 0, STR("abc"));
        q = arena_append(&a, p, 3, STR("def"));
        check_true(p == q);
        check_z_eq(q, "abcdef");
        q = arena_append(&a, q, 6, STR("0123456789012345678901234567890"));
        check_true(p == q);
        check_z_eq(q, "abcdef0123456789012345678901234567890");
        check_true(arena_append(&a, q, 3, STR_NULL) == q);
        arena_done(&a);
}

static void appends_by_copying(void **state)
{
        struct arena a;
        char *p, *q, *other;

        arena_init(&a, 1 * MiB);
        p = arena_alloc(&a, 16); /* no room for the NUL: what follows is not ours */
        memcpy(p, "0123456789abcdef", 16);
        other = arena_strdup(&a, "other");
        q = arena_append(&a, p, 16, STR("g"));
        check_true(p != q);
        check_z_eq(q, "0123456789abcdefg");
        check_z_eq(other, "other");
        arena_done(&a);
}

static void appends_many_fragments(void **state)
{
        struct arena a;
        size_t n = 0;
        char *p = NULL;

        arena_init(&a, 4 * MiB);
        for (int i = 0; i < 100000; i++) {
                p = arena_append(&a, p, n, STR("0123456789"));
                check_true(p != NULL);
                n += 10;
        }
        for (size_t i = 0; i < n; i++)
                check_i64_eq(p[i], '0' + (int) (i % 10));
        check_u64_eq(strlen(p), n);
        check_true(a.used <= 4 * n);
        arena_done(&a);
}

static void a_wiped_arena_is_empty_and_of_use(void **state)
{
        struct arena a;

        arena_init(&a, MiB);
        check_true(arena_alloc(&a, 100) && arena_alloc(&a, 3 * ARENA_BLOCK)
                   && arena_alloc(&a, ARENA_BLOCK / 2) && arena_alloc(&a, ARENA_BLOCK / 2));
        arena_wipe(&a);
        check_u64_eq(a.used, 0);
        check_true(a.blocks == NULL);
        arena_wipe(&a);
        check_true(arena_strdup(&a, "again") != NULL);
        arena_done(&a);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pieces_are_apart_and_aligned),
                cmocka_unit_test(nothing_is_something),
                cmocka_unit_test(holds_its_maximum),
                cmocka_unit_test(a_large_piece_does_not_waste_the_block),
                cmocka_unit_test(reset_keeps_one_block),
                cmocka_unit_test(a_wiped_arena_is_empty_and_of_use),
                cmocka_unit_test(a_small_arena_grows_from_its_first_block),
                cmocka_unit_test(copies_and_formats),
                cmocka_unit_test(appends_in_place),
                cmocka_unit_test(appends_by_copying),
                cmocka_unit_test(appends_many_fragments),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
