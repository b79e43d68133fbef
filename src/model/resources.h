/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_RESOURCES_H
#define HUTCH_MODEL_RESOURCES_H

/*
 * Resource limits: texts such as "500m" and "256Mi" to numbers, and back to one canonical text.
 *
 * Grammar and meaning are those of Kubernetes' quantities:
 *
 *         quantity = number suffix            number = digits [ "." [digits] ] | "." digits
 *         suffix   = ""  n u m k M G T P E    powers of 1000 (m is a thousandth, K does not exist)
 *                  | Ki Mi Gi Ti Pi Ei        powers of 1024
 *                  | ("e" | "E") [sign] digits
 *
 * "1E" is an exa, "1E3" a thousand. Negative amounts are refused. Fractions are rounded up, so "0.1" of a Gi is 107374183 bytes
 * and "0.0001" cpu is 1m, never nothing. Zero is refused: some runtimes take it for "no limit". An invalid text is an error
 * that names key and value; nothing is ignored.
 *
 * Known keys are cpu (thousandths of a core), memory (bytes) and gpu (a whole number, or "all"). Other keys must have valid
 * quantities and are kept as they are; the driver decides what they mean (native: pids, io and iops).
 *
 * Two rules are Hutch's own: memory below 1 MiB is refused, because "512m", half a byte, is written by people who mean
 * Docker's 512 megabytes; and there are maxima, so that sums can't overflow.
 */

#include "base/arena.h"
#include "base/compiler.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "model/limits.h"

#define GPU_ALL INT64_C(-1)

struct resources {
        struct json_map texts; /* canonical, in the given order: stored and shown */
        int64_t cpu_milli;     /* derived, like all below; 0: no limit was given */
        int64_t memory_bytes;
        int64_t gpus; /* or GPU_ALL */
};

/* The amount in units of 10^scale, rounded up: scale -3 gives thousandths, 0 whole ones. -EINVAL if
 * it is not a quantity, -EDOM if negative or zero, -ERANGE if it does not fit. */
int quantity_parse(struct str s, int scale, int64_t *ret) must_check;

/* Parses a map of texts into *ret, in the arena. ERR_INVALID with key and value. */
int resources_parse(const struct json_map *texts, struct arena *a, struct resources *ret,
                    struct err *e) must_check;

/* The shortest text of exactly that amount; of two equally short ones the one with a binary suffix. */
#define RESOURCE_TEXT_MAX 24
size_t cpu_to_text(int64_t milli, char ret[static RESOURCE_TEXT_MAX]);
size_t memory_to_text(int64_t bytes, char ret[static RESOURCE_TEXT_MAX]);

#endif
