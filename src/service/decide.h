/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_SERVICE_DECIDE_H
#define HUTCH_SERVICE_DECIDE_H

/*
 * All rules about states, and nothing else: from the timestamp, the record and what is wanted (or what
 * the driver has answered) to what is to be done next. Pure: it reads no clock, calls nobody and
 * keeps nothing.
 *
 * A command is a few decisions in a row. The first is made without an answer; each says what to
 * write, and then whom to ask; the answer leads to the next:
 *
 *         delete:  ─► write Stopping, ask DESTROY ─► (0) UNREGISTER
 *                                                 ─► (an error) LATER
 *
 * So the order within one decision is fixed: first the write, if there is one, then `next`. When the
 * write fails, decide_unwritten says how to go on.
 *
 * A crash may come between any two of these. What it leaves is a record, and something or nothing in
 * the runtime; COMMAND_RECONCILE is the command that brings the two together again, at the start, from
 * time to time, and after every failure. Its rules are the crash table of docs/internals/service.md.
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
        COMMAND_ACCESS,    /* somebody went into it: renews if the extension is there */
        COMMAND_EXPIRE,    /* its time may be over */
        COMMAND_FORGET,    /* the tombstone's time is over */
        COMMAND_RECONCILE, /* does the record say what the runtime shows? */
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
        CALL_PING, /* its agent */
        CALL_SNAPSHOT,
        CALL_MAX_,
};

/* Reasons that we give; drivers have more of their own for deaths. */
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
        unsigned caps;     /* of its driver */
        usec_t expires;    /* RENEW: wall time */
        bool found;        /* LOOK: a scan has found it, so the driver's notes are at hand */
        bool health_known; /* LOOK: `health` is what the driver said, else it has to be asked */
        bool preempted;    /* a delete or the expiry waits for this to end */

        /* LOOK: what a scan or the news of a death said. If the runtime says it is gone, this is
         * why. */
        struct driver_health health;
};

struct call_result {
        enum call call;
        int result;                  /* as the driver gave it */
        const struct err *err;       /* if it is negative */
        struct driver_health health; /* of CALL_INSPECT */
};

enum next {
        NEXT_DONE,
        NEXT_REFUSE,     /* with err; nothing is written */
        NEXT_CALL,       /* `ask`; decide again with its answer */
        NEXT_AGAIN,      /* decide again: one step of two was written */
        NEXT_UNREGISTER, /* the record goes */
        NEXT_LATER,      /* failed on the way: COMMAND_RECONCILE after a while */
};

struct decision {
        enum next next;
        enum call call;
        bool fails; /* the caller is told the driver's error */

        /* What is written before that, in one write. */
        bool changes;
        struct status_step step;
        bool renews;
        struct expiry expiry;
        bool sets_handle; /* the driver's handle */
        bool patches;     /* the metadata */
        bool explains;    /* the state stays, with the reason and message of `step` */

        const char *event; /* told when it was written, or at once if nothing is */
        struct err err;    /* of NEXT_REFUSE */
};

/* answer is NULL at first. record is NULL if there is none (any more). */
struct decision decide(const struct timestamp *now, const struct sandbox *record,
                       const struct command_args *w, const struct call_result *answer);

/* The write of a decision has failed. answer is what had led to it. */
struct decision decide_unwritten(const struct command_args *w, const struct call_result *answer);

/* Whether a command goes before those that wait, and ends what the driver is doing for another. */
bool command_preempts(enum command c);

/* Whether it only writes: it never asks the driver, and need not wait while somebody else does. */
bool command_only_writes(enum command c);

/* It is being ended, or has ended. */
bool state_is_ending(enum state s);

/* See service_check_ingress. */
int decide_ingress(const struct sandbox *record, usec_t *ret_retry_after, struct err *e) must_check;

/* Accesses lengthen a life no more often than this. */
#define ACCESS_RENEW_EVERY (60 * USEC_PER_SEC)

#endif
