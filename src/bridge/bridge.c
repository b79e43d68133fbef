/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/bridge.h"

#include <signal.h>
#include <unistd.h>

#include "base/base.h"
#include "bridge/bus_command.h"
#include "bridge/notify.h"
#include "bridge/outbound.h"

struct author bridge_author(struct bridge *b)
{
        return (struct author){ .instance = str_from(b->instance),
                                .ids = &b->ids,
                                .now = clock_wall(&clock_system) / USEC_PER_MSEC };
}

static void log_counters(struct bridge *b, const char *what)
{
#define X(name) LOG_F_U64(#name, b->count.name),
        log_fields(b->log, LOG_INFO, what, COUNTER_MAP(X) LOG_F_U64("waiting", b->n_waiting),
                   LOG_F_U64("running", b->n_running));
#undef X
}

/* --- the end --- */

static bool is_idle(const struct bridge *b)
{
        return list_empty(&b->waiting) && list_empty(&b->running);
}

static void stop_when_idle(struct bridge *b)
{
        if (b->stopping && is_idle(b) && broker_conn_is_quiet(&b->broker_conn))
                uv_stop(&b->loop.uv);
}

static void drop_waiting(struct bridge *b)
{
        list_for_each (n, &b->waiting)
                bus_command_free(container_of(n, struct bus_command, node));
}

/* What was not taken up is the broker's, if it keeps such things: then somebody else gets it. */
static void refuse_waiting(struct bridge *b)
{
        if (b->settings->transport->accept)
                drop_waiting(b);
        list_for_each (n, &b->waiting)
                bus_command_refuse(container_of(n, struct bus_command, node), BUS_COMMAND_STOPPING);
}

static void drain_over(uv_timer_t *t)
{
        struct bridge *b = t->data;

        log_warn(b->log, "commands are still running, and are left to themselves");
        uv_stop(&b->loop.uv);
}

static void on_stop(uv_signal_t *s, int number)
{
        struct bridge *b = s->data;

        (void) number;
        if (b->stopping) { /* twice: at once */
                uv_stop(&b->loop.uv);
                return;
        }
        log_info(b->log, "stopping, %zu commands are running", b->n_running);
        notify_stopping();
        b->stopping = true;
        broker_conn_pause(&b->broker_conn);
        refuse_waiting(b);
        (void) uv_timer_start(&b->drain_timer, drain_over,
                              b->settings->drain_timeout / USEC_PER_MSEC, 0);
        stop_when_idle(b);
}

/* --- jobs --- */

void bridge_next(struct bridge *b)
{
        while (b->n_running < b->settings->in_flight && !b->stopping) {
                struct list *n = list_first(&b->waiting);

                if (!n)
                        break;
                bus_command_start(container_of(n, struct bus_command, node));
        }
        stop_when_idle(b);
}

static void retry_due(uv_timer_t *t)
{
        struct bridge *b = t->data;

        outbound_send_all(&b->retry);
}

void bridge_retry_later(struct bridge *b)
{
        if (!uv_is_active((uv_handle_t *) &b->retry_timer))
                (void) uv_timer_start(&b->retry_timer, retry_due, OUTBOUND_RETRY_MS, 0);
}

/* --- the broker --- */

static void announce(struct bridge *b)
{
        struct author who = bridge_author(b);

        for (size_t i = 0; i < COMMANDS_N; i++) {
                struct message_head head = message_announcement_head(&who, &command_kinds[i]);
                struct outbound *p = outbound_new(b, &head, NULL);

                who = outbound_author(p);
                message_add_announcement(&p->message.body, &who, &p->message.head,
                                         &command_kinds[i]);
                if (buf_failed(&p->message.body))
                        outbound_free(p);
                else
                        outbound_send(p);
        }
}

static struct bridge *bridge_of(struct broker_conn *w)
{
        return container_of(w, struct bridge, broker_conn);
}

static void on_up(struct broker_conn *w)
{
        struct bridge *b = bridge_of(w);

        b->up = true;
        b->epoch = w->epoch;
        b->body_max = w->body_max;
        b->count.connections++;
        log_fields(b->log, LOG_INFO, "connected", LOG_F_STR("broker", str_from(b->settings->url)),
                   LOG_F_STR("instance", str_from(b->instance)), LOG_F_U64("largest", w->body_max));
        notify_ready();
        if (!b->stopping)
                announce(b);
        outbound_send_all(&b->unsent);
}

static void on_down(struct broker_conn *w, const char *why)
{
        struct bridge *b = bridge_of(w);

        b->up = false;
        log_warn(b->log, "no connection to the broker: %s", why);
        if (b->settings->transport->accept)
                drop_waiting(b); /* the broker gives them to somebody else */
}

static void on_quiet(struct broker_conn *w)
{
        stop_when_idle(bridge_of(w));
}

static void on_message(struct broker_conn *w, struct incoming *m)
{
        struct bridge *b = bridge_of(w);

        bus_command_take(b, m);
        bridge_next(b);
}

static void ended(struct broker_conn *w, struct outgoing *m)
{
        (void) w;
        outbound_ended(outbound_of(m));
}

static const struct broker_conn_hooks hooks = {
        .message = on_message,
        .ended = ended,
        .up = on_up,
        .down = on_down,
        .quiet = on_quiet,
};

static void on_usr1(uv_signal_t *s, int number)
{
        (void) number;
        log_counters(s->data, "counters");
}

/* --- life --- */

static void watch_signal(struct bridge *b, uv_signal_t *s, int number, uv_signal_cb then)
{
        ASSERT(uv_signal_init(&b->loop.uv, s) == 0);
        s->data = b;
        ASSERT(uv_signal_start(s, then, number) == 0);
}

static void open_loop(struct bridge *b)
{
        uv_loop_t *uv = &b->loop.uv;

        ASSERT(net_loop_init(&b->loop, &clock_system) == 0);
        watch_signal(b, &b->on_term, SIGTERM, on_stop);
        watch_signal(b, &b->on_int, SIGINT, on_stop);
        watch_signal(b, &b->on_usr1, SIGUSR1, on_usr1);
        ASSERT(uv_timer_init(uv, &b->retry_timer) == 0);
        ASSERT(uv_timer_init(uv, &b->drain_timer) == 0);
        b->retry_timer.data = b->drain_timer.data = b;
}

static void close_loop(struct bridge *b)
{
        uv_handle_t *const handles[] = {
                (uv_handle_t *) &b->on_term,     (uv_handle_t *) &b->on_int,
                (uv_handle_t *) &b->on_usr1,     (uv_handle_t *) &b->retry_timer,
                (uv_handle_t *) &b->drain_timer,
        };

        for (size_t i = 0; i < ARRAY_SIZE(handles); i++)
                uv_close(handles[i], NULL);
        net_loop_done(&b->loop);
}

/* Questions that are open end now, and their jobs with them: with the broker_conn stopped nothing of it goes
 * out. */
static void free_all(struct bridge *b)
{
        b->stopping = true;
        b->up = false;
        broker_conn_stop(&b->broker_conn);
        hutchd_client_close(&b->hutchd);
        net_loop_run_once(&b->loop, /* wait= */ false);
        list_for_each (n, &b->unsent)
                outbound_free(container_of(n, struct outbound, node));
        list_for_each (n, &b->retry)
                outbound_free(container_of(n, struct outbound, node));
        drop_waiting(b);
        list_for_each (n, &b->running)
                bus_command_free(container_of(n, struct bus_command, node));
        close_loop(b);
        map_done(&b->by_key);
}

static int start(struct bridge *b, struct err *e)
{
        int r;

        open_loop(b);
        /* The transport first: it may have something to say about how libraries are set up. */
        r = broker_conn_start(&b->broker_conn, &b->loop, b->settings, b->instance, &hooks, e);
        return r < 0 ? r : hutchd_client_open(&b->hutchd, &b->loop, b->settings, e);
}

static void choose_instance(struct bridge *b)
{
        if (b->settings->instance)
                (void) snprintf(b->instance, sizeof(b->instance), "%s", b->settings->instance);
        else
                ids_hex(&b->ids, b->instance);
}

int bridge_run(const struct settings *settings, const struct log_ctx *log)
{
        struct bridge b = { .settings = settings, .log = log };
        struct err e = { 0 };
        int r;

        list_init(&b.waiting);
        list_init(&b.running);
        list_init(&b.unsent);
        list_init(&b.retry);
        map_init(&b.by_key);
        ids_init(&b.ids);
        choose_instance(&b);
        r = start(&b, &e);
        if (r < 0)
                (void) log_err(0, log, "%s", e.message);
        else
                net_loop_run(&b.loop);
        free_all(&b);
        log_counters(&b, "left");
        return r < 0 ? 1 : 0;
}
