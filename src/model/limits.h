/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_LIMITS_H
#define HUTCH_MODEL_LIMITS_H

/*
 * Every maximum of the model, with its reason. They apply to requests and to stored records: a stored record that exceeds one
 * was not written by Hutch. Sizes are bytes.
 */

#include "base/compiler.h"

/* --- names --- */
#define DNS_LABEL_MAX  63   /* RFC 1123 */
#define DNS_NAME_MAX   253  /* RFC 1123, without the final dot */
#define SANDBOX_ID_MAX 57   /* "hutch-<id>" and "<id>-<port>" are DNS labels; a UUID has 36 */
#define NAME_MAX_TEXT  128  /* tenant, node, driver, snapshot: names chosen by people */
#define IMAGE_URI_MAX  1024 /* three times what host, path, tag and digest take */

/* --- owner: its parts become keys of stores, some of which are limited to a few KiB --- */
#define OWNER_PART_MAX 256

/* --- status: written by drivers, shown to clients --- */
#define REASON_MAX  64
#define MESSAGE_MAX 1024

/* --- requests --- */
#define ENTRYPOINT_ITEMS_MAX 1024
#define ARGUMENT_MAX         (128 * KiB - 1) /* the kernel's MAX_ARG_STRLEN, without the NUL */
#define ENV_ITEMS_MAX        1024
#define ENV_NAME_MAX         256
#define RESOURCES_MAX        16 /* kinds of resource */
#define QUANTITY_MAX         32 /* characters of a quantity: a sign, digits, a suffix */
#define QUANTITY_DIGITS_MAX  18 /* fit into 64 bits in any case */
#define CPU_MILLI_MAX        INT64_C(4096000)   /* 4096 cores; Linux knows 8192 at most */
#define MEMORY_MIN           ((int64_t) MiB)    /* less is a wrong unit ("512m"), not a limit */
#define MEMORY_MAX           (INT64_C(1) << 50) /* 1 PiB: above it sums of limits could overflow */
#define PIDS_MAX             (INT64_C(1) << 22) /* the kernel's own maximum (PID_MAX_LIMIT) */
#define GPU_MAX              1024
#define LABELS_MAX           128
#define LABELS_TOTAL_MAX     (16 * KiB) /* keys and values; every list repeats them */
#define EGRESS_RULES_MAX     4096       /* the egress API's own limit */
#define VOLUMES_MAX          64
#define PATH_MAX_TEXT        4095 /* the kernel's PATH_MAX, without the NUL */
#define EXTENSIONS_MAX       64
#define EXTENSION_KEY_MAX    256
#define EXTENSION_VALUE_MAX  (4 * KiB)
#define OSSFS_OPTIONS_MAX    64
#define TIMEOUT_MIN_S        60
#define TIMEOUT_MAX_S        INT64_C(315360000) /* ten years; "never" is spelled otherwise */

/* --- records --- */
#define HANDLE_MAX         (64 * KiB) /* the driver's handle */
#define RECORD_TEXT_MAX    (4 * MiB)  /* a request body of 1 MiB, escapes (three times), our own */
#define RECORD_ARENA_MAX   (8 * MiB)
#define RECORD_ARENA_FIRST 1024 /* more than an ordinary record takes; all of them stay in memory */
#define PROBLEMS_MAX       32   /* listed for one request */

#endif
