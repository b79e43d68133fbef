/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cgroup.h"

#include <poll.h>
#include <sys/stat.h>

#include "tests/lib/fake_root.h"

#define EVENTS "/sys/fs/cgroup/sandbox/memory.events"

/* cgroup v2, of plain files: a change is reported once, and other events are not. */
static void test_kills_are_reported_once(void **state)
{
        static const struct {
                const char *text;
                bool happened;
        } steps[] = {
                { "low 0\nhigh 0\nmax 9\noom 0\noom_kill 2\n", false },
                { "low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\n", true },
                { "low 0\nhigh 1\nmax 12\noom 1\noom_kill 3\n", false },
                { "nonsense\n", false },
                { "oom_kill 5\n", true },
        };
        const struct cgroup_tree t = { .unified_controls = true };
        struct cgroup g = CGROUP_NULL;
        struct cgroup_oom o = CGROUP_OOM_NULL;
        struct fake_root root;

        (void) state;
        fake_root_open(&root);
        fake_root_put(&root, EVENTS, "oom_kill 2\n");
        g.parts[CGROUP_COMMANDS] = open(fake_root_path(&root, "/sys/fs/cgroup/sandbox"),
                                        O_PATH | O_DIRECTORY | O_CLOEXEC);
        check_i64_eq(cgroup_oom_open(&t, &g, &o), 0);
        check_i64_eq(o.events, POLLPRI);
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                check_case(steps[i].text);
                fake_root_put(&root, EVENTS, steps[i].text);
                check_true(cgroup_oom_happened(&o) == steps[i].happened);
        }
        cgroup_oom_close(&o);
        check_i64_eq(o.fd, -EBADF);
        cgroup_close(&g);
        fake_root_close(&root);
}

static void test_a_group_without_memory(void **state)
{
        struct cgroup g = CGROUP_NULL;
        struct cgroup_oom o = CGROUP_OOM_NULL;

        (void) state;
        for (int unified = 0; unified < 2; unified++) {
                const struct cgroup_tree t = { .unified_controls = unified };

                check_true(cgroup_oom_open(&t, &g, &o) < 0);
                check_i64_eq(o.fd, -EBADF);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_kills_are_reported_once),
                cmocka_unit_test(test_a_group_without_memory),
        };

        return cmocka_run_group_tests_name("cgroup_stats", tests, NULL, NULL);
}
