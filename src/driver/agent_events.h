/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_DRIVER_AGENT_EVENTS_H
#define HUTCH_DRIVER_AGENT_EVENTS_H

/*
 * The events of a command as an agent tells them (execd/event.h), read back: bytes of output, and how
 * it ended.
 *
 * Written by whoever is in the agent's place. A line is bounded, an event is strictly the one we
 * asked for (output in base64), there is exactly one last event, and nothing comes behind it. What
 * does not fit stops the reader: -EBADMSG, and `reason` says why in words of ours.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/compiler.h"

/* Of one event. The agent's own are half as long: 12 KiB of output in base64. Not more than is needed:
 * who fills an event with tiny values makes us allocate one by one, and that holds up the loop. */
#define AGENT_EVENT_MAX (32 * KiB)

enum agent_end {
        AGENT_END_NONE,        /* not yet */
        AGENT_END_EXITED,      /* exit_code; of a signal: 128 and its number */
        AGENT_END_TIMED_OUT,   /* killed because its time was over */
        AGENT_END_NOT_STARTED, /* reason: the agent's own words */
};

struct agent_events {
        struct buf *out, *err_out; /* where output goes; the caller's */
        enum agent_end end;
        int exit_code;
        char reason[256]; /* one printable line */

        struct buf _line;
        struct arena _arena;
};

void agent_events_init(struct agent_events *v, struct buf *out, struct buf *err_out);
void agent_events_done(struct agent_events *v);

/* 0; -EBADMSG; -ENOBUFS if one of the outputs is full: it holds as much as fits. Not to be called
 * again after a failure. */
int agent_events_feed(struct agent_events *v, struct str bytes) must_check;

/* The stream has ended: -EBADMSG if the command has not. */
int agent_events_finish(struct agent_events *v) must_check;

#endif
