/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_PLAN_SPEC_H
#define HUTCH_PLAN_SPEC_H

/*
 * What hutchd asks the warden for: one sandbox, as few and as plain facts as there can be.
 *
 * The warden is root and hutchd faces the network, so whatever arrives is judged as if hutchd
 * had been taken over. That is why a spec has names and numbers, and nothing that could weaken a
 * wall: no mount options, no capabilities, no paths of the host. Layers are names of directories in
 * the warden's own store; the id names the sandbox's own directory; uids are a range out of those that
 * belong to sandboxes, and chosen by the warden. What is done with them is decided on the warden's side (plan/plan.h).
 *
 * On the wire a spec is one message: numbers are little-endian, a text is its length (32 bits) and
 * its bytes, a list is its length (32 bits) and its texts. Fields come in the order below, each
 * exactly once, and nothing follows. There is one encoding of a spec, so that equal bytes mean equal
 * sandboxes.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "base/err.h"
#include "base/str.h"

#define PLAN_SPEC_MAX       (160 * KiB) /* of a message; the kernel's limit for one is 208 KiB */
#define PLAN_LAYERS_MAX     60
#define PLAN_NAME_MAX       63 /* of a host name */
#define PLAN_LAYER_NAME_MAX 128
#define PLAN_WORKSPACE_MAX  1024
#define PLAN_ENV_MAX        1024
#define PLAN_ARGS_MAX       512
#define PLAN_UIDS           65536U /* of each sandbox */

#define PLAN_PIDS_DEFAULT 4096U
#define PLAN_PIDS_MAX     1048576U
#define PLAN_CPU_MAX      (4096U * 1000) /* thousandths of a processor */
#define PLAN_MEMORY_MIN   (8 * MiB)      /* below it not even the agent starts */

/* In a second. A sandbox that hardly gets anything is in nobody's interest: what waits for a disk can't even be killed. */
#define PLAN_IO_BYTES_MIN      (64 * KiB)
#define PLAN_IO_BYTES_MAX      (1024 * GiB)
#define PLAN_IO_OPERATIONS_MIN 16U
#define PLAN_IO_OPERATIONS_MAX 1000000000U

enum plan_image {
        PLAN_IMAGE_HOST,   /* a view of the host's own /usr */
        PLAN_IMAGE_LAYERS, /* those that are named */
        PLAN_IMAGE_MAX_,
        PLAN_IMAGE_INVALID = -EINVAL,
};

enum plan_network {
        PLAN_NETWORK_NONE,    /* loopback only */
        PLAN_NETWORK_PRIVATE, /* a link of its own to the outside */
        PLAN_NETWORK_MAX_,
        PLAN_NETWORK_INVALID = -EINVAL,
};

ENUM_DECLARE(plan_image);
ENUM_DECLARE(plan_network);

struct plan_list {
        const char **items; /* items[n] is NULL */
        size_t n;
};

/* Texts are NUL-terminated and have no NUL inside. */
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
        uint64_t io_bytes;       /* in a second, read and written each; 0: no limit */
        uint64_t io_operations;  /* the same */
        struct plan_list layers; /* topmost first; empty for the host's image */
        struct plan_list env;    /* "NAME=value" */
        struct plan_list args;   /* the entrypoint; may be empty */
};

/* Which uids belong to sandboxes: the warden's own configuration. */
struct plan_uids {
        uint32_t base;
        uint32_t ranges;
};

/* Whether it can name a sandbox and its directory. */
bool plan_spec_is_id(const char *z);

/* Whether it can name a layer. */
bool plan_spec_is_layer(const char *z);

/* ERR_INVALID with the reason. Both sides ask: here to say no early, there because they must. Without
 * uids (NULL) it must name none (0): so hutchd sends it, because the warden chooses them. */
int plan_spec_check(const struct plan_spec *s, struct err *e) must_check;

/* Appends the message; ERR_TOO_LARGE if it is longer than PLAN_SPEC_MAX. */
int plan_spec_encode(const struct plan_spec *s, struct buf *b, struct err *e) must_check;

/* Everything is copied into the arena. A spec that comes out of here has passed plan_spec_check. */
int plan_spec_decode(struct str message, struct arena *a, struct plan_spec *ret, struct err *e)
        must_check;

#endif
