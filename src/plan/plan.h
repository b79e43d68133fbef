/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_PLAN_PLAN_H
#define HUTCH_PLAN_PLAN_H

/*
 * How a sandbox is made, as a list of steps.
 *
 * plan_make turns a spec into steps without touching anything; the warden's child carries them out
 * in exactly this order (warden/build.h), and plan_render prints them for people and tests. All
 * decisions are made here, where they can be read and compared as text. Walls are not among the
 * things a spec can say, so every plan has them.
 *
 * The order matters:
 *
 *   - Namespaces belong to the warden's user namespace, and the sandbox's own is entered when its
 *     root is complete. The other way round, what is mounted would belong to the sandbox: its root
 *     could remount /usr writable with a capability it gets back, and change the host's files.
 *     This way mounts, host name and links are out of its reach even with every capability and no
 *     filter.
 *   - What needs no more of a spec than its uids comes first, as far as it can: it is done before
 *     anybody asks (warden/zygote.h).
 *   - The network namespace is entered before /sys is mounted, which shows the links of the one that
 *     it is mounted from.
 *   - The namespace of cgroups is made after the process is in its group, which so becomes
 *     its top.
 *   - The filter is the last thing before the agent: it forbids what the other steps do.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "plan/spec.h"

/* Text in the plan's rendering; what a step uses of the others is at its side. */
/* clang-format off */
#define PLAN_STEP_MAP(X)                                                                   \
        X(GROUP,      "group")        /* join that of the sandbox's uids                 */ \
        X(GROUP_TOP,  "group-top")    /* a namespace of groups of its own                */ \
        X(ISOLATE,    "isolate")      /* mounts of others are not seen, nor ours by them */ \
        X(LAYERS,     "layers")       /* at target: lowers, and the upper if `writable`  */ \
        X(MOUNT,      "mount")        /* at target: a new file system of type `name`     */ \
        X(SHARED,     "shared")       /* at target: a tree that all sandboxes share      */ \
        X(READ_ONLY,  "read-only")    /* target, if it is there, and all below it        */ \
        X(MASK,       "mask")         /* target, if it is there, looks empty             */ \
        X(NETWORK,    "network")      /* enter the namespace that was ordered: its kind  */ \
        X(GROUPS,     "groups")       /* at target: a view of its own cgroups     */ \
        X(HOSTNAME,   "hostname")     /* name                                            */ \
        X(ROOT,       "root")         /* the tree becomes the root; the old one is gone  */ \
        X(KEYRING,    "keyring")      /* an empty one                                    */ \
        X(RLIMIT,     "rlimit")       /* name, soft, number                              */ \
        X(USERS,      "users")        /* enter the user namespace: number is the first   */ \
        X(CAPS,       "capabilities") /* number is the set that is kept                  */ \
        X(NO_PRIVS,   "no-new-privs")                                                       \
        X(FILTER,     "filter")       /* of system calls                                 */ \
        X(EXECUTE,    "execute")      /* the agent: list is its command line             */
/* clang-format on */

enum plan_step_kind {
#define X(name, text) PLAN_##name,
        PLAN_STEP_MAP(X)
#undef X
                PLAN_STEP_MAX_,
        PLAN_STEP_INVALID = -EINVAL,
};

ENUM_DECLARE(plan_step);

/* What a layer is; only a layer of an image has a name. All are idmapped for the sandbox, whose root
 * then owns what root owns on disk, but for /usr of the host: what belongs to nobody in there can
 * be read as far as everybody may, now and when it changes. */
enum plan_lower {
        PLAN_LOWER_LAYER,
        PLAN_LOWER_HOST_ROOT, /* /etc and so on of the host's image */
        PLAN_LOWER_HOST_USR,  /* /usr of the host */
        PLAN_LOWER_EMPTY,
        PLAN_LOWER_MAX_,
        PLAN_LOWER_INVALID = -EINVAL,
};

ENUM_DECLARE(plan_lower);

struct plan_layer {
        enum plan_lower dir;
        const char *name;
};

struct plan_option {
        const char *key, *value;
};

#define PLAN_OPTIONS_MAX 5

/* MOUNT_… of os/mount.h, which is no layer of ours. */
#define PLAN_READONLY 0x01U
#define PLAN_NOSUID   0x02U
#define PLAN_NODEV    0x04U
#define PLAN_NOEXEC   0x08U

struct plan_step {
        enum plan_step_kind kind;
        const char *name;
        const char *target;    /* absolute path in the sandbox */
        uint64_t number, soft; /* soft: of a limit */
        unsigned attrs;        /* PLAN_READONLY … */
        bool writable;
        struct plan_option options[PLAN_OPTIONS_MAX]; /* the first without a key ends them */
        const struct plan_layer *layers;
        size_t n_layers;
        struct plan_list list;
};

#define PLAN_STEPS_MAX 64

/* So many steps are the first of every plan, and say nothing that depends on the spec but the uids:
 * they can be done before there is one. */
#define PLAN_PREPARED 3

/* Of the host's image, which most sandboxes have, there are more: all up to `ahead`. */
struct plan {
        const struct plan_spec *spec;
        struct plan_list env; /* of the agent */
        struct plan_step steps[PLAN_STEPS_MAX];
        size_t n, ahead; /* of other images `ahead` is PLAN_PREPARED */
};

/* The descriptors that the agent finds: input and two outputs, then its socket. Nobody in the sandbox
 * can reach that, and outside it only the warden and who got it from the warden: no token. */
#define PLAN_FD_LISTEN 3
#define PLAN_FDS       4

/* The spec has passed plan_spec_check; it and the arena must outlive the plan. -ENOMEM. */
int plan_make(const struct plan_spec *spec, struct arena *a, struct plan *ret) must_check;

/* One line for each step. Values of variables are not shown. */
void plan_render(const struct plan *p, struct buf *b);

/* The capabilities that a sandbox's root keeps, and what they are called. */
#define PLAN_CAPS_KEPT 11
struct plan_cap {
        unsigned number;
        const char *name;
};
extern const struct plan_cap plan_caps[PLAN_CAPS_KEPT];

#endif
