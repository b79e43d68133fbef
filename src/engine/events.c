/* SPDX-License-Identifier: Apache-2.0 */
#include <time.h>

#include "base/base.h"
#include "engine/names.h"
#include "engine/worker.h"
#include "model/text.h"
#include "net/backoff.h"

/*
 * The engine's event stream, for the life of the worker: when it breaks it is opened again, with a delay that doubles.
 * What happened in between is found by hutchd: it is notified that the stream has begun, and compares.
 *
 * An event is only a reason to inspect; what is reported is what the engine then says about the container. So neither
 * an old event nor one about an earlier container of the same name does harm.
 */

#define EVENT_MAX (RECORD_TEXT_MAX * 2 + MiB) /* it has all labels */

/* How far back the stream begins: the engine may send the head before it subscribes to its own events. */
#define OVERLAP_S 2

struct events {
        struct engine_worker *worker;
        struct api_call api;
        struct json_stream objects;
        uv_timer_t timer;
        struct backoff backoff;
        bool begun;
        bool freeing;
        bool away; /* logged */
};

static void open_stream(struct events *ev);

static int on_event(void *data, struct str object)
{
        struct events *ev = data;
        struct engine_worker *w = ev->worker;
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

static void stream_begun(struct api_call *k)
{
        struct events *ev = container_of(k, struct events, api);
        struct engine_worker *w = ev->worker;

        ev->begun = true;
        if (ev->away)
                log_info(w->log, "engine is back");
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
        struct engine_worker *w = ev->worker;

        api_call_done(&ev->api);
        json_stream_done(&ev->objects);
        free(ev);
        engine_worker__part_closed(w);
}

static void stream_ended(struct api_call *k)
{
        struct events *ev = container_of(k, struct events, api);
        struct engine_worker *w = ev->worker;
        struct err e;

        if (ev->freeing) {
                uv_close((uv_handle_t *) &ev->timer, timer_closed);
                return;
        }
        if (!ev->away && !ev->begun) {
                (void) api_call_error(k, &e, "open its event stream");
                log_fields(w->log, LOG_WARN, "no event stream",
                           LOG_F_STR("error", str_from(e.message)));
                ev->away = true;
        }
        if (ev->begun)
                backoff_reset(&ev->backoff);
        ev->begun = false;
        (void) uv_timer_start(&ev->timer, timer_fired, backoff_next(&ev->backoff) / USEC_PER_MSEC,
                              0);
}

static void open_stream(struct events *ev)
{
        struct engine_worker *w = ev->worker;

        json_stream_done(&ev->objects);
        json_stream_init(&ev->objects, EVENT_MAX, on_event, ev);
        api_call_reset(&ev->api);
        api_call_target(&ev->api,
                        "/events?since=%lld&filters=", (long long) time(NULL) - OVERLAP_S);
        engine_worker_add_filter(w, &ev->api.target, /* events= */ true);
        ev->api.objects = &ev->objects;
        ev->api.begun = stream_begun;
        api_call_start(&ev->api, "GET", /* stream= */ true, stream_ended);
}

struct events *events_new(struct engine_worker *w)
{
        struct events *ev = xnew(struct events);

        ev->worker = w;
        ev->backoff = (struct backoff){ 50 * USEC_PER_MSEC, 5 * USEC_PER_SEC, 0 };
        api_call_init(&ev->api, w);
        json_stream_init(&ev->objects, EVENT_MAX, on_event, ev);
        (void) uv_timer_init(&w->loop->uv, &ev->timer);
        w->open++;
        open_stream(ev);
        return ev;
}

void events_free(struct events *ev)
{
        ev->freeing = true;
        if (ev->api.running)
                api_call_cancel(&ev->api);
        else
                uv_close((uv_handle_t *) &ev->timer, timer_closed);
}
