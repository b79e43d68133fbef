/* SPDX-License-Identifier: Apache-2.0 */
#include "os/ip_forward.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>

#include "base/base.h"
#include "os/virtual_file.h"
#include "os/walk.h"

#define CONF6 "/proc/sys/net/ipv6/conf"

static const char *path_of(int family)
{
        return family == AF_INET6 ? CONF6 "/all/forwarding" : "/proc/sys/net/ipv4/ip_forward";
}

int ip_forward_is_on(int family)
{
        char text[16];
        ssize_t n = virtual_file_read(path_of(family), text, sizeof(text));

        if (n < 0)
                return (int) n;
        return n > 0 && text[0] != '0';
}

/* The value 2 accepts router advertisements although we forward. A link may vanish meanwhile. */
static int keep_accepting(void *data, const char *link)
{
        char path[sizeof(CONF6) + NAME_MAX + sizeof("//accept_ra")];
        char text[16];
        ssize_t n;
        int r;

        (void) data;
        (void) snprintf(path, sizeof(path), CONF6 "/%s/accept_ra", link);
        n = virtual_file_read(path, text, sizeof(text));
        if (n < 0)
                return n == -ENOENT ? 0 : (int) n;
        if (text[0] != '1')
                return 0;
        r = virtual_file_write_at(AT_FDCWD, path, "2");
        return r == -ENOENT ? 0 : r;
}

int ip_forward_enable(int family)
{
        int r = ip_forward_is_on(family);

        if (r != 0)
                return r < 0 ? r : 0;
        r = family == AF_INET6 ? walk_names(AT_FDCWD, CONF6, keep_accepting, NULL) : 0;
        return r < 0 ? r : virtual_file_write_at(AT_FDCWD, path_of(family), "1");
}

int ip_forward_disable(int family)
{
        int r = ip_forward_is_on(family);

        if (r <= 0)
                return r == -ENOENT ? 0 : r;
        return virtual_file_write_at(AT_FDCWD, path_of(family), "0");
}
