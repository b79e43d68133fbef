/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tree.h"

#include "base/base.h"
#include "tests/lib/check.h"

/* The longest path from the root. */
static size_t height(const struct tree_node *n)
{
        size_t left, right;

        if (!n)
                return 0;
        left = height(n->_left);
        right = height(n->_right);
        return 1 + MAX_OF(left, right);
}

struct thing {
        struct tree_node node;
        char name[16];
        size_t n;
};

/* Fixed-width numbers, so that their order as bytes is their order as numbers. */
static void thing_add(struct tree *t, struct thing *x, unsigned number)
{
        x->n = (size_t) snprintf(x->name, sizeof(x->name), "%08u", number);
        tree_add(t, &x->node, str_of(x->name, x->n));
}

static unsigned thing_number(const struct tree_node *n)
{
        return (unsigned) strtoul(n->key.p, NULL, 10);
}

static void orders_bytes(void **state)
{
        static const struct str ordered[] = {
                { "\0", 1 },   { "\0\0", 2 },   { "a", 1 },        { "a\0", 2 },
                { "aa", 2 },   { "b", 1 },      { "\x7f", 1 },     { "\x80", 1 },
                { "\xff", 1 }, { "\xff\0", 2 }, { "\xff\xff", 2 },
        };
        struct tree_node nodes[ARRAY_SIZE(ordered)] = { 0 };
        struct tree_node *n;
        struct tree t;
        size_t i = 0;

        tree_init(&t);
        for (size_t k = ARRAY_SIZE(ordered); k-- > 0;)
                tree_add(&t, &nodes[k], ordered[k]);
        for (n = tree_from(&t, STR("")); n; n = tree_after(&t, n->key))
                check_true(n == &nodes[i++]);
        check_u64_eq(i, ARRAY_SIZE(ordered));
        for (i = 0; i < ARRAY_SIZE(ordered); i++)
                check_true(tree_get(&t, ordered[i]) == &nodes[i]);
        check_true(tree_get(&t, STR("ab")) == NULL);
        check_true(tree_from(&t, STR("ab")) == &nodes[5]);
        check_true(tree_after(&t, STR("a")) == &nodes[3]);
        check_true(tree_after(&t, ordered[ARRAY_SIZE(ordered) - 1]) == NULL);
}

#define MANY 2000

/* Against a plain table of flags, over random additions and removals. */
static void agrees_with_a_table(void **state)
{
        struct thing *things = xcalloc(MANY, sizeof(*things));
        bool in[MANY] = { false };
        uint32_t seed = 12345;
        size_t count = 0;
        struct tree t;

        tree_init(&t);
        for (int step = 0; step < 20000; step++) {
                unsigned i = (seed = seed * 1103515245 + 12345) >> 8, next;
                struct tree_node *n;

                i %= MANY;
                if (in[i])
                        tree_remove(&t, &things[i].node);
                else
                        thing_add(&t, &things[i], i);
                in[i] = !in[i];
                count += in[i] ? 1 : (size_t) -1;
                check_u64_eq(t.n, count);

                for (next = i + 1; next < MANY && !in[next];)
                        next++;
                n = tree_after(&t, str_of(things[i].name, things[i].n));
                check_true(next == MANY ? !n : n && thing_number(n) == next);
                check_true(!!tree_get(&t, str_of(things[i].name, things[i].n)) == in[i]);
        }
        free(things);
}

static unsigned count_before(const bool *in, unsigned i)
{
        unsigned n = 0;

        while (i-- > 0)
                n += in[i];
        return n;
}

/* Places against the same table, counted out. */
static void places_agree_with_a_sorted_array(void **state)
{
        enum { COUNT = 300 };
        struct thing *things = xcalloc(COUNT, sizeof(*things));
        struct tree_node *sorted[COUNT], *range[COUNT];
        bool in[COUNT] = { false };
        uint32_t seed = 99;
        struct tree t;

        tree_init(&t);
        for (int step = 0; step < 3000; step++) {
                unsigned i = (seed = seed * 1103515245 + 12345) >> 8, from, n = 0, got;

                i %= COUNT;
                if (in[i])
                        tree_remove(&t, &things[i].node);
                else
                        thing_add(&t, &things[i], i);
                in[i] = !in[i];
                check_u64_eq(tree_rank(&t, str_of(things[i].name, things[i].n)),
                             count_before(in, i));
                for (unsigned k = 0; k < COUNT; k++)
                        if (in[k])
                                sorted[n++] = &things[k].node;
                for (unsigned k = 0; k < n; k++)
                        check_true(tree_nth(&t, k) == sorted[k]);
                check_true(tree_nth(&t, n) == NULL && tree_nth(&t, SIZE_MAX) == NULL);

                from = (seed >> 4) % (COUNT + 1);
                got = (unsigned) tree_range(&t, from, step % 50, range);
                check_u64_eq(got, from >= n ? 0 : MIN_OF(n - from, (unsigned) step % 50));
                for (unsigned k = 0; k < got; k++)
                        check_true(range[k] == sorted[from + k]);
        }
        check_u64_eq(tree_range(&t, 0, SIZE_MAX, range), t.n);
        check_u64_eq(tree_range(&t, SIZE_MAX, SIZE_MAX, range), 0);
        free(things);
}

static void trees_of_one_source_differ_in_shape_only(void **state)
{
        struct tree source, t;
        struct thing things[100] = { 0 };

        tree_init(&source);
        tree_init_from(&t, &source);
        for (unsigned i = 0; i < ARRAY_SIZE(things); i++)
                thing_add(&t, &things[i], i);
        check_true(height(t._root) < 50);
        for (unsigned i = 0; i < ARRAY_SIZE(things); i++)
                check_u64_eq(thing_number(tree_nth(&t, i)), i);
}

/* A search tree without balance would be a list here. 100,000 keys need 17 levels at best; a treap
 * of more than 80 is less likely than broken hardware. */
static void stays_low_whatever_the_order(void **state)
{
        static const struct {
                const char *name;
                unsigned factor; /* odd: i * factor mod 2^17 meets each number once */
        } cases[] = { { "ascending", 1 }, { "descending", 131071 }, { "strided", 40503 } };
        enum { COUNT = 131072 };
        struct thing *things = xcalloc(COUNT, sizeof(*things));

        for (size_t c = 0; c < ARRAY_SIZE(cases); c++) {
                unsigned number = 0;
                struct tree t;

                check_case(cases[c].name);
                tree_init(&t);
                for (unsigned i = 0; i < COUNT; i++)
                        thing_add(&t, &things[i], i * cases[c].factor % COUNT);
                check_true(height(t._root) < 80);
                for (struct tree_node *n = tree_from(&t, STR("")); n; n = tree_after(&t, n->key))
                        check_u64_eq(thing_number(n), number++);
                check_u64_eq(number, COUNT);
                while (tree_take_any(&t))
                        number--;
                check_u64_eq(number, 0);
                check_u64_eq(t.n, 0);
        }
        free(things);
}

static void removing_twice_is_fine(void **state)
{
        struct thing a = { 0 }, b = { 0 };
        struct tree t;

        tree_init(&t);
        tree_remove(&t, &a.node);
        thing_add(&t, &a, 1);
        thing_add(&t, &b, 2);
        tree_remove(&t, &a.node);
        tree_remove(&t, &a.node);
        check_u64_eq(t.n, 1);
        check_true(tree_take_any(&t) == &b.node);
        check_true(tree_take_any(&t) == NULL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(orders_bytes),
                cmocka_unit_test(agrees_with_a_table),
                cmocka_unit_test(places_agree_with_a_sorted_array),
                cmocka_unit_test(trees_of_one_source_differ_in_shape_only),
                cmocka_unit_test(stays_low_whatever_the_order),
                cmocka_unit_test(removing_twice_is_fine),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
