/* SPDX-License-Identifier: Apache-2.0 */
#include "service/tenants.h"

#include <endian.h>

#include "base/base.h"
#include "model/limits.h"
#include "model/text.h"

void tenants_init(struct tenants *t)
{
        *t = (struct tenants){ 0 };
        map_init(&t->by_name);
}

static void free_named(struct tenants *t)
{
        for (size_t i = 0; i < t->n_named; i++)
                free((char *) t->named[i].tenant.p);
        free(t->named);
        t->named = NULL;
        t->n_named = 0;
}

void tenants_done(struct tenants *t)
{
        ASSERT(t->by_name.n == 0);
        free_named(t);
        map_done(&t->by_name);
}

/* --- limits --- */

int tenants_set_limits(struct tenants *t, const struct service_limits *l, struct err *e)
{
        for (size_t i = 0; i < l->n_tenants; i++)
                if (!text_is_clean(l->tenants[i].tenant, NAME_MAX_TEXT))
                        return err_set(e, ERR_INVALID, "quota %zu: %s is not the name of a tenant",
                                       i, QUOTED(l->tenants[i].tenant));
        free_named(t);
        t->each = l->each;
        t->sandboxes_max = l->sandboxes_max;
        t->named = xcalloc(l->n_tenants ? l->n_tenants : 1, sizeof(*t->named));
        for (size_t i = 0; i < l->n_tenants; i++) {
                struct str name = l->tenants[i].tenant;

                t->named[i] = l->tenants[i];
                t->named[i].tenant = str_of(xstrndup_str(name), name.n);
        }
        t->n_named = l->n_tenants;
        return 0;
}

/* A linear search: named quotas are lines of a configuration file. */
static const struct quota *quota_of(const struct tenants *t, struct str tenant)
{
        for (size_t i = 0; i < t->n_named; i++)
                if (str_eq(t->named[i].tenant, tenant))
                        return &t->named[i].quota;
        return &t->each;
}

uint64_t tenants_snapshot_quota(const struct tenants *t, struct str tenant)
{
        return quota_of(t, tenant)->snapshots;
}

/* --- tenants --- */

static struct tenant *tenant_find(const struct tenants *t, struct str name)
{
        struct map_node *n = map_get(&t->by_name, name);

        return n ? container_of(n, struct tenant, by_name) : NULL;
}

static struct tenant *tenant_ref(struct tenants *t, struct str name)
{
        struct tenant *x = tenant_find(t, name);

        if (!x) {
                x = xcalloc(1, sizeof(*x) + name.n + 1);
                memcpy(x->name, name.p, name.n);
                tree_init(&x->tombstones);
                map_add(&t->by_name, &x->by_name, str_of(x->name, name.n));
        }
        x->holders++;
        return x;
}

static void tenant_unref(struct tenants *t, struct tenant *x)
{
        if (--x->holders > 0)
                return;
        map_remove(&t->by_name, &x->by_name);
        free(x);
}

/* --- charges --- */

/* A quota of cpu, memory or pids is one on the sum of limits, so it needs limits to add up. */
static int check_quota(const struct quota *q, const struct quota *used,
                       const struct resources *more, struct err *e)
{
        uint64_t cpu = (uint64_t) more->cpu_milli, memory = (uint64_t) more->memory_bytes;
        uint64_t pids = (uint64_t) more->pids;
        const struct {
                const char *what;
                uint64_t limit, used, more;
                bool unlimited;
        } sums[] = {
                { "sandboxes", q->sandboxes, used->sandboxes, 1, false },
                { "cpu", q->cpu_milli, used->cpu_milli, cpu, cpu == 0 },
                { "memory", q->memory_bytes, used->memory_bytes, memory, memory == 0 },
                { "pids", q->pids, used->pids, pids, pids == 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(sums); i++) {
                if (sums[i].limit == 0)
                        continue;
                if (sums[i].unlimited)
                        return err_set(
                                e, ERR_INVALID,
                                "the tenant has a quota of %s, so resourceLimits must set %s",
                                sums[i].what, sums[i].what);
                if (sums[i].used + sums[i].more > sums[i].limit)
                        return err_set(e, ERR_EXHAUSTED,
                                       "the tenant's quota of %s is used up: %llu of %llu",
                                       sums[i].what, (unsigned long long) sums[i].used,
                                       (unsigned long long) sums[i].limit);
        }
        return 0;
}

void tenants_charge_existing(struct tenants *t, struct str tenant, const struct resources *limits,
                             struct charge *ret)
{
        struct charge c = { .tenant = tenant_ref(t, tenant),
                            .cpu_milli = (uint64_t) limits->cpu_milli,
                            .memory_bytes = (uint64_t) limits->memory_bytes,
                            .pids = (uint64_t) limits->pids };

        c.tenant->used.sandboxes++;
        c.tenant->used.cpu_milli += c.cpu_milli;
        c.tenant->used.memory_bytes += c.memory_bytes;
        c.tenant->used.pids += c.pids;
        t->sandboxes++;
        *ret = c;
}

int tenants_charge(struct tenants *t, struct str tenant, const struct resources *limits,
                   struct charge *ret, struct err *e)
{
        static const struct quota nothing;
        const struct tenant *x = tenant_find(t, tenant);
        int r;

        if (t->sandboxes_max && t->sandboxes >= t->sandboxes_max)
                return err_set(e, ERR_EXHAUSTED, "this server has its maximum of %llu sandboxes",
                               (unsigned long long) t->sandboxes);
        r = check_quota(quota_of(t, tenant), x ? &x->used : &nothing, limits, e);
        if (r == 0)
                tenants_charge_existing(t, tenant, limits, ret);
        return r;
}

void tenants_uncharge(struct tenants *t, struct charge *c)
{
        struct quota *used = c->tenant ? &c->tenant->used : NULL;

        if (!used)
                return;
        ASSERT(used->sandboxes > 0 && t->sandboxes > 0);
        used->sandboxes--;
        used->cpu_milli -= c->cpu_milli;
        used->memory_bytes -= c->memory_bytes;
        used->pids -= c->pids;
        t->sandboxes--;
        tenant_unref(t, c->tenant);
        *c = (struct charge){ 0 };
}

/* --- tombstones --- */

void tenants_add_tombstone(struct tenants *t, struct tombstone *tomb, struct str tenant,
                           int64_t since_ms)
{
        if (tomb->tenant)
                return;
        tomb->tenant = tenant_ref(t, tenant);
        tomb->key[0] = htobe64((uint64_t) since_ms);
        tomb->key[1] = htobe64(t->numbers++);
        tree_add(&tomb->tenant->tombstones, &tomb->node,
                 str_of((const char *) tomb->key, sizeof(tomb->key)));
}

void tenants_remove_tombstone(struct tenants *t, struct tombstone *tomb)
{
        if (!tomb->tenant)
                return;
        tree_remove(&tomb->tenant->tombstones, &tomb->node);
        tenant_unref(t, tomb->tenant);
        tomb->tenant = NULL;
}

struct tombstone *tenants_excess_tombstone(const struct tombstone *tomb, size_t max)
{
        const struct tree *tombstones = tomb->tenant ? &tomb->tenant->tombstones : NULL;
        struct tree_node *n = tombstones && tombstones->n > max ? tree_from(tombstones, STR(""))
                                                                : NULL;

        return n ? container_of(n, struct tombstone, node) : NULL;
}
