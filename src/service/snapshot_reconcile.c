/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Snapshot records against what a driver has.
 *
 *         record     driver has it   has it not
 *         Creating   removed, Failed                no operation is in progress: a crash left it
 *         Ready      –               Failed
 *         Failed     removed         –
 *         Deleting   removed, and the record goes   a delete that failed
 *         none       removed         –
 *
 * A list is stale if a record has changed since the driver was asked for it: then the next run decides.
 */

#include "service/snapshot_impl.h"

#include "base/base.h"

struct snapshot_reconcile {
        struct list node;
        struct service *service;
        struct driver *driver;
        uint64_t changes; /* service->snapshots.changes when it began */
        struct driver_snapshots list;
};

static void start(struct snapshot_reconcile *l, enum snapshot_op_kind kind,
                  const struct snapshot *record, struct str id)
{
        struct snapshot_op *w;

        if (snapshot_op__of(l->service, id))
                return;
        w = snapshot_op__new(l->service, kind, id);
        w->driver = l->driver;
        w->was = record ? record->status.state : SNAPSHOT_FAILED;
        snapshot_op__start(w);
}

static int by_text(const void *a, const void *b)
{
        return strcmp(((const struct driver_snapshot_id *) a)->text,
                      ((const struct driver_snapshot_id *) b)->text);
}

static bool has(const struct driver_snapshots *list, struct str id)
{
        struct driver_snapshot_id key = { 0 };

        memcpy(key.text, id.p, id.n);
        return list->n > 0 && bsearch(&key, list->ids, list->n, sizeof(key), by_text) != NULL;
}

/* Ids are copied: an operation that ends at once may remove the record. */
static void compare(struct snapshot_reconcile *l)
{
        struct registry *r = l->service->config.registry;
        struct str driver = str_from(driver_name(l->driver));
        char after[SANDBOX_ID_MAX + 1] = "";

        if (l->list.n > 0)
                qsort(l->list.ids, l->list.n, sizeof(*l->list.ids), by_text);
        for (const struct snapshot *x = snapshots_next(r, STR_NULL); x;
             x = snapshots_next(r, str_from(after))) {
                int state = x->status.state;

                (void) snprintf(after, sizeof(after), "%.*s", STR_ARG(x->id));
                if (!str_eq(x->driver, driver))
                        continue;
                if (state == SNAPSHOT_CREATING)
                        start(l, SNAPSHOT_OP_UNDO, x, x->id);
                else if (state == SNAPSHOT_DELETING)
                        start(l, SNAPSHOT_OP_DELETE, x, x->id);
                else if (state == SNAPSHOT_READY && !has(&l->list, x->id))
                        start(l, SNAPSHOT_OP_GONE, x, x->id);
                else if (state == SNAPSHOT_FAILED && has(&l->list, x->id))
                        start(l, SNAPSHOT_OP_SWEEP, x, x->id);
        }
        for (size_t i = 0; i < l->list.n; i++)
                if (!snapshots_get(r, str_from(l->list.ids[i].text)))
                        start(l, SNAPSHOT_OP_SWEEP, NULL, str_from(l->list.ids[i].text));
}

static void listed(struct op *op, int result)
{
        struct snapshot_reconcile *l = container_of(op, struct snapshot_reconcile, list.req.op);
        struct service *s = l->service;

        if (result < 0 && s->phase < PHASE_STOPPING)
                (void) log_err(result, s->config.log,
                               "listing the snapshots of driver '%s' failed: %s",
                               driver_name(l->driver), l->list.req.err.message);
        if (result == 0 && s->phase < PHASE_STOPPING && s->snapshots.changes == l->changes)
                compare(l);
        list_remove(&l->node);
        free(l);
        service__settle(s);
}

void snapshot__reconcile(struct service *s, struct driver *d)
{
        struct snapshot_reconcile *l;

        if (!driver_can(d, DRIVER_SNAPSHOT))
                return;
        list_for_each (n, &s->snapshots.reconciles)
                if (container_of(n, struct snapshot_reconcile, node)->driver == d)
                        return;
        l = xnew(struct snapshot_reconcile);
        l->service = s;
        l->driver = d;
        l->changes = s->snapshots.changes;
        list_append(&s->snapshots.reconciles, &l->node);
        op_init(&l->list.req.op, listed);
        driver_start(d, driver_snapshots_req(&l->list));
}

void snapshot__stop_reconciles(struct service *s)
{
        list_for_each (n, &s->snapshots.reconciles)
                op_cancel(&container_of(n, struct snapshot_reconcile, node)->list.req.op);
}
