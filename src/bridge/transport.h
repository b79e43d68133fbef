/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_TRANSPORT_H
#define HUTCH_BRIDGE_TRANSPORT_H

/*
 * A transport: the client of a kind of broker, NATS, MQTT or AMQP.
 *
 *         connect ─► serve ─► run, send, … ─► disconnect
 *
 * A thread calls connect and serve, which may block. The loop calls everything else (broker_conn.h), which blocks
 * only where a library offers no other way. The two never overlap. A transport passes received messages to
 * broker_conn_deliver, and the outcome of sent ones to broker_conn_sent.
 */

#include <poll.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "bridge/message.h"
#include "bridge/names.h"
#include "bridge/settings.h"

struct broker_conn;

/* --- received messages --- */

/* A message to one of our commands. Its owner frees it with incoming_free. */
struct incoming {
        struct list node;
        struct buf body;        /* at most MESSAGE_MAX; a longer one fails the buffer */
        struct buf reply_to;    /* where a reply goes; empty: in the body, or nowhere */
        struct buf correlation; /* from the broker; empty: in the body */
        usec_t timeout; /* of the caller, from now on; USEC_INFINITY: the message does not say */
        uint64_t tag;   /* for broker_conn_accept */
        uint64_t epoch; /* of the connection that it came by; set by broker_conn */
};

struct incoming *incoming_new(void) must_check;
void incoming_free(struct incoming *m);

/* --- sent messages --- */

enum outcome {
        OUTCOME_SENT,        /* the broker has it */
        OUTCOME_LOST,        /* the connection broke, so it is unknown */
        OUTCOME_NO_RECEIVER, /* no one receives it */
        OUTCOME_TOO_LARGE,   /* for this broker */
        OUTCOME_REFUSED,     /* by the broker, for good */
        OUTCOME_MAX_,
};

#define HEADERS_MAX 16

struct header {
        const char *name;
        struct str value;
};

/* Does not change while the connection has it. */
struct outgoing {
        struct list node;
        struct message_head head;
        struct header headers[HEADERS_MAX];
        size_t n_headers;
        struct str correlation; /* null view: none */
        struct str reply_to;    /* null view: not a reply, or the head has the address */
        uint64_t timestamp;
        bool is_reply;
        bool probe; /* report OUTCOME_NO_RECEIVER */
        struct buf body;

        /* Of the connection. */
        enum outcome outcome;
        uint64_t publish_id; /* of the transport, until the broker confirms it */
};

/* --- a transport --- */

struct transport_ops {
        const char *name;
        const char *const *schemes; /* of URLs: without TLS, with TLS */
        int port, tls_port;         /* if the URL has none */
        bool has_path;              /* a URL may have a path */
        bool reply_by_sender;   /* a reply goes to the instance of the sender, not to an address */
        bool needs_correlation; /* callers match replies by it */

        /* Memory, and what needs no broker. */
        int (*open)(struct broker_conn *w, struct err *e);
        void (*close)(struct broker_conn *w);

        /* Called by the thread. No step takes longer than w->timeout_ms. Sets w->body_max. */
        int (*connect)(struct broker_conn *w, struct err *e);
        int (*serve)(struct broker_conn *w, struct err *e); /* subscribes to the commands */
        void (*disconnect)(struct broker_conn *w);

        /* What to watch: always for reading, for writing if it wants to (NULL: never). */
        int (*fd)(struct broker_conn *w);
        bool (*wants_write)(struct broker_conn *w);
        /* The descriptor is ready, or tick_ms have passed. A failure ends the connection. */
        int (*run)(struct broker_conn *w, short revents, struct err *e);
        unsigned tick_ms;

        /* Sends a message, which is in w->sent; broker_conn_sent completes it, now or later. A failure ends the
         * connection. Messages that are not completed by then are OUTCOME_LOST. */
        int (*send)(struct broker_conn *w, struct outgoing *m, struct err *e);
        /* After messages were sent or accepted. May be NULL. */
        int (*flush)(struct broker_conn *w, struct err *e);

        /* Acknowledges a message with the next flush. NULL: the broker does not wait for that, and does not
         * deliver again. */
        void (*accept)(struct broker_conn *w, uint64_t tag);
        /* Stops consuming; then, whether messages in transit have arrived (NULL: they do not matter). */
        int (*pause)(struct broker_conn *w, struct err *e);
        bool (*is_quiet)(struct broker_conn *w);
};

/* Those this program was built with; ends in NULL. */
extern const struct transport_ops *const transports[];

#endif
