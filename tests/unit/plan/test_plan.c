/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/plan.h"

#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/plan_sample.h"

/* clang-format off */
#define BEGIN(uids, memory, cpu, pids, net)                                                      \
        "namespaces mount pid ipc uts cgroup net=" net "\n"                                     \
        "cgroup-join uids=" uids " memory=" memory " cpu-millis=" cpu " pids=" pids "\n"                    \
        "cgroup-ns\n"                                                                           \
        "isolate\n"

#define HOST_IMAGE                                                                              \
        "layers / host-root writable nosuid nodev\n"                                                         \
        "layers /usr host-usr empty ro nosuid nodev\n"

#define ISOLATION(net, first, tty, size)                                                                 \
        "mount proc /proc nosuid nodev noexec\n"                                                \
        "read-only /proc/bus\n"                                                                 \
        "read-only /proc/fs\n"                                                                  \
        "read-only /proc/irq\n"                                                                 \
        "read-only /proc/sys\n"                                                                 \
        "read-only /proc/sysrq-trigger\n"                                                       \
        "read-only /proc/1\n"                                                                   \
        "mask /proc/acpi\n"                                                                     \
        "mask /proc/asound\n"                                                                   \
        "mask /proc/interrupts\n"                                                               \
        "mask /proc/kcore\n"                                                                    \
        "mask /proc/key-users\n"                                                                \
        "mask /proc/keys\n"                                                                     \
        "mask /proc/latency_stats\n"                                                            \
        "mask /proc/sched_debug\n"                                                              \
        "mask /proc/scsi\n"                                                                     \
        "mask /proc/timer_list\n"                                                               \
        "mask /proc/sys/kernel/core_pattern\n"                                                  \
        "mask /proc/sys/kernel/hotplug\n"                                                       \
        "mask /proc/sys/kernel/modprobe\n"                                                      \
        "mask /proc/sys/kernel/panic\n"                                                         \
        "tree devices /dev ro nosuid noexec\n"                                                  \
        "mount devpts /dev/pts nosuid noexec ptmxmode=0666 mode=0620 gid=" tty " max=256\n"             \
        "network " net "\n"                                                                     \
        "mount sysfs /sys ro nosuid nodev noexec\n"                                             \
        "mask /sys/firmware\n"                                                                  \
        "mask /sys/devices/virtual/powercap\n"                                                  \
        "cgroup-mount /sys/fs/cgroup\n"                                                               \
        "mount tmpfs /dev/shm nosuid nodev noexec mode=1777 uid=" first " gid=" first           \
        " size=" size "\n"                                                                      \
        "hostname a1\n"                                                                         \
        "root\n"                                                                                \
        "keyring\n"                                                                             \
        "rlimit core 1\n"                                                                       \
        "rlimit memlock 8388608\n"                                                              \
        "rlimit msgqueue 819200\n"                                                              \
        "rlimit nice 0\n"                                                                       \
        "rlimit nofile 1024 1048576\n"                                                          \
        "rlimit rtprio 0\n"                                                                     \
        "rlimit sigpending 65536\n"                                                             \
        "userns " first "\n"                                                                     \
        "capabilities chown dac_override fowner fsetid kill setgid setuid setpcap"              \
        " net_bind_service setfcap sys_chroot\n"                                                \
        "no-new-privs\n"                                                                        \
        "seccomp\n"

#define AGENT                                                            \
        "exec \"hutch-execd\" \"--ignore-signals\" \"--listen-fd\" \"3\" " \
        "\"--ready-fd\" \"4\" \"--cgroup-fds\" \"5\" \"--workspace\" "
/* clang-format on */

static void check_plan(const struct plan_spec *spec, const char *should)
{
        scoped(buf_done) struct buf b;
        scoped(arena_done) struct arena a;
        struct plan p;
        struct err e = { 0 };

        check_i64_eq(plan_spec_check(spec, &e), 0);
        arena_init(&a, MiB);
        buf_init(&b, MiB);
        check_i64_eq(plan_make(spec, &a, &p), 0);
        plan_render(&p, &b);
        check_str_eq(buf_str(&b), should);
}

static void test_host(void **state)
{
        struct plan_spec spec = plan_sample_host();

        (void) state;
        check_plan(&spec, BEGIN("268435456", "0", "0", "4096", "none")
                                  HOST_IMAGE ISOLATION("none", "268435456", "268435461", "50%")
                                          AGENT "\"/workspace\"\n"
                                                "variable \"PATH\"\n"
                                                "variable \"HOME\"\n"
                                                "variable \"LANG\"\n");
}

static void test_everything(void **state)
{
        struct plan_spec spec = plan_sample_host();
        const struct plan_list layers = PLAN_LIST("app", "debian");
        const struct plan_list env = PLAN_LIST("SECRET=hunter2", "HOME=/h", "PATHOLOGY=1");
        const struct plan_list args = PLAN_LIST("sh", "-c", "echo \"a\nb\"");

        (void) state;
        spec.image = PLAN_IMAGE_LAYERS;
        spec.layers = layers;
        spec.env = env;
        spec.args = args;
        spec.network = PLAN_NETWORK_PRIVATE;
        spec.memory = 64 * MiB;
        spec.cpu_millis = 500;
        spec.pids = 100;
        spec.io_bytes = MiB;
        spec.io_operations = 64;
        spec.uid_first += PLAN_UIDS;
        check_plan(
                &spec,
                BEGIN("268500992", "67108864", "500", "100 io=1048576 iops=64",
                      "private") "layers / layer:app layer:debian writable nosuid nodev\n" ISOLATION("private",
                                                                                                     "268500992",
                                                                                                     "268500997",
                                                                                                     "33554432")
                        AGENT "\"/workspace\" \"--\" \"sh\" \"-c\" \"echo \\\"a\\nb\\\"\"\n"
                              "variable \"SECRET\"\n"
                              "variable \"HOME\"\n"
                              "variable \"PATHOLOGY\"\n"
                              "variable \"PATH\"\n"
                              "variable \"LANG\"\n");
}

/* --- an entrypoint that does nothing --- */

static const struct plan_list tail = PLAN_LIST("tail", "-f", "/dev/null");
static const struct plan_list sleeps = PLAN_LIST("sleep", "infinity");
static const struct plan_list tail_more = PLAN_LIST("tail", "-f", "/dev/null", "x");
static const struct plan_list tail_less = PLAN_LIST("tail", "-f");
static const struct plan_list naps = PLAN_LIST("sleep", "60");

static const struct {
        const char *name;
        const struct plan_list *args;
        bool idle;
} entrypoints[] = {
        { "tail -f /dev/null", &tail, true },
        { "sleep infinity", &sleeps, true },
        { "tail with more", &tail_more, false },
        { "tail with less", &tail_less, false },
        { "sleep 60", &naps, false },
};

static void test_idle_entrypoints_need_no_process(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(entrypoints); i++) {
                scoped(arena_done) struct arena a;
                struct plan_spec spec = plan_sample_host();
                const struct plan_list *list;
                struct plan p;

                check_case(entrypoints[i].name);
                arena_init(&a, MiB);
                spec.args = *entrypoints[i].args;
                check_i64_eq(plan_make(&spec, &a, &p), 0);
                list = &p.steps[p.n - 1].list;
                check_u64_eq(list->n, 10 + (entrypoints[i].idle ? 0 : 1 + spec.args.n));
                check_true(list->items[list->n] == NULL);
        }
}

/* Whatever a spec says, these come, in this order. */
static void test_walls_come_in_order(void **state)
{
        static const enum plan_step_kind order[] = {
                PLAN_CGROUP_JOIN,  PLAN_CGROUP_NS, PLAN_ISOLATE, PLAN_LAYERS,
                PLAN_ROOT,         PLAN_KEYRING,   PLAN_USERNS,  PLAN_CAPS,
                PLAN_NO_NEW_PRIVS, PLAN_SECCOMP,   PLAN_EXEC,
        };
        scoped(arena_done) struct arena a;
        struct plan_spec spec = plan_sample_host();
        struct plan p;
        size_t at = 0;

        (void) state;
        arena_init(&a, MiB);
        check_i64_eq(plan_make(&spec, &a, &p), 0);
        for (size_t i = 0; i < p.n && at < ARRAY_SIZE(order); i++)
                at += p.steps[i].kind == order[at];
        check_u64_eq(at, ARRAY_SIZE(order));
        check_i64_eq(p.steps[p.n - 1].kind, PLAN_EXEC);
        check_i64_eq(p.steps[p.n - 2].kind, PLAN_SECCOMP);
}

static void test_no_room(void **state)
{
        scoped(arena_done) struct arena a;
        struct plan_spec spec = plan_sample_host();
        struct plan p;

        (void) state;
        arena_init(&a, 1);
        check_i64_eq(plan_make(&spec, &a, &p), -ENOMEM);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_host),
                cmocka_unit_test(test_everything),
                cmocka_unit_test(test_idle_entrypoints_need_no_process),
                cmocka_unit_test(test_walls_come_in_order),
                cmocka_unit_test(test_no_room),
        };

        return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
