/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sd_notify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/un.h>
#include <time.h>

#include "base/base.h"
#include "os/fd.h"

#define NOTIFY_VAR "NOTIFY_SOCKET"
#define STATUS_MAX 256

/* "/run/systemd/notify" or "@name"; other families (vsock, for virtual machines) are not supported. */
void sd_notify_open(struct sd_notify *n)
{
        struct sockaddr_un *un = (void *) &n->_to.ss;
        const char *text = getenv(NOTIFY_VAR);
        size_t len = text ? strlen(text) : 0;

        n->_fd = -EBADF;
        if (len >= 2 && len < sizeof(un->sun_path) && (text[0] == '/' || text[0] == '@')) {
                /* A path ends in NUL; an abstract name has no terminator. */
                n->_to = (struct sock_addr){ .len = (socklen_t) (offsetof(struct sockaddr_un,
                                                                          sun_path)
                                                                 + len + (text[0] == '/')) };
                un->sun_family = AF_UNIX;
                memcpy(un->sun_path, text, len);
                if (text[0] == '@')
                        un->sun_path[0] = '\0';
                n->_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        }
        (void) unsetenv(NOTIFY_VAR);
}

bool sd_notify_is_abstract(const struct sd_notify *n)
{
        return n->_fd >= 0 && *((const struct sockaddr_un *) &n->_to.ss)->sun_path == '\0';
}

void sd_notify_close(struct sd_notify *n)
{
        n->_fd = fd_close(n->_fd);
}

static void send_state(struct sd_notify *n, const char *text)
{
        if (n->_fd >= 0)
                (void) sendto(n->_fd, text, strlen(text), MSG_NOSIGNAL,
                              (const struct sockaddr *) &n->_to.ss, n->_to.len);
}

void sd_notify_ready(struct sd_notify *n)
{
        send_state(n, "READY=1");
}

/* The service manager compares with CLOCK_MONOTONIC, which stops while the host is suspended; ours does not. */
void sd_notify_reloading(struct sd_notify *n)
{
        struct timespec now;
        char text[64];

        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        (void) snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
                        (long long) now.tv_sec * 1000000 + now.tv_nsec / 1000);
        send_state(n, text);
}

void sd_notify_stopping(struct sd_notify *n)
{
        send_state(n, "STOPPING=1");
}

void sd_notify_status(struct sd_notify *n, const char *fmt, ...)
{
        char text[sizeof("STATUS=") + STATUS_MAX];
        struct buf b;
        va_list ap;

        buf_init_fixed(&b, text, sizeof(text));
        buf_add_str(&b, STR("STATUS="));
        va_start(ap, fmt);
        buf_vaddf(&b, fmt, ap);
        va_end(ap);
        text[strcspn(text, "\n")] = '\0'; /* a second line would be another assignment */
        send_state(n, text);
}
