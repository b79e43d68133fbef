/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_BRIDGE_H
#define HUTCH_BRIDGE_BRIDGE_H

/*
 * The bridge: commands come from a broker, are carried out by hutchd, and are hutchd_replied.
 *
 *         broker ─► broker_conn ─► waiting ─► running ─► hutchd
 *                     ▲                   │ answer
 *                     └───── replies ◄────┘
 *
 * One loop has everything: the connection to the broker (broker_conn.h), once a thread has made it, and hutchd
 * (hutchd.h).
 *
 * A command is a bus_command (bus_command.h) from the moment it is read until its reply is the broker's. At most in_flight
 * jobs run. That counts those, too, which are done but whose reply the broker does not have yet: so what is
 * kept while the broker is away is bounded, and is sent when it is back. Jobs that wait are bounded as
 * well; a command more than that is hutchd_replied with 503 at once. A broker that keeps what was not taken up
 * (AMQP) is asked for no more than can run.
 */

#include "base/base.h"
#include "base/id.h"
#include "base/map.h"
#include "bridge/hutchd_client.h"
#include "bridge/message.h"
#include "bridge/settings.h"
#include "bridge/broker_conn.h"
#include "net/loop.h"

/* clang-format off */
#define COUNTER_MAP(X)                                                              \
        X(received)      /* messages                                              */ \
        X(malformed)     /* that were none of PURISTA's commands                  */ \
        X(duplicate)     /* that were there already                               */ \
        X(dropped)       /* for which there was no room at all                    */ \
        X(busy)          /* that were hutchd_replied with 503 because too many waited   */ \
        X(started)       /* commands that hutchd was asked for                    */ \
        X(succeeded)     /* replies of success                                    */ \
        X(failed)        /* replies of failure                                    */ \
        X(too_large)     /* of those, because the broker would not take the reply */ \
        X(unaddressed)   /* commands that did not say where a reply goes          */ \
        X(undeliverable) /* replies for which there was nobody any more           */ \
        X(resent)        /* messages of ours that were sent again                 */ \
        X(events)        /* that were published                                   */ \
        X(connections)   /* to the broker                                         */
/* clang-format on */

struct counters {
#define X(name) uint64_t name;
        COUNTER_MAP(X)
#undef X
};

struct bridge {
        const struct settings *settings;
        const struct log_ctx *log;
        struct counters count;
        struct ids ids;
        char instance[ID_HEX_LEN + 1];

        struct broker_conn broker_conn;
        bool up;
        uint64_t epoch;
        size_t body_max;

        struct hutchd hutchd;

        struct list waiting, running; /* struct bus_command */
        size_t n_waiting, n_running;
        size_t waiting_bytes;
        size_t n_answering; /* jobs that only wait for their reply to go */
        struct map by_key;
        struct list unsent; /* struct outbound: until the broker is back */
        struct list retry;  /* struct outbound: until somebody listens */

        struct net_loop loop;
        uv_signal_t on_term, on_int, on_usr1;
        uv_timer_t retry_timer, drain_timer;
        bool stopping;
};

/* Runs until a signal ends it; the exit status. */
int bridge_run(const struct settings *settings, const struct log_ctx *log);

/* --- for jobs --- */

/* Whoever writes a message now. */
struct author bridge_author(struct bridge *b);

/* Starts what may run, and ends the bridge if it is to end and nothing is left. */
void bridge_next(struct bridge *b);

/* Something is in the list `retry`. */
void bridge_retry_later(struct bridge *b);

#endif
