/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_TRANSPORT_H
#define HUTCH_BRIDGE_TRANSPORT_H

/*
 * A kind of broker: NATS, MQTT or AMQP.
 *
 *         connect ─► serve ─► run, send, … ─► disconnect
 *
 * connect and serve are called by a thread that is there for them and may block; everything else is
 * called by the loop (broker_conn.h), and waits only where a library knows no other way. Never do both at the
 * same time. What a transport gets from its broker it hands on with broker_conn_deliver, and what it learns
 * about messages of ours with broker_conn_sent.
 */

#include <poll.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "bridge/commands.h"
#include "bridge/names.h"
#include "bridge/settings.h"

struct broker_conn;

/* --- what comes --- */

#define MESSAGE_BODY_MAX (16 * MiB) /* what is longer is as good as malformed */

/* A message for one of our commands. It belongs to who has it, and is freed by incoming_free. */
struct incoming {
        struct list node;
        struct buf body;
        struct buf reply_to; /* where a reply is wanted; empty: told by the body, or not at all */
        struct buf correlation; /* as the broker tells it; empty: the body does */
        uint64_t tag;           /* for broker_conn_accept */
        uint64_t epoch;         /* number of the connection it came by; the broker_conn's */
};

struct incoming *incoming_new(void) must_check;
void incoming_free(struct incoming *m);

/* --- what goes --- */

enum outcome {
        OUTCOME_SENT,        /* the broker has it */
        OUTCOME_LOST,        /* the connection broke, and nobody knows */
        OUTCOME_NO_RECEIVER, /* the broker knows nobody who wants it */
        OUTCOME_TOO_LARGE,   /* for this broker */
        OUTCOME_REFUSED,     /* by the broker, and would be again */
        OUTCOME_MAX_,
};

#define HEADERS_MAX 16

struct header {
        const char *name;
        struct str value;
};

/* A message of ours. Nothing in it changes while the broker_conn has it. */
struct outgoing {
        struct list node;
        struct message_head head;
        struct header headers[HEADERS_MAX];
        size_t n_headers;
        struct str correlation; /* null view: none */
        struct str reply_to;    /* null view: this is no reply, or the head tells where it goes */
        uint64_t timestamp;
        bool is_reply;
        bool probe; /* it matters whether somebody gets it: OUTCOME_NO_RECEIVER is wanted */
        struct buf body;

        /* The broker_conn's. */
        enum outcome outcome;
        uint64_t publish_id; /* the transport's name for it, while it waits for the broker */
};

/* --- a transport --- */

struct transport_ops {
        const char *name;
        const char *const *schemes; /* of URLs: without TLS first, with TLS second */
        int port, tls_port;         /* if the URL names none */
        bool has_path;              /* a URL may have one */
        bool reply_by_sender;       /* a reply goes to the sender's instance, not to an address */
        bool needs_correlation;     /* which tells a caller what a reply is about */

        /* Memory and what needs no broker. */
        int (*open)(struct broker_conn *w, struct err *e);
        void (*close)(struct broker_conn *w);

        /* By a thread; no step of it takes longer than w->timeout_ms. The largest body goes to
         * w->body_max. */
        int (*connect)(struct broker_conn *w, struct err *e);
        int (*serve)(struct broker_conn *w, struct err *e); /* subscribes to the commands */
        void (*disconnect)(struct broker_conn *w);

        /* What to wait for: to read always, to write if it says so (NULL: never). */
        int (*fd)(struct broker_conn *w);
        bool (*wants_write)(struct broker_conn *w);
        /* Something happened, or tick_ms are over. A failure ends the connection. */
        int (*run)(struct broker_conn *w, short revents, struct err *e);
        unsigned tick_ms;

        /* Sends one, which is in w->sent then; its end is told by broker_conn_sent, at once or later. A failure
         * ends the connection. What has had no end when it ends is OUTCOME_LOST. */
        int (*send)(struct broker_conn *w, struct outgoing *m, struct err *e);
        /* After some were sent or accepted. NULL: nothing is to be done. */
        int (*flush)(struct broker_conn *w, struct err *e);

        /* A message was taken up: the broker may forget it, and is told by the next flush. NULL: it has. */
        void (*accept)(struct broker_conn *w, uint64_t tag);
        /* No more messages, please; then, whether those have come that were on their way (NULL: they do
         * not matter). */
        int (*pause)(struct broker_conn *w, struct err *e);
        bool (*is_quiet)(struct broker_conn *w);
};

/* Those this program was built with; ends in NULL. */
extern const struct transport_ops *const transports[];

#endif
