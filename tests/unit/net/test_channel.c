/* SPDX-License-Identifier: Apache-2.0 */
#include "net/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/lib/check.h"
#include "tests/lib/wire.h"

static struct net_loop loop;

struct side {
        struct channel channel;
        struct buf log; /* "length:first byte " of each frame, with a + if a descriptor came */
        unsigned frames;
        bool ended, closed;
        int end;
        bool take;
};

static void on_frame(struct channel *c, struct str text)
{
        struct side *s = container_of(c, struct side, channel);
        /* As messages do: those that have one say so. */
        bool has = text.p[0] == 'x' || text.p[0] == 'c';
        int fd = s->take && has ? channel_take_fd(c) : -EBADF;

        s->frames++;
        buf_addf(&s->log, "%zu:%c%s ", text.n, text.p[0], fd >= 0 ? "+" : "");
        (void) fd_close(fd);
}

static void on_ended(struct channel *c, int r)
{
        struct side *s = container_of(c, struct side, channel);

        s->ended = true;
        s->end = r;
        channel_close(c);
}

static void on_closed(struct channel *c)
{
        container_of(c, struct side, channel)->closed = true;
}

static const struct channel_ops ops = { .frame = on_frame, .ended = on_ended, .closed = on_closed };

static void side_open(struct side *s, int fd, bool may_receive_fds)
{
        *s = (struct side){ .take = may_receive_fds };
        buf_init(&s->log, MiB);
        s->channel.frame_max = MiB;
        s->channel.may_receive_fds = may_receive_fds;
        check_i64_eq(channel_open(&s->channel, &loop, fd, &ops), 0);
}

static void side_close(struct side *s)
{
        channel_close(&s->channel);
        wire_until(&loop, s->closed);
        buf_done(&s->log);
}

static void pair(int fds[static 2])
{
        check_i64_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
}

static void frames_of_all_sizes_arrive_in_order(void **state)
{
        scoped(freep) char *text = xcalloc(1, MiB);
        struct side a, b;
        int fds[2];

        pair(fds);
        side_open(&a, fds[0], false);
        side_open(&b, fds[1], true);
        memset(text, 'x', MiB);
        channel_send(&a.channel, STR("a"), -EBADF);
        channel_send(&a.channel, str_of(text, MiB), open("/dev/null", O_RDONLY | O_CLOEXEC));
        channel_send(&a.channel, STR("bc"), -EBADF);
        channel_send(&a.channel, STR("cde"), open("/dev/null", O_RDONLY | O_CLOEXEC));
        channel_send(&b.channel, STR("back"), -EBADF);
        wire_until(&loop, b.frames == 4 && a.frames == 1);
        check_str_eq(buf_str(&b.log), "1:a 1048576:x+ 2:b 3:c+ ");
        check_str_eq(buf_str(&a.log), "4:b ");
        side_close(&a);
        wire_until(&loop, b.ended);
        check_i64_eq(b.end, 0);
        side_close(&b);
}

static void what_is_no_frame_ends_it(void **state)
{
        static const struct {
                const char *name;
                struct str bytes;
        } cases[] = {
                { "too long", STR("\x01\x00\x10\x00") },
                { "far too long", STR("\xff\xff\xff\xff") },
                { "empty", STR("\x00\x00\x00\x00") },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct side s;
                int fds[2];

                check_case(cases[i].name);
                pair(fds);
                side_open(&s, fds[0], true);
                check_i64_eq(write(fds[1], cases[i].bytes.p, cases[i].bytes.n), 4);
                wire_until(&loop, s.ended);
                check_i64_eq(s.end, -EPROTO);
                side_close(&s);
                (void) fd_close(fds[1]);
        }
}

static void a_descriptor_that_nobody_wants_is_closed_and_ends_it(void **state)
{
        struct side a, b;
        int fds[2], pipe_ends[2];
        char c;

        pair(fds);
        check_i64_eq(pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK), 0);
        side_open(&a, fds[0], false);
        side_open(&b, fds[1], false);
        channel_send(&a.channel, STR("a"), pipe_ends[1]);
        wire_until(&loop, b.ended);
        check_i64_eq(b.end, -EPROTO);
        side_close(&b);
        side_close(&a);
        check_i64_eq(read(pipe_ends[0], &c, 1), 0); /* no writer is left */
        (void) fd_close(pipe_ends[0]);
}

static void a_side_that_goes_is_an_end_and_no_error(void **state)
{
        struct side s;
        int fds[2];

        pair(fds);
        side_open(&s, fds[0], true);
        (void) fd_close(fds[1]);
        channel_send(&s.channel, STR("into the void"), -EBADF);
        wire_until(&loop, s.ended);
        check_i64_eq(s.end, 0);
        side_close(&s);
}

static int set_up(void **state)
{
        return net_loop_init(&loop, &clock_system);
}

static int tear_down(void **state)
{
        net_loop_done(&loop);
        return 0;
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        static const struct CMUnitTest tests[] = {
                T(frames_of_all_sizes_arrive_in_order),
                T(what_is_no_frame_ends_it),
                T(a_descriptor_that_nobody_wants_is_closed_and_ends_it),
                T(a_side_that_goes_is_an_end_and_no_error),
        };

        return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
