/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_SERVICE_TENANTS_H
#define HUTCH_SERVICE_TENANTS_H

/*
 * What each tenant uses of its quota, and its tombstones by age.
 *
 * A sandbox is charged when its create begins, before the first write, and until its record leaves the live states or
 * the create fails. There is one charge per sandbox, and it is released once. So parallel creates can't exceed a quota
 * together, and the sums are always those of the live records and the creates in progress. Existing sandboxes (at the
 * start, or found in the runtime) are charged even above a quota.
 */

#include "base/map.h"
#include "base/tree.h"
#include "service/service.h"

struct tenant {
        struct map_node by_name;
        struct quota used;
        struct tree tombstones;
        size_t holders; /* charges and tombstones: without any, the tenant is freed */
        char name[];
};

struct tenants {
        struct map by_name;
        struct quota each;
        struct tenant_quota *named; /* owned */
        size_t n_named;
        uint64_t sandboxes_max, sandboxes;
        uint64_t numbers;
};

/* What one sandbox uses. Zeroed: nothing. */
struct charge {
        struct tenant *tenant;
        uint64_t cpu_milli, memory_bytes, pids;
};

struct tombstone {
        struct tree_node node;
        uint64_t key[2]; /* time and number, big-endian: the order of the tree */
        struct tenant *tenant;
};

void tenants_init(struct tenants *t);
void tenants_done(struct tenants *t);
int tenants_set_limits(struct tenants *t, const struct service_limits *l, struct err *e) must_check;

/* ERR_EXHAUSTED, and the message says which limit; ERR_INVALID if the sandbox has no limit for a resource of which the
 * tenant has a quota. */
int tenants_charge(struct tenants *t, struct str tenant, const struct resources *limits,
                   struct charge *ret, struct err *e) must_check;

/* Regardless of quotas. */
void tenants_charge_existing(struct tenants *t, struct str tenant, const struct resources *limits,
                             struct charge *ret);

/* 0: no quota. */
uint64_t tenants_snapshot_quota(const struct tenants *t, struct str tenant);

/* Clears the charge. Does nothing to a cleared one. */
void tenants_uncharge(struct tenants *t, struct charge *c);

/* Since that wall time. Does nothing if it was added already. */
void tenants_add_tombstone(struct tenants *t, struct tombstone *tomb, struct str tenant,
                           int64_t since_ms);
void tenants_remove_tombstone(struct tenants *t, struct tombstone *tomb);

/* The oldest tombstone of the same tenant if there are more than max, else NULL. */
struct tombstone *tenants_excess_tombstone(const struct tombstone *tomb, size_t max);

#endif
