/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_WIRE_H
#define HUTCH_BRIDGE_WIRE_H

/*
 * The connection to the broker, held by a thread: made, kept, and made again when it breaks.
 *
 *         loop                                   wire (thread)
 *           │ wire_send, wire_accept, …  ─► orders ─►  │ ─ transport ─► broker
 *           │ notes: messages, ends, up/down ◄─ notes ◄─ │ ◄─────────────────┘
 *
 * Everything crosses in one of two queues, and belongs to one side at a time. The thread waits with
 * poll(2) for orders and for the broker; between attempts to connect it waits for orders and for a time
 * that doubles, with some chance in it so that a hundred bridges do not come back in the same
 * millisecond.
 *
 * Each connection has a number, its epoch, the first one 1. A message that was given to one connection
 * and had no end there comes back as OUTCOME_LOST; who sent it sends it again when the wire is up.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/id.h"
#include "bridge/queue.h"
#include "bridge/transport.h"

#define WIRE_BACKOFF_MIN_MS 100
#define WIRE_BACKOFF_MAX_MS 10000
#define WIRE_TIMEOUT_MS     10000
#define WIRE_NOTES_MAX      (128 * MiB) /* of messages that wait for the loop, which takes all at once */

enum note_kind {
        NOTE_MESSAGE, /* incoming */
        NOTE_END,     /* outgoing, with its outcome */
        NOTE_UP,      /* epoch and body_max are new */
        NOTE_DOWN,    /* text says why */
        NOTE_STOPPED, /* the last one: nothing is in the thread's hands any more */
};

struct note {
        struct list node;
        enum note_kind kind;
        struct incoming *incoming;
        struct outgoing *outgoing;
        uint64_t epoch;
        size_t body_max;
        char text[ERR_MESSAGE_MAX];
};

struct wire {
        const struct settings *settings;
        const struct transport_ops *ops;
        const char *instance;
        struct queue notes; /* the loop takes */
        /* Bytes of messages that the loop has not taken yet; messages for which there was no room. */
        atomic_uint_fast64_t undelivered, dropped;

        /* --- the thread's --- */
        struct queue _orders;
        pthread_t _thread;
        bool _started;
        void *transport; /* the transport's own */
        uint64_t epoch;
        size_t body_max;
        int timeout_ms;
        bool paused, stopping;
        unsigned attempts; /* to connect, in a row */
        struct list sent;  /* struct outgoing: the broker has not said anything about them yet */
        struct ids ids;
};

/* --- the loop's side --- */

/* Starts the thread, which connects. */
int wire_start(struct wire *w, const struct settings *settings, const char *instance, struct err *e)
        must_check;

/* Ends the thread and waits for it: what it still had is in `notes`, NOTE_STOPPED last. To be called
 * once all messages have come back, or to give them up. */
void wire_stop(struct wire *w);
void wire_free(struct wire *w);

/* It comes back as NOTE_END, also while there is no connection (OUTCOME_LOST). */
void wire_send(struct wire *w, struct outgoing *m);
void wire_accept(struct wire *w, const struct incoming *m);
void wire_pause(struct wire *w);

void note_free(struct note *n);

/* The loop has taken the message of a note. */
void wire_taken(struct wire *w, const struct incoming *m);

/* --- the transport's side --- */

/* Takes the message, from whatever thread. */
void wire_deliver(struct wire *w, struct incoming *m);

/* The end of a message that was given to send. */
void wire_sent(struct wire *w, struct outgoing *m, enum outcome outcome);

/* Wakes the thread, from another one of the transport's library. */
void wire_wake(struct wire *w);

#endif
