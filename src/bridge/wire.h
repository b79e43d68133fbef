/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_WIRE_H
#define HUTCH_BRIDGE_WIRE_H

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
 * wire's that the hook itself has called, and a connection may be ended in any of them. What is to be sent
 * is a task's, too; acknowledgements, which nobody waits for, go out with it, or milliseconds later.
 *
 * Each attempt has a number, its epoch, the first one 1. A message that was given to one connection and
 * had no end there comes back as OUTCOME_LOST; who sent it sends it again when the wire is up.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/id.h"
#include "bridge/transport.h"
#include "net/loop.h"

#define WIRE_BACKOFF_MIN_MS 100
#define WIRE_BACKOFF_MAX_MS 10000
#define WIRE_TIMEOUT_MS     10000
#define WIRE_QUIET_MS       2000

enum wire_state {
        WIRE_NEW,
        WIRE_WAITING,    /* until the next attempt */
        WIRE_CONNECTING, /* the transport is the thread's */
        WIRE_UP,
        WIRE_STOPPED,
};

/* Called by the loop, and by wire_stop. */
struct wire_hooks {
        void (*message)(struct wire *w, struct incoming *m); /* takes it */
        void (*ended)(struct wire *w, struct outgoing *m);   /* gets it back, with its outcome */
        void (*up)(struct wire *w);                          /* epoch and body_max are new */
        void (*down)(struct wire *w, const char *why);
        void (*quiet)(struct wire *w); /* after wire_pause: nothing more comes */
};

struct wire {
        const struct settings *settings;
        const struct transport_ops *ops;
        const struct wire_hooks *hooks;
        const char *instance;

        /* --- for transports --- */
        void *transport; /* its own */
        uint64_t epoch;
        size_t body_max;
        int timeout_ms;
        struct list sent; /* struct outgoing: the broker has not said anything about them yet */

        /* --- its own --- */
        enum wire_state _state;
        bool _paused, _quiet, _quiet_told, _failed;
        struct err _error;         /* why it failed */
        struct list _came, _ended; /* struct incoming, struct outgoing: for hooks */
        struct list _unsent;       /* struct outgoing */
        struct ids _ids;
        unsigned _attempts; /* to connect, in a row */

        struct net_loop *_loop;
        struct net_task _hand_on, _send;
        uv_timer_t _timer, _later, _patience;
        uv_async_t _wake;
        struct watched *_watched; /* the descriptor of a connection that is up */

        pthread_t _thread;
        bool _serve;          /* it is to subscribe, too */
        int _result;          /* its, and _error */
        atomic_bool _is_done; /* it may be joined */
};

/* --- the loop's side --- */

/* Connects once the loop runs. */
int wire_start(struct wire *w, struct net_loop *loop, const struct settings *settings,
               const char *instance, const struct wire_hooks *hooks, struct err *e) must_check;

/* Ends the connection, or waits for an attempt to end; what was sent and has no end yet is lost, and so
 * is what is sent from now on. The loop then has handles to close. */
void wire_stop(struct wire *w);

/* It comes back by the hook `ended`, also while there is no connection (OUTCOME_LOST). */
void wire_send(struct wire *w, struct outgoing *m);
void wire_accept(struct wire *w, const struct incoming *m);
/* No more messages, ever. Some may be on their way; the hook `quiet` tells when none is, or it took too
 * long. */
void wire_pause(struct wire *w);
bool wire_is_quiet(const struct wire *w);

/* --- the transport's side --- */

/* Takes the message. */
void wire_deliver(struct wire *w, struct incoming *m);

/* The end of a message that was given to send. */
void wire_sent(struct wire *w, struct outgoing *m, enum outcome outcome);

/* Lets the transport run soon; from any thread, which is what it is for. */
void wire_wake(struct wire *w);

#endif
