/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_FRAMING_H
#define HUTCH_CLIENT_FRAMING_H

/*
 * Event streams, cut into events.
 *
 * Three framings are in use, and which one comes is seen from the lines themselves:
 *
 *         {"type":"init",…}                  one line of JSON, then an empty line (agents of the API)
 *         data: {"type":"init",…}            text/event-stream as browsers know it
 *         {"cpu_count":…}                    one line of JSON, and the next line is the next event
 *
 * The last is asked for (`lines`), as it can't be told from a JSON text that goes over several lines,
 * which the first allows. Lines end in LF or CR LF. Of text/event-stream the fields event, id and
 * retry and comments are left out: what they say is in the data, too.
 *
 * Everything here is an outsider's: an event longer than the maximum ends the stream.
 */

#include "base/buf.h"

struct framing {
        struct buf block; /* the event so far */
        size_t line;      /* where in it the unfinished line begins */
        bool lines;       /* each line is an event */
        bool any;         /* a line of the event has been there */
};

/* 0, or a negative value that ends the reading. */
typedef int framing_event_fn(void *data, struct str event);

void framing_init(struct framing *f, size_t max, bool lines);
void framing_done(struct framing *f);

/* Calls `event` for each event that is complete now. -E2BIG: one is over the maximum; -ENOMEM; or what
 * event returned. */
int framing_feed(struct framing *f, struct str bytes, framing_event_fn *event, void *data)
        must_check;

/* The stream has ended: an event without its empty line counts. */
int framing_finish(struct framing *f, framing_event_fn *event, void *data) must_check;

#endif
