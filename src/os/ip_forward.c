/* SPDX-License-Identifier: Apache-2.0 */
#include "os/ip_forward.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/virtual_file.h"

#define CONF6 "/proc/sys/net/ipv6/conf"

static const char *path_of(int family)
{
        return family == AF_INET6 ? CONF6 "/all/forwarding" : "/proc/sys/net/ipv4/ip_forward";
}

static int put(const char *path, const char *value)
{
        scoped(fd_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

        if (fd < 0 || write(fd, value, strlen(value)) < 0)
                return -errno;
        return 0;
}

int ip_forward_is_on(int family)
{
        char text[16];
        ssize_t n = virtual_file_read(path_of(family), text, sizeof(text));

        if (n < 0)
                return (int) n;
        return n > 0 && text[0] != '0';
}

static void closedirp(DIR **d)
{
        if (*d)
                (void) closedir(*d);
}

/* A link may go away meanwhile. */
static int keep_listening_on(const char *link)
{
        char path[sizeof(CONF6) + NAME_MAX + sizeof("//accept_ra")];
        char text[16];
        ssize_t n;
        int r;

        (void) snprintf(path, sizeof(path), CONF6 "/%s/accept_ra", link);
        n = virtual_file_read(path, text, sizeof(text));
        if (n < 0)
                return n == -ENOENT ? 0 : (int) n;
        if (text[0] != '1')
                return 0;
        r = put(path, "2");
        return r == -ENOENT ? 0 : r;
}

static int keep_listening(void)
{
        scoped(closedirp) DIR *d = opendir(CONF6);
        const struct dirent *e;

        if (!d)
                return -errno;
        while ((e = readdir(d))) {
                int r = e->d_name[0] == '.' ? 0 : keep_listening_on(e->d_name);

                if (r < 0)
                        return r;
        }
        return 0;
}

int ip_forward_enable(int family)
{
        int r = ip_forward_is_on(family);

        if (r != 0)
                return r < 0 ? r : 0;
        r = family == AF_INET6 ? keep_listening() : 0;
        return r < 0 ? r : put(path_of(family), "1");
}

int ip_forward_disable(int family)
{
        int r = ip_forward_is_on(family);

        if (r <= 0)
                return r == -ENOENT ? 0 : r;
        return put(path_of(family), "0");
}
