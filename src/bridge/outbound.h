/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_OUTBOUND_H
#define HUTCH_BRIDGE_OUTBOUND_H

/*
 * A message of ours on its way to the broker: until the broker has it, or there is no point any more.
 *
 * One that was lost with a connection is sent again on the next. A reply may be for somebody who is not
 * there yet: callers, too, come back after a restart of their broker, in no order. If the broker says that
 * nobody listens, and the command came by an earlier connection, the reply is tried again for a while; if
 * it came by this very connection, the caller has gone.
 */

#include "bridge/bridge.h"

struct bus_command;

#define OUTBOUND_TRIES_MAX 8 /* losses: what ends connections must not do so for ever */
#define OUTBOUND_RETRY_MS  200
#define OUTBOUND_RETRY_UNTIL \
        (30 * USEC_PER_SEC) /* callers wait that long, if nobody told them otherwise */

struct outbound {
        struct list node;
        struct outgoing message;
        struct bridge *bridge;
        struct bus_command *bus_command; /* whose it is; NULL: nobody's */
        char id[ID_HEX_LEN + 1];         /* of the message, if it has none yet */
        unsigned tries;
        usec_t until; /* when to give up that somebody listens; 0: nobody was missing yet */
};

/* With headers made of the head, and an id if that has none; what it points to must stay until the end. The body is empty, and takes
 * as much as the broker does. */
struct outbound *outbound_new(struct bridge *b, const struct message_head *head,
                              struct bus_command *bus_command) must_check;
void outbound_free(struct outbound *p);

/* Who writes its body: at the time that is beside it, too. */
struct author outbound_author(const struct outbound *p);

void outbound_send(struct outbound *p);

/* What the broker_conn told. It is sent again, or told to its bus_command, or gone. */
void outbound_ended(struct outbound *p);

/* All in the list; for when the broker is back, and when it is time. */
void outbound_send_all(struct list *parcels);

struct outbound *outbound_of(struct outgoing *m);

#endif
