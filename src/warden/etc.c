/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/etc.h"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/in_root.h"

#define TEXT_MAX KiB

#define HOSTNAME "hostname"
#define HOSTS    "hosts"
#define RESOLV   "resolv.conf"

static const char *const names[] = { HOSTNAME, HOSTS, RESOLV };

/* --- making --- */

/* With the owner as filesystem uid instead of a chown for each: half the system calls. Returning to root
 * restores the capabilities that this takes away. */
int etc_make(int upper, uid_t owner)
{
        scoped(fd_closep) int dir = -EBADF;
        int r;

        (void) setfsgid(owner);
        (void) setfsuid(owner);
        r = mkdirat(upper, "etc", 0755) < 0 ? -errno : 0;
        if (r == 0) {
                dir = openat(upper, "etc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = dir < 0 ? -errno : 0;
        }
        for (size_t i = 0; i < ARRAY_SIZE(names) && r == 0; i++)
                if (mknodat(dir, names[i], S_IFREG | 0644, 0) < 0)
                        r = -errno;
        (void) setfsuid(0);
        (void) setfsgid(0);
        return r;
}

/* --- writing --- */

static int put(int dir, const char *name, const char *text)
{
        const struct in_root_how how = { .flags = O_WRONLY | O_NOFOLLOW, .no_symlinks = true };
        scoped(fd_closep) int fd = -EBADF;
        const size_t n = strlen(text);
        ssize_t written;
        int r = n > 0 ? in_root_open(dir, name, &how, &fd) : 0;

        if (r < 0 || n == 0)
                return r;
        written = write(fd, text, n);
        return written < 0 ? -errno : (size_t) written < n ? -ENOSPC : 0;
}

int etc_write(int root, const struct etc *e)
{
        const struct in_root_how how = { .flags = O_PATH | O_DIRECTORY, .no_symlinks = true };
        scoped(fd_closep) int dir = -EBADF;
        char text[TEXT_MAX];
        int r = in_root_open(root, "etc", &how, &dir);

        (void) snprintf(text, sizeof(text), "%s\n", e->hostname);
        if (r == 0)
                r = put(dir, HOSTNAME, text);
        (void) snprintf(text, sizeof(text),
                        "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n"
                        "127.0.1.1 %s\n",
                        e->hostname);
        if (r == 0)
                r = put(dir, HOSTS, text);
        return r == 0 ? put(dir, RESOLV, e->resolv) : r;
}
