/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_LIMITS_H
#define HUTCH_MODEL_LIMITS_H

/*
 * Every maximum of the model, with its reason. They hold for what comes in and for what is read
 * back: a stored record that exceeds one was not written by us. Sizes are bytes.
 */

#include "base/compiler.h"

/* --- names --- */
#define DNS_LABEL_MAX  63   /* RFC 1123 */
#define DNS_NAME_MAX   253  /* RFC 1123, without the final dot */
#define SANDBOX_ID_MAX 57   /* "hutch-<id>" and "<id>-<port>" are DNS labels; a UUID has 36 */
#define NAME_MAX_TEXT  128  /* tenant, node, driver, snapshot: names that people chose */
#define IMAGE_URI_MAX  1024 /* host, path, tag and digest of a reference take a third of it */

/* --- owner: parts become keys of stores, the smallest of which takes some KiB --- */
#define OWNER_PART_MAX 256

/* --- status: written by drivers, shown to clients --- */
#define REASON_MAX  64
#define MESSAGE_MAX 1024

/* --- what a request may bring --- */
#define ENTRYPOINT_ITEMS_MAX 1024
#define ARGUMENT_MAX         (128 * KiB - 1) /* the kernel's MAX_ARG_STRLEN, without the NUL */
#define ENV_ITEMS_MAX        1024
#define ENV_NAME_MAX         256
#define RESOURCES_MAX        16 /* kinds of resource */
#define QUANTITY_MAX         32 /* characters of a quantity: a sign, digits, a suffix */
#define QUANTITY_DIGITS_MAX  18 /* what a 64-bit number surely holds */
#define CPU_MILLI_MAX        INT64_C(4096000)   /* 4096 cores; Linux knows 8192 at most */
#define MEMORY_MIN           ((int64_t) MiB)    /* less is a wrong unit ("512m"), not a limit */
#define MEMORY_MAX           (INT64_C(1) << 50) /* 1 PiB: above it sums of limits could overflow */
#define GPU_MAX              1024
#define LABELS_MAX           128
#define LABELS_TOTAL_MAX     (16 * KiB) /* keys and values; every list answer repeats them */
#define EGRESS_RULES_MAX     4096       /* the egress API's own limit */
#define VOLUMES_MAX          64
#define PATH_MAX_TEXT        4095 /* the kernel's PATH_MAX, without the NUL */
#define EXTENSIONS_MAX       64
#define EXTENSION_KEY_MAX    256
#define EXTENSION_VALUE_MAX  (4 * KiB)
#define OSSFS_OPTIONS_MAX    64
#define TIMEOUT_MIN_S        60
#define TIMEOUT_MAX_S        INT64_C(315360000) /* ten years: "never" has a spelling of its own */

/* --- records --- */
#define HANDLE_MAX         (64 * KiB) /* the driver's own notes */
#define RECORD_TEXT_MAX    (4 * MiB)  /* a request body of 1 MiB, escapes (three times), our own */
#define RECORD_ARENA_MAX   (8 * MiB)
#define RECORD_ARENA_FIRST 1024 /* an ordinary record takes less; each of them stays in memory */
#define PROBLEMS_MAX       32   /* of one request; who has more has seen enough */

#endif
