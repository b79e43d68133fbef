/* SPDX-License-Identifier: Apache-2.0 */

/* Which files get which text is tested in trees of plain files; then the host's own trees are used,
 * whatever version they are. */

#include "os/cgroup.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "base/base.h"
#include "base/id.h"
#include "os/clone.h"
#include "tests/lib/fake_root.h"

#define S "/sys/fs/cgroup"

/* --- what is written --- */

/* In a tree of plain files a new group has no files; they are put there before the limits are set. */
struct kind {
        const char *name;
        struct fake_root_file files[24];
        struct fake_root_file written[16]; /* with memory 1 MiB, half a processor, 50 processes */
        struct fake_root_file without[16]; /* with no limits */
};

static const struct kind kinds[] = {
        { "unified",
          { { S "/cgroup.controllers", "memory cpu pids\n" },
            { S "/cgroup.subtree_control", "" },
            { S "/hutch/cgroup.subtree_control", "" },
            { S "/hutch/pids.max", "" },
            { S "/hutch/sandbox/commands/memory.max", "" },
            { S "/hutch/sandbox/commands/memory.swap.max", "" },
            { S "/hutch/sandbox/commands/cpu.max", "" },
            { S "/hutch/sandbox/commands/pids.max", "" } },
          { { S "/hutch/pids.max", "20000" },
            { S "/hutch/sandbox/commands/memory.max", "1048576" },
            { S "/hutch/sandbox/commands/memory.swap.max", "0" },
            { S "/hutch/sandbox/commands/cpu.max", "50000 100000" },
            { S "/hutch/sandbox/commands/pids.max", "50" } },
          { { S "/hutch/sandbox/commands/memory.max", "max" },
            { S "/hutch/sandbox/commands/memory.swap.max", "max" },
            { S "/hutch/sandbox/commands/cpu.max", "max" },
            { S "/hutch/sandbox/commands/pids.max", "max" } } },
        { "hybrid, processors with their accounting",
          { { S "/unified/hutch/sandbox/commands/cgroup.freeze", "" },
            { S "/memory/hutch/sandbox/memory.limit_in_bytes", "" },
            { S "/memory/hutch/sandbox/memory.memsw.limit_in_bytes", "" },
            { S "/memory/hutch/memory.kmem.tcp.limit_in_bytes", "" },
            { S "/memory/hutch/sandbox/memory.kmem.tcp.limit_in_bytes", "" },
            { S "/cpu,cpuacct/hutch/sandbox/cpu.cfs_quota_us", "" },
            { S "/pids/hutch/pids.max", "" },
            { S "/pids/hutch/sandbox/pids.max", "" },
            { S "/freezer/untouched", "" } },
          { { S "/pids/hutch/pids.max", "20000" },
            { S "/memory/hutch/sandbox/memory.limit_in_bytes", "1048576" },
            { S "/memory/hutch/sandbox/memory.memsw.limit_in_bytes", "1048576" },
            { S "/memory/hutch/memory.kmem.tcp.limit_in_bytes", "-1" },
            { S "/memory/hutch/sandbox/memory.kmem.tcp.limit_in_bytes", "262144" },
            { S "/cpu,cpuacct/hutch/sandbox/cpu.cfs_quota_us", "50000" },
            { S "/pids/hutch/sandbox/pids.max", "50" } },
          { { S "/memory/hutch/sandbox/memory.limit_in_bytes", "-1" },
            { S "/memory/hutch/sandbox/memory.memsw.limit_in_bytes", "-1" },
            { S "/memory/hutch/sandbox/memory.kmem.tcp.limit_in_bytes", "-1" },
            { S "/cpu,cpuacct/hutch/sandbox/cpu.cfs_quota_us", "-1" },
            { S "/pids/hutch/sandbox/pids.max", "max" } } },
        { "version 1 only, no accounting of swap and socket buffers",
          { { S "/memory/hutch/sandbox/memory.limit_in_bytes", "" },
            { S "/cpu/hutch/sandbox/cpu.cfs_quota_us", "" },
            { S "/pids/hutch/pids.max", "" },
            { S "/pids/hutch/sandbox/pids.max", "" },
            { S "/freezer/hutch/sandbox/freezer.state", "" } },
          { { S "/memory/hutch/sandbox/memory.limit_in_bytes", "1048576" },
            { S "/cpu/hutch/sandbox/cpu.cfs_quota_us", "50000" },
            { S "/pids/hutch/sandbox/pids.max", "50" } },
          { { S "/pids/hutch/sandbox/pids.max", "max" } } },
};

static void check_files(const struct fake_root *t, const struct fake_root_file *files)
{
        for (; files->name; files++) {
                scoped(fd_closep) int fd = open(fake_root_path(t, files->name), O_RDWR);
                char text[64] = "";

                check_true(fd >= 0);
                check_true(read(fd, text, sizeof(text) - 1) >= 0);
                check_z_eq(text, files->content);
                check_i64_eq(ftruncate(fd, 0), 0); /* a real one forgets what was there */
        }
}

static void test_what_is_written(void **state)
{
        const struct cgroup_limits limits = { .memory = MiB, .cpu_millis = 500, .pids = 50 };
        const struct cgroup_limits keep = { 0 };
        const struct cgroup_limits none = { .memory = CGROUP_NO_LIMIT,
                                            .cpu_millis = CGROUP_NO_LIMIT,
                                            .pids = CGROUP_NO_LIMIT };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                struct cgroup_tree tree;
                struct fake_root t;
                struct cgroup g;

                check_case(kinds[i].name);
                fake_root_open(&t);
                fake_root_put_all(&t, kinds[i].files);
                check_i64_eq(cgroup_tree_open(&tree, t.root, "hutch", 20000), 0);
                check_i64_eq(cgroup_open(&tree, "sandbox", &g), 0);
                check_i64_eq(cgroup_set_limits(&tree, &g, &limits), 0);
                check_files(&t, kinds[i].written);
                for (const struct fake_root_file *f = kinds[i].written; f->name; f++)
                        fake_root_put(&t, f->name, "as it was");
                check_i64_eq(cgroup_set_limits(&tree, &g, &keep), 0);
                for (const struct fake_root_file *f = kinds[i].written; f->name; f++)
                        check_files(&t,
                                    (struct fake_root_file[]){ { f->name, "as it was" }, { 0 } });
                check_i64_eq(cgroup_set_limits(&tree, &g, &none), 0);
                check_files(&t, kinds[i].without);
                check_i64_eq(cgroup_make(&tree, "sandbox", &g), -EEXIST);
                cgroup_close(&g);
                cgroup_tree_close(&tree);
                fake_root_close(&t);
        }
}

/* All sandboxes together. */
static void test_memory_of_the_tree(void **state)
{
        static const struct {
                struct fake_root_file files[6];
                const char *limit, *none;
        } cases[] = {
                { { { S "/hutch/memory.max", "" },
                    { S "/cgroup.controllers", "memory cpu pids\n" },
                    { S "/cgroup.subtree_control", "" },
                    { S "/hutch/cgroup.subtree_control", "" } },
                  "1048576",
                  "max" },
                { { { S "/memory/hutch/memory.limit_in_bytes", "" },
                    { S "/unified/x", "" },
                    { S "/cpu/x", "" },
                    { S "/pids/x", "" } },
                  "1048576",
                  "-1" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *name = cases[i].files[0].name;
                struct cgroup_tree tree;
                struct fake_root t;

                fake_root_open(&t);
                fake_root_put_all(&t, cases[i].files);
                check_i64_eq(cgroup_tree_open(&tree, t.root, "hutch", CGROUP_KEEP), 0);
                check_i64_eq(cgroup_tree_limit_memory(&tree, MiB), 0);
                check_files(&t, (struct fake_root_file[]){ { name, cases[i].limit }, { 0 } });
                check_i64_eq(cgroup_tree_limit_memory(&tree, CGROUP_NO_LIMIT), 0);
                check_files(&t, (struct fake_root_file[]){ { name, cases[i].none }, { 0 } });
                cgroup_tree_close(&tree);
                fake_root_close(&t);
        }
}

/* --- disks --- */

#define SANDBOX S "/hutch/sandbox/commands"

static const struct fake_root_file unified_files[] = {
        { S "/cgroup.controllers", "memory cpu pids io\n" },
        { S "/cgroup.subtree_control", "" },
        { S "/hutch/cgroup.subtree_control", "" },
        { SANDBOX "/io.max", "" },
        { 0 },
};

static void test_io_is_limited_by_disk(void **state)
{
        const struct {
                const char *name;
                struct cgroup_limits limits;
                const char *written;
        } cases[] = {
                { "bytes",
                  { .io_bytes = MiB, .disk = makedev(8, 16) },
                  "8:16 rbps=1048576 wbps=1048576" },
                { "operations",
                  { .io_operations = 100, .disk = makedev(259, 0) },
                  "259:0 riops=100 wiops=100" },
                { "both",
                  { .io_bytes = 5, .io_operations = 6, .disk = makedev(8, 0) },
                  "8:0 rbps=5 wbps=5 riops=6 wiops=6" },
                { "neither",
                  { .io_bytes = CGROUP_NO_LIMIT,
                    .io_operations = CGROUP_NO_LIMIT,
                    .disk = makedev(8, 0) },
                  "8:0 rbps=max wbps=max riops=max wiops=max" },
                { "as it is", { .disk = makedev(8, 0) }, "" },
        };
        struct cgroup_tree tree;
        struct fake_root t;
        struct cgroup g;

        (void) state;
        fake_root_open(&t);
        fake_root_put_all(&t, unified_files);
        check_i64_eq(cgroup_tree_open(&tree, t.root, "hutch", CGROUP_KEEP), 0);
        check_true(tree.io);
        /* A plain file keeps what is behind the last text. */
        check_files(&t,
                    (struct fake_root_file[]){
                            { S "/hutch/cgroup.subtree_control", "+iomory +cpu +pids" }, { 0 } });
        check_i64_eq(cgroup_open(&tree, "sandbox", &g), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].name);
                check_i64_eq(cgroup_set_limits(&tree, &g, &cases[i].limits), 0);
                check_files(&t, (struct fake_root_file[]){ { SANDBOX "/io.max", cases[i].written },
                                                           { 0 } });
        }
        check_case("no disk");
        check_i64_eq(cgroup_set_limits(&tree, &g, &(struct cgroup_limits){ .io_bytes = 5 }),
                     -ENODEV);
        check_i64_eq(cgroup_set_limits(&tree, &g,
                                       &(struct cgroup_limits){ .io_bytes = 5,
                                                                .disk = makedev(0, 9) }),
                     -ENODEV);
        check_case("no controller");
        tree.io = false;
        check_i64_eq(cgroup_set_limits(&tree, &g, &cases[0].limits), -ENOTSUP);
        check_files(&t, (struct fake_root_file[]){ { SANDBOX "/io.max", "" }, { 0 } });
        cgroup_close(&g);
        cgroup_tree_close(&tree);
        fake_root_close(&t);
}

static void test_version_1_limits_no_io(void **state)
{
        static const struct fake_root_file files[] = {
                { S "/unified/hutch/sandbox/commands/cgroup.freeze", "" },
                { S "/memory/hutch/sandbox/x", "" },
                { S "/cpu/hutch/sandbox/x", "" },
                { S "/pids/hutch/sandbox/x", "" },
                { S "/unified/hutch/sandbox/commands/io.max", "" },
                { 0 },
        };
        const struct cgroup_limits limits = { .io_bytes = MiB, .disk = makedev(8, 0) };
        struct cgroup_tree tree;
        struct fake_root t;
        struct cgroup g;

        (void) state;
        fake_root_open(&t);
        fake_root_put_all(&t, files);
        check_i64_eq(cgroup_tree_open(&tree, t.root, "hutch", CGROUP_KEEP), 0);
        check_false(tree.io);
        check_i64_eq(cgroup_open(&tree, "sandbox", &g), 0);
        check_i64_eq(cgroup_set_limits(&tree, &g, &limits), -ENOTSUP);
        check_files(&t, (struct fake_root_file[]){
                                { S "/unified/hutch/sandbox/commands/io.max", "" }, { 0 } });
        cgroup_close(&g);
        cgroup_tree_close(&tree);
        fake_root_close(&t);
}

static void test_incomplete_trees_and_bad_names(void **state)
{
        struct cgroup_tree tree;
        struct fake_root t;
        struct cgroup g;

        (void) state;
        fake_root_open(&t);
        check_i64_eq(cgroup_tree_open(&tree, t.root, "hutch", 0), -ENODATA);
        fake_root_put(&t, S "/memory/x", "");
        fake_root_put(&t, S "/cpu/x", "");
        check_i64_eq(cgroup_tree_open(&tree, t.root, "hutch", 0), -ENODATA);
        check_i64_eq(access(fake_root_path(&t, S "/memory/hutch"), F_OK), -1);
        check_i64_eq(cgroup_tree_open(&tree, t.root, "../x", 0), -EINVAL);
        check_i64_eq(cgroup_tree_open(&tree, t.root, "", 0), -EINVAL);
        tree = CGROUP_TREE_NULL;
        check_i64_eq(cgroup_make(&tree, "a/b", &g), -EINVAL);
        check_i64_eq(cgroup_make(&tree, "..", &g), -EINVAL);
        check_i64_eq(cgroup_remove(&tree, "."), -EINVAL);
        fake_root_close(&t);
}

/* --- the host's own --- */

#define OWNER 100000

struct world {
        char ours[64];
        struct cgroup_tree tree;
        struct cgroup g;
        int command; /* directory of v2 */
        bool v1;     /* on a hybrid host only v1 is used */
};

/* The freezer's tree in the place of the unified one. */
static void forget_unified(struct world *w)
{
        char path[128];

        (void) snprintf(path, sizeof(path), S "/freezer/%s", w->ours);
        check_i64_eq(mkdir(path, 0755), 0);
        w->tree.dirs[CGROUP_UNIFIED] = fd_close(w->tree.dirs[CGROUP_UNIFIED]);
        w->tree.dirs[CGROUP_FREEZER] = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        check_true(w->tree.dirs[CGROUP_FREEZER] >= 0);
        w->v1 = true;
}

static bool world_open(struct world *w, const struct cgroup_limits *limits, bool v1)
{
        char id[ID_HEX_LEN + 1];
        struct ids ids;
        int r;

        if (geteuid() != 0)
                return false;
        ids_init(&ids);
        ids_hex(&ids, id);
        (void) snprintf(w->ours, sizeof(w->ours), "hutch-test-%s", id);
        r = cgroup_tree_open(&w->tree, "", w->ours, 1000);
        if (r == -ENODATA || r == -EROFS || r == -EACCES || r == -ENOENT)
                return false;
        check_i64_eq(r, 0);
        w->v1 = false;
        if (v1 && !w->tree.unified_controls && access(S "/freezer", X_OK) == 0)
                forget_unified(w);
        check_i64_eq(cgroup_make(&w->tree, "sandbox", &w->g), 0);
        check_i64_eq(cgroup_delegate(&w->tree, &w->g, OWNER), 0);
        check_i64_eq(cgroup_set_limits(&w->tree, &w->g, limits), 0);
        w->command = -EBADF;
        if (w->g.parts[CGROUP_COMMANDS] >= 0) {
                check_i64_eq(mkdirat(w->g.parts[CGROUP_COMMANDS], "1", 0755), 0);
                w->command = openat(w->g.parts[CGROUP_COMMANDS], "1",
                                    O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                check_true(w->command >= 0);
        }
        return true;
}

static void world_close(struct world *w)
{
        w->command = fd_close(w->command);
        cgroup_close(&w->g);
        check_i64_eq(cgroup_remove(&w->tree, "sandbox"), 0);
        check_i64_eq(cgroup_remove(&w->tree, "sandbox"), 0);
        if (w->v1) {
                char path[128];

                (void) snprintf(path, sizeof(path), S "/freezer/%s", w->ours);
                check_i64_eq(rmdir(path), 0);
        }
        check_i64_eq(cgroup_tree_remove(&w->tree, "", w->ours), 0);
}

#define NEEDS "needs root and cgroups that may be made"

/* A process in the group that does `fn`; it is in when this returns. */
static pid_t start(struct world *w, void (*fn)(struct world *w), int *ret_pidfd)
{
        int ready[2];
        char byte = 0;
        pid_t pid;

        check_i64_eq(pipe2(ready, O_CLOEXEC), 0);
        pid = clone_child(&(struct clone_child){ 0, w->command }, ret_pidfd);
        check_true(pid >= 0);
        if (pid == 0) {
                byte = (char) (cgroup_join(&w->g) == 0);
                if (write(ready[1], &byte, 1) == 1)
                        fn(w);
                _exit(9);
        }
        check_i64_eq(read(ready[0], &byte, 1), 1);
        check_i64_eq(byte, 1);
        (void) close(ready[0]);
        (void) close(ready[1]);
        return pid;
}

static void wait_forever(struct world *w)
{
        (void) w;
        for (;;)
                (void) pause();
}

/* Zombies are out of a unified group at once; of one of version 1 when they are reaped. */
static void test_killed_frozen_or_not(void **state)
{
        (void) state;
        for (int frozen = 0; frozen < 2; frozen++)
                for (int v1 = 0; v1 < 2; v1++) {
                        struct world w = { .g = CGROUP_NULL };
                        int pidfd, status;

                        check_case(frozen ? "frozen" : "running");
                        if (!world_open(&w, &(struct cgroup_limits){ 0 }, v1))
                                skip_because(NEEDS);
                        (void) start(&w, wait_forever, &pidfd);
                        check_i64_eq(cgroup_is_populated(&w.g), 1);
                        check_i64_eq(cgroup_remove(&w.tree, "sandbox"), -EBUSY);
                        if (frozen)
                                check_i64_eq(cgroup_freeze(&w.g, true), 0);
                        check_i64_eq(cgroup_kill(&w.g), 0);
                        check_i64_eq(pidfd_wait(pidfd, &status), 0);
                        check_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
                        check_i64_eq(cgroup_is_populated(&w.g), 0);
                        (void) close(pidfd);
                        world_close(&w);
                }
}

static void count_up(struct world *w)
{
        (void) w;
        for (;;)
                (void) sched_yield();
}

static void test_frozen_and_thawed(void **state)
{
        struct world w = { .g = CGROUP_NULL };
        int pidfd, status;

        (void) state;
        if (!world_open(&w, &(struct cgroup_limits){ 0 }, false))
                skip_because(NEEDS);
        (void) start(&w, count_up, &pidfd);
        check_i64_eq(cgroup_freeze(&w.g, true), 0);
        if (w.g.parts[CGROUP_UNIFIED] >= 0) {
                struct pollfd p = { openat(w.g.parts[CGROUP_UNIFIED], "cgroup.events",
                                           O_RDONLY | O_CLOEXEC),
                                    POLLPRI, 0 };

                while (cgroup_is_frozen(&w.g) == 0)
                        check_i64_eq(poll(&p, 1, 5000), 1);
                (void) close(p.fd);
        }
        check_i64_eq(cgroup_is_frozen(&w.g), 1);
        check_i64_eq(cgroup_freeze(&w.g, false), 0);
        check_i64_eq(pidfd_kill(pidfd, SIGTERM), 0); /* would wait if it were frozen */
        check_i64_eq(pidfd_wait(pidfd, &status), 0);
        world_close(&w);
}

static void eat_memory(struct world *w)
{
        (void) w;
        for (;;) {
                char *p = malloc(MiB);

                if (p)
                        memset(p, 1, MiB);
        }
}

static void fork_on(struct world *w)
{
        int made = 0;

        (void) w;
        while (made < 100) {
                pid_t pid = fork();

                if (pid < 0)
                        break;
                if (pid == 0)
                        for (;;)
                                (void) pause();
                made++;
        }
        _exit(made);
}

static void test_limits_hold(void **state)
{
        const struct cgroup_limits limits = { .memory = 16 * MiB, .pids = 10 };
        struct world w = { .g = CGROUP_NULL };
        int pidfd, status;

        (void) state;
        if (!world_open(&w, &limits, false))
                skip_because(NEEDS);
        check_case("memory");
        (void) start(&w, eat_memory, &pidfd);
        check_i64_eq(pidfd_wait(pidfd, &status), 0);
        check_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        (void) close(pidfd);

        check_case("processes");
        (void) prctl(PR_SET_CHILD_SUBREAPER, 1);
        (void) start(&w, fork_on, &pidfd);
        check_i64_eq(pidfd_wait(pidfd, &status), 0);
        check_true(WIFEXITED(status));
        check_i64_eq(WEXITSTATUS(status), 9);
        check_i64_eq(cgroup_kill(&w.g), 0);
        for (int i = 0; i < 9; i++)
                check_true(waitpid(-1, NULL, 0) > 0);
        (void) close(pidfd);
        world_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_is_written),
                cmocka_unit_test(test_memory_of_the_tree),
                cmocka_unit_test(test_io_is_limited_by_disk),
                cmocka_unit_test(test_version_1_limits_no_io),
                cmocka_unit_test(test_incomplete_trees_and_bad_names),
                cmocka_unit_test(test_killed_frozen_or_not),
                cmocka_unit_test(test_frozen_and_thawed),
                cmocka_unit_test(test_limits_hold),
        };

        return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
