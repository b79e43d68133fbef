/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BENCH_BUS_H
#define HUTCH_BENCH_BUS_H

/*
 * A message broker as an application of PURISTA uses it: a caller that sends a command and waits for the reply, and an
 * echo that sends back what it receives. Both are on the same broker, with the same library, and use the
 * names, exchanges and qualities of service that an application and hutch-bridge use. The echo does nothing but
 * wait, if the message says so, and reports how long it waited. So the time of a call, without that wait, is what
 * the broker takes.
 *
 * One connection for each process. Any failure ends the program.
 */

#include <stdbool.h>
#include <stddef.h>

#define BUS_CALLER    "benchcaller" /* instances: words that snake case does not change */
#define BUS_ECHO      "benchechoer"
#define BUS_WHO       "default" /* tenant and principal */
#define BUS_SANDBOX   "Sandbox" /* services */
#define BUS_ECHOER    "Echo"
#define BUS_TIMEOUT_S 30

struct bus_message {
        const char *service; /* receiver: BUS_SANDBOX or BUS_ECHOER */
        const char *topic;   /* the same in snake case */
        const char *correlation;
        const char *body;
        size_t n;
};

struct bus_reply {
        const char *body; /* until the next call; no NUL at its end */
        size_t n;
};

struct bus_ops {
        const char *kind;
        void (*connect)(const char *port, const char *instance);
        /* Sends a command, executeBash of a service, and returns with the reply. */
        struct bus_reply (*call)(const struct bus_message *m);
        /* Replies to commands for BUS_ECHOER with what `answer` returns. Calls `ready` once it is subscribed; does
         * not return. */
        void (*echo)(void (*ready)(void), struct bus_reply (*answer)(const char *body, size_t n));
};

/* Of every reply, as bridges write them. */
struct bus_header {
        const char *name, *value;
};

#define BUS_HEADERS_N 12
extern const struct bus_header bus_headers[BUS_HEADERS_N];

extern const struct bus_ops bus_nats, bus_mqtt, bus_amqp;

#endif
