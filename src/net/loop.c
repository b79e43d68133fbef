/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loop.h"

#include "base/base.h"

/* Called by libuv after the events, and by prepare_cb. Only the tasks queued before now are run: the list
 * is detached first. */
static void run_tasks(uv_check_t *h)
{
        struct net_loop *l = container_of(h, struct net_loop, check);
        struct list batch;

        l->_started = uv_now(&l->uv);
        if (!list_empty(&l->tasks)) {
                batch = l->tasks;
                batch.next->prev = &batch;
                batch.prev->next = &batch;
                list_init(&l->tasks);
                while (!list_empty(&batch)) {
                        struct net_task *t =
                                container_of(list_first(&batch), struct net_task, node);

                        list_remove(&t->node);
                        l->tasks_run++;
                        t->run(t);
                }
        }
        if (list_empty(&l->tasks))
                (void) uv_idle_stop(&l->idle);
}

static void idle_cb(uv_idle_t *h)
{
        (void) h;
}

const unsigned net_loop_bounds_ms[NET_LOOP_BUCKETS - 1] = { 1, 2, 5, 10, 25, 50, 100, 1000 };

/* The loop is about to wait. uv_now is from before the callbacks of this iteration. */
static void prepare_cb(uv_prepare_t *h)
{
        struct net_loop *l = container_of(h, struct net_loop, prepare);
        uint64_t started = l->_started, took;
        size_t i = 0;

        run_tasks(&l->check);
        l->_started = 0;
        if (started == 0)
                return;
        took = uv_hrtime() / 1000000 - started;
        while (i < NET_LOOP_BUCKETS - 1 && took > net_loop_bounds_ms[i])
                i++;
        l->stats.buckets[i]++;
        l->stats.msec += took;
        l->stats.slowest = MAX_OF(l->stats.slowest, took);
}

int net_loop_init(struct net_loop *l, const struct clock *clock)
{
        int r = uv_loop_init(&l->uv);

        if (r < 0)
                return r;
        l->clock = clock;
        l->stats = (struct net_loop_stats){ 0 };
        l->_started = 0;
        l->tasks_run = 0;
        /* Not cleared: a page that is never written costs nothing. */
        l->read_buf = xrealloc(NULL, 1, NET_READ_SIZE);
        list_init(&l->tasks);

        /* These three never fail. They must not keep the loop alive by themselves. */
        (void) uv_prepare_init(&l->uv, &l->prepare);
        (void) uv_check_init(&l->uv, &l->check);
        (void) uv_idle_init(&l->uv, &l->idle);
        (void) uv_prepare_start(&l->prepare, prepare_cb);
        (void) uv_check_start(&l->check, run_tasks);
        uv_unref((uv_handle_t *) &l->prepare);
        uv_unref((uv_handle_t *) &l->check);
        return 0;
}

void net_loop_done(struct net_loop *l)
{
        /* Queued tasks and close callbacks of others come first. */
        (void) uv_run(&l->uv, UV_RUN_NOWAIT);
        uv_close((uv_handle_t *) &l->prepare, NULL);
        uv_close((uv_handle_t *) &l->check, NULL);
        uv_close((uv_handle_t *) &l->idle, NULL);
        (void) uv_run(&l->uv, UV_RUN_DEFAULT);
        ASSERT(uv_loop_close(&l->uv) == 0);
        free(l->read_buf);
        l->read_buf = NULL;
}

void net_loop_run(struct net_loop *l)
{
        (void) uv_run(&l->uv, UV_RUN_DEFAULT);
}

void net_loop_run_once(struct net_loop *l, bool wait)
{
        (void) uv_run(&l->uv, wait ? UV_RUN_ONCE : UV_RUN_NOWAIT);
}

void net_task_init(struct net_task *t, net_task_fn *run)
{
        list_init(&t->node);
        t->run = run;
}

void net_task_queue(struct net_loop *l, struct net_task *t)
{
        if (!list_empty(&t->node))
                return;
        /* An active idle handle keeps the loop alive and from waiting. For tasks queued while events
         * are handled it is stopped again before libuv looks at it. */
        if (list_empty(&l->tasks))
                (void) uv_idle_start(&l->idle, idle_cb);
        list_append(&l->tasks, &t->node);
}

void net_task_cancel(struct net_task *t)
{
        list_remove(&t->node);
}
