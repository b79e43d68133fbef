/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"

#include <unistd.h>

#include "base/banned.h"

static never_returns cold_path void out_of_memory(void)
{
        static const char text[] = "hutch: out of memory\n";

        (void) !write(STDERR_FILENO, text, sizeof(text) - 1);
        abort();
}

void *xcalloc(size_t n, size_t size)
{
        /* calloc(0) may return NULL, which would look like failure. */
        void *p = n && size ? calloc(n, size) : calloc(1, 1);

        if (!p)
                out_of_memory();
        return p;
}

void *xrealloc(void *p, size_t n, size_t size)
{
        void *q = n && size ? reallocarray(p, n, size) : realloc(p, 1);

        if (!q)
                out_of_memory();
        return q;
}

char *xstrndup_str(struct str s)
{
        char *p;

        if (s.n == SIZE_MAX)
                out_of_memory();
        p = malloc(s.n + 1);
        if (!p)
                out_of_memory();
        if (s.n)
                memcpy(p, s.p, s.n);
        p[s.n] = '\0';
        return p;
}
