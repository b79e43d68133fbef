/* SPDX-License-Identifier: Apache-2.0 */
#include "net/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/lib/check.h"
#include "tests/lib/wire.h"

/* Messages of these tests: eight bytes of request id (0: none), then text. */

#define FRAME_MAX (64 * KiB)

static struct net_loop loop;

/* The worker that says everything back, and others. */
static char *echo[] = { (char *) "/bin/sh", (char *) "-c", (char *) "exec /bin/cat >&0", NULL };
static char *exits[] = { (char *) "/bin/sh", (char *) "-c", (char *) "exit 3", NULL };
static char *silent[] = { (char *) "/bin/sh", (char *) "-c", (char *) "exec /bin/cat >/dev/null",
                          NULL };
static char *stubborn[] = { (char *) "/bin/sleep", (char *) "1000", NULL };
static char *missing[] = { (char *) "/no/such/program", NULL };

struct owner {
        struct worker worker;
        bool hello; /* ready only when the hello has come back */
        unsigned starts, losses;
        struct buf log; /* texts without a request */
        bool closed;
        int fd; /* the last that came */
};

struct call {
        struct worker_request request;
        bool replied, failed;
        char text[ERR_MESSAGE_MAX];
};

static struct owner o;

static void encode(char *ret, size_t size, uint64_t id, const char *text)
{
        memcpy(ret, &id, sizeof(id));
        (void) snprintf(ret + sizeof(id), size - sizeof(id), "%s", text);
}

static void post(struct worker *w, const char *text)
{
        char bytes[128];

        encode(bytes, sizeof(bytes), 0, text);
        worker_post(w, str_of(bytes, 8 + strlen(text)));
}

static void on_connected(struct worker *w)
{
        struct owner *x = container_of(w, struct owner, worker);

        x->starts++;
        if (x->hello)
                post(w, "hello");
        else
                worker_ready(w);
}

static void on_message(struct worker *w, struct str bytes)
{
        struct owner *x = container_of(w, struct owner, worker);
        struct worker_request *r;
        struct call *c;
        uint64_t id;

        if (bytes.n < sizeof(id))
                return worker_fail(w, "nonsense");
        memcpy(&id, bytes.p, sizeof(id));
        bytes = str_skip(bytes, sizeof(id));
        if (str_eq(bytes, STR("started")))
                return worker_restarted(w);
        if (str_eq(bytes, STR("hello")))
                worker_ready(w);
        if (worker_n_fds(w) > 0)
                x->fd = worker_take_fd(w);
        r = id ? worker_request_get(w, id) : NULL;
        if (!r) {
                buf_addf(&x->log, "%.*s ", STR_ARG(bytes));
                return;
        }
        c = container_of(r, struct call, request);
        worker_request_end(r);
        c->replied = true;
        (void) snprintf(c->text, sizeof(c->text), "%.*s", STR_ARG(bytes));
}

static void on_lost(struct worker *w)
{
        container_of(w, struct owner, worker)->losses++;
}

static void on_closed(struct worker *w)
{
        container_of(w, struct owner, worker)->closed = true;
}

static const struct worker_ops ops = {
        .connected = on_connected,
        .message = on_message,
        .lost = on_lost,
        .closed = on_closed,
};

static void owner_open(struct worker_config config)
{
        config.name = "the helper";
        config.frame_max = FRAME_MAX;
        config.backoff_max = config.backoff_max ? config.backoff_max : USEC_PER_SEC;
        buf_init(&o.log, KiB);
        o.fd = -EBADF;
        check_i64_eq(worker_open(&o.worker, &loop, &ops, &config), 0);
}

static void owner_close(void)
{
        worker_close(&o.worker);
        wire_until(&loop, o.closed);
        buf_done(&o.log);
        (void) fd_close(o.fd);
}

static void on_failed(struct worker_request *r, const struct err *e)
{
        struct call *c = container_of(r, struct call, request);

        check_false(worker_request_pending(r));
        c->failed = true;
        (void) snprintf(c->text, sizeof(c->text), "%s", e->message);
}

static void call_fd(struct call *c, const char *text, bool retry, int fd)
{
        char bytes[128];

        *c = (struct call){ .request.retry = retry };
        worker_request_init(&o.worker, &c->request, on_failed);
        encode(bytes, sizeof(bytes), c->request.id, text);
        worker_request_send(&c->request, str_of(bytes, 8 + strlen(text)), fd);
        check_false(c->replied || c->failed);
}

static void call(struct call *c, const char *text)
{
        call_fd(c, text, /* retry= */ false, -EBADF);
}

static int set_up(void **state)
{
        memset(&o, 0, sizeof(o));
        check_i64_eq(net_loop_init(&loop, &clock_system), 0);
        return 0;
}

static int tear_down(void **state)
{
        net_loop_done(&loop);
        return 0;
}

/* --- a process of our own --- */

static void replies_find_their_requests(void **state)
{
        struct call calls[3];

        owner_open((struct worker_config){ .argv = echo });
        for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
                call(&calls[i], i == 0 ? "a" : i == 1 ? "b" : "c");
        wire_until(&loop, calls[2].replied);
        check_str_eq(str_from(calls[0].text), "a");
        check_str_eq(str_from(calls[1].text), "b");
        check_str_eq(str_from(calls[2].text), "c");
        owner_close();
        check_i64_eq(o.starts, 1);
        check_i64_eq(o.losses, 0);
}

static void requests_wait_for_the_hello(void **state)
{
        struct call c;

        o.hello = true;
        owner_open((struct worker_config){ .argv = echo });
        call(&c, "x");
        check_false(worker_request_sent(&c.request));
        wire_until(&loop, c.replied);
        check_str_eq(buf_str(&o.log), "hello ");
        owner_close();
}

static void an_ended_request_gets_no_reply(void **state)
{
        struct call dropped, next;

        owner_open((struct worker_config){ .argv = echo });
        call(&dropped, "dropped");
        worker_request_end(&dropped.request);
        call(&next, "next");
        wire_until(&loop, next.replied);
        check_false(dropped.replied || dropped.failed);
        check_str_eq(buf_str(&o.log), "dropped ");
        owner_close();
}

static void a_process_that_ends_is_started_again(void **state)
{
        struct call c;

        o.hello = true;
        owner_open((struct worker_config){ .argv = exits });
        call(&c, "x");
        wire_until(&loop, c.failed);
        check_str_eq(str_from(c.text), "the helper: the process ended (status 3)");
        wire_until(&loop, o.starts == 3);
        check_true(o.losses >= 2);
        check_i64_eq(o.worker.backoff.failures, o.losses);
        owner_close();
}

static void a_program_that_is_missing_fails_requests_from_the_loop(void **state)
{
        struct call c;

        owner_open((struct worker_config){ .argv = missing });
        check_i64_eq(o.worker.state, WORKER_DOWN);
        call(&c, "x");
        wire_until(&loop, c.failed);
        check_true(strstr(c.text, "the helper: start the process: ") != NULL);
        wire_until(&loop, o.losses == 3);
        check_i64_eq(o.starts, 0);
        owner_close();
}

static void a_process_that_talks_nonsense_is_killed(void **state)
{
        struct call c;

        owner_open((struct worker_config){ .argv = echo });
        worker_post(&o.worker, STR("short"));
        wire_until(&loop, o.worker.state == WORKER_ENDING);
        call(&c, "x");
        wire_until(&loop, c.failed);
        check_str_eq(str_from(c.text), "the helper: nonsense");
        wire_until(&loop, o.starts == 2);
        call(&c, "y");
        wire_until(&loop, c.replied);
        owner_close();
}

static void a_request_has_its_time(void **state)
{
        struct call c;

        owner_open((struct worker_config){ .argv = silent, .request_timeout = 30 * USEC_PER_MSEC });
        call(&c, "x");
        wire_until(&loop, c.failed);
        check_str_eq(str_from(c.text), "the helper does not answer");
        check_i64_eq(o.worker.state, WORKER_READY);
        owner_close();
}

static void a_start_has_its_time(void **state)
{
        o.hello = true;
        owner_open((struct worker_config){ .argv = silent, .start_timeout = 30 * USEC_PER_MSEC });
        wire_until(&loop, o.losses == 1);
        check_str_eq(str_from(o.worker.error.message), "the helper: it does not answer");
        wire_until(&loop, o.starts == 2);
        owner_close();
}

static void an_end_is_waited_for_and_then_enforced(void **state)
{
        owner_open((struct worker_config){ .argv = stubborn, .exit_timeout = 30 * USEC_PER_MSEC });
        owner_close();
        owner_open((struct worker_config){ .argv = echo, .exit_timeout = 20 * USEC_PER_SEC });
        o.closed = false;
        owner_close();
}

/* --- a socket that outlives the process --- */

static int peer = -EBADF;

static void open_inherited(void)
{
        int pair[2];

        check_i64_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        peer = pair[1];
        o.hello = true;
        owner_open((struct worker_config){ .fd = pair[0], .may_receive_fds = true });
}

static void peer_say(uint64_t id, const char *text, int fd)
{
        char bytes[128];

        encode(bytes, sizeof(bytes), id, text);
        check_i64_eq(fd_pass_send(peer, str_of(bytes, 8 + strlen(text)), &fd, fd >= 0, 0),
                     8 + strlen(text));
}

/* The text of the next packet; *ret_fd may be NULL. */
static const char *peer_hear(uint64_t *ret_id, int *ret_fd)
{
        static char bytes[256];
        int fds[4];
        struct fd_pass_msg m = { .p = bytes, .size = sizeof(bytes) - 1, .fds = fds, .fds_max = 4 };
        ssize_t n;

        do {
                net_loop_run_once(&loop, /* wait= */ false);
                m.n_fds = 0;
                n = fd_pass_receive(peer, &m, MSG_DONTWAIT);
        } while (n == -EAGAIN);
        check_true(n >= 8);
        bytes[n] = '\0';
        memcpy(ret_id, bytes, 8);
        if (ret_fd)
                *ret_fd = m.n_fds > 0 ? fds[0] : -EBADF;
        return bytes + 8;
}

static void the_next_process_gets_what_may_be_repeated(void **state)
{
        struct call once, twice, later;
        uint64_t id;

        open_inherited();
        check_str_eq(str_from(peer_hear(&id, NULL)), "hello");
        peer_say(0, "hello", -EBADF);
        wire_until(&loop, o.worker.state == WORKER_READY);
        call(&once, "once");
        call_fd(&twice, "twice", /* retry= */ true, -EBADF);
        check_str_eq(str_from(peer_hear(&id, NULL)), "once");
        check_str_eq(str_from(peer_hear(&id, NULL)), "twice");
        peer_say(0, "started", -EBADF);
        check_str_eq(str_from(peer_hear(&id, NULL)), "hello");
        check_true(once.failed);
        check_str_eq(str_from(once.text), "the helper was restarted; try again");
        call(&later, "later");
        peer_say(0, "hello", -EBADF);
        check_str_eq(str_from(peer_hear(&id, NULL)), "twice");
        check_i64_eq(id, twice.request.id);
        check_true(twice.request.resent);
        peer_say(id, "reply", -EBADF);
        check_str_eq(str_from(peer_hear(&id, NULL)), "later");
        peer_say(id, "reply", -EBADF);
        wire_until(&loop, twice.replied && later.replied);
        owner_close();
        peer = fd_close(peer);
}

static void descriptors_pass_both_ways(void **state)
{
        scoped(fd_closep) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        struct stat a = { 0 }, b = { 0 };
        struct call c;
        uint64_t id;
        int fd = -EBADF;

        open_inherited();
        (void) peer_hear(&id, NULL);
        peer_say(0, "hello", -EBADF);
        call_fd(&c, "with", /* retry= */ false, null);
        check_str_eq(str_from(peer_hear(&id, &fd)), "with");
        check_true(fd >= 0);
        peer_say(id, "reply", fd);
        (void) fd_close(fd);
        wire_until(&loop, c.replied);
        check_true(o.fd >= 0 && fstat(o.fd, &a) == 0 && fstat(null, &b) == 0);
        check_i64_eq(a.st_rdev, b.st_rdev);
        owner_close();
        peer = fd_close(peer);
}

static void a_broken_socket_stays_broken(void **state)
{
        struct call waiting, late;

        open_inherited();
        call(&waiting, "x");
        peer = fd_close(peer);
        wire_until(&loop, waiting.failed);
        check_str_eq(str_from(waiting.text), "the helper: the connection was closed");
        call(&late, "y");
        wire_until(&loop, late.failed);
        check_i64_eq(o.losses, 1);
        owner_close();
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        static const struct CMUnitTest tests[] = {
                T(replies_find_their_requests),
                T(requests_wait_for_the_hello),
                T(an_ended_request_gets_no_reply),
                T(a_process_that_ends_is_started_again),
                T(a_program_that_is_missing_fails_requests_from_the_loop),
                T(a_process_that_talks_nonsense_is_killed),
                T(a_request_has_its_time),
                T(a_start_has_its_time),
                T(an_end_is_waited_for_and_then_enforced),
                T(the_next_process_gets_what_may_be_repeated),
                T(descriptors_pass_both_ways),
                T(a_broken_socket_stays_broken),
        };

        (void) signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
