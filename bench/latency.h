/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BENCH_LATENCY_H
#define HUTCH_BENCH_LATENCY_H

/* Samples of latency, and their summary for bench/run. */

#include <stddef.h>
#include <stdint.h>

struct latency {
        uint64_t *_ns;
        size_t _n, _size;
};

/* Of the monotonic clock, in nanoseconds. */
uint64_t latency_now(void);

void latency_add(struct latency *l, uint64_t ns);

/* Prints one JSON object with the count, the rate and the percentiles 10, 50 and 99, and frees the samples. */
void latency_print(struct latency *l, double seconds);

/* The same, with all samples in ascending order. */
void latency_print_all(struct latency *l, double seconds);

#endif
