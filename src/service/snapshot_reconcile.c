/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Records of snapshots against what a driver has.
 *
 *         record     driver has it   has it not
 *         Creating   removed, Failed                nothing is being done about it: a crash has left it
 *         Ready      –               Failed
 *         Failed     removed         –
 *         Deleting   removed, and the record goes   somebody asked for that, and it could not be done
 *         none       removed         –
 *
 * What has changed since the driver was asked makes its answer old: then the next look decides.
 */

#include "service/snapshot_impl.h"

#include "base/base.h"

struct snapshot_reconcile {
        struct list node;
        struct service *service;
        struct driver *driver;
        uint64_t changes; /* of the service, when it began */
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

static bool is_of(const struct snapshot_reconcile *l, const struct snapshot *record)
{
        return str_eq(record->driver, str_from(driver_name(l->driver)));
}

static void reconcile_record(struct snapshot_reconcile *l, const struct snapshot *record)
{
        bool there = has(&l->list, record->id);

        if (record->status.state == SNAPSHOT_CREATING)
                start(l, SNAPSHOT_OP_UNDO, record, record->id);
        else if (record->status.state == SNAPSHOT_DELETING)
                start(l, SNAPSHOT_OP_DELETE, record, record->id);
        else if (record->status.state == SNAPSHOT_READY && !there)
                start(l, SNAPSHOT_OP_GONE, record, record->id);
        else if (record->status.state == SNAPSHOT_FAILED && there)
                start(l, SNAPSHOT_OP_SWEEP, record, record->id);
}

/* Ids are copied: a work that ends at once may take the record along. */
static void compare(struct snapshot_reconcile *l)
{
        struct registry *r = l->service->config.registry;
        char after[SANDBOX_ID_MAX + 1] = "";

        if (l->list.n > 0)
                qsort(l->list.ids, l->list.n, sizeof(*l->list.ids), by_text);
        for (const struct snapshot *x = snapshots_next(r, STR_NULL); x;
             x = snapshots_next(r, str_from(after))) {
                (void) snprintf(after, sizeof(after), "%.*s", STR_ARG(x->id));
                if (is_of(l, x))
                        reconcile_record(l, x);
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
                               "driver '%s' cannot tell which snapshots it has: %s",
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
        driver_snapshots(d, &l->list);
}

void snapshot__stop_reconciles(struct service *s)
{
        list_for_each (n, &s->snapshots.reconciles)
                op_cancel(&container_of(n, struct snapshot_reconcile, node)->list.req.op);
}
