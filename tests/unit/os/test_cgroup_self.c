/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cgroup_self.h"

#include "base/base.h"
#include "tests/lib/fake_root.h"

#define S "/sys/fs/cgroup"
#define NONE                 \
        {                    \
                -ENODATA,    \
                {            \
                        0, 0 \
                }            \
        }
#define USE(used, limit)                \
        {                               \
                0,                      \
                {                       \
                        (used), (limit) \
                }                       \
        }
#define INF CGROUP_UNLIMITED

struct world {
        const char *name;
        struct fake_root_file files[16];
        struct {
                int r;
                struct cgroup_self_usage use;
        } cpu, memory;
};

static const struct world worlds[] = {
        { "nothing at all", { { "/etc/x", "" } }, NONE, NONE },
        { "proc without sys", { { "/proc/self/cgroup", "0::/\n" } }, NONE, NONE },
        { "unified, limited",
          { { "/proc/self/cgroup", "0::/sandbox\n" },
            { S "/cgroup.procs", "" },
            { S "/sandbox/cpu.max", "150000 100000\n" },
            { S "/sandbox/cpu.stat", "usage_usec 7000\nuser_usec 1\n" },
            { S "/sandbox/memory.max", "1048576\n" },
            { S "/sandbox/memory.current", "5000\n" },
            { S "/sandbox/memory.stat", "anon 1\ninactive_file 2000\nactive_file 9\n" } },
          USE(7000, 1500),
          USE(3000, 1048576) },
        { "unified, not limited",
          { { "/proc/self/cgroup", "0::/sandbox\n" },
            { S "/cgroup.procs", "" },
            { S "/sandbox/cpu.max", "max 100000\n" },
            { S "/sandbox/cpu.stat", "usage_usec 7000\n" },
            { S "/sandbox/memory.max", "max\n" },
            { S "/sandbox/memory.current", "5000\n" } },
          USE(7000, INF),
          USE(5000, INF) },
        { "the smallest limit counts, and its group",
          { { "/proc/self/cgroup", "0::/a/b/c\n" },
            { S "/cgroup.procs", "" },
            { S "/a/cpu.max", "400000 100000" },
            { S "/a/cpu.stat", "usage_usec 4\n" },
            { S "/a/memory.max", "1000" },
            { S "/a/memory.current", "400" },
            { S "/a/b/cpu.max", "50000 100000" },
            { S "/a/b/cpu.stat", "usage_usec 3\n" },
            { S "/a/b/memory.max", "4000" },
            { S "/a/b/memory.current", "300" },
            { S "/a/b/c/cpu.max", "max 100000" },
            { S "/a/b/c/cpu.stat", "usage_usec 2\n" },
            { S "/a/b/c/memory.max", "max" },
            { S "/a/b/c/memory.current", "200" } },
          USE(3, 500),
          USE(400, 1000) },
        { "the root cgroup of the host: no memory file there",
          { { "/proc/self/cgroup", "0::/\n" },
            { S "/cgroup.procs", "" },
            { S "/cpu.stat", "usage_usec 9\n" } },
          USE(9, INF),
          NONE },
        { "own path not visible: the mount point is our group",
          { { "/proc/self/cgroup", "0::/docker/123\n" },
            { S "/cgroup.procs", "" },
            { S "/cpu.max", "200000 100000" },
            { S "/cpu.stat", "usage_usec 9\n" },
            { S "/memory.max", "77" },
            { S "/memory.current", "7" },
            { S "/docker/memory.max", "1" },
            { S "/docker/memory.current", "1" } },
          USE(9, 2000),
          USE(7, 77) },
        { "outside of the namespace",
          { { "/proc/self/cgroup", "0::/../other\n" },
            { S "/cgroup.procs", "" },
            { "/sys/fs/other/memory.current", "1" },
            { S "/memory.current", "7" } },
          NONE,
          USE(7, INF) },
        { "version 1, joined",
          { { "/proc/self/cgroup",
              "5:cpu,cpuacct:/sandbox\n4:memory:/sandbox\n1:name=systemd:/x\n" },
            { S "/cpu,cpuacct/sandbox/cpu.cfs_quota_us", "250000\n" },
            { S "/cpu,cpuacct/sandbox/cpu.cfs_period_us", "100000\n" },
            { S "/cpu,cpuacct/sandbox/cpuacct.usage", "5000000\n" },
            { S "/memory/sandbox/memory.limit_in_bytes", "1000\n" },
            { S "/memory/sandbox/memory.usage_in_bytes", "600\n" },
            { S "/memory/sandbox/memory.stat", "inactive_file 1\ntotal_inactive_file 100\n" } },
          USE(5000, 2500),
          USE(500, 1000) },
        { "version 1, apart, limit above",
          { { "/proc/self/cgroup", "3:cpuacct:/a/b\n2:cpu:/a/b\n4:memory:/\n" },
            { S "/cpu/a/cpu.cfs_quota_us", "50000" },
            { S "/cpu/a/cpu.cfs_period_us", "100000" },
            { S "/cpu/a/b/cpu.cfs_quota_us", "-1" },
            { S "/cpu/a/b/cpu.cfs_period_us", "100000" },
            { S "/cpuacct/a/cpuacct.usage", "9000" },
            { S "/cpuacct/a/b/cpuacct.usage", "1000" },
            { S "/memory/memory.usage_in_bytes", "600" } },
          USE(9, 500),
          USE(600, INF) },
        { "hybrid: memory in version 1, processors unified",
          { { "/proc/self/cgroup", "4:memory:/sandbox\n0::/sandbox\n" },
            { S "/memory/sandbox/memory.limit_in_bytes", "9223372036854771712" },
            { S "/memory/sandbox/memory.usage_in_bytes", "600" },
            { S "/unified/sandbox/cpu.max", "10000 100000" },
            { S "/unified/sandbox/cpu.stat", "usage_usec 1\n" } },
          USE(1, 100),
          USE(600, 9223372036854771712) },
        { "nonsense",
          { { "/proc/self/cgroup", ":\n::\n0::\n9:memory\n0::/sandbox\nx" },
            { S "/cgroup.procs", "" },
            { S "/cpu.max", "0 0" },
            { S "/cpu.stat", "usage_usec" },
            { S "/memory.max", "-5" },
            { S "/memory.current", "99999999999999999999999" } },
          NONE,
          NONE },
        { "limits that make no sense are none",
          { { "/proc/self/cgroup", "0::/sandbox\n" },
            { S "/cgroup.procs", "" },
            { S "/sandbox/cpu.max", "99999999999999999999 100000" },
            { S "/sandbox/cpu.stat", "usage_usec 1\n" },
            { S "/sandbox/memory.max", "lots" },
            { S "/sandbox/memory.current", "10" },
            { S "/sandbox/memory.stat", "inactive_file 1000\n" } },
          USE(1, INF),
          USE(0, INF) },
};

static void test_worlds(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(worlds); i++) {
                const struct world *w = &worlds[i];
                struct cgroup_self_usage use = { 0 };
                struct fake_root t;

                check_case(w->name);
                fake_root_open(&t);
                fake_root_put_all(&t, w->files);
                check_i64_eq(cgroup_self_cpu(t.root, &use), w->cpu.r);
                check_u64_eq(use.used, w->cpu.use.used);
                check_u64_eq(use.limit, w->cpu.use.limit);
                use = (struct cgroup_self_usage){ 0 };
                check_i64_eq(cgroup_self_memory(t.root, &use), w->memory.r);
                check_u64_eq(use.used, w->memory.use.used);
                check_u64_eq(use.limit, w->memory.use.limit);
                fake_root_close(&t);
        }
}

/* Whoever owns the root file system may put anything there; nothing of it makes us wait. */
static void test_pipes_and_directories_are_not_read(void **state)
{
        struct cgroup_self_usage use;
        struct fake_root t;

        (void) state;
        fake_root_open(&t);
        fake_root_put(&t, "/proc/self/cgroup", "0::/\n");
        fake_root_put(&t, S "/cgroup.procs", "");
        check_i64_eq(mkfifo(fake_root_path(&t, S "/memory.current"), 0644), 0);
        check_i64_eq(mkdir(fake_root_path(&t, S "/cpu.stat"), 0755), 0);
        check_i64_eq(cgroup_self_memory(t.root, &use), -ENODATA);
        check_i64_eq(cgroup_self_cpu(t.root, &use), -ENODATA);
        check_i64_eq(unlink(fake_root_path(&t, "/proc/self/cgroup")), 0);
        check_i64_eq(mkfifo(fake_root_path(&t, "/proc/self/cgroup"), 0644), 0);
        check_i64_eq(cgroup_self_memory(t.root, &use), -ENODATA);
        fake_root_close(&t);
}

static void test_long_and_deep_paths(void **state)
{
        struct cgroup_self_usage use;
        struct fake_root t;
        static char text[6000];
        size_t n = (size_t) snprintf(text, sizeof(text), "0::");

        (void) state;
        fake_root_open(&t);
        fake_root_put(&t, S "/cgroup.procs", "");
        fake_root_put(&t, S "/memory.current", "3");
        memset(text + n, 'a', sizeof(text) - n - 1);
        text[n] = '/';
        check_case("longer than a path may be");
        fake_root_put(&t, "/proc/self/cgroup", text);
        check_i64_eq(cgroup_self_memory(t.root, &use), 0);
        check_u64_eq(use.used, 3);
        check_case("of many levels that are not there");
        for (size_t i = n; i < 3000; i++)
                text[i] = i % 2 ? '/' : 'a';
        text[3000] = '\0';
        fake_root_put(&t, "/proc/self/cgroup", text);
        check_i64_eq(cgroup_self_memory(t.root, &use), 0);
        check_u64_eq(use.used, 3);
        fake_root_close(&t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_worlds),
                cmocka_unit_test(test_pipes_and_directories_are_not_read),
                cmocka_unit_test(test_long_and_deep_paths),
        };

        return cmocka_run_group_tests_name("cgroup_self", tests, NULL, NULL);
}
