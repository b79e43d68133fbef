/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "base/base.h"
#include "engine/names.h"
#include "engine/worker.h"
#include "model/text.h"

/*
 * The engine's stream of events, for as long as we live: when it breaks off it is opened anew, first at
 * once, then later and later. What happened in between is hutchd's to find out: it is told that the stream
 * has begun, and compares.
 *
 * An event is only a reason to look: what is told is what the engine says about the container then. So
 * neither an old event nor one of a container that has its name again does harm.
 */

#define EVENT_MAX   (RECORD_TEXT_MAX * 2 + MiB) /* it brings all labels */
#define WAIT_MIN_MS 50
#define WAIT_MAX_MS 5000

/* How far back the stream begins: its head may be sent before the engine listens to itself. */
#define OVERLAP_S 2

struct events {
        struct worker *worker;
        struct ask ask;
        struct pieces pieces;
        uv_timer_t timer;
        unsigned wait_ms;
        bool begun;
        bool freeing;
        bool away; /* said so in the log */
};

static void open_stream(struct events *ev);

static int on_event(void *data, struct str object)
{
        struct events *ev = data;
        struct worker *w = ev->worker;
        struct engine_event event;
        struct arena a;
        struct err e;
        int r;

        arena_init(&a, 4 * EVENT_MAX);
        r = engine_event_decode(object, &a, &event, &e);
        if (r == 0 && event.is_end && event.sandbox.p
            && str_eq(event.installation, w->settings->installation)
            && sandbox_id_is_valid(event.sandbox)
            && engine_name_is(event.name, event.sandbox, w->settings->installation)) {
                jobs_recheck(w, event.sandbox);
                if (!job_is_about(w, event.sandbox))
                        job_reconcile(w, event.sandbox);
        }
        arena_done(&a);
        return r < 0 ? -EBADMSG : 0;
}

static void stream_begun(struct ask *k)
{
        struct events *ev = container_of(k, struct events, ask);
        struct worker *w = ev->worker;

        ev->begun = true;
        if (ev->away)
                log_info(w->log, "the engine is back");
        ev->away = false;
        engine_worker_send(w, &(struct engine_message){ .watching = true }, -EBADF);
        jobs_recheck(w, STR_NULL);
        undo_all(w);
}

static void timer_fired(uv_timer_t *t)
{
        open_stream(container_of(t, struct events, timer));
}

static void timer_closed(uv_handle_t *h)
{
        struct events *ev = container_of((uv_timer_t *) (void *) h, struct events, timer);
        struct worker *w = ev->worker;

        api_call_done(&ev->ask);
        json_stream_done(&ev->pieces);
        free(ev);
        engine_worker__part_closed(w);
}

static void stream_ended(struct ask *k)
{
        struct events *ev = container_of(k, struct events, ask);
        struct worker *w = ev->worker;
        struct err e;

        if (ev->freeing) {
                uv_close((uv_handle_t *) &ev->timer, timer_closed);
                return;
        }
        if (!ev->away && !ev->begun) {
                (void) api_call_error(k, &e, "listen to its events");
                log_fields(w->log, LOG_WARN, "no events", LOG_F_STR("error", str_from(e.message)));
                ev->away = true;
        }
        ev->wait_ms = ev->begun ? WAIT_MIN_MS : MIN_OF(ev->wait_ms * 2, WAIT_MAX_MS);
        ev->begun = false;
        (void) uv_timer_start(&ev->timer, timer_fired, ev->wait_ms, 0);
}

static void open_stream(struct events *ev)
{
        struct worker *w = ev->worker;

        json_stream_done(&ev->pieces);
        json_stream_init(&ev->pieces, EVENT_MAX, on_event, ev);
        api_call_reset(&ev->ask);
        api_call_target(&ev->ask,
                        "/events?since=%lld&filters=", (long long) time(NULL) - OVERLAP_S);
        engine_worker_add_filter(w, &ev->ask.target, /* events= */ true);
        ev->ask.pieces = &ev->pieces;
        ev->ask.begun = stream_begun;
        api_call_start(&ev->ask, "GET", /* stream= */ true, stream_ended);
}

struct events *events_new(struct worker *w)
{
        struct events *ev = xnew(struct events);

        ev->worker = w;
        ev->wait_ms = WAIT_MIN_MS;
        api_call_init(&ev->ask, w);
        json_stream_init(&ev->pieces, EVENT_MAX, on_event, ev);
        (void) uv_timer_init(&w->loop->uv, &ev->timer);
        w->open++;
        open_stream(ev);
        return ev;
}

void events_free(struct events *ev)
{
        ev->freeing = true;
        if (ev->ask.running)
                api_call_cancel(&ev->ask);
        else
                uv_close((uv_handle_t *) &ev->timer, timer_closed);
}
