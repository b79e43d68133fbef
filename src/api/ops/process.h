/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_API_OPS_PROCESS_H
#define HUTCH_API_OPS_PROCESS_H

/* What this process uses, as /proc has it. A number that can't be had is 0. */

#include <stdint.h>

struct process_usage {
        uint64_t descriptors;
        uint64_t descriptors_max;
        uint64_t resident_bytes;
        uint64_t cpu_usec;
};

struct process_usage process_usage(void);

#endif
