/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/socket.h"
#include "tests/direct/direct_impl.h"

static const char *z_of(struct str id, char ret[static SANDBOX_ID_MAX + 1])
{
        (void) snprintf(ret, SANDBOX_ID_MAX + 1, "%.*s", STR_ARG(id));
        return ret;
}

int dir_open(const struct direct *d, struct str id, int *ret)
{
        char name[SANDBOX_ID_MAX + 1];
        int fd = openat(d->dir, z_of(id, name), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        *ret = fd;
        return 0;
}

/* --- create_op --- */

/* On disk when it returns, unless it is empty: then its name is all there is to it. */
static int write_file(int dir, const char *name, struct str text)
{
        bool empty = text.n == 0;
        scoped(fd_closep) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        if (fd < 0)
                return -errno;
        while (text.n > 0) {
                ssize_t n = write(fd, text.p, text.n);

                if (n < 0)
                        return -errno;
                text = str_skip(text, (size_t) n);
        }
        return !empty && fsync(fd) < 0 ? -errno : 0;
}

static int fill(int dir, const struct sandbox *record)
{
        scoped(buf_done) struct buf text;
        int r;

        buf_init(&text, RECORD_TEXT_MAX);
        sandbox_encode(&text, record);
        if (buf_failed(&text))
                return -ENOMEM;
        r = write_file(dir, "record.json", buf_str(&text));
        if (r == 0)
                r = write_file(dir, "lock", STR(""));
        if (r == 0 && (mkdirat(dir, "work", 0700) < 0 || mkdirat(dir, "state", 0700) < 0))
                r = -errno;
        return r == 0 && fsync(dir) < 0 ? -errno : r;
}

int dir_make(struct direct *d, const struct sandbox *record, struct err *e)
{
        scoped(fd_closep) int dir = -EBADF;
        char id[SANDBOX_ID_MAX + 1], random[ID_HEX_LEN + 1], temp[sizeof("new-") + ID_HEX_LEN];
        const char *name = temp; /* that it has now */
        int r;

        ids_hex(&d->ids, random);
        (void) snprintf(temp, sizeof(temp), "new-%s", random);
        if (faccessat(d->dir, z_of(record->id, id), F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return err_set(e, ERR_CONFLICT, "there is such a sandbox already");
        if (mkdirat(d->dir, temp, 0700) < 0)
                return err_errno(e, -errno, "make the dir of the sandbox");
        dir = openat(d->dir, temp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = dir < 0 ? -errno : fill(dir, record);
        if (r == 0)
                r = renameat(d->dir, temp, d->dir, id) < 0 ? -errno : 0;
        if (r == 0)
                name = id;
        if (r == 0 && fsync(d->dir) < 0)
                r = -errno;
        if (r < 0) {
                removal_start(d, name, NULL, NULL);
                return err_errno(e, r, "fill the dir of the sandbox");
        }
        return 0;
}

/* --- looking --- */

int dir_read(const struct direct *d, struct str id, const char *name, struct buf *b)
{
        scoped(fd_closep) int dir = -EBADF, fd = -EBADF;
        int r = dir_open(d, id, &dir);
        ssize_t n;

        if (r < 0)
                return r;
        fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        do {
                char *p = buf_reserve(b, MIN_OF(buf_room(b), 64 * KiB));

                n = p && buf_room(b) > 0 ? read(fd, p, MIN_OF(buf_room(b), 64 * KiB)) : -1;
                if (n < 0)
                        return buf_room(b) == 0 || !p ? -EFBIG : -errno;
                buf_advance(b, (size_t) n);
        } while (n > 0);
        return 0;
}

int dir_connect(const struct direct *d, struct str id, int *ret)
{
        scoped(fd_closep) int dir = -EBADF;
        struct sock_addr addr;
        char path[64];
        int r = dir_open(d, id, &dir);

        if (r < 0)
                return r;
        /* The path of a socket has 108 bytes, that of a directory may have 4,096. */
        (void) snprintf(path, sizeof(path), "unix:/proc/self/fd/%d/sock", dir);
        r = sock_addr_from_string(str_from(path), &addr);
        return r < 0 ? r : sock_connect(&addr, ret);
}

pid_t dir_agent(const struct direct *d, struct str id)
{
        scoped(buf_done) struct buf text;
        uint64_t pid = 0;

        buf_init(&text, 64);
        if (dir_read(d, id, "agent", &text) < 0
            || parse_u64_max(str_of(buf_str(&text).p, text.n ? text.n - 1 : 0), INT32_MAX, &pid)
                       < 0)
                return 0;
        return (pid_t) pid;
}

struct driver_health dir_health(const struct direct *d, struct str id, char message[static 128])
{
        scoped(buf_done) struct buf text;
        struct driver_health h = { .status = RUNTIME_DEAD, .reason = "LOST" };
        struct str words;

        buf_init(&text, 64);
        if (dir_read(d, id, "exit", &text) < 0) {
                (void) snprintf(message, 128, "its supervisor has ended without a note");
        } else {
                words = str_of(buf_str(&text).p, text.n ? text.n - 1 : 0);
                if (str_eq(words, STR("exited 0")))
                        h.status = RUNTIME_ENDED;
                if (str_starts_with(words, STR("exited")))
                        h.reason = "EXITED";
                else if (str_starts_with(words, STR("signaled")))
                        h.reason = "SIGNALED";
                (void) snprintf(message, 128, "the agent has ended: %.*s", STR_ARG(words));
        }
        h.message = str_from(message);
        return h;
}
