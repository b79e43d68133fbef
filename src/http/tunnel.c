/* SPDX-License-Identifier: Apache-2.0 */
#include "http/tunnel.h"

#include "base/base.h"

void http_tunnel_pause(struct http_tunnel *t)
{
        t->paused = true;
        if (t->stream)
                stream_pause_reading(t->stream);
}

void http_tunnel_resume(struct http_tunnel *t)
{
        t->paused = false;
        if (t->stream)
                stream_resume_reading(t->stream);
}

void http_tunnel_close(struct http_tunnel *t)
{
        if (t->_conn)
                t->_close(t);
}

/* --- pumps --- */

static struct pump_end *end_of(struct http_tunnel *t)
{
        return container_of(t, struct pump_end, tunnel);
}

static struct pump_end *other_of(struct pump_end *e)
{
        return e == &e->pump->a ? &e->pump->b : &e->pump->a;
}

static bool is_open(const struct pump_end *e)
{
        return !e->closed && e->tunnel.stream;
}

static void note_activity(struct http_pump *p)
{
        struct timeout_kind *kind;

        if (!is_open(&p->a) || !is_open(&p->b))
                return; /* the kinds may have been freed */
        kind = p->idle;
        if ((p->a.eof || p->b.eof) && p->half_closed->length < kind->length)
                kind = p->half_closed;
        if (kind->length != USEC_INFINITY)
                timeout_set(&p->timeout, kind);
}

/* Closes a side once everything was delivered to it and nothing more can come. */
static void settle(struct http_pump *p)
{
        struct pump_end *ends[] = { &p->a, &p->b };
        bool over = p->a.eof && p->b.eof;

        for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
                if ((over || other_of(ends[i])->closed) && is_open(ends[i])
                    && stream_pending(ends[i]->tunnel.stream) == 0)
                        http_tunnel_close(&ends[i]->tunnel);
}

static void pump_data(struct http_tunnel *t, char *p, size_t n)
{
        struct pump_end *e = end_of(t), *to = other_of(e);

        if (!is_open(to))
                return;
        stream_queue(to->tunnel.stream, str_of(p, n));
        if (stream_pending(to->tunnel.stream) >= PUMP_LOW)
                stream_pause_reading(t->stream);
        note_activity(e->pump);
}

static void pump_eof(struct http_tunnel *t)
{
        struct pump_end *e = end_of(t), *to = other_of(e);

        e->eof = true;
        if (is_open(to))
                stream_shutdown(to->tunnel.stream);
        note_activity(e->pump);
        settle(e->pump);
}

static void pump_drained(struct http_tunnel *t)
{
        struct pump_end *e = end_of(t), *from = other_of(e);

        if (is_open(from) && !from->eof && !from->tunnel.stream->reading)
                stream_resume_reading(from->tunnel.stream);
        note_activity(e->pump);
        settle(e->pump);
}

static void pump_closed(struct http_tunnel *t, int reason)
{
        struct pump_end *e = end_of(t);
        struct http_pump *p = e->pump;

        (void) reason;
        e->closed = true;
        timeout_clear(&p->timeout);
        if (other_of(e)->closed)
                p->ended(p); /* may free p */
        else
                settle(p);
}

static const struct http_tunnel_ops pump_ops = {
        .data = pump_data,
        .eof = pump_eof,
        .drained = pump_drained,
        .closed = pump_closed,
};

void http_pump_init(struct http_pump *p, struct timeout_kind *idle,
                    struct timeout_kind *half_closed, http_pump_ended_fn *ended)
{
        *p = (struct http_pump){
                .a = { .tunnel = { .ops = &pump_ops }, .pump = p },
                .b = { .tunnel = { .ops = &pump_ops }, .pump = p },
                .ended = ended,
                .idle = idle,
                .half_closed = half_closed,
        };
        timeout_init(&p->timeout);
}

void http_pump_timed_out(struct timeout *t)
{
        struct http_pump *p = container_of(t, struct http_pump, timeout);

        http_tunnel_close(&p->a.tunnel);
        http_tunnel_close(&p->b.tunnel);
}
