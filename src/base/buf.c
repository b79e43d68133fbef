/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/secret.h"

#include "base/banned.h"

#define SIZE_FIRST 128

/* --- life cycle --- */

void buf_init(struct buf *b, size_t max)
{
        ASSERT(max < SIZE_MAX / 2);
        *b = (struct buf){ .max = max };
}

void buf_init_fixed(struct buf *b, char *storage, size_t size)
{
        ASSERT(size > 0);
        *b = (struct buf){ .p = storage, .size = size, .max = size - 1, .fixed = true };
        storage[0] = '\0';
}

void buf_mark_secret(struct buf *b)
{
        b->secret = true;
}

void buf_done(struct buf *b)
{
        bool secret = b->secret;

        /* The complete memory: consumed, moved and cut bytes are still in it. */
        if (secret && b->p)
                wipe(b->p, b->size);
        if (b->fixed) {
                buf_reset(b);
                return;
        }
        free(b->p);
        buf_init(b, b->max);
        b->secret = secret;
}

void buf_reset(struct buf *b)
{
        b->start = 0;
        b->n = 0;
        b->failed = b->no_memory = false;
        if (b->p)
                b->p[0] = '\0';
}

void buf_release(struct buf *b)
{
        bool failed = b->failed, no_memory = b->no_memory;

        if (b->n > 0)
                return;
        buf_done(b);
        b->failed = failed;
        b->no_memory = no_memory;
}

/* --- room --- */

static bool fail(struct buf *b, bool no_memory)
{
        b->failed = true;
        b->no_memory |= no_memory;
        return false;
}

/* New memory for `need` bytes, NUL included. The content is copied to its front. */
static bool grow(struct buf *b, size_t need)
{
        size_t size = MAX_OF(MAX_OF(b->size * 2, need), (size_t) SIZE_FIRST);
        char *p;

        size = MIN_OF(size, b->max + 1);
        if (!b->p || (b->start == 0 && !b->secret)) {
                p = realloc(b->p, size);
                if (!p)
                        return fail(b, /* no_memory= */ true);
        } else {
                p = malloc(size);
                if (!p)
                        return fail(b, /* no_memory= */ true);
                memcpy(p, b->p + b->start, b->n);
                if (b->secret)
                        wipe(b->p, b->size);
                free(b->p);
        }
        p[b->n] = '\0';
        b->p = p;
        b->start = 0;
        b->size = size;
        return true;
}

/* Content is moved to the front only if more was consumed since the last move than has to be moved, or
 * if the memory may not grow; otherwise a reader that takes little at a time would make each append
 * cost a copy of the content. */
static cold_path bool make_room(struct buf *b, size_t n)
{
        size_t need;

        if (n > b->max - b->n)
                return fail(b, /* no_memory= */ false);
        need = b->n + n + 1;
        if (b->p && b->start > 0 && need <= b->size && (b->start >= b->n || b->size > b->max)) {
                memmove(b->p, b->p + b->start, b->n + 1);
                b->start = 0;
                return true;
        }
        return grow(b, need);
}

static inline bool ensure_room(struct buf *b, size_t n)
{
        if (unlikely(b->failed))
                return false;
        /* size - start - n is at least 1 (the NUL) once there is memory, and 0 before. */
        if (likely(n < b->size - b->start - b->n))
                return true;
        return make_room(b, n);
}

static inline char *end_of(const struct buf *b)
{
        return b->p + b->start + b->n;
}

char *buf_reserve(struct buf *b, size_t n)
{
        return ensure_room(b, n) ? end_of(b) : NULL;
}

void buf_advance(struct buf *b, size_t n)
{
        ASSERT(n < b->size - b->start - b->n);
        b->n += n;
        *end_of(b) = '\0';
}

void buf_consume(struct buf *b, size_t n)
{
        ASSERT(n <= b->n);
        b->n -= n;
        b->start += n;
        if (b->n > 0 || !b->p)
                return;
        b->start = 0;
        b->p[0] = '\0';
}

void buf_truncate(struct buf *b, size_t n)
{
        ASSERT(n <= b->n);
        b->n = n;
        if (n == 0)
                b->start = 0;
        if (b->p)
                *end_of(b) = '\0';
}

/* --- appending --- */

void buf_add(struct buf *b, const void *p, size_t n)
{
        if (n == 0 || !ensure_room(b, n))
                return;
        memcpy(end_of(b), p, n);
        b->n += n;
        *end_of(b) = '\0';
}

void buf_add_str(struct buf *b, struct str s)
{
        buf_add(b, s.p, s.n);
}

void buf_add_char(struct buf *b, char c)
{
        if (!ensure_room(b, 1))
                return;
        *end_of(b) = c;
        b->n++;
        *end_of(b) = '\0';
}

void buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
        size_t room = b->size - b->start - b->n;
        va_list again;
        int n;

        if (b->failed)
                return;
        va_copy(again, ap);
        n = vsnprintf(b->p ? end_of(b) : NULL, room, fmt, ap);
        if (n < 0) {
                b->failed = true;
        } else if ((size_t) n < room) {
                b->n += (size_t) n;
        } else {
                if (b->p)
                        *end_of(b) = '\0';
                if (ensure_room(b, (size_t) n)) {
                        (void) vsnprintf(end_of(b), (size_t) n + 1, fmt, again);
                        b->n += (size_t) n;
                }
        }
        va_end(again);
}

void buf_addf(struct buf *b, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        buf_vaddf(b, fmt, ap);
        va_end(ap);
}

void buf_add_u64(struct buf *b, uint64_t v)
{
        char digits[20];
        size_t i = sizeof(digits);

        do {
                digits[--i] = (char) ('0' + v % 10);
                v /= 10;
        } while (v);
        buf_add(b, digits + i, sizeof(digits) - i);
}

void buf_add_hex(struct buf *b, const void *p, size_t n)
{
        if (n == 0)
                return;
        if (n > b->max) {
                b->failed = true;
                return;
        }
        if (!ensure_room(b, 2 * n))
                return;
        hex_encode(end_of(b), p, n);
        b->n += 2 * n;
        *end_of(b) = '\0';
}
