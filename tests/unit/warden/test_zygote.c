/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/zygote.h"

#include <sys/stat.h>
#include <signal.h>

#include "os/clone.h"
#include "tests/lib/instance_world.h"
#include "warden/build.h"

static struct instance_world world;

#define NEEDS "sandboxes need root"

static int open_world(void **state)
{
        (void) state;
        if (instance_world_possible())
                instance_world_open(&world, "/proc/self/exe");
        return 0;
}

static int close_world(void **state)
{
        (void) state;
        if (instance_world_possible())
                instance_world_close(&world);
        return 0;
}

static void make(struct zygote *s, uint32_t range)
{
        check_i64_eq(zygote_make(&world.ctx, PLAN_SAMPLE_BASE + range * PLAN_UIDS, s), 0);
        check_i64_eq(zygote_wait(s), 0);
}

/* The exit of a zygote that was not killed. */
static int exit_code(struct zygote *s)
{
        int status;

        check_i64_eq(pidfd_wait(s->pidfd, &status), 0);
        check_true(WIFEXITED(status));
        return WEXITSTATUS(status);
}

static void test_waits_in_its_group(void **state)
{
        struct zygote s;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        make(&s, 0);
        if (world.ctx.tree)
                check_i64_eq(cgroup_is_populated(&s.group), 1);
        check_i64_eq(pidfd_kill(s.pidfd, 0), 0);
        check_i64_eq(zygote_remove(&world.ctx, &s), 0);
        check_i64_eq(zygote_remove(&world.ctx, &s), 0); /* nothing there, nothing wrong */
}

/* Of the host nothing is mounted in there: neither what was before it was made, nor what comes. */
static void test_keeps_nothing_of_the_machine(void **state)
{
        static const char *const may[] = {
                "/data", "/usr", "/proc", "/groups", "/lowers", "/root"
        };
        char path[64], line[4096];
        struct zygote s;
        size_t n = 0;
        FILE *f;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        make(&s, 0);
        (void) snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int) s.pid);
        f = fopen(path, "re");
        check_true(f != NULL);
        for (; fgets(line, sizeof(line), f); n++) {
                struct str rest = str_from(line), at = STR("");
                bool known = false;

                for (int i = 0; i < 5; i++) /* the fifth word is the place */
                        check_true(str_split(&rest, ' ', &at));
                check_case(line);
                for (size_t i = 0; i < ARRAY_SIZE(may); i++)
                        known |= str_starts_with(at, str_from(may[i]));
                check_true(known || str_eq(at, STR("/")));
        }
        (void) fclose(f);
        check_true(n > 5);
        check_i64_eq(zygote_remove(&world.ctx, &s), 0);
        check_i64_eq(access(fake_root_path(&world.root, "/" DATA_ZYGOTES "/u268435456"), F_OK), -1);
}

static void test_uids_are_given_once(void **state)
{
        struct zygote s, other = ZYGOTE_NULL;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        if (!world.ctx.tree)
                skip_because("no cgroups may be made here");
        make(&s, 0);
        check_i64_eq(zygote_make(&world.ctx, PLAN_SAMPLE_BASE, &other), -EEXIST);
        check_i64_eq(zygote_remove(&world.ctx, &s), 0);
}

/* The second has been born with a copy of our end of the first's socket, and must not hold it. */
static void test_ends_with_the_warden(void **state)
{
        struct zygote first, second;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        make(&first, 0);
        make(&second, 1);
        first.socket = fd_close(first.socket);
        check_i64_eq(exit_code(&first), 0);
        check_i64_eq(zygote_remove(&world.ctx, &first), 0);
        check_i64_eq(pidfd_kill(second.pidfd, 0), 0);
        check_i64_eq(zygote_remove(&world.ctx, &second), 0);
}

/* --- messages that make no sandbox --- */

enum spoil { GARBAGE, NO_FDS, SPOIL_MAX };

static const char *const spoil_names[] = { "garbage", "no descriptors" };

static void send_spoiled(const struct zygote *s, enum spoil spoil, int report)
{
        const struct plan_spec spec = plan_sample_host();
        scoped(buf_done) struct buf b;

        instance_world_encode(&spec, &b);
        if (spoil == NO_FDS)
                check_i64_eq(send(s->socket, buf_str(&b).p, b.n, 0), b.n);
        else
                check_true(fd_pass_send(s->socket, spoil == GARBAGE ? STR("garbage") : buf_str(&b),
                                        (int[ZYGOTE_FDS]){ 0, 1, 2, 0, report, 0 }, ZYGOTE_FDS, 0)
                           >= 0);
}

static void test_messages_that_make_no_sandbox(void **state)
{
        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        for (enum spoil i = 0; i < SPOIL_MAX; i++) {
                int pipes[2], step = 0;
                struct zygote s;

                check_case(spoil_names[i]);
                make(&s, 0);
                check_i64_eq(pipe2(pipes, O_CLOEXEC), 0);
                send_spoiled(&s, i, pipes[1]);
                (void) close(pipes[1]);
                check_i64_eq(exit_code(&s), 1);
                check_i64_eq(build_wait(pipes[0], &step), i == NO_FDS ? -ECHILD : -EBADMSG);
                check_i64_eq(step, BUILD_NOWHERE);
                (void) close(pipes[0]);
                check_i64_eq(zygote_remove(&world.ctx, &s), 0);
        }
}

static void test_a_dead_zygote_is_noticed(void **state)
{
        struct plan_spec spec = plan_sample_host();
        scoped(buf_done) struct buf b;
        struct spawn_order order = { .spec = &spec, .record = -EBADF, .output = STDERR_FILENO };
        struct zygote s;
        struct err e = { 0 };
        int report = -EBADF, status;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        order.zygote = &s;
        order.spec_bytes = instance_world_encode(&spec, &b);
        make(&s, 0);
        check_i64_eq(pidfd_kill(s.pidfd, SIGKILL), 0);
        check_i64_eq(pidfd_wait(s.pidfd, &status), 0);
        check_true(spawn_begin(&world.ctx, &order, &report, &e) < 0);
        check_true(strstr(e.message, "send its spec") != NULL);
        check_i64_eq(access(fake_root_path(&world.root, "/" DATA_SANDBOXES "/a1"), F_OK), -1);
        check_i64_eq(zygote_remove(&world.ctx, &s), 0);

        check_case("uids of another");
        make(&s, 1);
        check_i64_eq(spawn_begin(&world.ctx, &order, &report, &e), ERR_RETURN(ERR_INVALID));
        check_i64_eq(zygote_remove(&world.ctx, &s), 0);
}

/* With its orders, and before it is complete. */
static void test_one_that_dies_on_the_way_is_told(void **state)
{
        struct plan_spec spec = plan_sample_host();
        scoped(buf_done) struct buf b;
        struct spawn_order order = { .spec = &spec, .record = -EBADF, .output = STDERR_FILENO };
        struct zygote s;
        struct err e = { 0 };
        int report = -EBADF;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        order.zygote = &s;
        order.spec_bytes = instance_world_encode(&spec, &b);
        make(&s, 0);
        check_i64_eq(pidfd_kill(s.pidfd, SIGSTOP), 0);
        check_i64_eq(waitid(P_PIDFD, (id_t) s.pidfd, &(siginfo_t){ 0 }, WSTOPPED), 0);
        check_i64_eq(spawn_begin(&world.ctx, &order, &report, &e), 0);
        check_i64_eq(pidfd_kill(s.pidfd, SIGKILL), 0);
        check_true(spawn_finish(&spec, report, &e) < 0);
        check_true(strstr(e.message, "before it was complete") != NULL);
        check_i64_eq(spawn_destroy(&world.ctx, "a1", &s, &e), 0);
        check_i64_eq(access(fake_root_path(&world.root, "/" DATA_SANDBOXES "/a1"), F_OK), -1);
}

static void test_without_a_network_it_is_refused(void **state)
{
        struct plan_spec spec = plan_sample_host();
        struct spawn_order order = { .spec = &spec, .output = STDERR_FILENO, .netns = -EBADF };
        struct zygote s;
        struct err e = { 0 };
        int report = -EBADF;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        order.zygote = &s;
        make(&s, 0);
        check_i64_eq(spawn_begin(&world.ctx, &order, &report, &e), ERR_RETURN(ERR_INVALID));
        check_i64_eq(access(fake_root_path(&world.root, "/" DATA_SANDBOXES "/a1"), F_OK), -1);
        check_i64_eq(zygote_remove(&world.ctx, &s), 0);
}

/* The last is a directory of ours that is no sandbox's. */
static void test_ids_that_lead_elsewhere(void **state)
{
        static const char *const ids[] = { "", ".", "..", "a/b", "../empty" };

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
                struct zygote none = ZYGOTE_NULL;
                struct err e;

                check_case(ids[i]);
                none.uid_first = PLAN_SAMPLE_BASE;
                check_i64_eq(spawn_destroy(&world.ctx, ids[i], &none, &e), ERR_RETURN(ERR_INVALID));
                check_i64_eq(access(fake_root_path(&world.root, "/" DATA_EMPTY), F_OK), 0);
        }
}

static void test_the_data_dir_is_shut(void **state)
{
        scoped(fd_closep) int fd = -EBADF;
        struct stat st;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        fake_root_put(&world.root, "/other/x", "");
        check_i64_eq(chmod(fake_root_path(&world.root, "/other"), 0755), 0);
        check_i64_eq(data_open(fake_root_path(&world.root, "/other"), &fd), 0);
        check_i64_eq(stat(fake_root_path(&world.root, "/other"), &st), 0);
        check_u64_eq(st.st_mode & 07777, 0700);
        check_i64_eq(umount2(fake_root_path(&world.root, "/other/" DATA_MASKS), 0), 0);
        check_i64_eq(umount2(fake_root_path(&world.root, "/other/" DATA_GROUPS), 0), 0);
        check_i64_eq(umount2(fake_root_path(&world.root, "/other/" DATA_TREES), 0), 0);
        check_i64_eq(chown(fake_root_path(&world.root, "/other"), 1000, 1000), 0);
        fd = fd_close(fd);
        check_i64_eq(data_open(fake_root_path(&world.root, "/other"), &fd), -EPERM);
}

/* As after a restart of the warden, which then knows the uids only. */
static void test_uids_are_enough_to_remove_it(void **state)
{
        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        if (!world.ctx.tree)
                skip_because("no cgroups may be made here");
        for (int i = 0; i < 5; i++) {
                struct zygote s, same = ZYGOTE_NULL;

                make(&s, 0);
                same.uid_first = s.uid_first;
                check_i64_eq(zygote_remove(&world.ctx, &same), 0);
                check_i64_eq(zygote_remove(&world.ctx, &s), 0);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_waits_in_its_group),
                cmocka_unit_test(test_keeps_nothing_of_the_machine),
                cmocka_unit_test(test_uids_are_given_once),
                cmocka_unit_test(test_ends_with_the_warden),
                cmocka_unit_test(test_messages_that_make_no_sandbox),
                cmocka_unit_test(test_a_dead_zygote_is_noticed),
                cmocka_unit_test(test_one_that_dies_on_the_way_is_told),
                cmocka_unit_test(test_without_a_network_it_is_refused),
                cmocka_unit_test(test_ids_that_lead_elsewhere),
                cmocka_unit_test(test_the_data_dir_is_shut),
                cmocka_unit_test(test_uids_are_enough_to_remove_it),
        };

        return cmocka_run_group_tests_name("zygote", tests, open_world, close_world);
}
