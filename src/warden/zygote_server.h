/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_WARDEN_ZYGOTE_SERVER_H
#define HUTCH_WARDEN_ZYGOTE_SERVER_H

/*
 * The zygote server: a child of the warden that makes zygotes (warden/zygote.h) and removes the cgroups
 * of destroyed instances, so that the warden's loop never waits for either.
 *
 *         warden                            zygote server
 *            MAKE uid_first    ─────────►   zygote_make, as a child of the warden (CLONE_PARENT)
 *                              ◄─────────   the zygote's descriptors, or the error
 *            REMOVE uid_first  ─────────►   cgroup_remove
 *                              ◄─────────   the result
 *
 * Replies come in the order of the requests. The server exits when the warden exits or closes its socket.
 */

#include "base/compiler.h"
#include "warden/zygote.h"

/* *ret_socket is the warden's end; *ret_pidfd is a child of the caller. */
int zygote_server_start(const struct host_context *ctx, int *ret_socket, int *ret_pidfd) must_check;

enum zygote_server_op { ZYGOTE_SERVER_MAKE, ZYGOTE_SERVER_REMOVE };

struct zygote_server_reply {
        enum zygote_server_op op;
        int result;           /* of zygote_make or cgroup_remove */
        struct zygote zygote; /* after a removal: only uid_first */
};

/* -EAGAIN: its queue is full. */
int zygote_server_request(int socket, enum zygote_server_op op, uint32_t uid_first) must_check;

/* 1, or 0 when the server has exited; -EAGAIN. */
int zygote_server_receive(int socket, struct zygote_server_reply *ret) must_check;

#endif
