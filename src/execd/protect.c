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

struct secret *protect_token_from_env(void)
{
        char *value = getenv(TOKEN_VAR);
        struct secret *s = value && *value ? secret_new(str_from(value)) : NULL;

        /* unsetenv only removes the pointer; /proc/PID/environ shows the bytes. */
        if (value)
                wipe(value, strlen(value));
        (void) unsetenv(TOKEN_VAR);
        return s;
}

int protect_token_from_fd(int fd, struct secret **ret)
{
        char text[TOKEN_MAX + 1];
        size_t n = 0;
        ssize_t got;

        while ((got = read(fd, text + n, sizeof(text) - n)) != 0) {
                if (got < 0 && errno == EINTR)
                        continue;
                if (got < 0) {
                        int r = -errno;

                        wipe(text, sizeof(text));
                        (void) fd_close(fd);
                        return r;
                }
                n += (size_t) got;
        }
        (void) fd_close(fd);
        while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
                n--;
        *ret = n > 0 && n <= TOKEN_MAX ? secret_new(str_of(text, n)) : NULL;
        wipe(text, sizeof(text));
        return *ret ? 0 : -EINVAL;
}

/* --- memory and descriptors --- */

int protect_memory(void)
{
        /* A process that runs from a sealed copy is named after its descriptor. */
        (void) prctl(PR_SET_NAME, "hutch-execd");
        return prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : 0;
}

void protect_descriptors(void)
{
        /* Needs Linux 5.11. */
        if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
                return;
        for (int fd = 3; fd < 1024; fd++)
                (void) fcntl(fd, F_SETFD, FD_CLOEXEC);
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
