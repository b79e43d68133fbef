/* SPDX-License-Identifier: Apache-2.0 */

/* The sanitizer knows what of an arena is in use. */

#include "tests/lib/check.h"

#include <sanitizer/asan_interface.h>

#include "base/base.h"

static void only_pieces_may_be_touched(void **state)
{
        struct arena a;
        char *first, *second, *large;

        arena_init(&a, 1 * MiB);
        first = arena_alloc(&a, 10);
        check_false(__asan_address_is_poisoned(first + 9));
        check_true(__asan_address_is_poisoned(first + 10));
        check_true(__asan_address_is_poisoned(first + 16));
        second = arena_append(&a, NULL, 0, STR("abc"));
        check_true(__asan_address_is_poisoned(second + 4));
        second = arena_append(&a, second, 3, STR("0123456789012345"));
        check_false(__asan_address_is_poisoned(second + 19));
        check_true(__asan_address_is_poisoned(second + 20));
        large = arena_alloc(&a, 10000);
        check_false(__asan_address_is_poisoned(large + 9999));
        arena_reset(&a);
        check_true(__asan_address_is_poisoned(first));
        check_true(__asan_address_is_poisoned(second));
        check_true(arena_alloc(&a, 1) == first);
        check_false(__asan_address_is_poisoned(first));
        check_true(__asan_address_is_poisoned(first + 1));
        arena_done(&a);
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(only_pieces_may_be_touched) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
