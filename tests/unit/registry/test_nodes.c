/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/nodes.h"

#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/registry_world.h"

/* Renewals run on the loop's time, every few milliseconds; leases are counted on a fake clock. */
#define LEASE (9 * USEC_PER_MSEC)
#define GRACE (90 * USEC_PER_MSEC)

struct seen {
        unsigned lost;
        unsigned ended;
        char why[ERR_MESSAGE_MAX];
};

static void lost(void *data, struct str id)
{
        struct seen *t = data;

        check_true(str_eq(id, STR("b")));
        t->lost++;
}

static void ended(void *data, const struct err *why)
{
        struct seen *t = data;

        t->ended++;
        (void) snprintf(t->why, sizeof(t->why), "%s", why->message);
}

static struct nodes *new_node(struct registry_world *w, const char *id, const char *installation,
                              struct seen *t)
{
        return nodes_new(&w->store.loop, w->store.store,
                         &(struct nodes_config){ .clock = &w->clock.clock,
                                                 .id = str_from(id),
                                                 .address = STR("http://127.0.0.1:1"),
                                                 .installation = str_from(installation),
                                                 .boot_id = STR("boot"),
                                                 .lease = LEASE,
                                                 .grace = GRACE,
                                                 .lost = lost,
                                                 .ended = ended,
                                                 .data = t });
}

struct joining {
        struct nodes_join j;
        bool done;
        int result;
};

static void join_done(struct op *op, int result)
{
        struct joining *x = container_of(op, struct joining, j.req.op);

        x->result = result;
        x->done = true;
}

static int join(struct registry_world *w, struct nodes *ns)
{
        struct joining x = { 0 };

        op_init(&x.j.req.op, join_done);
        nodes_join(ns, &x.j);
        world_until(&w->store, x.done);
        return x.result;
}

static void stopped(void *data)
{
        *(bool *) data = true;
}

static void leave(struct registry_world *w, struct nodes *ns)
{
        bool done = false;

        nodes_stop(ns, stopped, &done);
        world_until(&w->store, done);
        nodes_free(ns);
}

struct finding {
        struct nodes_find f;
        bool done;
};

static void find_done(struct op *op, int result)
{
        check_i64_eq(result, 0);
        container_of(op, struct finding, f.req.op)->done = true;
}

static enum node_status status_of(struct registry_world *w, struct nodes *ns, const char *id)
{
        struct finding x = { 0 };

        op_init(&x.f.req.op, find_done);
        nodes_find(ns, &x.f, str_from(id));
        world_until(&w->store, x.done);
        return x.f.status;
}

/* A record that is not renewed. */
static void put_silent(struct registry_world *w, const char *id)
{
        char key[64];

        (void) snprintf(key, sizeof(key), "hutch:node:%s", id);
        rw_put(w, key,
               "{\"address\":\"unix:/x\",\"process\":\"p\",\"installation\":\"other\",\"bootId\":\"b\","
               "\"leaseMs\":9,\"graceMs\":90}");
}

/* As long as the lease, in which the node itself is alive. */
static void pass_lease(struct registry_world *w, struct nodes *ns)
{
        world_until(&w->store, nodes_may_serve(ns));
        clock_fake_advance(&w->clock, LEASE);
        world_until(&w->store, nodes_may_serve(ns));
}

/* --- who lives --- */

static void a_node_that_does_not_change_becomes_silent_then_lost(void **state)
{
        struct registry_world w;
        struct seen t = { 0 };
        struct nodes *a;

        rw_open(&w);
        a = new_node(&w, "a", "ia", &t);
        check_i64_eq(join(&w, a), 0);
        check_true(nodes_may_serve(a));
        check_i64_eq(status_of(&w, a, "b"), NODE_UNKNOWN);
        put_silent(&w, "b");
        check_i64_eq(status_of(&w, a, "b"), NODE_LIVE);
        clock_fake_advance(&w.clock, LEASE - 1);
        check_i64_eq(status_of(&w, a, "b"), NODE_LIVE);
        clock_fake_advance(&w.clock, 1);
        for (unsigned i = 0; i < GRACE / LEASE; i++) {
                check_i64_eq(status_of(&w, a, "b"), NODE_SILENT);
                pass_lease(&w, a);
        }
        check_i64_eq(status_of(&w, a, "b"), NODE_LOST);
        world_until(&w.store, t.lost > 0); /* by the beat */
        put_silent(&w, "b");               /* the same text: what counts is that it was written */
        check_i64_eq(status_of(&w, a, "b"), NODE_LIVE);
        leave(&w, a);
        rw_close(&w);
}

static void who_was_away_does_not_take_the_others_for_dead(void **state)
{
        struct registry_world w;
        struct seen t = { 0 };
        struct nodes *a;

        rw_open(&w);
        a = new_node(&w, "a", "ia", &t);
        check_i64_eq(join(&w, a), 0);
        put_silent(&w, "b");
        check_i64_eq(status_of(&w, a, "b"), NODE_LIVE);
        clock_fake_advance(&w.clock, 3600 * USEC_PER_SEC);
        check_i64_eq(status_of(&w, a, "b"), NODE_SILENT); /* a lease, and no more */
        check_u64_eq(t.lost, 0);
        leave(&w, a);
        rw_close(&w);
}

static void a_node_that_has_ended_is_silent_at_once(void **state)
{
        struct registry_world w;
        struct seen t = { 0 };
        struct nodes *a, *b;

        rw_open(&w);
        a = new_node(&w, "a", "ia", &t);
        b = new_node(&w, "b", "ib", &t);
        check_i64_eq(join(&w, a), 0);
        check_i64_eq(join(&w, b), 0);
        check_i64_eq(status_of(&w, a, "b"), NODE_LIVE);
        leave(&w, b);
        check_i64_eq(status_of(&w, a, "b"), NODE_SILENT);
        leave(&w, a);
        rw_close(&w);
}

/* --- our own lease --- */

static void without_its_lease_a_node_refuses_requests(void **state)
{
        struct registry_world w;
        struct seen t = { 0 };
        struct nodes *a;

        rw_open(&w);
        a = new_node(&w, "a", "ia", &t);
        check_i64_eq(join(&w, a), 0);
        clock_fake_advance(&w.clock, LEASE);
        check_false(nodes_may_serve(a));
        world_until(&w.store, nodes_may_serve(a)); /* the next beat */
        check_u64_eq(t.ended, 0);
        clock_fake_advance(&w.clock, LEASE + GRACE);
        world_until(&w.store, t.ended > 0); /* others may have called it lost */
        check_false(nodes_may_serve(a));
        leave(&w, a);
        rw_close(&w);
}

static void an_id_is_for_one_process(void **state)
{
        struct registry_world w;
        struct seen t = { 0 }, u = { 0 };
        struct nodes *a, *other, *next;

        rw_open(&w);
        a = new_node(&w, "a", "ia", &t);
        check_i64_eq(join(&w, a), 0);
        other = new_node(&w, "a", "ib", &u);
        check_i64_eq(join(&w, other), ERR_RETURN(ERR_CONFLICT)); /* it was watched for a lease */
        nodes_free(other);
        check_u64_eq(t.ended, 0);
        /* Of the same data directory: its lock proves that the other has ended. If not, that one finds out. */
        next = new_node(&w, "a", "ia", &u);
        check_i64_eq(join(&w, next), 0);
        world_until(&w.store, t.ended > 0);
        check_true(strstr(t.why, "another hutchd has taken the node id 'a'") != NULL);
        leave(&w, a);
        check_true(nodes_may_serve(next));
        leave(&w, next);
        rw_close(&w);
}

static void a_record_that_is_not_renewed_is_taken_over(void **state)
{
        struct registry_world w;
        struct seen t = { 0 };
        struct nodes *b;

        rw_open(&w);
        put_silent(&w, "b");
        b = new_node(&w, "b", "ib", &t);
        check_i64_eq(join(&w, b), 0);
        leave(&w, b);
        rw_close(&w);
}

/* --- records of lost nodes --- */

struct sweeping {
        struct registry_sweep s;
        bool done;
        unsigned reported;
};

static void swept(struct op *op, int result)
{
        check_i64_eq(result, 0);
        container_of(op, struct sweeping, s.req.op)->done = true;
}

static void each(struct registry_sweep *s, const struct sandbox *record)
{
        check_true(record->status.state == STATE_FAILED);
        check_true(str_eq(record->status.reason, STR(REASON_NODE_LOST)));
        container_of(s, struct sweeping, s)->reported++;
}

static void records_of_a_lost_node_become_tombstones_of_ours(void **state)
{
        struct registry_world w;
        struct seen t = { 0 };
        struct sweeping x = { .s.each = each };
        struct registry_load load;
        struct registry *r;
        struct nodes *a;
        char text[128];

        rw_open(&w);
        check_i64_eq(rw_register_record(&w, rw_other(&w, "b"),
                                        sample_record(&(struct sample){ .id = "x",
                                                                        .node = "b",
                                                                        .bound = true,
                                                                        .state = STATE_RUNNING })),
                     0);
        rw_put_sample(&w, &(struct sample){ .id = "y", .node = "b", .state = STATE_TERMINATED });
        rw_put_sample(&w, &(struct sample){ .id = "z", .node = "c", .state = STATE_RUNNING });
        a = new_node(&w, "a", "ia", &t);
        check_i64_eq(join(&w, a), 0);
        r = registry_new(&w.store.loop, w.store.store,
                         &(struct registry_config){
                                 .node = STR("a"), .clock = &w.clock.clock, .nodes = a });
        check_i64_eq(rw_load(&w, r, &load, text), 0);
        put_silent(&w, "b");
        while (status_of(&w, a, "b") != NODE_LOST)
                pass_lease(&w, a);
        op_init(&x.s.req.op, swept);
        registry_sweep(r, &x.s);
        world_until(&w.store, x.done);
        check_u64_eq(x.s.lost, 2);
        check_u64_eq(x.s.left, 0);
        check_u64_eq(x.reported, 1);
        check_true(str_eq(registry_peek(r, STR("x"))->node, STR("a")));
        check_true(registry_peek(r, STR("y")) == NULL);
        check_i64_eq(rw_find(&w, "u", text),
                     ERR_RETURN(ERR_NOT_FOUND)); /* the owner's place is free */
        check_u64_eq(rw_stored(&w, "sandbox:owner:"), 0);
        /* Its node finds out with its next write: the record is not its own any more. */
        check_true(registry_peek(w.others[0], STR("x")) != NULL);
        {
                struct registry *kept = w.r;

                w.r = w.others[0];
                check_i64_eq(rw_update(&w, rw_changed(w.r, "x", STATE_PAUSED)),
                             ERR_RETURN(ERR_NOT_FOUND));
                check_true(registry_peek(w.r, STR("x")) == NULL);
                w.r = kept;
        }
        registry_free(r);
        leave(&w, a);
        rw_close(&w);
}

/* --- one place for an owner --- */

struct registering {
        struct registry_register g;
        bool done;
        int result;
};

static void register_done(struct op *op, int result)
{
        struct registering *x = container_of(op, struct registering, g.req.op);

        x->result = result;
        x->done = true;
}

static void put_done(struct op *op, int result)
{
        check_i64_eq(result, 0);
}

/* Another process takes the owner's index at any time, as the next holder of a lost lock may: a record that is acknowledged
 * is there, and one that is not is not. */
static void a_place_that_was_taken_meanwhile_is_not_had_twice(void **state)
{
        unsigned refused = 0;

        for (unsigned turns = 0; turns < 8; turns++) {
                struct registry_world w;
                struct seen t = { 0 };
                struct registering x = { 0 };
                struct store_put put = { 0 };
                struct registry *r;
                struct nodes *a;

                rw_open(&w);
                a = new_node(&w, "a", "ia", &t);
                check_i64_eq(join(&w, a), 0);
                r = registry_new(&w.store.loop, w.store.store,
                                 &(struct registry_config){
                                         .node = STR("a"), .clock = &w.clock.clock, .nodes = a });
                op_init(&x.g.req.op, register_done);
                registry_register(r, &x.g,
                                  sample_record(&(struct sample){
                                          .id = "x", .node = "a", .bound = true }));
                for (unsigned i = 0; i < turns; i++)
                        net_loop_run_once(&w.store.loop, false);
                op_init(&put.req.op, put_done);
                store_start(w.store.store,
                            store_put_req(&put, STR("sandbox:owner:o:p:u:shared-project-user"),
                                          STR("\"y\"")));
                world_until(&w.store, x.done && !op_pending(&put.req.op));
                check_true((x.result == 0) == rw_has(&w, "sandbox:registry:x"));
                check_true((x.result == 0) == (registry_peek(r, STR("x")) != NULL));
                refused += x.result == ERR_RETURN(ERR_UNAVAILABLE);
                registry_free(r);
                leave(&w, a);
                rw_close(&w);
        }
        check_true(refused > 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_node_that_does_not_change_becomes_silent_then_lost),
                cmocka_unit_test(who_was_away_does_not_take_the_others_for_dead),
                cmocka_unit_test(a_node_that_has_ended_is_silent_at_once),
                cmocka_unit_test(without_its_lease_a_node_refuses_requests),
                cmocka_unit_test(an_id_is_for_one_process),
                cmocka_unit_test(a_record_that_is_not_renewed_is_taken_over),
                cmocka_unit_test(records_of_a_lost_node_become_tombstones_of_ours),
                cmocka_unit_test(a_place_that_was_taken_meanwhile_is_not_had_twice),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
