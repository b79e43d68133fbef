/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_STORE_REMOTE_H
#define HUTCH_STORE_STORE_REMOTE_H

/*
 * The common part of backends on a server: requests that wait for it.
 *
 *         taken ─ waiting ─ sent ─ finished
 *             └ after another one of its key
 *
 * Requests on one key are sent one after the other, requests on different keys together, up to REMOTE_IN_FLIGHT_MAX at a
 * time. While the server is unreachable they wait, each at most the store's timeout, and then fail with ERR_UNAVAILABLE and
 * the reason. If the connection is lost, a read is sent again; a write fails at once and says that it may have happened.
 *
 * The backend embeds a struct remote, and a struct remote_request at the beginning of its own struct for a request. It owns
 * the connection, and reports what happens to it:
 *
 *         remote_connected      the connection is up
 *         remote_disconnected   it is not; returns the delay before the next attempt
 *         remote_send_waiting   there is room in the output again
 *         remote_finish         a reply has arrived
 *         remote_retry          the request has to be sent again
 *         remote_lost           the connection broke before there was a reply
 */

#include "base/log.h"
#include "base/tree.h"
#include "net/backoff.h"
#include "net/timeout.h"
#include "store/store_impl.h"

/* The delay before the next attempt to connect doubles between these. */
#define REMOTE_BACKOFF_MIN (50 * USEC_PER_MSEC)
#define REMOTE_BACKOFF_MAX (2 * USEC_PER_SEC)

#define REMOTE_IN_FLIGHT_MAX 256 /* further ones wait here instead of in a buffer */

struct remote;

struct remote_request {
        struct tree_node node; /* in remote.last, while it is the last of its key */
        struct remote *remote;
        struct store_req *req;
        struct list in_waiting;
        struct remote_request *before, *behind; /* of the same key; only the first is in waiting */
        struct timeout timeout;
        bool sent;
};

struct remote_ops {
        const char *server;  /* "Redis" */
        size_t request_size; /* of the struct that begins with a struct remote_request */

        /* Refuses what the server can't store: a code, with req.err set. May be NULL. */
        int (*check)(struct store_req *req);

        /* Whether a request of this size can be sent now. */
        bool (*has_room)(struct remote *r, size_t bytes);
        void (*send)(struct remote *r, struct remote_request *x);

        /* Breaks the connection, and calls remote_lost for each request that was sent. */
        void (*drop)(struct remote *r, const char *why);
};

struct remote {
        struct store store;
        const struct remote_ops *ops;
        const char *where;         /* the address, for messages */
        const struct log_ctx *log; /* or NULL */
        bool connected;
        char failure[ERR_MESSAGE_MAX]; /* why it is not connected */
        struct backoff backoff;
        struct timeout_kind wait;
        struct list waiting; /* in order */
        struct tree last;    /* the last request of each key */
        size_t n_in_flight;
};

void remote_init(struct remote *r, const struct store_ops *store_ops, const struct remote_ops *ops,
                 struct net_loop *loop, usec_t wait);

/* No request is in progress. The memory must stay valid for one more iteration of the loop. */
void remote_done(struct remote *r);

/* For struct store_ops. */
void remote_run(struct store *s);
void remote_cancel(struct store *s, struct store_req *req);

/* Connected, or connected again: sends what waits. */
void remote_connected(struct remote *r);

/* The connection is lost, or an attempt failed. Returns how long to wait before the next one. The first failure in a
 * row is logged, and the success that ends it. `why` names the server. */
usec_t remote_disconnected(struct remote *r, const char *why);

void remote_send_waiting(struct remote *r);
void remote_finish(struct remote_request *x, int result);
void remote_retry(struct remote_request *x);
void remote_lost(struct remote_request *x);

/* --- replies --- */

/* Adds an entry of a page: 0, or a code with req.err set. Keys must be in order and within the requested range: callers
 * rely on it. */
int remote_add_entry(struct store_scan *sc, struct store_entry entry, const char *server)
        must_check;

/* The reply of the server makes no sense. */
int remote_bad_reply(struct store_req *req, const char *server);

#endif
