/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BENCH_LATENCY_H
#define HUTCH_BENCH_LATENCY_H

/* How long things took, one by one, and what bench/run wants to know of it. */

#include <stddef.h>
#include <stdint.h>

struct latency {
        uint64_t *_ns;
        size_t _n, _size;
};

/* Of a clock that only goes forward. */
uint64_t latency_now(void);

void latency_add(struct latency *l, uint64_t ns);

/* Prints one JSON object: how many in how many seconds, and what 10 %, 50 % and 99 % of
 * them stayed below. Frees. */
void latency_print(struct latency *l, double seconds);

/* The same, with all of them in the order of their length. */
void latency_print_all(struct latency *l, double seconds);

#endif
