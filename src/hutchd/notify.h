/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HUTCHD_NOTIFY_H
#define HUTCH_HUTCHD_NOTIFY_H

/*
 * Tells the service manager how we are: sd_notify(3)'s protocol, a datagram to the socket that
 * NOTIFY_SOCKET names. The protocol is small and promised to be stable; a library for it is not
 * needed. Without a manager nothing happens, and a manager that does not listen is no reason to
 * wait or to fail.
 */

#include "base/clock.h"
#include "base/compiler.h"
#include "os/socket.h"

struct notify {
        int _fd; /* -EBADF: nobody listens */
        struct sock_addr _to;
};

/* Takes NOTIFY_SOCKET out of the environment, so that no child speaks for us. A value that is no
 * address of a socket is as good as none. */
void notify_open(struct notify *n);
void notify_close(struct notify *n);

/* We serve. Also the end of a reload. */
void notify_ready(struct notify *n);

/* A reload has begun. */
void notify_reloading(struct notify *n);

void notify_stopping(struct notify *n);

/* One line for people, shown by "systemctl status". */
void notify_status(struct notify *n, const char *fmt, ...) printf_like(2, 3);

#endif
