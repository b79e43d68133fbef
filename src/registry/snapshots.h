/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_REGISTRY_SNAPSHOTS_H
#define HUTCH_REGISTRY_SNAPSHOTS_H

/*
 * Which snapshots there are: records in the store under "hutch:snapshot:<id>", those of this node in memory
 * as well, as with sandboxes (registry/registry.h, whose rules about views, operations and writes of
 * unknown outcome hold here, too). They are read by registry_load.
 *
 * There are few: the service bounds them (service/service.h). So they have one order, newest first,
 * and no indexes: a list looks at each.
 *
 * A new record whose write has no known outcome may be in the store although its add was refused; the
 * next start finds it being created, and undoes that.
 */

#include "model/snapshot.h"
#include "registry/registry.h"

/* All of them: the record is taken whatever happens. */
struct snapshots_write {
        struct registry_req req;
};

/* ERR_EXISTS if the id is there. It is seen from `done` on. */
void snapshots_add(struct registry *r, struct snapshots_write *w, struct snapshot *record);

/* `next` is a changed copy of the present record; its version becomes one more than the present.
 * ERR_NOT_FOUND if there is none, ERR_CONFLICT if somebody else wrote meanwhile: then his record is what
 * everybody sees. Until `done` it is the old one. */
void snapshots_update(struct registry *r, struct snapshots_write *w, struct snapshot *next);

/* What is not there is removed already. */
void snapshots_remove(struct registry *r, struct snapshots_write *w, struct str id);

/* NULL if there is none. Good until the caller returns to the loop. */
const struct snapshot *snapshots_get(const struct registry *r, struct str id);

/* In order of ids; the null view begins. NULL at the end. */
const struct snapshot *snapshots_next(const struct registry *r, struct str after);

/* Of a tenant, or of all for the null view. */
size_t snapshots_count(const struct registry *r, struct str tenant);

/* --- lists, newest first --- */

struct snapshots_query {
        struct str tenant; /* null views: of all, any */
        struct str sandbox_id;
        struct str name;
        unsigned states; /* a set (STATE_SET); 0: all */
        uint64_t skip;
        unsigned limit; /* 1 to REGISTRY_PAGE_MAX */
};

struct snapshots_page {
        const struct snapshot *items[REGISTRY_PAGE_MAX];
        unsigned n;
        uint64_t total; /* that match, on all pages */
};

void snapshots_list(const struct registry *r, const struct snapshots_query *q,
                    struct snapshots_page *ret);

#endif
