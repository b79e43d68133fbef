/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include "base/base.h"
#include "store/store_impl.h"
#include "tests/lib/check.h"

/* What the facade does for a slow member, one that answers when the test wants it to. */

struct slow {
        struct store store;
        struct store_req *taken[8];
        unsigned n;
        struct store_req *canceled;
        bool closing;
        bool *freed;
};

static void slow_run(struct store *s)
{
        struct slow *m = container_of(s, struct slow, store);

        for (struct store_req *req; (req = store_next(s));)
                m->taken[m->n++] = req;
}

static void slow_cancel(struct store *s, struct store_req *req)
{
        container_of(s, struct slow, store)->canceled = req;
}

static void slow_close(struct store *s)
{
        container_of(s, struct slow, store)->closing = true;
}

static void slow_free(struct store *s)
{
        struct slow *m = container_of(s, struct slow, store);

        *m->freed = true;
        free(m);
}

static const struct store_ops slow_ops = {
        .name = "slow",
        .run = slow_run,
        .cancel = slow_cancel,
        .close = slow_close,
        .free = slow_free,
};

static struct net_loop loop;
static struct slow *slow;
static bool freed;

static int set_up(void **state)
{
        slow = xnew(struct slow);
        slow->freed = &freed;
        freed = false;
        store_init(&slow->store, &slow_ops, &loop);
        return net_loop_init(&loop, &clock_system);
}

static int tear_down(void **state)
{
        net_loop_done(&loop);
        return 0;
}

struct call {
        struct store_get get;
        unsigned calls;
        int result;
};

static void call_done(struct op *op, int result)
{
        struct call *c = container_of(op, struct call, get.req.op);

        c->calls++;
        c->result = result;
}

struct closing {
        struct store_close close;
        unsigned calls;
};

static void closing_done(struct op *op, int result)
{
        check_true(freed);
        container_of(op, struct closing, close.op)->calls++;
}

static void turns(void)
{
        for (int i = 0; i < 3; i++)
                net_loop_run_once(&loop, false);
}

static void start(struct call *c)
{
        *c = (struct call){ 0 };
        op_init(&c->get.req.op, call_done);
        store_start(&slow->store, store_get_req(&c->get, STR("k")));
}

static void start_close(struct closing *c)
{
        *c = (struct closing){ 0 };
        op_init(&c->close.op, closing_done);
        store_close(&slow->store, &c->close);
}

static void finish_close(struct closing *c)
{
        store_closed(&slow->store);
        turns();
        check_u64_eq(c->calls, 1);
}

static void the_member_closes_when_all_is_answered(void **state)
{
        struct closing c;
        struct call a, late;

        start(&a);
        turns();
        start_close(&c);
        turns();
        check_u64_eq(slow->n, 1);
        check_false(slow->closing);
        store_finish(slow->taken[0], store_fail_not_found(slow->taken[0]));
        turns();
        check_i64_eq(a.result, ERR_RETURN(ERR_NOT_FOUND));
        check_true(slow->closing);

        /* While the member says farewell, and after it has. */
        start(&late);
        turns();
        check_i64_eq(late.result, ERR_RETURN(ERR_UNAVAILABLE));
        store_closed(&slow->store);
        start(&late);
        check_false(freed);
        turns();
        check_u64_eq(late.calls, 1);
        check_u64_eq(c.calls, 1);
}

static void cancel_reaches_the_member_only_with_what_it_took(void **state)
{
        struct closing c;
        struct call a, b;

        start(&a);
        turns();
        start(&b);
        op_cancel(&b.get.req.op);
        turns();
        check_true(slow->canceled == NULL);
        check_i64_eq(b.result, ERR_RETURN(ERR_CANCELED));
        check_u64_eq(slow->n, 1);

        op_cancel(&a.get.req.op);
        check_true(slow->canceled == &a.get.req);
        turns();
        check_u64_eq(a.calls, 0);
        check_i64_eq(store_get_set(&a.get, STR("v"), 1), 0);
        store_finish(&a.get.req, 0); /* it was too late for cancel */
        turns();
        check_u64_eq(a.calls, 1);
        check_i64_eq(a.result, 0);
        start_close(&c);
        turns();
        finish_close(&c);
}

static void a_result_is_gone_after_a_failure(void **state)
{
        struct closing c;
        struct call a;

        start(&a);
        turns();
        check_i64_eq(store_get_set(&a.get, STR("half"), 1), 0);
        store_finish(&a.get.req, err_set(&a.get.req.err, ERR_UNAVAILABLE, "cut off"));
        turns();
        check_true(a.get.value.p == NULL);
        check_z_eq(a.get.req.err.message, "cut off");
        start_close(&c);
        turns();
        finish_close(&c);
}

#define FACADE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                FACADE_TEST(the_member_closes_when_all_is_answered),
                FACADE_TEST(cancel_reaches_the_member_only_with_what_it_took),
                FACADE_TEST(a_result_is_gone_after_a_failure),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
