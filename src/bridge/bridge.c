/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/bridge.h"

#include <hutch/hutch.h>
#include <signal.h>
#include <unistd.h>

#include "base/base.h"
#include "bridge/job.h"
#include "bridge/notify.h"
#include "bridge/parcel.h"

struct author bridge_author(struct bridge *b)
{
        return (struct author){ .instance = str_from(b->instance),
                                .ids = &b->ids,
                                .now = clock_wall(&clock_system) / USEC_PER_MSEC };
}

static void log_counters(struct bridge *b, const char *what)
{
        b->count.dropped += atomic_exchange(&b->wire.dropped, 0);
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

static void leave_when_idle(struct bridge *b)
{
        if (b->stopping && is_idle(b))
                uv_stop(&b->loop);
}

/* What was not taken up is the broker's, if it keeps such things: then somebody else gets it. */
static void give_up_waiting(struct bridge *b)
{
        list_for_each (n, &b->waiting) {
                struct job *job = container_of(n, struct job, node);

                if (b->settings->transport->accept)
                        job_free(job);
                else
                        job_refuse(job, STR("This sandbox service is being stopped. Try again."));
        }
}

static void drain_over(uv_timer_t *t)
{
        struct bridge *b = t->data;

        log_warn(b->log, "commands are still running, and are left to themselves");
        uv_stop(&b->loop);
}

static void on_stop(uv_signal_t *s, int number)
{
        struct bridge *b = s->data;

        (void) number;
        if (b->stopping) { /* twice: at once */
                uv_stop(&b->loop);
                return;
        }
        log_info(b->log, "stopping, %zu commands are running", b->n_running);
        notify_stopping();
        b->stopping = true;
        wire_pause(&b->wire);
        give_up_waiting(b);
        (void) uv_timer_start(&b->drain_timer, drain_over,
                              b->settings->drain_timeout / USEC_PER_MSEC, 0);
        leave_when_idle(b);
}

/* --- jobs --- */

void bridge_next(struct bridge *b)
{
        if (b->starting) /* by one that failed before it began */
                return;
        b->starting = true;
        while (b->n_running < b->settings->in_flight && !b->stopping) {
                struct list *n = list_first(&b->waiting);

                if (!n)
                        break;
                job_start(container_of(n, struct job, node));
        }
        b->starting = false;
        leave_when_idle(b);
}

static void retry_due(uv_timer_t *t)
{
        struct bridge *b = t->data;

        parcel_send_all(&b->retry);
}

void bridge_retry_later(struct bridge *b)
{
        if (!uv_is_active((uv_handle_t *) &b->retry_timer))
                (void) uv_timer_start(&b->retry_timer, retry_due, PARCEL_RETRY_MS, 0);
}

/* --- the broker --- */

static void announce(struct bridge *b)
{
        struct author who = bridge_author(b);

        for (size_t i = 0; i < COMMANDS_N; i++) {
                struct message_head head = message_announcement_head(&who, &command_kinds[i]);
                struct parcel *p = parcel_new(b, &head, NULL);

                who = parcel_author(p);
                message_add_announcement(&p->message.body, &who, &p->message.head,
                                         &command_kinds[i]);
                if (buf_failed(&p->message.body))
                        parcel_free(p);
                else
                        parcel_send(p);
        }
}

static void is_up(struct bridge *b, const struct note *n)
{
        b->up = true;
        b->epoch = n->epoch;
        b->body_max = n->body_max;
        b->count.connections++;
        log_fields(b->log, LOG_INFO, "connected", LOG_F_STR("broker", str_from(b->settings->url)),
                   LOG_F_STR("instance", str_from(b->instance)), LOG_F_U64("largest", n->body_max));
        notify_ready();
        if (!b->stopping)
                announce(b);
        parcel_send_all(&b->unsent);
}

static void is_down(struct bridge *b, const struct note *n)
{
        b->up = false;
        log_warn(b->log, "no connection to the broker: %s", n->text);
}

static void take_note(struct bridge *b, struct note *n)
{
        switch (n->kind) {
        case NOTE_MESSAGE:
                wire_taken(&b->wire, n->incoming);
                job_take(b, TAKE_PTR(n->incoming));
                break;
        case NOTE_END:
                parcel_ended(parcel_of(n->outgoing));
                break;
        case NOTE_UP:
                is_up(b, n);
                break;
        case NOTE_DOWN:
                is_down(b, n);
                break;
        case NOTE_STOPPED:
        default:
                break;
        }
}

static void take_notes(struct bridge *b)
{
        struct list notes;

        list_init(&notes);
        queue_take(&b->wire.notes, &notes);
        list_for_each (i, &notes) {
                struct note *n = container_of(i, struct note, node);

                list_remove(i);
                take_note(b, n);
                note_free(n);
        }
}

static void on_notes(uv_poll_t *p, int status, int events)
{
        struct bridge *b = p->data;

        (void) status;
        (void) events;
        take_notes(b);
        bridge_next(b);
        /* What was begun goes out at once, not when its timer tells of it. */
        (void) hutch_loop_run(b->calls, 0);
}

static void on_calls(uv_poll_t *p, int status, int events)
{
        struct bridge *b = p->data;

        (void) status;
        (void) events;
        (void) hutch_loop_run(b->calls, 0);
}

static void on_usr1(uv_signal_t *s, int number)
{
        (void) number;
        log_counters(s->data, "counters");
}

/* --- life --- */

static int open_client(struct bridge *b, struct err *e)
{
        const struct settings *s = b->settings;
        struct hutch_client_options o = hutch_client_options_init();
        int r;

        o.ca_file = s->hutchd_ca;
        o.unix_socket = s->hutchd_socket;
        o.user_agent = "hutch-bridge/" HUTCH_VERSION;
        r = hutch_client_new(s->hutchd_url, s->key ? secret_expose(s->key).p : NULL, &o,
                             &b->client);
        if (r == 0)
                r = hutch_loop_new(NULL, &b->calls);
        return r == 0 ? 0 : err_set(e, ERR_INVALID, "hutchd: %s", hutch_code_text(r));
}

static void watch(struct bridge *b, uv_poll_t *p, int fd, uv_poll_cb then)
{
        ASSERT(uv_poll_init(&b->loop, p, fd) == 0);
        p->data = b;
        ASSERT(uv_poll_start(p, UV_READABLE, then) == 0);
}

static void listen_to(struct bridge *b, uv_signal_t *s, int number, uv_signal_cb then)
{
        ASSERT(uv_signal_init(&b->loop, s) == 0);
        s->data = b;
        ASSERT(uv_signal_start(s, then, number) == 0);
}

static void open_loop(struct bridge *b)
{
        ASSERT(uv_loop_init(&b->loop) == 0);
        b->opened = true;
        watch(b, &b->on_notes, b->wire.notes.fd, on_notes);
        watch(b, &b->on_calls, hutch_loop_fd(b->calls), on_calls);
        listen_to(b, &b->on_term, SIGTERM, on_stop);
        listen_to(b, &b->on_int, SIGINT, on_stop);
        listen_to(b, &b->on_usr1, SIGUSR1, on_usr1);
        ASSERT(uv_timer_init(&b->loop, &b->retry_timer) == 0);
        ASSERT(uv_timer_init(&b->loop, &b->drain_timer) == 0);
        b->retry_timer.data = b->drain_timer.data = b;
}

static void close_handle(uv_handle_t *h, void *data)
{
        (void) data;
        uv_close(h, NULL);
}

static void close_loop(struct bridge *b)
{
        if (!b->opened)
                return;
        uv_walk(&b->loop, close_handle, NULL);
        (void) uv_run(&b->loop, UV_RUN_DEFAULT);
        ASSERT(uv_loop_close(&b->loop) == 0);
}

/* Calls that still run end now, and their jobs with them: with the wire stopped nothing of it goes out. */
static void free_all(struct bridge *b)
{
        b->stopping = true;
        b->up = false;
        wire_stop(&b->wire);
        if (b->wire.notes.fd >= 0)
                take_notes(b);
        hutch_loop_free(b->calls);
        hutch_client_free(b->client);
        list_for_each (n, &b->unsent)
                parcel_free(container_of(n, struct parcel, node));
        list_for_each (n, &b->retry)
                parcel_free(container_of(n, struct parcel, node));
        list_for_each (n, &b->waiting)
                job_free(container_of(n, struct job, node));
        list_for_each (n, &b->running)
                job_free(container_of(n, struct job, node));
        wire_free(&b->wire);
        close_loop(b);
        map_done(&b->by_key);
}

static int start(struct bridge *b, struct err *e)
{
        /* The transport first: it may have something to say about how libraries are set up. */
        int r = wire_start(&b->wire, b->settings, b->instance, e);

        if (r == 0)
                r = open_client(b, e);
        if (r == 0)
                open_loop(b);
        return r;
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

        b.wire.notes.fd = b.wire._orders.fd = -EBADF;
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
                (void) uv_run(&b.loop, UV_RUN_DEFAULT);
        free_all(&b);
        log_counters(&b, "left");
        return r < 0 ? 1 : 0;
}
