/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/protect.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

#define TOKEN_MAX 4096
#define TOKEN_VAR "EXECD_ACCESS_TOKEN"
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#define SELF  "/proc/self/exe"
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* --- the access token --- */

struct secret *protect_token_from_env(void)
{
        char *value = getenv(TOKEN_VAR);
        struct secret *s = value && *value ? secret_new(str_from(value)) : NULL;

        /* unsetenv only forgets the pointer; /proc/PID/environ shows the bytes themselves. */
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
        /* A sealed copy has the name of its descriptor. */
        (void) prctl(PR_SET_NAME, "hutch-execd");
        return prctl(PR_SET_DUMPABLE, 0) < 0 ? -errno : 0;
}

void protect_descriptors(void)
{
        /* Since Linux 5.11; before that, one by one. */
        if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
                return;
        for (int fd = 3; fd < 1024; fd++)
                (void) fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* --- a binary that nobody can replace --- */

static bool is_sealed(int fd)
{
        int seals = fcntl(fd, F_GET_SEALS);

        return seals >= 0 && (seals & SEALS) == SEALS;
}

static int copy_whole(int from, int to)
{
        struct stat st;
        off_t pos = 0;

        if (fstat(from, &st) < 0)
                return -errno;
        while (pos < st.st_size) {
                ssize_t n = sendfile(to, from, &pos, (size_t) (st.st_size - pos));

                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
        }
        return 0;
}

/* Where files in memory are not for execution unless asked for (vm.memfd_noexec), we ask; kernels
 * before 6.3 don't know the question. */
static int open_memory(void)
{
        const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
        int fd = memfd_create("hutch-execd", flags | MFD_EXEC);

        if (fd < 0 && errno == EINVAL)
                fd = memfd_create("hutch-execd", flags);
        return fd < 0 ? -errno : fd;
}

int protect_seal(char **argv, char **envp)
{
        scoped(fd_closep) int self = open(SELF, O_RDONLY | O_CLOEXEC);
        scoped(fd_closep) int copy = -EBADF;
        int r;

        if (self < 0)
                return -errno;
        if (is_sealed(self))
                return 0;
        copy = open_memory();
        if (copy < 0)
                return copy;
        r = copy_whole(self, copy);
        if (r < 0)
                return r;
        if (fchmod(copy, 0555) < 0 || fcntl(copy, F_ADD_SEALS, SEALS) < 0)
                return -errno;
        (void) fexecve(copy, argv, envp);
        return -errno;
}
