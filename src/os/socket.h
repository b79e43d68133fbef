/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_OS_SOCKET_H
#define HUTCH_OS_SOCKET_H

/*
 * Addresses and sockets of TCP and unix streams.
 *
 * All sockets are non-blocking and close-on-exec. Host names are not resolved: a lookup blocks, and
 * nothing we listen on or proxy to has a name.
 */

#include <sys/socket.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"

struct sock_addr {
        socklen_t len;
        struct sockaddr_storage ss;
};

#define SOCK_ADDR_TEXT_MAX 160

/* "127.0.0.1:8080", "[::1]:8080", either after "http://", "localhost:8080" (127.0.0.1),
 * "unix:/run/x.sock", and "unix:@name" for the abstract namespace. Port 0 lets the kernel choose.
 * -EINVAL if it is none of these, -ENAMETOOLONG if a path does not fit into a sockaddr_un. */
int sock_addr_from_string(struct str s, struct sock_addr *ret) must_check;

/* The first form above: "http://127.0.0.1:8080" or "unix:/run/x.sock". */
void sock_addr_to_string(const struct sock_addr *a, char ret[static SOCK_ADDR_TEXT_MAX]);

/* 0 for a unix address. */
uint16_t sock_addr_port(const struct sock_addr *a);

bool sock_addr_is_unix(const struct sock_addr *a);

/* The host without port, for X-Forwarded-For; "unix" for a unix peer. */
void sock_addr_host(const struct sock_addr *a, char ret[static SOCK_ADDR_TEXT_MAX]);

/* In two steps, for a caller that drops root in between: a bound socket accepts no connection before it
 * is started. */
int sock_bind(const struct sock_addr *a, int *ret_fd) must_check;
int sock_start(int fd) must_check;

/* Binds and listens. The path of a unix address is replaced if no process listens there any more (a
 * connection attempt is refused); otherwise the result is -EADDRINUSE. */
int sock_listen(const struct sock_addr *a, int *ret_fd) must_check;

/* The address a socket is bound to, with the port that the kernel chose. */
int sock_local_addr(int fd, struct sock_addr *ret) must_check;

/* Whether it is a listening socket; false for any other descriptor. */
bool sock_is_listening(int fd);

/* 0 when connected at once (usual for unix), -EINPROGRESS with *ret_fd set when the descriptor will become
 * writable, or an error. -EAGAIN if the queue of a unix listener is full. */
int sock_connect(const struct sock_addr *a, int *ret_fd) must_check;

/* TCP keepalive: the kernel probes a silent peer and fails the socket after two minutes without a
 * reply. sock_connect enables it; accepted sockets inherit it from their listener. A no-op for unix
 * sockets. */
void sock_keep_alive(int fd);

/* The uid of the process that connected a unix socket (or created the pair), as of then; -1 for any other
 * socket. A user that is not mapped in our namespace has the kernel's overflow uid. */
int64_t sock_peer_uid(int fd);
#define SOCK_OVERFLOW_UID 65534

/* The result of a connection attempt: 0 or a negative errno. */
int sock_error(int fd);

#endif
