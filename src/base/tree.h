/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_TREE_H
#define HUTCH_BASE_TREE_H

/*
 * An intrusive ordered map: objects sorted by key, with the nodes embedded in the objects.
 *
 *         struct entry { struct tree_node node; … };
 *
 *         for (n = tree_from(&t, prefix); n && str_starts_with(n->key, prefix);
 *              n = tree_after(&t, n->key))
 *                 … container_of(n, struct entry, node) …
 *
 * Keys are bytes, ordered by str_cmp. The key is a view into the object and must not change while the
 * object is in the tree.
 *
 * It is a treap: a search tree by key and a heap by a random priority, so its shape is that of a
 * tree filled in random order, whatever the keys are and whoever chose them: search, addition and
 * removal take O(log n) steps. Each node knows the size of its subtree, so the i-th key and the rank of
 * a key are found as fast. There is no iterator that a change could invalidate: a loop requests the
 * next key, which costs another search, or for a range of ranks.
 */

#include "base/compiler.h"
#include "base/str.h"

struct tree_node {
        struct tree_node *_left;
        struct tree_node *_right;
        struct str key;
        uint32_t _priority;
        uint32_t _size; /* of the subtree that begins here; 0: in no tree */
};

struct tree {
        struct tree_node *_root;
        size_t n;
        uint64_t _random;
};

/* A tree owns no memory, so there is no tree_done. */
void tree_init(struct tree *t);

/* The same with randomness from another tree instead of the kernel, for many small trees. */
void tree_init_from(struct tree *t, struct tree *source);

struct tree_node *tree_get(const struct tree *t, struct str key);

/* The first node at or after the key; the first one after it. NULL if there is none. */
struct tree_node *tree_from(const struct tree *t, struct str key);
struct tree_node *tree_after(const struct tree *t, struct str key);

/* --- ranks, from 0 --- */

/* The node of rank i, or NULL. */
struct tree_node *tree_nth(const struct tree *t, size_t i);

/* How many keys come before this one, which need not exist. */
size_t tree_rank(const struct tree *t, struct str key);

/* Up to n nodes from rank i on, in order; returns how many. O(log + n) steps. */
size_t tree_range(const struct tree *t, size_t i, size_t n, struct tree_node **ret);

/* --- changes --- */

/* The key must not be in the tree yet, and the node in no tree. */
void tree_add(struct tree *t, struct tree_node *n, struct str key);

/* A no-op for a zeroed node that is in no tree. */
void tree_remove(struct tree *t, struct tree_node *n);

/* Removes and returns any node, or NULL. For freeing everything. */
struct tree_node *tree_take_any(struct tree *t);

#endif
