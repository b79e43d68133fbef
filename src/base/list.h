/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_LIST_H
#define HUTCH_BASE_LIST_H

/*
 * An intrusive doubly linked list: a ring with its nodes embedded in the objects. An initialised node
 * that is in no list points to itself, so list_remove may be called twice.
 *
 *         list_for_each (n, &server->conns)
 *                 conn_close(container_of(n, struct conn, node));
 *
 * list_for_each tolerates the removal of the current node, of no other.
 */

#include "base/compiler.h"

struct list {
        struct list *next;
        struct list *prev;
};

static inline void list_init(struct list *l)
{
        l->next = l->prev = l;
}

static inline bool list_empty(const struct list *l)
{
        return l->next == l;
}

static inline void list_insert_before(struct list *at, struct list *n)
{
        n->prev = at->prev;
        n->next = at;
        at->prev->next = n;
        at->prev = n;
}

static inline void list_append(struct list *head, struct list *n)
{
        list_insert_before(head, n);
}

static inline void list_prepend(struct list *head, struct list *n)
{
        list_insert_before(head->next, n);
}

static inline void list_remove(struct list *n)
{
        n->prev->next = n->next;
        n->next->prev = n->prev;
        list_init(n);
}

static inline struct list *list_first(const struct list *head)
{
        return list_empty(head) ? NULL : head->next;
}

static inline struct list *list_last(const struct list *head)
{
        return list_empty(head) ? NULL : head->prev;
}

#define list_for_each(n, head)                                                 \
        for (struct list *n = (head)->next, *n##_next_ = n->next; n != (head); \
             n = n##_next_, n##_next_ = n->next)

#endif
