/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The floor of streamed output: what a program writes into a pipe is copied by one process into a
 * unix socket and read from there by another. Nothing looks at the bytes.
 *
 *         pipe_floor PROGRAM [ARGUMENT]...
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/latency.h"

#define PIECE 65536

static char piece[PIECE];

static __attribute__((noreturn)) void die(const char *what)
{
        perror(what);
        _exit(1);
}

static void write_all(int fd, const char *p, size_t n)
{
        while (n > 0) {
                ssize_t r = write(fd, p, n);

                if (r < 0)
                        die("pipe_floor: write");
                p += r;
                n -= (size_t) r;
        }
}

static __attribute__((noreturn)) void run_program(char **argv, int out)
{
        if (dup2(out, STDOUT_FILENO) >= 0)
                (void) execvp(argv[0], argv);
        die(argv[0]);
}

static __attribute__((noreturn)) void relay(char **argv, int out)
{
        ssize_t n;
        int fds[2];
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0 || (pid = fork()) < 0)
                die("pipe_floor");
        if (pid == 0)
                run_program(argv, fds[1]);
        (void) close(fds[1]);
        while ((n = read(fds[0], piece, sizeof(piece))) > 0)
                write_all(out, piece, (size_t) n);
        (void) waitpid(pid, NULL, 0);
        _exit(0);
}

int main(int argc, char **argv)
{
        uint64_t begin = latency_now(), bytes = 0;
        ssize_t n;
        int fds[2];
        pid_t pid;

        if (argc < 2) {
                fprintf(stderr, "usage: pipe_floor PROGRAM [ARGUMENT]...\n");
                return 2;
        }
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 || (pid = fork()) < 0)
                die("pipe_floor");
        if (pid == 0)
                relay(argv + 1, fds[1]);
        (void) close(fds[1]);
        while ((n = read(fds[0], piece, sizeof(piece))) > 0)
                bytes += (uint64_t) n;
        (void) waitpid(pid, NULL, 0);
        printf("{\"seconds\": %.6f, \"bytes\": %llu}\n", (double) (latency_now() - begin) / 1e9,
               (unsigned long long) bytes);
        return 0;
}
