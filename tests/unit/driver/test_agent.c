/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/agent.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "driver/driver_impl.h"
#include "os/fd.h"
#include "tests/lib/check.h"
#include "tests/lib/driver_world.h"

/*
 * What stands in the agent's place may say anything. Here it is the test: a driver whose connect gives
 * one end of a socket pair, and scripts that are written to the other.
 */

struct raw {
        struct driver driver;
        bool hold; /* connect does not come back before it is canceled */
        struct driver_req *held;
};

static struct driver_world w;
static struct raw *raw;
static int peer = -EBADF;

static void raw_connect(struct driver *d, struct driver_req *req)
{
        int pair[2];

        if (raw->hold) {
                raw->held = req;
                return;
        }
        check_i64_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
        DRIVER_AS(connect, req)->fd = pair[0];
        peer = pair[1];
        driver_finish(req, 0);
}

static void raw_cancel(struct driver *d, struct driver_req *req)
{
        driver_finish(req, err_set(&req->err, ERR_CANCELED, "canceled"));
}

static const struct driver_ops raw_ops = {
        .name = "raw",
        .calls = { [DRIVER_CALL_CONNECT] = raw_connect },
        .cancel = raw_cancel,
        .close = driver_closed,
};

static int set_up(void **state)
{
        driver_world_open(&w, NULL);
        raw = xnew(struct raw);
        driver_init(&raw->driver, &raw_ops, &w.loop);
        return 0;
}

static int tear_down(void **state)
{
        peer = fd_close(peer);
        driver_world_close_driver(&w, &raw->driver);
        driver_world_close(&w);
        return 0;
}

/* --- a call, and what is answered --- */

struct call {
        union {
                struct agent_req req;
                struct agent_ping ping;
                struct agent_exec exec;
                struct agent_read read;
                struct agent_write write;
        };
        bool done;
        int result;
};

static void call_done(struct op *op, int result)
{
        struct call *c = container_of(op, struct call, req.op);

        c->result = result;
        c->done = true;
}

enum what { PING, EXEC, READ, WRITE };

static const struct agent_file file = { { "f", 1 }, { "content", 7 }, 0 };

static void start(struct call *c, enum what what, const struct sandbox *s)
{
        op_init(&c->req.op, call_done);
        switch (what) {
        case PING:
                agent_ping(w.agents, &c->ping, &raw->driver, s);
                break;
        case EXEC:
                c->exec.command = STR("true");
                agent_exec(w.agents, &c->exec, &raw->driver, s);
                break;
        case READ:
                c->read.path = STR("f");
                agent_read(w.agents, &c->read, &raw->driver, s);
                break;
        case WRITE:
        default:
                c->write.files = &file;
                c->write.n = 1;
                agent_write(w.agents, &c->write, &raw->driver, s);
                break;
        }
}

static void finish(struct call *c, enum what what)
{
        if (what == EXEC)
                agent_exec_done(&c->exec);
        else if (what == READ)
                agent_read_done(&c->read);
}

static void say(struct str bytes)
{
        for (usec_t until = driver_world_deadline(); bytes.n > 0;) {
                ssize_t n = send(peer, bytes.p, bytes.n, MSG_NOSIGNAL | MSG_DONTWAIT);

                if (n > 0)
                        bytes = str_skip(bytes, (size_t) n);
                else if (errno != EAGAIN)
                        return; /* it has hung up */
                else
                        driver_world_turn(&w, until);
        }
}

/* Waits until the request has come: an answer before it is no answer. */
static void hear(void)
{
        char text[8192];

        driver_world_until(&w, peer >= 0);
        while (recv(peer, text, sizeof(text), MSG_DONTWAIT) < 0)
                driver_world_turn(&w, driver_world_deadline());
        for (int i = 0; i < 3; i++) {
                net_loop_run_once(&w.loop, /* wait= */ false);
                (void) !recv(peer, text, sizeof(text), MSG_DONTWAIT);
        }
}

#define HEAD(n) "HTTP/1.1 200 OK\r\nContent-Length: " n "\r\n\r\n"
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

struct script {
        const char *name;
        enum what what;
        const char *answer;
        int result;
        bool blamed; /* the one file that was to be written */
};

static void play(const struct script *script)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        struct call c = { 0 };

        check_case(script->name);
        start(&c, script->what, s);
        hear();
        say(str_from(script->answer));
        (void) shutdown(peer, SHUT_WR);
        driver_world_until(&w, c.done);
        check_i64_eq(c.result, script->result);
        if (script->what == WRITE)
                check_i64_eq(c.write.failed, script->blamed ? 0 : 1);
        if (c.result < 0)
                check_true(c.req.err.message[0] != '\0' && !strchr(c.req.err.message, '\n'));
        finish(&c, script->what);
        peer = fd_close(peer);
}

static void answers_of_all_kinds(void **state)
{
        static const struct script scripts[] = {
                { "good", PING, HEAD("14") "{\"protocol\":1}", 0 },
                { "another protocol", PING, HEAD("14") "{\"protocol\":2}", CODE(UNSUPPORTED) },
                { "no protocol", PING, HEAD("2") "{}", CODE(UNAVAILABLE) },
                { "a text for it", PING, HEAD("16") "{\"protocol\":\"1\"}", CODE(UNAVAILABLE) },
                { "no JSON", PING, HEAD("5") "hello", CODE(UNAVAILABLE) },
                { "nothing at all", PING, "", CODE(UNAVAILABLE) },
                { "no HTTP", PING, "SSH-2.0-OpenSSH\r\n", CODE(UNAVAILABLE) },
                { "a truncated head", PING, "HTTP/1.1 200 OK\r\nContent-Le", CODE(UNAVAILABLE) },
                { "a truncated body", PING, HEAD("20") "{\"protocol\":1}", CODE(UNAVAILABLE) },
                { "two lengths", PING,
                  "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
                  CODE(UNAVAILABLE) },
                { "a redirection", PING,
                  "HTTP/1.1 302 Found\r\nLocation: http://x/\r\nContent-Length: 0\r\n\r\n",
                  CODE(UNAVAILABLE) },
                { "an error without words", PING,
                  "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", CODE(UNAVAILABLE) },
                { "an upgrade", PING,
                  "HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
                  CODE(UNAVAILABLE) },

                { "a command", EXEC, HEAD("30") "{\"type\":\"execution_complete\"}\n", 0 },
                { "a command that ends early", EXEC, HEAD("2") "\n\n", CODE(UNAVAILABLE) },
                { "a command with a bad chunk", EXEC, CHUNKED "zz\r\n", CODE(UNAVAILABLE) },
                { "a command whose stream breaks", EXEC, CHUNKED "5\r\n{\"typ", CODE(UNAVAILABLE) },
                { "a command with nonsense", EXEC, CHUNKED "6\r\nhello\n\r\n0\r\n\r\n",
                  CODE(UNAVAILABLE) },
                { "a command refused", EXEC,
                  "HTTP/1.1 400 Bad\r\nContent-Length: 30\r\n\r\n"
                  "{\"code\":\"X\",\"message\":\"a\\nb!\"} ",
                  CODE(INVALID) },

                { "a file", READ, HEAD("3") "abc", 0 },
                { "a file in chunks", READ, CHUNKED "3\r\nabc\r\n0\r\n\r\n", 0 },
                { "half a file", READ, HEAD("30") "abc", CODE(UNAVAILABLE) },
                { "a part of a file", READ,
                  "HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-2/9\r\nContent-Length: 3\r\n\r\nabc",
                  CODE(UNAVAILABLE) },
                { "no such file", READ,
                  "HTTP/1.1 404 Not Found\r\nContent-Length: 27\r\n\r\n"
                  "{\"code\":\"F\",\"message\":\"no\"} ",
                  CODE(NOT_FOUND) },

                { "written", WRITE, HEAD("0"), 0 },
                { "not written", WRITE,
                  "HTTP/1.1 500 Oh\r\nEXECD-FAILED-FILE: 0\r\nContent-Length: 27\r\n\r\n"
                  "{\"code\":\"F\",\"message\":\"no\"} ",
                  CODE(CONFLICT), true },
                { "a file that there is not is to blame", WRITE,
                  "HTTP/1.1 500 Oh\r\nEXECD-FAILED-FILE: 7\r\nContent-Length: 27\r\n\r\n"
                  "{\"code\":\"F\",\"message\":\"no\"} ",
                  CODE(CONFLICT) },
        };

        for (size_t i = 0; i < ARRAY_SIZE(scripts); i++)
                play(&scripts[i]);
}

/* --- who does not read to the end --- */

static void who_stops_reading_is_heard_all_the_same(void **state)
{
        static char large[3 * MiB];
        static const struct {
                const char *name, *answer;
                bool closes;
                int result;
                size_t failed;
        } cases[] = {
                { "hangs up", "", true, CODE(UNAVAILABLE), 2 },
                { "says why, and hangs up",
                  "HTTP/1.1 500 Oh\r\nEXECD-FAILED-FILE: 1\r\nContent-Length: 27\r\n\r\n"
                  "{\"code\":\"F\",\"message\":\"no\"} ",
                  true, CODE(CONFLICT), 1 },
                { "says why, and reads nothing more",
                  "HTTP/1.1 500 Oh\r\nEXECD-FAILED-FILE: 1\r\nContent-Length: 27\r\n\r\n"
                  "{\"code\":\"F\",\"message\":\"no\"} ",
                  false, CODE(CONFLICT), 1 },
                { "says nothing, and reads nothing more", "", false, CODE(TIMEOUT), 2 },
        };
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        const struct agent_file files[] = {
                { STR("a"), STR("1"), 0 },
                { STR("b"), str_of(large, sizeof(large)), 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct call c = { .write = { .files = files, .n = 2 } };

                check_case(cases[i].name);
                c.req.timeout = cases[i].result == CODE(TIMEOUT) ? USEC_PER_SEC / 10 : 0;
                op_init(&c.req.op, call_done);
                agent_write(w.agents, &c.write, &raw->driver, s);
                hear();
                say(str_from(cases[i].answer));
                if (cases[i].closes)
                        peer = fd_close(peer);
                driver_world_until(&w, c.done);
                check_i64_eq(c.result, cases[i].result);
                check_i64_eq(c.write.failed, cases[i].failed);
                peer = fd_close(peer);
        }
}

/* --- answers that do not end --- */

static void who_talks_on_and_on_is_cut_off(void **state)
{
        static const struct {
                const char *name, *head, *piece;
                enum what what;
                int result;
        } cases[] = {
                { "version", CHUNKED, "400\r\n", PING, CODE(UNAVAILABLE) },
                { "an error", "HTTP/1.1 500 Oh\r\nTransfer-Encoding: chunked\r\n\r\n", "400\r\n",
                  READ, CODE(UNAVAILABLE) },
                { "a line of events", CHUNKED, "400\r\n", EXEC, CODE(UNAVAILABLE) },
                { "a file", CHUNKED, "400\r\n", READ, CODE(TOO_LARGE) },
                { "a head", "HTTP/1.1 200 OK\r\n", "A: ", PING, CODE(UNAVAILABLE) },
        };
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        char filler[1024 + 2];

        memset(filler, ' ', sizeof(filler));
        filler[1024] = '\r';
        filler[1025] = '\n';
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct call c = { 0 };

                check_case(cases[i].name);
                if (cases[i].what == READ)
                        c.read.max = 100 * 1000;
                start(&c, cases[i].what, s);
                hear();
                say(str_from(cases[i].head));
                for (int n = 0; n < 10000 && !c.done; n++) {
                        say(str_from(cases[i].piece));
                        say(str_of(filler, sizeof(filler)));
                        net_loop_run_once(&w.loop, /* wait= */ false);
                }
                check_true(c.done);
                check_i64_eq(c.result, cases[i].result);
                finish(&c, cases[i].what);
                peer = fd_close(peer);
        }
}

/* --- time --- */

static void who_says_nothing_is_not_waited_for(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        static const char *const said[] = { NULL, "HTTP/1.1 200", HEAD("10") "{" };

        for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
                struct call c = { .req.timeout = USEC_PER_SEC / 10 };

                start(&c, PING, s);
                if (said[i]) {
                        hear();
                        say(str_from(said[i]));
                }
                driver_world_until(&w, c.done);
                check_i64_eq(c.result, CODE(TIMEOUT));
                peer = fd_close(peer);
        }
}

static void a_driver_that_does_not_connect_is_not_waited_for(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        struct call c = { .req.timeout = USEC_PER_SEC / 10 };

        raw->hold = true;
        start(&c, PING, s);
        driver_world_until(&w, c.done);
        check_i64_eq(c.result, CODE(TIMEOUT));
}

static void cancel_ends_a_call_wherever_it_is(void **state)
{
        static const char *const said[] = { NULL, "HTTP/1.1 200", HEAD("100") "{" };
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

        for (int what = PING; what <= WRITE; what++)
                for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
                        struct call c = { 0 };

                        start(&c, (enum what) what, s);
                        if (said[i]) {
                                hear();
                                say(str_from(said[i]));
                                for (int n = 0; n < 5; n++)
                                        net_loop_run_once(&w.loop, /* wait= */ false);
                        }
                        check_false(c.done);
                        op_cancel(&c.req.op);
                        op_cancel(&c.req.op);
                        check_false(c.done);
                        driver_world_until(&w, c.done);
                        check_i64_eq(c.result, CODE(CANCELED));
                        finish(&c, (enum what) what);
                        peer = fd_close(peer);
                }
}

static void set_flag(void *data)
{
        *(bool *) data = true;
}

static void freeing_ends_calls(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        struct call c[3] = { 0 };
        bool freed = false;
        int other;

        raw->hold = true;
        start(&c[0], PING, s);
        raw->hold = false;
        start(&c[1], EXEC, s);
        hear();
        other = peer;
        start(&c[2], READ, s);
        agents_free(w.agents, set_flag, &freed);
        driver_world_until(&w, freed);
        for (size_t i = 0; i < ARRAY_SIZE(c); i++) {
                check_true(c[i].done);
                check_i64_eq(c[i].result, CODE(CANCELED));
        }
        finish(&c[1], EXEC);
        finish(&c[2], READ);
        (void) fd_close(other);
        w.agents = NULL;
}

/* --- what is requests --- */

static void what_would_become_something_else_is_not_sent(void **state)
{
        static char long_path[4097];
        struct json_pair env[] = { { STR("A"), STR("\xff") } };
        const struct agent_file files[] = {
                { STR("good"), STR(""), 0 },
                { STR("\xc3"), STR(""), 0 },
                { STR(""), STR(""), 0 },
                { str_of(long_path, 4096), STR(""), 0 },
        };
        const struct {
                const char *name, *said;
                struct call call;
                enum what what;
                size_t failed;
        } cases[] = {
                { "a command", "UTF-8", { .exec = { .command = STR("echo \xff") } }, EXEC, 0 },
                { "a dir",
                  "UTF-8",
                  { .exec = { .command = STR("true"), .cwd = STR("/\xff") } },
                  EXEC,
                  0 },
                { "a variable",
                  "UTF-8",
                  { .exec = { .command = STR("true"), .env = { env, 1 } } },
                  EXEC,
                  0 },
                { "no path", "empty", { .read = { .path = STR("") } }, READ, 0 },
                { "a long path", "too long", { .read = { .path = files[3].path } }, READ, 0 },
                { "the second file",
                  "1 is not UTF-8",
                  { .write = { .files = files, .n = 2 } },
                  WRITE,
                  1 },
                { "no name", "0 is empty", { .write = { .files = files + 2, .n = 1 } }, WRITE, 0 },
                { "a long name",
                  "0 is too long",
                  { .write = { .files = files + 3, .n = 1 } },
                  WRITE,
                  0 },
                { "no files", "there are 0", { .write = { .n = 0 } }, WRITE, 0 },
        };
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

        memset(long_path, 'x', 4096);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct call c = cases[i].call;

                check_case(cases[i].name);
                op_init(&c.req.op, call_done);
                if (cases[i].what == EXEC)
                        agent_exec(w.agents, &c.exec, &raw->driver, s);
                else if (cases[i].what == READ)
                        agent_read(w.agents, &c.read, &raw->driver, s);
                else
                        agent_write(w.agents, &c.write, &raw->driver, s);
                check_false(c.done);
                driver_world_until(&w, c.done);
                check_i64_eq(c.result, CODE(INVALID));
                if (!strstr(c.req.err.message, cases[i].said))
                        fail_msg("%s", c.req.err.message);
                if (cases[i].what == WRITE)
                        check_i64_eq(c.write.failed, cases[i].failed);
                finish(&c, cases[i].what);
                peer = fd_close(peer);
        }
}

static void values_of_variables_are_sent_and_not_told(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        struct json_pair env[] = { { STR("A"), STR("s3cret") } };
        /* A little more than a millisecond: the agent's timeout of 1 would be too short, and 0 none. */
        struct call c = { .exec = { .env = { env, 1 }, .cwd = STR("/w"), .req.timeout = 1001 } };
        char text[4096] = { 0 };
        ssize_t n = -1;

        start(&c, EXEC, s);
        driver_world_until(&w,
                           peer >= 0 && (n = recv(peer, text, sizeof(text) - 1, MSG_DONTWAIT)) > 0);
        while (!strstr(text, "}")) {
                net_loop_run_once(&w.loop, /* wait= */ false);
                n += MAX_OF(recv(peer, text + n, sizeof(text) - 1 - (size_t) n, MSG_DONTWAIT), 0);
        }
        check_true(strstr(text, "POST /command HTTP/1.1\r\n") == text);
        check_true(
                strstr(text,
                       "\r\n\r\n{\"command\":\"true\",\"cwd\":\"/w\",\"envs\":{\"A\":\"s3cret\"},"
                       "\"timeout\":2,\"output\":\"base64\",\"attached\":true}")
                != NULL);
        peer = fd_close(peer);
        driver_world_until(&w, c.done);
        check_i64_eq(c.result, CODE(UNAVAILABLE));
        check_true(strstr(c.req.err.message, "s3cret") == NULL);
        finish(&c, EXEC);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(answers_of_all_kinds, set_up, tear_down),
                cmocka_unit_test_setup_teardown(who_stops_reading_is_heard_all_the_same, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(who_talks_on_and_on_is_cut_off, set_up, tear_down),
                cmocka_unit_test_setup_teardown(who_says_nothing_is_not_waited_for, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(a_driver_that_does_not_connect_is_not_waited_for,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(cancel_ends_a_call_wherever_it_is, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(freeing_ends_calls, set_up, tear_down),
                cmocka_unit_test_setup_teardown(what_would_become_something_else_is_not_sent,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(values_of_variables_are_sent_and_not_told, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
