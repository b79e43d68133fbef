/* SPDX-License-Identifier: Apache-2.0 */
#include "os/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif
#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

int memfd_sealed_copy(int from, const char *name, int *ret_fd)
{
        const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
        scoped(fd_closep) int copy = memfd_create(name, flags | MFD_EXEC);
        struct stat st;
        off_t pos = 0;

        /* vm.memfd_noexec makes MFD_EXEC necessary; kernels before 6.3 do not know it. */
        if (copy < 0 && errno == EINVAL)
                copy = memfd_create(name, flags);
        if (copy < 0 || fstat(from, &st) < 0)
                return -errno;
        while (pos < st.st_size) {
                ssize_t n = sendfile(copy, from, &pos, (size_t) (st.st_size - pos));

                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
        }
        if (fchmod(copy, 0555) < 0 || fcntl(copy, F_ADD_SEALS, SEALS) < 0)
                return -errno;
        *ret_fd = TAKE_FD(copy);
        return 0;
}

int memfd_sealed_bytes(struct str bytes, const char *name, int *ret_fd)
{
        scoped(fd_closep) int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd < 0)
                return -errno;
        while (bytes.n > 0) {
                ssize_t n = write(fd, bytes.p, bytes.n);

                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                bytes = str_skip(bytes, (size_t) n);
        }
        if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
                return -errno;
        *ret_fd = TAKE_FD(fd);
        return 0;
}

bool memfd_is_sealed(int fd)
{
        int seals = fcntl(fd, F_GET_SEALS);

        return seals >= 0 && (seals & SEALS) == SEALS;
}
