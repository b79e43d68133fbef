/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_REGISTRY_SNAPSHOTS_H
#define HUTCH_REGISTRY_SNAPSHOTS_H

/*
 * Which snapshots exist: records in the store under "hutch:snapshot:<id>", those of this node also in memory. The rules
 * of registry/registry.h about views, operations and uncertain writes apply. registry_load reads them.
 *
 * There are few: the service limits them (service/service.h). So they have one order, newest first, and no indexes.
 *
 * A new record whose write is uncertain may be in the store although its add was refused; the next start finds it
 * Creating, and undoes it.
 */

#include "model/snapshot.h"
#include "registry/registry.h"

/* All of them take ownership of the record. */
struct snapshots_write {
        struct registry_req req;
};

/* ERR_EXISTS if the id exists. Visible from `done` on. */
void snapshots_add(struct registry *r, struct snapshots_write *w, struct snapshot *record);

/* `next` is a changed copy of the present record; its version becomes one more. ERR_NOT_FOUND if there is none.
 * ERR_CONFLICT if another process wrote meanwhile: then that record is visible from `done` on. */
void snapshots_update(struct registry *r, struct snapshots_write *w, struct snapshot *next);

/* 0 if there is none. */
void snapshots_remove(struct registry *r, struct snapshots_write *w, struct str id);

/* NULL if there is none. Valid until the caller returns to the loop. */
const struct snapshot *snapshots_get(const struct registry *r, struct str id);

/* In order of ids; the null view begins. NULL at the end. */
const struct snapshot *snapshots_next(const struct registry *r, struct str after);

/* The null view counts all tenants. */
size_t snapshots_count(const struct registry *r, struct str tenant);

/* --- lists, newest first --- */

struct snapshots_query {
        struct str tenant; /* null views: any */
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
