/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "engine/worker.h"

struct undoing {
        struct list node;
        char id[SANDBOX_ID_MAX + 1];
};

/* What an engine that is away can't remove now; a few thousand of them are a few hundred kilobytes, and
 * what is forgotten past that is found by scan. */
#define UNDOINGS_MAX 4096

void undo_later(struct worker *w, struct str id)
{
        struct undoing *u;
        size_t n = 0;

        list_for_each (x, &w->undoings)
                n += !str_eq(str_from(container_of(x, struct undoing, node)->id), id)
                             ? 1
                             : UNDOINGS_MAX;
        if (n >= UNDOINGS_MAX)
                return;
        u = xnew(struct undoing);
        memcpy(u->id, id.p, id.n);
        list_append(&w->undoings, &u->node);
}

void undo_all(struct worker *w)
{
        struct list todo;

        list_init(&todo);
        list_for_each (n, &w->undoings) {
                list_remove(n);
                list_append(&todo, n);
        }
        list_for_each (n, &todo) {
                struct undoing *u = container_of(n, struct undoing, node);

                list_remove(n);
                if (!w->ending && !job_is_about(w, str_from(u->id)))
                        job_undo(w, str_from(u->id));
                free(u);
        }
}
