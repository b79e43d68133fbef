/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_COMMAND_EVENT_H
#define HUTCH_CLIENT_COMMAND_EVENT_H

/*
 * What the events of a command say, whatever spelling they have.
 *
 * Output is `text` (a line without its end; "\n" is an empty one), `data`, or `base64`, byte for byte.
 * The end is told by `execution_complete` or `error`. The exit code is, in this order:
 *
 *         an `error` whose `error.evalue` is a number above 0       that number
 *         `exitCode`, on either                                     that number
 *         an `error` without any                                    -1
 *         `execution_complete`                                      0
 *
 * and an `error` never counts as 0. The signal is `signal`, or what the traceback says in words
 * ("signal: killed"). Duration is `durationMs`, or `execution_time`. An object without a type, but with
 * `code` and `message`, is how some agents tell that they failed after the stream had begun.
 */

#include <jansson.h>

#include "base/str.h"

enum command_event_type {
        COMMAND_EVENT_NONE,    /* pings, and what we do not know */
        COMMAND_EVENT_STARTED, /* id */
        COMMAND_EVENT_STDOUT,
        COMMAND_EVENT_STDERR,
        COMMAND_EVENT_ENDED,
        COMMAND_EVENT_FAILED, /* code, message */
};

struct command_event {
        enum command_event_type kind;
        struct str text; /* of output; the id; the words of a failure or an error, or null */
        bool is_line;    /* the text is a line that lost its end */
        bool is_base64;
        struct str code; /* of COMMAND_EVENT_FAILED */
        int exit_code;
        int signal;
        bool timed_out;
        int64_t duration_ms;
};

/* -EINVAL if it is no event at all. Texts are views into the document. */
int command_event_read(const json_t *event, struct command_event *ret) must_check;

/* The number of a signal by its name or description, any case: "killed", "SIGTERM", "terminated"; or
 * 0. */
int signal_from_text(struct str text);

#endif
