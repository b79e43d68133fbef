/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_NETNS_PROCESS_H
#define HUTCH_WARDEN_NETNS_PROCESS_H

/*
 * The netns pool process: a child of the warden that owns the pool of network namespaces
 * (warden/netns_pool.h).
 *
 *         warden                           netns pool process
 *            ADOPT …, START  ──────────►   what instances of an earlier warden use; then it begins
 *                            ◄──────────   READY, with a descriptor, as many as the pool is deep
 *            TAKEN           ──────────►   the oldest of the kind is in use
 *            RETURNED        ──────────►   its instance has exited
 *                            ◄──────────   FAILED: there is none of the kind, and why
 *            SHUTDOWN        ──────────►   no instance is left: undo the changes to the host
 */

#include "base/compiler.h"
#include "base/err.h"
#include "warden/netns_pool.h"

enum netns_msg_kind {
        NETNS_MSG_ADOPT,
        NETNS_MSG_START,
        NETNS_MSG_READY,
        NETNS_MSG_TAKEN,
        NETNS_MSG_RETURNED,
        NETNS_MSG_FAILED,
        NETNS_MSG_SHUTDOWN,
};

/* Both ends are the same program: sent as it is in memory. */
struct netns_msg {
        enum netns_msg_kind what;
        enum netns_kind kind;
        uint32_t index;
        bool permanent;     /* FAILED: there will never be one */
        enum err_code code; /* FAILED */
        char text[200];
};

/* *ret_socket is the warden's end, *ret_pidfd a child of the caller. `data` is the data directory, in which
 * the process holds a lock: a second one waits for the exit of the first. */
int netns_process_start(const struct netns_pool_config *c, int data, int *ret_socket,
                        int *ret_pidfd) must_check;

/* `fd` is sent along if it is not negative, and stays the caller's. Flags: MSG_DONTWAIT. */
int netns_process_send(int socket, const struct netns_msg *m, int fd, int flags) must_check;

/* 1, or 0 when the other end is closed. *ret_fd is -EBADF if none came. -EAGAIN. */
int netns_process_receive(int socket, struct netns_msg *ret, int *ret_fd, int flags) must_check;

#endif
