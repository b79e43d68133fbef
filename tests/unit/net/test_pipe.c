/* SPDX-License-Identifier: Apache-2.0 */
#include "net/pipe.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/lib/check.h"

struct world {
        struct net_loop loop;
        struct net_pipe pipe;
        int writer;
        struct buf got;
        int ended, closed;
};

static void data(struct net_pipe *p, char *bytes, size_t n)
{
        buf_add(&container_of(p, struct world, pipe)->got, bytes, n);
}

static void ended(struct net_pipe *p, int r)
{
        check_i64_eq(r, 0);
        container_of(p, struct world, pipe)->ended++;
}

static void closed(struct net_pipe *p)
{
        container_of(p, struct world, pipe)->closed++;
}

static const struct net_pipe_ops ops = { .data = data, .ended = ended, .closed = closed };

static void open_world(struct world *w)
{
        int fds[2];

        *w = (struct world){ 0 };
        buf_init(&w->got, MiB);
        check_i64_eq(net_loop_init(&w->loop, &clock_system), 0);
        check_i64_eq(pipe2(fds, O_CLOEXEC), 0);
        w->writer = fds[1];
        check_i64_eq(net_pipe_open(&w->pipe, &w->loop, fds[0], &ops), 0);
}

static void close_world(struct world *w)
{
        net_pipe_close(&w->pipe);
        net_pipe_close(&w->pipe); /* twice is fine */
        check_i64_eq(w->closed, 0);
        net_loop_run_once(&w->loop, false);
        check_i64_eq(w->closed, 1);
        w->writer = fd_close(w->writer);
        buf_done(&w->got);
        net_loop_done(&w->loop);
}

static void test_data_and_end(void **state)
{
        struct world w;

        open_world(&w);
        check_i64_eq(write(w.writer, "abc", 3), 3);
        net_loop_run_once(&w.loop, false);
        check_i64_eq(w.got.n, 0); /* starts paused */
        net_pipe_resume(&w.pipe);
        net_loop_run_once(&w.loop, true);
        check_str_eq(buf_str(&w.got), "abc");
        net_pipe_pause(&w.pipe);
        check_i64_eq(write(w.writer, "def", 3), 3);
        net_loop_run_once(&w.loop, false);
        check_str_eq(buf_str(&w.got), "abc");
        check_u64_eq(net_pipe_pending(&w.pipe), 3);
        check_false(net_pipe_read_now(&w.pipe));
        net_pipe_resume(&w.pipe);
        check_true(net_pipe_read_now(&w.pipe));
        check_false(net_pipe_read_now(&w.pipe));
        check_str_eq(buf_str(&w.got), "abcdef");
        w.writer = fd_close(w.writer);
        net_loop_run_once(&w.loop, true);
        check_i64_eq(w.ended, 1);
        check_u64_eq(net_pipe_pending(&w.pipe), 0);
        net_loop_run_once(&w.loop, false);
        check_i64_eq(w.ended, 1);
        close_world(&w);
}

static void test_a_full_pipe_waits_while_paused(void **state)
{
        static char block[4096];
        struct world w;
        ssize_t n;
        size_t sent = 0;

        open_world(&w);
        check_i64_eq(fcntl(w.writer, F_SETFL, O_NONBLOCK), 0);
        while ((n = write(w.writer, block, sizeof(block))) > 0)
                sent += (size_t) n;
        check_u64_eq(net_pipe_pending(&w.pipe), sent);
        net_pipe_resume(&w.pipe);
        while (w.got.n < sent)
                net_loop_run_once(&w.loop, true);
        check_u64_eq(w.got.n, sent);
        close_world(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_data_and_end),
                cmocka_unit_test(test_a_full_pipe_waits_while_paused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
