/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_SD_NOTIFY_H
#define HUTCH_OS_SD_NOTIFY_H

/*
 * Reports the state of a daemon to the service manager: the protocol of sd_notify(3), a datagram to the socket in
 * NOTIFY_SOCKET. The protocol is small and stable, so no library is needed for it. Without a service manager
 * nothing happens, and one that does not read is no reason to wait or to fail.
 */

#include "base/clock.h"
#include "base/compiler.h"
#include "os/socket.h"

struct sd_notify {
        int _fd; /* -EBADF: no service manager */
        struct sock_addr _to;
};

/* Removes NOTIFY_SOCKET from the environment, so that no child process reports in our place. A value that is not
 * the address of a socket counts as none. */
void sd_notify_open(struct sd_notify *n);
void sd_notify_close(struct sd_notify *n);

/* Whether the service manager is reached by an abstract socket. */
bool sd_notify_is_abstract(const struct sd_notify *n);

/* The daemon serves. Also the end of a reload. */
void sd_notify_ready(struct sd_notify *n);

/* A reload has started. */
void sd_notify_reloading(struct sd_notify *n);

void sd_notify_stopping(struct sd_notify *n);

/* One line for people, shown by "systemctl status". */
void sd_notify_status(struct sd_notify *n, const char *fmt, ...) printf_like(2, 3);

#endif
