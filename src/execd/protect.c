/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/protect.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/memfd.h"

#define TOKEN_MAX 4096
#define TOKEN_VAR "EXECD_ACCESS_TOKEN"
#define SELF      "/proc/self/exe"

/* --- the access token --- */

int protect_take_token(int fd, struct secret **ret)
{
        char *value = getenv(TOKEN_VAR), text[TOKEN_MAX + 1];
        ssize_t got = 1;
        size_t n = 0;
        int r = 0;

        *ret = fd < 0 && value && *value ? secret_new(str_from(value)) : NULL;
        /* unsetenv only removes the pointer; /proc/PID/environ shows the bytes. */
        if (value)
                wipe(value, strlen(value));
        (void) unsetenv(TOKEN_VAR);
        if (fd < 0)
                return 0;
        while (r == 0 && got != 0) {
                got = read(fd, text + n, sizeof(text) - n);
                if (got > 0)
                        n += (size_t) got;
                else if (got < 0 && errno != EINTR)
                        r = -errno;
        }
        (void) fd_close(fd);
        while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
                n--;
        if (r == 0 && n > 0 && n <= TOKEN_MAX)
                *ret = secret_new(str_of(text, n));
        wipe(text, sizeof(text));
        return r == 0 && !*ret ? -EINVAL : r;
}

/* --- memory and descriptors --- */

int protect_process(void)
{
        /* A process that runs from a sealed copy is named after its descriptor. */
        (void) prctl(PR_SET_NAME, "hutch-execd");
        if (prctl(PR_SET_DUMPABLE, 0) < 0)
                return -errno;
        /* Needs Linux 5.11. */
        if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
                return 0;
        for (int fd = 3; fd < 1024; fd++)
                (void) fcntl(fd, F_SETFD, FD_CLOEXEC);
        return 0;
}

/* --- a program file that cannot be replaced --- */

int protect_seal(char **argv, char **envp)
{
        scoped(fd_closep) int self = open(SELF, O_RDONLY | O_CLOEXEC);
        scoped(fd_closep) int copy = -EBADF;
        int r;

        if (self < 0)
                return -errno;
        if (memfd_is_sealed(self))
                return 0;
        r = memfd_sealed_copy(self, "hutch-execd", &copy);
        if (r < 0)
                return r;
        (void) fexecve(copy, argv, envp);
        return -errno;
}
