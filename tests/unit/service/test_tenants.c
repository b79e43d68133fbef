/* SPDX-License-Identifier: Apache-2.0 */
#include "service/tenants.h"

#include "base/base.h"
#include "service/service_impl.h"
#include "tests/lib/service_world.h"

static struct service_world w;

static int set_up(void **state)
{
        service_world_open(&w, NULL);
        return 0;
}

static int tear_down(void **state)
{
        service_world_close(&w);
        return 0;
}

static void limit(const struct service_limits *l)
{
        struct err e;

        check_i64_eq(service_set_limits(w.service, l, &e), 0);
}

static const struct quota *used(const char *tenant)
{
        struct map_node *n = map_get(&w.service->tenants.by_name, str_from(tenant));

        check_true(n != NULL);
        return &container_of(n, struct tenant, by_name)->used;
}

#define PARALLEL 20

/* All are begun before one is done. */
static unsigned create_at_once(const struct create_options *o)
{
        struct creating *all[PARALLEL];
        unsigned made = 0;

        for (size_t i = 0; i < PARALLEL; i++)
                all[i] = world_create_start(&w, o);
        service_world_idle(&w);
        for (size_t i = 0; i < PARALLEL; i++) {
                struct made m = world_create_end(all[i]);

                check_true(m.result == 0 || m.result == ERR_RETURN(ERR_EXHAUSTED));
                check_true(m.result == 0 || m.retry_after > 0);
                made += m.result == 0;
        }
        return made;
}

static void a_quota_holds_exactly_under_parallel_creates(void **state)
{
        static const struct {
                const char *name;
                struct service_limits limits;
                unsigned should;
        } cases[] = {
                { "sandboxes", { .each.sandboxes = 7 }, 7 },
                { "cpu", { .each.cpu_milli = 2600 }, 5 },
                { "memory", { .each.memory_bytes = 3 * 256 * MiB + 1 }, 3 },
                { "all together", { .sandboxes_max = 4 }, 4 },
                { "the tightest", { .each = { 9, 2600, 3 * 256 * MiB } }, 3 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const struct create_options o = { .cpu = "500m", .memory = "256Mi" };
                const struct sandbox *r;
                char id[64];

                check_case(cases[i].name);
                limit(&cases[i].limits);
                check_i64_eq(create_at_once(&o), cases[i].should);
                check_i64_eq(driver_fake_count(w.runtime), cases[i].should);
                check_i64_eq(used("t")->sandboxes, cases[i].should);
                check_i64_eq(used("t")->cpu_milli, 500 * cases[i].should);
                /* What is given back can be used again, once. */
                r = registry_next(w.registry, STR_NULL);
                (void) snprintf(id, sizeof(id), "%.*s", STR_ARG(r->id));
                check_i64_eq(world_command(&w, service_delete, id), 0);
                check_i64_eq(create_at_once(&o), 1);
                while ((r = registry_next(w.registry, STR_NULL))) {
                        (void) snprintf(id, sizeof(id), "%.*s", STR_ARG(r->id));
                        check_i64_eq(world_command(&w, service_delete, id), 0);
                }
                check_i64_eq(w.service->tenants.by_name.n, 0);
        }
}

static void processes_have_a_quota(void **state)
{
        const struct create_options o = {
                .body = "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"sh\"],"
                        "\"resourceLimits\":{\"pids\":\"100\"}}",
        };
        struct made m;

        limit(&(struct service_limits){ .each.pids = 350 });
        check_i64_eq(create_at_once(&o), 3);
        check_u64_eq(used("t")->pids, 300);
        m = world_create(&w, &o);
        check_i64_eq(m.result, ERR_RETURN(ERR_EXHAUSTED));
        check_z_eq(m.err.message, "the tenant's quota of pids is used up: 300 of 350");
        m = world_create(&w, &(struct create_options){ .cpu = "1" });
        check_i64_eq(m.result, ERR_RETURN(ERR_INVALID)); /* a service without a default for it */
        service_world_down(&w);
        check_i64_eq(service_world_up(&w), 0);
        check_u64_eq(used("t")->pids, 300);
}

static void tenants_have_quotas_of_their_own(void **state)
{
        const struct tenant_quota named[] = { { STR("rich"), { .sandboxes = 3 } } };

        limit(&(struct service_limits){
                .each.sandboxes = 1, .tenants = named, .n_tenants = ARRAY_SIZE(named) });
        check_i64_eq(create_at_once(&(struct create_options){ .tenant = "rich" }), 3);
        check_i64_eq(create_at_once(&(struct create_options){ .tenant = "poor" }), 1);
        check_i64_eq(create_at_once(&(struct create_options){ .tenant = "other" }), 1);
}

static void new_limits_leave_what_is_there(void **state)
{
        const struct create_options o = { 0 };

        check_i64_eq(create_at_once(&o), PARALLEL);
        limit(&(struct service_limits){ .each.sandboxes = 5 });
        check_i64_eq(world_live(&w), PARALLEL);
        check_i64_eq(world_create(&w, &o).result, ERR_RETURN(ERR_EXHAUSTED));
        limit(&(struct service_limits){ .each.sandboxes = PARALLEL + 1 });
        check_i64_eq(create_at_once(&o), 1);
}

static void bad_limits_are_refused_and_the_old_ones_stay(void **state)
{
        const struct tenant_quota named[] = { { STR("a\nb"), { .sandboxes = 3 } } };
        struct err e;

        limit(&(struct service_limits){ .each.sandboxes = 1 });
        check_i64_eq(service_set_limits(w.service,
                                        &(struct service_limits){ .tenants = named,
                                                                  .n_tenants = 1 },
                                        &e),
                     ERR_RETURN(ERR_INVALID));
        check_i64_eq(create_at_once(&(struct create_options){ 0 }), 1);
}

static void who_has_a_quota_of_cpu_must_say_how_much(void **state)
{
        struct made m;

        limit(&(struct service_limits){ .each.cpu_milli = 1000 });
        m = world_create(&w, &(struct create_options){ .memory = "256Mi" });
        check_i64_eq(m.result, ERR_RETURN(ERR_INVALID)); /* there is nothing to wait for */
        check_i64_eq(m.retry_after, 0);
        check_true(strstr(m.err.message, "cpu") != NULL);
}

static void quotas_are_counted_anew_at_the_start(void **state)
{
        check_i64_eq(create_at_once(&(struct create_options){ .cpu = "2", .timeout = 60 }),
                     PARALLEL);
        service_world_down(&w);
        check_i64_eq(service_world_up(&w), 0);
        check_i64_eq(used("t")->sandboxes, PARALLEL);
        check_i64_eq(used("t")->cpu_milli, 2000 * PARALLEL);
        service_world_advance(&w, 60 * USEC_PER_SEC);
        service_world_idle(&w);
        check_i64_eq(used("t")->sandboxes, 0); /* tombstones cost nothing */
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(a_quota_holds_exactly_under_parallel_creates),
                T(processes_have_a_quota),
                T(tenants_have_quotas_of_their_own),
                T(new_limits_leave_what_is_there),
                T(bad_limits_are_refused_and_the_old_ones_stay),
                T(who_has_a_quota_of_cpu_must_say_how_much),
                T(quotas_are_counted_anew_at_the_start),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
