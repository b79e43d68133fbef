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

static void call_done(struct op *op, int result)
{
        struct sandbox_op *o = container_of(op, struct sandbox_op, call.destroy.req.op);
        struct call_result *r = &o->call_result;

        o->call_op = NULL;
        *r = (struct call_result){ .call = o->decision.call,
                                   .result = result,
                                   .err = &o->call_err };
        if (result < 0)
                o->call_err = o->call.destroy.req.err;
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
        if (adopt__is(o))
                return adopt__driver_done(o);
        o->has_call_result = true;
        if (result < 0 && !o->has_first_err) {
                o->has_first_err = true;
                o->first_err = o->call_err;
        }
        if (record_lock__acquire(o))
                sandbox_op__decide(o);
}

/* Sets o->call_record, the driver's copy. */
static int call_prepare(struct sandbox_op *o, struct driver **ret, struct err *e)
{
        const struct sandbox *record = sandbox_ctl__record(o->ctl);
        struct service *s = o->service;
        struct err ignored;

        if (!record)
                record = o->found;
        *ret = record ? service__driver(s, record->driver) : NULL;
        if (s->phase >= PHASE_STOPPING) /* the next start continues from here */
                return err_set(e, ERR_CANCELED, "the server is stopping");
        if (o->cancel_why && o->decision.call != CALL_DESTROY)
                return err_set(e, ERR_CANCELED, "%s", o->cancel_why);
        if (!*ret)
                return err_set(e, ERR_UNAVAILABLE,
                               "the driver of this sandbox is not enabled on this server");
        o->call_record = sandbox_copy(record);
        /* A record that a crash left without the driver's handle borrows the one that the scan found. */
        if (o->call_record && !o->call_record->handle.p && o->found
            && sandbox_set_handle(o->call_record, o->found->handle, &ignored) < 0)
                sandbox_freep(&o->call_record);
        return o->call_record ? 0 : err_set(e, ERR_UNAVAILABLE, "no memory for the record");
}

void driver_call__start(struct sandbox_op *o)
{
        struct service *s = o->service;
        struct op *op = &o->call.destroy.req.op;
        struct driver_req *req = NULL;
        struct driver *d;
        int r;

        if (o->background && !o->counted && s->background_calls >= BACKGROUND_MAX) {
                list_append(&s->throttled, &o->throttled);
                return;
        }
        memset(&o->call, 0, sizeof(o->call));
        r = call_prepare(o, &d, &o->call.destroy.req.err);
        if (r < 0)
                return call_done(op, r);
        if (o->background && !o->counted) {
                o->counted = true;
                s->background_calls++;
        }
        o->call_op = op;
        op_init(op, call_done);
        switch (o->decision.call) {
        case CALL_CREATE:
                req = driver_create_req(&o->call.create, o->call_record,
                                        &o->creation->copy.request);
                break;
        case CALL_DESTROY:
                req = driver_destroy_req(&o->call.destroy, o->call_record);
                break;
        case CALL_PAUSE:
                req = driver_pause_req(&o->call.pause, o->call_record);
                break;
        case CALL_RESUME:
                req = driver_resume_req(&o->call.pause, o->call_record);
                break;
        case CALL_INSPECT:
                req = driver_inspect_req(&o->call.inspect, o->call_record);
                break;
        case CALL_PING:
                return agent_ping(s->config.agents, &o->call.ping, d, o->call_record);
        case CALL_SNAPSHOT:
                req = driver_snapshot_req(&o->call.snapshot, o->call_record,
                                          str_from(o->snapshot_id));
                break;
        case CALL_NOTHING:
        case CALL_MAX_:
        default:
                ASSERT(false);
        }
        return driver_start(d, req);
}

void driver_call__expedite(struct sandbox_op *o)
{
        if (list_empty(&o->throttled))
                return;
        list_remove(&o->throttled);
        o->background = false;
        driver_call__start(o);
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
                driver_call__start(next);
        }
}
