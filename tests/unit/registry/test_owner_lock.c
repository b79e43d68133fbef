/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/registry_world.h"

#define E(code)  ERR_RETURN(ERR_##code)
#define LOCK_KEY "hutch:lock:o:p:u:shared-project-user"

struct locking {
        struct registry_lock l;
        struct registry *r;
        bool done;
        int result;
        unsigned *turns; /* how many were done before */
        unsigned turn;
        usec_t lease; /* 0: REGISTRY_LEASE */
};

static void locking_done(struct op *op, int result)
{
        struct locking *x = container_of(op, struct locking, l.req.op);

        x->result = result;
        x->done = true;
        if (x->turns)
                x->turn = (*x->turns)++;
}

static void start(struct locking *x, struct registry *r, const char *user, usec_t wait)
{
        struct owner owner = sample_owner(user);

        *x = (struct locking){ .r = r, .turns = x->turns, .lease = x->lease };
        x->l.lease = x->lease ? x->lease : REGISTRY_LEASE;
        x->l.wait = wait;
        op_init(&x->l.req.op, locking_done);
        registry_lock_owner(r, &x->l, &owner);
}

static int await(struct registry_world *w, struct locking *x)
{
        world_until(&w->store, x->done);
        check_true(x->result == 0 || x->result == ERR_RETURN(x->l.req.err.code));
        return x->result;
}

static int lock(struct registry_world *w, struct locking *x, struct registry *r, usec_t wait)
{
        start(x, r, "u", wait);
        return await(w, x);
}

static int renew(struct registry_world *w, struct locking *x)
{
        x->done = false;
        registry_lock_renew(x->r, &x->l);
        return await(w, x);
}

static void unlock(struct locking *x)
{
        registry_unlock(x->r, &x->l);
}

#define LONG  (60 * USEC_PER_SEC)
#define SHORT (30 * USEC_PER_MSEC)

/* --- one process --- */

static void waiters_get_it_in_order(void **state)
{
        struct locking x[5] = { 0 };
        struct registry_world w;
        unsigned turns = 0;

        rw_open(&w);
        for (size_t i = 0; i < ARRAY_SIZE(x); i++) {
                x[i].turns = &turns;
                start(&x[i], w.r, "u", LONG);
        }
        for (size_t i = 0; i < ARRAY_SIZE(x); i++) {
                check_i64_eq(await(&w, &x[i]), 0);
                check_u64_eq(x[i].turn, i);
                check_u64_eq(turns, i + 1); /* no other */
                check_true(rw_has(&w, LOCK_KEY));
                unlock(&x[i]);
        }
        check_false(rw_has(&w, LOCK_KEY));
        rw_close(&w);
}

static void owners_do_not_wait_for_each_other(void **state)
{
        struct locking a = { 0 }, b = { 0 };
        struct registry_world w;

        rw_open(&w);
        start(&a, w.r, "u", LONG);
        start(&b, w.r, "v", LONG);
        check_i64_eq(await(&w, &a), 0);
        check_i64_eq(await(&w, &b), 0);
        check_u64_eq(rw_stored(&w, "hutch:lock:"), 2);
        unlock(&a);
        unlock(&b);
        check_u64_eq(rw_stored(&w, "hutch:lock:"), 0);
        rw_close(&w);
}

static void an_owner_must_be_complete(void **state)
{
        struct locking x = { 0 };
        struct registry_world w;

        rw_open(&w);
        start(&x, w.r, "", LONG);
        check_i64_eq(await(&w, &x), E(INVALID));
        rw_close(&w);
}

static void waiting_ends(void **state)
{
        struct locking holder = { 0 }, late = { 0 }, once = { 0 }, gone = { 0 };
        struct registry_world w;

        rw_open(&w);
        check_i64_eq(lock(&w, &holder, w.r, LONG), 0);
        start(&late, w.r, "u", SHORT);
        start(&once, w.r, "u", 0);
        start(&gone, w.r, "u", LONG);
        check_i64_eq(await(&w, &once), E(TIMEOUT));
        check_false(late.done);
        op_cancel(&gone.l.req.op);
        check_i64_eq(await(&w, &gone), E(CANCELED));
        check_i64_eq(await(&w, &late), E(TIMEOUT));
        unlock(&holder);
        check_i64_eq(lock(&w, &once, w.r, 0), 0);
        unlock(&once);
        rw_close(&w);
}

static void who_left_does_not_keep_it(void **state)
{
        struct locking x = { 0 }, y = { 0 };
        struct registry_world w;

        rw_open(&w);
        check_case("alone");
        start(&x, w.r, "u", LONG);
        op_cancel(&x.l.req.op);
        check_i64_eq(await(&w, &x), E(CANCELED));
        check_i64_eq(lock(&w, &y, w.r, 0), 0);
        unlock(&y);
        check_false(rw_has(&w, LOCK_KEY));

        check_case("another comes, with another lease");
        start(&x, w.r, "u", LONG);
        op_cancel(&x.l.req.op);
        y.lease = 2 * REGISTRY_LEASE;
        start(&y, w.r, "u", LONG);
        check_i64_eq(await(&w, &y), 0);
        check_i64_eq(x.result, E(CANCELED));
        clock_fake_advance(&w.clock, REGISTRY_LEASE + 1);
        check_i64_eq(lock(&w, &x, rw_other(&w, "n2"), 0), E(TIMEOUT));
        unlock(&y);

        check_case("and the registry goes");
        start(&x, w.r, "u", LONG);
        op_cancel(&x.l.req.op);
        world_until(&w.store, x.done);
        start(&x, w.r, "u", LONG);
        op_cancel(&x.l.req.op);
        rw_restart(&w);
        check_i64_eq(await(&w, &x), E(CANCELED));
        check_false(rw_has(&w, LOCK_KEY));
        rw_close(&w);
}

/* --- several processes --- */

static void another_process_waits(void **state)
{
        struct locking a = { 0 }, b = { 0 };
        struct registry_world w;
        struct registry *other;

        rw_open(&w);
        other = rw_other(&w, "n2");
        check_i64_eq(lock(&w, &a, w.r, LONG), 0);
        check_i64_eq(lock(&w, &b, other, SHORT), E(TIMEOUT));
        check_i64_eq(lock(&w, &b, other, 0), E(TIMEOUT));
        start(&b, other, "u", LONG);
        op_cancel(&b.l.req.op);
        check_i64_eq(await(&w, &b), E(CANCELED));
        start(&b, other, "u", LONG);
        check_false(b.done);
        unlock(&a);
        check_i64_eq(await(&w, &b), 0);
        unlock(&b);
        check_false(rw_has(&w, LOCK_KEY));
        rw_close(&w);
}

static void the_lock_of_the_dead_expires(void **state)
{
        struct locking a = { 0 }, b = { 0 };
        struct registry_world w;
        struct registry *other;

        rw_open(&w);
        other = rw_other(&w, "n2");
        check_i64_eq(lock(&w, &a, w.r, LONG), 0);
        clock_fake_advance(&w.clock, REGISTRY_LEASE - USEC_PER_MSEC);
        check_i64_eq(lock(&w, &b, other, 0), E(TIMEOUT));
        start(&b, other, "u", LONG);
        clock_fake_advance(&w.clock, 2 * USEC_PER_MSEC);
        check_i64_eq(await(&w, &b), 0);

        check_case("who comes back has lost it, and takes nothing away");
        check_i64_eq(renew(&w, &a), E(CONFLICT));
        check_i64_eq(renew(&w, &a), E(CONFLICT));
        unlock(&a);
        check_true(rw_has(&w, LOCK_KEY));
        check_i64_eq(lock(&w, &a, w.r, 0), E(TIMEOUT));
        check_i64_eq(renew(&w, &b), 0);
        unlock(&b);
        check_false(rw_has(&w, LOCK_KEY));

        check_case("without noticing");
        check_i64_eq(lock(&w, &a, w.r, LONG), 0);
        clock_fake_advance(&w.clock, REGISTRY_LEASE);
        check_i64_eq(lock(&w, &b, other, 0), 0);
        unlock(&a);
        check_true(rw_has(&w, LOCK_KEY));
        unlock(&b);
        rw_close(&w);
}

static void a_renewed_lock_does_not_expire(void **state)
{
        struct locking a = { 0 }, b = { 0 };
        struct registry_world w;
        struct registry *other;

        rw_open(&w);
        other = rw_other(&w, "n2");
        check_i64_eq(lock(&w, &a, w.r, LONG), 0);
        for (int i = 0; i < 5; i++) {
                clock_fake_advance(&w.clock, REGISTRY_LEASE / 3 * 2);
                check_i64_eq(renew(&w, &a), 0);
                check_i64_eq(lock(&w, &b, other, 0), E(TIMEOUT));
        }
        /* Late, but no other process was faster. */
        clock_fake_advance(&w.clock, 10 * REGISTRY_LEASE);
        check_i64_eq(renew(&w, &a), 0);
        check_i64_eq(lock(&w, &b, other, 0), E(TIMEOUT));
        unlock(&a);
        rw_close(&w);
}

static void what_is_in_the_way(void **state)
{
        static const struct {
                const char *name, *value;
                int result;
        } cases[] = {
                { "damaged", "{", 0 },
                { "empty", "", 0 },
                { "expired", "{\"holder\":\"h\",\"node\":\"n\",\"until\":999999}", 0 },
                { "now", "{\"holder\":\"h\",\"node\":\"n\",\"until\":1000000}", 0 },
                { "held", "{\"holder\":\"h\",\"node\":\"n\",\"until\":1000001}", E(TIMEOUT) },
                { "held, by a newer one",
                  "{\"holder\":\"h\",\"node\":\"n\",\"until\":1000001,\"x\":1}", E(TIMEOUT) },
                { "for ever", "{\"holder\":\"h\",\"node\":\"n\",\"until\":9223372036854775807}",
                  E(TIMEOUT) },
                { "negative", "{\"holder\":\"h\",\"node\":\"n\",\"until\":-1}", 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct locking x = { 0 };
                struct registry_world w;

                check_case(cases[i].name);
                rw_open(&w);
                rw_put(&w, LOCK_KEY, cases[i].value);
                check_i64_eq(lock(&w, &x, w.r, 0), cases[i].result);
                if (x.result == 0)
                        unlock(&x);
                rw_close(&w);
        }
}

/* --- a store that fails --- */

static void a_failing_store_is_reported_and_leaves_no_lock(void **state)
{
        struct locking a = { 0 }, b = { 0 };
        struct registry_world w;

        rw_open(&w);
        for (int after = 0; after < 2; after++) {
                rw_plan(&w,
                        &(struct store_failing_plan){ STORE_FAILING_FROM, .n = 1, .after = after });
                start(&a, w.r, "u", LONG);
                start(&b, w.r, "u", LONG);
                check_i64_eq(await(&w, &a), E(UNAVAILABLE));
                check_i64_eq(await(&w, &b), E(UNAVAILABLE));
                rw_plan(&w, &(struct store_failing_plan){ 0 });
                /* What was written without an answer is our own: no lease to wait for. */
                check_true(rw_has(&w, LOCK_KEY) == (bool) after);
                check_i64_eq(lock(&w, &a, w.r, 0), 0);
                unlock(&a);
                check_false(rw_has(&w, LOCK_KEY));
        }
        rw_close(&w);
}

static void a_lost_answer_does_not_lose_the_lock(void **state)
{
        const struct store_failing_plan lost = { STORE_FAILING_NTH, .n = 1, .after = true };
        const struct store_failing_plan away = { STORE_FAILING_FROM, .n = 1, .after = true };
        struct locking a = { 0 };
        struct registry_world w;

        rw_open(&w);
        rw_plan(&w, &lost);
        check_i64_eq(lock(&w, &a, w.r, LONG), 0);
        rw_plan(&w, &lost);
        check_i64_eq(renew(&w, &a), 0);
        rw_plan(&w, &away);
        clock_fake_advance(&w.clock, USEC_PER_SEC);
        check_i64_eq(renew(&w, &a), E(UNAVAILABLE));
        rw_plan(&w, &(struct store_failing_plan){ 0 });
        clock_fake_advance(&w.clock, USEC_PER_SEC);
        check_i64_eq(renew(&w, &a), 0);
        unlock(&a);
        check_false(rw_has(&w, LOCK_KEY));
        rw_close(&w);
}

/* --- many --- */

#define CLIENTS 40

struct client {
        struct locking x;
        struct registry_world *w;
        size_t owner;
        unsigned left;
};

static int holders[3];
static unsigned finished;

static void client_go_on(struct client *c);

/* Holds it for a turn of the loop: whoever got it too would be seen. */
static void client_release(struct op *op, int result)
{
        struct client *c = container_of(op, struct client, x.l.req.op);

        check_i64_eq(result, 0);
        check_i64_eq(holders[c->owner], 1);
        holders[c->owner]--;
        unlock(&c->x);
        client_go_on(c);
}

static void client_got(struct op *op, int result)
{
        struct client *c = container_of(op, struct client, x.l.req.op);

        check_i64_eq(result, 0);
        check_i64_eq(++holders[c->owner], 1);
        op_init(&c->x.l.req.op, client_release);
        registry_lock_renew(c->x.r, &c->x.l);
}

static void client_go_on(struct client *c)
{
        static const char *const users[] = { "u", "v", "w" };
        struct owner owner = sample_owner(users[c->owner]);

        if (c->left-- == 0) {
                finished++;
                return;
        }
        op_init(&c->x.l.req.op, client_got);
        registry_lock_owner(c->x.r, &c->x.l, &owner);
}

static void never_two_at_once(void **state)
{
        struct client *clients = xcalloc(CLIENTS, sizeof(*clients));
        struct registry_world w;
        struct registry *rs[3];

        rw_open(&w);
        rs[0] = w.r;
        rs[1] = rw_other(&w, "n2");
        rs[2] = rw_other(&w, RW_NODE);
        finished = 0;
        for (size_t i = 0; i < CLIENTS; i++) {
                clients[i].x.r = rs[i % 3];
                clients[i].x.l.lease = REGISTRY_LEASE;
                clients[i].x.l.wait = LONG;
                clients[i].owner = i / 3 % 3;
                clients[i].left = 5;
                client_go_on(&clients[i]);
        }
        world_until(&w.store, finished == CLIENTS);
        check_u64_eq(rw_stored(&w, ""), 0);
        free(clients);
        rw_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(waiters_get_it_in_order),
                cmocka_unit_test(owners_do_not_wait_for_each_other),
                cmocka_unit_test(an_owner_must_be_complete),
                cmocka_unit_test(waiting_ends),
                cmocka_unit_test(who_left_does_not_keep_it),
                cmocka_unit_test(another_process_waits),
                cmocka_unit_test(the_lock_of_the_dead_expires),
                cmocka_unit_test(a_renewed_lock_does_not_expire),
                cmocka_unit_test(what_is_in_the_way),
                cmocka_unit_test(a_failing_store_is_reported_and_leaves_no_lock),
                cmocka_unit_test(a_lost_answer_does_not_lose_the_lock),
                cmocka_unit_test(never_two_at_once),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
