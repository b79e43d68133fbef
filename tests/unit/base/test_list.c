/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"

struct item {
        char name;
        struct list node;
};

/* The names in the list, read forward; backward must give the reverse. */
static void check_names(const struct list *head, const char *want)
{
        size_t n = strlen(want), i = 0;

        list_for_each (at, head) {
                check_true(i < n);
                check_i64_eq(container_of(at, struct item, node)->name, want[i]);
                i++;
        }
        check_u64_eq(i, n);
        for (const struct list *at = head->prev; at != head; at = at->prev)
                check_i64_eq(container_of(at, const struct item, node)->name, want[--i]);
        check_u64_eq(i, 0);
}

static void keeps_order(void **state)
{
        struct item a = { .name = 'a' }, b = { .name = 'b' }, c = { .name = 'c' };
        struct list head;

        list_init(&head);
        check_true(list_empty(&head));
        check_true(list_first(&head) == NULL);
        check_true(list_last(&head) == NULL);
        list_append(&head, &b.node);
        list_append(&head, &c.node);
        list_prepend(&head, &a.node);
        check_names(&head, "abc");
        check_true(list_first(&head) == &a.node);
        check_true(list_last(&head) == &c.node);
        list_remove(&b.node);
        list_remove(&b.node);
        check_names(&head, "ac");
        list_insert_before(&c.node, &b.node);
        check_names(&head, "abc");
}

static void survives_removal_while_walking(void **state)
{
        struct item items[5];
        struct list head;

        list_init(&head);
        for (int i = 0; i < 5; i++) {
                items[i].name = (char) ('a' + i);
                list_append(&head, &items[i].node);
        }
        list_for_each (n, &head)
                if (container_of(n, struct item, node)->name % 2)
                        list_remove(n);
        check_names(&head, "bd");
        list_for_each (n, &head)
                list_remove(n);
        check_true(list_empty(&head));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(keeps_order),
                cmocka_unit_test(survives_removal_while_walking),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
