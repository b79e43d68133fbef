/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/event_stream.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/base.h"
#include "base/base64.h"
#include "execd/agent.h"
#include "execd/event.h"

/* Events are collected here and written many at once: lines are short, and a write costs more than an
 * event. An event that does not fit is written alone, from the heap.
 *
 * There is one thread, and a batch never outlives a call: one static buffer serves all. On the stack it
 * would cost half a dozen page faults for each command: the compiler touches every page of so large an
 * object, and the fork of the supervisor has made them copy-on-write. */
#define BATCH_SIZE (24 * KiB)

static char batch_storage[BATCH_SIZE];

struct event_batch {
        struct http_req *req;
        usec_t wall;
        struct buf buf;
};

static void batch_init(struct event_batch *b, struct event_stream *es)
{
        b->req = es->sse.req;
        b->wall = clock_wall(es->_agent->clock);
        buf_init_fixed(&b->buf, batch_storage, sizeof(batch_storage));
}

/* Writes what was collected if n more bytes do not fit. */
static void batch_make_room(struct event_batch *b, size_t n)
{
        if (n <= buf_room(&b->buf))
                return;
        http_stream_write(b->req, buf_str(&b->buf));
        buf_reset(&b->buf);
}

/* --- output --- */

static void add_line(struct event_stream *es, struct event_batch *b, enum process_stream stream,
                     struct str line)
{
        enum event_type type = stream == PROCESS_STDERR ? EVENT_STDERR : EVENT_STDOUT;
        struct str text = line.n ? line : STR("\n");
        scoped(buf_done) struct buf large;

        buf_init(&large, HTTP_WRITE_MAX);
        if (line.n == 0 && es->_skip_empty)
                return;
        batch_make_room(b, EVENT_SIZE_MAX(text.n));
        if (EVENT_SIZE_MAX(text.n) <= buf_room(&b->buf)) {
                event_add_text(&b->buf, type, text, b->wall);
                return;
        }
        event_add_text(&large, type, text, b->wall);
        http_stream_write(b->req, buf_str(&large));
}

/* Three bytes become four characters. */
#define PIECE_MAX (BATCH_SIZE / 2)

bool event_stream_output(struct event_stream *es, enum process_stream stream, struct str bytes)
{
        enum event_type type = stream == PROCESS_STDERR ? EVENT_STDERR : EVENT_STDOUT;
        struct event_output *o = &es->_outputs[stream];
        struct event_batch b;
        struct str line;

        if (o->held.n > 0) {
                buf_add_str(&o->held, bytes);
                return false;
        }
        batch_init(&b, es);
        while (es->_exact && http_stream_writable(b.req) && bytes.n > 0) {
                struct str piece = str_of(bytes.p, MIN_OF(bytes.n, PIECE_MAX));

                batch_make_room(&b, BASE64_ENCODED(piece.n) + EVENT_SIZE_MAX(0));
                event_add_bytes(&b.buf, type, piece, b.wall);
                bytes = str_skip(bytes, piece.n);
        }
        while (!es->_exact && http_stream_writable(b.req) && lines_next(&o->lines, &bytes, &line))
                add_line(es, &b, stream, line);
        http_stream_write(b.req, buf_str(&b.buf));
        if (bytes.n > 0)
                buf_add_str(&o->held, bytes);
        return o->held.n == 0 && http_sse_writable(&es->sse);
}

/* --- the last event --- */

int process_exit_code(const struct process_result *r)
{
        if (r->error < 0)
                return 255;
        if (r->out_of_memory && WIFSIGNALED(r->status))
                return 128 + SIGKILL;
        return WIFEXITED(r->status) ? WEXITSTATUS(r->status) : -1;
}

const char *process_error_text(const struct process_result *r, char ret[static 64])
{
        if (r->error < 0) {
                (void) snprintf(ret, 64, "%s", err_text(r->error));
        } else if (r->out_of_memory && WIFSIGNALED(r->status)) {
                (void) snprintf(ret, 64, "OOM_KILLED: the sandbox ran out of memory");
        } else if (WIFSIGNALED(r->status)) {
                const char *name = sigdescr_np(WTERMSIG(r->status));

                (void) snprintf(ret, 64, "signal: %s", name ? name : "unknown");
                for (char *p = ret; *p; p++)
                        if (*p >= 'A' && *p <= 'Z')
                                *p = (char) (*p - 'A' + 'a');
        } else if (WEXITSTATUS(r->status) != 0) {
                (void) snprintf(ret, 64, "exit status %d", WEXITSTATUS(r->status));
        } else {
                return NULL;
        }
        return ret;
}

static void add_last(struct event_stream *es, struct event_batch *b)
{
        const struct process_result *r = &es->_result;
        usec_t took = clock_mono(es->_agent->clock) - es->_started;
        char text[64], code[16];
        struct event_error e = { .name = STR("CommandExecError") };

        if (!process_error_text(r, text)) {
                event_add_complete(&b->buf, took, b->wall);
                return;
        }
        e.exit_code = process_exit_code(r);
        e.signal = r->error == 0 && WIFSIGNALED(r->status) ? WTERMSIG(r->status) : 0;
        e.timed_out = r->timed_out;
        (void) snprintf(code, sizeof(code), "%d", e.exit_code);
        e.value = str_from(r->error < 0 ? text : code);
        e.trace[0] = str_from(text);
        if (r->timed_out)
                e.trace[1] = STR("the command did not end in time and was killed");
        event_add_error(&b->buf, &e, took, b->wall);
}

static void stream_done(struct event_stream *es)
{
        for (size_t i = 0; i < PROCESS_STREAMS; i++) {
                lines_done(&es->_outputs[i].lines);
                buf_done(&es->_outputs[i].held);
        }
}

/* With held output, or a client that is slow, the next drain comes here again. */
void event_stream_end(struct event_stream *es, const struct process_result *r)
{
        struct event_batch b;
        struct str line;

        es->_ending = true;
        es->_result = *r;
        for (size_t i = 0; i < PROCESS_STREAMS; i++)
                if (es->_outputs[i].held.n > 0)
                        return;
        if (!http_sse_writable(&es->sse))
                return;
        batch_init(&b, es);
        for (size_t i = 0; i < PROCESS_STREAMS; i++)
                if (lines_remainder(&es->_outputs[i].lines, &line))
                        add_line(es, &b, (enum process_stream) i, line);
        batch_make_room(&b, 1024);
        add_last(es, &b);
        http_stream_write(b.req, buf_str(&b.buf));
        http_sse_end(&es->sse);
        stream_done(es);
        es->ops->ended(es);
}

/* --- the client --- */

/* Sends held output; then the last event if the run has ended, else lets the producer continue. If held
 * output finds no room, the next drain comes here again. */
static void sse_drain(struct http_sse *s)
{
        struct event_stream *es = container_of(s, struct event_stream, sse);

        for (size_t i = 0; i < PROCESS_STREAMS; i++) {
                struct buf *held = &es->_outputs[i].held, before = *held;

                if (held->n == 0)
                        continue;
                buf_init(held, NET_READ_SIZE);
                (void) event_stream_output(es, (enum process_stream) i, buf_str(&before));
                buf_done(&before);
                if (held->n > 0)
                        return;
        }
        if (es->_ending)
                event_stream_end(es, &es->_result);
        else if (http_sse_writable(s))
                es->ops->drain(es);
}

static void sse_ping(struct http_sse *s)
{
        struct event_stream *es = container_of(s, struct event_stream, sse);
        struct event_batch b;

        batch_init(&b, es);
        event_add_text(&b.buf, EVENT_PING, STR("pong"), b.wall);
        http_stream_write(b.req, buf_str(&b.buf));
}

static void sse_gone(struct http_sse *s, int reason)
{
        struct event_stream *es = container_of(s, struct event_stream, sse);

        (void) reason;
        stream_done(es);
        es->ops->gone(es);
}

static const struct http_sse_ops sse_ops = {
        .drain = sse_drain,
        .ping = sse_ping,
        .gone = sse_gone,
};

int event_stream_begin(struct event_stream *es, struct http_req *req,
                       const struct event_stream_ops *ops, const struct event_stream_options *o)
{
        struct agent *a = agent_of(req);
        struct event_batch b;
        int r;

        *es = (struct event_stream){ .ops = ops,
                                     ._agent = a,
                                     ._started = clock_mono(a->clock),
                                     ._skip_empty = o->skip_empty,
                                     ._exact = o->exact };
        r = http_sse_begin(&es->sse, req, &a->event_group, &sse_ops);
        if (r < 0)
                return r;
        for (size_t i = 0; i < PROCESS_STREAMS; i++) {
                lines_init(&es->_outputs[i].lines, LINES_MAX);
                buf_init(&es->_outputs[i].held, NET_READ_SIZE);
        }
        batch_init(&b, es);
        event_add_text(&b.buf, EVENT_INIT, o->id, b.wall);
        event_add_text(&b.buf, EVENT_PING, STR("pong"), b.wall);
        http_stream_write(b.req, buf_str(&b.buf));
        return 0;
}
