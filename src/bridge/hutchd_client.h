/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_HUTCHD_CLIENT_H
#define HUTCH_BRIDGE_HUTCHD_CLIENT_H

/*
 * Requests of the bridge to hutchd.
 *
 * A local hutchd, behind a unix socket, is called with http/client.h: the cost of a command in the bridge is
 * mostly cold memory, and that client touches the least. A remote hutchd is called with libhutch, which has TLS.
 */

#include <hutch/hutch.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "bridge/libhutch_loop.h"
#include "bridge/message.h"
#include "bridge/settings.h"
#include "http/client.h"

struct hutchd_client {
        const struct settings *settings;

        /* --- local --- */
        struct http_client *_http;
        struct sock_addr _addr;

        /* --- remote --- */
        struct hutch_client *_remote;
        struct libhutch_loop _libhutch;
};

/* One command, embedded by the caller. */
struct hutchd_request {
        const struct command_message *message;
        struct arena *memory; /* for as long as it runs */
        void (*done)(struct hutchd_request *q);

        /* --- the result --- */
        int code;         /* HUTCH_OK, or why there is no reply (hutch/call.h) */
        int status;       /* of HTTP, or 0 */
        struct str reply; /* as long as the request */
        char why[200];    /* one line, if there is no reply */

        /* --- the client's --- */
        struct hutchd_client *_client;
        struct buf _body, _reply;
        struct http_call _local;
        struct remote_request *_remote;
};

int hutchd_client_open(struct hutchd_client *h, struct net_loop *l, const struct settings *settings,
                       struct err *e) must_check;

/* Ends the requests that run, in the next iteration of the loop at the latest. */
void hutchd_client_close(struct hutchd_client *h);

/* `done` is called exactly once, later, from the loop. */
void hutchd_request_start(struct hutchd_client *h, struct hutchd_request *q);

/* Leads to `done` with HUTCH_CANCELED, unless the result is known already. hutchd kills what the command has started. */
void hutchd_request_cancel(struct hutchd_request *q);

/* After `done`, or if it was never started. */
void hutchd_request_free(struct hutchd_request *q);

#endif
