/* SPDX-License-Identifier: Apache-2.0 */
#include "net/stream.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "net/listener.h"
#include "os/fd.h"
#include "tests/lib/check.h"

/* A stream on one end of a socketpair; the test is the peer on the other. */

static struct net_loop loop;

/* In the place of libc's: a filesystem that does not know sendfile, when we want one. */
static int sendfile_errno;

ssize_t fake_sendfile(int out_fd, int in_fd, off_t *offset, size_t count) __asm__("sendfile");

ssize_t fake_sendfile(int out_fd, int in_fd, off_t *offset, size_t count)
{
        if (sendfile_errno == 0)
                return syscall(SYS_sendfile, out_fd, in_fd, offset, count);
        errno = sendfile_errno;
        return -1;
}

struct side {
        struct net_stream s;
        struct buf in;
        int eofs, hangups, drains, errors, closes, stalls, connects;
        int error;
        bool close_on_data;
};

static void on_data(struct net_stream *s, char *p, size_t n)
{
        struct side *d = container_of(s, struct side, s);

        buf_add(&d->in, p, n);
        if (d->close_on_data)
                stream_close(s);
}

static void on_eof(struct net_stream *s)
{
        container_of(s, struct side, s)->eofs++;
}

static void on_hangup(struct net_stream *s)
{
        container_of(s, struct side, s)->hangups++;
}

static void on_drained(struct net_stream *s)
{
        container_of(s, struct side, s)->drains++;
}

static void on_stalled(struct net_stream *s)
{
        container_of(s, struct side, s)->stalls++;
}

static void on_connected(struct net_stream *s)
{
        container_of(s, struct side, s)->connects++;
}

static void on_error(struct net_stream *s, int r)
{
        container_of(s, struct side, s)->errors++;
        container_of(s, struct side, s)->error = r;
        stream_close(s);
}

static void on_closed(struct net_stream *s)
{
        container_of(s, struct side, s)->closes++;
}

static const struct net_stream_ops ops = {
        .data = on_data,
        .eof = on_eof,
        .drained = on_drained,
        .stalled = on_stalled,
        .hangup = on_hangup,
        .error = on_error,
        .closed = on_closed,
        .connected = on_connected,
};

static int set_up(void **state)
{
        return net_loop_init(&loop, &clock_system);
}

static int tear_down(void **state)
{
        net_loop_done(&loop);
        return 0;
}

static int open_side(struct side *d, size_t out_max)
{
        int fds[2];

        memset(d, 0, sizeof(*d));
        buf_init(&d->in, MiB);
        check_i64_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        check_i64_eq(stream_open(&d->s, &loop, fds[0], out_max, &ops), 0);
        stream_resume_reading(&d->s);
        return fds[1];
}

static void close_side(struct side *d, int peer)
{
        stream_close(&d->s);
        while (d->closes == 0)
                net_loop_run_once(&loop, false);
        check_i64_eq(d->closes, 1);
        check_true(stream_is_closed(&d->s));
        buf_done(&d->in);
        (void) fd_close(peer);
}

static void bytes_go_both_ways_once_per_iteration(void **state)
{
        struct side d;
        int peer = open_side(&d, KiB);
        char got[16] = { 0 };

        stream_queue(&d.s, STR("one "));
        stream_queue(&d.s, STR("two"));
        check_i64_eq(recv(peer, got, sizeof(got), 0), -1); /* nothing is sent inside the call */
        net_loop_run_once(&loop, false);
        check_i64_eq(recv(peer, got, sizeof(got), 0), 7);
        check_z_eq(got, "one two");
        check_i64_eq(d.drains, 1);

        check_i64_eq(send(peer, "hello", 5, 0), 5);
        net_loop_run_once(&loop, false);
        check_str_eq(buf_str(&d.in), "hello");
        close_side(&d, peer);
}

/* Reads all the peer can get while the stream still has output. */
static size_t drain_peer(struct side *d, int peer, char *into, size_t size)
{
        size_t total = 0;

        for (int idle = 0; idle < 3;) {
                ssize_t n = recv(peer, into + total, size - total, 0);

                idle = n > 0 ? 0 : idle + 1;
                total += n > 0 ? (size_t) n : 0;
                net_loop_run_once(&loop, false);
        }
        check_u64_eq(stream_pending(&d->s), 0);
        return total;
}

static void pieces_leave_in_order_copied_borrowed_file(void **state)
{
        enum { BORROWED = 300000, FILE_SIZE = 3000000 };
        struct side d;
        int peer = open_side(&d, KiB), file = memfd_create("file", MFD_CLOEXEC);
        char *borrowed = calloc(1, BORROWED), *content = calloc(1, FILE_SIZE);
        char *got = calloc(1, BORROWED + FILE_SIZE + 100);
        size_t n;

        memset(borrowed, 'b', BORROWED);
        memset(content, 'f', FILE_SIZE);
        check_i64_eq(write(file, content, FILE_SIZE), FILE_SIZE);
        stream_queue(&d.s, STR("head"));
        stream_queue_borrowed(&d.s, str_of(borrowed, BORROWED));
        n = drain_peer(&d, peer, got, BORROWED + FILE_SIZE + 100);
        check_u64_eq(n, 4 + BORROWED);
        check_true(memcmp(got, "headbbb", 7) == 0 && got[n - 1] == 'b');
        check_true(d.stalls > 0);

        stream_queue(&d.s, STR("HEAD"));
        stream_queue_file(&d.s, file, 0, FILE_SIZE);
        n = drain_peer(&d, peer, got, BORROWED + FILE_SIZE + 100);
        check_u64_eq(n, 4 + FILE_SIZE);
        check_true(memcmp(got, "HEADf", 5) == 0 && got[n - 1] == 'f');
        check_i64_eq(d.drains, 2);
        close_side(&d, peer);
        (void) fd_close(file);
        free(borrowed);
        free(content);
        free(got);
}

static void a_file_without_sendfile_is_copied(void **state)
{
        static const int errors[] = { EINVAL, ENOSYS, EOPNOTSUPP };

        for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
                sendfile_errno = errors[i];
                pieces_leave_in_order_copied_borrowed_file(state);
                sendfile_errno = 0;
        }
}

static void a_file_that_ends_early_fails_the_stream(void **state)
{
        struct side d;
        int peer = open_side(&d, KiB), file = memfd_create("short", MFD_CLOEXEC);

        check_i64_eq(write(file, "abc", 3), 3);
        stream_queue_file(&d.s, file, 0, 10);
        for (int i = 0; i < 10 && d.errors == 0; i++)
                net_loop_run_once(&loop, false);
        check_i64_eq(d.error, -EIO);
        (void) fd_close(file);
        close_side(&d, peer);
}

static void output_beyond_its_maximum_fails_the_stream(void **state)
{
        struct side d;
        int peer = open_side(&d, 8);

        stream_queue(&d.s, STR("1234567"));
        stream_queue(&d.s, STR("89"));
        net_loop_run_once(&loop, false);
        check_i64_eq(d.error, -ENOBUFS);
        close_side(&d, peer);
}

static void paused_reading_leaves_bytes_in_the_kernel(void **state)
{
        struct side d;
        int peer = open_side(&d, KiB);

        stream_pause_reading(&d.s);
        check_i64_eq(send(peer, "x", 1, 0), 1);
        net_loop_run_once(&loop, false);
        net_loop_run_once(&loop, false);
        check_u64_eq(d.in.n, 0);
        stream_resume_reading(&d.s);
        net_loop_run_once(&loop, false);
        check_u64_eq(d.in.n, 1);
        close_side(&d, peer);
}

static void paused_reading_hears_of_a_close_once(void **state)
{
        struct side d;
        int peer = open_side(&d, KiB);

        stream_pause_reading(&d.s);
        check_i64_eq(send(peer, "x", 1, 0), 1);
        net_loop_run_once(&loop, false);
        check_i64_eq(d.hangups, 0);
        check_i64_eq(shutdown(peer, SHUT_WR), 0);
        for (int i = 0; i < 5; i++)
                net_loop_run_once(&loop, false);
        check_i64_eq(d.hangups, 1);
        check_i64_eq(d.eofs, 0);
        stream_resume_reading(&d.s);
        for (int i = 0; i < 5; i++)
                net_loop_run_once(&loop, false);
        check_u64_eq(d.in.n, 1);
        check_i64_eq(d.eofs, 1);
        check_i64_eq(d.hangups, 1);
        close_side(&d, peer);
}

static void eof_is_reported_once_and_writing_continues(void **state)
{
        struct side d;
        int peer = open_side(&d, KiB);
        char got[4];

        check_i64_eq(shutdown(peer, SHUT_WR), 0);
        net_loop_run_once(&loop, false);
        net_loop_run_once(&loop, false);
        check_i64_eq(d.eofs, 1);
        stream_queue(&d.s, STR("bye"));
        stream_shutdown(&d.s);
        net_loop_run_once(&loop, false);
        check_i64_eq(recv(peer, got, sizeof(got), 0), 3);
        check_i64_eq(recv(peer, got, sizeof(got), 0), 0); /* our FIN */
        close_side(&d, peer);
}

static void a_peer_that_is_gone_is_an_error_not_a_signal(void **state)
{
        struct side d;
        int peer = open_side(&d, KiB);

        stream_pause_reading(&d.s);
        peer = fd_close(peer);
        stream_queue(&d.s, STR("anybody?"));
        for (int i = 0; i < 10 && d.errors == 0; i++)
                net_loop_run_once(&loop, false);
        check_i64_eq(d.error, -EPIPE);
        close_side(&d, peer);
}

static void closing_inside_a_callback_is_the_last_of_it(void **state)
{
        struct side d;
        int peer = open_side(&d, KiB);

        d.close_on_data = true;
        stream_queue(&d.s, STR("never"));
        check_i64_eq(send(peer, "x", 1, 0), 1);
        net_loop_run_once(&loop, false);
        net_loop_run_once(&loop, false);
        check_i64_eq(d.closes, 1);
        check_i64_eq(d.drains + d.errors, d.drains); /* no error reported after the close */
        buf_done(&d.in);
        (void) fd_close(peer);
}

/* --- connecting and listening --- */

struct accepting {
        struct net_listener l;
        int fd, closes;
};

static void on_accepted(struct net_listener *l, int fd, const struct sock_addr *peer)
{
        (void) peer;
        container_of(l, struct accepting, l)->fd = fd;
}

static void on_door_closed(struct net_listener *l)
{
        container_of(l, struct accepting, l)->closes++;
}

static const struct net_listener_ops accepting_ops = { on_accepted, on_door_closed };

static void check_keepalive(int fd)
{
        int on = 0;

        check_i64_eq(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, &(socklen_t){ sizeof(on) }), 0);
        check_i64_eq(on, 1);
}

static void output_queued_while_connecting_arrives(void **state)
{
        struct accepting accepting = { .fd = -EBADF };
        struct side d = { 0 };
        struct sock_addr a;
        char got[8] = { 0 };
        int fd, r, tries = 0;

        check_i64_eq(sock_addr_from_string(STR("127.0.0.1:0"), &a), 0);
        check_i64_eq(sock_listen(&a, &fd), 0);
        check_i64_eq(listener_open(&accepting.l, &loop, fd, &accepting_ops), 0);
        r = sock_connect(&accepting.l.addr, &fd);
        check_true(r == 0 || r == -EINPROGRESS);
        buf_init(&d.in, KiB);
        check_i64_eq(stream_open_connecting(&d.s, &loop, fd, KiB, &ops), 0);
        stream_queue(&d.s, STR("early"));
        while ((accepting.fd < 0 || d.drains == 0) && tries++ < 100)
                net_loop_run_once(&loop, false);
        check_true(accepting.fd >= 0);
        check_i64_eq(d.connects, 1);
        check_i64_eq(recv(accepting.fd, got, sizeof(got), 0), 5);
        check_z_eq(got, "early");
        check_keepalive(accepting.fd); /* a host that vanished is noticed, on both sides */
        check_keepalive(fd);

        listener_close(&accepting.l);
        close_side(&d, accepting.fd);
        check_i64_eq(accepting.closes, 1);
}

static void a_refused_connection_is_an_error(void **state)
{
        struct side d = { 0 };
        struct sock_addr a, real;
        int fd, r, tries = 0;

        /* A port that was ours a moment ago: no process listens there now. */
        check_i64_eq(sock_addr_from_string(STR("127.0.0.1:0"), &a), 0);
        check_i64_eq(sock_listen(&a, &fd), 0);
        check_i64_eq(sock_local_addr(fd, &real), 0);
        (void) fd_close(fd);
        r = sock_connect(&real, &fd);
        if (r == -ECONNREFUSED)
                return; /* reported at once: fine, too */
        check_i64_eq(r, -EINPROGRESS);
        buf_init(&d.in, KiB);
        check_i64_eq(stream_open_connecting(&d.s, &loop, fd, KiB, &ops), 0);
        while (d.errors == 0 && tries++ < 1000)
                net_loop_run_once(&loop, true);
        check_i64_eq(d.error, -ECONNREFUSED);
        check_i64_eq(d.connects, 0);
        close_side(&d, -EBADF);
}

#define LOOP_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                LOOP_TEST(bytes_go_both_ways_once_per_iteration),
                LOOP_TEST(pieces_leave_in_order_copied_borrowed_file),
                LOOP_TEST(a_file_without_sendfile_is_copied),
                LOOP_TEST(a_file_that_ends_early_fails_the_stream),
                LOOP_TEST(output_beyond_its_maximum_fails_the_stream),
                LOOP_TEST(paused_reading_leaves_bytes_in_the_kernel),
                LOOP_TEST(paused_reading_hears_of_a_close_once),
                LOOP_TEST(eof_is_reported_once_and_writing_continues),
                LOOP_TEST(a_peer_that_is_gone_is_an_error_not_a_signal),
                LOOP_TEST(closing_inside_a_callback_is_the_last_of_it),
                LOOP_TEST(output_queued_while_connecting_arrives),
                LOOP_TEST(a_refused_connection_is_an_error),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
