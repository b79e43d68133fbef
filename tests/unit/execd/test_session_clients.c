/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions and clients at the other end of a real connection, which read slowly or disconnect. */
#include "execd/session.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/lib/session_world.h"

struct client {
        struct session_world *s;
        int fd;
        bool eof;
        uint64_t seen; /* of the byte 'a' in events */
        struct buf tail;
};

static struct sockaddr_un address_of(const struct session_world *s)
{
        struct sockaddr_un un = { .sun_family = AF_UNIX };

        (void) snprintf(un.sun_path, sizeof(un.sun_path), "%s/s", s->w.dir);
        return un;
}

static void open_world(struct session_world *s, const char *shell)
{
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        struct sockaddr_un un;

        session_world_open(s, shell);
        un = address_of(s);
        check_i64_eq(bind(fd, (const struct sockaddr *) &un, sizeof(un)), 0);
        check_i64_eq(listen(fd, 8), 0);
        check_i64_eq(http_server_listen(s->w.agent->server, fd), 0);
}

static void client_open(struct client *c, struct session_world *s)
{
        struct sockaddr_un un = address_of(s);

        *c = (struct client){ .s = s };
        buf_init(&c->tail, MiB);
        c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        check_i64_eq(connect(c->fd, (const struct sockaddr *) &un, sizeof(un)), 0);
}

static void client_close(struct client *c)
{
        c->fd = fd_close(c->fd);
        buf_done(&c->tail);
}

static void client_send(struct client *c, const char *command)
{
        char text[512];
        int n = snprintf(text, sizeof(text),
                         "POST /session/%s/run HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                         "Content-Length: %zu\r\n\r\n{\"command\":\"%s\"}",
                         c->s->id, strlen(command) + 14, command);

        check_i64_eq(write(c->fd, text, (size_t) n), n);
}

/* Keeps the last bytes only. */
static bool client_read(struct client *c)
{
        static char bytes[256 * KiB];
        ssize_t n = read(c->fd, bytes, sizeof(bytes));

        c->eof = n == 0;
        if (n <= 0)
                return false;
        for (ssize_t i = 0; i < n; i++)
                c->seen += bytes[i] == 'a';
        if (c->tail.n > 512 * KiB)
                buf_consume(&c->tail, c->tail.n - KiB);
        buf_add(&c->tail, bytes, (size_t) n);
        return true;
}

static void test_a_slow_client_slows_the_run(void **state)
{
        enum { SIZE = 20000000 };
        struct session_world s;
        struct client c;
        usec_t started;
        int waiting = 0;

        open_world(&s, *state);
        client_open(&c, &s);
        client_send(&c, "head -c 20000000 /dev/zero | tr '\\\\0' a; echo 1 >done");
        check_case("nothing is read: the pipes fill and the program waits");
        while (ioctl(c.fd, FIONREAD, &waiting) == 0 && waiting < 64 * (int) KiB)
                net_loop_run_once(&s.w.loop, /* wait= */ true);
        for (int i = 0; i < 1000; i++)
                net_loop_run_once(&s.w.loop, /* wait= */ false);
        check_true(access(path_in(&s.w, "done"), F_OK) < 0);
        check_case("all of it comes");
        started = clock_mono(&clock_system);
        while (!c.eof) {
                check_true(clock_mono(&clock_system) - started < 30 * USEC_PER_SEC);
                net_loop_run_once(&s.w.loop, /* wait= */ false);
                while (client_read(&c))
                        ;
        }
        check_true(memmem(c.tail.p + c.tail.start, c.tail.n, "execution_complete", 18) != NULL);
        check_true(c.seen >= SIZE && c.seen < SIZE + 10000);
        check_z_eq(run_command(&s, "echo next"), "next|0");
        client_close(&c);
        session_world_close(&s);
}

static void test_a_client_that_does_not_read_keeps_no_session_open(void **state)
{
        struct session_world s;
        struct client c;
        char target[80];

        open_world(&s, *state);
        check_z_eq(run_command(&s, "echo up"), "up|0");
        client_open(&c, &s);
        client_send(&c, "echo $$ >pid; head -c 20000000 /dev/zero | tr '\\\\0' a");
        (void) number_in(&s, "pid");
        (void) snprintf(target, sizeof(target), "/session/%s", s.id);
        check_i64_eq(call(&s.w, "DELETE", target, NULL).status, 200);
        check_true(kill((pid_t) number_in(&s, "pid"), 0) < 0);
        client_close(&c);
        session_world_close(&s);
}

static void until_queued(struct session_world *s, size_t n)
{
        usec_t started = clock_mono(&clock_system);

        while (session_find(&s->w.agent->sessions, str_from(s->id))->_n_queued != n) {
                check_true(clock_mono(&clock_system) - started < 10 * USEC_PER_SEC);
                net_loop_run_once(&s->w.loop, /* wait= */ false);
        }
}

/* By the connection's end, as the server sees it. */
static void test_runs_end_with_their_clients(void **state)
{
        struct client running, queued, half_closed;
        struct session_world s;

        open_world(&s, *state);
        check_z_eq(run_command(&s, "export A=1; X=1"), "|0");
        client_open(&running, &s);
        client_open(&queued, &s);
        client_open(&half_closed, &s);
        client_send(&running, "echo $$ >pid; sleep 1000");
        (void) number_in(&s, "pid");
        client_send(&queued, "echo 2 >queued");
        client_send(&half_closed, "echo 3 >half");
        until_queued(&s, 2);
        check_i64_eq(shutdown(half_closed.fd, SHUT_WR), 0);
        client_close(&queued);
        until_queued(&s, 0);
        client_close(&running);
        check_z_eq(run_command(&s, "echo $A$X; cat queued half 2>/dev/null; :"), "1|0");
        check_true(kill((pid_t) number_in(&s, "pid"), 0) < 0);
        client_close(&half_closed);
        session_world_close(&s);
}

#define WITH(shell, f)                                       \
        {                                                    \
                shell ": " #f, f, NULL, NULL, (void *) shell \
        }
#define WITH_ALL(f) WITH("bash", f), WITH("dash", f), WITH("busybox", f)

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_ALL(test_a_slow_client_slows_the_run),
                WITH("bash", test_a_client_that_does_not_read_keeps_no_session_open),
                WITH_ALL(test_runs_end_with_their_clients),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
