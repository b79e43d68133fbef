/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/broker_conn.h"

#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/check.h"

/*
 * A broker that is the other end of a socket pair. Each byte that it writes is a message ('m'), a
 * confirmation of the oldest message that it got ('c'), or the end ('x').
 */
static struct {
        int fds[2]; /* the broker_conn's, the broker's */
        int refusals;
        bool served, paused;
        unsigned accepted, acknowledged; /* messages: accepted; the broker was notified */
        unsigned got, runs;
        const char *burst;   /* what it says at once ('b') */
        bool left;           /* something is still to be written */
        const char *blocked; /* send fails with this */
        sem_t *held;         /* connect waits for it */
} broker;

static int fake_open(struct broker_conn *w, struct err *e)
{
        (void) e;
        w->transport = &broker;
        return 0;
}

static void fake_close(struct broker_conn *w)
{
        w->transport = NULL;
}

static int fake_connect(struct broker_conn *w, struct err *e)
{
        if (broker.held)
                (void) sem_wait(broker.held);
        if (broker.refusals-- > 0)
                return err_set(e, ERR_UNAVAILABLE, "no one is there");
        check_i64_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, broker.fds),
                     0);
        w->body_max = 77;
        return 0;
}

static int fake_serve(struct broker_conn *w, struct err *e)
{
        (void) e;
        broker.served = true;
        broker_conn_deliver(w, incoming_new()); /* it may come before all is said */
        return 0;
}

/* As libraries do it: the number is closed, whoever waits for it. */
static void fake_disconnect(struct broker_conn *w)
{
        (void) w;
        for (size_t i = 0; i < 2; i++)
                if (broker.fds[i] >= 0)
                        (void) close(TAKE_FD(broker.fds[i]));
}

static int fake_fd(struct broker_conn *w)
{
        (void) w;
        return broker.fds[0];
}

static int take(struct broker_conn *w, char c, struct err *e)
{
        if (c == 'm')
                broker_conn_deliver(w, incoming_new());
        if (c == 'c')
                broker_conn_sent(w, container_of(list_first(&w->sent), struct outgoing, node),
                                 OUTCOME_SENT);
        if (c != 'x')
                return 0;
        (void) close(TAKE_FD(broker.fds[0]));
        return err_set(e, ERR_UNAVAILABLE, "the broker is gone");
}

static int fake_run(struct broker_conn *w, short revents, struct err *e)
{
        char c = 0;
        int r = 0;

        broker.runs++;
        if (revents & POLLOUT)
                broker.left = false;
        if (!(revents & POLLIN) || read(broker.fds[0], &c, 1) != 1)
                return 0;
        if (c != 'b')
                return take(w, c, e);
        for (const char *p = broker.burst; *p && r == 0; p++)
                r = take(w, *p, e);
        return r;
}

static bool fake_wants_write(struct broker_conn *w)
{
        (void) w;
        return broker.left;
}

static int fake_send(struct broker_conn *w, struct outgoing *m, struct err *e)
{
        if (broker.blocked)
                return err_set(e, ERR_UNAVAILABLE, "%s", broker.blocked);
        if (m->is_reply)
                broker_conn_sent(w, m, OUTCOME_TOO_LARGE);
        broker.got++;
        return 0;
}

static int fake_flush(struct broker_conn *w, struct err *e)
{
        (void) w;
        (void) e;
        broker.acknowledged = broker.accepted;
        return 0;
}

static void fake_accept(struct broker_conn *w, uint64_t tag)
{
        (void) w;
        (void) tag;
        broker.accepted++;
}

static int fake_pause(struct broker_conn *w, struct err *e)
{
        (void) w;
        (void) e;
        broker.paused = true;
        return 0;
}

static const struct transport_ops fake = {
        .name = "fake",
        .open = fake_open,
        .close = fake_close,
        .connect = fake_connect,
        .serve = fake_serve,
        .disconnect = fake_disconnect,
        .fd = fake_fd,
        .wants_write = fake_wants_write,
        .run = fake_run,
        .tick_ms = 1000,
        .send = fake_send,
        .flush = fake_flush,
        .accept = fake_accept,
        .pause = fake_pause,
};

/* --- who has the broker_conn --- */

static struct {
        struct net_loop loop;
        struct settings settings;
        struct broker_conn broker_conn;
        unsigned ups, downs, quiets, messages, ends[OUTCOME_MAX_];
        char why[64];
        struct incoming *last;
        bool inside; /* a function of the broker_conn's, in which no hook may be called */
} me;

static void on_message(struct broker_conn *w, struct incoming *m)
{
        (void) w;
        check_false(me.inside);
        me.messages++;
        incoming_free(me.last);
        me.last = m;
}

static void on_completed(struct broker_conn *w, struct outgoing *m)
{
        (void) w;
        check_false(me.inside);
        me.ends[m->outcome]++;
}

static void on_up(struct broker_conn *w)
{
        check_u64_eq(w->body_max, 77);
        me.ups++;
}

static void on_down(struct broker_conn *w, const char *why)
{
        (void) w;
        me.downs++;
        (void) snprintf(me.why, sizeof(me.why), "%s", why);
}

static void on_quiet(struct broker_conn *w)
{
        check_true(broker_conn_is_quiet(w));
        me.quiets++;
}

static const struct broker_conn_hooks hooks = { on_message, on_completed, on_up, on_down,
                                                on_quiet };

static void send_one(struct outgoing *m)
{
        list_init(&m->node);
        me.inside = true;
        broker_conn_send(&me.broker_conn, m);
        me.inside = false;
}

#define turn_until(condition)                                  \
        do                                                     \
                net_loop_run_once(&me.loop, /* wait= */ true); \
        while (!(condition))

static void say(char c)
{
        check_i64_eq(write(broker.fds[1], &c, 1), 1);
}

static int set_up(void **state)
{
        struct err e = { 0 };

        (void) state;
        memset(&me, 0, sizeof(me));
        memset(&broker, 0, sizeof(broker));
        broker.fds[0] = broker.fds[1] = -EBADF;
        me.settings.transport = &fake;
        check_i64_eq(net_loop_init(&me.loop, &clock_system), 0);
        check_i64_eq(broker_conn_start(&me.broker_conn, &me.loop, &me.settings, "me", &hooks, &e),
                     0);
        return 0;
}

static int tear_down(void **state)
{
        (void) state;
        broker_conn_stop(&me.broker_conn);
        incoming_free(me.last);
        net_loop_done(&me.loop);
        return 0;
}

/* --- tests --- */

static void messages_come_and_go(void **state)
{
        struct outgoing m = { 0 }, too_large = { .is_reply = true };

        (void) state;
        turn_until(me.ups == 1);
        check_true(broker.served);
        turn_until(me.messages == 1); /* the one that came while it connected */
        check_u64_eq(me.last->epoch, 1);
        say('m');
        turn_until(me.messages == 2);
        send_one(&m);
        send_one(&too_large);
        turn_until(me.ends[OUTCOME_TOO_LARGE] == 1);
        check_u64_eq(broker.got, 2);
        check_u64_eq(me.ends[OUTCOME_SENT], 0);
        say('c');
        turn_until(me.ends[OUTCOME_SENT] == 1);
}

static void a_refusal_is_reported_and_retried(void **state)
{
        (void) state;
        broker.refusals = 2;
        turn_until(me.downs == 1);
        check_str_eq(str_from(me.why), "no one is there");
        turn_until(me.ups == 1);
        check_u64_eq(me.downs, 2);
        check_u64_eq(me.broker_conn.epoch, 3);
}

static void what_was_sent_is_lost_with_a_connection(void **state)
{
        struct outgoing sent = { 0 }, unsent = { 0 }, late = { 0 };

        (void) state;
        turn_until(me.ups == 1);
        send_one(&sent);
        turn_until(broker.got == 1);
        say('x');
        turn_until(me.downs == 1);
        check_str_eq(str_from(me.why), "the broker is gone");
        check_u64_eq(me.ends[OUTCOME_LOST], 1);
        send_one(&late);
        check_u64_eq(me.ends[OUTCOME_LOST], 1);
        turn_until(me.ends[OUTCOME_LOST] == 2);
        turn_until(me.ups == 2);
        broker.blocked = "it breaks while it is sent";
        send_one(&sent);
        send_one(&unsent);
        turn_until(me.downs == 2);
        check_str_eq(str_from(me.why), broker.blocked);
        check_u64_eq(me.ends[OUTCOME_LOST], 4);
}

static void acknowledgements_are_delayed(void **state)
{
        (void) state;
        turn_until(me.messages == 1);
        broker_conn_accept(&me.broker_conn, me.last);
        check_u64_eq(broker.acknowledged, 0);
        turn_until(broker.acknowledged == 1);
        broker_conn_accept(&me.broker_conn, me.last);
        broker_conn_stop(&me.broker_conn);
        check_u64_eq(broker.acknowledged, 2);
}

static void another_connections_message_is_not_taken_up(void **state)
{
        struct incoming old;

        (void) state;
        turn_until(me.messages == 1);
        old = *me.last;
        say('x');
        turn_until(me.messages == 2);
        broker_conn_accept(&me.broker_conn, &old);
        check_u64_eq(broker.accepted, 0);
        broker_conn_accept(&me.broker_conn, me.last);
        check_u64_eq(broker.accepted, 1);
}

static void a_pause_is_for_good(void **state)
{
        (void) state;
        turn_until(me.ups == 1);
        broker_conn_pause(&me.broker_conn);
        check_true(broker.paused);
        turn_until(me.quiets == 1);
        broker.served = false;
        say('x');
        turn_until(me.ups == 2);
        check_false(broker.served);
}

/* The thread has begun to subscribe by then, or not. */
static void a_pause_comes_while_it_connects(void **state)
{
        (void) state;
        net_loop_run_once(&me.loop, /* wait= */ false);
        broker_conn_pause(&me.broker_conn);
        turn_until(me.ups == 1);
        check_true(broker.paused || !broker.served);
}

static void *let_go(void *held)
{
        (void) sem_post(held);
        return NULL;
}

/* The thread connects until broker_conn_stop waits for it, or until just before that. */
static void it_is_stopped_while_it_connects(void **state)
{
        static struct outgoing m; /* a failure leaves it in the broker_conn's hands */
        pthread_t thread;
        sem_t held;

        (void) state;
        check_i64_eq(sem_init(&held, 0, 0), 0);
        broker.held = &held;
        net_loop_run_once(&me.loop, /* wait= */ false);
        check_i64_eq(pthread_create(&thread, NULL, let_go, &held), 0);
        broker_conn_stop(&me.broker_conn);
        check_i64_eq(pthread_join(thread, NULL), 0);
        (void) sem_destroy(&held);
        m = (struct outgoing){ 0 };
        send_one(&m);
        check_u64_eq(me.ups, 0);
        turn_until(me.ends[OUTCOME_LOST] == 1);
}

static void what_came_by_a_broken_connection_is_the_brokers(void **state)
{
        (void) state;
        turn_until(me.messages == 1);
        broker.burst = "mmx";
        say('b');
        turn_until(me.downs == 1);
        check_u64_eq(me.messages, 1);
}

static void *wake(void *data)
{
        broker_conn_wake(data);
        return NULL;
}

static void another_thread_wakes_it(void **state)
{
        unsigned runs;
        pthread_t thread;

        (void) state;
        turn_until(me.messages == 1);
        runs = broker.runs;
        check_i64_eq(pthread_create(&thread, NULL, wake, &me.broker_conn), 0);
        turn_until(broker.runs > runs);
        check_i64_eq(pthread_join(thread, NULL), 0);
}

/* Flushing leaves something, which goes when the socket can take it. */
static void what_was_not_taken_is_written_later(void **state)
{
        struct outgoing m = { 0 };

        (void) state;
        turn_until(me.messages == 1);
        broker.left = true;
        send_one(&m);
        turn_until(!broker.left);
        check_u64_eq(broker.got, 1);
        say('c');
        turn_until(me.ends[OUTCOME_SENT] == 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(messages_come_and_go),
                TEST(a_refusal_is_reported_and_retried),
                TEST(what_was_sent_is_lost_with_a_connection),
                TEST(acknowledgements_are_delayed),
                TEST(another_connections_message_is_not_taken_up),
                TEST(a_pause_is_for_good),
                TEST(a_pause_comes_while_it_connects),
                TEST(it_is_stopped_while_it_connects),
                TEST(what_came_by_a_broken_connection_is_the_brokers),
                TEST(another_thread_wakes_it),
                TEST(what_was_not_taken_is_written_later),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
