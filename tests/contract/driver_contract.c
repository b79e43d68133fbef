/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/contract/driver_contract.h"

#include <unistd.h>

#include "base/base.h"
#include "model/volumes.h"
#include "os/fd.h"

static struct driver_world world;
static const struct driver_maker *the_maker;

struct driver_world *driver_contract_world(void)
{
        return &world;
}

int driver_contract_set_up(void **state)
{
        driver_world_open(&world, the_maker);
        return 0;
}

int driver_contract_tear_down(void **state)
{
        driver_world_close(&world);
        return 0;
}

/* --- create and destroy --- */

static void a_created_sandbox_runs_and_its_agent_answers(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

        check_i64_eq(driver_world_create(&world, s), 0);
        check_i64_eq(driver_world_ping(&world, s), 0);
        check_i64_eq(driver_world_status(&world, s), RUNTIME_RUNNING);
        check_i64_eq(driver_world_destroy(&world, s), 0);
        check_i64_eq(driver_world_status(&world, s), RUNTIME_GONE);
        check_i64_eq(world.notified, 0);
}

static void destroy_may_be_repeated(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        scoped(sandbox_freep) struct sandbox *never = driver_world_record("sb-never");

        check_i64_eq(driver_world_destroy(&world, never), 0);
        check_i64_eq(driver_world_create(&world, s), 0);
        check_i64_eq(driver_world_destroy(&world, s), 0);
        check_i64_eq(driver_world_destroy(&world, s), 0);
        /* And the name is free again. */
        check_i64_eq(driver_world_create(&world, s), 0);
        check_i64_eq(driver_world_ping(&world, s), 0);
}

static void what_is_there_is_not_created_again(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

        check_i64_eq(driver_world_create(&world, s), 0);
        check_i64_eq(driver_world_create(&world, s), CODE(CONFLICT));
        check_i64_eq(driver_world_status(&world, s), RUNTIME_RUNNING);
        check_i64_eq(driver_world_ping(&world, s), 0);
}

static void a_failed_create_leaves_nothing(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        char found[256];
        size_t skipped;
        int r;

        if (!world.maker->bad_entrypoint)
                return; /* it never does */
        s->entrypoint.items[0] = str_from(world.maker->bad_entrypoint);
        r = driver_world_create(&world, s);
        check_true(r < 0);
        check_i64_eq(driver_world_status(&world, s), RUNTIME_GONE);
        check_i64_eq(driver_world_scan(&world, found, sizeof(found), &skipped), 0);
        check_z_eq(found, "");
        check_i64_eq(skipped, 0);
        check_i64_eq(world.notified, 0);
}

/* --- what a driver can't do --- */

static void what_a_driver_cannot_do_is_refused(void **state)
{
        static struct volume volume = { .name = { "v", 1 }, .mount_path = { "/v", 2 } };
        static struct network_policy policy;
        static const struct {
                const char *name;
                unsigned cap;
        } cases[] = {
                { "snapshot", DRIVER_SNAPSHOT },
                { "volumes", DRIVER_VOLUMES },
                { "network policy", DRIVER_NETWORK_POLICY },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

                check_case(cases[i].name);
                if (driver_can(world.driver, cases[i].cap))
                        continue;
                if (cases[i].cap == DRIVER_SNAPSHOT)
                        s->snapshot_id = STR("snap");
                else if (cases[i].cap == DRIVER_VOLUMES)
                        s->volumes = (struct json_list){ &volume, 1 };
                else
                        s->network_policy = &policy;
                check_i64_eq(driver_world_create(&world, s), CODE(UNSUPPORTED));
                check_i64_eq(driver_world_status(&world, s), RUNTIME_GONE);
        }
}

static void calls_without_their_capability_are_refused(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

        if (driver_can(world.driver, DRIVER_PAUSE))
                return;
        check_i64_eq(driver_world_create(&world, s), 0);
        check_i64_eq(driver_world_pause(&world, s), CODE(UNSUPPORTED));
        check_i64_eq(driver_world_resume(&world, s), CODE(UNSUPPORTED));
        check_i64_eq(driver_world_status(&world, s), RUNTIME_RUNNING);
}

static void an_id_that_is_none_goes_nowhere(void **state)
{
        static const char *const ids[] = { "", ".", "..", "../x", "a/b", "A", "a%2fb", "-a" };
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        struct str good = s->id;

        for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
                check_case(ids[i]);
                s->id = str_from(ids[i]);
                check_i64_eq(driver_world_create(&world, s), CODE(INVALID));
                check_i64_eq(driver_world_destroy(&world, s), CODE(INVALID));
                check_i64_eq(driver_world_status(&world, s), CODE(INVALID));
        }
        s->id = good;
}

/* --- pause and resume --- */

static void pause_and_resume_and_their_conflicts(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

        if (!driver_can(world.driver, DRIVER_PAUSE))
                return; /* see below: it refuses */
        check_i64_eq(driver_world_pause(&world, s), CODE(NOT_FOUND));
        check_i64_eq(driver_world_resume(&world, s), CODE(NOT_FOUND));
        check_i64_eq(driver_world_create(&world, s), 0);
        check_i64_eq(driver_world_resume(&world, s), CODE(CONFLICT));
        check_i64_eq(driver_world_pause(&world, s), 0);
        check_i64_eq(driver_world_status(&world, s), RUNTIME_PAUSED);
        check_i64_eq(driver_world_pause(&world, s), CODE(CONFLICT));
        check_i64_eq(driver_world_resume(&world, s), 0);
        check_i64_eq(driver_world_status(&world, s), RUNTIME_RUNNING);
        check_i64_eq(driver_world_ping(&world, s), 0);
        check_i64_eq(world.notified, 0);
}

static void what_is_paused_can_be_destroyed(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

        if (!driver_can(world.driver, DRIVER_PAUSE))
                return; /* see below: it refuses */
        check_i64_eq(driver_world_create(&world, s), 0);
        check_i64_eq(driver_world_pause(&world, s), 0);
        check_i64_eq(driver_world_destroy(&world, s), 0);
        check_i64_eq(driver_world_status(&world, s), RUNTIME_GONE);
}

/* --- connect --- */

static void connect_to_what_is_not_there(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

        check_i64_eq(driver_world_connect(&world, s, NULL), CODE(NOT_FOUND));
        check_i64_eq(driver_world_ping(&world, s), CODE(NOT_FOUND));
        check_i64_eq(driver_world_create(&world, s), 0);
        check_i64_eq(driver_world_connect(&world, s, NULL), 0);
        world.maker->kill(&world, s->id, RUNTIME_DEAD);
        driver_world_until(&world, world.notified > 0);
        check_i64_eq(driver_world_connect(&world, s, NULL), CODE(UNAVAILABLE));
        check_i64_eq(driver_world_ping(&world, s), CODE(UNAVAILABLE));
}

static void several_connections_live_side_by_side(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        int fds[8];

        check_i64_eq(driver_world_create(&world, s), 0);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                check_i64_eq(driver_world_connect(&world, s, &fds[i]), 0);
        check_i64_eq(driver_world_ping(&world, s), 0);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                (void) fd_close(fds[i]);
}

/* --- death --- */

static void a_death_is_reported(void **state)
{
        static const struct {
                const char *name;
                int status;
        } cases[] = {
                { "ended by itself", RUNTIME_ENDED },
                { "killed", RUNTIME_DEAD },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
                usec_t killed;

                check_case(cases[i].name);
                world.notified = 0;
                check_i64_eq(driver_world_create(&world, s), 0);
                check_i64_eq(driver_world_ping(&world, s), 0);
                killed = clock_mono(&clock_system);
                world.maker->kill(&world, s->id, cases[i].status);
                driver_world_until(&world, world.notified > 0);
                check_true(clock_mono(&clock_system) - killed < check_timeout(USEC_PER_SEC));
                check_z_eq(world.died_id, "sb-1");
                check_i64_eq(world.died_health.status, cases[i].status);
                check_true(world.died_health.reason != NULL);
                check_i64_eq(driver_world_status(&world, s), cases[i].status);
                if (driver_can(world.driver, DRIVER_PAUSE)) {
                        check_i64_eq(driver_world_pause(&world, s), CODE(CONFLICT));
                        check_i64_eq(driver_world_resume(&world, s), CODE(CONFLICT));
                }
                check_i64_eq(driver_world_destroy(&world, s), 0);
                check_i64_eq(driver_world_status(&world, s), RUNTIME_GONE);
        }
}

/* --- usage and probe --- */

struct measuring {
        struct driver_usage usage;
        bool done;
        int result;
};

static void measured(struct op *op, int result)
{
        struct measuring *m = container_of(op, struct measuring, usage.req.op);

        m->result = result;
        m->done = true;
}

static int measure(struct measuring *m, const struct sandbox *s)
{
        m->done = false;
        op_init(&m->usage.req.op, measured);
        driver_start(world.driver, driver_usage_req(&m->usage, s));
        driver_world_until(&world, m->done);
        return m->result;
}

static void usage_is_measured(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        struct measuring m = { 0 };

        if (!driver_can(world.driver, DRIVER_USAGE)) {
                check_i64_eq(measure(&m, s), CODE(UNSUPPORTED));
                return;
        }
        check_i64_eq(measure(&m, s), CODE(NOT_FOUND));
        check_i64_eq(driver_world_create(&world, s), 0);
        check_i64_eq(measure(&m, s), 0);
        check_true(m.usage.processes >= 1);
        check_true(m.usage.memory_bytes > 0);
}

static void probed(struct op *op, int result)
{
        struct driver_probe *p = container_of(op, struct driver_probe, req.op);

        check_i64_eq(result, 0);
        check_true(p->n > 0);
        check_true(p->facts[0].ok); /* the runtime answers */
        for (size_t i = 0; i < p->n; i++)
                check_true(p->facts[i].name && p->facts[i].text.n > 0);
        world.notified++;
}

static void a_probe_says_what_there_is(void **state)
{
        struct driver_probe p = { 0 };
        char found[64];

        /* A driver that was just opened may not know yet whether its runtime responds. */
        check_i64_eq(driver_world_scan(&world, found, sizeof(found), NULL), 0);
        op_init(&p.req.op, probed);
        driver_start(world.driver, driver_probe_req(&p));
        driver_world_until(&world, world.notified > 0);
}

/* --- the suite --- */

static const struct CMUnitTest single[] = {
        DRIVER_TEST(a_created_sandbox_runs_and_its_agent_answers),
        DRIVER_TEST(destroy_may_be_repeated),
        DRIVER_TEST(what_is_there_is_not_created_again),
        DRIVER_TEST(a_failed_create_leaves_nothing),
        DRIVER_TEST(what_a_driver_cannot_do_is_refused),
        DRIVER_TEST(calls_without_their_capability_are_refused),
        DRIVER_TEST(an_id_that_is_none_goes_nowhere),
        DRIVER_TEST(pause_and_resume_and_their_conflicts),
        DRIVER_TEST(what_is_paused_can_be_destroyed),
        DRIVER_TEST(connect_to_what_is_not_there),
        DRIVER_TEST(several_connections_live_side_by_side),
        DRIVER_TEST(a_death_is_reported),
        DRIVER_TEST(usage_is_measured),
        DRIVER_TEST(a_probe_says_what_there_is),
};

#define TESTS_MAX 64

int driver_contract_run(const struct driver_maker *maker)
{
        static struct CMUnitTest tests[TESTS_MAX];
        size_t n = ARRAY_SIZE(single) + driver_contract_flow_n;

        the_maker = maker;
        memcpy(tests, single, sizeof(single));
        memcpy(tests + ARRAY_SIZE(single), driver_contract_flow,
               driver_contract_flow_n * sizeof(struct CMUnitTest));
        if (maker->real_agent) {
                memcpy(tests + n, driver_contract_agent,
                       driver_contract_agent_n * sizeof(struct CMUnitTest));
                n += driver_contract_agent_n;
        }
        memcpy(tests + n, driver_contract_snapshot,
               driver_contract_snapshot_n * sizeof(struct CMUnitTest));
        n += driver_contract_snapshot_n;
        ASSERT(n <= TESTS_MAX);
        return _cmocka_run_group_tests(maker->name, tests, n, NULL, NULL);
}
