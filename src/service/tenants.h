/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_SERVICE_TENANTS_H
#define HUTCH_SERVICE_TENANTS_H

/*
 * What each tenant uses of what it may use, and its tombstones in the order of their age.
 *
 * A sandbox is charged when its create begins, before anything is written, and until its record
 * leaves the live states or turns out never to have been: one charge, given back once, whatever way
 * that goes. So parallel creates can't pass a quota together, and the sums are always those of the
 * live records and the creates under way. Sandboxes that are there already (at the start, or found
 * in the runtime) are charged even above a quota.
 */

#include "base/map.h"
#include "base/tree.h"
#include "service/service.h"

struct tenant {
        struct map_node by_name;
        struct quota used;
        struct tree tombstones;
        size_t holders; /* charges and graves: without any, the tenant is forgotten */
        char name[];
};

struct tenants {
        struct map by_name;
        struct quota each;
        struct tenant_quota *named; /* ours */
        size_t n_named;
        uint64_t sandboxes_max, sandboxes;
        uint64_t numbers;
};

/* What one sandbox costs. Zeroed: nothing. */
struct charge {
        struct tenant *tenant;
        uint64_t cpu_milli, memory_bytes;
};

struct tombstone {
        struct tree_node node;
        unsigned char key[16];
        struct tenant *tenant;
};

void tenants_init(struct tenants *t);
void tenants_done(struct tenants *t);
int tenants_set_limits(struct tenants *t, const struct service_limits *l, struct err *e) must_check;

/* ERR_EXHAUSTED, and the message says which limit; ERR_INVALID if the sandbox has no limit of what the
 * tenant has a quota of: waiting would not help. */
int tenants_charge(struct tenants *t, struct str tenant, const struct resources *limits,
                   struct charge *ret, struct err *e) must_check;

/* What is there is there. */
void tenants_charge_existing(struct tenants *t, struct str tenant, const struct resources *limits,
                             struct charge *ret);

/* How many snapshots a tenant may have; 0: as many as there is room for. */
uint64_t tenants_snapshot_quota(const struct tenants *t, struct str tenant);

/* Does nothing to an empty charge; empties it. */
void tenants_uncharge(struct tenants *t, struct charge *c);

/* A tombstone since that wall time; nothing if it lies there already. */
void tenants_add_tombstone(struct tenants *t, struct tombstone *g, struct str tenant,
                           int64_t since_ms);
void tenants_remove_tombstone(struct tenants *t, struct tombstone *g);

/* The oldest grave of this one's tenant if there are more than max, else NULL. */
struct tombstone *tenants_excess_tombstone(const struct tombstone *g, size_t max);

#endif
