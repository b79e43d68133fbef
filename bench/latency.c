/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/latency.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define FIRST_SIZE 65536

uint64_t latency_now(void)
{
        struct timespec t;

        (void) clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t) t.tv_sec * 1000000000U + (uint64_t) t.tv_nsec;
}

void latency_add(struct latency *l, uint64_t ns)
{
        if (l->_n == l->_size) {
                l->_size = l->_size ? 2 * l->_size : FIRST_SIZE;
                l->_ns = realloc(l->_ns, l->_size * sizeof(*l->_ns));
                if (!l->_ns)
                        abort();
        }
        l->_ns[l->_n++] = ns;
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

        return (x > y) - (x < y);
}

static double usec_at(const struct latency *l, size_t percent)
{
        size_t at = l->_n ? (l->_n - 1) * percent / 100 : 0;

        return l->_n ? (double) l->_ns[at] / 1e3 : 0;
}

static void print_numbers(struct latency *l, double seconds)
{
        if (l->_n)
                qsort(l->_ns, l->_n, sizeof(*l->_ns), compare);
        printf("{\"n\": %zu, \"seconds\": %.6f, \"rate\": %.3f, \"p10_us\": %.1f, "
               "\"p50_us\": %.1f, \"p99_us\": %.1f",
               l->_n, seconds, (double) l->_n / seconds, usec_at(l, 10), usec_at(l, 50),
               usec_at(l, 99));
}

static void print_end(struct latency *l)
{
        printf("}\n");
        free(l->_ns);
        *l = (struct latency){ 0 };
}

void latency_print(struct latency *l, double seconds)
{
        print_numbers(l, seconds);
        print_end(l);
}

void latency_print_all(struct latency *l, double seconds)
{
        print_numbers(l, seconds);
        printf(", \"all_us\": [");
        for (size_t i = 0; i < l->_n; i++)
                printf("%s%.1f", i ? ", " : "", (double) l->_ns[i] / 1e3);
        printf("]");
        print_end(l);
}
