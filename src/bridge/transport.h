/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_TRANSPORT_H
#define HUTCH_BRIDGE_TRANSPORT_H

/*
 * A kind of broker: NATS, MQTT or AMQP.
 *
 * Their client libraries block, each at other places (names are resolved, TLS is agreed upon, what a slow
 * broker does not take is waited for), and one of them has threads of its own. So all of them live in one
 * thread of the bridge, the wire (wire.h), where blocking harms nobody, and where each transport is
 * plain code from top to bottom:
 *
 *         connect ─► serve ─► run … run ─► disconnect
 *
 * All functions are called by that thread. What a transport gets from its broker it hands on with
 * wire_deliver, which may be called by a library's own threads, too.
 */

#include <poll.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "bridge/commands.h"
#include "bridge/names.h"
#include "bridge/settings.h"

struct wire;

/* --- what comes --- */

#define MESSAGE_BODY_MAX (16 * MiB) /* what is longer is as good as malformed */

/* A message for one of our commands. It belongs to who has it, and is freed by incoming_free. */
struct incoming {
        struct list node;
        struct buf body;
        struct buf reply_to; /* where a reply is wanted; empty: told by the body, or not at all */
        struct buf correlation; /* as the broker tells it; empty: the body does */
        uint64_t tag;           /* for wire_accept */
        uint64_t epoch;         /* number of the connection it came by */
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

/* A message of ours. Nothing in it changes while the wire has it. */
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

        /* The wire's. */
        enum outcome outcome;
        uint64_t ticket; /* the transport's name for it, while it waits for the broker */
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
        int (*open)(struct wire *w, struct err *e);
        void (*close)(struct wire *w);

        /* All of it may block, for w->timeout_ms at most. The largest body goes to w->body_max. */
        int (*connect)(struct wire *w, struct err *e);
        int (*serve)(struct wire *w, struct err *e); /* subscribes to the commands */
        void (*disconnect)(struct wire *w);

        /* What to wait for besides the wire's own descriptor; returns how many (0 or 1), and lowers
         * *timeout_ms to when it wants to run even if nothing happens. */
        size_t (*poll)(struct wire *w, struct pollfd *ret, int *timeout_ms);
        /* Something happened, or it is time. A failure ends the connection. */
        int (*run)(struct wire *w, short revents, struct err *e);

        /* Sends one, which is in w->sent then; its end is told by wire_sent, at once or later. A failure
         * ends the connection. What has had no end when it ends is OUTCOME_LOST. */
        int (*send)(struct wire *w, struct outgoing *m, struct err *e);
        /* After some were sent. NULL: nothing is to be done. */
        int (*flush)(struct wire *w, struct err *e);

        /* A message was taken up: the broker may forget it. NULL: it has. */
        int (*accept)(struct wire *w, uint64_t tag, struct err *e);
        /* No more messages, please. */
        int (*pause)(struct wire *w, struct err *e);
};

/* Those this program was built with; ends in NULL. */
extern const struct transport_ops *const transports[];

#endif
