/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_NETNS_PROCESS_H
#define HUTCH_WARDEN_NETNS_PROCESS_H

/*
 * The process that keeps the pool of network namespaces (warden/netns_pool.h).
 *
 * To make a namespace takes milliseconds, and tens of them while the kernel takes others away: too
 * long for the warden's loop. So the pool lives in a child of the warden, which makes and closes
 * ahead, and the warden has copies of the descriptors of those that are ready:
 *
 *         warden                           netns_process
 *            ADOPT …, START  ──────────►   what an earlier warden has left; then it begins
 *                            ◄──────────   READY, with a descriptor, as many as the pool is deep
 *            TAKEN           ──────────►   the oldest of the kind is in use
 *            RETURNED        ──────────►   its sandbox has ended
 *                            ◄──────────   TROUBLE: there is none of the kind, and why
 *            END             ──────────►   no sandbox is left: the host is to be as it was
 *
 * The netns_process ends when the warden does, or closes its end. If it ends before, the warden starts another
 * one, which adopts: sandboxes have their networks all the while, because their own processes are in
 * them.
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

/* Between two processes of the same program: as it is in memory. */
struct netns_msg {
        enum netns_msg_kind what;
        enum netns_kind kind;
        uint32_t index;
        bool permanent;     /* error: there won't be any */
        enum err_code code; /* of the error */
        char text[200];
};

/* Starts one. *ret_socket is the warden's end, *ret_pidfd the process, a child of the caller. `data` is
 * the data directory, in which it has a lock: of two keepers, the second waits for the end of the first. */
int netns_process_start(const struct netns_pool_config *c, int data, int *ret_socket,
                        int *ret_pidfd) must_check;

/* `fd` goes along if it is not negative, and stays the caller's. Flags: MSG_DONTWAIT. */
int netns_process_send(int socket, const struct netns_msg *m, int fd, int flags) must_check;

/* 1, or 0 when the other end is closed. *ret_fd is -EBADF if none came. -EAGAIN. */
int netns_process_receive(int socket, struct netns_msg *ret, int *ret_fd, int flags) must_check;

#endif
