/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_QUEUE_H
#define HUTCH_BRIDGE_QUEUE_H

/*
 * How things go from one thread to another: the only place of the bridge with a lock.
 *
 * What is put in belongs to the queue, and then to who takes it; nothing is ever looked at by two
 * threads. The descriptor is readable when there is something to take, and at times when there is not, so
 * the taker waits for it with everything else it waits for. Anybody may put, one thread takes.
 */

#include <pthread.h>

#include "base/compiler.h"
#include "base/list.h"

struct queue {
        pthread_mutex_t _lock;
        struct list _items;
        size_t n, max; /* `n` is the lock's */
        int fd;
};

/* -errno; `max` 0: no limit, for things of which there is a limited number anyway. */
int queue_init(struct queue *q, size_t max) must_check;

/* It must be empty, and nobody may use it any more. */
void queue_done(struct queue *q);

/* False if it is full: the item is still the caller's. */
bool queue_put(struct queue *q, struct list *item) must_check;

/* Moves all of it to the end of the list, in the order in which it was put. */
void queue_take(struct queue *q, struct list *ret);

#endif
