/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Theory of operation: sandboxes that a driver found in its runtime and that have no record.
 *
 * The problem: the store lost a record, or was replaced, or another node has given the sandbox up while this node was
 * away. The runtime still has the sandbox, complete with the record it was created with. It must be adopted, because
 * its owner uses it; unless adopting it would give an owner a second sandbox.
 *
 * Reconcile starts one operation (COMMAND_RECONCILE with `found`) per such sandbox. It holds the operation lock, so no
 * create or delete of the same id overlaps:
 *
 *         run ─┬─ at the start of hutchd: the scan is current ──────┐
 *              └─ later: inspect ─┬─ still there ───────────────────┴─► register ─┬─ ok: decide, as for Pending
 *                                 └─ gone, or the runtime can't say: leave        ├─ store error: leave
 *                                                                                 └─ refused ─┐
 *         one node on the store: leave  ◄─────────────────────────────────────────────────────┤
 *         several: ─ record of another node ──────────────────────────► destroy               │
 *                  ─ no record, and the owner has another sandbox ────► destroy  ◄────────────┘
 *                  ─ anything else: leave
 *
 * A scan is old by the time it is compared: a sandbox that was deleted since must not come back. Only the driver's
 * word during the operation counts, except at the start, when nothing else runs.
 *
 * "Leave" means that nothing is written and nothing is removed: the next reconcile looks at it again. Only a sandbox
 * that was demonstrably given up is destroyed.
 *
 * Crash: nothing is written before the record itself, so the next start finds the sandbox again and begins anew.
 */

#include "service/service_impl.h"

#include "base/base.h"

bool adopt__is(const struct sandbox_op *o)
{
        return o->found && !sandbox_ctl__record(o->ctl);
}

static void adopt_destroy(struct sandbox_op *o, struct str why)
{
        log_fields(o->service->config.log, LOG_WARN, "destroying a sandbox that was given up",
                   LOG_F_STR("sandbox", o->found->id), LOG_F_STR("reason", why));
        o->decision = (struct decision){ .next = NEXT_CALL, .call = CALL_DESTROY };
        record_lock__release(o->ctl);
        driver_call__start(o);
}

static void owner_read(struct op *op, int result)
{
        struct sandbox_op *o = container_of(op, struct sandbox_op, write.get.req.op);

        if (result == 0 && !str_eq(o->write.get.record->id, o->found->id))
                return adopt_destroy(o, STR("its owner has another sandbox"));
        return sandbox_op__finish(o);
}

static void record_read(struct op *op, int result)
{
        struct sandbox_op *o = container_of(op, struct sandbox_op, write.get.req.op);

        if (result == 0 && remote_node__has(o->service, o->write.get.record))
                return adopt_destroy(o, STR("its record belongs to another node"));
        if (result != ERR_RETURN(ERR_NOT_FOUND) || !o->found->owner_bound)
                return sandbox_op__finish(o);
        memset(&o->write, 0, sizeof(o->write));
        op_init(&o->write.get.req.op, owner_read);
        o->write.get.unlocked = true;
        return registry_find_by_owner(o->service->config.registry, &o->write.get, &o->found->owner);
}

void adopt__not_registered(struct sandbox_op *o, int result)
{
        struct service *s = o->service;
        bool refused = result == ERR_RETURN(ERR_EXISTS) || result == ERR_RETURN(ERR_INVALID)
                       || result == ERR_RETURN(ERR_TOO_LARGE) || result == ERR_RETURN(ERR_CONFLICT);

        if (!refused)
                (void) log_err(result, s->config.log,
                               "cannot register a sandbox that was found: %s",
                               o->write.req.err.message);
        /* A sandbox of a name that this node had before: no one has given that up. */
        if (!refused || !service_is_shared(s) || !str_eq(o->found->node, s->config.node))
                return sandbox_op__finish(o);
        memset(&o->write, 0, sizeof(o->write));
        op_init(&o->write.get.req.op, record_read);
        return registry_get(s->config.registry, &o->write.get, o->found->id);
}

void adopt__driver_done(struct sandbox_op *o)
{
        int result = o->call_result.result;

        if (o->call_result.call == CALL_INSPECT && result == 0
            && o->call_result.health.status != RUNTIME_GONE) {
                o->args.health_known = true;
                o->args.health = o->call_result.health;
                o->registers = true;
                if (record_lock__acquire(o))
                        sandbox_op__decide(o);
                return;
        }
        if (o->call_result.call == CALL_DESTROY && result < 0)
                (void) log_err(result, o->service->config.log,
                               "cannot destroy a sandbox that was given up: %s",
                               o->call_err.message);
        o->decision = (struct decision){ .next = NEXT_DONE };
        return sandbox_op__finish(o);
}
