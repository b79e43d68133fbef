/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/shares.h"

#include "base/base.h"

struct tenant {
        struct map_node by_name;
        struct list node;     /* of those with commands that wait */
        struct list commands; /* struct share: that wait, oldest first */
        size_t n_joined, n_running, n_waiting, waiting_bytes;
        char name[];
};

void shares_init(struct shares *s, const struct shares_config *config)
{
        *s = (struct shares){ .config = *config };
        map_init(&s->_tenants);
        list_init(&s->_waiting);
}

void shares_done(struct shares *s)
{
        ASSERT(s->_tenants.n == 0);
        map_done(&s->_tenants);
}

/* --- tenants --- */

static struct tenant *tenant_get(struct shares *s, struct str name)
{
        struct map_node *n = map_get(&s->_tenants, name);
        struct tenant *t;

        if (n)
                return container_of(n, struct tenant, by_name);
        t = xcalloc(1, sizeof(*t) + name.n + 1);
        list_init(&t->node);
        list_init(&t->commands);
        if (name.n > 0)
                memcpy(t->name, name.p, name.n);
        map_add(&s->_tenants, &t->by_name, str_of(t->name, name.n));
        return t;
}

static bool tenant_may_run(const struct shares *s, const struct tenant *t)
{
        const struct shares_config *c = &s->config;
        const size_t reserve = MIN_OF(c->per_tenant, c->in_flight - c->per_tenant);
        const size_t free_slots = c->in_flight - s->n_running;

        if (t->n_running == 0)
                return free_slots > 0;
        return t->n_running < c->per_tenant && free_slots > reserve;
}

/* --- commands --- */

void share_join(struct shares *s, struct share *c, struct str tenant, size_t bytes)
{
        ASSERT(c->state == SHARE_NONE);
        list_init(&c->_node);
        c->_tenant = tenant_get(s, tenant);
        c->_tenant->n_joined++;
        c->_bytes = bytes;
        c->state = SHARE_JOINED;
}

/* Back to SHARE_JOINED. */
static void give_back(struct shares *s, struct share *c)
{
        struct tenant *t = c->_tenant;

        if (c->state == SHARE_RUNNING) {
                s->n_running--;
                t->n_running--;
        }
        if (c->state == SHARE_WAITING) {
                list_remove(&c->_node);
                s->n_waiting--;
                s->waiting_bytes -= c->_bytes;
                t->n_waiting--;
                t->waiting_bytes -= c->_bytes;
                if (t->n_waiting == 0)
                        list_remove(&t->node);
        }
        c->state = SHARE_JOINED;
}

void share_leave(struct shares *s, struct share *c)
{
        struct tenant *t = c->_tenant;

        if (c->state == SHARE_NONE)
                return;
        give_back(s, c);
        c->state = SHARE_NONE;
        c->_tenant = NULL;
        if (--t->n_joined > 0)
                return;
        map_remove(&s->_tenants, &t->by_name);
        free(t);
}

bool share_may_run(const struct shares *s, const struct share *c)
{
        return c->_tenant->n_waiting == 0 && tenant_may_run(s, c->_tenant);
}

void share_run(struct shares *s, struct share *c)
{
        ASSERT(c->state == SHARE_JOINED || c->state == SHARE_WAITING);
        give_back(s, c);
        c->state = SHARE_RUNNING;
        s->n_running++;
        c->_tenant->n_running++;
}

void share_wait(struct shares *s, struct share *c)
{
        struct tenant *t = c->_tenant;

        ASSERT(c->state == SHARE_JOINED);
        c->state = SHARE_WAITING;
        list_append(&t->commands, &c->_node);
        if (t->n_waiting++ == 0)
                list_append(&s->_waiting, &t->node);
        t->waiting_bytes += c->_bytes;
        s->n_waiting++;
        s->waiting_bytes += c->_bytes;
}

/* --- choices --- */

/* At most as many tenants are passed over as commands run: one that may not run runs something. */
struct share *shares_next(struct shares *s)
{
        if (s->n_running >= s->config.in_flight)
                return NULL;
        list_for_each (n, &s->_waiting) {
                struct tenant *t = container_of(n, struct tenant, node);

                if (!tenant_may_run(s, t))
                        continue;
                list_remove(n);
                list_append(&s->_waiting, n); /* its next turn comes after all others */
                return container_of(list_first(&t->commands), struct share, _node);
        }
        return NULL;
}

struct share *shares_any_waiting(const struct shares *s)
{
        struct list *n = list_first(&s->_waiting);

        return n ? container_of(list_first(&container_of(n, struct tenant, node)->commands),
                                struct share, _node)
                 : NULL;
}

/* The tenant's last command, because it is the one that would have waited longest. */
struct share *share_too_many(struct shares *s, struct share *c)
{
        const bool by_bytes = s->waiting_bytes + c->_bytes > s->config.waiting_bytes;
        const struct tenant *own = c->_tenant, *most = NULL;
        /* What the tenant would have. One that has less does not give way. */
        size_t amount = by_bytes ? own->waiting_bytes + c->_bytes : own->n_waiting + 1;

        if (!by_bytes && s->n_waiting < s->config.waiting_max)
                return NULL;
        list_for_each (n, &s->_waiting) {
                const struct tenant *t = container_of(n, struct tenant, node);
                size_t its = by_bytes ? t->waiting_bytes : t->n_waiting;

                if (t == own || its < amount)
                        continue;
                most = t;
                amount = its;
        }
        return most ? container_of(list_last(&most->commands), struct share, _node) : c;
}
