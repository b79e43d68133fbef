/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <endian.h>
#include <sys/random.h>

#include "base/alloc.h"
#include "base/banned.h"

#define SIZE_MIN 16

/* --- SipHash-1-3: one round for each word, three at the end --- */

struct sip {
        uint64_t v[4];
};

static uint64_t rotl(uint64_t x, unsigned by)
{
        return x << by | x >> (64 - by);
}

static void sip_round(struct sip *s)
{
        uint64_t *v = s->v;

        v[0] += v[1];
        v[1] = rotl(v[1], 13) ^ v[0];
        v[0] = rotl(v[0], 32);
        v[2] += v[3];
        v[3] = rotl(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = rotl(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = rotl(v[1], 17) ^ v[2];
        v[2] = rotl(v[2], 32);
}

static void sip_word(struct sip *s, uint64_t word)
{
        s->v[3] ^= word;
        sip_round(s);
        s->v[0] ^= word;
}

uint64_t map_hash(const uint64_t k[static 2], struct str text)
{
        struct sip s = { {
                0x736f6d6570736575ULL ^ k[0],
                0x646f72616e646f6dULL ^ k[1],
                0x6c7967656e657261ULL ^ k[0],
                0x7465646279746573ULL ^ k[1],
        } };
        uint64_t last = (uint64_t) text.n << 56, word;
        size_t i = 0;

        for (; i + 8 <= text.n; i += 8) {
                memcpy(&word, text.p + i, 8);
                sip_word(&s, le64toh(word));
        }
        for (unsigned shift = 0; i < text.n; i++, shift += 8)
                last |= (uint64_t) (unsigned char) text.p[i] << shift;
        sip_word(&s, last);
        s.v[2] ^= 0xff;
        for (int round = 0; round < 3; round++)
                sip_round(&s);
        return s.v[0] ^ s.v[1] ^ s.v[2] ^ s.v[3];
}

/* --- the table --- */

void map_init(struct map *m)
{
        *m = (struct map){ 0 };
        /* The kernel's pool is initialised long before we start. */
        ASSERT(getrandom(m->_k, sizeof(m->_k), 0) == sizeof(m->_k));
}

void map_done(struct map *m)
{
        free(m->_slots);
        *m = (struct map){ 0 };
}

static struct map_node **slot_of(const struct map *m, uint64_t hash)
{
        return &m->_slots[hash & (m->_size - 1)];
}

struct map_node *map_get(const struct map *m, struct str key)
{
        uint64_t hash;

        if (m->n == 0)
                return NULL;
        hash = map_hash(m->_k, key);
        for (struct map_node *n = *slot_of(m, hash); n; n = n->_next)
                if (n->_hash == hash && str_eq(n->key, key))
                        return n;
        return NULL;
}

void map_add(struct map *m, struct map_node *n, struct str key)
{
        struct map old = *m;
        struct map_node **slot;

        ASSERT(!n->_in && !map_get(m, key));
        if (m->n == m->_size) {
                m->_size = old._size ? 2 * old._size : SIZE_MIN;
                m->_slots = xcalloc(m->_size, sizeof(struct map_node *));
                for (size_t i = 0; i < old._size; i++) {
                        for (struct map_node *o = old._slots[i], *next; o; o = next) {
                                slot = slot_of(m, o->_hash);
                                next = o->_next;
                                o->_next = *slot;
                                *slot = o;
                        }
                }
                free(old._slots);
        }
        *n = (struct map_node){ .key = key, ._hash = map_hash(m->_k, key), ._in = true };
        slot = slot_of(m, n->_hash);
        n->_next = *slot;
        *slot = n;
        m->n++;
}

void map_remove(struct map *m, struct map_node *n)
{
        if (!n->_in)
                return;
        for (struct map_node **at = slot_of(m, n->_hash); *at; at = &(*at)->_next) {
                if (*at != n)
                        continue;
                *at = n->_next;
                n->_in = false;
                m->n--;
                return;
        }
}
