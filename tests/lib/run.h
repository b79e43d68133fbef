/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_RUN_H
#define HUTCH_TESTS_LIB_RUN_H

/* Another program with some bytes as its input, and its output. */

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/lib/check.h"

static inline int run_memfd(struct str content)
{
        int fd = memfd_create("run", MFD_CLOEXEC);

        check_true(fd >= 0);
        if (content.n > 0)
                check_i64_eq(write(fd, content.p, content.n), content.n);
        check_i64_eq(lseek(fd, 0, SEEK_SET), 0);
        return fd;
}

/* The exit status; 127 if there is no such program. The output is appended. */
static inline int run_program(const char *const *argv, struct str input, struct buf *output)
{
        scoped(fd_closep) int in = run_memfd(input);
        scoped(fd_closep) int out = run_memfd(STR(""));
        char piece[4096];
        ssize_t n;
        int status;
        pid_t pid = fork();

        check_true(pid >= 0);
        if (pid == 0) {
                (void) dup2(in, STDIN_FILENO);
                (void) dup2(out, STDOUT_FILENO);
                (void) execvp(argv[0], (char *const *) (uintptr_t) argv);
                _exit(127);
        }
        check_i64_eq(waitpid(pid, &status, 0), pid);
        check_i64_eq(lseek(out, 0, SEEK_SET), 0);
        while ((n = read(out, piece, sizeof(piece))) > 0)
                buf_add(output, piece, (size_t) n);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
