/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_STORE_REMOTE_H
#define HUTCH_STORE_STORE_REMOTE_H

/*
 * What members have in common whose data are kept by a server: requests that wait for it.
 *
 *         taken ─ waiting ─ asked ─ ended
 *             └ behind another one of its key
 *
 * Requests on one key are asked one after the other, requests on different keys together, up to
 * REMOTE_IN_FLIGHT_MAX at a time. While the server is away they wait, each at most as long as the store was told,
 * and then fail with ERR_UNAVAILABLE and the reason. If the connection is lost, a read is asked again; a write
 * fails at once and says that it may have happened.
 *
 * The member embeds a struct remote, and at the beginning of what it notes about each request a
 * struct remote_request. It has a link, by whatever way, and tells here what becomes of it:
 *
 *         remote_send_waiting      the link is up, or has room again
 *         remote_finish     an answer came
 *         remote_retry   it is to be asked once more
 *         remote_lost    the link broke before there was one
 */

#include "base/log.h"
#include "base/tree.h"
#include "net/backoff.h"
#include "net/timeout.h"
#include "store/store_impl.h"

/* The delay before the next attempt to connect doubles between these. */
#define REMOTE_BACKOFF_MIN (50 * USEC_PER_MSEC)
#define REMOTE_BACKOFF_MAX (2 * USEC_PER_SEC)

#define REMOTE_IN_FLIGHT_MAX 256 /* the others wait here instead of in a buffer */

struct remote;

struct remote_request {
        struct tree_node node; /* in remote.last, while nobody of that key came later */
        struct remote *remote;
        struct store_req *req;
        struct list in_waiting;
        struct remote_request *before,
                *behind; /* of the same key; what has one before it is not in waiting */
        struct timeout timeout;
        bool sent;
};

struct remote_ops {
        const char *server;  /* "Redis" */
        size_t request_size; /* of the struct that begins with a struct remote_request */

        /* What can't be kept there: a code and its err. May be NULL. */
        int (*check)(struct store_req *req);

        /* Whether a request with so many bytes can be sent now. */
        bool (*has_room)(struct remote *r, size_t bytes);
        void (*send)(struct remote *r, struct remote_request *x);

        /* Breaks the link; each request that was asked is told by remote_lost. */
        void (*drop)(struct remote *r, const char *why);
};

struct remote {
        struct store store;
        const struct remote_ops *ops;
        const char *where;         /* the address for people */
        const struct log_ctx *log; /* or NULL */
        bool connected;
        char failure[ERR_MESSAGE_MAX]; /* why it is not connected */
        struct backoff backoff;
        struct timeout_kind wait;
        struct list waiting; /* in the order they were started */
        struct tree last;    /* of each key */
        size_t n_in_flight;
};

void remote_init(struct remote *r, const struct store_ops *store_ops, const struct remote_ops *ops,
                 struct net_loop *loop, usec_t wait);

/* Nothing is under way any more: the memory must stay until the loop ran once more. */
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

/* --- for what members do alike --- */

/* An entry of a page, whoever says it: 0, or a code with its err. Keys have to be in order, and those that
 * were asked for: callers lean on it. */
int remote_add_entry(struct store_scan *sc, struct store_entry entry, const char *server)
        must_check;

/* The server's answer is none. */
int remote_bad_reply(struct store_req *req, const char *server);

#endif
