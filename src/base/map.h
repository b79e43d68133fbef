/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_MAP_H
#define HUTCH_BASE_MAP_H

/*
 * A hash table of objects by name, with the nodes inside the objects.
 *
 *         struct command { struct map_node by_id; char id[33]; … };
 *
 *         map_add(&commands, &c->by_id, str_from(c->id));
 *         n = map_get(&commands, id);
 *         c = n ? container_of(n, struct command, by_id) : NULL;
 *
 * The key is a view into the object and must stay as it is while the object is in the table. Names
 * come from outsiders, so the hash (SipHash-1-3) is keyed with random bytes: nobody can choose
 * names that fall into one slot. The table doubles when it is full and never shrinks; a step of
 * growing moves everything, so it is for thousands of objects, not for millions.
 */

#include "base/compiler.h"
#include "base/str.h"

struct map_node {
        struct map_node *_next;
        struct str key;
        uint64_t _hash;
        bool _in;
};

struct map {
        struct map_node **_slots;
        size_t _size; /* a power of two, or 0 before the first object */
        size_t n;
        uint64_t _k[2];
};

void map_init(struct map *m);

/* The objects stay; they are the owner's. */
void map_done(struct map *m);

struct map_node *map_get(const struct map *m, struct str key);

/* There must be none of that name yet, and the node must be in no table. */
void map_add(struct map *m, struct map_node *n, struct str key);

/* Fine for a node that is in no table, if it was zeroed once. */
void map_remove(struct map *m, struct map_node *n);

/* SipHash-1-3, for tests against its known values. */
uint64_t map_hash(const uint64_t k[static 2], struct str text);

#endif
