/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Driver calls of operations. The driver gets a copy of the record, because the registry may replace its own before
 * the driver has answered.
 *
 * Calls that no one waits for (background) are throttled: at most BACKGROUND_MAX such operations are between their
 * first driver call and their end, so that a mass expiry or a large reconcile does not hold up the loop.
 */

#include "service/service_impl.h"

#include "base/base.h"

/* All calls begin with the same two members, so one `done` serves them all. */
#define SAME_BEGIN(call)                                                      \
        static_assert(offsetof(struct call, req.op) == 0                      \
                              && offsetof(struct call, req.err)               \
                                         == offsetof(struct driver_req, err), \
                      #call)
SAME_BEGIN(driver_create);
SAME_BEGIN(driver_destroy);
SAME_BEGIN(driver_pause);
SAME_BEGIN(driver_inspect);
SAME_BEGIN(agent_ping);
SAME_BEGIN(driver_snapshot);

static void call_finish(struct sandbox_op *o, int result, const struct err *err)
{
        struct call_result *r = &o->call_result;

        *r = (struct call_result){ .call = o->decision.call,
                                   .result = result,
                                   .err = &o->call_err };
        if (result < 0)
                o->call_err = *err;
        if (result == ERR_RETURN(ERR_CANCELED) && o->cancel_why)
                (void) err_set(&o->call_err, o->cancel_code, "%s", o->cancel_why);
        if (result == 0 && r->call == CALL_CREATE && o->call.create.handle.p)
                o->handle = xstrndup_str(o->call.create.handle);
        if (result == 0 && r->call == CALL_INSPECT) {
                struct str cut =
                        str_utf8_cut(o->call.inspect.health.message, sizeof(o->call_message));

                if (cut.n > 0)
                        memcpy(o->call_message, cut.p, cut.n);
                r->health = o->call.inspect.health;
                r->health.message = str_of(o->call_message, cut.n);
        }
        sandbox_freep(&o->call_record);
        if (r->call == CALL_CREATE)
                request_copy_done(&o->creation->copy);
        sandbox_op__driver_done(o);
}

static void call_done(struct op *op, int result)
{
        struct sandbox_op *o = container_of(op, struct sandbox_op, call.destroy.req.op);

        o->call_op = NULL;
        call_finish(o, result, &o->call.destroy.req.err);
}

static void call_refuse(struct sandbox_op *o, enum err_code code, const char *why)
{
        struct err e;
        int r = err_set(&e, code, "%s", why);

        call_finish(o, r, &e);
}

static void call_dispatch(struct sandbox_op *o, struct driver *d)
{
        memset(&o->call, 0, sizeof(o->call));
        o->call_op = &o->call.destroy.req.op;
        op_init(o->call_op, call_done);
        switch (o->decision.call) {
        case CALL_CREATE:
                return driver_create(d, &o->call.create, o->call_record,
                                     &o->creation->copy.request);
        case CALL_DESTROY:
                return driver_destroy(d, &o->call.destroy, o->call_record);
        case CALL_PAUSE:
                return driver_pause(d, &o->call.pause, o->call_record);
        case CALL_RESUME:
                return driver_resume(d, &o->call.pause, o->call_record);
        case CALL_INSPECT:
                return driver_inspect(d, &o->call.inspect, o->call_record);
        case CALL_PING:
                return agent_ping(o->service->config.agents, &o->call.ping, d, o->call_record);
        case CALL_SNAPSHOT:
                return driver_snapshot(d, &o->call.snapshot, o->call_record,
                                       str_from(o->snapshot_id));
        case CALL_NOTHING:
        case CALL_MAX_:
        default:
                ASSERT(false);
        }
}

static void call_now(struct sandbox_op *o)
{
        const struct sandbox *record = sandbox_ctl__record(o->ctl);
        struct service *s = o->service;
        struct driver *d;
        struct err e;

        if (!record)
                record = o->found;
        d = record ? service__driver(s, record->driver) : NULL;
        if (s->phase >= PHASE_STOPPING) /* the next start continues from here */
                return call_refuse(o, ERR_CANCELED, "the server is stopping");
        if (o->cancel_why && o->decision.call != CALL_DESTROY)
                return call_refuse(o, ERR_CANCELED, o->cancel_why);
        if (!d)
                return call_refuse(o, ERR_UNAVAILABLE,
                                   "the driver of this sandbox is not enabled on this server");
        o->call_record = sandbox_copy(record);
        /* A record that a crash left without the driver's handle borrows the one that the scan found. */
        if (o->call_record && !o->call_record->handle.p && o->found
            && sandbox_set_handle(o->call_record, o->found->handle, &e) < 0)
                sandbox_freep(&o->call_record);
        if (!o->call_record)
                return call_refuse(o, ERR_UNAVAILABLE, "no memory for the record");
        if (o->background && !o->counted) {
                o->counted = true;
                s->background_calls++;
        }
        return call_dispatch(o, d);
}

void driver_call__start(struct sandbox_op *o)
{
        struct service *s = o->service;

        if (o->background && !o->counted && s->background_calls >= BACKGROUND_MAX)
                list_append(&s->throttled, &o->throttled);
        else
                call_now(o);
}

void driver_call__expedite(struct sandbox_op *o)
{
        if (list_empty(&o->throttled))
                return;
        list_remove(&o->throttled);
        o->background = false;
        call_now(o);
}

void driver_call__end(struct sandbox_op *o)
{
        struct service *s = o->service;

        list_remove(&o->throttled);
        if (!o->counted)
                return;
        o->counted = false;
        s->background_calls--;
        while (s->background_calls < BACKGROUND_MAX && !list_empty(&s->throttled)) {
                struct sandbox_op *next =
                        container_of(list_first(&s->throttled), struct sandbox_op, throttled);

                list_remove(&next->throttled);
                call_now(next);
        }
}
