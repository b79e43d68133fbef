/* SPDX-License-Identifier: Apache-2.0 */
#include "service/service.h"

#include "base/base.h"
#include "base/secret.h"
#include "service/service_impl.h"

const struct service_config service_defaults = {
        .create_wait = 10 * USEC_PER_SEC,
        .tombstone_for = 3600 * USEC_PER_SEC,
        .reconcile_every = 60 * USEC_PER_SEC,
        .tombstones_max = 1000,
        .snapshots_max = 10000,
        .snapshots_at_once = 4,
};

/* --- life cycle --- */

static void stopped_task(struct net_task *t)
{
        struct service *s = container_of(t, struct service, stopped_task);

        s->phase = PHASE_STOPPED;
        s->stopped(s->stopped_data);
}

struct service *service_new(const struct service_config *config)
{
        struct service *s = xnew(struct service);
        int r;

        s->config = *config;
        s->node = xstrndup_str(config->node);
        s->boot_id = xstrndup_str(config->boot_id);
        s->secret = secret_new(config->secret);
        s->config.node = str_of(s->node, config->node.n);
        s->config.boot_id = str_of(s->boot_id, config->boot_id.n);
        s->config.secret = secret_expose(s->secret);
        map_init(&s->ctls);
        tenants_init(&s->tenants);
        list_init(&s->events.listeners);
        list_init(&s->ops);
        list_init(&s->throttled);
        list_init(&s->ingresses);
        list_init(&s->awaits);
        list_init(&s->ensures);
        list_init(&s->snapshots.ops);
        list_init(&s->snapshots.waiting);
        list_init(&s->snapshots.reconciles);
        net_task_init(&s->stopped_task, stopped_task);
        deadline_init(&s->reconcile_due, reconcile__due);
        r = schedule_open(&s->schedule, config->loop, config->clock);
        ASSERT(r == 0); /* at program start there are free descriptors */
        return s;
}

static void sandbox_died(struct driver_watcher *w, struct driver *d, struct str id,
                         const struct driver_health *how)
{
        struct service *s = container_of(w, struct driver_slot, watcher)->service;
        const struct sandbox *record = registry_peek(s->config.registry, id);

        if (s->phase != PHASE_STARTING && s->phase != PHASE_READY)
                return;
        if (record && str_eq(record->driver, str_from(driver_name(d))))
                reconcile__sandbox(sandbox_ctl__obtain(s, record->id), how);
}

void service_add_driver(struct service *s, struct driver *d)
{
        struct driver_slot *slot = &s->drivers[s->n_drivers];

        ASSERT(s->phase == PHASE_NEW && s->n_drivers < SERVICE_DRIVERS_MAX);
        s->n_drivers++;
        *slot = (struct driver_slot){ .driver = d, .watcher.died = sandbox_died, .service = s };
        driver_watch(d, &slot->watcher);
}

int service_set_limits(struct service *s, const struct service_limits *limits, struct err *e)
{
        return tenants_set_limits(&s->tenants, limits, e);
}

/* --- stopping --- */

void service__settle(struct service *s)
{
        if (s->phase != PHASE_STOPPING || !s->schedule_closed || s->reconcile || s->probing
            || !list_empty(&s->ops) || !list_empty(&s->ingresses) || !list_empty(&s->awaits)
            || !list_empty(&s->ensures) || s->locates > 0 || s->sweeping
            || !list_empty(&s->snapshots.ops) || !list_empty(&s->snapshots.reconciles))
                return;
        net_task_queue(s->config.loop, &s->stopped_task);
}

static void schedule_closed(struct schedule *schedule)
{
        struct service *s = container_of(schedule, struct service, schedule);

        s->schedule_closed = true;
        service__settle(s);
}

/* An operation that has begun comes to its end: its driver call is canceled, and the outcome is written. One that has
 * not begun is dropped. The list is taken from its head, because the end of one may be the end of others. */
static void stop_ops(struct service *s)
{
        static const char why[] = "the server is stopping";
        struct list begun;
        struct list *n;

        list_init(&begun);
        while ((n = list_first(&s->ops))) {
                struct sandbox_op *o = container_of(n, struct sandbox_op, all);

                list_remove(n);
                list_append(&begun, n);
                if (!o->begun) {
                        o->result = err_set(&o->err, ERR_UNAVAILABLE, "%s", why);
                        sandbox_op__finish(o);
                        continue;
                }
                o->cancel_code = ERR_UNAVAILABLE;
                o->cancel_why = why;
                if (o->call_op)
                        op_cancel(o->call_op);
        }
        while ((n = list_first(&begun))) {
                list_remove(n);
                list_append(&s->ops, n);
        }
}

void service_stop(struct service *s, void (*stopped)(void *data), void *data)
{
        ASSERT(s->phase < PHASE_STOPPING);
        s->phase = PHASE_STOPPING;
        s->stopped = stopped;
        s->stopped_data = data;
        for (size_t i = 0; i < s->n_drivers; i++)
                driver_watch(s->drivers[i].driver, NULL);
        schedule_close(&s->schedule, schedule_closed);
        reconcile__stop(s);
        probe__stop(s);
        ingress__stop(s);
        await__stop(s);
        ensure__stop(s);
        s->sweep.stop = true;
        stop_ops(s);
        snapshot__stop(s);
}

void service_free(struct service *s)
{
        ASSERT(s->phase == PHASE_STOPPED);
        sandbox_ctl__free_all(s);
        tenants_done(&s->tenants);
        map_done(&s->ctls);
        secret_free(s->secret);
        free(s->node);
        free(s->boot_id);
        free(s);
}

/* --- helpers --- */

struct timestamp service__now(const struct service *s)
{
        return (struct timestamp){ .mono = clock_mono(s->config.clock),
                                   .wall = clock_wall(s->config.clock),
                                   .boot_id = s->config.boot_id };
}

struct driver *service__driver(const struct service *s, struct str name)
{
        for (size_t i = 0; i < s->n_drivers; i++)
                if (str_eq(str_from(driver_name(s->drivers[i].driver)), name))
                        return s->drivers[i].driver;
        return NULL;
}

int service__ready(const struct service *s, struct err *e)
{
        if (s->phase == PHASE_READY)
                return 0;
        return err_set(e, ERR_UNAVAILABLE, "the server is %s",
                       s->phase >= PHASE_STOPPING ? "stopping" : "starting");
}

int service__not_found(struct err *e)
{
        return err_set(e, ERR_NOT_FOUND, "there is no such sandbox");
}

/* --- requests --- */

static void req_done(struct op *op, int result)
{
        struct service_req *r = container_of(op, struct service_req, op);
        struct sandbox *kept = TAKE_PTR(r->_kept);

        r->record = kept;
        op_unwrap(op, &r->_wrap, result); /* may free r, or start it again */
        sandbox_free(kept);
}

void req__begin(struct service *s, struct service_req *r, op_cancel_fn *cancel)
{
        r->err = (struct err){ 0 };
        r->retry_after = 0;
        r->record = NULL;
        r->_service = s;
        r->_kept = NULL;
        r->_impl = NULL;
        list_init(&r->_node);
        op_wrap(&r->op, &r->_wrap, req_done);
        op_begin(&r->op, s->config.loop, cancel);
}

void req__prepare(struct service_req *r, const struct sandbox_ctl *ctl, int result,
                  const struct err *err)
{
        const struct sandbox *record = ctl ? sandbox_ctl__record(ctl) : NULL;

        list_remove(&r->_node);
        r->_impl = NULL;
        if (result < 0 && err != &r->err)
                r->err = *err;
        if (result == ERR_RETURN(ERR_EXHAUSTED) && r->retry_after == 0)
                r->retry_after = QUOTA_RETRY_AFTER;
        if (result == ERR_RETURN(ERR_UNAVAILABLE) && r->retry_after == 0)
                r->retry_after = USEC_PER_SEC;
        if (record)
                r->_kept = sandbox_copy(record);
}

void req__finish(struct service_req *r, const struct sandbox_ctl *ctl, int result,
                 const struct err *err)
{
        req__prepare(r, ctl, result, err);
        op_finish(&r->op, result);
}

/* --- queries --- */

const struct sandbox *service_find(const struct service *s, const struct caller *caller,
                                   struct str id)
{
        const struct sandbox *record = registry_peek(s->config.registry, id);

        return record && (caller->all_tenants || str_eq(record->tenant, caller->tenant)) ? record
                                                                                         : NULL;
}

int service_find_owned(const struct service *s, const struct owned *which,
                       const struct sandbox **ret, struct err *e)
{
        const struct sandbox *record = service_find(s, which->caller, which->id);

        /* A tombstone is only for lists: to its owner the sandbox is gone. */
        if (!record || state_is_final((enum state) record->status.state))
                return service__not_found(e);
        if (!str_eq(record->owner.organization_id, which->caller->tenant)
            || !str_eq(record->owner.user_id, which->caller->principal)
            || (which->project.p && !str_eq(record->owner.project_id, which->project)))
                return err_set(e, ERR_FORBIDDEN, "the sandbox belongs to another owner");
        *ret = record;
        return 0;
}

void service_list(const struct service *s, const struct caller *caller,
                  const struct registry_query *q, struct registry_page *ret)
{
        struct registry_query own = *q;

        if (!caller->all_tenants)
                own.tenant = caller->tenant;
        registry_list(s->config.registry, &own, ret);
}

void service_list_all(struct service *s, const struct caller *caller, struct registry_list_all *l)
{
        if (!caller->all_tenants)
                l->query.tenant = caller->tenant;
        registry_list_all(s->config.registry, l);
}

/* --- events --- */

void service_listen(struct service *s, struct service_listener *l)
{
        list_append(&s->events.listeners, &l->_node);
}

void service_unlisten(struct service_listener *l)
{
        list_remove(&l->_node);
}

size_t service_history(const struct service *s, const struct caller *caller, struct str id,
                       struct service_history_entry ret[static SERVICE_HISTORY_MAX])
{
        const struct sandbox *record = service_find(s, caller, id);
        const struct sandbox_ctl *ctl = record ? sandbox_ctl__get(s, record->id) : NULL;

        return ctl ? history_get(&ctl->history, ret) : 0;
}

/* --- statistics --- */

#define MS(n) ((n) *USEC_PER_MSEC)

const usec_t service_create_bounds[SERVICE_CREATE_BUCKETS] = {
        MS(1),   MS(5),    MS(10),   MS(25),   MS(50),    MS(100),   MS(250),
        MS(500), MS(1000), MS(2500), MS(5000), MS(10000), MS(60000), USEC_INFINITY,
};

struct service_stats service_stats(const struct service *s)
{
        return s->stats;
}

const char *service_driver_name(const struct service *s, size_t i)
{
        return i < s->n_drivers ? driver_name(s->drivers[i].driver) : NULL;
}

size_t service_count(const struct service *s, const char *driver, enum state state)
{
        return registry_count(s->config.registry, STR_NULL, str_from(driver), state);
}
