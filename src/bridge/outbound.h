/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_OUTBOUND_H
#define HUTCH_BRIDGE_OUTBOUND_H

/*
 * An outbound message: a reply, event or announcement until the broker has it or it is given up.
 *
 * A message that was lost with a connection is sent again on the next one. A reply may arrive before its
 * receiver is back: callers, too, reconnect after a restart of the broker, in no order. If the broker reports
 * that there is no receiver and the command came by an earlier connection, the reply is retried for a while; if
 * it came by this connection, the caller is gone.
 */

#include "bridge/bridge.h"

struct bus_command;

#define OUTBOUND_LOSSES_MAX 8 /* a message that ends connections must not do so forever */
#define OUTBOUND_RETRY_MS   200
#define OUTBOUND_RETRY_FOR  (30 * USEC_PER_SEC) /* the default timeout of callers */

struct outbound {
        struct list node;
        struct outgoing message;
        struct bridge *bridge;
        struct bus_command *cmd; /* its owner; NULL: none */
        char id[ID_HEX_LEN + 1]; /* of the message, if the head has none */
        unsigned losses;
        usec_t retry_until; /* 0: the broker has not reported a missing receiver yet */
};

/* Makes headers from the head, and an id if it has none. The texts of the head must stay valid. The body is
 * empty and takes as much as the broker accepts. */
struct outbound *outbound_new(struct bridge *b, const struct message_head *head,
                              struct bus_command *cmd) must_check;
void outbound_free(struct outbound *p);

/* The author of the body, with the time of the message. */
struct author outbound_author(const struct outbound *p);

void outbound_send(struct outbound *p);

/* Sends all messages of a list: those that wait for the broker, or for a receiver. */
void outbound_send_all(struct list *messages);

/* The hook `completed` of the connection, which returns the message with its outcome: it is sent again, reported to
 * its bus command, or freed. */
void outbound_completed(struct broker_conn *w, struct outgoing *m);

#endif
