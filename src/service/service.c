/* SPDX-License-Identifier: Apache-2.0 */
#include "service/service.h"

#include "base/base.h"
#include "base/secret.h"
#include "service/service_impl.h"

/* --- life --- */

static void stopped_task(struct net_task *t);

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
        events_init(&s->events);
        list_init(&s->ops);
        list_init(&s->ingresses);
        list_init(&s->awaits);
        list_init(&s->ensures);
        list_init(&s->gate);
        list_init(&s->snapshots.ops);
        list_init(&s->snapshots.waiting);
        list_init(&s->snapshots.reconciles);
        net_task_init(&s->stopped_task, stopped_task);
        deadline_init(&s->reconcile_due, reconcile__due);
        r = schedule_open(&s->schedule, config->loop, config->clock);
        ASSERT(r == 0); /* at the start of the program there are descriptors */
        return s;
}

static void died(struct driver_watcher *w, struct driver *d, struct str id,
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
        struct driver_slot *m = &s->drivers[s->n_drivers];

        ASSERT(s->phase == PHASE_NEW && s->n_drivers < SERVICE_DRIVERS_MAX);
        s->n_drivers++;
        *m = (struct driver_slot){ .driver = d, .watcher.died = died, .service = s };
        driver_watch(d, &m->watcher);
}

int service_set_limits(struct service *s, const struct service_limits *limits, struct err *e)
{
        return tenants_set_limits(&s->tenants, limits, e);
}

/* --- the end --- */

static void stopped_task(struct net_task *t)
{
        struct service *s = container_of(t, struct service, stopped_task);

        s->phase = PHASE_STOPPED;
        s->stopped(s->stopped_data);
}

void service__settle(struct service *s)
{
        if (s->phase != PHASE_STOPPING || !s->schedule_closed || s->reconcile || s->probing
            || !list_empty(&s->ops) || !list_empty(&s->ingresses) || !list_empty(&s->awaits)
            || !list_empty(&s->ensures) || s->locates > 0 || s->sweeping || !snapshot__is_quiet(s))
                return;
        net_task_queue(s->config.loop, &s->stopped_task);
}

static void schedule_closed(struct schedule *schedule)
{
        struct service *s = container_of(schedule, struct service, schedule);

        s->schedule_closed = true;
        service__settle(s);
}

/* What has begun comes to its end: its driver call is canceled, and what that has led to is written.
 * What has not begun goes as if it had never come. The list is walked from its head, because the end
 * of one may be the end of others. */
static void end_ops(struct service *s)
{
        static const char why[] = "the server is stopping";
        struct list told;
        struct err e;
        int r = err_set(&e, ERR_UNAVAILABLE, "%s", why);

        list_init(&told);
        while (!list_empty(&s->ops)) {
                struct sandbox_op *j = container_of(list_first(&s->ops), struct sandbox_op, all);

                list_remove(&j->all);
                list_append(&told, &j->all);
                if (!j->begun) {
                        sandbox_op__drop(j, r, &e);
                        continue;
                }
                j->cancel_code = ERR_UNAVAILABLE;
                j->cancel_why = why;
                if (j->call_op)
                        op_cancel(j->call_op);
        }
        while (!list_empty(&told)) {
                struct list *n = list_first(&told);

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
        remote_node__stop(s);
        end_ops(s);
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

/* --- small things for all --- */

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

/* --- looking --- */

int service__not_found(struct err *e)
{
        return err_set(e, ERR_NOT_FOUND, "there is no such sandbox");
}

const struct sandbox *service_find(const struct service *s, const struct caller *caller,
                                   struct str id)
{
        const struct sandbox *record = registry_peek(s->config.registry, id);

        return record && (caller->all_tenants || str_eq(record->tenant, caller->tenant)) ? record
                                                                                         : NULL;
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

int service_check_ingress(const struct sandbox *record, usec_t *ret_retry_after, struct err *e)
{
        return decide_ingress(record, ret_retry_after, e);
}

/* --- news --- */

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
        const struct sandbox_ctl *p = record ? sandbox_ctl__get(s, record->id) : NULL;

        return p ? history_get(&p->history, ret) : 0;
}

/* --- numbers --- */

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
