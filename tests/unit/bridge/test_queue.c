/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/queue.h"

#include <poll.h>

#include "tests/lib/check.h"

struct item {
        struct list node;
        int n;
};

static bool is_readable(const struct queue *q)
{
        struct pollfd p = { .fd = q->fd, .events = POLLIN };

        return poll(&p, 1, 0) == 1;
}

static void order_and_descriptor(void **state)
{
        struct item items[3] = { { .n = 0 }, { .n = 1 }, { .n = 2 } };
        struct queue q;
        struct list got;
        int n = 0;

        check_i64_eq(queue_init(&q, 0), 0);
        list_init(&got);
        check_false(is_readable(&q));
        for (size_t i = 0; i < ARRAY_SIZE(items); i++)
                check_true(queue_put(&q, &items[i].node));
        check_true(is_readable(&q));
        queue_take(&q, &got);
        check_false(is_readable(&q));
        list_for_each (i, &got) {
                check_i64_eq(container_of(i, struct item, node)->n, n);
                n++;
        }
        check_i64_eq(n, 3);
        queue_take(&q, &got);
        queue_done(&q);
}

static void what_does_not_fit_stays_with_its_owner(void **state)
{
        struct item items[3] = { { .n = 0 } };
        struct queue q;
        struct list got;

        check_i64_eq(queue_init(&q, 2), 0);
        list_init(&got);
        check_true(queue_put(&q, &items[0].node));
        check_true(queue_put(&q, &items[1].node));
        check_false(queue_put(&q, &items[2].node));
        queue_take(&q, &got);
        check_true(queue_put(&q, &items[2].node));
        queue_take(&q, &got);
        queue_done(&q);
}

#define PUTTERS 4
#define EACH    5000

struct putter {
        pthread_t thread;
        struct queue *q;
        struct item *items;
};

static void *put_all(void *data)
{
        struct putter *p = data;

        for (int i = 0; i < EACH; i++) {
                p->items[i].n = i;
                if (!queue_put(p->q, &p->items[i].node))
                        return p;
        }
        return NULL;
}

static void nothing_is_lost_between_threads(void **state)
{
        struct putter putters[PUTTERS];
        struct queue q;
        int taken = 0;

        check_i64_eq(queue_init(&q, 0), 0);
        for (size_t i = 0; i < PUTTERS; i++) {
                putters[i].q = &q;
                putters[i].items = calloc(EACH, sizeof(struct item));
                check_true(putters[i].items != NULL);
                check_i64_eq(pthread_create(&putters[i].thread, NULL, put_all, &putters[i]), 0);
        }
        while (taken < PUTTERS * EACH) {
                struct pollfd p = { .fd = q.fd, .events = POLLIN };
                struct list got;

                list_init(&got);
                check_i64_eq(poll(&p, 1, -1), 1);
                queue_take(&q, &got);
                list_for_each (n, &got)
                        taken++;
        }
        for (size_t i = 0; i < PUTTERS; i++) {
                void *failed = NULL;

                check_i64_eq(pthread_join(putters[i].thread, &failed), 0);
                check_true(failed == NULL);
                free(putters[i].items);
        }
        check_false(is_readable(&q));
        queue_done(&q);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(order_and_descriptor),
                cmocka_unit_test(what_does_not_fit_stays_with_its_owner),
                cmocka_unit_test(nothing_is_lost_between_threads),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
