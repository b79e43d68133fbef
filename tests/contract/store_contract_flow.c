/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/contract/store_contract.h"

#include "base/base.h"

/* Several operations at a time: order, races, cancel, close. */

#define world (*store_contract_world())

/* Which operation was done when. */
struct trace {
        unsigned done;
        unsigned order[64];
};

struct step {
        union {
                struct store_req req;
                struct store_get get;
                struct store_put put;
                struct store_remove remove;
                struct store_cas cas;
        };
        struct trace *trace;
        unsigned number;
        unsigned calls;
        int result;
        char seen[16]; /* the value of a get */
};

static void step_done(struct op *op, int result)
{
        struct step *x = container_of(op, struct step, req.op);

        x->calls++;
        x->result = result;
        if (x->trace) {
                if (x->trace->done < ARRAY_SIZE(x->trace->order))
                        x->trace->order[x->trace->done] = x->number;
                x->trace->done++;
        }
}

static void step_get_done(struct op *op, int result)
{
        struct step *x = container_of(op, struct step, req.op);

        if (result == 0)
                (void) snprintf(x->seen, sizeof(x->seen), "%.*s", STR_ARG(x->get.value));
        step_done(op, result);
}

static void step_init(struct step *x, struct trace *trace, unsigned number)
{
        *x = (struct step){ .trace = trace, .number = number };
        op_init(&x->req.op, step_done);
}

/* --- order --- */

static void done_is_never_inside_the_starting_call(void **state)
{
        struct trace trace = { 0 };
        struct step x[4];

        for (unsigned i = 0; i < ARRAY_SIZE(x); i++)
                step_init(&x[i], &trace, i);
        store_start(world.store, store_put_req(&x[0].put, STR("k"), STR("v")));
        check_u64_eq(x[0].calls, 0);
        store_start(world.store, store_get_req(&x[1].get, STR("k")));
        store_start(world.store, store_get_req(&x[2].get, STR(""))); /* refused by its arguments */
        store_start(world.store, store_cas_req(&x[3].cas, STR("k"), 999999, STR("v")));
        check_u64_eq(trace.done, 0);
        world_until(&world, trace.done == ARRAY_SIZE(x));
        for (unsigned turns = 0; turns < 5; turns++)
                net_loop_run_once(&world.loop, false);
        for (unsigned i = 0; i < ARRAY_SIZE(x); i++)
                check_u64_eq(x[i].calls, 1);
}

static void a_key_sees_its_operations_in_order(void **state)
{
        struct trace trace = { 0 };
        struct step x[9];
        unsigned n = 0;

        for (unsigned i = 0; i < ARRAY_SIZE(x); i++) {
                step_init(&x[i], &trace, i);
                if (i == 1 || i == 3 || i == 5 || i == 8)
                        x[i].req.op.done = step_get_done;
        }
        store_start(world.store, store_put_req(&x[n++].put, STR("k"), STR("one")));
        store_start(world.store, store_get_req(&x[n++].get, STR("k")));
        store_start(world.store, store_put_req(&x[n++].put, STR("k"), STR("two")));
        store_start(world.store, store_get_req(&x[n++].get, STR("k")));
        store_start(world.store, store_remove_req(&x[n++].remove, STR("k"), STORE_ANY));
        store_start(world.store, store_get_req(&x[n++].get, STR("k")));
        store_start(world.store, store_cas_req(&x[n++].cas, STR("k"), STORE_ABSENT, STR("three")));
        store_start(world.store, store_cas_req(&x[n++].cas, STR("k"), STORE_ABSENT, STR("four")));
        store_start(world.store, store_get_req(&x[n++].get, STR("k")));
        world_until(&world, trace.done == ARRAY_SIZE(x));
        for (unsigned i = 0; i < ARRAY_SIZE(x); i++)
                check_u64_eq(trace.order[i], i);
        check_z_eq(x[1].seen, "one");
        check_z_eq(x[3].seen, "two");
        check_i64_eq(x[5].result, ERR_RETURN(ERR_NOT_FOUND));
        check_i64_eq(x[6].result, 0);
        check_i64_eq(x[7].result, ERR_RETURN(ERR_CONFLICT));
        check_z_eq(x[8].seen, "three");
        check_true(x[2].put.version > x[0].put.version);
        check_true(x[6].cas.version > x[2].put.version);
        check_u64_eq(x[3].get.version, x[2].put.version);
}

/* --- many --- */

#define MANY 2000

static void many_at_a_time(void **state)
{
        struct step *x = xcalloc(MANY, sizeof(*x));
        char(*keys)[16] = xcalloc(MANY, sizeof(*keys));
        struct trace trace = { 0 };

        for (unsigned i = 0; i < MANY; i++) {
                step_init(&x[i], &trace, i);
                (void) snprintf(keys[i], sizeof(keys[i]), "key-%05u", i * 7919 % MANY);
                store_start(world.store,
                            store_put_req(&x[i].put, str_from(keys[i]), str_from(keys[i])));
        }
        world_until(&world, trace.done == MANY);
        for (unsigned i = 0; i < MANY; i++)
                check_i64_eq(x[i].result, 0);
        world_pause(&world);
        trace = (struct trace){ 0 };
        for (unsigned i = 0; i < MANY; i++) {
                step_init(&x[i], &trace, i);
                x[i].req.op.done = step_get_done;
                store_start(world.store, store_get_req(&x[i].get, str_from(keys[i])));
        }
        world_until(&world, trace.done == MANY);
        for (unsigned i = 0; i < MANY; i++)
                check_z_eq(x[i].seen, keys[i]);
        free(x);
        free(keys);
}

/* --- races --- */

static void one_of_many_wins_a_race(void **state)
{
        struct step x[50];
        uint64_t expected = STORE_ABSENT;

        for (int round = 0; round < 3; round++) {
                struct trace trace = { 0 };
                unsigned winners = 0;

                for (unsigned i = 0; i < ARRAY_SIZE(x); i++) {
                        step_init(&x[i], &trace, i);
                        store_start(world.store,
                                    store_cas_req(&x[i].cas, STR("lock"), expected, STR("mine")));
                }
                world_until(&world, trace.done == ARRAY_SIZE(x));
                for (unsigned i = 0; i < ARRAY_SIZE(x); i++) {
                        if (x[i].result < 0)
                                check_i64_eq(x[i].result, ERR_RETURN(ERR_CONFLICT));
                        else
                                winners++;
                        if (x[i].result == 0)
                                expected = x[i].cas.version;
                }
                check_u64_eq(winners, 1);
                world_pause(&world);
        }
}

/* Workers that read a number and write it plus one, again when they lose: no addition is lost. */
struct worker {
        struct store_get get;
        struct store_cas cas;
        unsigned left;
        unsigned *working;
        char number[16];
};

static void worker_read(struct worker *k);

static void worker_written(struct op *op, int result)
{
        struct worker *k = container_of(op, struct worker, cas.req.op);

        if (result == 0)
                k->left--;
        else
                check_i64_eq(result, ERR_RETURN(ERR_CONFLICT));
        if (k->left > 0)
                worker_read(k);
        else
                (*k->working)--;
}

static void worker_has_read(struct op *op, int result)
{
        struct worker *k = container_of(op, struct worker, get.req.op);
        char text[16] = "0";

        if (result == 0)
                (void) snprintf(text, sizeof(text), "%.*s", STR_ARG(k->get.value));
        (void) snprintf(k->number, sizeof(k->number), "%lu", strtoul(text, NULL, 10) + 1);
        op_init(&k->cas.req.op, worker_written);
        store_start(world.store,
                    store_cas_req(&k->cas, STR("n"), result == 0 ? k->get.version : STORE_ABSENT,
                                  str_from(k->number)));
}

static void worker_read(struct worker *k)
{
        op_init(&k->get.req.op, worker_has_read);
        store_start(world.store, store_get_req(&k->get, STR("n")));
}

static void no_addition_is_lost(void **state)
{
        unsigned working = 8;
        struct worker *workers = xcalloc(working, sizeof(*workers));
        struct buf value;

        buf_init(&value, 64);
        for (unsigned i = 0; i < 8; i++) {
                workers[i].left = 20;
                workers[i].working = &working;
                worker_read(&workers[i]);
        }
        world_until(&world, working == 0);
        check_i64_eq(world_get(&world, STR("n"), &value, NULL), 0);
        check_str_eq(buf_str(&value), "160");
        buf_done(&value);
        free(workers);
}

/* --- cancel --- */

static void cancel_leads_to_done_once(void **state)
{
        struct trace trace = { 0 };
        struct step x[5];
        struct buf value;

        buf_init(&value, 64);
        for (unsigned i = 0; i < ARRAY_SIZE(x); i++)
                step_init(&x[i], &trace, i);
        store_start(world.store, store_put_req(&x[0].put, STR("a"), STR("1")));
        store_start(world.store, store_put_req(&x[1].put, STR("a"), STR("2")));
        store_start(world.store, store_get_req(&x[2].get, STR("a")));
        store_start(world.store, store_remove_req(&x[3].remove, STR("b"), STORE_ANY));
        store_start(world.store, store_put_req(&x[4].put, STR("c"), STR("3")));
        for (unsigned i = 1; i < 4; i++) {
                op_cancel(&x[i].req.op);
                op_cancel(&x[i].req.op);
        }
        check_u64_eq(trace.done, 0);
        world_until(&world, trace.done == ARRAY_SIZE(x));
        for (unsigned i = 0; i < ARRAY_SIZE(x); i++) {
                check_u64_eq(x[i].calls, 1);
                if (i == 0 || i == 4)
                        check_i64_eq(x[i].result, 0);
                else
                        check_true(x[i].result == 0 || x[i].result == ERR_RETURN(ERR_CANCELED));
        }
        /* The others are what they would have been, and the store goes on. */
        check_i64_eq(world_get(&world, STR("a"), &value, NULL), 0);
        check_str_eq(buf_str(&value), x[1].result == 0 ? "2" : "1");
        check_i64_eq(world_get(&world, STR("c"), &value, NULL), 0);
        check_str_eq(buf_str(&value), "3");
        buf_done(&value);
}

/* Whenever cancel comes, there is one `done`, and the answer is true. */
static void cancel_at_any_time(void **state)
{
        for (unsigned at = 0; at < 6; at++) {
                struct trace trace = { 0 };
                struct step x[3];

                for (unsigned i = 0; i < ARRAY_SIZE(x); i++) {
                        step_init(&x[i], &trace, i);
                        x[i].req.op.done = step_get_done;
                }
                check_i64_eq(world_put(&world, STR("k"), STR("v"), NULL), 0);
                for (unsigned i = 0; i < ARRAY_SIZE(x); i++)
                        store_start(world.store, store_get_req(&x[i].get, STR("k")));
                for (unsigned turn = 0; turn < at && trace.done < ARRAY_SIZE(x); turn++)
                        net_loop_run_once(&world.loop, false);
                op_cancel(&x[1].req.op);
                world_until(&world, trace.done == ARRAY_SIZE(x));
                for (unsigned i = 0; i < ARRAY_SIZE(x); i++)
                        check_u64_eq(x[i].calls, 1);
                check_z_eq(x[0].seen, "v");
                check_z_eq(x[1].seen, x[1].result == 0 ? "v" : "");
                check_z_eq(x[2].seen, "v");
        }
}

/* --- memory --- */

struct chain {
        struct store_put put;
        unsigned left;
        unsigned *done;
};

static void chain_done(struct op *op, int result)
{
        struct chain *c = container_of(op, struct chain, put.req.op);
        unsigned *done = c->done;

        check_i64_eq(result, 0);
        (*done)++;
        if (--c->left > 0)
                store_start(world.store, store_put_req(&c->put, STR("k"), STR("v")));
        else
                free(c);
}

static void done_may_start_again_and_free(void **state)
{
        struct chain *c = xnew(struct chain);
        unsigned done = 0;

        c->left = 5;
        c->done = &done;
        op_init(&c->put.req.op, chain_done);
        store_start(world.store, store_put_req(&c->put, STR("k"), STR("v")));
        world_until(&world, done == 5);
}

/* --- close --- */

struct closing {
        struct store_close close;
        struct trace *trace;
        unsigned number;
};

static void closing_done(struct op *op, int result)
{
        struct closing *c = container_of(op, struct closing, close.op);

        check_i64_eq(result, 0);
        c->trace->order[c->trace->done++] = c->number;
}

/* A put whose `done` asks for one more. */
struct insistent {
        struct step step;
        struct step more;
};

static void insistent_done(struct op *op, int result)
{
        struct insistent *x = container_of(op, struct insistent, step.req.op);

        step_done(op, result);
        store_start(world.store, store_get_req(&x->more.get, STR("k")));
}

static void close_waits_for_what_is_under_way(void **state)
{
        struct trace trace = { 0 };
        struct closing c = { .trace = &trace, .number = 99 };
        struct insistent last;
        struct step before, late;

        step_init(&before, &trace, 1);
        step_init(&last.step, &trace, 2);
        step_init(&last.more, &trace, 4);
        step_init(&late, &trace, 3);
        last.step.req.op.done = insistent_done;
        op_init(&c.close.op, closing_done);

        store_start(world.store, store_put_req(&before.put, STR("k"), STR("v")));
        store_start(world.store, store_put_req(&last.step.put, STR("k"), STR("w")));
        store_close(world.store, &c.close);
        store_start(world.store, store_put_req(&late.put, STR("k"), STR("x")));
        check_u64_eq(trace.done, 0);
        world_until(&world, trace.done == 5);
        world.store = NULL;
        check_u64_eq(trace.order[4], 99);
        check_i64_eq(before.result, 0);
        check_i64_eq(last.step.result, 0);
        check_i64_eq(late.result, ERR_RETURN(ERR_UNAVAILABLE));
        check_i64_eq(last.more.result, ERR_RETURN(ERR_UNAVAILABLE));
}

/* Requests that are started while the store closes still get a result. */
static void an_idle_store_closes_and_refuses(void **state)
{
        struct trace trace = { 0 };
        struct closing c = { .trace = &trace, .number = 99 };
        struct step late[8];
        unsigned started = 0;

        op_init(&c.close.op, closing_done);
        store_close(world.store, &c.close);
        while (op_pending(&c.close.op)) {
                if (started < ARRAY_SIZE(late)) {
                        step_init(&late[started], &trace, started);
                        store_start(world.store, store_get_req(&late[started].get, STR("k")));
                        started++;
                }
                net_loop_run_once(&world.loop, false);
        }
        world.store = NULL;
        check_u64_eq(trace.done, started + 1);
        check_u64_eq(trace.order[started], 99);
        for (unsigned i = 0; i < started; i++)
                check_i64_eq(late[i].result, ERR_RETURN(ERR_UNAVAILABLE));
}

const struct CMUnitTest store_contract_flow[] = {
        STORE_TEST(done_is_never_inside_the_starting_call),
        STORE_TEST(a_key_sees_its_operations_in_order),
        STORE_TEST(many_at_a_time),
        STORE_TEST(one_of_many_wins_a_race),
        STORE_TEST(no_addition_is_lost),
        STORE_TEST(cancel_leads_to_done_once),
        STORE_TEST(cancel_at_any_time),
        STORE_TEST(done_may_start_again_and_free),
        STORE_TEST(close_waits_for_what_is_under_way),
        STORE_TEST(an_idle_store_closes_and_refuses),
};
const size_t store_contract_flow_n = ARRAY_SIZE(store_contract_flow);
