/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_EVENT_STREAM_H
#define HUTCH_EXECD_EVENT_STREAM_H

/*
 * A run as a stream of events to one client: init, ping, lines of output, one last event.
 *
 * The producer calls event_stream_output as output arrives and must stop when it returns false (the client
 * is slow); ops->drain says when to continue. No output is lost: what found no room is held here, at most
 * one read for each stream.
 *
 * Lifetime. The producer owns the struct. After event_stream_begin exactly one of ops->ended (everything
 * was sent) and ops->gone (the client disconnected) is called; then the memory may be freed.
 */

#include "execd/lines.h"
#include "execd/process.h"
#include "http/sse.h"

struct agent;
struct event_stream;

struct event_stream_ops {
        void (*drain)(struct event_stream *es);
        void (*ended)(struct event_stream *es);
        void (*gone)(struct event_stream *es);
};

struct event_stream {
        struct http_sse sse;
        const struct event_stream_ops *ops;
        struct agent *_agent;
        usec_t _started; /* monotonic */
        bool _skip_empty, _exact;
        bool _ending;
        struct process_result _result;
        struct event_output {
                struct lines lines;
                struct buf held; /* output that found no room */
        } _outputs[PROCESS_STREAMS];
};

struct event_stream_options {
        struct str id;   /* the text of init */
        bool skip_empty; /* omit empty lines; else their text is a line feed */
        bool exact;      /* output byte for byte, in base64, and not by lines */
};

/* Negative: no stream, nothing will be called (the client is gone, or sent HEAD). */
int event_stream_begin(struct event_stream *es, struct http_req *req,
                       const struct event_stream_ops *ops, const struct event_stream_options *o)
        must_check;

/* False: not writable any more. */
bool event_stream_output(struct event_stream *es, enum process_stream stream, struct str bytes);

/* Sends the last event, after any held output, and closes the stream. May call ops->ended from inside. */
void event_stream_end(struct event_stream *es, const struct process_result *r);

/* --- the meaning of a result --- */

/* The exit code that clients see: -1 if a signal ended the program, 137 if a lack of memory did, 255 if it never
 * started. */
int process_exit_code(const struct process_result *r);

/* "exit status 3", "signal: killed", "OOM_KILLED: …", "No such file or directory"; NULL for success. */
const char *process_error_text(const struct process_result *r, char ret[static 64]);

#endif
