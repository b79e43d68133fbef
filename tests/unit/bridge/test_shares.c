/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/shares.h"

#include "base/base.h"
#include "tests/lib/check.h"

#define COMMANDS_MAX 400

static struct shares shares;
static struct share commands[COMMANDS_MAX];
static size_t n_commands;

static void start(size_t in_flight, size_t per_tenant, size_t waiting, size_t bytes)
{
        memset(commands, 0, sizeof(commands));
        n_commands = 0;
        shares_init(&shares, &(struct shares_config){ .in_flight = in_flight,
                                                      .per_tenant = per_tenant,
                                                      .waiting_max = waiting,
                                                      .waiting_bytes = bytes });
}

static void end(void)
{
        for (size_t i = 0; i < n_commands; i++)
                share_leave(&shares, &commands[i]);
        check_u64_eq(shares.n_running + shares.n_waiting + shares.waiting_bytes, 0);
        check_true(!shares_any_waiting(&shares));
        shares_done(&shares);
}

/* A command of the tenant, as the bridge takes it: it runs, waits, or is left to share_too_many. */
static struct share *take(const char *tenant, size_t bytes)
{
        struct share *c = &commands[n_commands++];

        check_true(n_commands <= COMMANDS_MAX);
        share_join(&shares, c, str_from(tenant), bytes);
        if (share_may_run(&shares, c))
                share_run(&shares, c);
        else if (!share_too_many(&shares, c))
                share_wait(&shares, c);
        return c;
}

static size_t take_all(const char *tenant, size_t n)
{
        size_t ran = 0;

        for (size_t i = 0; i < n; i++)
                ran += take(tenant, 1)->state == SHARE_RUNNING;
        return ran;
}

static void a_tenant_leaves_slots_to_others(void **state)
{
        static const struct {
                const char *name;
                size_t in_flight, per_tenant, first, second, third, fourth;
        } cases[] = {
                { "256 slots, 64 of a tenant", 256, 64, 64, 64, 64,
                  1 }, /* the last 64 are for tenants that run nothing */
                { "8 slots, 2 of a tenant", 8, 2, 2, 2, 2, 1 },
                { "8 slots, 6 of a tenant", 8, 6, 6, 1, 1, 0 },
                { "8 slots, 8 of a tenant", 8, 8, 8, 0, 0, 0 },
                { "4 slots, 1 of a tenant", 4, 1, 1, 1, 1, 1 },
                { "1 slots, 1 of a tenant", 1, 1, 1, 0, 0, 0 },
                { "3 slots, 1 of a tenant", 3, 1, 1, 1, 1, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].name);
                start(cases[i].in_flight, cases[i].per_tenant, COMMANDS_MAX, COMMANDS_MAX);
                check_u64_eq(take_all("a", 90), cases[i].first);
                check_u64_eq(take_all("b", 90), cases[i].second);
                check_u64_eq(take_all("c", 90), cases[i].third);
                check_u64_eq(take_all("", 90), cases[i].fourth);
                end();
        }
}

static void tenants_take_turns(void **state)
{
        struct share *running, *a[3], *b[2], *c;

        start(1, 1, 10, 100);
        running = take("a", 1);
        for (size_t i = 0; i < ARRAY_SIZE(a); i++)
                a[i] = take("a", 1);
        for (size_t i = 0; i < ARRAY_SIZE(b); i++)
                b[i] = take("b", 1);
        c = take("c", 1);
        check_true(!shares_next(&shares)); /* no slot is free */
        for (struct share *const *next =
                     (struct share *[]){ a[0], b[0], c, a[1], b[1], a[2], NULL };
             *next; next++) {
                share_leave(&shares, running);
                running = shares_next(&shares);
                check_true(running == *next);
                share_run(&shares, running);
                check_i64_eq(running->state, SHARE_RUNNING);
        }
        share_leave(&shares, running);
        check_true(!shares_next(&shares)); /* none waits */
        end();
}

/* One that may not run is passed over, whoever's turn it is. */
static void a_tenant_at_its_limit_is_passed_over(void **state)
{
        struct share *b, *waiting;

        start(4, 1, 10, 100);
        take_all("a", 3);
        b = take("b", 1);
        waiting = take("b", 1);
        check_true(!shares_next(&shares)); /* two slots are free, and both have one */
        share_leave(&shares, b);
        check_true(shares_next(&shares) == waiting);
        end();
}

static void whoever_has_most_gives_up_a_place(void **state)
{
        struct share *last, *b, *b2, *c;

        start(1, 1, 4, 1000);
        take_all("a", 4);
        last = take("a", 1);
        check_u64_eq(shares.n_waiting, 4);
        b = take("a", 1); /* the tenant has most itself */
        check_i64_eq(b->state, SHARE_JOINED);
        check_true(share_too_many(&shares, b) == b);
        b = take("b", 1);
        check_true(share_too_many(&shares, b) == last);
        share_leave(&shares, last);
        check_true(!share_too_many(&shares, b));
        share_wait(&shares, b);
        b2 = take("b", 1); /* three against one */
        last = share_too_many(&shares, b2);
        check_true(last != b2);
        share_leave(&shares, last);
        share_wait(&shares, b2);
        c = take("c", 1); /* two, two and none */
        check_true(share_too_many(&shares, c) != c);
        b2 = take("b", 1); /* two against two */
        check_true(share_too_many(&shares, b2) == b2);
        end();
}

static void bytes_are_shared_like_places(void **state)
{
        struct share *first, *last, *b, *large;

        start(1, 1, 100, 100);
        take("a", 1);
        first = take("a", 50);
        last = take("a", 50);
        check_u64_eq(shares.waiting_bytes, 100);
        b = take("b", 10);
        check_true(share_too_many(&shares, b) == last);
        share_leave(&shares, last);
        share_wait(&shares, b);
        large = take("c", 60); /* more than anyone has */
        check_true(share_too_many(&shares, large) == large);
        share_leave(&shares, large);
        large = take("c", 45);
        check_true(share_too_many(&shares, large) == first);
        share_leave(&shares, large);
        large = take("d", 101); /* more than there is */
        check_true(share_too_many(&shares, large) == large);
        end();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_tenant_leaves_slots_to_others),
                cmocka_unit_test(tenants_take_turns),
                cmocka_unit_test(a_tenant_at_its_limit_is_passed_over),
                cmocka_unit_test(whoever_has_most_gives_up_a_place),
                cmocka_unit_test(bytes_are_shared_like_places),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
