/* SPDX-License-Identifier: Apache-2.0 */
#include "net/op.h"

#include "base/base.h"
#include "tests/lib/check.h"

/* The contract of operations and tasks. */

struct work {
        struct op op;
        struct net_loop *loop;
        int calls;
        int result;
        bool restart;     /* from inside done */
        struct op *other; /* finished from inside done */
        bool begin_other;
        int other_calls; /* how often the other's `done` had run then */
};

static struct net_loop loop;

static int set_up(void **state)
{
        return net_loop_init(&loop, &clock_system);
}

static int tear_down(void **state)
{
        net_loop_done(&loop);
        return 0;
}

static void work_done(struct op *op, int result)
{
        struct work *w = container_of(op, struct work, op);

        w->calls++;
        w->result = result;
        if (w->restart) {
                w->restart = false;
                op_begin(op, &loop, NULL);
                op_finish(op, 7);
        }
}

static void cancel_at_once(struct op *op)
{
        op_finish(op, -ECANCELED);
}

static void cancel_now(struct op *op)
{
        op_finish_now(op, -ECANCELED);
}

static void finish_other(struct op *op, int result)
{
        struct work *w = container_of(op, struct work, op);
        struct work *other = container_of(w->other, struct work, op);

        w->calls++;
        if (w->begin_other)
                op_begin(w->other, &loop, NULL);
        op_finish_now(w->other, result);
        w->other_calls = other->calls;
}

static void done_runs_once_and_never_inside_the_starting_call(void **state)
{
        struct work w = { 0 };

        op_init(&w.op, work_done);
        check_false(op_pending(&w.op));
        op_begin(&w.op, &loop, NULL);
        op_finish(&w.op, 42);
        check_i64_eq(w.calls, 0);
        check_true(op_pending(&w.op));
        net_loop_run_once(&loop, false);
        check_i64_eq(w.calls, 1);
        check_i64_eq(w.result, 42);
        check_false(op_pending(&w.op));
        net_loop_run_once(&loop, false);
        check_i64_eq(w.calls, 1);
}

static void cancel_leads_to_done(void **state)
{
        struct work w = { 0 };

        op_init(&w.op, work_done);
        op_begin(&w.op, &loop, cancel_at_once);
        op_cancel(&w.op);
        op_cancel(&w.op);
        check_i64_eq(w.calls, 0);
        net_loop_run_once(&loop, false);
        check_i64_eq(w.calls, 1);
        check_i64_eq(w.result, -ECANCELED);
}

static void cancel_after_the_result_keeps_the_result(void **state)
{
        struct work w = { 0 };

        op_init(&w.op, work_done);
        op_begin(&w.op, &loop, cancel_at_once);
        op_finish(&w.op, 3);
        op_cancel(&w.op);
        net_loop_run_once(&loop, false);
        check_i64_eq(w.calls, 1);
        check_i64_eq(w.result, 3);
}

static void what_can_not_be_stopped_is_awaited(void **state)
{
        struct work w = { 0 };

        op_init(&w.op, work_done);
        op_begin(&w.op, &loop, NULL);
        op_cancel(&w.op);
        net_loop_run_once(&loop, false);
        check_i64_eq(w.calls, 0);
        op_finish(&w.op, 5);
        net_loop_run_once(&loop, false);
        check_i64_eq(w.result, 5);
}

static void an_op_may_be_started_again_from_done(void **state)
{
        struct work w = { .restart = true };

        op_init(&w.op, work_done);
        op_begin(&w.op, &loop, NULL);
        op_finish(&w.op, 1);
        net_loop_run_once(&loop, false);
        net_loop_run_once(&loop, false);
        check_i64_eq(w.calls, 2);
        check_i64_eq(w.result, 7);
}

/* --- op_finish_now --- */

static void finish_now_saves_an_iteration(void **state)
{
        struct work first = { 0 }, second = { 0 };

        op_init(&first.op, finish_other);
        op_init(&second.op, work_done);
        first.other = &second.op;
        op_begin(&second.op, &loop, NULL);
        op_begin(&first.op, &loop, NULL);
        op_finish(&first.op, 9);
        net_loop_run_once(&loop, false);
        check_i64_eq(first.calls, 1);
        check_i64_eq(first.other_calls, 1); /* before op_finish_now returned */
        check_i64_eq(second.result, 9);
        check_false(op_pending(&second.op));
}

static void finish_now_waits_for_the_starting_call_to_return(void **state)
{
        struct work first = { .begin_other = true }, second = { 0 };

        op_init(&second.op, work_done);
        op_begin(&second.op, &loop, NULL);
        op_finish_now(&second.op, 1);
        check_i64_eq(second.calls, 0);
        net_loop_run_once(&loop, false);
        check_i64_eq(second.calls, 1);

        check_case("begun by the task that finishes it");
        op_init(&first.op, finish_other);
        first.other = &second.op;
        op_begin(&first.op, &loop, NULL);
        op_finish(&first.op, 2);
        net_loop_run_once(&loop, false);
        check_i64_eq(first.other_calls, 1);
        net_loop_run_once(&loop, false);
        check_i64_eq(second.calls, 2);
        check_i64_eq(second.result, 2);
}

static void finish_now_of_a_canceled_op_is_queued(void **state)
{
        struct work w = { 0 };

        op_init(&w.op, work_done);
        op_begin(&w.op, &loop, cancel_now);
        net_loop_run_once(&loop, false);
        loop.tasks_run++;
        op_cancel(&w.op);
        check_i64_eq(w.calls, 0);
        net_loop_run_once(&loop, false);
        check_i64_eq(w.calls, 1);
        check_i64_eq(w.result, -ECANCELED);
}

/* --- wrapped ops --- */

struct request {
        struct op op;
        struct op_wrap outer, inner;
        char order[8];
        size_t n;
        bool again; /* the inner step begins the op once more */
};

static void note(struct request *r, char what)
{
        if (r->n < sizeof(r->order) - 1)
                r->order[r->n++] = what;
}

static void request_done(struct op *op, int result)
{
        note(container_of(op, struct request, op), (char) ('0' + result));
}

static void outer_step(struct op *op, int result)
{
        struct request *r = container_of(op, struct request, op);

        note(r, '(');
        op_unwrap(op, &r->outer, result);
        note(r, ')');
}

static void inner_step(struct op *op, int result)
{
        struct request *r = container_of(op, struct request, op);

        if (r->again) {
                r->again = false;
                op_begin(op, &loop, NULL);
                op_finish(op, result + 1);
                return;
        }
        note(r, '[');
        op_unwrap(op, &r->inner, result);
        note(r, ']');
}

static void request_start(struct request *r, int result)
{
        op_wrap(&r->op, &r->outer, outer_step);
        op_wrap(&r->op, &r->inner, inner_step);
        op_begin(&r->op, &loop, NULL);
        op_finish(&r->op, result);
}

static void steps_run_from_the_innermost_in_one_iteration(void **state)
{
        struct request r = { 0 };

        op_init(&r.op, request_done);
        request_start(&r, 3);
        net_loop_run_once(&loop, false);
        check_z_eq(r.order, "[(3)]");
        check_false(op_pending(&r.op));

        check_case("the op is as before and may be started again");
        r = (struct request){ 0 };
        op_init(&r.op, request_done);
        request_start(&r, 4);
        net_loop_run_once(&loop, false);
        check_true(r.op.done == request_done);
        r.n = 0;
        request_start(&r, 5);
        net_loop_run_once(&loop, false);
        check_z_eq(r.order, "[(5)]");
}

static void a_step_may_begin_the_op_again(void **state)
{
        struct request r = { .again = true };

        op_init(&r.op, request_done);
        request_start(&r, 1);
        net_loop_run_once(&loop, false);
        net_loop_run_once(&loop, false);
        check_z_eq(r.order, "[(2)]");
}

/* --- tasks --- */

struct counter {
        struct net_task task;
        int runs;
        int limit;
        struct net_task *victim;
};

static void count(struct net_task *t)
{
        struct counter *c = container_of(t, struct counter, task);

        c->runs++;
        if (c->victim)
                net_task_cancel(c->victim);
        if (c->runs < c->limit)
                net_task_queue(&loop, t);
}

static void a_task_that_queues_itself_does_not_keep_the_loop(void **state)
{
        struct counter greedy = { .limit = 1000 };

        net_task_init(&greedy.task, count);
        net_task_queue(&loop, &greedy.task);
        net_task_queue(&loop, &greedy.task);
        net_loop_run_once(&loop, false);
        check_true(greedy.runs >= 1 && greedy.runs <= 2);
        greedy.limit = 0;
        net_loop_run_once(&loop, false);
}

static void the_loop_does_not_wait_while_tasks_are_left(void **state)
{
        struct counter c = { .limit = 100 };

        /* Would wait for ever if the loop forgot that there is work. */
        net_task_init(&c.task, count);
        net_task_queue(&loop, &c.task);
        for (int iterations = 0; c.runs < 100 && iterations < 200; iterations++)
                net_loop_run_once(&loop, true);
        check_i64_eq(c.runs, 100);
}

static void a_task_can_cancel_another_of_the_same_iteration(void **state)
{
        struct counter first = { 0 }, second = { 0 };

        net_task_init(&first.task, count);
        net_task_init(&second.task, count);
        first.victim = &second.task;
        net_task_queue(&loop, &first.task);
        net_task_queue(&loop, &second.task);
        net_loop_run_once(&loop, false);
        check_i64_eq(first.runs, 1);
        check_i64_eq(second.runs, 0);
}

#define LOOP_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                LOOP_TEST(done_runs_once_and_never_inside_the_starting_call),
                LOOP_TEST(cancel_leads_to_done),
                LOOP_TEST(cancel_after_the_result_keeps_the_result),
                LOOP_TEST(what_can_not_be_stopped_is_awaited),
                LOOP_TEST(an_op_may_be_started_again_from_done),
                LOOP_TEST(finish_now_saves_an_iteration),
                LOOP_TEST(finish_now_waits_for_the_starting_call_to_return),
                LOOP_TEST(finish_now_of_a_canceled_op_is_queued),
                LOOP_TEST(steps_run_from_the_innermost_in_one_iteration),
                LOOP_TEST(a_step_may_begin_the_op_again),
                LOOP_TEST(a_task_that_queues_itself_does_not_keep_the_loop),
                LOOP_TEST(the_loop_does_not_wait_while_tasks_are_left),
                LOOP_TEST(a_task_can_cancel_another_of_the_same_iteration),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
