/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/driver_fake.h"

#include <stdio.h>

#include "base/base.h"
#include "driver/driver_fake_impl.h"

#define ALL_CAPS                                                                                 \
        (DRIVER_PAUSE | DRIVER_SNAPSHOT | DRIVER_IMAGES | DRIVER_VOLUMES | DRIVER_NETWORK_POLICY \
         | DRIVER_LIMITS | DRIVER_USAGE)

/* --- the world --- */

struct str fake__name(char *storage, size_t size, const struct fake *f, struct str id)
{
        int n = snprintf(storage, size, "%s%.*s", f->prefix, STR_ARG(id));

        return str_of(storage, MIN_OF((size_t) n, size - 1));
}

struct entry *fake__entry_get(const struct fake *f, struct str id)
{
        char name[FAKE_NAME_SIZE];

        return entry_of(tree_get(&f->world->sandboxes, fake__name(name, sizeof(name), f, id)));
}

/* For tests, which know ids only. */
static struct entry *entry_find(const struct driver_fake_world *w, struct str id)
{
        struct tree_node *n = tree_from(&w->sandboxes, STR(""));

        for (; n; n = tree_after(&w->sandboxes, n->key))
                if (str_eq(entry_of(n)->id, id))
                        return entry_of(n);
        return NULL;
}

void fake__entry_free(struct driver_fake_world *w, struct entry *entry)
{
        fake__agent_stop(entry);
        list_remove(&entry->events);
        tree_remove(&w->sandboxes, &entry->node);
        free((char *) entry->record.p);
        free(entry->message);
        free(entry);
}

struct entry *fake__entry_new(struct fake *f, const struct sandbox *record, struct str text)
{
        char name[FAKE_NAME_SIZE];
        struct str key = fake__name(name, sizeof(name), f, record->id);
        struct entry *entry = xcalloc(1, sizeof(*entry) + key.n + 1);

        memcpy(entry->name, key.p, key.n);
        entry->id = str_of(entry->name + key.n - record->id.n, record->id.n);
        entry->record = text;
        if (record->snapshot_id.p)
                memcpy(entry->snapshot_id, record->snapshot_id.p, record->snapshot_id.n);
        entry->number = ++f->world->made;
        entry->status = RUNTIME_RUNNING;
        entry->watched_by = f;
        list_init(&entry->events);
        tree_add(&f->world->sandboxes, &entry->node, str_of(entry->name, key.n));
        return entry;
}

struct driver_fake_world *driver_fake_world_new(void)
{
        struct driver_fake_world *w = xnew(struct driver_fake_world);

        tree_init(&w->sandboxes);
        tree_init(&w->snapshots);
        list_init(&w->drivers);
        w->caps = ALL_CAPS;
        return w;
}

void driver_fake_world_free(struct driver_fake_world *w)
{
        if (!w)
                return;
        ASSERT(list_empty(&w->drivers));
        for (struct tree_node *n; (n = tree_from(&w->sandboxes, STR("")));)
                fake__entry_free(w, entry_of(n));
        fake__kept_free_all(w);
        free(w);
}

void driver_fake_set_caps(struct driver_fake_world *w, unsigned caps)
{
        w->caps = caps;
}

/* --- time --- */

void driver_fake_hold(struct driver_fake_world *w, unsigned calls)
{
        w->held = calls;
}

bool driver_fake_release_one(struct driver_fake_world *w)
{
        list_for_each (n, &w->drivers) {
                struct fake *f = container_of(n, struct fake, node);

                list_for_each (m, &f->waiting) {
                        struct waiting *x = container_of(m, struct waiting, node);

                        if (x->held) {
                                fake__go_on(x);
                                return true;
                        }
                }
        }
        return false;
}

void driver_fake_release(struct driver_fake_world *w)
{
        w->held = 0;
        while (driver_fake_release_one(w))
                ;
}

size_t driver_fake_held(const struct driver_fake_world *w, enum driver_call call)
{
        size_t count = 0;

        list_for_each (n, &w->drivers) {
                struct fake *f = container_of(n, struct fake, node);

                list_for_each (m, &f->waiting) {
                        const struct waiting *x = container_of(m, struct waiting, node);

                        count += x->held && x->req->_call == (unsigned) call;
                }
        }
        return count;
}

void driver_fake_delay(struct driver_fake_world *w, unsigned turns)
{
        w->delay = turns;
}

uint64_t driver_fake_calls(const struct driver_fake_world *w, enum driver_call call)
{
        return w->calls[call];
}

/* --- fate --- */

void fake__notify(struct net_task *t)
{
        struct fake *f = container_of(t, struct fake, notify);

        for (struct list *n; (n = list_first(&f->events));) {
                struct entry *entry = container_of(n, struct entry, events);
                struct driver_health how = { entry->status, entry->reason, STR("") };

                list_remove(n);
                if (entry->message)
                        how.message = str_from(entry->message);
                driver_notify_died(&f->driver, entry->id, &how);
        }
}

bool driver_fake_kill(struct driver_fake_world *w, struct str id, const struct driver_health *how)
{
        struct entry *entry = entry_find(w, id);

        if (!entry)
                return false;
        ASSERT(how->status == RUNTIME_ENDED || how->status == RUNTIME_DEAD);
        fake__agent_stop(entry);
        entry->status = how->status;
        entry->reason = how->reason;
        free(entry->message);
        entry->message = xstrndup_str(how->message);
        list_remove(&entry->events);
        if (entry->watched_by) {
                list_append(&entry->watched_by->events, &entry->events);
                net_task_queue(entry->watched_by->driver.loop, &entry->watched_by->notify);
        }
        return true;
}

bool driver_fake_vanish(struct driver_fake_world *w, struct str id)
{
        struct entry *entry = entry_find(w, id);

        if (entry)
                fake__entry_free(w, entry);
        return entry;
}

bool driver_fake_spoil(struct driver_fake_world *w, struct str id)
{
        struct entry *entry = entry_find(w, id);

        if (entry)
                entry->record.n /= 2;
        return entry;
}

int driver_fake_status(const struct driver_fake_world *w, struct str id)
{
        const struct entry *entry = entry_find(w, id);

        return entry ? entry->status : RUNTIME_GONE;
}

size_t driver_fake_count(const struct driver_fake_world *w)
{
        return w->sandboxes.n;
}
