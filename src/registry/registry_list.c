/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "model/labels.h"
#include "registry/registry_impl.h"

/*
 * A query becomes a few disjoint ordered trees (runs), which are merged, and a filter for what the trees do not settle.
 *
 * Without a filter everything in the trees matches: the total is the sum of their sizes, and the position where the page
 * begins is computed. Otherwise the trees with the fewest records are walked from their beginning, because only a look at
 * each record tells how many match.
 */

#define LIVE_STATES (ALL_STATES & ~FINAL_STATES)

enum {
        ALL_STATES = (1u << STATE_MAX_) - 1,
        FINAL_STATES = STATE_SET(STATE_TERMINATED) | STATE_SET(STATE_FAILED),
};

static const unsigned group_states[GROUP_MAX_] = {
        [GROUP_LIVE] = LIVE_STATES,
        [GROUP_FINAL] = FINAL_STATES,
};

struct plan {
        const struct tree *runs[STATE_MAX_];
        unsigned n;
        bool filter_states; /* what the trees do not settle */
        bool filter_labels;
};

static void plan_add(struct plan *p, const struct tree *t)
{
        if (t->n > 0)
                p->runs[p->n++] = t;
}

static uint64_t plan_size(const struct plan *p)
{
        uint64_t n = 0;

        for (unsigned i = 0; i < p->n; i++)
                n += p->runs[i]->n;
        return n;
}

/* Exactly the requested states. */
static struct plan plan_states(const struct index *x, unsigned states)
{
        struct plan p = { 0 };

        for (unsigned g = 0; g < GROUP_MAX_; g++) {
                unsigned requested = states & group_states[g];

                if (requested == group_states[g]) {
                        plan_add(&p, &x->groups[g]);
                        continue;
                }
                for (unsigned s = 0; s < STATE_MAX_; s++)
                        if (requested & STATE_SET(s))
                                plan_add(&p, &x->states[s]);
        }
        return p;
}

static struct plan make_plan(const struct index *x, unsigned states, const struct json_map *labels)
{
        struct plan best = plan_states(x, states);

        best.filter_labels = labels->n > 0;
        for (size_t i = 0; i < labels->n; i++) {
                const struct bucket *b = index_bucket(x, &labels->items[i]);
                struct plan p = { .filter_labels = labels->n > 1 };

                /* The records of the label, in the groups that the states are in. */
                for (unsigned g = 0; b && g < GROUP_MAX_; g++) {
                        unsigned requested = states & group_states[g];

                        if (requested)
                                plan_add(&p, &b->groups[g]);
                        p.filter_states |= requested && requested != group_states[g];
                }
                /* At equal size the label leaves no more to filter. */
                if (plan_size(&p) <= plan_size(&best))
                        best = p;
        }
        return best;
}

/* --- merging --- */

#define CHUNK 64

struct run {
        const struct tree *tree;
        size_t next;              /* position after the chunk */
        unsigned at, n;           /* in the chunk */
        struct tree_node **chunk; /* CHUNK */
};

struct merge {
        struct run runs[STATE_MAX_];
        unsigned n;
        uint64_t taken;
        struct tree_node *chunks[STATE_MAX_][CHUNK];
};

static struct entry *merge_next(struct merge *m)
{
        struct tree_node *first = NULL;
        struct run *from = NULL;

        for (unsigned i = 0; i < m->n; i++) {
                struct run *run = &m->runs[i];

                if (run->at == run->n) {
                        run->at = 0;
                        run->n = (unsigned) tree_range(run->tree, run->next, CHUNK, run->chunk);
                        run->next += run->n;
                }
                if (run->n > 0 && (!first || str_cmp(run->chunk[run->at]->key, first->key) < 0)) {
                        first = run->chunk[run->at];
                        from = run;
                }
        }
        if (!first)
                return NULL;
        from->at++;
        m->taken++;
        return entry_of_order(first);
}

/* The node at a position of the merged runs, if it is in this tree: positions grow with keys, so a binary search in each
 * tree finds it. */
static struct tree_node *find_in_run(const struct plan *p, const struct tree *t, uint64_t position)
{
        size_t low = 0, high = t->n;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                struct tree_node *n = tree_nth(t, middle);
                uint64_t is = 0;

                for (unsigned i = 0; i < p->n; i++)
                        is += tree_rank(p->runs[i], n->key);
                if (is == position)
                        return n;
                if (is < position)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}

/* Positions each run so that `skip` records lie before. */
static void merge_begin(struct merge *m, const struct plan *p, uint64_t skip)
{
        struct tree_node *first = NULL;

        m->n = p->n;
        m->taken = 0;
        for (unsigned i = 0; p->n > 1 && skip > 0 && !first && i < p->n; i++)
                first = find_in_run(p, p->runs[i], skip);
        for (unsigned i = 0; i < p->n; i++) {
                m->runs[i] = (struct run){ .tree = p->runs[i], .chunk = m->chunks[i] };
                m->runs[i].next = first ? tree_rank(p->runs[i], first->key) : (size_t) skip;
        }
}

/* --- lists --- */

static void list_filtered(const struct plan *p, const struct registry_query *q, unsigned states,
                          struct registry_page *ret)
{
        struct merge m;
        struct entry *entry;

        merge_begin(&m, p, 0);
        while ((entry = merge_next(&m))) {
                const struct sandbox *s = entry->record;

                if (p->filter_states && !(states & STATE_SET((unsigned) s->status.state)))
                        continue;
                if (p->filter_labels && !labels_match(&s->metadata, &q->metadata))
                        continue;
                if (ret->total >= q->skip && ret->n < q->limit)
                        ret->items[ret->n++] = s;
                ret->total++;
        }
        ret->examined = m.taken;
}

void registry_list(const struct registry *r, const struct registry_query *q,
                   struct registry_page *ret)
{
        records_list(&r->records, q, ret);
}

void records_list(const struct records *rs, const struct registry_query *q,
                  struct registry_page *ret)
{
        const struct index *x = records_index(rs, q->tenant);
        unsigned states = q->states ? q->states & ALL_STATES : LIVE_STATES;
        struct plan p;
        struct merge m;
        struct entry *entry;

        ASSERT(q->limit >= 1 && q->limit <= REGISTRY_PAGE_MAX);
        ret->n = 0;
        ret->total = 0;
        ret->examined = 0;
        if (!x)
                return;
        p = make_plan(x, states, &q->metadata);
        if (p.filter_states || p.filter_labels)
                return list_filtered(&p, q, states, ret);
        ret->total = plan_size(&p);
        if (q->skip >= ret->total)
                return;
        merge_begin(&m, &p, q->skip);
        while (ret->n < q->limit && (entry = merge_next(&m)))
                ret->items[ret->n++] = entry->record;
        ret->examined = m.taken;
}

size_t registry_count(const struct registry *r, struct str tenant, struct str driver,
                      enum state state)
{
        const struct index *x = records_index(&r->records, tenant);

        return x ? index_count(x, driver, state) : 0;
}
