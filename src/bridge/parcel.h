/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_PARCEL_H
#define HUTCH_BRIDGE_PARCEL_H

/*
 * A message of ours on its way to the broker: until the broker has it, or there is no point any more.
 *
 * One that was lost with a connection is sent again on the next. A reply may be for somebody who is not
 * there yet: callers, too, come back after a restart of their broker, in no order. If the broker says that
 * nobody listens, and the command came by an earlier connection, the reply is tried again for a while; if
 * it came by this very connection, the caller has gone.
 */

#include "bridge/bridge.h"

struct job;

#define PARCEL_TRIES_MAX 8 /* losses: what ends connections must not do so for ever */
#define PARCEL_RETRY_MS  200
#define PARCEL_RETRY_UNTIL \
        (30 * USEC_PER_SEC) /* callers wait that long, if nobody told them otherwise */

struct parcel {
        struct list node;
        struct outgoing message;
        struct bridge *bridge;
        struct job *job;         /* whose it is; NULL: nobody's */
        char id[ID_HEX_LEN + 1]; /* of the message, if it has none yet */
        unsigned tries;
        usec_t until; /* when to give up that somebody listens; 0: nobody was missing yet */
};

/* With headers made of the head, and an id if that has none; what it points to must stay until the end. The body is empty, and takes
 * as much as the broker does. */
struct parcel *parcel_new(struct bridge *b, const struct message_head *head, struct job *job)
        must_check;
void parcel_free(struct parcel *p);

/* Who writes its body: at the time that is beside it, too. */
struct author parcel_author(const struct parcel *p);

void parcel_send(struct parcel *p);

/* What the wire told. It is sent again, or told to its job, or gone. */
void parcel_ended(struct parcel *p);

/* All in the list; for when the broker is back, and when it is time. */
void parcel_send_all(struct list *parcels);

struct parcel *parcel_of(struct outgoing *m);

#endif
