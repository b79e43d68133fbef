/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_CLIENT_COMMAND_EVENT_H
#define HUTCH_CLIENT_COMMAND_EVENT_H

/*
 * Interprets the events of a command, in all spellings.
 *
 * Output is `text` (a line without its end; "\n" is an empty one), `data`, or `base64`, the exact bytes.
 * `execution_complete` or `error` ends a command. The exit code is, in this order:
 *
 *         an `error` whose `error.evalue` is a number above 0       that number
 *         `exitCode`, on either                                     that number
 *         an `error` without any                                    -1
 *         `execution_complete`                                      0
 *
 * and an `error` is never 0. The signal is `signal`, or the description in the traceback ("signal:
 * killed"). The duration is `durationMs` or `execution_time`. Some agents send an object without a type but
 * with `code` and `message` when they fail after the stream has begun.
 */

#include <jansson.h>

#include "base/str.h"

enum command_event_type {
        COMMAND_EVENT_NONE,    /* pings and unknown events */
        COMMAND_EVENT_STARTED, /* id */
        COMMAND_EVENT_STDOUT,
        COMMAND_EVENT_STDERR,
        COMMAND_EVENT_ENDED,
        COMMAND_EVENT_FAILED, /* code, message */
};

struct command_event {
        enum command_event_type kind;
        struct str text; /* output; the id; the text of a failure, or null */
        bool is_line;    /* the text is a line without its end */
        bool is_base64;
        struct str code; /* of COMMAND_EVENT_FAILED */
        int exit_code;
        int signal;
        bool timed_out;
        int64_t duration_ms;
};

/* -EINVAL if it is not an event. Texts are views into the document. */
int command_event_read(const json_t *event, struct command_event *ret) must_check;

/* The signal with that name or description, in any case: "killed", "SIGTERM", "terminated"; or 0. */
int signal_from_text(struct str text);

#endif
