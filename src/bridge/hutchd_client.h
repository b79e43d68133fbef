/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_HUTCHD_CLIENT_H
#define HUTCH_BRIDGE_HUTCHD_CLIENT_H

/*
 * hutchd, as the bridge asks it.
 *
 * One that is near, behind a unix socket, is asked by the client of http/client.h: what a command costs on
 * its way through the bridge is memory that nobody has looked at for a while, and that client touches the
 * least of it. One that is elsewhere is asked with libhutch, which has TLS.
 */

#include <hutch/hutch.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "bridge/libhutch_loop.h"
#include "bridge/message.h"
#include "bridge/settings.h"
#include "http/client.h"

struct hutchd {
        const struct settings *settings;
        bool is_local;

        /* --- near --- */
        struct http_client *_http;
        struct sock_addr _addr;

        /* --- elsewhere --- */
        struct hutch_client *_client;
        struct libhutch_loop _libhutch;
};

/* A command that hutchd is asked to carry out; embedded by who asks. */
struct hutchd_request {
        const struct command *command;
        struct arena *memory; /* for as long as it runs */
        void (*done)(struct hutchd_request *q);

        /* --- the hutchd_reply --- */
        int code;                /* HUTCH_OK, or why there is none (hutch/call.h) */
        int status;              /* of HTTP, or 0 */
        struct str hutchd_reply; /* as long as the hutchd_request */
        char why[200];           /* one line, if there is none */

        /* --- hutchd's --- */
        struct hutchd *_hutchd;
        struct buf _text, _reply;
        struct http_call _local;
        struct remote_request *_remote;
};

int hutchd_client_open(struct hutchd *h, struct net_loop *l, const struct settings *settings,
                       struct err *e) must_check;

/* Ends the questions that are open, in the next turn of the loop at the latest. */
void hutchd_client_close(struct hutchd *h);

/* `done` is called exactly once, later, by the loop. */
void hutchd_request_start(struct hutchd *h, struct hutchd_request *q);

/* After done, or if it was never asked. */
void hutchd_request_free(struct hutchd_request *q);

#endif
