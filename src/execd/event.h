/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_EVENT_H
#define HUTCH_EXECD_EVENT_H

/*
 * The events of a run, in the form that clients expect: one line of bare JSON each, then an empty line.
 *
 *         {"type":"stdout","text":"hello","timestamp":1700000000000}
 *
 * Every event has a type and a time; empty members and an execution_time of 0 are omitted. Invalid UTF-8
 * becomes U+FFFD; every character that a reader might take for a line end is escaped (base/buf.h).
 */

#include "base/buf.h"
#include "base/clock.h"

enum event_type {
        EVENT_INIT,
        EVENT_PING,
        EVENT_STDOUT,
        EVENT_STDERR,
        EVENT_ERROR,
        EVENT_COMPLETE,
};

/* Upper bound of an event with a text of n bytes. */
#define EVENT_SIZE_MAX(n) (6 * (n) + 128)

/* wall: now. */
void event_add_text(struct buf *b, enum event_type type, struct str text, usec_t wall);

/* The exact bytes, in a member "base64" instead of the text. */
void event_add_bytes(struct buf *b, enum event_type type, struct str bytes, usec_t wall);

/* took: how long the run lasted. */
void event_add_complete(struct buf *b, usec_t took, usec_t wall);

struct event_error {
        struct str name;     /* "CommandExecError" */
        struct str value;    /* the exit code, or why it could not start */
        struct str trace[2]; /* null views are omitted */
        int exit_code;       /* for clients that look for a number */
        int signal;          /* that ended the program, or 0 */
        bool timed_out;
};
void event_add_error(struct buf *b, const struct event_error *e, usec_t took, usec_t wall);

#endif
