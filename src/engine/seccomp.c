/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/seccomp.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "model/limits.h"
#include "os/fd.h"

static char option[256 * KiB];

/* Aside first: an engine that starts a container now reads the old one or the new one. */
static int write_file(const char *path)
{
        struct str text = str_from(engine_seccomp_profile);
        char temp[PATH_MAX_TEXT + 8];
        scoped(fd_closep) int fd = -EBADF;

        (void) snprintf(temp, sizeof(temp), "%s.new", path);
        fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0)
                return -errno;
        if (write(fd, text.p, text.n) != (ssize_t) text.n)
                return -EIO;
        return rename(temp, path) < 0 ? -errno : 0;
}

int engine_seccomp_option(enum engine_kind kind, const char *folder, struct str *ret, struct err *e)
{
        char path[PATH_MAX_TEXT];
        int n, r;

        if (kind == ENGINE_DOCKER) {
                n = snprintf(option, sizeof(option), "seccomp=%s", engine_seccomp_profile);
        } else {
                (void) snprintf(path, sizeof(path), "%s/seccomp.json", folder);
                r = write_file(path);
                if (r < 0)
                        return err_errno(e, r, "write %s", path);
                n = snprintf(option, sizeof(option), "seccomp=%s", path);
        }
        if (n >= (int) sizeof(option))
                return err_set(e, ERR_INTERNAL, "the filter's profile is too long");
        *ret = str_from(option);
        return 0;
}
