/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/tree.h"

#define MESSAGE STR("a message")

static void open_pair(int fds[static 2])
{
        check_i64_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
}

static void close_pair(const int fds[static 2])
{
        (void) close(fds[0]);
        (void) close(fds[1]);
}

static const struct {
        const char *what;
        size_t sent, fds_max, size; /* descriptors; room for them, and for the message */
        size_t n_fds;
        bool cut;
} cases[] = {
        { "none", 0, 4, 64, 0, false },
        { "none, and no room", 0, 0, 64, 0, false },
        { "as many as there is room for", 4, 4, 64, 4, false },
        { "fewer", 1, 4, 64, 1, false },
        { "more, where padding would have room", 2, 1, 64, 1, true },
        { "many more", 9, 3, 64, 3, true },
        { "no room at all", 2, 0, 64, 0, true },
        { "the message is longer", 1, 4, 3, 1, true },
        { "as many as the kernel takes", FD_PASS_MAX, FD_PASS_MAX, 64, FD_PASS_MAX, false },
};

static void what_comes_is_what_was_sent(void **state)
{
        int pair[2], out[FD_PASS_MAX], in[FD_PASS_MAX];
        char room[64];

        (void) state;
        open_pair(pair);
        for (size_t i = 0; i < ARRAY_SIZE(out); i++)
                out[i] = pair[1];
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct fd_pass_msg m = {
                        .p = room, .size = cases[i].size, .fds = in, .fds_max = cases[i].fds_max
                };
                unsigned before = tree_open_fds();

                check_case(cases[i].what);
                check_i64_eq(fd_pass_send(pair[1], MESSAGE, out, cases[i].sent, 0), MESSAGE.n);
                check_i64_eq(fd_pass_receive(pair[0], &m, 0), MIN_OF(MESSAGE.n, cases[i].size));
                check_u64_eq(m.n_fds, cases[i].n_fds);
                check_i64_eq(m.cut, cases[i].cut);
                check_u64_eq(tree_open_fds() - before, m.n_fds);
                for (size_t j = 0; j < m.n_fds; j++) {
                        check_i64_eq(fcntl(in[j], F_GETFD), FD_CLOEXEC);
                        (void) close(in[j]);
                }
        }
        close_pair(pair);
}

static void nothing_and_the_end(void **state)
{
        int pair[2], fd;
        char room[64];
        struct fd_pass_msg m = { .p = room, .size = sizeof(room), .fds = &fd, .fds_max = 1 };

        (void) state;
        open_pair(pair);
        check_i64_eq(fd_pass_receive(pair[0], &m, MSG_DONTWAIT), -EAGAIN);
        (void) close(pair[1]);
        check_i64_eq(fd_pass_receive(pair[0], &m, MSG_DONTWAIT), 0);
        check_u64_eq(m.n_fds, 0);
        check_i64_eq(fd_pass_send(pair[0], MESSAGE, NULL, 0, 0), -EPIPE); /* and we live */
        (void) close(pair[0]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_comes_is_what_was_sent),
                cmocka_unit_test(nothing_and_the_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
