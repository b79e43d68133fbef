/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Blocks form a list, newest first; pieces are cut from the first one by advancing a->p. A piece that
 * is too large for an ordinary block gets its own, which is inserted second, so that the remainder of
 * the first block stays in use. Only arena_append makes a large block with spare room the first one.
 */

#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/secret.h"

#include "base/banned.h"

#if defined(__SANITIZE_ADDRESS__)
#define POISONING 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONING 1
#endif
#endif

#ifdef POISONING
#include <sanitizer/asan_interface.h>
#define poison(p, n)   ASAN_POISON_MEMORY_REGION((p), (n))
#define unpoison(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#else
#define poison(p, n)   ((void) (p), (void) (n))
#define unpoison(p, n) ((void) (p), (void) (n))
#endif

#define ALIGNMENT _Alignof(max_align_t)

struct arena_block {
        struct arena_block *next;
        size_t size; /* header included */
        _Alignas(max_align_t) char data[];
};

#define HEADER sizeof(struct arena_block)

static_assert(HEADER % ALIGNMENT == 0, "pieces start aligned");

static size_t round_up(size_t n)
{
        return (n + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
}

/* The caller has checked that a->used + size is within the maximum. */
static struct arena_block *block_new(struct arena *a, size_t size)
{
        struct arena_block *b = malloc(size);

        if (!b)
                return NULL;
        b->next = NULL;
        b->size = size;
        a->used += size;
        poison(b->data, size - HEADER);
        return b;
}

static void block_free(struct arena_block *b)
{
        unpoison(b->data, b->size - HEADER);
        free(b);
}

static void make_current(struct arena *a, struct arena_block *b)
{
        b->next = a->blocks;
        a->blocks = b;
        a->p = b->data;
        a->left = (b->size - HEADER) & ~(ALIGNMENT - 1);
        a->last = NULL;
}

/* --- life cycle --- */

void arena_init(struct arena *a, size_t max)
{
        *a = (struct arena){ .max = max, .first = ARENA_BLOCK };
}

void arena_init_small(struct arena *a, size_t max, size_t first)
{
        ASSERT(first > HEADER && first <= ARENA_BLOCK);
        *a = (struct arena){ .max = max, .first = first };
}

void arena_done(struct arena *a)
{
        while (a->blocks) {
                struct arena_block *b = a->blocks;

                a->blocks = b->next;
                block_free(b);
        }
        *a = (struct arena){ .max = a->max, .first = a->first };
}

void arena_wipe(struct arena *a)
{
        for (struct arena_block *b = a->blocks; b; b = b->next) {
                unpoison(b->data, b->size - HEADER);
                wipe(b->data, b->size - HEADER);
        }
        arena_done(a);
}

void arena_reset(struct arena *a)
{
        struct arena_block *keep = NULL;

        while (a->blocks) {
                struct arena_block *b = a->blocks;

                a->blocks = b->next;
                /* The last block below the maximum may be a smaller one. */
                if (b->size <= ARENA_BLOCK && (!keep || b->size > keep->size)) {
                        struct arena_block *smaller = keep;

                        keep = b;
                        b = smaller;
                }
                if (b)
                        block_free(b);
        }
        *a = (struct arena){ .max = a->max, .first = a->first };
        if (!keep)
                return;
        poison(keep->data, keep->size - HEADER);
        a->used = keep->size;
        make_current(a, keep);
}

/* --- allocating --- */

/* n is rounded and does not fit in the current block. */
static cold_path void *alloc_slow(struct arena *a, size_t n)
{
        size_t room = a->max - a->used;
        size_t size = MAX_OF(a->first, a->used); /* doubles from the first on, up to ARENA_BLOCK */
        bool own = n > ARENA_BLOCK - HEADER;
        struct arena_block *b;

        if (room < HEADER || n > room - HEADER)
                return NULL;
        if (size >= ARENA_BLOCK || n > size - HEADER)
                size = ARENA_BLOCK;
        b = block_new(a, own ? HEADER + n : MIN_OF(room, size));
        if (!b)
                return NULL;
        if (own) {
                struct arena_block **link = a->blocks ? &a->blocks->next : &a->blocks;

                b->next = *link;
                *link = b;
                a->last = NULL;
                return b->data;
        }
        make_current(a, b);
        a->last = a->p;
        a->p += n;
        a->left -= n;
        return a->last;
}

void *arena_alloc(struct arena *a, size_t n)
{
        size_t rounded = round_up(n ? n : 1);
        char *p = a->p;

        if (unlikely(rounded < n))
                return NULL;
        if (unlikely(rounded > a->left)) {
                p = alloc_slow(a, rounded);
                if (!p)
                        return NULL;
        } else {
                a->p += rounded;
                a->left -= rounded;
                a->last = p;
        }
        unpoison(p, n);
        return p;
}

void *arena_zalloc(struct arena *a, size_t n)
{
        void *p = arena_alloc(a, n);

        if (p)
                memset(p, 0, n);
        return p;
}

void *arena_alloc_array(struct arena *a, size_t n, size_t size)
{
        size_t total;

        if (__builtin_mul_overflow(n, size, &total))
                return NULL;
        return arena_alloc(a, total);
}

/* --- texts --- */

char *arena_dup(struct arena *a, struct str s)
{
        char *p = s.n < SIZE_MAX ? arena_alloc(a, s.n + 1) : NULL;

        if (!p)
                return NULL;
        if (s.n)
                memcpy(p, s.p, s.n);
        p[s.n] = '\0';
        return p;
}

char *arena_strdup(struct arena *a, const char *z)
{
        return arena_dup(a, str_from(z));
}

struct str arena_dup_str(struct arena *a, struct str s)
{
        char *p = arena_dup(a, s);

        return p ? str_of(p, s.n) : STR_NULL;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
        char shorter[256];
        char *p;
        va_list ap;
        int n;

        va_start(ap, fmt);
        n = vsnprintf(shorter, sizeof(shorter), fmt, ap);
        va_end(ap);
        if (n < 0)
                return NULL;
        if ((size_t) n < sizeof(shorter))
                return arena_dup(a, str_of(shorter, (size_t) n));

        p = arena_alloc(a, (size_t) n + 1);
        if (!p)
                return NULL;
        va_start(ap, fmt);
        (void) vsnprintf(p, (size_t) n + 1, fmt, ap);
        va_end(ap);
        return p;
}

/* Grows the last piece, which starts at p, to n bytes if the current block has the room. */
static bool extend_last(struct arena *a, const char *p, size_t n)
{
        size_t taken = (size_t) (a->p - p);
        size_t rounded = round_up(n);

        if (rounded > taken + a->left)
                return false;
        if (rounded > taken) {
                a->p += rounded - taken;
                a->left -= rounded - taken;
        }
        unpoison(p, n);
        return true;
}

/* n bytes for a text that will probably grow: a large one gets a block of twice its size, which
 * becomes the current one. */
static char *alloc_growing(struct arena *a, size_t n)
{
        size_t room = a->max - a->used;
        struct arena_block *b;

        if (n <= a->left || n <= ARENA_BLOCK / 4)
                return arena_alloc(a, n);
        if (room < HEADER || n > room - HEADER)
                return NULL;
        b = block_new(a, HEADER + MIN_OF(round_up(2 * n), room - HEADER));
        if (!b)
                return NULL;
        make_current(a, b);
        return arena_alloc(a, n);
}

char *arena_append(struct arena *a, char *p, size_t n, struct str more)
{
        size_t total;
        char *q = p;

        if (__builtin_add_overflow(n, more.n, &total) || total > a->max)
                return NULL;
        if (!p || p != a->last || !extend_last(a, p, total + 1)) {
                q = alloc_growing(a, total + 1);
                if (!q)
                        return NULL;
                if (p && n)
                        memcpy(q, p, n);
        }
        if (more.n)
                memcpy(q + n, more.p, more.n);
        q[total] = '\0';
        return q;
}
