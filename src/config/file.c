/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "config/table.h"
#include "os/fd.h"
#include "os/file.h"

#define PORTION    (16 * KiB)
#define SECRET_MAX (64 * 1024)

int config_file_read(const char *path, size_t max, mode_t forbidden, struct buf *ret,
                     mode_t *ret_mode, struct err *e)
{
        scoped(fd_closep) int fd = -EBADF;
        struct stat st;
        int r = file_open_read(path, &st, &fd);
        ssize_t n = 1;

        buf_init(ret, max + PORTION); /* a reservation is larger than what it brings */
        buf_mark_secret(ret);
        if (r == 0 && st.st_size > (off_t) max)
                r = -EFBIG;
        while (r == 0 && n != 0) {
                char *p = buf_reserve(ret, PORTION);

                n = p ? read(fd, p, PORTION) : -1;
                if (n > 0)
                        buf_advance(ret, (size_t) n);
                else if (!p)
                        r = -EFBIG;
                else if (n < 0 && errno != EINTR)
                        r = -errno;
        }
        if (r < 0)
                return err_errno(e, r, "read %s", path);
        if (st.st_mode & forbidden)
                return err_set(e, ERR_FORBIDDEN, "everyone may %s %s; chmod o-rwx it",
                               st.st_mode & forbidden & S_IWOTH ? "write" : "read", path);
        if (ret_mode)
                *ret_mode = st.st_mode;
        return 0;
}

int config_secret_read(const char *name, const char *path, struct secret **ret, struct err *e)
{
        scoped(buf_done) struct buf b;
        struct str text;
        int r = config_file_read(path, SECRET_MAX, S_IRWXO, &b, NULL, e);

        if (r < 0)
                return err_wrap(e, "%s", name);
        text = buf_str(&b);
        while (text.n > 0 && (text.p[text.n - 1] == '\n' || text.p[text.n - 1] == '\r'))
                text.n--;
        if (text.n == 0 || memchr(text.p, '\0', text.n))
                return err_set(e, ERR_INVALID, "%s: %s: expected one line of 1 to %d bytes", name,
                               path, SECRET_MAX);
        *ret = secret_new(text);
        return 0;
}
