/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "client/decode.h"
#include "client/framing.h"
#include "client/op.h"

/* Streams that last until they are canceled: events of the server, metrics of an agent. */

struct watch_op {
        struct op op;
        struct framing framing;
        /* Decodes an event and calls the callback. False: end, with *ret_code or by the callback. */
        bool (*deliver)(struct watch_op *w, struct str text, int *ret_code);
        struct hutch_event_watch events;
        struct hutch_metrics_watch metrics;
};

static struct watch_op *watch_of(struct op *op)
{
        return container_of(op, struct watch_op, op);
}

static int on_event(void *data, struct str text)
{
        struct watch_op *w = watch_of(data);
        int code = 0;

        if (w->deliver(w, text, &code))
                return 0;
        if (code == 0)
                return exchange_fail(&w->op.x, HUTCH_CANCELED, "canceled by the callback");
        return exchange_fail(&w->op.x, code, "%s",
                             code == HUTCH_NO_MEMORY ? "out of memory"
                                                     : "the server sent an invalid event");
}

static void opened(struct op *op)
{
        struct watch_op *w = watch_of(op);

        if (w->events.ready)
                w->events.ready(w->events.data);
}

static int on_bytes(struct op *op, struct str bytes)
{
        return op_feed(op, &watch_of(op)->framing, bytes, on_event);
}

static void ended(struct op *op)
{
        if (!op_check_response(op))
                return;
        if (op_feed(op, &watch_of(op)->framing, STR_NULL, on_event) < 0)
                op_fail_exchange(op, op->x.failure);
        else
                op_fail(op, HUTCH_BROKEN, "the server closed the stream");
}

static void watch_release(struct op *op)
{
        framing_done(&watch_of(op)->framing);
}

#define WATCH(what)                                                                                \
        {                                                                                          \
                .doing = (what), .release = watch_release, .stream = true,                         \
                .request = {                                                                       \
                        .method = "GET", .bytes = on_bytes, .opened = opened, .on_response = ended \
                },                                                                                 \
        }

/* --- events --- */

static bool deliver_event(struct watch_op *w, struct str text, int *ret_code)
{
        struct hutch_event e;
        struct arena a;
        bool more = false;

        arena_init(&a, 2 * w->framing.block.max + ARENA_BLOCK);
        *ret_code = decode_event(text, &a, &e);
        if (*ret_code == 0)
                more = w->events.event(w->events.data, &e) == 0;
        arena_done(&a);
        return more;
}

int hutch_watch_events(struct hutch_client *client, const struct hutch_event_watch *watch,
                       struct hutch_call *call)
{
        static const struct op_kind kind = WATCH("watch events");
        struct op *op = op_new(sizeof(struct watch_op), &kind, client, call);
        struct watch_op *w = op ? watch_of(op) : NULL;
        struct hutch_event_watch o;
        int r = options_copy(&o, sizeof(o), watch);

        if (r < 0 || !o.event)
                op_refuse(op, r < 0 ? r : HUTCH_INVALID, "the callback for events is missing");
        if (w) {
                framing_init(&w->framing, client ? (size_t) client->o.event_max : 1, false);
                w->events = o;
                w->deliver = deliver_event;
        }
        op_to_server(op, "/events");
        return op_start(op, NULL);
}

/* --- metrics --- */

static bool deliver_metrics(struct watch_op *w, struct str text, int *ret_code)
{
        struct hutch_metrics *m = decode_result(&metrics_decoder, text, NULL, ret_code);
        bool more = m && w->metrics.metrics(w->metrics.data, m) == 0;

        hutch_metrics_free(m);
        return more;
}

int hutch_watch_metrics(struct hutch_client *client, const struct hutch_endpoint *agent,
                        const struct hutch_metrics_watch *watch, struct hutch_call *call)
{
        static const struct op_kind kind = WATCH("watch metrics");
        struct op *op = op_new(sizeof(struct watch_op), &kind, client, call);
        struct watch_op *w = op ? watch_of(op) : NULL;
        struct hutch_metrics_watch o;
        int r = options_copy(&o, sizeof(o), watch);

        if (r < 0 || !o.metrics)
                op_refuse(op, r < 0 ? r : HUTCH_INVALID, "the callback for metrics is missing");
        if (w) {
                framing_init(&w->framing, client ? (size_t) client->o.event_max : 1, true);
                w->metrics = o;
                w->deliver = deliver_metrics;
        }
        op_to_agent(op, agent, "/metrics/watch");
        return op_start(op, NULL);
}
