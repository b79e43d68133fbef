/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/libhutch/own_loop.h"
#include "tests/libhutch/scenario.h"

/* Calls on loops: many at once, started and given up from inside each other. And tunnels. */

#define AT_ONCE 40

struct one {
        struct world *w;
        struct hutch_call call;
        struct hutch_command_result *ran;
        int times_done, result;
        struct one *cancels; /* from its own callback */
        bool again;          /* starts one more when it is done */
        size_t output;
        bool gave_up, late; /* cancelled itself; was told output nevertheless */
};

static void on_done(struct hutch_call *call, int result)
{
        struct one *o = call->data;

        o->times_done++;
        o->result = result;
        if (o->cancels)
                hutch_call_cancel(&o->cancels->call);
        if (o->again) {
                o->again = false;
                if (hutch_ping(o->w->client, o->w->agent, &o->call) < 0)
                        o->result = 1;
        }
}

static int on_output(void *data, enum hutch_stream stream, const char *bytes, size_t n)
{
        struct one *o = data;

        (void) stream;
        (void) bytes;
        o->output += n;
        o->late = o->late || o->gave_up;
        o->gave_up = o->cancels == o;
        if (o->cancels)
                hutch_call_cancel(&o->cancels->call);
        return 0;
}

static void prepare(struct world *w, struct hutch_loop *loop, struct one *o)
{
        memset(o, 0, sizeof(*o));
        o->w = w;
        o->call = hutch_call_init();
        o->call.loop = loop;
        o->call.done = on_done;
        o->call.data = o;
        o->result = 1;
}

static int start(struct one *o, const char *command)
{
        struct hutch_command_options what = hutch_command_options_init();

        what.command = command;
        what.attached = true;
        return hutch_run_command(o->w->client, o->w->agent, &what, &o->ran, &o->call);
}

static int start_streaming(struct one *o, const char *command)
{
        struct hutch_command_options what = hutch_command_options_init();

        what.command = command;
        what.attached = true;
        what.output = on_output;
        what.data = o;
        return hutch_run_command(o->w->client, o->w->agent, &what, &o->ran, &o->call);
}

static void many_on_its_loop(struct world *w)
{
        struct hutch_loop *loop;
        struct one all[AT_ONCE];
        char command[64];

        WORKS(w, hutch_loop_new(NULL, &loop));
        for (int i = 0; i < AT_ONCE; i++) {
                prepare(w, loop, &all[i]);
                (void) snprintf(command, sizeof(command), "echo %d; exit %d", i, i);
                WORKS(w, start(&all[i], command));
                CHECK(w, all[i].times_done == 0);
        }
        CHECK(w, hutch_loop_calls(loop) == AT_ONCE);
        CHECK(w, hutch_loop_run(loop, -1) == 0);
        for (int i = 0; i < AT_ONCE; i++) {
                CHECK(w, all[i].times_done == 1 && all[i].result == 0);
                CHECK(w, all[i].ran->exit_code == i && strtol(all[i].ran->out, NULL, 10) == i);
                hutch_command_result_free(all[i].ran);
        }
        hutch_loop_free(loop);
}

static void many_on_our_loop(struct world *w)
{
        struct hutch_loop *loop;
        struct own_loop own;
        struct one all[AT_ONCE];

        WORKS(w, own_loop_init(&own, &loop));
        for (int i = 0; i < AT_ONCE; i++) {
                prepare(w, loop, &all[i]);
                WORKS(w, start_streaming(&all[i], "echo hello"));
        }
        while (hutch_loop_calls(loop) > 0)
                own_loop_turn(&own);
        for (int i = 0; i < AT_ONCE; i++) {
                CHECK(w, all[i].times_done == 1 && all[i].result == 0 && all[i].output == 6);
                hutch_command_result_free(all[i].ran);
        }
        hutch_loop_free(loop);
        own_loop_done(&own);
}

static void our_loop_by_descriptor(struct world *w)
{
        struct hutch_loop *loop;
        struct one o;
        struct pollfd p = { .events = POLLIN };

        WORKS(w, hutch_loop_new(NULL, &loop));
        p.fd = hutch_loop_fd(loop);
        CHECK(w, p.fd >= 0);
        prepare(w, loop, &o);
        WORKS(w, hutch_get_sandbox(w->client, w->sandbox->id, NULL, &o.call));
        while (o.times_done == 0) {
                CHECK(w, poll(&p, 1, 20000) == 1);
                (void) hutch_loop_run(loop, 0);
        }
        CHECK(w, o.result == 0);
        hutch_loop_free(loop);
}

static void canceled(struct world *w)
{
        struct hutch_loop *loop;
        struct one all[AT_ONCE];

        WORKS(w, hutch_loop_new(NULL, &loop));
        for (int i = 0; i < AT_ONCE; i++) {
                prepare(w, loop, &all[i]);
                WORKS(w, start(&all[i], "sleep 1000"));
        }
        (void) hutch_loop_run(loop, 50);
        for (int i = 0; i < AT_ONCE; i++) {
                hutch_call_cancel(&all[i].call);
                hutch_call_cancel(&all[i].call);
                CHECK(w, all[i].times_done == 0);
        }
        CHECK(w, hutch_loop_run(loop, -1) == 0);
        for (int i = 0; i < AT_ONCE; i++) {
                CHECK(w, all[i].times_done == 1 && all[i].result == HUTCH_CANCELED && !all[i].ran);
                hutch_call_cancel(&all[i].call); /* does nothing any more */
        }
        CHECK(w, hutch_loop_run(loop, 0) == 0 && all[0].times_done == 1);
        hutch_loop_free(loop);
}

/* One gives up itself while it is told output, one gives up another, one is given up before its first byte,
 * one starts another call when it is done. */
static void from_inside_of_callbacks(struct world *w)
{
        struct one self, other, victim, early, again;
        struct hutch_loop *loop;

        WORKS(w, hutch_loop_new(NULL, &loop));
        prepare(w, loop, &self);
        prepare(w, loop, &other);
        prepare(w, loop, &victim);
        prepare(w, loop, &early);
        prepare(w, loop, &again);
        self.cancels = &self;
        other.cancels = &victim;
        again.again = true;
        WORKS(w, start_streaming(&self, "yes"));
        WORKS(w, start_streaming(&victim, "yes"));
        WORKS(w, start_streaming(&other, "echo one; echo two"));
        WORKS(w, start(&early, "sleep 1000"));
        hutch_call_cancel(&early.call);
        WORKS(w, hutch_ping(w->client, w->agent, &again.call));
        CHECK(w, early.times_done == 0);
        CHECK(w, hutch_loop_run(loop, 20000) == 0);
        CHECK(w,
              self.times_done == 1 && self.result == HUTCH_CANCELED && self.gave_up && !self.late);
        CHECK(w, victim.times_done == 1 && victim.result == HUTCH_CANCELED);
        CHECK(w, other.times_done == 1 && other.result == 0);
        CHECK(w, early.times_done == 1 && early.result == HUTCH_CANCELED);
        CHECK(w, again.times_done == 2 && again.result == 0);
        hutch_command_result_free(other.ran);
        hutch_loop_free(loop);
}

static int block_in_callback(void *data, enum hutch_stream stream, const char *bytes, size_t n)
{
        struct one *o = data;

        (void) stream;
        (void) bytes;
        (void) n;
        o->output++;
        return hutch_ping(o->w->client, o->w->agent, NULL) < 0;
}

/* A callback of a blocking call makes a blocking call. */
static void blocking_inside_of_blocking(struct world *w)
{
        struct hutch_command_options what = hutch_command_options_init();
        struct one o = { .w = w };

        what.command = "echo one; echo two";
        what.output = block_in_callback;
        what.data = &o;
        WORKS(w, hutch_run_command(w->client, w->agent, &what, NULL, &w->call));
        CHECK(w, o.output >= 1);
}

static void loop_freed_with_calls_on_it(struct world *w)
{
        struct one all[4];
        struct hutch_loop *loop;
        struct own_loop own = { .epoll_fd = -1 };

        for (int kind = 0; kind < 2; kind++) {
                WORKS(w, kind ? own_loop_init(&own, &loop) : hutch_loop_new(NULL, &loop));
                for (int i = 0; i < 4; i++)
                        prepare(w, loop, &all[i]);
                WORKS(w, start(&all[0], "sleep 1000"));
                WORKS(w, hutch_wait_ready(w->client, w->sandbox->id, NULL, &all[1].call));
                WORKS(w, hutch_ping(w->client, w->agent, &all[2].call));
                WORKS(w, start_streaming(&all[3], "yes"));
                hutch_call_cancel(&all[2].call);
                if (kind)
                        own_loop_turn(&own);
                else
                        (void) hutch_loop_run(loop, 20);
                hutch_loop_free(loop);
                if (kind)
                        own_loop_done(&own);
                for (int i = 0; i < 4; i++)
                        CHECK(w, all[i].times_done == 1 && !all[i].ran);
                CHECK(w, all[0].result == HUTCH_CANCELED && all[2].result == HUTCH_CANCELED
                                 && all[3].result == HUTCH_CANCELED);
        }
}

static void deadlines(struct world *w)
{
        struct one all[8];
        struct hutch_loop *loop;

        WORKS(w, hutch_loop_new(NULL, &loop));
        for (int i = 0; i < 8; i++) {
                prepare(w, loop, &all[i]);
                all[i].call.timeout_ms = i % 2 ? 200 + i : -1;
                WORKS(w, start(&all[i], i % 2 ? "sleep 1000" : "sleep 0.4"));
        }
        CHECK(w, hutch_loop_run(loop, -1) == 0);
        for (int i = 0; i < 8; i++) {
                CHECK(w, all[i].times_done == 1 && all[i].result == (i % 2 ? HUTCH_TIMEOUT : 0));
                hutch_command_result_free(all[i].ran);
        }
        hutch_loop_free(loop);
}

static void failures_to_start_start_nothing(struct world *w)
{
        struct hutch_loop *loop;
        struct one o;

        WORKS(w, hutch_loop_new(NULL, &loop));
        prepare(w, loop, &o);
        CHECK(w, hutch_get_sandbox(w->client, "", NULL, &o.call) == HUTCH_INVALID);
        CHECK(w, hutch_loop_calls(loop) == 0 && hutch_loop_run(loop, 0) == 0 && o.times_done == 0);
        hutch_loop_free(loop);
}

/* --- tunnels --- */

/* A server of one connection, in a thread: answers each byte with the next one. */
struct next_byte {
        pthread_t thread;
        int listener, port;
};

static void *serve_next_bytes(void *data)
{
        struct next_byte *s = data;
        char buf[4096];
        ssize_t got;
        int c = accept(s->listener, NULL, NULL);

        while ((got = read(c, buf, sizeof(buf))) > 0) {
                for (ssize_t i = 0; i < got; i++)
                        buf[i]++;
                if (write(c, buf, (size_t) got) != got)
                        break;
        }
        (void) close(c);
        (void) close(s->listener);
        return NULL;
}

static bool next_byte_start(struct next_byte *s)
{
        struct sockaddr_in at = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t n = sizeof(at);

        s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(s->listener, (struct sockaddr *) &at, n) < 0 || listen(s->listener, 4) < 0
            || getsockname(s->listener, (struct sockaddr *) &at, &n) < 0)
                return false;
        s->port = ntohs(at.sin_port);
        return pthread_create(&s->thread, NULL, serve_next_bytes, s) == 0;
}

static int tunnel_wait(struct hutch_tunnel *t)
{
        unsigned e = hutch_tunnel_events(t);
        struct pollfd p = { .fd = hutch_tunnel_fd(t),
                            .events = (short) ((e & HUTCH_READABLE ? POLLIN : 0)
                                               | (e & HUTCH_WRITABLE ? POLLOUT : 0)) };

        return poll(&p, 1, 20000);
}

static void tunnel(struct world *w)
{
        struct next_byte server;
        struct hutch_tunnel *t;
        char buf[64] = "";
        size_t have = 0;
        int64_t n;

        CHECK(w, next_byte_start(&server));
        WORKS(w, hutch_open_tunnel(w->client, w->agent, server.port, &t, &w->call));
        CHECK(w, hutch_tunnel_write(t, "HAL", 3) == 3);
        while (have < 3) {
                n = hutch_tunnel_read(t, buf + have, sizeof(buf) - have);
                CHECK(w, n > 0 || (n == HUTCH_AGAIN && tunnel_wait(t) == 1));
                have += n > 0 ? (size_t) n : 0;
        }
        CHECK(w, memcmp(buf, "IBM", 3) == 0);
        CHECK(w, hutch_tunnel_end(t) == 0);
        hutch_tunnel_free(t);
        CHECK(w, pthread_join(server.thread, NULL) == 0);
        CHECK(w, hutch_open_tunnel(w->client, w->agent, server.port, &t, &w->call) < 0);
        CHECK(w, w->call.error.message[0]);
}

/* Talks through the tunnel, and hangs up when it has its answer. */
struct talker {
        pthread_t thread;
        int fd;
        bool hurried; /* it does not wait for its answer */
        bool good;
};

static void *talk(void *data)
{
        struct talker *t = data;
        struct pollfd p = { .fd = t->fd, .events = POLLIN };
        char buf[16] = "";

        t->good = write(t->fd, "abc", 3) == 3;
        if (!t->hurried)
                t->good = t->good && poll(&p, 1, 20000) == 1 && read(t->fd, buf, sizeof(buf)) == 3
                          && memcmp(buf, "bcd", 3) == 0;
        (void) close(t->fd);
        return NULL;
}

static void pump_once(struct world *w, bool hurried)
{
        struct next_byte server;
        struct talker talker;
        struct hutch_tunnel *t;
        int pair[2], r;

        CHECK(w, next_byte_start(&server));
        CHECK(w, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
        WORKS(w, hutch_open_tunnel(w->client, w->agent, server.port, &t, &w->call));
        talker = (struct talker){ .fd = pair[0], .hurried = hurried };
        CHECK(w, pthread_create(&talker.thread, NULL, talk, &talker) == 0);
        r = hutch_pump_tunnel(w->client, t, pair[1], &w->call);
        CHECK(w, r == 0 || (hurried && r == HUTCH_LOCAL));
        (void) close(pair[1]);
        hutch_tunnel_free(t);
        CHECK(w, pthread_join(talker.thread, NULL) == 0 && talker.good);
        CHECK(w, pthread_join(server.thread, NULL) == 0);
}

static void tunnel_pumped(struct world *w)
{
        pump_once(w, false);
}

/* No signal kills us for it. */
static void tunnel_without_listener(struct world *w)
{
        for (int i = 0; i < 8 && !w->failed; i++)
                pump_once(w, true);
}

const struct step async_steps[] = {
        { "many calls on the library's loop", many_on_its_loop },
        { "many calls on a loop of ours", many_on_our_loop },
        { "the library's loop in ours", our_loop_by_descriptor },
        { "calls that are given up", canceled },
        { "from inside of callbacks", from_inside_of_callbacks },
        { "a blocking call inside of another", blocking_inside_of_blocking },
        { "a loop that is freed with calls on it", loop_freed_with_calls_on_it },
        { "deadlines", deadlines },
        { "what can't be started starts nothing", failures_to_start_start_nothing },
        { "a tunnel", tunnel },
        { "a tunnel that is pumped", tunnel_pumped },
        { "a tunnel whose user hangs up", tunnel_without_listener },
        { NULL },
};
