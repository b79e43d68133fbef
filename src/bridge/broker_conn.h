/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_BROKER_CONN_H
#define HUTCH_BRIDGE_BROKER_CONN_H

/*
 * The connection to the broker: made, kept, and made again when it breaks.
 *
 *         waiting ─► connecting (a thread) ─► up ─► waiting …
 *
 * To connect is the one thing that all clients of brokers block in (names are resolved, TLS is agreed
 * upon, a broker thinks), so a thread does it, and is gone when it is done. A connection that stands
 * belongs to the loop: its library reads and writes when the descriptor is ready, and a command takes no
 * way from one thread to another. Between two attempts passes a time that doubles, with some chance in it
 * so that a hundred bridges do not come back in the same millisecond.
 *
 * What comes, and what became of what was sent, is put down where a library tells of it and handed on by a
 * task of the loop's. So no hook is ever called from inside a library, or from inside a function of the
 * broker_conn's that the hook itself has called, and a connection may be ended in any of them. What is to be sent
 * is a task's, too; acknowledgements, which nobody waits for, go out with it, or milliseconds later.
 *
 * Each attempt has a number, its epoch, the first one 1. A message that was given to one connection and
 * had no end there comes back as OUTCOME_LOST; who sent it sends it again when the broker_conn is up.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/id.h"
#include "bridge/transport.h"
#include "net/loop.h"

#define BROKER_CONN_BACKOFF_MIN_MS 100
#define BROKER_CONN_BACKOFF_MAX_MS 10000
#define BROKER_CONN_TIMEOUT_MS     10000
#define BROKER_CONN_QUIET_MS       2000

enum broker_conn_state {
        BROKER_CONN_NEW,
        BROKER_CONN_WAITING,    /* until the next attempt */
        BROKER_CONN_CONNECTING, /* the transport is the thread's */
        BROKER_CONN_UP,
        BROKER_CONN_STOPPED,
};

/* Called by the loop, and by broker_conn_stop. */
struct broker_conn_hooks {
        void (*message)(struct broker_conn *w, struct incoming *m); /* takes it */
        void (*ended)(struct broker_conn *w,
                      struct outgoing *m); /* gets it back, with its outcome */
        void (*up)(struct broker_conn *w); /* epoch and body_max are new */
        void (*down)(struct broker_conn *w, const char *why);
        void (*quiet)(struct broker_conn *w); /* after broker_conn_pause: nothing more comes */
};

struct broker_conn {
        const struct settings *settings;
        const struct transport_ops *ops;
        const struct broker_conn_hooks *hooks;
        const char *instance;

        /* --- for transports --- */
        void *transport; /* its own */
        uint64_t epoch;
        size_t body_max;
        int timeout_ms;
        struct list sent; /* struct outgoing: the broker has not said anything about them yet */

        /* --- its own --- */
        enum broker_conn_state _state;
        bool _paused, _quiet, _quiet_notified, _failed;
        struct err _error;                /* why it failed */
        struct list _inbound, _completed; /* struct incoming, struct outgoing: for hooks */
        struct list _unsent;              /* struct outgoing */
        struct ids _ids;
        unsigned _attempts; /* to connect, in a row */

        struct net_loop *_loop;
        struct net_task _dispatch, _send;
        uv_timer_t _timer, _later, _quiet_timer;
        uv_async_t _wake;
        struct watched *_watched; /* the descriptor of a connection that is up */

        pthread_t _thread;
        bool _serve;          /* it is to subscribe, too */
        int _result;          /* its, and _error */
        atomic_bool _is_done; /* it may be joined */
};

/* --- the loop's side --- */

/* Connects once the loop runs. */
int broker_conn_start(struct broker_conn *w, struct net_loop *loop, const struct settings *settings,
                      const char *instance, const struct broker_conn_hooks *hooks, struct err *e)
        must_check;

/* Ends the connection, or waits for an attempt to end; what was sent and has no end yet is lost, and so
 * is what is sent from now on. The loop then has handles to close. */
void broker_conn_stop(struct broker_conn *w);

/* It comes back by the hook `ended`, also while there is no connection (OUTCOME_LOST). */
void broker_conn_send(struct broker_conn *w, struct outgoing *m);
void broker_conn_accept(struct broker_conn *w, const struct incoming *m);
/* No more messages, ever. Some may be on their way; the hook `quiet` tells when none is, or it took too
 * long. */
void broker_conn_pause(struct broker_conn *w);
bool broker_conn_is_quiet(const struct broker_conn *w);

/* --- the transport's side --- */

/* Takes the message. */
void broker_conn_deliver(struct broker_conn *w, struct incoming *m);

/* The end of a message that was given to send. */
void broker_conn_sent(struct broker_conn *w, struct outgoing *m, enum outcome outcome);

/* Lets the transport run soon; from any thread, which is what it is for. */
void broker_conn_wake(struct broker_conn *w);

#endif
