/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_NETKEEPER_H
#define HUTCH_WARDEN_NETKEEPER_H

/*
 * The process that keeps the pool of network namespaces (warden/netpool.h).
 *
 * To make a namespace takes milliseconds, and tens of them while the kernel takes others away: too
 * long for the warden's loop. So the pool lives in a child of the warden, which makes and closes
 * ahead, and the warden has copies of the descriptors of those that are ready:
 *
 *         warden                           keeper
 *            ADOPT …, START  ──────────►   what an earlier warden has left; then it begins
 *                            ◄──────────   READY, with a descriptor, as many as the pool is deep
 *            TAKEN           ──────────►   the oldest of the kind is in use
 *            RETURNED        ──────────►   its sandbox has ended
 *                            ◄──────────   TROUBLE: there is none of the kind, and why
 *            END             ──────────►   no sandbox is left: the machine is to be as it was
 *
 * The keeper ends when the warden does, or closes its end. If it ends before, the warden starts another
 * one, which adopts: sandboxes have their networks all the while, because their own processes are in
 * them.
 */

#include "base/compiler.h"
#include "base/err.h"
#include "warden/netpool.h"

enum netkeeper_what {
        NETKEEPER_ADOPT,
        NETKEEPER_START,
        NETKEEPER_READY,
        NETKEEPER_TAKEN,
        NETKEEPER_RETURNED,
        NETKEEPER_TROUBLE,
        NETKEEPER_END,
};

/* Between two processes of the same program: as it is in memory. */
struct netkeeper_message {
        enum netkeeper_what what;
        enum netpool_kind kind;
        uint32_t index;
        bool for_good;      /* trouble: there won't be any */
        enum err_code code; /* of the trouble */
        char text[200];
};

/* Starts one. *ret_socket is the warden's end, *ret_pidfd the process, a child of the caller. `data` is
 * the data folder, in which it has a lock: of two keepers, the second waits for the end of the first. */
int netkeeper_start(const struct netpool_config *c, int data, int *ret_socket, int *ret_pidfd)
        must_check;

/* `fd` goes along if it is not negative, and stays the caller's. Flags: MSG_DONTWAIT. */
int netkeeper_send(int socket, const struct netkeeper_message *m, int fd, int flags) must_check;

/* 1, or 0 when the other end is closed. *ret_fd is -EBADF if none came. -EAGAIN. */
int netkeeper_receive(int socket, struct netkeeper_message *ret, int *ret_fd, int flags) must_check;

#endif
