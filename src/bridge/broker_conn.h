/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_BROKER_CONN_H
#define HUTCH_BRIDGE_BROKER_CONN_H

/*
 * The connection to the broker: connects, watches, reconnects. broker_conn.c starts with how it works.
 *
 *         waiting ─► connecting (a thread) ─► up ─► waiting …
 *
 * Hooks are called from the loop, never from inside a client library or a function of this header, so a hook may
 * call anything here. Each attempt to connect has a number, its epoch; the first one is 1. A message that was
 * given to a connection and got no confirmation comes back as OUTCOME_LOST; its sender sends it again when the
 * connection is up.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/id.h"
#include "bridge/transport.h"
#include "net/backoff.h"
#include "net/loop.h"

#define BROKER_CONN_BACKOFF_MIN_MS 100
#define BROKER_CONN_BACKOFF_MAX_MS 10000
#define BROKER_CONN_TIMEOUT_MS     10000
#define BROKER_CONN_QUIET_MS       2000

enum broker_conn_state {
        BROKER_CONN_NEW,
        BROKER_CONN_WAITING,    /* for the next attempt */
        BROKER_CONN_CONNECTING, /* the transport belongs to the thread */
        BROKER_CONN_UP,
        BROKER_CONN_STOPPED,
};

/* Called from the loop, and from broker_conn_stop. */
struct broker_conn_hooks {
        void (*message)(struct broker_conn *w, struct incoming *m); /* takes the message */
        void (*completed)(struct broker_conn *w,
                          struct outgoing *m); /* returns it, with its outcome */
        void (*up)(struct broker_conn *w);     /* epoch and body_max are new */
        void (*down)(struct broker_conn *w, const char *why);
        void (*quiet)(struct broker_conn *w); /* after broker_conn_pause: no more messages */
};

struct broker_conn {
        const struct settings *settings;
        const struct transport_ops *ops;
        const struct broker_conn_hooks *hooks;
        const char *instance;

        /* --- for transports --- */
        void *transport; /* its own data */
        uint64_t epoch;
        size_t body_max;
        int timeout_ms;
        struct list sent; /* struct outgoing: not confirmed yet */

        /* --- private --- */
        enum broker_conn_state _state;
        bool _paused, _quiet, _quiet_notified, _failed;
        struct err _error;                /* why it failed */
        struct list _inbound, _completed; /* struct incoming, struct outgoing: for hooks */
        struct list _unsent;              /* struct outgoing */
        struct ids _ids;
        struct backoff _backoff;

        struct net_loop *_loop;
        struct net_task _dispatch, _send;
        uv_timer_t _timer, _later, _quiet_timer;
        uv_async_t _wake;
        struct watched *_watched; /* the descriptor of a connection that is up */

        pthread_t _thread;
        bool _serve;          /* the thread subscribes, too */
        int _result;          /* of the thread, with _error */
        atomic_bool _is_done; /* the thread can be joined */
};

/* --- for the bridge --- */

/* Connects when the loop runs. */
int broker_conn_start(struct broker_conn *w, struct net_loop *loop, const struct settings *settings,
                      const char *instance, const struct broker_conn_hooks *hooks, struct err *e)
        must_check;

/* Disconnects, or waits for an attempt to end. Unconfirmed messages are lost, and so are those sent later. The
 * loop then has handles to close. */
void broker_conn_stop(struct broker_conn *w);

/* The hook `completed` returns the message, also while there is no connection (OUTCOME_LOST). */
void broker_conn_send(struct broker_conn *w, struct outgoing *m);

/* The message need not be delivered again. */
void broker_conn_accept(struct broker_conn *w, const struct incoming *m);

/* Stops consuming for good. Messages may still be in transit; the hook `quiet` reports when none is left, or after a
 * timeout. */
void broker_conn_pause(struct broker_conn *w);
bool broker_conn_is_quiet(const struct broker_conn *w);

/* --- for transports --- */

/* Takes the message. */
void broker_conn_deliver(struct broker_conn *w, struct incoming *m);

/* Completes a message that was given to send. */
void broker_conn_sent(struct broker_conn *w, struct outgoing *m, enum outcome outcome);

/* Lets the transport run soon; callable from any thread. */
void broker_conn_wake(struct broker_conn *w);

#endif
