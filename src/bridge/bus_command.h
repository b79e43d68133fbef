/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_BUS_COMMAND_H
#define HUTCH_BRIDGE_BUS_COMMAND_H

/*
 * One command, from its message to the end of its reply.
 *
 *         read ─► waiting ─► running (hutchd) ─► answering ─► gone
 *            └──────────── refused ─────────────────┘
 *
 * A bus_command owns its message, what was read out of it, and the messages that it causes: events first, then
 * the reply; it is gone when the broker has them all, or they were given up. A command that does not say
 * where a reply goes is carried out and not hutchd_replied.
 */

#include "bridge/bridge.h"

struct outbound;

#define BUS_COMMAND_STOPPING STR("This sandbox service is being stopped. Try again.")
#define WAITING_BYTES_MAX    (256 * MiB) /* of all commands that wait */

struct bus_command {
        struct list node;
        struct map_node by_key;
        struct bridge *bridge;
        struct incoming *incoming;
        struct arena memory;
        struct command command;
        bool is_running, is_answering;
        bool answerable;
        struct hutchd_request hutchd_request;
        size_t n_outbound; /* not ended */
        size_t size;       /* of what was read */
};

/* Reads the message, which is the bus_command's now. If it is nothing that can be carried out, it is counted,
 * logged, hutchd_replied if that is possible, and gone; otherwise it waits. */
void bus_command_take(struct bridge *b, struct incoming *m);

/* Asks hutchd. */
void bus_command_start(struct bus_command *bus_command);

/* Answers one that waits with 503. */
void bus_command_refuse(struct bus_command *bus_command, struct str why);

/* Forgets one that waits, or that there is no time for. */
void bus_command_free(struct bus_command *bus_command);

/* Whether the command came by an earlier connection. */
bool bus_command_is_from_earlier_conn(const struct bus_command *bus_command);

void bus_command_sent(struct bus_command *bus_command, struct outbound *p, enum outcome outcome);

#endif
