/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "driver/engine/engine_impl.h"

struct watched {
        struct map_node by_id;
        struct list node;
        bool seen; /* by the comparison that runs */
        char id[SANDBOX_ID_MAX + 1];
};

static struct watched *watched_of(struct engine *g, struct str id)
{
        struct map_node *n = map_get(&g->watched, id);

        return n ? container_of(n, struct watched, by_id) : NULL;
}

static void watched_free(struct engine *g, struct watched *w)
{
        map_remove(&g->watched, &w->by_id);
        list_remove(&w->node);
        free(w);
}

void engine__watch(struct engine *g, struct str id)
{
        struct watched *w = watched_of(g, id);

        if (!w) {
                w = xnew(struct watched);
                memcpy(w->id, id.p, id.n);
                map_add(&g->watched, &w->by_id, str_of(w->id, id.n));
                list_append(&g->all_watched, &w->node);
        }
        w->seen = true; /* it was alive just now */
}

void engine__unwatch(struct engine *g, struct str id)
{
        struct watched *w = watched_of(g, id);

        if (w)
                watched_free(g, w);
}

void engine__unwatch_all(struct engine *g)
{
        list_for_each (n, &g->all_watched)
                watched_free(g, container_of(n, struct watched, node));
}

/* --- health --- */

struct driver_health engine__health(const struct engine_state *state)
{
        return (struct driver_health){
                .status = state->status,
                .reason = engine_reason_to_string(state->reason),
                .message = state->message,
        };
}

void engine__died(struct engine *g, struct str id, const struct engine_state *state)
{
        struct driver_health how = engine__health(state);

        if (!watched_of(g, id) || runtime_is_alive(how.status))
                return;
        engine__unwatch(g, id);
        driver_notify_died(&g->driver, id, &how);
}

/* --- missed events --- */

static void compare_part(struct engine_pending *p, const struct engine_message *m)
{
        struct engine *g = p->engine;
        scoped(sandbox_freep) struct sandbox *record = NULL;
        struct watched *w;
        struct err e;

        if (!m->found.p || sandbox_decode(m->found, &record, &e) < 0)
                return;
        w = watched_of(g, record->id);
        if (!w)
                return;
        w->seen = true;
        engine__died(g, record->id, m->state);
}

/* What the scan did not find was removed. The list is walked again after each notification: the watcher may unwatch
 * others. */
static void notify_gone(struct engine *g)
{
        static const struct engine_state gone = { .status = RUNTIME_GONE,
                                                  .reason = ENGINE_REASON_INVALID_ };
        bool notified = true;

        while (notified) {
                notified = false;
                list_for_each (n, &g->all_watched) {
                        struct watched *w = container_of(n, struct watched, node);
                        char id[sizeof(w->id)];

                        if (w->seen)
                                continue;
                        memcpy(id, w->id, sizeof(id));
                        engine__died(g, str_from(id), &gone);
                        notified = true;
                        break;
                }
        }
}

static void compared(struct engine_pending *p, struct engine_reply *r)
{
        struct engine *g = p->engine;
        bool again = g->compare_again;

        g->comparing = NULL;
        g->compare_again = false;
        if (again)
                return engine__compare(g);
        if (r->result == 0 && r->message->skipped == 0)
                notify_gone(g);
}

void engine__compare(struct engine *g)
{
        struct engine_request q = { .call = ENGINE_SCAN };

        if (g->comparing || g->closing) {
                g->compare_again = g->comparing != NULL;
                return;
        }
        if (list_empty(&g->all_watched))
                return;
        list_for_each (n, &g->all_watched)
                container_of(n, struct watched, node)->seen = false;
        g->comparing = engine__send(g, &q, compare_part, compared, NULL);
}
