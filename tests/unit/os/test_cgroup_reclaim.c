/* SPDX-License-Identifier: Apache-2.0 */

/* What is written to a tree of plain files. That the kernel then forgets the cgroup is tested by tests/soak. */

#include "base/base.h"
#include "os/cgroup.h"
#include "tests/lib/fake_root.h"

#define V2    "/sys/fs/cgroup"
#define V2_OF V2 "/hutch/sandbox/"
#define V1    "/sys/fs/cgroup/memory"
#define V1_OF V1 "/hutch/sandbox/"
#define STAT  "anon 0\nfile 8192\nkernel 4096\nfile_mapped 0\n"

static const struct {
        const char *name;
        struct fake_root_file files[8];
        const char *file, *written;
} cases[] = {
        { "v2, some pages",
          { { V2_OF "memory.stat", STAT }, { V2_OF "memory.reclaim", "" } },
          V2_OF "memory.reclaim",
          "8192" },
        { "v2, nothing",
          { { V2_OF "memory.stat", "anon 0\nfile 0\nkernel 4096\n" },
            { V2_OF "memory.reclaim", "" } },
          V2_OF "memory.reclaim",
          "" },
        { "v2, a cache worth keeping",
          { { V2_OF "memory.stat", "anon 0\nfile 8388608\n" }, { V2_OF "memory.reclaim", "" } },
          V2_OF "memory.reclaim",
          "" },
        { "v1, some pages",
          { { V1_OF "memory.usage_in_bytes", "12288\n" },
            { V1_OF "memory.kmem.usage_in_bytes", "8192\n" },
            { V1_OF "memory.force_empty", "" } },
          V1_OF "memory.force_empty",
          "0" },
        { "v1, only kernel memory",
          { { V1_OF "memory.usage_in_bytes", "8192\n" },
            { V1_OF "memory.kmem.usage_in_bytes", "8192\n" },
            { V1_OF "memory.force_empty", "" } },
          V1_OF "memory.force_empty",
          "" },
        { "v1, a cache worth keeping",
          { { V1_OF "memory.usage_in_bytes", "8388608\n" },
            { V1_OF "memory.kmem.usage_in_bytes", "8192\n" },
            { V1_OF "memory.force_empty", "" } },
          V1_OF "memory.force_empty",
          "" },
};

static const struct fake_root_file v2_tree[] = { { V2 "/cgroup.controllers", "memory cpu pids\n" },
                                                 { V2 "/cgroup.subtree_control", "" },
                                                 { V2 "/hutch/cgroup.subtree_control", "" },
                                                 { V2_OF "commands/x", "" },
                                                 { 0 } };
static const struct fake_root_file v1_tree[] = { { "/sys/fs/cgroup/cpu/hutch/sandbox/x", "" },
                                                 { "/sys/fs/cgroup/pids/hutch/sandbox/x", "" },
                                                 { "/sys/fs/cgroup/freezer/hutch/sandbox/x", "" },
                                                 { 0 } };

static void test_what_is_written(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct cgroup_tree tree;
                struct fake_root t;
                struct cgroup g;
                char text[64] = "";
                int fd;

                check_case(cases[i].name);
                fake_root_open(&t);
                fake_root_put_all(&t, cases[i].name[1] == '2' ? v2_tree : v1_tree);
                fake_root_put_all(&t, cases[i].files);
                check_i64_eq(cgroup_tree_open(&tree, t.root, "hutch", CGROUP_KEEP), 0);
                check_i64_eq(cgroup_open(&tree, "sandbox", &g), 0);
                check_i64_eq(cgroup_reclaim(&tree, &g), 0);
                fd = open(fake_root_path(&t, cases[i].file), O_RDONLY | O_CLOEXEC);
                check_true(fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0);
                check_z_eq(text, cases[i].written);
                (void) close(fd);
                cgroup_close(&g);
                cgroup_tree_close(&tree);
                fake_root_close(&t);
        }
}

static void test_kernel_without_reclaim(void **state)
{
        struct cgroup_tree tree;
        struct fake_root t;
        struct cgroup g;

        (void) state;
        fake_root_open(&t);
        fake_root_put_all(&t, v2_tree);
        fake_root_put(&t, V2_OF "memory.stat", STAT);
        check_i64_eq(cgroup_tree_open(&tree, t.root, "hutch", CGROUP_KEEP), 0);
        check_i64_eq(cgroup_open(&tree, "sandbox", &g), 0);
        check_i64_eq(cgroup_reclaim(&tree, &g), -ENOENT);
        cgroup_close(&g);
        cgroup_tree_close(&tree);
        fake_root_close(&t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_written),
                cmocka_unit_test(test_kernel_without_reclaim),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
