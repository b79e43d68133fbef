/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_EXECD_EVENT_STREAM_H
#define HUTCH_EXECD_EVENT_STREAM_H

/*
 * A run told to one client: init, ping, lines of output, one last event.
 *
 * The producer calls event_stream_output as output comes in and must stop when it returns false (the
 * client does not keep up): ops->drain says when to go on. What it gave is never lost: the part that
 * found no room is kept here, at most one read of it for each stream.
 *
 * Life. The struct is the producer's. From event_stream_begin on exactly one of ops->ended (the
 * client has got everything we had to say) and ops->gone (it went away) is called; the memory may go
 * then.
 */

#include "execd/process.h"
#include "execd/lines.h"
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
                struct buf held; /* came in and found no room */
        } _outputs[PROCESS_STREAMS];
        struct net_task _end;
};

struct event_stream_options {
        struct str id;   /* the text of init */
        bool skip_empty; /* empty lines are left out; else their text is a line feed */
        bool exact;      /* output as it came, in base64, and not by lines */
};

/* Negative: no stream, nothing will be called (the client is gone, or asked by HEAD). */
int event_stream_begin(struct event_stream *es, struct http_req *req,
                       const struct event_stream_ops *ops, const struct event_stream_options *o)
        must_check;

/* False: not writable any more. */
bool event_stream_output(struct event_stream *es, enum process_stream stream, struct str bytes);

/* The last event, after whatever is still held; then the stream closes. */
void event_stream_end(struct event_stream *es, const struct process_result *r);

/* --- what a result means --- */

/* What a client sees as exit code: -1 if a signal ended it, 255 if it never started. */
int process_exit_code(const struct process_result *r);

/* "exit status 3", "signal: killed", "No such file or directory"; NULL for success. */
const char *process_error_text(const struct process_result *r, char ret[static 64]);

#endif
