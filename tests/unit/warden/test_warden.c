/* SPDX-License-Identifier: Apache-2.0 */

/* The program hutch-warden, spoken to as hutchd does. */

#include "warden/warden.h"

#include <sys/mount.h>
#include <sys/resource.h>

#include "os/clone.h"
#include "tests/lib/warden_client.h"

#define NEEDS "sandboxes need root"
#define UIDS  "268435456:6553600" /* 100 sandboxes */

#define NEW_WARDEN(c, uids)                  \
        do {                                 \
                (void) state;                \
                if (geteuid() != 0)          \
                        skip_because(NEEDS); \
                warden_client_open(c, uids); \
                warden_client_hello(c);      \
        } while (0)

static bool has_ended(int pidfd)
{
        struct pollfd p = { .fd = pidfd, .events = POLLIN };

        return poll(&p, 1, WARDEN_CLIENT_WAIT) == 1;
}

/* --- a life --- */

static void test_create_to_destroy(void **state)
{
        struct warden_client c;
        char text[32] = "";
        int pidfd;

        NEW_WARDEN(&c, UIDS);
        check_i64_eq(warden_client_create(&c, "a1", "the record"), 0);
        check_true(warden_client_ping(&c));
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_INSPECT, "a1"), 0);
        check_u64_eq(c.reply.state.status, RUNTIME_RUNNING);
        check_true(warden_client_ping(&c));
        pidfd = TAKE_FD(c.fds[WARDEN_FD_PIDFD]);

        check_i64_eq(warden_client_request(&c, WARDEN_MSG_SCAN, ""), 0);
        check_u64_eq(c.reply.n_found, 1);
        check_z_eq(c.reply.found[0].id, "a1");
        check_false(c.reply.more);
        check_i64_eq(read(c.fds[0], text, sizeof(text)), 10);
        check_z_eq(text, "the record");
        check_i64_eq(write(c.fds[0], "x", 1), -1);

        check_i64_eq(warden_client_request(&c, WARDEN_MSG_USAGE, "a1"), 0);
        check_true(c.reply.cpu_usec > 0);
        check_u64_eq(c.reply.processes, 0); /* the agent is not counted, nor limited */

        check_i64_eq(warden_client_request(&c, WARDEN_MSG_RESUME, "a1"), ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_PAUSE, "a1"), 0);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_PAUSE, "a1"), ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_INSPECT, "a1"), 0);
        check_u64_eq(c.reply.state.status, RUNTIME_PAUSED);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_RESUME, "a1"), 0);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_INSPECT, "a1"), 0);
        check_true(warden_client_ping(&c));

        check_i64_eq(warden_client_create(&c, "a1", ""), ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, "a1"), 0);
        check_true(has_ended(pidfd));
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, "a1"), 0);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_INSPECT, "a1"),
                     ERR_RETURN(ERR_NOT_FOUND));
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_PAUSE, "a1"), ERR_RETURN(ERR_NOT_FOUND));
        (void) close(pidfd);
        warden_client_close(&c);
}

/* Paused ones are destroyed, too, and so are those without a waiting request. */
static void test_destroyed_while_paused(void **state)
{
        struct warden_client c;

        NEW_WARDEN(&c, UIDS);
        check_i64_eq(warden_client_create(&c, "a1", ""), 0);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_PAUSE, "a1"), 0);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, "a1"), 0);
        warden_client_close(&c);
}

static void test_its_end_is_told(void **state)
{
        struct plan_spec spec = warden_client_spec("a1");
        const char *args[] = { "sh", "-c", "exit 3", NULL };
        struct warden_client c;

        NEW_WARDEN(&c, UIDS);
        spec.args = (struct plan_list){ args, 3 };
        warden_client_send_create(&c, &spec, "");
        check_i64_eq(warden_client_wait_reply(&c, c.request_id), 0);
        warden_client_wait_event(&c);
        check_u64_eq(c.event.kind, WARDEN_EVENT_DIED);
        check_z_eq(c.event.id, "a1");
        check_u64_eq(c.event.state.reason, WARDEN_EXIT_CODE);
        check_u64_eq(c.event.state.code, 3);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_INSPECT, "a1"), 0);
        check_u64_eq(c.reply.state.status, RUNTIME_DEAD);

        check_case("also to who comes later");
        check_i64_eq(warden_client_stop(&c, SIGKILL), SIGKILL);
        warden_client_start(&c);
        warden_client_hello(&c);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_SCAN, ""), 0);
        check_u64_eq(c.reply.n_found, 1);
        check_u64_eq(c.reply.found[0].state.reason, WARDEN_EXIT_CODE);
        check_u64_eq(c.reply.found[0].state.code, 3);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, "a1"), 0);
        warden_client_close(&c);
}

/* First that memory is short, and then what came of it; and one that gets over it. */
static void test_want_of_memory_is_told(void **state)
{
        static const char *const commands[] = { "python3 -c 'bytearray(300 << 20)'; kill -9 $$",
                                                "python3 -c 'bytearray(300 << 20)'; exec tail -f "
                                                "/dev/null" };
        struct warden_client c;

        NEW_WARDEN(&c, UIDS);
        for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
                struct plan_spec spec = warden_client_spec("a1");
                const char *args[] = { "sh", "-c", commands[i], NULL };

                check_case(commands[i]);
                spec.args = (struct plan_list){ args, 3 };
                spec.memory = 64 * MiB;
                warden_client_send_create(&c, &spec, "");
                if (warden_client_wait_reply(&c, c.request_id) == ERR_RETURN(ERR_UNSUPPORTED)) {
                        warden_client_close(&c);
                        skip_because("no cgroups may be made here");
                }
                warden_client_wait_event(&c);
                check_u64_eq(c.event.kind, WARDEN_EVENT_OOM);
                check_z_eq(c.event.id, "a1");
                if (i == 0) {
                        warden_client_wait_event(&c);
                        check_u64_eq(c.event.kind, WARDEN_EVENT_DIED);
                        check_u64_eq(c.event.state.reason, WARDEN_EXIT_OOM);
                }
                check_i64_eq(warden_client_request(&c, WARDEN_MSG_INSPECT, "a1"), 0);
                check_u64_eq(c.reply.state.status, i == 0 ? RUNTIME_DEAD : RUNTIME_RUNNING);
                check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, "a1"), 0);
        }
        warden_client_close(&c);
}

/* Many at a time, more than there are seeds, and more than fit on a page. */
static void test_many(void **state)
{
        enum { N = 40 };
        struct warden_client c;
        char id[16], last[16] = "";
        size_t found = 0;

        NEW_WARDEN(&c, UIDS);
        for (int i = 0; i < N; i++) {
                struct plan_spec spec;

                (void) snprintf(id, sizeof(id), "b%02d", i);
                spec = warden_client_spec(id);
                warden_client_send_create(&c, &spec, id);
        }
        for (int i = 0; i < N; i++) {
                struct warden_packet m;
                struct err e;

                warden_client_receive(&c);
                m = warden_client_packet(&c);
                check_i64_eq(warden_reply_decode(&m, &c.arena, &c.reply, &e), 0);
                if (c.reply.result != 0)
                        fail_msg("%s", c.reply.text);
                check_true(warden_client_ping(&c));
        }
        do {
                check_i64_eq(warden_client_request(&c, WARDEN_MSG_SCAN, last), 0);
                check_true(c.reply.n_found > 0);
                found += c.reply.n_found;
                (void) snprintf(last, sizeof(last), "%s", c.reply.found[c.reply.n_found - 1].id);
        } while (c.reply.more);
        check_u64_eq(found, N);
        for (int i = 0; i < N; i++) {
                (void) snprintf(id, sizeof(id), "b%02d", i);
                check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, id), 0);
        }
        warden_client_close(&c);
}

static void test_uids_run_out_and_come_back(void **state)
{
        struct warden_client c;

        NEW_WARDEN(&c, "268435456:65536");
        for (int i = 0; i < 3; i++) {
                check_i64_eq(warden_client_create(&c, "a1", ""), 0);
                check_i64_eq(warden_client_create(&c, "a2", ""), ERR_RETURN(ERR_EXHAUSTED));
                check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, "a1"), 0);
        }
        warden_client_close(&c);
}

/* Who makes seeds and removes groups is killed: others do that, and all uids come back. */
static void test_the_zygote_server_is_killed(void **state)
{
        static const char *const ids[] = { "a1", "a2", "a3" };
        struct warden_client c;

        NEW_WARDEN(&c, "268435456:196608");
        check_i64_eq(warden_client_create(&c, ids[0], ""), 0);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, ids[0]), 0);
        check_i64_eq(kill(warden_client_child(&c, "hutch-zygoted"), SIGKILL), 0);
        for (int round = 0; round < 2; round++) {
                for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
                        check_i64_eq(warden_client_create(&c, ids[i], ""), 0);
                check_i64_eq(warden_client_create(&c, "a4", ""), ERR_RETURN(ERR_EXHAUSTED));
                for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
                        check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, ids[i]), 0);
        }
        warden_client_close(&c);
}

static void set_open_files(pid_t pid, rlim_t soft)
{
        struct rlimit l;

        check_i64_eq(prlimit(pid, RLIMIT_NOFILE, NULL, &l), 0);
        l.rlim_cur = MIN_OF(soft, l.rlim_max);
        check_i64_eq(prlimit(pid, RLIMIT_NOFILE, &l, NULL), 0);
}

/* Refused before anything is made, and all else goes on. */
static void test_descriptors_run_out_and_come_back(void **state)
{
        struct warden_client c;

        NEW_WARDEN(&c, UIDS);
        check_i64_eq(warden_client_create(&c, "a1", "one"), 0);
        set_open_files(c.pid, 300);
        check_i64_eq(warden_client_create(&c, "a2", ""), ERR_RETURN(ERR_EXHAUSTED));
        check_true(strstr(c.reply.text, "LimitNOFILE") != NULL);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_SCAN, ""), 0);
        check_u64_eq(c.reply.n_found, 1);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_PAUSE, "a1"), 0);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_RESUME, "a1"), 0);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_INSPECT, "a1"), 0);
        check_true(warden_client_ping(&c));
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, "a1"), 0);
        set_open_files(c.pid, RLIM_INFINITY);
        check_i64_eq(warden_client_create(&c, "a2", ""), 0);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, "a2"), 0);
        warden_client_close(&c);
}

/* --- wardens come and go --- */

static void test_sandboxes_outlive_the_warden(void **state)
{
        static const int signals[] = { SIGKILL, SIGTERM };
        struct warden_client c;

        NEW_WARDEN(&c, UIDS);
        check_i64_eq(warden_client_create(&c, "a1", "one"), 0);
        check_i64_eq(warden_client_create(&c, "a2", "two"), 0);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_PAUSE, "a2"), 0);
        for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
                int status = warden_client_stop(&c, signals[i]);

                check_i64_eq(status, signals[i] == SIGKILL ? SIGKILL : 0);
                warden_client_start(&c);
                warden_client_hello(&c);
                check_i64_eq(warden_client_request(&c, WARDEN_MSG_INSPECT, "a1"), 0);
                check_u64_eq(c.reply.state.status, RUNTIME_RUNNING);
                check_true(warden_client_ping(&c));
                check_i64_eq(warden_client_request(&c, WARDEN_MSG_INSPECT, "a2"), 0);
                check_u64_eq(c.reply.state.status, RUNTIME_PAUSED);
        }
        check_i64_eq(warden_client_create(&c, "a3", ""), 0);
        check_true(warden_client_ping(&c));
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_RESUME, "a2"), 0);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, "a1"), 0);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, "a2"), 0);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, "a3"), 0);
        warden_client_close(&c);
}

static void test_death_of_an_adopted_one(void **state)
{
        struct warden_client c;
        int pidfd;

        NEW_WARDEN(&c, UIDS);
        check_i64_eq(warden_client_create(&c, "a1", ""), 0);
        pidfd = TAKE_FD(c.fds[WARDEN_FD_PIDFD]);
        check_i64_eq(warden_client_stop(&c, SIGKILL), SIGKILL);
        warden_client_start(&c);
        warden_client_hello(&c);
        check_i64_eq(pidfd_kill(pidfd, SIGKILL), 0);
        warden_client_wait_event(&c);
        check_u64_eq(c.event.kind, WARDEN_EVENT_DIED);
        check_u64_eq(c.event.state.status, RUNTIME_DEAD);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, "a1"), 0);
        (void) close(pidfd);
        warden_client_close(&c);
}

/* Killed with creates and destroys under way: what is found is whole, and can be destroyed. */
static void test_killed_in_the_middle(void **state)
{
        enum { ROUNDS = 8 };
        struct warden_client c;

        NEW_WARDEN(&c, UIDS);
        for (int round = 0; round < ROUNDS; round++) {
                char id[32];

                for (int i = 0; i < 6; i++) {
                        struct plan_spec spec;

                        (void) snprintf(id, sizeof(id), "c%d-%d", round, i);
                        spec = warden_client_spec(id);
                        warden_client_send_create(&c, &spec, id);
                }
                for (int i = 0; i < round % 6; i++)
                        warden_client_receive(&c);
                (void) warden_client_stop(&c, SIGKILL);
                warden_client_start(&c);
                do
                        warden_client_receive(&c);
                while (!warden_is_event(str_of(c.buffer, c.n)));
                warden_client_start_over(&c);
                while (warden_client_request(&c, WARDEN_MSG_SCAN, "") == 0 && c.reply.n_found > 0) {
                        (void) snprintf(id, sizeof(id), "%s", c.reply.found[0].id);
                        check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, id), 0);
                }
        }
        warden_client_close(&c);
}

/* --- the host --- */

static bool has_mounted(pid_t pid, const char *name)
{
        char path[64], line[4096];
        bool found = false;
        FILE *f;

        (void) snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int) pid);
        f = fopen(path, "re");
        check_true(f != NULL);
        while (fgets(line, sizeof(line), f))
                found |= strstr(line, name) != NULL;
        (void) fclose(f);
        return found;
}

/* What an administrator unmounts is free, however long warden and sandboxes live. */
static void test_no_disk_is_kept_busy(void **state)
{
        struct warden_client c;
        char name[64], path[256];

        if (geteuid() != 0)
                skip_because(NEEDS);
        (void) state;
        check_i64_eq(unshare(CLONE_NEWNS), 0);
        check_i64_eq(mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL), 0);
        (void) snprintf(path, sizeof(path), "/tmp/hutch-disk-XXXXXX");
        check_true(mkdtemp(path) != NULL);
        (void) snprintf(name, sizeof(name), "%s", strrchr(path, '/'));
        check_i64_eq(mount("disk", path, "tmpfs", 0, NULL), 0);
        NEW_WARDEN(&c, UIDS);
        check_i64_eq(warden_client_create(&c, "a1", "x"), 0);
        check_true(has_mounted(c.pid, name)); /* or the rest would show nothing */
        check_i64_eq(umount2(path, 0), 0);
        check_true(!has_mounted(c.pid, name));
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, "a1"), 0);
        warden_client_close(&c);
        check_i64_eq(rmdir(path), 0);
}

/* --- what is refused --- */

enum spoil { FDS_NONE, FDS_TWO, FDS_MANY, FD_PIPE, FD_UNSEALED, PRIVATE, CUT, LAYERS };

static const struct {
        const char *name;
        enum spoil spoil;
        int result;
} spoils[] = {
        { "no record", FDS_NONE, ERR_RETURN(ERR_INVALID) },
        { "two records", FDS_TWO, ERR_RETURN(ERR_INVALID) },
        { "more than there is buffer for", FDS_MANY, ERR_RETURN(ERR_INVALID) },
        { "a record that keeps its reader waiting", FD_PIPE, ERR_RETURN(ERR_INVALID) },
        { "a record that can change", FD_UNSEALED, ERR_RETURN(ERR_INVALID) },
        { "a network that is not there", PRIVATE, ERR_RETURN(ERR_UNSUPPORTED) },
        { "a spec that was cut", CUT, ERR_RETURN(ERR_INVALID) },
        { "layers that are not there", LAYERS, ERR_RETURN(ERR_NOT_FOUND) },
};

static void send_spoiled(struct warden_client *c, enum spoil spoil)
{
        static const char *nothing[] = { "nothing", NULL };
        scoped(fd_closep) int sealed = sealed_text(STR("x"));
        scoped(fd_closep) int plain = memfd_create("x", MFD_CLOEXEC);
        scoped(buf_done) struct buf b;
        struct plan_spec s = warden_client_spec("a1");
        struct warden_request q = { .call = WARDEN_MSG_CREATE };
        int pipes[2], fds[16];
        size_t n = spoil == FDS_NONE ? 0 : spoil == FDS_TWO ? 2 : spoil == FDS_MANY ? 16 : 1;
        struct err e;

        check_i64_eq(pipe2(pipes, O_CLOEXEC), 0);
        for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
                fds[i] = spoil == FD_PIPE ? pipes[0] : spoil == FD_UNSEALED ? plain : sealed;
        if (spoil == PRIVATE)
                s.network = PLAN_NETWORK_PRIVATE;
        if (spoil == LAYERS) {
                s.image = PLAN_IMAGE_LAYERS;
                s.layers = (struct plan_list){ nothing, 1 };
        }
        buf_init(&b, PLAN_SPEC_MAX);
        check_i64_eq(plan_spec_encode(&s, &b, &e), 0);
        q.spec = str_of(buf_str(&b).p, spoil == CUT ? b.n - 1 : b.n);
        warden_client_send(c, &q, fds, n);
        (void) close(pipes[0]);
        (void) close(pipes[1]);
}

static void test_refused(void **state)
{
        struct warden_client c;

        NEW_WARDEN(&c, UIDS);
        for (size_t i = 0; i < ARRAY_SIZE(spoils); i++) {
                check_case(spoils[i].name);
                send_spoiled(&c, spoils[i].spoil);
                check_i64_eq(warden_client_wait_reply(&c, c.request_id), spoils[i].result);
                check_true(*c.reply.text != 0);
        }
        check_case("and then all is well");
        check_i64_eq(warden_client_create(&c, "a1", ""), 0);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, "a1"), 0);
        warden_client_close(&c);
}

/* Every byte of a request set to what hurts, and every length: a reply comes, or none, but the
 * warden is there afterwards. */
static void test_bytes_that_lie(void **state)
{
        static const unsigned char lies[] = { 0, 1, 0x7f, 0x80, 0xff };
        scoped(buf_done) struct buf b;
        struct warden_request q = { .call = WARDEN_MSG_INSPECT, .id = "a1", .request_id = 1 };
        struct warden_client c;
        struct err e;

        NEW_WARDEN(&c, UIDS);
        buf_init(&b, WARDEN_MSG_MAX);
        check_i64_eq(warden_request_encode(&q, &b, &e), 0);
        for (size_t i = 0; i < b.n; i++)
                for (size_t j = 0; j < ARRAY_SIZE(lies); j++) {
                        char was = b.p[b.start + i];

                        b.p[b.start + i] = (char) lies[j];
                        warden_client_send_bytes(&c, buf_str(&b), NULL, 0);
                        b.p[b.start + i] = was;
                        warden_client_drain(&c);
                }
        for (size_t n = 1; n < b.n; n++) {
                warden_client_send_bytes(&c, str_of(buf_str(&b).p, n), NULL, 0);
                warden_client_drain(&c);
        }
        warden_client_start_over(&c);
        check_i64_eq(warden_client_create(&c, "a1", ""), 0);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_DESTROY, "a1"), 0);
        warden_client_close(&c);
}

static void test_nothing_before_hello(void **state)
{
        struct warden_client c;

        (void) state;
        if (geteuid() != 0)
                skip_because(NEEDS);
        warden_client_open(&c, UIDS);
        warden_client_wait_event(&c);
        check_i64_eq(warden_client_request(&c, WARDEN_MSG_SCAN, ""), ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(warden_client_create(&c, "a1", ""), ERR_RETURN(ERR_CONFLICT));
        warden_client_close(&c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_create_to_destroy),
                cmocka_unit_test(test_destroyed_while_paused),
                cmocka_unit_test(test_its_end_is_told),
                cmocka_unit_test(test_want_of_memory_is_told),
                cmocka_unit_test(test_many),
                cmocka_unit_test(test_uids_run_out_and_come_back),
                cmocka_unit_test(test_the_zygote_server_is_killed),
                cmocka_unit_test(test_descriptors_run_out_and_come_back),
                cmocka_unit_test(test_sandboxes_outlive_the_warden),
                cmocka_unit_test(test_death_of_an_adopted_one),
                cmocka_unit_test(test_killed_in_the_middle),
                cmocka_unit_test(test_no_disk_is_kept_busy),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_bytes_that_lie),
                cmocka_unit_test(test_nothing_before_hello),
        };

        return cmocka_run_group_tests_name("warden", tests, NULL, NULL);
}
