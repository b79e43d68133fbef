/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_RESOURCES_H
#define HUTCH_MODEL_RESOURCES_H

/*
 * Resource limits: texts such as "500m" and "256Mi" to numbers, and back to one canonical text.
 *
 * The grammar is that of Kubernetes' quantities, and so is the meaning:
 *
 *         quantity = number suffix            number = digits [ "." [digits] ] | "." digits
 *         suffix   = ""  n u m k M G T P E    powers of 1000 (m is a thousandth, K does not exist)
 *                  | Ki Mi Gi Ti Pi Ei        powers of 1024
 *                  | ("e" | "E") [sign] digits
 *
 * "1E" is an exa, "1E3" a thousand. A sign is read and a negative amount refused. Fractions of what
 * can be counted are rounded up, so "0.1" of a Gi is 107374183 bytes and "0.0001" cpu is 1m, never
 * nothing. Zero is refused: some runtimes take it for "no limit". Whatever cannot be read is an error
 * that names key and value; nothing is ever ignored.
 *
 * Known keys are cpu (thousandths of a core), memory (bytes) and gpu (a whole number, or "all").
 * Others (the interface is open for new kinds) must be readable quantities and are kept as they
 * are; what a driver makes of them is its own affair (native: pids, io and iops).
 *
 * Two rules are ours: memory below 1 MiB is refused, because "512m", half a byte, is what people
 * write who mean Docker's 512 megabytes; and there are maxima, so that sums cannot overflow.
 */

#include "base/arena.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "model/limits.h"

#define GPU_ALL INT64_C(-1)

struct resources {
        struct json_map texts; /* canonical, in the order given: this is what is stored and shown */
        int64_t cpu_milli;     /* the rest is derived; 0 means no limit was given */
        int64_t memory_bytes;
        int64_t gpus; /* or GPU_ALL */
};

/* The amount in units of 10^scale, rounded up: scale -3 gives thousandths, 0 whole ones. -EINVAL if
 * it is no quantity, -EDOM if negative or zero, -ERANGE if it does not fit. */
int quantity_parse(struct str s, int scale, int64_t *ret) must_check;

/* From a map of texts to *ret, made in the arena. ERR_INVALID with key and value. */
int resources_parse(const struct json_map *texts, struct arena *a, struct resources *ret,
                    struct err *e) must_check;

/* The shortest text of exactly that amount; with binary suffixes where both are short. */
#define RESOURCE_TEXT_MAX 24
size_t cpu_to_text(int64_t milli, char ret[static RESOURCE_TEXT_MAX]);
size_t memory_to_text(int64_t bytes, char ret[static RESOURCE_TEXT_MAX]);

#endif
