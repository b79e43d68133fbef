/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_TREE_H
#define HUTCH_BASE_TREE_H

/*
 * Objects in the order of their keys, with the nodes inside the objects.
 *
 *         struct entry { struct tree_node node; … };
 *
 *         for (n = tree_from(&t, prefix); n && str_starts_with(n->key, prefix);
 *              n = tree_after(&t, n->key))
 *                 … container_of(n, struct entry, node) …
 *
 * Keys are bytes, ordered as str_cmp orders them. The key is a view into the object and must stay
 * as it is while the object is in the tree.
 *
 * It is a treap: a search tree by key and a heap by a random priority, so its shape is that of a
 * tree filled in random order, whatever the order of the keys and whoever chose them: a search, an
 * addition and a removal take O(log n) steps. Each node knows how many lie below it, so a place (the
 * i-th key, how many keys lie before one) is found in as many. There is no iterator that a change
 * could spoil: a walk asks for the next key, which costs another search, or for a range of places.
 */

#include "base/compiler.h"
#include "base/str.h"

struct tree_node {
        struct tree_node *_left;
        struct tree_node *_right;
        struct str key;
        uint32_t _priority;
        uint32_t _size; /* nodes of the subtree that begins here; 0: in no tree */
};

struct tree {
        struct tree_node *_root;
        size_t n;
        uint64_t _random;
};

/* Owns no memory: an empty tree needs no end. */
void tree_init(struct tree *t);

/* The same with randomness of another tree instead of the kernel's: for a great many small ones. */
void tree_init_from(struct tree *t, struct tree *source);

struct tree_node *tree_get(const struct tree *t, struct str key);

/* The first at or behind the key; the first behind it. NULL if there is none. */
struct tree_node *tree_from(const struct tree *t, struct str key);
struct tree_node *tree_after(const struct tree *t, struct str key);

/* --- places, from 0 --- */

/* NULL if there are not so many. */
struct tree_node *tree_nth(const struct tree *t, size_t i);

/* How many keys lie before this one, which need not be there. */
size_t tree_rank(const struct tree *t, struct str key);

/* Up to n nodes from the i-th on, in order; returns how many. O(log + n) steps. */
size_t tree_range(const struct tree *t, size_t i, size_t n, struct tree_node **ret);

/* --- changes --- */

/* There must be none of that key yet, and the node must be in no tree. */
void tree_add(struct tree *t, struct tree_node *n, struct str key);

/* Fine for a node that is in no tree, if it was zeroed once. */
void tree_remove(struct tree *t, struct tree_node *n);

/* Any node at all, or NULL; takes it out. For giving everything back without ordering it. */
struct tree_node *tree_take_any(struct tree *t);

#endif
