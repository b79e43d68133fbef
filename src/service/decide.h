/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_SERVICE_DECIDE_H
#define HUTCH_SERVICE_DECIDE_H

/*
 * All rules about states: from time, record, command and perhaps a driver's result to what has to be done next. Pure:
 * it reads no clock, calls nothing and keeps nothing.
 *
 * A command is a few decisions in a row. The first is made without a driver's result. Each says what to write, and
 * then which call to make; the result of the call leads to the next decision:
 *
 *         delete:  ─► write Stopping, call DESTROY ─► (0) UNREGISTER
 *                                                  ─► (an error) LATER
 *
 * Within one decision the order is fixed: first the write, if there is one, then `next`. When the write fails,
 * decide_unwritten says how to go on.
 *
 * A crash may come between any two steps. It leaves a record, and something or nothing in the runtime;
 * COMMAND_RECONCILE brings the two together again: at the start, periodically, and after each failure. Its rules are
 * the crash table of docs/internals/service.md.
 */

#include "driver/driver.h"
#include "model/expiry.h"
#include "model/sandbox.h"

enum command {
        COMMAND_CREATE,
        COMMAND_DELETE,
        COMMAND_PAUSE,
        COMMAND_RESUME,
        COMMAND_RENEW,
        COMMAND_PATCH,
        COMMAND_SNAPSHOT,
        COMMAND_ACCESS,    /* a request was sent into it: renews if the extension is set */
        COMMAND_EXPIRE,    /* its deadline has passed, unless it was renewed */
        COMMAND_FORGET,    /* the tombstone has expired */
        COMMAND_RECONCILE, /* make the record agree with the runtime */
        COMMAND_MAX_,
        COMMAND_INVALID_ = -EINVAL,
};

ENUM_DECLARE(command); /* create, delete … */

enum call {
        CALL_NOTHING,
        CALL_CREATE,
        CALL_DESTROY,
        CALL_PAUSE,
        CALL_RESUME,
        CALL_INSPECT,
        CALL_PING, /* the agent */
        CALL_SNAPSHOT,
        CALL_MAX_,
};

/* Reasons of the service; drivers add their own for deaths. */
#define REASON_RUNNING     "CONTAINER_RUNNING"
#define REASON_PAUSED      "CONTAINER_PAUSED"
#define REASON_DELETED     "DELETED"
#define REASON_EXPIRED     "EXPIRED"
#define REASON_EXITED      "EXITED"
#define REASON_DIED        "DIED"
#define REASON_GONE        "GONE"
#define REASON_INTERRUPTED "INTERRUPTED"

struct command_args {
        enum command command;
        unsigned caps;     /* of the driver */
        usec_t expires;    /* RENEW: wall time */
        bool found;        /* RECONCILE: a scan has found it, so the driver's handle is available */
        bool health_known; /* RECONCILE: `health` is current; otherwise the driver is asked first */
        bool preempted;    /* a delete or an expiry waits for this to end */

        /* RECONCILE: what a scan or a death report said. If the runtime says that the sandbox is gone, this is the
         * reason. */
        struct driver_health health;
};

struct call_result {
        enum call call;
        int result;                  /* as the driver returned it */
        const struct err *err;       /* if it is negative */
        struct driver_health health; /* of CALL_INSPECT */
};

enum next {
        NEXT_DONE,
        NEXT_REFUSE,     /* with err; nothing is written */
        NEXT_CALL,       /* `call`; decide again with its result */
        NEXT_AGAIN,      /* decide again: the first of two steps was written */
        NEXT_UNREGISTER, /* remove the record */
        NEXT_LATER,      /* failed half-way: COMMAND_RECONCILE after a while */
};

struct decision {
        enum next next;
        enum call call;
        bool fails; /* the caller gets the driver's error */

        /* What is written before that, in one write. */
        bool changes;
        struct status_step step;
        bool renews;
        struct expiry expiry;
        bool sets_handle; /* the driver's */
        bool patches;     /* the metadata */
        bool explains;    /* the state stays, with the reason and message of `step` */

        const char *event; /* sent after the write, or at once if nothing is written */
        struct err err;    /* of NEXT_REFUSE */
};

/* result is NULL at first. record is NULL if there is none (any more). */
struct decision decide(const struct timestamp *now, const struct sandbox *record,
                       const struct command_args *args, const struct call_result *result);

/* The write of a decision has failed. `result` is what had led to it. */
struct decision decide_unwritten(const struct command_args *args, const struct call_result *result);

/* Whether a command goes before those that wait, and cancels another one's driver call. */
bool command_preempts(enum command c);

/* Whether it only writes: it needs the record lock and no operation lock. */
bool command_only_writes(enum command c);

/* Stopping, Terminated or Failed. */
bool state_is_ending(enum state s);

/* Accesses renew no more often than this. */
#define ACCESS_RENEW_EVERY (60 * USEC_PER_SEC)

#endif
