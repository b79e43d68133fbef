/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_BUS_COMMAND_H
#define HUTCH_BRIDGE_BUS_COMMAND_H

/*
 * One command from the bus, from its message to the end of its reply.
 *
 *         received ─► waiting ─► running (hutchd) ─► replying ─► freed
 *             └─────────── refused ──────────────────┘
 *
 * A bus command owns its message, what was read from it, and the outbound messages that it causes: events
 * first, then the reply. It is freed when the broker has all of them, or they were given up. A command without
 * a reply address runs and gets no reply.
 */

#include "bridge/bridge.h"

struct outbound;

#define WAITING_BYTES_MAX (256 * MiB) /* of all commands that wait */

enum bus_command_state {
        BUS_COMMAND_NEW,
        BUS_COMMAND_WAITING,
        BUS_COMMAND_RUNNING,
        BUS_COMMAND_REFUSED, /* its reply is under way */
};

struct bus_command {
        struct list node; /* of the bridge, unless it waits */
        struct share share;
        struct map_node by_key;
        struct bridge *bridge;
        struct incoming *incoming;
        struct arena memory;
        struct command_message message;
        enum bus_command_state state;
        bool has_reply_address;
        struct hutchd_request request;
        size_t n_outbound; /* messages that the broker does not have yet */
};

/* The hook `message` of the connection. Reads the message, which belongs to the bus command from now on, and starts
 * the command or lets it wait. A message that is not a valid command is counted, logged and dropped; one that cannot
 * run is refused. */
void bus_command_take(struct broker_conn *w, struct incoming *m);

/* Sends the request to hutchd. */
void bus_command_start(struct bus_command *cmd);

/* Replies with 503 to one that waits, because the bridge stops. */
void bus_command_refuse_stopping(struct bus_command *cmd);

void bus_command_free(struct bus_command *cmd);

/* The outbound message has come to its end. */
void bus_command_sent(struct bus_command *cmd, struct outbound *p, enum outcome outcome);

#endif
