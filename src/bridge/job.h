/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_BRIDGE_JOB_H
#define HUTCH_BRIDGE_JOB_H

/*
 * One command, from its message to the end of its reply.
 *
 *         read ─► waiting ─► running (hutchd) ─► answering ─► gone
 *            └──────────── refused ─────────────────┘
 *
 * A job owns its message, what was read out of it, and the messages that it causes: events first, then
 * the reply; it is gone when the broker has them all, or they were given up. A command that does not say
 * where a reply goes is carried out and not answered.
 */

#include "bridge/bridge.h"

struct parcel;

#define JOB_STOPPING      STR("This sandbox service is being stopped. Try again.")
#define WAITING_BYTES_MAX (256 * MiB) /* of all commands that wait */

struct job {
        struct list node;
        struct map_node by_key;
        struct bridge *bridge;
        struct incoming *incoming;
        struct arena memory;
        struct command command;
        bool is_running, is_answering;
        bool answerable;
        struct question question;
        size_t parcels; /* not ended */
        size_t size;    /* of what was read */
};

/* Reads the message, which is the job's now. If it is nothing that can be carried out, it is counted,
 * logged, answered if that is possible, and gone; otherwise it waits. */
void job_take(struct bridge *b, struct incoming *m);

/* Asks hutchd. */
void job_start(struct job *job);

/* Answers one that waits with 503. */
void job_refuse(struct job *job, struct str why);

/* Forgets one that waits, or that there is no time for. */
void job_free(struct job *job);

/* Whether the command came by an earlier connection. */
bool job_is_from_before(const struct job *job);

void job_parcel_ended(struct job *job, struct parcel *p, enum outcome outcome);

#endif
