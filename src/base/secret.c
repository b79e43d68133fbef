/* SPDX-License-Identifier: Apache-2.0 */
#include "base/secret.h"

#include "base/alloc.h"

#include "base/banned.h"

struct secret {
        size_t n;
        char bytes[];
};

struct secret *secret_new(struct str bytes)
{
        struct secret *s;
        size_t size;

        ASSERT(!__builtin_add_overflow(sizeof(*s) + 1, bytes.n, &size)); /* and a NUL */
        s = xcalloc(1, size);
        s->n = bytes.n;
        if (bytes.n)
                memcpy(s->bytes, bytes.p, bytes.n);
        return s;
}

void secret_free(struct secret *s)
{
        if (!s)
                return;
        wipe(s->bytes, s->n);
        free(s);
}

void secret_freep(struct secret **s)
{
        secret_free(*s);
        *s = NULL;
}

bool secret_matches(const struct secret *s, struct str candidate)
{
        return s && s->n > 0 && str_eq_secret(secret_expose(s), candidate);
}

struct str secret_expose(const struct secret *s)
{
        return str_of(s->bytes, s->n);
}

void wipe(void *p, size_t n)
{
        if (n)
                explicit_bzero(p, n);
}
