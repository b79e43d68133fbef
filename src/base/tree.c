/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tree.h"

#include <sys/random.h>

#include "base/banned.h"

void tree_init(struct tree *t)
{
        *t = (struct tree){ 0 };
        /* The kernel's pool is initialised long before we start. */
        ASSERT(getrandom(&t->_random, sizeof(t->_random), 0) == sizeof(t->_random));
}

/* SplitMix64. Priorities need to be unpredictable only for those who choose keys. */
static uint64_t next_random(struct tree *t)
{
        uint64_t z = t->_random += 0x9e3779b97f4a7c15ULL;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
        return z ^ z >> 31;
}

void tree_init_from(struct tree *t, struct tree *source)
{
        *t = (struct tree){ ._random = next_random(source) };
}

static uint32_t size_of(const struct tree_node *n)
{
        return n ? n->_size : 0;
}

/* --- searches --- */

struct tree_node *tree_get(const struct tree *t, struct str key)
{
        struct tree_node *n = tree_from(t, key);

        return n && str_eq(n->key, key) ? n : NULL;
}

/* The first node whose key compares to `key` as at least `min`. */
static struct tree_node *first_at_least(const struct tree *t, struct str key, int min)
{
        struct tree_node *found = NULL;

        for (struct tree_node *n = t->_root; n;) {
                if (str_cmp(n->key, key) >= min) {
                        found = n;
                        n = n->_left;
                } else {
                        n = n->_right;
                }
        }
        return found;
}

struct tree_node *tree_from(const struct tree *t, struct str key)
{
        return first_at_least(t, key, 0);
}

struct tree_node *tree_after(const struct tree *t, struct str key)
{
        return first_at_least(t, key, 1);
}

/* --- ranks --- */

struct tree_node *tree_nth(const struct tree *t, size_t i)
{
        struct tree_node *n = t->_root;

        while (n && i != size_of(n->_left)) {
                if (i < size_of(n->_left)) {
                        n = n->_left;
                } else {
                        i -= (size_t) size_of(n->_left) + 1;
                        n = n->_right;
                }
        }
        return n;
}

static uint32_t rank_below(const struct tree_node *n, struct str key)
{
        uint32_t before = 0;

        while (n) {
                if (str_cmp(n->key, key) < 0) {
                        before += size_of(n->_left) + 1;
                        n = n->_right;
                } else {
                        n = n->_left;
                }
        }
        return before;
}

size_t tree_rank(const struct tree *t, struct str key)
{
        return rank_below(t->_root, key);
}

/* The nodes of ranks i to end - 1 of the subtree, as far as they exist. */
static size_t range_below(struct tree_node *n, size_t i, size_t end, struct tree_node **ret)
{
        size_t before, found = 0;

        if (!n || i >= n->_size || i >= end)
                return 0;
        before = size_of(n->_left);
        if (i < before)
                found = range_below(n->_left, i, end, ret);
        if (i <= before && before < end)
                ret[found++] = n;
        if (end > before + 1)
                found += range_below(n->_right, i > before ? i - before - 1 : 0, end - before - 1,
                                     ret + found);
        return found;
}

size_t tree_range(const struct tree *t, size_t i, size_t n, struct tree_node **ret)
{
        return i < t->n ? range_below(t->_root, i, i + MIN_OF(n, t->n - i), ret) : 0;
}

/* --- changes --- */

/* Splits the tree `below` along the new node's key; the halves become its children. The number of nodes
 * on either side is computed first, so that sizes can be set on the way down. */
static void split(struct tree_node *below, struct tree_node *n)
{
        struct tree_node **left = &n->_left, **right = &n->_right;
        uint32_t to_left = rank_below(below, n->key), to_right = size_of(below) - to_left;

        n->_size = size_of(below) + 1;
        while (below) {
                if (str_cmp(below->key, n->key) < 0) {
                        *left = below;
                        left = &below->_right;
                        below->_size = to_left;
                        to_left -= size_of(below->_left) + 1;
                        below = below->_right;
                } else {
                        *right = below;
                        right = &below->_left;
                        below->_size = to_right;
                        to_right -= size_of(below->_right) + 1;
                        below = below->_left;
                }
        }
        *left = NULL;
        *right = NULL;
}

void tree_add(struct tree *t, struct tree_node *n, struct str key)
{
        struct tree_node **at = &t->_root, *below;

        ASSERT(n->_size == 0 && t->n < UINT32_MAX && !tree_get(t, key));
        *n = (struct tree_node){ .key = key, ._priority = (uint32_t) next_random(t) };
        while (*at && (*at)->_priority >= n->_priority) {
                (*at)->_size++;
                at = str_cmp(key, (*at)->key) < 0 ? &(*at)->_left : &(*at)->_right;
        }
        below = *at;
        *at = n;
        split(below, n);
        t->n++;
}

/* Joins two trees; all keys of the left one come before those of the right one. */
static void merge(struct tree_node **at, struct tree_node *left, struct tree_node *right)
{
        while (left && right) {
                uint32_t both = left->_size + right->_size;

                if (left->_priority >= right->_priority) {
                        *at = left;
                        at = &left->_right;
                        left->_size = both;
                        left = *at;
                } else {
                        *at = right;
                        at = &right->_left;
                        right->_size = both;
                        right = *at;
                }
        }
        *at = left ? left : right;
}

void tree_remove(struct tree *t, struct tree_node *n)
{
        struct tree_node **at = &t->_root;

        if (n->_size == 0)
                return;
        while (*at != n) {
                (*at)->_size--;
                at = str_cmp(n->key, (*at)->key) < 0 ? &(*at)->_left : &(*at)->_right;
        }
        merge(at, n->_left, n->_right);
        n->_size = 0;
        t->n--;
}

struct tree_node *tree_take_any(struct tree *t)
{
        struct tree_node *n = t->_root;

        if (n)
                tree_remove(t, n);
        return n;
}
