/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_BRIDGE_H
#define HUTCH_BRIDGE_BRIDGE_H

/*
 * The bridge receives commands from a broker, has hutchd execute them, and sends the replies. bridge.c starts with
 * how it works.
 */

#include "base/base.h"
#include "base/id.h"
#include "base/map.h"
#include "bridge/broker_conn.h"
#include "bridge/hutchd_client.h"
#include "bridge/message.h"
#include "bridge/settings.h"
#include "bridge/shares.h"
#include "net/alarm.h"
#include "net/loop.h"
#include "os/sd_notify.h"

/* clang-format off */
#define COUNTER_MAP(X)                                                              \
        X(received)      /* messages                                              */ \
        X(malformed)     /* of these, not a command of PURISTA                    */ \
        X(duplicate)     /* of these, delivered before                            */ \
        X(dropped)       /* of these, without memory left for a reply             */ \
        X(busy)          /* commands refused with 503 because too many waited     */ \
        X(expired)       /* commands ended or not started: the caller has given up */ \
        X(started)       /* requests to hutchd                                    */ \
        X(succeeded)     /* replies of success                                    */ \
        X(failed)        /* replies of failure                                    */ \
        X(too_large)     /* of these, because the broker did not accept the reply */ \
        X(unaddressed)   /* commands without a reply address                      */ \
        X(undeliverable) /* replies without a receiver                            */ \
        X(resent)        /* outbound messages that were sent again                */ \
        X(events)        /* published                                             */ \
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

        struct broker_conn conn;
        bool up;
        uint64_t epoch;
        size_t body_max;

        struct hutchd_client hutchd;

        struct shares shares;    /* of bus commands that wait or run */
        struct alarms deadlines; /* of their callers */
        struct list unreplied;   /* struct bus_command: those that run and those that are refused */
        size_t n_refused;        /* the latter: they only wait until their reply is sent */
        struct map by_key;       /* struct bus_command */
        struct list unsent;      /* struct outbound: until the broker is back */
        struct list retry;       /* struct outbound: until there is a receiver */

        struct net_loop loop;
        struct sd_notify notify;
        uv_signal_t on_term, on_int, on_usr1;
        uv_timer_t retry_timer, drain_timer;
        bool stopping;
};

/* Runs until a signal ends it; returns the exit status. */
int bridge_run(const struct settings *settings, const struct log_ctx *log);

/* --- for bus commands --- */

/* The author of a message that is written now. */
struct author bridge_author(struct bridge *b);

/* Starts waiting commands, and ends the bridge if it is stopping and idle. */
void bridge_next(struct bridge *b);

#endif
