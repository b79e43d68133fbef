/* SPDX-License-Identifier: Apache-2.0 */

/* What a job asks of its driver, with a record of its own: the registry's may be replaced before the
 * driver has answered. */

#include "service/service_impl.h"

#include "base/base.h"

/* All calls begin alike, so one `done` does for them. */
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

static void call_now(struct sandbox_op *j);

/* --- the answer --- */

static struct str keep_message(struct sandbox_op *j, struct str message)
{
        struct str cut = str_utf8_cut(message, sizeof(j->call_message));

        if (cut.n > 0)
                memcpy(j->call_message, cut.p, cut.n);
        return str_of(j->call_message, cut.n);
}

static void keep_results(struct sandbox_op *j)
{
        if (j->call_result.call == CALL_CREATE && j->call.create.handle.p)
                j->handle = xstrndup_str(j->call.create.handle);
        if (j->call_result.call != CALL_INSPECT)
                return;
        j->call_result.health = j->call.inspect.health;
        j->call_result.health.message = keep_message(j, j->call.inspect.health.message);
}

/* A place behind the gate is kept to the job's end: so there are never more than BACKGROUND_MAX on
 * their way through driver and store, and a turn of the loop stays short. */
void driver_call__end(struct sandbox_op *j)
{
        struct service *s = j->service;

        list_remove(&j->gate);
        if (!j->counted)
                return;
        j->counted = false;
        s->background_calls--;
        while (s->background_calls < BACKGROUND_MAX && !list_empty(&s->gate)) {
                struct sandbox_op *next =
                        container_of(list_first(&s->gate), struct sandbox_op, gate);

                list_remove(&next->gate);
                call_now(next);
        }
}

static void answer(struct sandbox_op *j, int result, const struct err *err)
{
        j->call_result = (struct call_result){ .call = j->decision.call,
                                               .result = result,
                                               .err = &j->call_err };
        if (result < 0)
                j->call_err = *err;
        if (result == ERR_RETURN(ERR_CANCELED) && j->cancel_why)
                (void) err_set(&j->call_err, j->cancel_code, "%s", j->cancel_why);
        if (result == 0)
                keep_results(j);
        sandbox_freep(&j->call_record);
        if (j->call_result.call == CALL_CREATE)
                request_copy_done(&j->creation->copy);
}

static void call_done(struct op *op, int result)
{
        struct sandbox_op *j = container_of(op, struct sandbox_op, call.destroy.req.op);

        j->call_op = NULL;
        answer(j, result, &j->call.destroy.req.err);
        sandbox_op__driver_done(j);
}

/* --- the question --- */

static void refuse(struct sandbox_op *j, enum err_code code, const char *why)
{
        struct err e;
        int r = err_set(&e, code, "%s", why);

        answer(j, r, &e);
        sandbox_op__driver_done(j);
}

/* A record that a crash has left without the driver's notes borrows those that the scan found. */
static struct sandbox *copy_for_driver(const struct sandbox_op *j, const struct sandbox *record)
{
        struct sandbox *copy = sandbox_copy(record);
        struct err e;

        if (copy && !copy->handle.p && j->found
            && sandbox_set_handle(copy, j->found->handle, &e) < 0)
                sandbox_freep(&copy);
        return copy;
}

static void start(struct sandbox_op *j, struct driver *d)
{
        j->call_op = &j->call.destroy.req.op;
        op_init(j->call_op, call_done);
        switch (j->decision.call) {
        case CALL_CREATE:
                driver_create(d, &j->call.create, j->call_record, &j->creation->copy.request);
                break;
        case CALL_DESTROY:
                driver_destroy(d, &j->call.destroy, j->call_record);
                break;
        case CALL_PAUSE:
                driver_pause(d, &j->call.pause, j->call_record);
                break;
        case CALL_RESUME:
                driver_resume(d, &j->call.pause, j->call_record);
                break;
        case CALL_INSPECT:
                driver_inspect(d, &j->call.inspect, j->call_record);
                break;
        case CALL_PING:
                agent_ping(j->service->config.agents, &j->call.ping, d, j->call_record);
                break;
        case CALL_SNAPSHOT:
                driver_snapshot(d, &j->call.snapshot, j->call_record, str_from(j->snapshot_id));
                break;
        case CALL_NOTHING:
        case CALL_MAX_:
        default:
                ASSERT(false);
        }
}

static void call_now(struct sandbox_op *j)
{
        const struct sandbox *record = sandbox_ctl__record(j->ctl);
        struct driver *d;

        if (!record)
                record = j->found;
        d = record ? service__driver(j->service, record->driver) : NULL;
        if (j->service->phase >= PHASE_STOPPING) /* the next start goes on from here */
                return refuse(j, ERR_CANCELED, "the server is stopping");
        if (j->cancel_why && j->decision.call != CALL_DESTROY)
                return refuse(j, ERR_CANCELED, j->cancel_why);
        if (!d)
                return refuse(j, ERR_UNAVAILABLE,
                              "the driver of this sandbox is not enabled on this server");
        j->call_record = copy_for_driver(j, record);
        if (!j->call_record)
                return refuse(j, ERR_UNAVAILABLE, "no memory for the record");
        memset(&j->call, 0, sizeof(j->call));
        if (j->background && !j->counted) {
                j->counted = true;
                j->service->background_calls++;
        }
        return start(j, d);
}

void driver_call__start(struct sandbox_op *j)
{
        struct service *s = j->service;

        if (j->background && !j->counted && s->background_calls >= BACKGROUND_MAX)
                list_append(&s->gate, &j->gate);
        else
                call_now(j);
}

void driver_call__expedite(struct sandbox_op *j)
{
        bool in_gate = !list_empty(&j->gate);

        if (!in_gate)
                return;
        list_remove(&j->gate);
        j->background = false;
        call_now(j);
}
