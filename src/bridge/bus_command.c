/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/bus_command.h"

#include "base/base.h"
#include "bridge/outbound.h"

/* --- memory --- */

static void unlink_bus_command(struct bus_command *bus_command)
{
        struct bridge *b = bus_command->bridge;

        if (list_empty(&bus_command->node))
                return;
        list_remove(&bus_command->node);
        if (bus_command->is_running) {
                b->n_running--;
        } else if (bus_command->is_answering) {
                b->n_answering--;
        } else {
                b->n_waiting--;
                b->waiting_bytes -= bus_command->size;
        }
}

void bus_command_free(struct bus_command *bus_command)
{
        unlink_bus_command(bus_command);
        map_remove(&bus_command->bridge->by_key, &bus_command->by_key);
        hutchd_request_free(&bus_command->hutchd_request);
        incoming_free(bus_command->incoming);
        arena_done(&bus_command->memory);
        free(bus_command);
}

bool bus_command_is_from_earlier_conn(const struct bus_command *bus_command)
{
        return bus_command && bus_command->incoming->epoch != bus_command->bridge->epoch;
}

static void settle(struct bus_command *bus_command)
{
        struct bridge *b = bus_command->bridge;

        if (bus_command->n_outbound > 0)
                return;
        bus_command_free(bus_command);
        bridge_next(b);
}

/* --- messages of ours --- */

static struct outbound *new_outbound(struct bus_command *bus_command, struct str type,
                                     struct str event)
{
        struct author who = bridge_author(bus_command->bridge);
        struct message_head head;

        if (message_reply_head(&who, &bus_command->command, type, &bus_command->memory, &head) < 0)
                head.traceparent = STR_NULL;
        head.event = event;
        if (event.p)
                head.receiver = (struct address){ .service = STR_NULL };
        return outbound_new(bus_command->bridge, &head, bus_command);
}

static void send_outbound(struct bus_command *bus_command, struct outbound *p)
{
        bus_command->n_outbound++;
        outbound_send(p);
}

static struct outbound *new_reply(struct bus_command *bus_command, struct str type)
{
        struct outbound *p = new_outbound(bus_command, type, STR_NULL);

        p->message.is_reply = true;
        p->message.correlation = bus_command->command.correlation;
        if (bus_command->incoming->reply_to.n > 0)
                p->message.reply_to = buf_str(&bus_command->incoming->reply_to);
        return p;
}

static void reply_failure(struct bus_command *bus_command, const struct failure *failure)
{
        struct failure small = { .status = failure->status,
                                 .message = message_status_text(failure->status),
                                 .handled = failure->handled };
        struct author who;
        struct outbound *p;

        bus_command->bridge->count.failed++;
        if (!bus_command->answerable)
                return;
        p = new_reply(bus_command, TYPE_ERROR);
        who = outbound_author(p);
        message_add_failure(&p->message.body, &who, &bus_command->command, &p->message.head,
                            failure);
        if (buf_failed(&p->message.body)) {
                buf_reset(&p->message.body);
                message_add_failure(&p->message.body, &who, &bus_command->command, &p->message.head,
                                    &small);
        }
        send_outbound(bus_command, p);
}

static void reply_too_large(struct bus_command *bus_command)
{
        struct bridge *b = bus_command->bridge;
        char text[256];

        b->count.too_large++;
        (void) snprintf(
                text, sizeof(text),
                "The reply is larger than the message broker takes (%zu bytes). Ask for less "
                "at a time: a part of the file, or less output.",
                b->body_max);
        reply_failure(bus_command, &(struct failure){ .status = 413,
                                                      .message = str_from(text),
                                                      .handled = true });
}

static void reply_success(struct bus_command *bus_command, struct str payload)
{
        struct author who;
        struct outbound *p;

        if (!bus_command->answerable) {
                bus_command->bridge->count.succeeded++;
                return;
        }
        p = new_reply(bus_command, TYPE_SUCCESS);
        who = outbound_author(p);
        message_add_success(&p->message.body, &who, &bus_command->command, &p->message.head,
                            payload);
        if (buf_failed(&p->message.body)) {
                outbound_free(p);
                reply_too_large(bus_command);
                return;
        }
        bus_command->bridge->count.succeeded++;
        send_outbound(bus_command, p);
}

static void publish_event(struct bus_command *bus_command, const struct reply_event *event)
{
        struct outbound *p = new_outbound(bus_command, TYPE_EVENT, event->name);
        struct author who = outbound_author(p);

        message_add_event(&p->message.body, &who, &bus_command->command, &p->message.head,
                          event->payload);
        if (buf_failed(&p->message.body)) {
                outbound_free(p);
                return;
        }
        bus_command->bridge->count.events++;
        send_outbound(bus_command, p);
}

void bus_command_sent(struct bus_command *bus_command, struct outbound *p, enum outcome outcome)
{
        struct bridge *b = bus_command->bridge;
        bool too_large = outcome == OUTCOME_TOO_LARGE && p->message.is_reply
                         && str_eq(p->message.head.type, TYPE_SUCCESS);

        if (p->message.is_reply && outcome != OUTCOME_SENT && !too_large) {
                b->count.undeliverable++;
                log_warn(b->log, "a reply could not be delivered: %s",
                         outcome == OUTCOME_NO_RECEIVER ? "the caller is gone"
                                                        : "the broker refuses it");
        }
        if (too_large)
                b->count.succeeded--;
        outbound_free(p);
        bus_command->n_outbound--;
        if (too_large)
                reply_too_large(bus_command);
        settle(bus_command);
}

/* --- hutchd's hutchd_reply --- */

static void send_success(struct bus_command *bus_command, const struct hutchd_reply *hutchd_reply)
{
        const struct reply_event *events = hutchd_reply->events.items;

        for (size_t i = 0; i < hutchd_reply->events.n; i++)
                publish_event(bus_command, &events[i]);
        reply_success(bus_command, hutchd_reply->payload);
}

static void fail_internally(struct bus_command *bus_command, const char *why)
{
        log_warn(bus_command->bridge->log, "%.*s failed: %s",
                 STR_ARG(bus_command->command.kind->name), why);
        reply_failure(bus_command, &(struct failure){ .status = 500, .handled = false });
}

static void take_reply(struct bus_command *bus_command)
{
        struct json_error e;
        struct hutchd_reply hutchd_reply;
        int r = message_read_reply(bus_command->hutchd_request.hutchd_reply, &bus_command->memory,
                                   &hutchd_reply, &e);

        if (r == -ENOMEM)
                reply_too_large(bus_command);
        else if (r < 0)
                fail_internally(bus_command, e.message);
        else if (hutchd_reply.ok)
                send_success(bus_command, &hutchd_reply);
        else
                reply_failure(bus_command, &hutchd_reply.error);
}

/* Why hutchd gave no hutchd_reply. What a caller can do about is said; the rest is between it, the bridge and
 * their operator. */
static const struct {
        int code;
        int status;
        struct str message;
} call_failures[] = {
        { HUTCH_CONNECT, 503, STR("The sandbox server can't be reached now. Try again later.") },
        { HUTCH_BUSY, 503, STR("The sandbox server is busy. Try again later.") },
        { HUTCH_TIMEOUT, 504, STR("The sandbox server did not hutchd_reply in time.") },
        { HUTCH_TOO_LARGE, 413,
          STR("The result is larger than the bridge takes. Ask for less at a time.") },
};

static const struct failure too_large_for_hutchd = {
        .status = 413,
        .message = STR(
                "The command is larger than the sandbox server takes. Send files in parts, or let "
                "its operator raise purista.file_limit."),
        .handled = true,
};

static void take_failure(struct bus_command *bus_command)
{
        const struct hutchd_request *q = &bus_command->hutchd_request;

        if (q->status == 413) {
                log_warn(bus_command->bridge->log, "%.*s failed: %s",
                         STR_ARG(bus_command->command.kind->name), q->why);
                reply_failure(bus_command, &too_large_for_hutchd);
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(call_failures); i++) {
                if (call_failures[i].code != q->code)
                        continue;
                log_warn(bus_command->bridge->log, "%.*s failed: %s",
                         STR_ARG(bus_command->command.kind->name), q->why);
                reply_failure(bus_command, &(struct failure){ .status = call_failures[i].status,
                                                              .message = call_failures[i].message,
                                                              .handled = true });
                return;
        }
        fail_internally(bus_command, q->why);
}

static void hutchd_replied(struct hutchd_request *q)
{
        struct bus_command *bus_command = container_of(q, struct bus_command, hutchd_request);

        if (q->code == HUTCH_OK)
                take_reply(bus_command);
        else
                take_failure(bus_command);
        hutchd_request_free(q);
        settle(bus_command);
}

/* --- starting --- */

void bus_command_start(struct bus_command *bus_command)
{
        struct bridge *b = bus_command->bridge;

        unlink_bus_command(bus_command);
        bus_command->is_running = true;
        list_append(&b->running, &bus_command->node);
        b->n_running++;
        b->count.started++;
        bus_command->hutchd_request.command = &bus_command->command;
        bus_command->hutchd_request.memory = &bus_command->memory;
        bus_command->hutchd_request.done = hutchd_replied;
        hutchd_request_start(&b->hutchd, &bus_command->hutchd_request);
        /* It goes out behind the hutchd_request, for which somebody waits. If we end between the two, the broker
         * gives the command to another bridge, as it does if a connection takes the news with it. */
        broker_conn_accept(&b->broker_conn, bus_command->incoming);
}

/* --- what is not carried out --- */

static void refuse_bus_command(struct bus_command *bus_command, const struct failure *failure)
{
        struct bridge *b = bus_command->bridge;

        unlink_bus_command(bus_command);
        bus_command->is_answering = true;
        list_append(&b->running, &bus_command->node);
        b->n_answering++;
        broker_conn_accept(&b->broker_conn, bus_command->incoming);
        reply_failure(bus_command, failure);
        settle(bus_command);
}

void bus_command_refuse(struct bus_command *bus_command, struct str why)
{
        bus_command->bridge->count.busy++;
        refuse_bus_command(bus_command,
                           &(struct failure){ .status = 503, .message = why, .handled = true });
}

/* --- reading --- */

/* A broker that did not hear that we have a message may give it to us again. */
static bool is_duplicate(struct bus_command *bus_command)
{
        const struct command *c = &bus_command->command;
        struct str key = str_from(arena_printf(&bus_command->memory, "%.*s\n%.*s\n%.*s",
                                               STR_ARG(c->sender.instance), STR_ARG(c->id),
                                               STR_ARG(c->correlation)));

        if (!key.p || map_get(&bus_command->bridge->by_key, key))
                return true;
        map_add(&bus_command->bridge->by_key, &bus_command->by_key, key);
        return false;
}

static int read_message(struct bus_command *bus_command)
{
        struct incoming *m = bus_command->incoming;
        struct bridge *b = bus_command->bridge;
        struct json_error e;
        int r;

        if (buf_failed(&m->body)) {
                log_warn(b->log, "a message of more than %zu bytes was dropped", MESSAGE_BODY_MAX);
                return -EMSGSIZE;
        }
        r = message_read_command(buf_str(&m->body), &bus_command->memory, &bus_command->command,
                                 &e);
        buf_done(&m->body); /* all that is needed was copied out of it */
        if (r < 0) {
                log_warn(b->log, "a message that is no command was dropped: %s", e.message);
                return r;
        }
        return 0;
}

/* The reply of a command needs an address, by the message or by its sender, and what it is known by. */
static bool is_answerable(const struct bus_command *bus_command)
{
        const struct transport_ops *ops = bus_command->bridge->settings->transport;

        if (ops->reply_by_sender)
                return bus_command->command.sender.instance.n > 0
                       && bus_command->command.correlation.n > 0;
        if (ops->needs_correlation && bus_command->command.correlation.n == 0)
                return false;
        return bus_command->incoming->reply_to.n > 0;
}

static void complete(struct bus_command *bus_command)
{
        struct command *c = &bus_command->command;
        char id[ID_HEX_LEN + 1];

        if (c->correlation.n == 0 && bus_command->incoming->correlation.n > 0)
                c->correlation = buf_str(&bus_command->incoming->correlation);
        if (!c->trace_id.p) {
                ids_hex(&bus_command->bridge->ids, id);
                c->trace_id = arena_dup_str(&bus_command->memory, str_from(id));
        }
        bus_command->size = bus_command->memory.used;
        bus_command->answerable = is_answerable(bus_command);
        if (!bus_command->answerable)
                bus_command->bridge->count.unaddressed++;
}

static void drop(struct bus_command *bus_command, uint64_t *counter)
{
        (*counter)++;
        broker_conn_accept(&bus_command->bridge->broker_conn, bus_command->incoming);
        bus_command_free(bus_command);
}

static void wait_or_refuse(struct bus_command *bus_command)
{
        struct bridge *b = bus_command->bridge;

        if (!bus_command->command.kind) {
                refuse_bus_command(bus_command,
                                   &(struct failure){ .status = 501, .handled = false });
                return;
        }
        if (b->stopping && b->settings->transport->accept) {
                bus_command_free(bus_command); /* the broker gives it to somebody else */
                return;
        }
        if (b->n_waiting >= b->settings->waiting || b->stopping
            || b->waiting_bytes + bus_command->size > WAITING_BYTES_MAX) {
                bus_command_refuse(bus_command,
                                   b->stopping ? BUS_COMMAND_STOPPING
                                               : STR("Too many sandbox commands are waiting. Try "
                                                     "again later."));
                return;
        }
        list_append(&b->waiting, &bus_command->node);
        b->n_waiting++;
        b->waiting_bytes += bus_command->size;
}

/* Replies of refusal pile up if the broker takes none; whoever sends that much gets no hutchd_reply. */
static bool is_flooded(const struct bridge *b)
{
        return b->n_answering > (size_t) b->settings->waiting + b->settings->in_flight;
}

void bus_command_take(struct bridge *b, struct incoming *m)
{
        struct bus_command *bus_command = xnew(struct bus_command);

        b->count.received++;
        bus_command->bridge = b;
        bus_command->incoming = m;
        list_init(&bus_command->node);
        arena_init(&bus_command->memory, BUS_COMMAND_ARENA_MAX);
        if (is_flooded(b)) {
                drop(bus_command, &b->count.dropped);
        } else if (read_message(bus_command) < 0) {
                drop(bus_command, &b->count.malformed);
        } else if (is_duplicate(bus_command)) {
                drop(bus_command, &b->count.duplicate);
        } else {
                complete(bus_command);
                wait_or_refuse(bus_command);
        }
}
