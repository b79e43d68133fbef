/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_PLAN_SPEC_H
#define HUTCH_PLAN_SPEC_H

/*
 * The spec of a sandbox: what hutchd requests from the warden, as few and as plain facts as possible.
 *
 * The warden is root and hutchd faces the network, so every spec is judged as if hutchd had been taken
 * over. A spec has names and numbers, and nothing that could weaken the isolation: no mount options, no
 * capabilities, no paths of the host. Layers are names of directories in the warden's own store, the id names the
 * directory of the sandbox, and the uid range is chosen by the warden. What is done with them is decided by
 * the warden (plan/plan.h).
 *
 * hutchd encodes a spec once; the warden checks the bytes and passes them on to the process that becomes the
 * sandbox. Fields come in the order below, each exactly once, encoded as in base/codec.h; a list is its length
 * (32 bits) and its strings. There is one encoding of a spec, so equal bytes mean equal sandboxes.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "base/err.h"
#include "base/str.h"

#define PLAN_SPEC_MAX       (160 * KiB) /* of the message; a packet of the kernel has at most 208 KiB */
#define PLAN_LAYERS_MAX     60
#define PLAN_NAME_MAX       63 /* of a host name */
#define PLAN_LAYER_NAME_MAX 128
#define PLAN_WORKSPACE_MAX  1024
#define PLAN_ENV_MAX        1024
#define PLAN_ARGS_MAX       512
#define PLAN_UIDS           65536U /* of each sandbox */

#define PLAN_PIDS_DEFAULT 4096U
#define PLAN_PIDS_MAX     1048576U
#define PLAN_CPU_MAX      (4096U * 1000) /* thousandths of a CPU */
#define PLAN_MEMORY_MIN   (8 * MiB)      /* the agent needs as much */

/* Per second. With less a sandbox is useless: a process that waits for a disk can't even be killed. */
#define PLAN_IO_BYTES_MIN      (64 * KiB)
#define PLAN_IO_BYTES_MAX      (1024 * GiB)
#define PLAN_IO_OPERATIONS_MIN 16U
#define PLAN_IO_OPERATIONS_MAX 1000000000U

enum plan_image {
        PLAN_IMAGE_HOST,   /* the host's own /usr */
        PLAN_IMAGE_LAYERS, /* the named layers */
        PLAN_IMAGE_MAX_,
        PLAN_IMAGE_INVALID = -EINVAL,
};

enum plan_network {
        PLAN_NETWORK_NONE,    /* loopback only */
        PLAN_NETWORK_PRIVATE, /* a link to the outside */
        PLAN_NETWORK_MAX_,
        PLAN_NETWORK_INVALID = -EINVAL,
};

ENUM_DECLARE(plan_image);
ENUM_DECLARE(plan_network);

struct plan_list {
        const char **items; /* items[n] is NULL */
        size_t n;
};

/* Strings are NUL-terminated. */
struct plan_spec {
        const char *id;        /* a-z, 0-9 and '-' */
        const char *hostname;  /* the same, and '.' */
        const char *workspace; /* absolute path in the sandbox */
        enum plan_image image;
        enum plan_network network;
        uint32_t uid_first; /* of PLAN_UIDS; chosen by the warden, so not part of the message */
        uint64_t memory;    /* bytes; 0: no limit */
        uint64_t cpu_millis;
        uint64_t pids;           /* 0: PLAN_PIDS_DEFAULT */
        uint64_t io_bytes;       /* per second, reads and writes each; 0: no limit */
        uint64_t io_operations;  /* as io_bytes */
        struct plan_list layers; /* topmost first; empty for the image "host" */
        struct plan_list env;    /* "NAME=value" */
        struct plan_list args;   /* the entrypoint; may be empty */
};

/* The uids of all sandboxes: the warden's configuration. */
struct plan_uids {
        uint32_t base;
        uint32_t ranges;
};

/* Whether it can be the id of a sandbox. */
bool plan_spec_is_id(const char *z);

/* Whether it can be the name of a layer. */
bool plan_spec_is_layer(const char *z);

/* ERR_INVALID with the reason. hutchd checks to refuse early, the warden because it must. */
int plan_spec_check(const struct plan_spec *s, struct err *e) must_check;

/* Appends the message. ERR_TOO_LARGE: more than PLAN_SPEC_MAX bytes. */
int plan_spec_encode(const struct plan_spec *s, struct buf *b, struct err *e) must_check;

/* Copies everything into the arena. The spec has passed plan_spec_check; its uid_first is 0. */
int plan_spec_decode(struct str message, struct arena *a, struct plan_spec *ret, struct err *e)
        must_check;

#endif
