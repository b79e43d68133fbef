/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BASE_MAP_H
#define HUTCH_BASE_MAP_H

/*
 * An intrusive hash table: objects by name, with the nodes embedded in the objects.
 *
 *         struct command { struct map_node by_id; char id[33]; … };
 *
 *         map_add(&commands, &c->by_id, str_from(c->id));
 *         n = map_get(&commands, id);
 *         c = n ? container_of(n, struct command, by_id) : NULL;
 *
 * The key is a view into the object and must not change while the object is in the table. Names
 * come from outsiders, so the hash (SipHash-1-3) is keyed with random bytes and collisions cannot be
 * chosen. The table doubles when it is full and never shrinks; growing moves all nodes at once, so it
 * is for thousands of objects, not for millions.
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

/* Frees the table, not the objects. */
void map_done(struct map *m);

struct map_node *map_get(const struct map *m, struct str key);

/* The name must not be in the table yet, and the node in no table. */
void map_add(struct map *m, struct map_node *n, struct str key);

/* A no-op for a zeroed node that is in no table. */
void map_remove(struct map *m, struct map_node *n);

/* SipHash-1-3; exported for tests with known values. */
uint64_t map_hash(const uint64_t k[static 2], struct str text);

#endif
