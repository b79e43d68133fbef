/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/notify.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"

static void tell(const char *text)
{
        const char *path = getenv("NOTIFY_SOCKET");
        struct sockaddr_un to = { .sun_family = AF_UNIX };
        size_t n = path ? strlen(path) : 0;
        int fd;

        if (n < 2 || n >= sizeof(to.sun_path) || (path[0] != '/' && path[0] != '@'))
                return;
        memcpy(to.sun_path, path, n);
        if (path[0] == '@')
                to.sun_path[0] = '\0';
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return;
        (void) sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *) &to,
                      (socklen_t) (offsetof(struct sockaddr_un, sun_path) + n + (path[0] == '/')));
        (void) close(fd);
}

void notify_ready(void)
{
        tell("READY=1");
}

void notify_stopping(void)
{
        tell("STOPPING=1");
}
