/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_METRICS_H
#define HUTCH_EXECD_METRICS_H

/*
 * CPU and memory usage of the sandbox: of its cgroup where one is visible, else of the host.
 *
 * The kernel counts CPU time; a percentage is the difference of two samples. No request waits for the
 * second sample: the first one was taken at the last request, or when the agent started. Two requests in
 * quick succession must not divide by nearly nothing (a counter may advance in steps of 10 ms): a sample
 * that is younger than METRICS_SPAN_MIN is not used as the base of the next request; the one before it is.
 */

#include "base/clock.h"
#include "http/sse.h"

#define METRICS_SPAN_MIN (200 * USEC_PER_MSEC)
#define METRICS_INTERVAL (2 * USEC_PER_SEC) /* between the lines of /metrics/watch */

enum cpu_source {
        CPU_UNKNOWN,
        CPU_OF_CGROUP,
        CPU_OF_HOST,
};

/* A sample of the counters, all in microseconds. */
struct cpu_sample {
        enum cpu_source source;
        usec_t at;
        uint64_t used;
        uint64_t offered; /* by all CPUs of the host; for a cgroup it follows from `at` */
};

struct metrics {
        const char *root; /* "" except in tests */
        const struct clock *clock;
        struct cpu_sample before, last;
        struct http_sse_group watchers;
};

struct metrics_values {
        uint64_t cpu_milli;      /* available CPUs, in thousandths */
        uint64_t cpu_used_milli; /* percent of them, in thousandths: 0 to 100000 */
        uint64_t memory_total;   /* bytes */
        uint64_t memory_used;
        usec_t timestamp; /* wall */
};

/* `root` must stay valid. */
void metrics_init(struct metrics *m, struct net_loop *loop, const char *root);

/* The memory must stay valid until the loop has run once more. */
void metrics_close(struct metrics *m);

void metrics_read(struct metrics *m, struct metrics_values *ret);

#endif
