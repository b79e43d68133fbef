/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_RESOURCES_H
#define HUTCH_MODEL_RESOURCES_H

/*
 * Resource limits: texts such as "500m" and "256Mi" to numbers, and back to one canonical text; the limits that an
 * installation sets for what a client does not name, and the highest ones that it allows.
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
 * Known keys are cpu (thousandths of a core), memory (bytes), pids (processes and threads) and gpu (a whole number, or
 * "all"). Other keys must have valid quantities and are kept as they are; the driver decides what they mean (native: io and
 * iops).
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
        int64_t pids;
        int64_t gpus; /* or GPU_ALL */
};

/* --- what an installation sets --- */

/* Of one sandbox. 0: none. */
struct resource_amounts {
        uint64_t cpu_milli;
        uint64_t memory_bytes;
        uint64_t pids;
};

#define RESOURCE_PIDS_BY_MEMORY UINT64_MAX /* a default: see resources_pids_by_memory */

struct resource_policy {
        struct resource_amounts defaults; /* for what a create request does not limit */
        struct resource_amounts max;      /* of what it does limit; defaults are not above these */
};

/* --- functions --- */

/* The amount in units of 10^scale, rounded up: scale -3 gives thousandths, 0 whole ones. -EINVAL if
 * it is not a quantity, -EDOM if negative or zero, -ERANGE if it does not fit. */
int quantity_parse(struct str s, int scale, int64_t *ret) must_check;

/* Parses a map of texts into *ret, in the arena. ERR_INVALID with key and value. */
int resources_parse(const struct json_map *texts, struct arena *a, struct resources *ret,
                    struct err *e) must_check;

/* Adds the defaults of the policy to the texts of a request, in the arena. ERR_INVALID if a text is wrong or above a
 * maximum; the message names the key of the configuration that sets it. */
int resources_apply(const struct resource_policy *p, struct json_map *texts, struct arena *a,
                    struct err *e) must_check;

/* How many processes a sandbox gets that does not say: one for each 512 KiB of its memory, from 128 to 4096. With less
 * than one CPU, 1024 at most: a thousand runnable threads keep the scheduler busy with throttling a small quota, on every
 * CPU of the host. cpu_milli 0: no limit. */
uint64_t resources_pids_by_memory(uint64_t memory_bytes, uint64_t cpu_milli);

/* The shortest text of exactly that amount; of two equally short ones the one with a binary suffix. */
#define RESOURCE_TEXT_MAX 24
size_t cpu_to_text(int64_t milli, char ret[static RESOURCE_TEXT_MAX]);
size_t memory_to_text(int64_t bytes, char ret[static RESOURCE_TEXT_MAX]);

#endif
