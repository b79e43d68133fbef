/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/service_world.h"

#include <stdio.h>

#include "base/base.h"
#include "model/create.h"
#include "service/service_impl.h"
#include "tests/lib/store_memory.h"

#define STORE_BYTES (256 * MiB)

static struct err last_err;

const struct err *world_service_err(void)
{
        return &last_err;
}

/* --- turning --- */

void service_world_turn(struct service_world *w)
{
        uv_ref((uv_handle_t *) &w->awake);
        net_loop_run_once(&w->loop, /* wait= */ false);
        uv_unref((uv_handle_t *) &w->awake);
}

/* A turn that has taken long leaves some for the next. */
static bool is_something_due(const struct service_world *w)
{
        struct tree_node *first = tree_from(&w->service->schedule.deadlines, STR(""));

        return first && container_of(first, struct deadline, node)->at <= w->clock.mono_now;
}

void service_world_idle(struct service_world *w)
{
        service_world_until(w, service_stats(w->service).under_way == 0 && !is_something_due(w));
        service_world_turn(w); /* the last are told */
}

#define FEW 4 /* begin whatever time it takes: what a test means by "now" */

void service_world_advance(struct service_world *w, usec_t by)
{
        clock_fake_advance(&w->clock, by);
        if (!w->service)
                return;
        schedule_run_due(&w->service->schedule);
        for (int i = 1; i < FEW && is_something_due(w); i++)
                schedule_run_due(&w->service->schedule);
}

static void set_flag(void *data)
{
        *(bool *) data = true;
}

/* --- parts --- */

struct waiting {
        union {
                struct driver_close driver;
                struct store_close store;
                struct registry_load load;
        };
        bool done;
        int result;
};

static void waiting_done(struct op *op, int result)
{
        struct waiting *x = container_of(op, struct waiting, driver.op);

        x->result = result;
        x->done = true;
}

static_assert(offsetof(struct driver_close, op) == 0 && offsetof(struct store_close, op) == 0
                      && offsetof(struct registry_load, req.op) == 0,
              "one `done` for all");

static void open_driver(struct service_world *w)
{
        const struct driver_setup setup = { .loop = &w->loop, .installation = STR("test") };
        struct driver *fake;
        struct err e;

        if (driver_fake_open_in(w->runtime, &setup, &fake, &e) < 0)
                fail_msg("%s", e.message);
        w->driver = driver_failing_open(fake);
        if (w->scans_to_fail > 0)
                driver_failing_plan(w->driver, &(struct driver_failing_plan){
                                                       .when = DRIVER_FAILING_NTH,
                                                       .n = w->scans_to_fail--,
                                                       .calls = 1U << DRIVER_CALL_SCAN });
}

static void close_driver(struct service_world *w)
{
        struct waiting x = { 0 };

        op_init(&x.driver.op, waiting_done);
        driver_close(w->driver, &x.driver);
        service_world_until(w, x.done);
        w->driver = NULL;
}

static void open_registry(struct service_world *w)
{
        const struct registry_config config = { .node = STR("n"), .clock = &w->clock.clock };
        struct waiting x = { 0 };

        w->registry = registry_new(&w->loop, w->store, &config);
        op_init(&x.load.req.op, waiting_done);
        registry_load(w->registry, &x.load);
        service_world_until(w, x.done);
        check_i64_eq(x.result, 0);
        check_i64_eq(x.load.damaged, 0);
}

static bool started;
static int start_result;

static void start_done(struct op *op, int result)
{
        started = true;
        start_result = result;
}

void service_world_begin(struct service_world *w)
{
        struct service_config c = w->config;

        store_failing_plan(w->store, &(struct store_failing_plan){ 0 });
        open_driver(w);
        open_registry(w);
        w->agents = agents_new(&w->loop);
        c.loop = &w->loop;
        c.clock = &w->clock.clock;
        c.ids = &w->ids;
        c.registry = w->registry;
        c.agents = w->agents;
        c.node = STR("n");
        c.boot_id = str_from(w->boot_id);
        c.secret = STR("a secret of the installation");
        w->service = service_new(&c);
        service_add_driver(w->service, w->driver);
        op_init(&w->started.op, start_done);
        started = false;
        service_start(w->service, &w->started);
}

bool service_world_has_started(int *ret_result)
{
        *ret_result = start_result;
        return started;
}

int service_world_up(struct service_world *w)
{
        service_world_begin(w);
        service_world_until(w, started);
        return start_result;
}

void service_world_down(struct service_world *w)
{
        bool stopped = false, freed = false;

        service_stop(w->service, set_flag, &stopped);
        service_world_until(w, stopped);
        service_free(w->service);
        w->service = NULL;
        agents_free(w->agents, set_flag, &freed);
        service_world_until(w, freed);
        w->agents = NULL;
        registry_free(w->registry);
        w->registry = NULL;
        close_driver(w);
}

void service_world_crash(struct service_world *w)
{
        store_failing_plan(w->store,
                           &(struct store_failing_plan){ .when = STORE_FAILING_FROM, .n = 1 });
        driver_failing_plan(w->driver,
                            &(struct driver_failing_plan){ .when = DRIVER_FAILING_FROM, .n = 1 });
        service_world_down(w);
}

void service_world_reboot(struct service_world *w)
{
        static unsigned boots;

        ASSERT(!w->service);
        (void) snprintf(w->boot_id, sizeof(w->boot_id), "boot-%u", ++boots);
        w->clock.mono_now = 5 * USEC_PER_SEC;
}

static void open_store(struct service_world *w)
{
        w->store = store_failing_open(store_memory_open(&w->loop, STORE_BYTES));
}

void service_world_open(struct service_world *w, const struct service_config *config)
{
        memset(w, 0, sizeof(*w));
        w->config = service_defaults;
        if (config && config->create_wait)
                w->config.create_wait = config->create_wait;
        if (config && config->tombstone_for)
                w->config.tombstone_for = config->tombstone_for;
        if (config && config->reconcile_every)
                w->config.reconcile_every = config->reconcile_every;
        if (config && config->tombstones_max)
                w->config.tombstones_max = config->tombstones_max;
        if (config)
                w->config.policy = config->policy;
        (void) snprintf(w->boot_id, sizeof(w->boot_id), "boot-0");
        clock_fake_init(&w->clock, 1000 * USEC_PER_SEC, 1700000000 * USEC_PER_SEC);
        ids_init(&w->ids);
        check_i64_eq(net_loop_init(&w->loop, &w->clock.clock), 0);
        check_i64_eq(uv_async_init(&w->loop.uv, &w->awake, NULL), 0);
        uv_unref((uv_handle_t *) &w->awake);
        open_store(w);
        w->runtime = driver_fake_world_new();
        check_i64_eq(service_world_up(w), 0);
}

static void close_store(struct service_world *w)
{
        struct waiting x = { 0 };

        op_init(&x.store.op, waiting_done);
        store_close(w->store, &x.store);
        service_world_until(w, x.done);
}

void service_world_lose_records(struct service_world *w)
{
        ASSERT(!w->service);
        close_store(w);
        open_store(w);
}

void service_world_close(struct service_world *w)
{
        if (w->service)
                service_world_down(w);
        close_store(w);
        driver_fake_world_free(w->runtime);
        uv_close((uv_handle_t *) &w->awake, NULL);
        net_loop_done(&w->loop);
}

/* --- who asks --- */

const struct caller *world_caller(const char *tenant)
{
        static struct caller callers[4];
        static size_t next;
        struct caller *c = &callers[next++ % ARRAY_SIZE(callers)];

        *c = (struct caller){ .tenant = str_from(tenant),
                              .principal = STR("p"),
                              .role = ROLE_USER };
        return c;
}

const struct sandbox *world_find(struct service_world *w, const char *id)
{
        static const struct caller all = { .tenant = STR("t"), .all_tenants = true };

        return service_find(w->service, &all, str_from(id));
}

int world_state(struct service_world *w, const char *id)
{
        const struct sandbox *record = world_find(w, id);

        return record ? record->status.state : -1;
}

size_t world_live(const struct service_world *w)
{
        size_t n = 0;

        for (int i = 0; i < STATE_MAX_; i++)
                if (state_is_live((enum state) i))
                        n += registry_count(w->registry, STR_NULL, STR_NULL, (enum state) i);
        return n;
}

/* --- create --- */

struct creating {
        struct service_create create;
        struct create_request request;
        struct arena arena;
        struct caller caller;
        struct buf body;
        bool done;
        struct made made;
};

static void create_done(struct op *op, int result)
{
        struct creating *c = container_of(op, struct creating, create.req.op);
        struct made *m = &c->made;

        m->result = result;
        m->state = -1;
        m->replayed = c->create.replayed;
        m->err = c->create.req.err;
        m->retry_after = c->create.req.retry_after;
        memcpy(m->other_id, c->create.other_id, sizeof(m->other_id));
        if (c->create.problems.code)
                (void) snprintf(m->code, sizeof(m->code), "%s", c->create.problems.code);
        if (c->create.req.record) {
                m->state = c->create.req.record->status.state;
                (void) snprintf(m->id, sizeof(m->id), "%.*s", STR_ARG(c->create.req.record->id));
        }
        /* The request is over: what it brought is gone. */
        arena_wipe(&c->arena);
        c->done = true;
}

static void make_body(struct buf *b, const struct create_options *o)
{
        struct str rest = str_from(o->extension), name = STR(""), value = STR("");

        buf_addf(b, "{\"image\":{\"uri\":\"debian:12\"},\"entrypoint\":[\"sh\"],"
                    "\"env\":{\"TOKEN\":\"s3cr3t\"},\"resourceLimits\":{");
        if (o->cpu)
                buf_addf(b, "\"cpu\":\"%s\"%s", o->cpu, o->memory ? "," : "");
        if (o->memory)
                buf_addf(b, "\"memory\":\"%s\"", o->memory);
        buf_addf(b, "}");
        if (o->timeout)
                buf_addf(b, ",\"timeout\":%d", o->timeout);
        if (o->extension && str_split(&rest, '=', &name) && str_split(&rest, '=', &value))
                buf_addf(b, ",\"extensions\":{\"%.*s\":\"%.*s\"}", STR_ARG(name), STR_ARG(value));
        buf_add_char(b, '}');
}

struct creating *world_create_start(struct service_world *w, const struct create_options *o)
{
        struct creating *c = xnew(struct creating);
        struct json_error e;

        arena_init(&c->arena, ARENA_MAX_REQUEST);
        buf_init(&c->body, HTTP_BODY_MAX);
        if (o->body)
                buf_add_str(&c->body, str_from(o->body));
        else
                make_body(&c->body, o);
        if (json_decode(buf_str(&c->body), create_fields, 0, &c->arena, &c->request, &e) < 0)
                fail_msg("%s", e.message);
        c->caller = *world_caller(o->tenant ? o->tenant : "t");
        c->create = (struct service_create){ .caller = &c->caller,
                                             .request = &c->request,
                                             .arena = &c->arena,
                                             .idempotency_key = str_from(o->key),
                                             .body = buf_str(&c->body),
                                             .owner = o->owner,
                                             .owner_bound = o->owner != NULL };
        op_init(&c->create.req.op, create_done);
        service_create(w->service, &c->create);
        return c;
}

bool world_create_is_done(const struct creating *c)
{
        return c->done;
}

void world_create_cancel(struct creating *c)
{
        op_cancel(&c->create.req.op);
}

struct made world_create_end(struct creating *c)
{
        struct made m = c->made;

        check_true(c->done);
        buf_done(&c->body);
        free(c);
        last_err = m.err;
        return m;
}

struct made world_create(struct service_world *w, const struct create_options *o)
{
        struct creating *c = world_create_start(w, o);

        service_world_until(w, c->done);
        return world_create_end(c);
}

/* --- the other commands --- */

struct commanding {
        struct service_command command;
        struct caller caller;
        char id[64];
        struct json_pair *pair; /* of a patch; gone when it is done, as a client's is */
        bool done;
        int result;
};

static void command_done(struct op *op, int result)
{
        struct commanding *c = container_of(op, struct commanding, command.req.op);

        c->result = result;
        c->done = true;
        free(TAKE_PTR(c->pair));
}

static struct commanding *command_new(const char *id)
{
        struct commanding *c = xnew(struct commanding);

        (void) snprintf(c->id, sizeof(c->id), "%s", id);
        c->caller = *world_caller("t");
        c->caller.all_tenants = true;
        c->command.caller = &c->caller;
        c->command.id = str_from(c->id);
        op_init(&c->command.req.op, command_done);
        return c;
}

struct commanding *world_command_start(struct service_world *w, service_command_fn *f,
                                       const char *id)
{
        struct commanding *c = command_new(id);

        f(w->service, &c->command);
        return c;
}

bool world_command_is_done(const struct commanding *c)
{
        return c->done;
}

void world_command_cancel(struct commanding *c)
{
        op_cancel(&c->command.req.op);
}

int world_command_end(struct commanding *c)
{
        int result = c->result;

        check_true(c->done);
        last_err = c->command.req.err;
        free(c);
        return result;
}

static int await(struct service_world *w, struct commanding *c)
{
        service_world_until(w, c->done);
        return world_command_end(c);
}

int world_command(struct service_world *w, service_command_fn *f, const char *id)
{
        return await(w, world_command_start(w, f, id));
}

int world_renew(struct service_world *w, const char *id, usec_t wall)
{
        struct commanding *c = command_new(id);

        c->command.expires = wall;
        service_renew(w->service, &c->command);
        return await(w, c);
}

struct commanding *world_patch_start(struct service_world *w, const char *id, const char *key,
                                     const char *value)
{
        struct commanding *c = command_new(id);

        c->pair = xnew(struct json_pair);
        *c->pair = (struct json_pair){ str_from(key), str_from(value) };
        c->command.patch = (struct json_map){ c->pair, 1 };
        service_patch_metadata(w->service, &c->command);
        return c;
}

int world_patch(struct service_world *w, const char *id, const char *key, const char *value)
{
        return await(w, world_patch_start(w, id, key, value));
}
