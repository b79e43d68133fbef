/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_BUS_COMMAND_H
#define HUTCH_BRIDGE_BUS_COMMAND_H

/*
 * One command from the bus, from its message to the end of its reply.
 *
 *         received ─► waiting ─► running (hutchd) ─► replying ─► freed
 *             └─────────── refused ──────────────────┘
 *
 * A caller waits for its reply only so long. MQTT (message expiry) and AMQP (expiration) carry its timeout; for
 * messages without one there is the setting caller_timeout. When it has passed, a command that waits is refused, and
 * the request of one that runs is canceled, for which hutchd kills its processes. Both get a reply of status 504, for
 * a caller that is still there after all. A creation goes on, in hutchd and here: others may wait for its event.
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
        struct alarm deadline; /* of the caller */
        struct map_node by_key;
        struct bridge *bridge;
        struct incoming *incoming;
        struct arena memory;
        struct command_message message;
        enum bus_command_state state;
        bool has_reply_address;
        bool expired; /* the caller has given up, and the request was canceled */
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
