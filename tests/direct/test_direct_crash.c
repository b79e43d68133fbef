/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "base/id.h"
#include "tests/direct/driver_direct.h"
#include "tests/lib/check.h"
#include "tests/lib/driver_world.h"

/*
 * A program that makes, pauses and destroys sandboxes without end is killed at random moments. Who
 * comes after it finds complete records only, and can end everything: no process and no directory is left.
 */

#define ROUNDS       40
#define LATEST_MS    120 /* a sandbox takes some ten */
#define SANDBOXES    4
#define PING_TIMEOUT USEC_PER_SEC

static int open_direct(struct driver_world *w, const struct driver_setup *setup,
                       struct driver **ret, struct err *e)
{
        return driver_direct_open(setup, ret, e);
}

static const struct driver_maker maker = { .name = "direct", .open = open_direct };

/* --- the one that is killed --- */

struct busy {
        union {
                struct driver_req req;
                struct driver_create create;
                struct driver_destroy destroy;
                struct driver_pause pause;
        };
        struct driver *driver;
        struct sandbox *record;
        unsigned step;
};

static void go_on(struct op *op, int result)
{
        static const struct create_request request;
        struct busy *b = container_of(op, struct busy, req.op);
        struct driver *d = b->driver;

        (void) result;
        op_init(&b->req.op, go_on);
        switch (b->step++ % 4) {
        case 0:
                driver_start(d, driver_create_req(&b->create, b->record, &request));
                break;
        case 1:
                driver_start(d, driver_pause_req(&b->pause, b->record));
                break;
        case 2:
                driver_start(d, driver_resume_req(&b->pause, b->record));
                break;
        default:
                driver_start(d, driver_destroy_req(&b->destroy, b->record));
                break;
        }
}

never_returns static void be_busy(struct driver_world *w)
{
        struct busy all[SANDBOXES] = { 0 };

        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        w->driver = driver_world_open_as(w, WORLD_INSTALLATION);
        for (size_t i = 0; i < SANDBOXES; i++) {
                char id[16];

                (void) snprintf(id, sizeof(id), "sb-%zu", i);
                all[i].driver = w->driver;
                all[i].record = driver_world_record(id);
                go_on(&all[i].req.op, 0);
        }
        net_loop_run(&w->loop);
        _exit(1);
}

static void run_and_kill(const char *directory, unsigned ms)
{
        pid_t pid = fork();

        check_true(pid >= 0);
        if (pid == 0) {
                static struct driver_world w;

                w.maker = &maker;
                check_i64_eq(net_loop_init(&w.loop, &clock_system), 0);
                (void) snprintf(w.dir, sizeof(w.dir), "%s", directory);
                be_busy(&w);
        }
        (void) poll(NULL, 0, (int) ms);
        check_i64_eq(kill(pid, SIGKILL), 0);
        check_i64_eq(waitpid(pid, NULL, 0), pid);
}

/* --- what is left --- */

static bool is_below(const char *pid, const char *directory)
{
        char path[64], cwd[4096];
        ssize_t n;

        (void) snprintf(path, sizeof(path), "/proc/%.20s/cwd", pid);
        n = readlink(path, cwd, sizeof(cwd));
        return n > 0 && str_starts_with(str_of(cwd, (size_t) n), str_from(directory));
}

static unsigned processes_below(const char *directory)
{
        DIR *dir = opendir("/proc");
        unsigned n = 0;

        check_true(dir != NULL);
        for (struct dirent *entry; (entry = readdir(dir));)
                n += entry->d_name[0] >= '1' && entry->d_name[0] <= '9'
                     && is_below(entry->d_name, directory);
        (void) closedir(dir);
        return n;
}

static unsigned entries_in(const char *directory)
{
        char path[128];
        unsigned n = 0;
        DIR *dir;

        (void) snprintf(path, sizeof(path), "%s/%s", directory, WORLD_INSTALLATION);
        dir = opendir(path);
        for (struct dirent *entry; dir && (entry = readdir(dir));)
                n += entry->d_name[0] != '.';
        if (dir)
                (void) closedir(dir);
        return n;
}

/* Destroys what a scan finds, which closing the world does, and looks at what is left. */
static void check_all_can_be_ended(struct driver_world *w)
{
        char found[256];
        size_t skipped;

        w->driver = driver_world_open_as(w, WORLD_INSTALLATION);
        check_i64_eq(driver_world_scan(w, found, sizeof(found), &skipped), 0);
        check_i64_eq(skipped, 0);
        for (unsigned i = 0; i < SANDBOXES; i++) {
                char id[16];
                scoped(sandbox_freep) struct sandbox *s = NULL;
                int status;

                (void) snprintf(id, sizeof(id), "sb-%u", i);
                s = driver_world_record(id);
                status = driver_world_status(w, s);
                check_true(status >= 0);
                check_true((status == RUNTIME_GONE) == (strstr(found, id) == NULL));
                /* A signal that was sent before the kill may be delivered only now: the agent of a sandbox
                 * that counts as running may stop or end before it answers. */
                driver_world_until(w, driver_world_status(w, s) != RUNTIME_RUNNING
                                              || driver_world_ping_within(w, s, PING_TIMEOUT) == 0);
                check_i64_eq(driver_world_destroy(w, s), 0);
        }
        /* A supervisor that was started too late needs a moment to notice, and so does the sweeping. */
        driver_world_until(w, processes_below(w->dir) == 0);
        driver_world_until(w, entries_in(w->dir) == 0);
        driver_world_close_driver(w, TAKE_PTR(w->driver));
}

static void a_crash_at_any_moment_leaks_nothing(void **state)
{
        struct driver_world w;
        struct ids ids;

        ids_init(&ids);
        /* If it can't be opened that is notified here: a child that fails would go on with the tests. */
        driver_world_open(&w, &maker);
        driver_world_close_driver(&w, TAKE_PTR(w.driver));
        for (unsigned i = 0; i < ROUNDS; i++) {
                unsigned random;
                char name[64];

                ids_random(&ids, &random, sizeof(random));
                random %= LATEST_MS;
                (void) snprintf(name, sizeof(name), "round %u, killed after %u ms", i, random);
                check_case(name);
                run_and_kill(w.dir, random);
                check_all_can_be_ended(&w);
        }
        driver_world_close(&w);
}

/* --- what should not be there --- */

static void lock_path(const struct driver_world *w, char ret[static 128])
{
        (void) snprintf(ret, 128, "%s/%s/sb-1/lock", w->dir, WORLD_INSTALLATION);
}

static void who_loses_its_lock_ends_and_can_be_destroyed(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        struct driver_world w;
        char path[128], found[64];

        driver_world_open(&w, &maker);
        lock_path(&w, path);
        check_i64_eq(driver_world_create(&w, s), 0);
        check_i64_eq(unlink(path), 0);
        driver_world_until(&w, w.notified > 0);
        check_i64_eq(driver_world_status(&w, s), RUNTIME_DEAD);
        check_i64_eq(driver_world_scan(&w, found, sizeof(found), NULL), 0);
        check_z_eq(found, "sb-1:dead");
        check_i64_eq(driver_world_destroy(&w, s), 0);
        check_i64_eq(entries_in(w.dir), 0);
        driver_world_close(&w);
}

static void what_cannot_be_looked_at_is_not_passed_over(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        struct driver_world w;
        char path[128], found[64];

        driver_world_open(&w, &maker);
        lock_path(&w, path);
        check_i64_eq(driver_world_create(&w, s), 0);
        check_i64_eq(unlink(path), 0);
        check_i64_eq(symlink("record.json", path), 0);
        driver_world_until(&w, w.notified > 0);
        check_true(driver_world_scan(&w, found, sizeof(found), NULL) < 0);
        check_true(strstr(w.err.message, "sb-1") != NULL);
        check_true(driver_world_status(&w, s) < 0);
        check_i64_eq(unlink(path), 0);
        driver_world_close(&w);
}

static void it_refuses_to_open_outside_of_tests(void **state)
{
        struct driver_world w;
        struct driver_setup setup = { 0 };
        struct driver *d = NULL;
        struct err e;

        driver_world_open(&w, NULL);
        setup = (struct driver_setup){
                .loop = &w.loop, .installation = STR("i"), .dir = w.dir, .agent = "/nonexistent"
        };
        check_i64_eq(setenv("HUTCH_TEST_DIRECT", "0", 1), 0);
        check_i64_eq(driver_direct_open(&setup, &d, &e), CODE(UNSUPPORTED));
        check_i64_eq(unsetenv("HUTCH_TEST_DIRECT"), 0);
        check_i64_eq(driver_direct_open(&setup, &d, &e), CODE(UNSUPPORTED));
        check_i64_eq(setenv("HUTCH_TEST_DIRECT", "1", 1), 0);
        driver_world_close(&w);
}

static void without_an_agent_it_does_not_open(void **state)
{
        static const struct {
                const char *agent;
                int result;
                const char *said;
        } cases[] = {
                { "/no/such/agent", CODE(NOT_FOUND), "'/no/such/agent' cannot be run: No such" },
                { "/etc/passwd", CODE(FORBIDDEN), "'/etc/passwd' cannot be run: Permission" },
                { "/tmp", CODE(INVALID), "'/tmp' is not a program" },
                { "hutch-execd", CODE(INVALID), "absolute path" },
                { NULL, CODE(INVALID), "absolute path" },
        };
        struct driver_world w;

        driver_world_open(&w, NULL);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct driver_setup setup = { .loop = &w.loop,
                                              .installation = STR(WORLD_INSTALLATION),
                                              .dir = w.dir,
                                              .agent = cases[i].agent };
                struct driver *d = NULL;
                struct err e;

                check_case(cases[i].said);
                check_i64_eq(driver_direct_open(&setup, &d, &e), cases[i].result);
                if (!strstr(e.message, cases[i].said))
                        fail_msg("%s", e.message);
        }
        driver_world_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(it_refuses_to_open_outside_of_tests),
                cmocka_unit_test(without_an_agent_it_does_not_open),
                cmocka_unit_test(who_loses_its_lock_ends_and_can_be_destroyed),
                cmocka_unit_test(what_cannot_be_looked_at_is_not_passed_over),
                cmocka_unit_test(a_crash_at_any_moment_leaks_nothing),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
