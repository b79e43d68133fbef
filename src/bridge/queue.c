/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/queue.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/base.h"

int queue_init(struct queue *q, size_t max)
{
        int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

        if (fd < 0)
                return -errno;
        *q = (struct queue){ .max = max, .fd = fd };
        list_init(&q->_items);
        ASSERT(pthread_mutex_init(&q->_lock, NULL) == 0);
        return 0;
}

void queue_done(struct queue *q)
{
        ASSERT(list_empty(&q->_items));
        (void) pthread_mutex_destroy(&q->_lock);
        (void) close(TAKE_FD(q->fd));
}

static void lock(struct queue *q)
{
        ASSERT(pthread_mutex_lock(&q->_lock) == 0);
}

static void unlock(struct queue *q)
{
        ASSERT(pthread_mutex_unlock(&q->_lock) == 0);
}

/* Who takes is woken outside the lock, or he would wake up only to wait for it. He calms the descriptor
 * before he looks: what is put after that finds an empty list, or is seen. So nothing is missed, and the
 * worst that happens is that he comes once for nothing. */
bool queue_put(struct queue *q, struct list *item)
{
        const uint64_t one = 1;
        bool fits, first = false;

        lock(q);
        fits = q->max == 0 || q->n < q->max;
        if (fits) {
                list_append(&q->_items, item);
                first = q->n++ == 0;
        }
        unlock(q);
        if (first)
                ASSERT(write(q->fd, &one, sizeof(one)) == sizeof(one));
        return fits;
}

void queue_take(struct queue *q, struct list *ret)
{
        uint64_t count;

        ASSERT(read(q->fd, &count, sizeof(count)) == sizeof(count) || errno == EAGAIN);
        lock(q);
        q->n = 0;
        list_for_each (item, &q->_items) {
                list_remove(item);
                list_append(ret, item);
        }
        unlock(q);
}
