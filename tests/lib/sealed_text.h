/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_SEALED_TEXT_H
#define HUTCH_TESTS_LIB_SEALED_TEXT_H

/* Bytes in a sealed memfd, as hutchd sends records. */

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/fd.h"
#include "os/memfd.h"
#include "tests/lib/check.h"

static inline int sealed_text(struct str s)
{
        scoped(fd_closep) int plain = memfd_create("text", MFD_CLOEXEC);
        int fd = -EBADF;

        check_true(plain >= 0);
        check_i64_eq(write(plain, s.p, s.n), s.n);
        check_i64_eq(memfd_sealed_copy(plain, "text", &fd), 0);
        return fd;
}

#endif
