/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_AMQP_IMPL_H
#define HUTCH_BRIDGE_AMQP_IMPL_H

/* Both halves of AMQP: amqp.c connects and sends, amqp_read.c has what comes. */

/* clang-format off */
#include <amqp.h>
#include <amqp_framing.h>
/* clang-format on */

#include "bridge/broker_conn.h"

#define CHANNEL 1

struct amqp {
        amqp_connection_state_t connection;
        uint64_t published;  /* on this channel: the broker counts, too */
        struct buf accepted; /* uint64_t: tags of which the broker is to be told */
};

static inline struct amqp *amqp_of(struct broker_conn *w)
{
        return w->transport;
}

/* It is called as all names begin. */
static inline amqp_bytes_t amqp_exchange(struct broker_conn *w)
{
        struct str name = w->settings->prefix;

        return (amqp_bytes_t){ .len = name.n, .bytes = (void *) name.p };
}

int amqp_run(struct broker_conn *w, short revents, struct err *e);

#endif
