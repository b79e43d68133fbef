/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"

#include <linux/capability.h>

#include "base/base.h"

#define SAFE  (PLAN_NOSUID | PLAN_NODEV | PLAN_NOEXEC)
#define TTY   5U /* the gid of tty, in every distribution */
#define AGENT "hutch-execd"

/* Per sandbox: the host has 4096 (kernel.pty.max) for all. */
#define TERMINALS "256"

static const char *const plan_step_names[] = {
#define X(name, text) [PLAN_##name] = (text),
        PLAN_STEP_MAP(X)
#undef X
};
ENUM_TABLE(plan_step, plan_step_names, PLAN_STEP_MAX_);

static const char *const plan_lower_names[] = {
        [PLAN_LOWER_LAYER] = "layer",
        [PLAN_LOWER_HOST_ROOT] = "host-root",
        [PLAN_LOWER_HOST_USR] = "host-usr",
        [PLAN_LOWER_EMPTY] = "empty",
};
ENUM_TABLE(plan_lower, plan_lower_names, PLAN_LOWER_MAX_);

/* What package managers need to install and servers to start. None is valid outside of the sandbox's user namespace,
 * and inside they only affect files, processes and ports of its own network namespace. */
const struct plan_cap plan_caps[PLAN_CAPS_KEPT] = {
        { CAP_CHOWN, "chown" },
        { CAP_DAC_OVERRIDE, "dac_override" },
        { CAP_FOWNER, "fowner" },
        { CAP_FSETID, "fsetid" },
        { CAP_KILL, "kill" },
        { CAP_SETGID, "setgid" },
        { CAP_SETUID, "setuid" },
        { CAP_SETPCAP, "setpcap" },
        { CAP_NET_BIND_SERVICE, "net_bind_service" },
        { CAP_SETFCAP, "setfcap" },
        { CAP_SYS_CHROOT, "sys_chroot" },
};

/* In /proc and /sys: information about the host and its other users that no namespace hides, and the programs that the
 * host's root runs on events. */
static const char *const masked_proc[] = {
        "/proc/acpi",
        "/proc/asound",
        "/proc/interrupts",
        "/proc/kcore",
        "/proc/key-users",
        "/proc/keys",
        "/proc/latency_stats",
        "/proc/sched_debug",
        "/proc/scsi",
        "/proc/timer_list",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hotplug",
        "/proc/sys/kernel/modprobe",
        "/proc/sys/kernel/panic",
};

static const char *const masked_sys[] = { "/sys/firmware", "/sys/devices/virtual/powercap" };

/* In /proc: what could be written if the ownership were circumvented; and the agent, whose files belong to the
 * sandbox's root. */
static const char *const read_only[] = {
        "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", "/proc/1",
};

/* A low soft limit, for programs that close all descriptors up to it or use select(2). */
static const struct {
        const char *name;
        uint64_t soft, hard;
} rlimits[] = {
        { "core", 1, 1 }, /* with 0 the kernel would still run the program in core_pattern */
        { "memlock", 8 * MiB, 8 * MiB },
        { "msgqueue", 819200, 819200 },
        { "nice", 0, 0 },
        { "nofile", 1024, 1048576 },
        { "rtprio", 0, 0 },
        { "sigpending", 65536, 65536 },
};

/* --- steps --- */

struct maker {
        struct plan *p;
        struct arena *arena;
        bool failed;
};

static struct plan_step *add(struct maker *m, enum plan_step_kind kind)
{
        struct plan_step *s;

        ASSERT(m->p->n < PLAN_STEPS_MAX);
        s = &m->p->steps[m->p->n++];
        *s = (struct plan_step){ .kind = kind };
        return s;
}

static void *check(struct maker *m, const void *p)
{
        m->failed |= !p;
        return (void *) (uintptr_t) p;
}

/* The host's /usr is mounted through an overlay: a plain bind mount would be one flag away from being the host's. An
 * overlay without an upper directory needs two lowers. */
static void add_image(struct maker *m)
{
        static const struct plan_layer root[] = { { PLAN_LOWER_HOST_ROOT, NULL } };
        static const struct plan_layer usr[] = { { PLAN_LOWER_HOST_USR, NULL },
                                                 { PLAN_LOWER_EMPTY, NULL } };
        const struct plan_list *names = &m->p->spec->layers;
        struct plan_step *s = add(m, PLAN_LAYERS);
        struct plan_layer *layers;

        s->target = "/";
        s->layers = root;
        s->n_layers = ARRAY_SIZE(root);
        s->writable = true;
        s->attrs = PLAN_NOSUID | PLAN_NODEV;
        if (m->p->spec->image == PLAN_IMAGE_HOST) {
                s = add(m, PLAN_LAYERS);
                s->target = "/usr";
                s->layers = usr;
                s->n_layers = ARRAY_SIZE(usr);
                s->attrs = PLAN_READONLY | PLAN_NOSUID | PLAN_NODEV;
                return;
        }
        layers = check(m, arena_alloc_array(m->arena, names->n, sizeof(*layers)));
        for (size_t i = 0; layers && i < names->n; i++)
                layers[i] = (struct plan_layer){ PLAN_LOWER_LAYER, names->items[i] };
        s->layers = layers;
        s->n_layers = layers ? names->n : 0;
}

static struct plan_step *add_mount(struct maker *m, const char *type, const char *target,
                                   unsigned attrs)
{
        struct plan_step *s = add(m, PLAN_MOUNT);

        s->name = type;
        s->target = target;
        s->attrs = attrs;
        return s;
}

static const char *number(struct maker *m, uint64_t v)
{
        return check(m, arena_printf(m->arena, "%llu", (unsigned long long) v));
}

/* What all sandboxes of an image have: this, and the image, is built before there is a request. Owners in mount options
 * are uids of the host, because the mounts belong to its user namespace. */
static void add_proc_and_devices(struct maker *m)
{
        struct plan_step *s;

        (void) add_mount(m, "proc", "/proc", SAFE);
        for (size_t i = 0; i < ARRAY_SIZE(read_only); i++)
                add(m, PLAN_READ_ONLY)->target = read_only[i];
        for (size_t i = 0; i < ARRAY_SIZE(masked_proc); i++)
                add(m, PLAN_MASK)->target = masked_proc[i];

        s = add(m, PLAN_TREE);
        s->name = "devices";
        s->target = "/dev";
        s->attrs = PLAN_READONLY | PLAN_NOSUID | PLAN_NOEXEC;

        s = add_mount(m, "devpts", "/dev/pts", PLAN_NOSUID | PLAN_NOEXEC);
        s->options[0] = (struct plan_option){ "ptmxmode", "0666" };
        s->options[1] = (struct plan_option){ "mode", "0620" };
        s->options[2] = (struct plan_option){ "gid", number(m, m->p->spec->uid_first + TTY) };
        s->options[3] = (struct plan_option){ "max", TERMINALS };
}

/* What depends on the request, or shows its network namespace. Pages of shared memory are charged to the cgroup; half
 * of the memory is the default of tmpfs. */
static void add_sys_and_shared_memory(struct maker *m)
{
        const struct plan_spec *spec = m->p->spec;
        const char *root = number(m, spec->uid_first);
        struct plan_step *s;

        (void) add_mount(m, "sysfs", "/sys", SAFE | PLAN_READONLY);
        for (size_t i = 0; i < ARRAY_SIZE(masked_sys); i++)
                add(m, PLAN_MASK)->target = masked_sys[i];
        add(m, PLAN_CGROUP_MOUNT)->target = "/sys/fs/cgroup";

        s = add_mount(m, "tmpfs", "/dev/shm", SAFE);
        s->options[0] = (struct plan_option){ "mode", "1777" };
        s->options[1] = (struct plan_option){ "uid", root };
        s->options[2] = (struct plan_option){ "gid", root };
        s->options[3] = (struct plan_option){ "size", spec->memory > 0 ? number(m, spec->memory / 2)
                                                                       : "50%" };
}

static void add_privileges(struct maker *m)
{
        struct plan_step *s;

        (void) add(m, PLAN_KEYRING);
        for (size_t i = 0; i < ARRAY_SIZE(rlimits); i++) {
                s = add(m, PLAN_RLIMIT);
                s->name = rlimits[i].name;
                s->soft = rlimits[i].soft;
                s->number = rlimits[i].hard;
        }
        add(m, PLAN_USERNS)->number = m->p->spec->uid_first;
        s = add(m, PLAN_CAPS);
        for (size_t i = 0; i < ARRAY_SIZE(plan_caps); i++)
                s->number |= 1ULL << plan_caps[i].number;
        (void) add(m, PLAN_NO_NEW_PRIVS);
        (void) add(m, PLAN_SECCOMP);
}

/* --- the agent --- */

/* What a login sets, unless the spec does. */
static void add_env(struct maker *m)
{
        static const char *const defaults[] = {
                "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "HOME=/root",
                "LANG=C.UTF-8",
        };
        const struct plan_list *given = &m->p->spec->env;
        struct plan_list *env = &m->p->env;

        env->items = check(m, arena_alloc_array(m->arena, given->n + ARRAY_SIZE(defaults) + 1,
                                                sizeof(*env->items)));
        if (!env->items)
                return;
        for (size_t i = 0; i < given->n; i++)
                env->items[env->n++] = given->items[i];
        for (size_t i = 0; i < ARRAY_SIZE(defaults); i++) {
                const size_t name = strcspn(defaults[i], "=") + 1;
                size_t at = 0;

                while (at < given->n && strncmp(given->items[at], defaults[i], name) != 0)
                        at++;
                if (at == given->n)
                        env->items[env->n++] = defaults[i];
        }
        env->items[env->n] = NULL;
}

/* Entrypoints that only keep a container running, which the agent does anyway. */
static bool is_idle(const struct plan_list *args)
{
        static const char *const idle[][4] = {
                { "tail", "-f", "/dev/null" },
                { "sleep", "infinity" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(idle); i++) {
                size_t n = 0;

                while (idle[i][n] && n < args->n && strcmp(idle[i][n], args->items[n]) == 0)
                        n++;
                if (!idle[i][n] && n == args->n)
                        return true;
        }
        return false;
}

static void add_agent(struct maker *m)
{
        const struct plan_spec *spec = m->p->spec;
        const size_t n_args = is_idle(&spec->args) ? 0 : spec->args.n;
        const char *const fixed[] = {
                AGENT, "--ignore-signals", "--listen-fd", "3",           "--ready-fd",
                "4",   "--cgroup-fds",     "5",           "--workspace", spec->workspace
        };
        struct plan_step *s = add(m, PLAN_EXEC);
        struct plan_list *l = &s->list;

        static_assert(PLAN_FD_LISTEN == 3 && PLAN_FD_READY == 4 && PLAN_FD_CGROUP == 5,
                      "as written above");
        l->items = check(m, arena_alloc_array(m->arena, ARRAY_SIZE(fixed) + n_args + 2,
                                              sizeof(*l->items)));
        if (!l->items)
                return;
        for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
                l->items[l->n++] = fixed[i];
        if (n_args > 0)
                l->items[l->n++] = "--";
        for (size_t i = 0; i < n_args; i++)
                l->items[l->n++] = spec->args.items[i];
        l->items[l->n] = NULL;
}

int plan_make(const struct plan_spec *spec, struct arena *a, struct plan *ret)
{
        struct maker m = { ret, a, false };

        *ret = (struct plan){ .spec = spec };
        (void) add(&m, PLAN_CGROUP_JOIN);
        (void) add(&m, PLAN_CGROUP_NS);
        (void) add(&m, PLAN_ISOLATE);
        ASSERT(ret->n == PLAN_PREPARED);
        add_image(&m);
        add_proc_and_devices(&m);
        ret->ahead = spec->image == PLAN_IMAGE_HOST ? ret->n : PLAN_PREPARED;
        add(&m, PLAN_NETWORK)->name = plan_network_to_string((int) spec->network);
        add_sys_and_shared_memory(&m);
        add(&m, PLAN_HOSTNAME)->name = spec->hostname;
        (void) add(&m, PLAN_ROOT);
        add_privileges(&m);
        add_env(&m);
        add_agent(&m);
        return m.failed ? -ENOMEM : 0;
}
