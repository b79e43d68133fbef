/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_PLAN_PLAN_H
#define HUTCH_PLAN_PLAN_H

/*
 * A plan: how a sandbox is built, as a list of steps.
 *
 * plan_make turns a spec into steps without touching anything; the builder carries them out in exactly this
 * order (warden/build.h), and plan_render prints them. All decisions are made here, where they can be read
 * and compared as text. Isolation is not something a spec can turn off, so every plan has all of it.
 *
 * The order matters:
 *
 *   - The namespaces belong to the host's user namespace; the sandbox enters its own user namespace when its
 *     rootfs is complete. The other way round, the mounts would belong to the sandbox: its root could remount
 *     /usr writable with a capability that it regains, and change files of the host. This way mounts, host
 *     name and links are out of its reach even with all capabilities and without a seccomp filter.
 *   - Steps that need nothing of the spec but the uid range come first: they are done before there is
 *     a request (warden/zygote.h).
 *   - The network namespace is entered before /sys is mounted, because sysfs shows the links of the namespace it is
 *     mounted from.
 *   - The cgroup namespace is made after the process has joined its cgroup, which becomes its root.
 *   - The seccomp filter is last before the agent: it forbids what the other steps do.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/enum.h"
#include "plan/spec.h"

/* The name in plan_render, and which fields of struct plan_step the step uses. */
/* clang-format off */
#define PLAN_STEP_MAP(X)                                                                    \
        X(CGROUP_JOIN,  "cgroup-join")  /* join the cgroup of the uid range               */ \
        X(CGROUP_NS,    "cgroup-ns")    /* a new cgroup namespace                         */ \
        X(ISOLATE,      "isolate")      /* stop the propagation of mounts                 */ \
        X(LAYERS,       "layers")       /* at target: lowers, and the upper if `writable` */ \
        X(MOUNT,        "mount")        /* at target: a new file system of type `name`    */ \
        X(TREE,         "tree")         /* at target: `name`, a tree of warden/data.h     */ \
        X(READ_ONLY,    "read-only")    /* target, if it exists, and all below it         */ \
        X(MASK,         "mask")         /* target, if it exists, becomes empty            */ \
        X(NETWORK,      "network")      /* enter the network namespace; name is its kind  */ \
        X(CGROUP_MOUNT, "cgroup-mount") /* at target: its own cgroups                     */ \
        X(HOSTNAME,     "hostname")     /* name                                           */ \
        X(ROOT,         "root")         /* the tree becomes the root                      */ \
        X(KEYRING,      "keyring")      /* a new, empty one                               */ \
        X(RLIMIT,       "rlimit")       /* name, soft, number                             */ \
        X(USERNS,       "userns")       /* enter the user namespace; number: first uid    */ \
        X(CAPS,         "capabilities") /* number: the set that is kept                   */ \
        X(NO_NEW_PRIVS, "no-new-privs")                                                      \
        X(SECCOMP,      "seccomp")                                                           \
        X(EXEC,         "exec")         /* the agent; list is its command line            */
/* clang-format on */

enum plan_step_kind {
#define X(name, text) PLAN_##name,
        PLAN_STEP_MAP(X)
#undef X
                PLAN_STEP_MAX_,
        PLAN_STEP_INVALID = -EINVAL,
};

ENUM_DECLARE(plan_step);

/* A lower directory of an overlay; only a layer of an image has a name. All are idmapped, so that the sandbox's root owns
 * what root owns on disk, except the host's /usr: there only world-readable files are readable, now and
 * after a chmod. */
enum plan_lower {
        PLAN_LOWER_LAYER,
        PLAN_LOWER_HOST_ROOT, /* /etc and so on of the image "host" */
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

/* As MOUNT_… of os/mount.h, which plan must not include. */
#define PLAN_READONLY 0x01U
#define PLAN_NOSUID   0x02U
#define PLAN_NODEV    0x04U
#define PLAN_NOEXEC   0x08U

struct plan_step {
        enum plan_step_kind kind;
        const char *name;
        const char *target;    /* absolute, in the sandbox */
        uint64_t number, soft; /* soft: of RLIMIT */
        unsigned attrs;        /* PLAN_READONLY … */
        bool writable;
        struct plan_option options[PLAN_OPTIONS_MAX]; /* until the first without a key */
        const struct plan_layer *layers;
        size_t n_layers;
        struct plan_list list;
};

#define PLAN_STEPS_MAX 64

/* The first steps of every plan, which need nothing of the spec but the uid range. */
#define PLAN_PREPARED 3

/* For the image "host", which most sandboxes use, more steps can be done beforehand: all up to `ahead`. */
struct plan {
        const struct plan_spec *spec;
        struct plan_list env; /* of the agent */
        struct plan_step steps[PLAN_STEPS_MAX];
        size_t n, ahead; /* of other images: ahead is PLAN_PREPARED */
};

/* The descriptors of the agent: stdin, stdout, stderr, its listening socket, a pipe that tells the warden when it
 * serves, and five by which it puts commands into cgroups (os/cgroup.h). Processes of the sandbox can't reach that socket, and outside only the warden and those it gives a
 * descriptor to: no token is needed. */
#define PLAN_FD_LISTEN 3
#define PLAN_FD_READY  4
#define PLAN_FD_CGROUP 5
#define PLAN_FDS       10

/* The spec has passed plan_spec_check and has a uid_first; it and the arena outlive the plan. -ENOMEM. */
int plan_make(const struct plan_spec *spec, struct arena *a, struct plan *ret) must_check;

/* A line per step. Values of environment variables are not printed. */
void plan_render(const struct plan *p, struct buf *b);

/* The capabilities that the sandbox's root keeps. */
#define PLAN_CAPS_KEPT 11
struct plan_cap {
        unsigned number;
        const char *name;
};
extern const struct plan_cap plan_caps[PLAN_CAPS_KEPT];

#endif
