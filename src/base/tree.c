/* SPDX-License-Identifier: Apache-2.0 */
#include "base/tree.h"

#include <sys/random.h>

#include "base/banned.h"

void tree_init(struct tree *t)
{
        *t = (struct tree){ 0 };
        /* The kernel's pool is ready long before us. */
        ASSERT(getrandom(&t->_random, sizeof(t->_random), 0) == sizeof(t->_random));
}

/* SplitMix64. Ranks need not be secret for long, only unknown to who chooses keys. */
static uint64_t next_rank(struct tree *t)
{
        uint64_t z = t->_random += 0x9e3779b97f4a7c15ULL;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
        return z ^ z >> 31;
}

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

/* Below `at` the tree is split along the key; the halves become the new node's children. */
static void split(struct tree_node *below, struct tree_node *n)
{
        struct tree_node **left = &n->_left, **right = &n->_right;

        while (below) {
                if (str_cmp(below->key, n->key) < 0) {
                        *left = below;
                        left = &below->_right;
                        below = below->_right;
                } else {
                        *right = below;
                        right = &below->_left;
                        below = below->_left;
                }
        }
        *left = NULL;
        *right = NULL;
}

void tree_add(struct tree *t, struct tree_node *n, struct str key)
{
        struct tree_node **at = &t->_root, *below;

        ASSERT(!n->_in && !tree_get(t, key));
        *n = (struct tree_node){ .key = key, ._rank = next_rank(t), ._in = true };
        while (*at && (*at)->_rank >= n->_rank)
                at = str_cmp(key, (*at)->key) < 0 ? &(*at)->_left : &(*at)->_right;
        below = *at;
        *at = n;
        split(below, n);
        t->n++;
}

/* Puts two trees, all keys of the left below all of the right, in one place. */
static void merge(struct tree_node **at, struct tree_node *left, struct tree_node *right)
{
        while (left && right) {
                if (left->_rank >= right->_rank) {
                        *at = left;
                        at = &left->_right;
                        left = left->_right;
                } else {
                        *at = right;
                        at = &right->_left;
                        right = right->_left;
                }
        }
        *at = left ? left : right;
}

void tree_remove(struct tree *t, struct tree_node *n)
{
        struct tree_node **at = &t->_root;

        if (!n->_in)
                return;
        while (*at != n)
                at = str_cmp(n->key, (*at)->key) < 0 ? &(*at)->_left : &(*at)->_right;
        merge(at, n->_left, n->_right);
        n->_in = false;
        t->n--;
}

struct tree_node *tree_take_any(struct tree *t)
{
        struct tree_node *n = t->_root;

        if (n)
                tree_remove(t, n);
        return n;
}

static size_t height(const struct tree_node *n)
{
        size_t left, right;

        if (!n)
                return 0;
        left = height(n->_left);
        right = height(n->_right);
        return 1 + MAX_OF(left, right);
}

size_t tree_height(const struct tree *t)
{
        return height(t->_root);
}
