/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/bridge.h"

#include <signal.h>
#include <unistd.h>

#include "base/base.h"
#include "bridge/bus_command.h"
#include "bridge/outbound.h"

/*
 * Theory of operation.
 *
 *         broker ─► broker_conn ─► bus command: waiting ─► running ─► hutchd_client ─► hutchd
 *                       ▲                                                  │ reply
 *                       └──────────────── outbound messages ◄──────────────┘
 *
 * The problem: a broker and hutchd come and go independently, each at its own pace. A command must not run twice
 * because of that, a reply must not get lost if its caller can still take it, and memory must stay bounded when
 * one side stalls.
 *
 * One loop owns everything. A thread only connects to the broker (broker_conn.c).
 *
 * Invariants:
 * - At most `in_flight` commands run. A command counts as running until the broker has its reply, so replies that
 *   wait for a broker that is away are bounded by the same number. Commands that wait are bounded in number and
 *   bytes; for one more, one is refused with 503. Refusals are bounded, too; beyond that messages are dropped.
 * - No tenant can take so many slots or places to wait that another one gets none (shares.h). So every message is
 *   read as it comes: one that stayed with the broker could have another tenant's behind it.
 * - A command ends when its caller's timeout has passed, whether it waits or runs.
 * - A command is acknowledged when its request has gone to hutchd, not earlier and not later. Brokers that keep
 *   unacknowledged messages (AMQP) deliver what only waited here to another bridge when this one ends or loses its
 *   connection, and never what has started.
 * - A message that was delivered before (same sender, id and correlation id, still in `by_key`) is dropped.
 *
 * The connection breaks: unacknowledged commands are dropped on AMQP (the broker delivers them again), and kept on
 * NATS and MQTT (it does not). Running commands continue. Outbound messages without a confirmation move to
 * `unsent` and are sent on the next connection; a reply that finds no receiver then is retried for 30 s.
 *
 * hutchd is away: each command gets a reply of status 503. Nothing is queued for it.
 *
 * The end (SIGTERM): stop consuming; give up or refuse what waits; let running commands end and their replies go
 * out, at most for drain_timeout; then stop. A second signal stops at once.
 *
 * A crash loses the replies of running commands. The commands themselves run to their end in hutchd; callers time
 * out and repeat them.
 */

struct author bridge_author(struct bridge *b)
{
        return (struct author){ .instance = str_from(b->instance),
                                .ids = &b->ids,
                                .now = clock_wall(&clock_system) / USEC_PER_MSEC };
}

static void log_counters(struct bridge *b, const char *what)
{
#define X(name) LOG_F_U64(#name, b->count.name),
        log_fields(b->log, LOG_INFO, what, COUNTER_MAP(X) LOG_F_U64("waiting", b->shares.n_waiting),
                   LOG_F_U64("running", b->shares.n_running));
#undef X
}

/* --- commands --- */

void bridge_next(struct bridge *b)
{
        struct share *next;

        while (!b->stopping && (next = shares_next(&b->shares)))
                bus_command_start(container_of(next, struct bus_command, share));
        if (b->stopping && b->shares.n_waiting == 0 && list_empty(&b->unreplied)
            && broker_conn_is_quiet(&b->conn))
                uv_stop(&b->loop.uv);
}

static void free_waiting(struct bridge *b)
{
        struct share *c;

        while ((c = shares_any_waiting(&b->shares)))
                bus_command_free(container_of(c, struct bus_command, share));
}

/* --- signals --- */

static void drain_over(uv_timer_t *t)
{
        struct bridge *b = t->data;

        log_fields(b->log, LOG_WARN, "stopped before all commands ended",
                   LOG_F_U64("running", b->shares.n_running));
        uv_stop(&b->loop.uv);
}

static void on_stop(uv_signal_t *s, int number)
{
        struct bridge *b = s->data;
        struct share *c;

        (void) number;
        if (b->stopping) { /* the second signal */
                uv_stop(&b->loop.uv);
                return;
        }
        log_fields(b->log, LOG_INFO, "stopping", LOG_F_U64("running", b->shares.n_running));
        sd_notify_stopping(&b->notify);
        b->stopping = true;
        broker_conn_pause(&b->conn);
        if (b->settings->transport->accept)
                free_waiting(b); /* the broker delivers them to another bridge */
        while ((c = shares_any_waiting(&b->shares)))
                bus_command_refuse_stopping(container_of(c, struct bus_command, share));
        (void) uv_timer_start(&b->drain_timer, drain_over,
                              b->settings->drain_timeout / USEC_PER_MSEC, 0);
        bridge_next(b);
}

static void on_usr1(uv_signal_t *s, int number)
{
        (void) number;
        log_counters(s->data, "counters");
}

/* --- the broker --- */

static void announce(struct bridge *b)
{
        struct author who = bridge_author(b);

        for (size_t i = 0; i < PURISTA_COMMAND_MAX_; i++) {
                struct message_head head = message_announcement_head(&who, &purista_commands[i]);
                struct outbound *p = outbound_new(b, &head, NULL);

                who = outbound_author(p);
                message_add_announcement(&p->message.body, &who, &p->message.head,
                                         &purista_commands[i]);
                if (buf_failed(&p->message.body))
                        outbound_free(p);
                else
                        outbound_send(p);
        }
}

static void on_up(struct broker_conn *w)
{
        struct bridge *b = container_of(w, struct bridge, conn);

        b->up = true;
        b->epoch = w->epoch;
        b->body_max = w->body_max;
        b->count.connections++;
        log_fields(b->log, LOG_INFO, "connected", LOG_F_STR("broker", str_from(b->settings->url)),
                   LOG_F_STR("instance", str_from(b->instance)),
                   LOG_F_U64("body_max", w->body_max));
        sd_notify_ready(&b->notify);
        if (!b->stopping)
                announce(b);
        outbound_send_all(&b->unsent);
}

static void on_down(struct broker_conn *w, const char *why)
{
        struct bridge *b = container_of(w, struct bridge, conn);

        b->up = false;
        log_fields(b->log, LOG_WARN, "no connection to the broker",
                   LOG_F_STR("reason", str_from(why)));
        if (b->settings->transport->accept)
                free_waiting(b); /* the broker delivers them to another bridge */
}

static void on_quiet(struct broker_conn *w)
{
        bridge_next(container_of(w, struct bridge, conn));
}

static const struct broker_conn_hooks hooks = {
        .message = bus_command_take,
        .completed = outbound_completed,
        .up = on_up,
        .down = on_down,
        .quiet = on_quiet,
};

/* --- life cycle --- */

static void watch_signal(struct bridge *b, uv_signal_t *s, int number, uv_signal_cb then)
{
        ASSERT(uv_signal_init(&b->loop.uv, s) == 0);
        s->data = b;
        ASSERT(uv_signal_start(s, then, number) == 0);
}

/* Requests that run end here, and their bus commands with them; nothing is sent any more. */
static void close_bridge(struct bridge *b)
{
        uv_handle_t *const handles[] = {
                (uv_handle_t *) &b->on_term,     (uv_handle_t *) &b->on_int,
                (uv_handle_t *) &b->on_usr1,     (uv_handle_t *) &b->retry_timer,
                (uv_handle_t *) &b->drain_timer,
        };

        b->stopping = true;
        b->up = false;
        broker_conn_stop(&b->conn);
        hutchd_client_close(&b->hutchd);
        net_loop_run_once(&b->loop, /* wait= */ false);
        list_for_each (n, &b->unsent)
                outbound_free(container_of(n, struct outbound, node));
        list_for_each (n, &b->retry)
                outbound_free(container_of(n, struct outbound, node));
        free_waiting(b);
        list_for_each (n, &b->unreplied)
                bus_command_free(container_of(n, struct bus_command, node));
        alarms_done(&b->deadlines);
        for (size_t i = 0; i < ARRAY_SIZE(handles); i++)
                uv_close(handles[i], NULL);
        net_loop_done(&b->loop);
        map_done(&b->by_key);
        shares_done(&b->shares);
        sd_notify_close(&b->notify);
}

int bridge_run(const struct settings *settings, const struct log_ctx *log)
{
        const struct shares_config shares = { .in_flight = settings->in_flight,
                                              .per_tenant = settings->in_flight_per_tenant,
                                              .waiting_max = settings->waiting,
                                              .waiting_bytes = WAITING_BYTES_MAX };
        struct bridge b = { .settings = settings, .log = log };
        struct err e = { 0 };
        int r;

        shares_init(&b.shares, &shares);
        list_init(&b.unreplied);
        list_init(&b.unsent);
        list_init(&b.retry);
        map_init(&b.by_key);
        ids_init(&b.ids);
        sd_notify_open(&b.notify);
        if (settings->instance)
                (void) snprintf(b.instance, sizeof(b.instance), "%s", settings->instance);
        else
                ids_hex(&b.ids, b.instance);
        ASSERT(net_loop_init(&b.loop, &clock_system) == 0);
        watch_signal(&b, &b.on_term, SIGTERM, on_stop);
        watch_signal(&b, &b.on_int, SIGINT, on_stop);
        watch_signal(&b, &b.on_usr1, SIGUSR1, on_usr1);
        alarms_init(&b.deadlines, &b.loop);
        ASSERT(uv_timer_init(&b.loop.uv, &b.retry_timer) == 0);
        ASSERT(uv_timer_init(&b.loop.uv, &b.drain_timer) == 0);
        b.retry_timer.data = b.drain_timer.data = &b;
        /* The transport first: its library may change how other libraries are set up. */
        r = broker_conn_start(&b.conn, &b.loop, settings, b.instance, &hooks, &e);
        if (r == 0)
                r = hutchd_client_open(&b.hutchd, &b.loop, settings, &e);
        if (r < 0)
                (void) log_err(0, log, "%s", e.message);
        else
                net_loop_run(&b.loop);
        close_bridge(&b);
        log_counters(&b, "stopped");
        return r < 0 ? 1 : 0;
}
