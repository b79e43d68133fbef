/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_FRAMING_H
#define HUTCH_CLIENT_FRAMING_H

/*
 * Splits event streams into events.
 *
 * Three framings are in use; the lines show which one it is:
 *
 *         {"type":"init",…}                  one line of JSON, then an empty line (agents of the API)
 *         data: {"type":"init",…}            text/event-stream as browsers know it
 *         {"cpu_count":…}                    one line of JSON, and the next line is the next event
 *
 * The last one must be selected (`lines`), because it cannot be distinguished from a JSON document of several
 * lines, which the first one allows. Lines end in LF or CR LF. The fields event, id and retry of
 * text/event-stream, and comments, are skipped: the data contains the same information.
 *
 * Input is hostile: an event longer than the maximum ends the stream.
 */

#include "base/buf.h"

struct framing {
        struct buf block; /* the event so far */
        size_t line;      /* start of its unfinished line */
        bool lines;       /* each line is an event */
        bool any;         /* the event has a line */
};

/* 0, or a negative value to stop. */
typedef int framing_event_fn(void *data, struct str event);

void framing_init(struct framing *f, size_t max, bool lines);
void framing_done(struct framing *f);

/* Calls `event` for each complete event. -E2BIG: over the maximum; -ENOMEM; or the result of `event`. */
int framing_feed(struct framing *f, struct str bytes, framing_event_fn *event, void *data)
        must_check;

/* The stream has ended: delivers an event without its empty line. */
int framing_finish(struct framing *f, framing_event_fn *event, void *data) must_check;

#endif
