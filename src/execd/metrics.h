/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_METRICS_H
#define HUTCH_EXECD_METRICS_H

/*
 * How much of its processors and memory the sandbox uses: of its control group where one is
 * visible, else of the machine.
 *
 * The kernel counts processor time used; a percentage is the difference of two looks at the
 * counter. Nobody waits for the second look: the first was taken before, when somebody asked the
 * last time, or when the agent started. Two questions in a row must not divide by nearly nothing
 * (a counter may advance in steps of 10 ms), so a look that is less than METRICS_SPAN_MIN old is not
 * what the next question is measured against; the one before it is.
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

/* A look at the counters, all in microseconds. */
struct cpu_sample {
        enum cpu_source source;
        usec_t at;
        uint64_t used;
        uint64_t offered; /* by all processors of the machine; of a group it follows from `at` */
};

struct metrics {
        const char *root; /* "" but in tests */
        const struct clock *clock;
        struct cpu_sample before, last;
        struct http_sse_group watchers;
};

struct metrics_values {
        uint64_t cpu_milli;      /* processors there are, in thousandths */
        uint64_t cpu_used_milli; /* percent of them, in thousandths: 0 to 100000 */
        uint64_t memory_total;   /* bytes */
        uint64_t memory_used;
        usec_t timestamp; /* wall */
};

/* `root` must stay. */
void metrics_init(struct metrics *m, struct net_loop *loop, const char *root);

/* The memory must stay until the loop ran once more. */
void metrics_close(struct metrics *m);

void metrics_read(struct metrics *m, struct metrics_values *ret);

#endif
