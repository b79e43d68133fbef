/* SPDX-License-Identifier: Apache-2.0 */
#include "os/names.h"

#include "base/base.h"
#include "tests/lib/check.h"

/* The i-th name of a set of n, in an order without order. */
static void make_name(char ret[16], unsigned i, unsigned n)
{
        (void) snprintf(ret, 16, "%u", (unsigned) ((uint64_t) i * 7919 % n));
}

/* Runs all passes over the names 0 … n-1 and checks that each comes once, in order. */
static unsigned passes_over(unsigned n, size_t max)
{
        struct names s;
        unsigned passes = 0, got = 0, steps = 0;
        char name[16], last[16] = "";
        const char *taken;
        unsigned char type;

        names_init(&s);
        do {
                names_begin(&s, max);
                for (unsigned i = 0; i < n; i++) {
                        make_name(name, i, n);
                        check_i64_eq(names_offer(&s, name, (unsigned char) name[0]), 0);
                        check_true(names_bytes(&s) <= 2 * max + 1024);
                }
                while (names_sort(&s))
                        steps++;
                passes++;
                while (names_take(&s, &taken, &type)) {
                        check_true(strcmp(taken, last) > 0);
                        check_i64_eq(type, taken[0]);
                        (void) snprintf(last, sizeof(last), "%s", taken);
                        got++;
                }
        } while (names_has_more(&s));
        check_u64_eq(got, n);
        check_true(n < 30000 || steps > 1); /* not all at once */
        names_done(&s);
        return passes;
}

static void test_all_names_come_in_order(void **state)
{
        static const struct {
                const char *name;
                unsigned n;
                size_t max;
                unsigned passes_min, passes_max;
        } cases[] = {
                { "none", 0, 1000, 1, 1 },
                { "one", 1, 1000, 1, 1 },
                { "all fit", 1000, MiB, 1, 1 },
                { "many fit", 30000, 4 * MiB, 1, 1 },
                { "several passes", 1000, 4096, 5, 20 },
                { "one name a pass", 50, 1, 50, 50 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                unsigned passes;

                check_case(cases[i].name);
                passes = passes_over(cases[i].n, cases[i].max);
                check_true(passes >= cases[i].passes_min && passes <= cases[i].passes_max);
        }
}

/* A long name that was thrown out must not be overtaken by a short one that would still fit. */
static void test_short_names_do_not_overtake_long_ones(void **state)
{
        char longer[201];
        const char *const offered[] = { "c", longer, "z", "a" };
        const char *const expected[] = { "a", longer, "c", "z" };
        struct names s;
        const char *taken;
        unsigned char type;
        size_t got = 0;

        memset(longer, 'b', sizeof(longer) - 1);
        longer[sizeof(longer) - 1] = '\0';
        names_init(&s);
        do {
                names_begin(&s, 120);
                for (size_t i = 0; i < ARRAY_SIZE(offered); i++)
                        check_i64_eq(names_offer(&s, offered[i], 0), 0);
                while (names_sort(&s))
                        ;
                while (names_take(&s, &taken, &type))
                        check_z_eq(taken, expected[got++]);
        } while (names_has_more(&s));
        check_u64_eq(got, ARRAY_SIZE(expected));
        names_done(&s);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_all_names_come_in_order),
                cmocka_unit_test(test_short_names_do_not_overtake_long_ones),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
