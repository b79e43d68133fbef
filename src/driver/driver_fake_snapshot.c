/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "driver/driver_fake_impl.h"

/* Snapshots of the fake driver: names in its world. */

static struct kept *kept_of(struct tree_node *n)
{
        return n ? container_of(n, struct kept, node) : NULL;
}

static struct kept *find(const struct fake *f, struct str id)
{
        char name[FAKE_NAME_SIZE];

        return kept_of(tree_get(&f->world->snapshots, fake__name(name, sizeof(name), f, id)));
}

static void kept_free(struct driver_fake_world *w, struct kept *k)
{
        tree_remove(&w->snapshots, &k->node);
        free(k);
}

void fake__kept_free_all(struct driver_fake_world *w)
{
        for (struct tree_node *n; (n = tree_nth(&w->snapshots, 0));)
                kept_free(w, kept_of(n));
}

bool fake__has_source(const struct fake *f, const struct sandbox *record)
{
        const struct kept *k = record->snapshot_id.p ? find(f, record->snapshot_id) : NULL;

        return !record->snapshot_id.p || (k && str_eq(k->tenant, record->tenant));
}

static void keep(struct fake *f, struct str id, struct str tenant)
{
        char name[FAKE_NAME_SIZE];
        struct str key = fake__name(name, sizeof(name), f, id);
        struct kept *k = xcalloc(1, sizeof(*k) + key.n + tenant.n);

        memcpy(k->name, key.p, key.n);
        memcpy(k->name + key.n, tenant.p, tenant.n);
        k->id = str_of(k->name + key.n - id.n, id.n);
        k->tenant = str_of(k->name + key.n, tenant.n);
        tree_add(&f->world->snapshots, &k->node, str_of(k->name, key.n));
}

void fake__snapshot(struct driver *d, struct driver_req *req)
{
        struct fake *f = fake_of(d);
        struct driver_snapshot *x = DRIVER_AS(snapshot, req);
        const struct entry *entry = fake__entry_get(f, x->record->id);

        if (!entry)
                return driver_finish(req,
                                     err_set(&req->err, ERR_NOT_FOUND, "there is no such sandbox"));
        if (entry->status != RUNTIME_RUNNING)
                return driver_finish(req, err_set(&req->err, ERR_CONFLICT, "the sandbox is %s",
                                                  runtime_status_to_string(entry->status)));
        if (find(f, x->snapshot_id))
                return driver_finish(req, err_set(&req->err, ERR_EXISTS,
                                                  "there is such a snapshot already"));
        keep(f, x->snapshot_id, x->record->tenant);
        return driver_finish(req, 0);
}

static bool is_used(const struct fake *f, struct str id)
{
        const struct tree *all = &f->world->sandboxes;

        for (struct tree_node *n = tree_from(all, str_from(f->prefix));
             n && str_starts_with(n->key, str_from(f->prefix)); n = tree_after(all, n->key))
                if (str_eq(str_from(entry_of(n)->snapshot_id), id))
                        return true;
        return false;
}

void fake__snapshot_remove(struct driver *d, struct driver_req *req)
{
        struct fake *f = fake_of(d);
        struct kept *k = find(f, DRIVER_AS(snapshot_remove, req)->snapshot_id);

        if (k && is_used(f, k->id))
                return driver_finish(req, err_set(&req->err, ERR_CONFLICT,
                                                  "a sandbox that was made of it is there"));
        if (k)
                kept_free(f->world, k);
        return driver_finish(req, 0);
}

void fake__snapshots(struct driver *d, struct driver_req *req)
{
        struct fake *f = fake_of(d);
        const struct tree *all = &f->world->snapshots;
        struct str prefix = str_from(f->prefix);

        for (struct tree_node *n = tree_from(all, prefix); n && str_starts_with(n->key, prefix);
             n = tree_after(all, n->key))
                driver_snapshots_add(DRIVER_AS(snapshots, req), kept_of(n)->id);
        driver_finish(req, 0);
}

/* --- for tests --- */

size_t driver_fake_snapshots(const struct driver_fake_world *w)
{
        return w->snapshots.n;
}

bool driver_fake_lose_snapshot(struct driver_fake_world *w, struct str id)
{
        for (struct tree_node *n = tree_nth(&w->snapshots, 0); n;
             n = tree_after(&w->snapshots, n->key))
                if (str_eq(kept_of(n)->id, id)) {
                        kept_free(w, kept_of(n));
                        return true;
                }
        return false;
}
