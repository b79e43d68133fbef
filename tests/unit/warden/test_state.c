/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/state.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/lib/check.h"
#include "tests/lib/fake_root.h"
#include "tests/lib/plan_sample.h"
#include "tests/lib/sealed_text.h"

static struct fake_root root;
static int dir;

static int open_dir(void **state)
{
        (void) state;
        fake_root_open(&root);
        dir = open(root.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        check_true(dir >= 0);
        return 0;
}

static int close_dir(void **state)
{
        (void) state;
        dir = fd_close(dir);
        fake_root_close(&root);
        return 0;
}

/* Of this very process. */
static struct instance_state sample(void)
{
        struct instance_state s = {
                .pid = getpid(),
                .uid_first = PLAN_SAMPLE_BASE + 3 * PLAN_UIDS,
                .image = PLAN_IMAGE_LAYERS,
                .memory = 64 * MiB,
                .cpu_millis = 500,
                .pids = 7,
        };

        check_i64_eq(state_boot(s.boot), 0);
        check_i64_eq(state_start_time(s.pid, &s.start_time), 0);
        return s;
}

static void write_sample(const char *record)
{
        scoped(fd_closep) int fd = sealed_text(str_from(record));
        struct instance_state s = sample();

        check_i64_eq(state_write(dir, &s, fd), 0);
}

/* --- */

static void test_there_and_back(void **state)
{
        scoped(fd_closep) int record = -EBADF, pidfd = -EBADF;
        struct instance_state s = sample(), out;
        struct instance_status end;
        char text[32];

        (void) state;
        write_sample("{\"owner\":1}");
        check_i64_eq(state_read(dir, &plan_sample_uids, &out), 0);
        check_z_eq(out.boot, s.boot);
        check_i64_eq(out.pid, s.pid);
        check_u64_eq(out.start_time, s.start_time);
        check_u64_eq(out.uid_first, s.uid_first);
        check_u64_eq(out.image, s.image);
        check_u64_eq(out.memory, s.memory);
        check_u64_eq(out.cpu_millis, s.cpu_millis);
        check_u64_eq(out.pids, s.pids);
        check_u64_eq(out.record_size, 11);
        check_i64_eq(state_open_record(dir, &record), 0);
        check_i64_eq(read(record, text, sizeof(text)), 11);
        check_true(memcmp(text, "{\"owner\":1}", 11) == 0);
        check_i64_eq(state_adopt(&out, &pidfd), 0);
        check_true(pidfd >= 0);
        check_i64_eq(state_read_end(dir, &end), -ENOENT);
}

static void test_an_end(void **state)
{
        const struct instance_status end = { RUNTIME_DEAD, WARDEN_EXIT_SIGNAL, 9 };
        struct instance_status out;
        struct instance_state s;

        (void) state;
        write_sample("");
        check_i64_eq(state_write_end(dir, &end), 0);
        check_i64_eq(state_read_end(dir, &out), 0);
        check_u64_eq(out.status, RUNTIME_DEAD);
        check_u64_eq(out.reason, WARDEN_EXIT_SIGNAL);
        check_u64_eq(out.code, 9);
        check_i64_eq(state_read(dir, &plan_sample_uids, &s), 0);
        fake_root_put(&root, "/end", "garbage");
        check_i64_eq(state_read_end(dir, &out), -ENOENT);
}

/* A create that did not get to its end, at any point, or a disk that lost a part. */
static void test_incomplete(void **state)
{
        static const struct plan_uids others = { PLAN_SAMPLE_BASE, 3 };
        char text[512];
        struct instance_state s;
        int fd;
        ssize_t n;

        (void) state;
        check_case("nothing");
        check_i64_eq(state_read(dir, &plan_sample_uids, &s), -EBADMSG);
        check_case("a record only");
        fake_root_put(&root, "/record", "x");
        check_i64_eq(state_read(dir, &plan_sample_uids, &s), -EBADMSG);
        check_i64_eq(unlinkat(dir, "record", 0), 0);
        write_sample("x");
        check_case("uids of others");
        check_i64_eq(state_read(dir, &others, &s), -EBADMSG);
        check_case("a record that was cut");
        fake_root_put(&root, "/record", "");
        check_i64_eq(state_read(dir, &plan_sample_uids, &s), -EBADMSG);
        fake_root_put(&root, "/record", "x");
        check_i64_eq(state_read(dir, &plan_sample_uids, &s), 0);
        check_case("a state that was cut");
        fd = openat(dir, "state", O_RDWR | O_CLOEXEC);
        n = read(fd, text, sizeof(text));
        check_true(n > 0);
        while (--n >= 0) {
                check_i64_eq(ftruncate(fd, n), 0);
                check_i64_eq(state_read(dir, &plan_sample_uids, &s), -EBADMSG);
        }
        (void) close(fd);
}

static void test_records_that_are_refused(void **state)
{
        scoped(fd_closep) int open_memory = memfd_create("record", MFD_CLOEXEC);
        scoped(fd_closep) int large = -EBADF;
        scoped(freep) char *text = xcalloc(1, WARDEN_RECORD_MAX + 1);
        const struct instance_state s = sample();
        int pipes[2];

        (void) state;
        check_case("one that can change");
        check_i64_eq(state_write(dir, &s, open_memory), -EINVAL);
        check_case("one that keeps its reader waiting");
        check_i64_eq(pipe2(pipes, O_CLOEXEC), 0);
        check_i64_eq(state_write(dir, &s, pipes[0]), -EINVAL);
        (void) close(pipes[0]);
        (void) close(pipes[1]);
        check_case("one that is too long");
        large = sealed_text(str_of(text, WARDEN_RECORD_MAX + 1));
        check_i64_eq(state_write(dir, &s, large), -EINVAL);
        check_i64_eq(faccessat(dir, "state", F_OK, 0), -1);
}

static void test_who_is_not_adopted(void **state)
{
        struct instance_state s = sample();
        int fd = -EBADF;
        pid_t child;

        (void) state;
        check_case("started at another time");
        s.start_time++;
        check_i64_eq(state_adopt(&s, &fd), -ESRCH);
        check_case("of another start of the host");
        s = sample();
        s.boot[0] ^= 1;
        check_i64_eq(state_adopt(&s, &fd), -ESRCH);
        check_case("gone");
        s = sample();
        child = fork();
        if (child == 0)
                _exit(0);
        check_i64_eq(state_start_time(child, &s.start_time), 0);
        s.pid = child;
        check_i64_eq(waitpid(child, NULL, 0), child);
        check_i64_eq(state_adopt(&s, &fd), -ESRCH);
        check_i64_eq(fd, -EBADF);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, open_dir, close_dir)

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_DIR(test_there_and_back),     IN_DIR(test_an_end),
                IN_DIR(test_incomplete),         IN_DIR(test_records_that_are_refused),
                IN_DIR(test_who_is_not_adopted),
        };

        return cmocka_run_group_tests_name("state", tests, NULL, NULL);
}
