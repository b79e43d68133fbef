/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "driver/driver_impl.h"
#include "os/fd.h"
#include "plan/protocol.h"
#include "tests/lib/check.h"
#include "tests/lib/driver_world.h"

/* The driver "native" with the test as its warden: one that answers late, wrongly, or dies. */

struct peer {
        struct driver_world world;
        int fd;
        struct arena arena;
        char *room;
        struct warden_request q; /* the last */
};

static struct peer peer;

static int open_native(struct driver_world *w, const struct driver_setup *setup,
                       struct driver **ret, struct err *e)
{
        struct driver_setup own = *setup;
        int pair[2];

        (void) w;
        check_i64_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        peer.fd = pair[0];
        own.warden = pair[1];
        own.network = "none";
        return driver_native_open(&own, ret, e);
}

static const struct driver_maker maker = { .name = "native", .open = open_native, .image = "host" };

/* --- the warden --- */

static bool has_message(void)
{
        struct pollfd p = { .fd = peer.fd, .events = POLLIN };

        return poll(&p, 1, 0) == 1;
}

static void take(enum warden_msg call)
{
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(4 * sizeof(int))];
        } room;
        struct iovec iov = { peer.room, WARDEN_MSG_MAX };
        struct msghdr msg = { .msg_iov = &iov,
                              .msg_iovlen = 1,
                              .msg_control = &room,
                              .msg_controllen = sizeof(room) };
        struct warden_packet m = { 0 };
        struct err e;
        ssize_t n;
        int fd;

        driver_world_until(&peer.world, has_message());
        n = recvmsg(peer.fd, &msg, MSG_CMSG_CLOEXEC);
        check_true(n > 0);
        if (CMSG_FIRSTHDR(&msg)) {
                memcpy(&fd, CMSG_DATA(&room.head), sizeof(int));
                (void) close(fd);
                m.n_fds = 1;
        }
        m.message = str_of(peer.room, (size_t) n);
        arena_reset(&peer.arena);
        if (warden_request_decode(&m, WARDEN_PHASE_READY, &peer.arena, &peer.q, &e) < 0)
                fail_msg("%s", e.message);
        check_u64_eq(peer.q.call, call);
}

static void send_bytes(struct str s, const int *fds, size_t n_fds)
{
        union {
                struct cmsghdr head;
                char room[CMSG_SPACE(4 * sizeof(int))];
        } room = { { 0 } };
        struct iovec iov = { (char *) (uintptr_t) s.p, s.n };
        struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

        if (fds && n_fds > 0) {
                msg.msg_control = &room;
                msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
                room.head.cmsg_level = SOL_SOCKET;
                room.head.cmsg_type = SCM_RIGHTS;
                room.head.cmsg_len = CMSG_LEN(n_fds * sizeof(int));
                memcpy(CMSG_DATA(&room.head), fds, n_fds * sizeof(int));
        }
        check_i64_eq(sendmsg(peer.fd, &msg, MSG_NOSIGNAL), s.n);
}

/* To the last request, unless a request_id is given. */
static void give(struct warden_reply a, const int *fds)
{
        scoped(buf_done) struct buf b;
        struct err e;

        if (a.request_id == 0) {
                a.request_id = peer.q.request_id;
                a.call = peer.q.call;
        }
        if (a.result < 0 && !a.text)
                a.text = "no";
        buf_init(&b, WARDEN_MSG_MAX);
        check_i64_eq(warden_reply_encode(&a, &b, &e), 0);
        send_bytes(buf_str(&b), fds, warden_reply_fds(&a));
}

static void notify(struct warden_event events)
{
        scoped(buf_done) struct buf b;
        struct err e;

        buf_init(&b, WARDEN_MSG_MAX);
        check_i64_eq(warden_event_encode(&events, &b, &e), 0);
        send_bytes(buf_str(&b), NULL, 0);
}

static void greet(void)
{
        take(WARDEN_MSG_HELLO);
        give((struct warden_reply){ .version = WARDEN_PROTOCOL_VERSION }, NULL);
}

/* Another warden: whatever it is asked first is a hello. */
static void come_anew(void)
{
        notify((struct warden_event){ .kind = WARDEN_EVENT_STARTED, .id = "" });
        greet();
}

static void turn(void)
{
        for (int i = 0; i < 5; i++)
                net_loop_run_once(&peer.world.loop, /* wait= */ false);
}

/* --- operations --- */

struct call {
        union {
                struct driver_req req;
                struct driver_create create;
                struct driver_destroy destroy;
                struct driver_pause pause;
                struct driver_inspect inspect;
                struct driver_connect connect;
        };
        struct sandbox *record;
        bool done;
        int result, status;
        const char *reason;
};

static void call_done(struct op *op, int result)
{
        struct call *c = container_of(op, struct call, req.op);

        c->result = result;
        c->done = true;
        if (c->req._call == DRIVER_CALL_INSPECT) {
                c->status = c->inspect.health.status;
                c->reason = c->inspect.health.reason;
        }
}

static void begin(struct call *c, enum driver_call which, const char *id)
{
        static const struct create_request request;

        *c = (struct call){ .record = driver_world_record(id) };
        op_init(&c->req.op, call_done);
        if (which == DRIVER_CALL_CREATE)
                driver_start(peer.world.driver, driver_create_req(&c->create, c->record, &request));
        else if (which == DRIVER_CALL_DESTROY)
                driver_start(peer.world.driver, driver_destroy_req(&c->destroy, c->record));
        else if (which == DRIVER_CALL_PAUSE)
                driver_start(peer.world.driver, driver_pause_req(&c->pause, c->record));
        else if (which == DRIVER_CALL_CONNECT)
                driver_start(peer.world.driver, driver_connect_req(&c->connect, c->record));
        else
                driver_start(peer.world.driver, driver_inspect_req(&c->inspect, c->record));
}

static int finish(struct call *c)
{
        driver_world_until(&peer.world, c->done);
        sandbox_free(TAKE_PTR(c->record));
        return c->result;
}

static const struct instance_status running = { RUNTIME_RUNNING, WARDEN_EXIT_NONE, 0 };
static const struct instance_status killed = { RUNTIME_DEAD, WARDEN_EXIT_SIGNAL, 9 };

static int set_up(void **state)
{
        (void) state;
        peer.room = xcalloc(1, WARDEN_MSG_MAX);
        arena_init(&peer.arena, MiB);
        driver_world_open(&peer.world, &maker);
        return 0;
}

static int tear_down(void **state)
{
        (void) state;
        driver_world_close_driver(&peer.world, TAKE_PTR(peer.world.driver));
        driver_world_close(&peer.world);
        (void) fd_close(peer.fd);
        arena_done(&peer.arena);
        free(peer.room);
        return 0;
}

/* --- tests --- */

static void nothing_is_asked_before_a_hello_is_answered(void **state)
{
        struct call c;

        begin(&c, DRIVER_CALL_INSPECT, "a1");
        take(WARDEN_MSG_HELLO);
        turn();
        check_false(has_message());
        give((struct warden_reply){ .version = WARDEN_PROTOCOL_VERSION }, NULL);
        take(WARDEN_MSG_INSPECT);
        check_z_eq(peer.q.id, "a1");
        give((struct warden_reply){ .state = killed }, NULL);
        check_i64_eq(finish(&c), 0);
        check_i64_eq(c.status, RUNTIME_DEAD);
        check_z_eq(c.reason, "SIGNALED");
}

static void an_answer_to_an_older_hello_does_not_count(void **state)
{
        struct warden_request first;
        struct call c;

        begin(&c, DRIVER_CALL_DESTROY, "a1");
        take(WARDEN_MSG_HELLO);
        first = peer.q;
        notify((struct warden_event){ .kind = WARDEN_EVENT_STARTED, .id = "" });
        take(WARDEN_MSG_HELLO);
        give((struct warden_reply){ .call = WARDEN_MSG_HELLO,
                                    .request_id = first.request_id,
                                    .version = WARDEN_PROTOCOL_VERSION },
             NULL);
        turn();
        check_false(has_message());
        give((struct warden_reply){ .version = WARDEN_PROTOCOL_VERSION }, NULL);
        take(WARDEN_MSG_DESTROY);
        give((struct warden_reply){ 0 }, NULL);
        check_i64_eq(finish(&c), 0);
}

static void the_next_warden_is_asked_again(void **state)
{
        struct call c;
        uint64_t old;

        greet();
        begin(&c, DRIVER_CALL_INSPECT, "a1");
        take(WARDEN_MSG_INSPECT);
        old = peer.q.request_id;
        come_anew();
        take(WARDEN_MSG_INSPECT);
        check_true(peer.q.request_id != old);
        /* What the old one may still have said is nobody's. */
        give((struct warden_reply){ .call = WARDEN_MSG_INSPECT,
                                    .request_id = old,
                                    .state = killed },
             NULL);
        give((struct warden_reply){ .result = CODE(NOT_FOUND) }, NULL);
        check_i64_eq(finish(&c), 0);
        check_i64_eq(c.status, RUNTIME_GONE);
        take(WARDEN_MSG_SCAN);
        give((struct warden_reply){ 0 }, NULL);
}

static void a_create_is_destroyed_and_asked_for_once_more(void **state)
{
        struct call c;

        greet();
        begin(&c, DRIVER_CALL_CREATE, "a1");
        take(WARDEN_MSG_CREATE);
        come_anew();
        take(WARDEN_MSG_DESTROY);
        give((struct warden_reply){ 0 }, NULL);
        take(WARDEN_MSG_SCAN);
        give((struct warden_reply){ 0 }, NULL);
        take(WARDEN_MSG_CREATE);
        come_anew();
        take(WARDEN_MSG_DESTROY);
        give((struct warden_reply){ 0 }, NULL);
        take(WARDEN_MSG_SCAN);
        give((struct warden_reply){ 0 }, NULL);
        check_i64_eq(finish(&c), CODE(UNAVAILABLE));
        check_false(has_message());
}

static void a_refused_create_destroys_nothing(void **state)
{
        struct call c;

        greet();
        begin(&c, DRIVER_CALL_CREATE, "a1");
        take(WARDEN_MSG_CREATE);
        op_cancel(&c.req.op);
        give((struct warden_reply){ .result = CODE(CONFLICT), .text = "there is one" }, NULL);
        check_i64_eq(finish(&c), CODE(CANCELED));
        turn();
        check_false(has_message());
}

/* An event about its end is not passed on: the create has failed. */
static void a_sandbox_that_ended_in_its_create_is_destroyed(void **state)
{
        static const struct instance_status status = { RUNTIME_DEAD, WARDEN_EXIT_CODE, 127 };
        struct call c;

        greet();
        begin(&c, DRIVER_CALL_CREATE, "a1");
        take(WARDEN_MSG_CREATE);
        give((struct warden_reply){ .state = status }, NULL);
        notify((struct warden_event){ WARDEN_EVENT_DIED, "a1", status });
        take(WARDEN_MSG_DESTROY);
        give((struct warden_reply){ 0 }, NULL);
        check_i64_eq(finish(&c), CODE(INVALID));
        check_true(strstr(c.req.err.message, "it ended before its agent answered") != NULL);
        check_true(strstr(c.req.err.message, "127") != NULL);
        check_i64_eq(peer.world.notified, 0);
        check_false(has_message());
}

static void a_pause_that_was_done_is_done(void **state)
{
        const struct instance_status paused = { RUNTIME_PAUSED, WARDEN_EXIT_NONE, 0 };
        int pair[2];
        struct call c;

        greet();
        begin(&c, DRIVER_CALL_PAUSE, "a1");
        take(WARDEN_MSG_PAUSE);
        come_anew();
        take(WARDEN_MSG_PAUSE);
        give((struct warden_reply){ .result = CODE(CONFLICT), .text = "is paused" }, NULL);
        take(WARDEN_MSG_SCAN);
        give((struct warden_reply){ 0 }, NULL);
        take(WARDEN_MSG_INSPECT);
        check_i64_eq(pipe2(pair, O_CLOEXEC), 0);
        give((struct warden_reply){ .state = paused }, pair);
        check_i64_eq(finish(&c), 0);
        (void) close(pair[0]);
        (void) close(pair[1]);
}

static void who_ended_meanwhile_is_told(void **state)
{
        const struct warden_found page[] = { { "a1", running }, { "a2", killed } };
        int records[2];

        greet();
        come_anew();
        take(WARDEN_MSG_SCAN);
        check_z_eq(peer.q.id, "");
        check_i64_eq(pipe2(records, O_CLOEXEC), 0);
        give((struct warden_reply){ .found = page, .n_found = 2, .more = true }, records);
        take(WARDEN_MSG_SCAN);
        check_z_eq(peer.q.id, "a2");
        give((struct warden_reply){ 0 }, NULL);
        driver_world_until(&peer.world, peer.world.notified == 1);
        check_z_eq(peer.world.died_id, "a2");
        (void) close(records[0]);
        (void) close(records[1]);
}

static void news_are_told_as_they_are(void **state)
{
        greet();
        turn();
        notify((struct warden_event){ .kind = WARDEN_EVENT_OOM, .id = "a1" });
        notify((struct warden_event){ .kind = WARDEN_EVENT_DIED, .id = "a1", .state = killed });
        driver_world_until(&peer.world, peer.world.notified == 1);
        check_z_eq(peer.world.died_id, "a1");
        check_i64_eq(peer.world.died_health.status, RUNTIME_DEAD);
}

static void what_is_no_message_is_dropped_with_its_descriptors(void **state)
{
        int pair[2], before;
        struct call c;

        greet();
        turn();
        check_i64_eq(pipe2(pair, O_CLOEXEC), 0);
        before = driver_world_descriptors();
        send_bytes(STR("nonsense"), pair, 2);
        send_bytes(STR("\x01"), NULL, 0);
        give((struct warden_reply){ .call = WARDEN_MSG_INSPECT,
                                    .request_id = 4711,
                                    .state = running },
             pair);
        begin(&c, DRIVER_CALL_INSPECT, "a1");
        take(WARDEN_MSG_INSPECT);
        check_i64_eq(driver_world_descriptors(), before);
        give((struct warden_reply){ .result = CODE(NOT_FOUND) }, NULL);
        check_i64_eq(finish(&c), 0);
        (void) close(pair[0]);
        (void) close(pair[1]);
}

static void who_cancels_does_not_wait(void **state)
{
        struct call c;

        greet();
        begin(&c, DRIVER_CALL_INSPECT, "a1");
        take(WARDEN_MSG_INSPECT);
        op_cancel(&c.req.op);
        check_i64_eq(finish(&c), CODE(CANCELED));
        give((struct warden_reply){ .state = killed }, NULL);
        turn();
}

static void without_the_other_end_nothing_is_answered(void **state)
{
        struct call c;

        greet();
        begin(&c, DRIVER_CALL_CREATE, "a1");
        take(WARDEN_MSG_CREATE);
        peer.fd = fd_close(peer.fd);
        check_i64_eq(finish(&c), CODE(UNAVAILABLE));
        begin(&c, DRIVER_CALL_CONNECT, "a1");
        check_i64_eq(finish(&c), CODE(UNAVAILABLE));
}

#define LINK_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                LINK_TEST(nothing_is_asked_before_a_hello_is_answered),
                LINK_TEST(an_answer_to_an_older_hello_does_not_count),
                LINK_TEST(the_next_warden_is_asked_again),
                LINK_TEST(a_create_is_destroyed_and_asked_for_once_more),
                LINK_TEST(a_refused_create_destroys_nothing),
                LINK_TEST(a_sandbox_that_ended_in_its_create_is_destroyed),
                LINK_TEST(a_pause_that_was_done_is_done),
                LINK_TEST(who_ended_meanwhile_is_told),
                LINK_TEST(news_are_told_as_they_are),
                LINK_TEST(what_is_no_message_is_dropped_with_its_descriptors),
                LINK_TEST(who_cancels_does_not_wait),
                LINK_TEST(without_the_other_end_nothing_is_answered),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
