/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/bus_command.h"

#include "base/base.h"
#include "bridge/outbound.h"

/* --- states --- */

static void set_state(struct bus_command *cmd, enum bus_command_state state)
{
        struct bridge *b = cmd->bridge;

        list_remove(&cmd->node);
        b->n_refused -= cmd->state == BUS_COMMAND_REFUSED;
        cmd->state = state;
        b->n_refused += state == BUS_COMMAND_REFUSED;
        if (state == BUS_COMMAND_WAITING)
                share_wait(&b->shares, &cmd->share);
        else if (state == BUS_COMMAND_RUNNING)
                share_run(&b->shares, &cmd->share);
        else
                share_leave(&b->shares, &cmd->share);
        if (state == BUS_COMMAND_RUNNING || state == BUS_COMMAND_REFUSED)
                list_append(&b->unreplied, &cmd->node);
}

void bus_command_free(struct bus_command *cmd)
{
        set_state(cmd, BUS_COMMAND_NEW);
        alarm_clear(&cmd->bridge->deadlines, &cmd->deadline);
        map_remove(&cmd->bridge->by_key, &cmd->by_key);
        hutchd_request_free(&cmd->request);
        incoming_free(cmd->incoming);
        arena_done(&cmd->memory);
        free(cmd);
}

/* hutchd has replied or was not asked; the broker may still lack messages. */
static void end_if_sent(struct bus_command *cmd)
{
        struct bridge *b = cmd->bridge;

        if (cmd->n_outbound > 0)
                return;
        bus_command_free(cmd);
        bridge_next(b);
}

/* --- outbound messages --- */

/* The reply, or an event of that name. */
static struct outbound *new_outbound(struct bus_command *cmd, struct str type, struct str event)
{
        struct author who = bridge_author(cmd->bridge);
        struct message_head head;
        struct outbound *p;

        if (message_reply_head(&who, &cmd->message, type, &cmd->memory, &head) < 0)
                head.traceparent = STR_NULL;
        head.event = event;
        if (event.p)
                head.receiver = (struct address){ .service = STR_NULL };
        p = outbound_new(cmd->bridge, &head, cmd);
        if (event.p)
                return p;
        p->message.is_reply = true;
        p->message.correlation = cmd->message.correlation;
        if (cmd->incoming->reply_to.n > 0)
                p->message.reply_to = buf_str(&cmd->incoming->reply_to);
        return p;
}

/* Replies are NULL if the caller has no address. */
static struct outbound *failure_reply(struct bus_command *cmd, const struct failure *failure)
{
        const struct failure small = { .status = failure->status,
                                       .message = message_status_text(failure->status),
                                       .handled = failure->handled };
        struct author who;
        struct outbound *p;

        cmd->bridge->count.failed++;
        if (!cmd->has_reply_address)
                return NULL;
        p = new_outbound(cmd, TYPE_ERROR, STR_NULL);
        who = outbound_author(p);
        message_add_failure(&p->message.body, &who, &cmd->message, &p->message.head, failure);
        if (buf_failed(&p->message.body)) {
                buf_reset(&p->message.body);
                message_add_failure(&p->message.body, &who, &cmd->message, &p->message.head,
                                    &small);
        }
        return p;
}

static struct outbound *too_large_reply(struct bus_command *cmd)
{
        struct bridge *b = cmd->bridge;
        char text[256];

        b->count.too_large++;
        (void) snprintf(text, sizeof(text),
                        "The reply is larger than the message broker accepts (%zu bytes). Request "
                        "less at a time: a part of the file, or less output.",
                        b->body_max);
        return failure_reply(cmd, &(struct failure){ .status = 413,
                                                     .message = str_from(text),
                                                     .handled = true });
}

static struct outbound *success_reply(struct bus_command *cmd, struct str payload)
{
        struct author who;
        struct outbound *p;

        cmd->bridge->count.succeeded++;
        if (!cmd->has_reply_address)
                return NULL;
        p = new_outbound(cmd, TYPE_SUCCESS, STR_NULL);
        who = outbound_author(p);
        message_add_success(&p->message.body, &who, &cmd->message, &p->message.head, payload);
        if (!buf_failed(&p->message.body))
                return p;
        outbound_free(p);
        cmd->bridge->count.succeeded--;
        return too_large_reply(cmd);
}

static void send_events(struct bus_command *cmd, const struct hutchd_reply *reply)
{
        const struct reply_event *events = reply->events.items;

        for (size_t i = 0; i < reply->events.n; i++) {
                struct outbound *p = new_outbound(cmd, TYPE_EVENT, events[i].name);
                struct author who = outbound_author(p);

                message_add_event(&p->message.body, &who, &cmd->message, &p->message.head,
                                  events[i].payload);
                if (buf_failed(&p->message.body)) {
                        outbound_free(p);
                        continue;
                }
                cmd->bridge->count.events++;
                outbound_send(p);
        }
}

void bus_command_sent(struct bus_command *cmd, struct outbound *p, enum outcome outcome)
{
        struct bridge *b = cmd->bridge;
        bool too_large = outcome == OUTCOME_TOO_LARGE && p->message.is_reply
                         && str_eq(p->message.head.type, TYPE_SUCCESS);

        if (p->message.is_reply && outcome != OUTCOME_SENT && !too_large) {
                b->count.undeliverable++;
                log_fields(b->log, LOG_WARN, "reply not delivered",
                           LOG_F_STR("reason", outcome == OUTCOME_NO_RECEIVER
                                                       ? STR("the caller is gone")
                                                       : STR("the broker refuses it")));
        }
        outbound_free(p);
        if (too_large) {
                b->count.succeeded--;
                p = too_large_reply(cmd);
                if (p)
                        outbound_send(p);
        }
        end_if_sent(cmd);
}

/* --- the reply of hutchd --- */

static void log_failed(struct bus_command *cmd, const char *reason)
{
        log_fields(cmd->bridge->log, LOG_WARN, "command failed",
                   LOG_F_STR("command", cmd->message.command->name),
                   LOG_F_STR("reason", str_from(reason)));
}

/* Why hutchd gave no reply. The caller gets what it can act on; the rest goes to the log. */
static const struct {
        int code;
        int status;
        struct str message;
} request_failures[] = {
        { HUTCH_CONNECT, 503, STR("The sandbox server is unreachable. Try again later.") },
        { HUTCH_BUSY, 503, STR("The sandbox server is busy. Try again later.") },
        { HUTCH_TIMEOUT, 504, STR("The sandbox server did not reply in time.") },
        { HUTCH_TOO_LARGE, 413,
          STR("The result is larger than the bridge accepts. Request less at a time.") },
};

static struct failure failure_of(const struct hutchd_request *request)
{
        if (request->status == 413)
                return (struct failure){
                        .status = 413,
                        .message = STR("The command is larger than the sandbox server accepts. "
                                       "Send files in parts, or raise purista.file_limit in "
                                       "hutchd.yaml."),
                        .handled = true
                };
        for (size_t i = 0; i < ARRAY_SIZE(request_failures); i++)
                if (request_failures[i].code == request->code)
                        return (struct failure){ .status = request_failures[i].status,
                                                 .message = request_failures[i].message,
                                                 .handled = true };
        return (struct failure){ .status = 500 };
}

static void request_done(struct hutchd_request *request)
{
        struct bus_command *cmd = container_of(request, struct bus_command, request);
        const bool ok = request->code == HUTCH_OK;
        static const struct failure ended = {
                .status = 504,
                .message = STR("The caller's timeout has passed, so the command was ended."),
                .handled = true
        };
        struct failure failure = { .status = 500 };
        struct hutchd_reply reply;
        struct outbound *p;
        struct json_error e;
        int r = ok ? message_read_reply(request->reply, &cmd->memory, &reply, &e) : 0;

        alarm_clear(&cmd->bridge->deadlines, &cmd->deadline);
        if (cmd->expired && request->code == HUTCH_CANCELED) {
                p = failure_reply(cmd, &ended);
        } else if (!ok) {
                failure = failure_of(request);
                log_failed(cmd, request->why);
                p = failure_reply(cmd, &failure);
        } else if (r == -ENOMEM) {
                p = too_large_reply(cmd);
        } else if (r < 0) {
                log_failed(cmd, e.message);
                p = failure_reply(cmd, &failure);
        } else if (reply.ok) {
                send_events(cmd, &reply); /* before the reply */
                p = success_reply(cmd, reply.payload);
        } else {
                p = failure_reply(cmd, &reply.error);
        }
        if (p)
                outbound_send(p);
        hutchd_request_free(request);
        end_if_sent(cmd);
}

void bus_command_start(struct bus_command *cmd)
{
        struct bridge *b = cmd->bridge;

        set_state(cmd, BUS_COMMAND_RUNNING);
        b->count.started++;
        cmd->request.message = &cmd->message;
        cmd->request.memory = &cmd->memory;
        cmd->request.done = request_done;
        hutchd_request_start(&b->hutchd, &cmd->request);
        /* The acknowledgement follows the request, which a caller waits for. If the bridge ends between the two,
         * the broker delivers the command to another bridge, as it does if the connection loses it. */
        broker_conn_accept(&b->conn, cmd->incoming);
}

/* --- commands that do not run --- */

/* With the reason, or with the usual text of the status. */
static void refuse(struct bus_command *cmd, int status, struct str why)
{
        const struct failure failure = { .status = status,
                                         .message = why,
                                         .handled = why.p != NULL };
        struct bridge *b = cmd->bridge;
        struct outbound *p;

        broker_conn_accept(&b->conn, cmd->incoming);
        /* Refusals pile up if the broker accepts none: a sender of that many gets no reply. */
        if (b->n_refused > (size_t) b->settings->waiting + b->settings->in_flight) {
                b->count.dropped++;
                bus_command_free(cmd);
                return;
        }
        set_state(cmd, BUS_COMMAND_REFUSED);
        alarm_clear(&b->deadlines, &cmd->deadline);
        b->count.busy += status == 503;
        p = failure_reply(cmd, &failure);
        if (p)
                outbound_send(p);
        end_if_sent(cmd);
}

void bus_command_refuse_stopping(struct bus_command *cmd)
{
        refuse(cmd, 503, STR("This sandbox service is stopping. Try again."));
}

/* The queue is full: the tenant that has most in it gives up its last place. Returns whether there is one now. */
static bool make_place(struct bus_command *cmd)
{
        struct bridge *b = cmd->bridge;
        struct share *c;

        while ((c = share_too_many(&b->shares, &cmd->share))) {
                const bool itself = c == &cmd->share;
                char why[200];

                (void) snprintf(
                        why, sizeof(why),
                        "Too many commands of this tenant are waiting: the bridge keeps %u, or %u MiB, "
                        "for all tenants. Try again later.",
                        b->settings->waiting, (unsigned) (WAITING_BYTES_MAX / MiB));
                refuse(container_of(c, struct bus_command, share), 503, str_from(why));
                if (itself)
                        return false;
        }
        return true;
}

/* --- callers that do not wait any longer --- */

static void deadline_passed(struct alarm *a)
{
        struct bus_command *cmd = container_of(a, struct bus_command, deadline);
        const struct purista_command *command = cmd->message.command;
        const bool creates = command == &purista_commands[PURISTA_CREATE_SANDBOX]
                             || command == &purista_commands[PURISTA_ENSURE_SANDBOX];

        if (cmd->state == BUS_COMMAND_RUNNING && creates)
                return;
        cmd->bridge->count.expired++;
        log_fields(cmd->bridge->log, LOG_INFO, "caller has given up",
                   LOG_F_STR("command", command->name),
                   LOG_F_STR("state",
                             cmd->state == BUS_COMMAND_RUNNING ? STR("running") : STR("waiting")));
        if (cmd->state == BUS_COMMAND_RUNNING) {
                cmd->expired = true;
                hutchd_request_cancel(&cmd->request);
        } else {
                refuse(cmd, 504,
                       STR("The caller's timeout passed before the command could start."));
        }
}

/* Returns whether there is time left. It is measured from now, by the clock of this host: the sender's may be wrong. */
static bool set_deadline(struct bus_command *cmd)
{
        struct bridge *b = cmd->bridge;
        usec_t timeout = cmd->incoming->timeout;

        if (timeout == USEC_INFINITY)
                timeout = b->settings->caller_timeout;
        if (timeout == 0)
                return false;
        if (timeout < USEC_INFINITY)
                alarm_set(&b->deadlines, &cmd->deadline, usec_add(net_loop_now(&b->loop), timeout),
                          deadline_passed);
        return true;
}

/* --- reading --- */

/* A reply needs an address, from the message or from its sender, and an id that the caller knows. */
static bool has_reply_address(const struct bus_command *cmd)
{
        const struct transport_ops *ops = cmd->bridge->settings->transport;

        if (ops->reply_by_sender)
                return cmd->message.sender.instance.n > 0 && cmd->message.correlation.n > 0;
        if (ops->needs_correlation && cmd->message.correlation.n == 0)
                return false;
        return cmd->incoming->reply_to.n > 0;
}

/* Returns the counter of messages that are dropped for the same reason, or NULL. */
static uint64_t *read_message(struct bus_command *cmd)
{
        struct bridge *b = cmd->bridge;
        struct incoming *in = cmd->incoming;
        struct command_message *m = &cmd->message;
        char id[ID_HEX_LEN + 1];
        struct json_error e;
        struct str key;
        int r;

        if (buf_failed(&in->body)) {
                log_fields(b->log, LOG_WARN, "message dropped: too large",
                           LOG_F_U64("max", MESSAGE_MAX));
                return &b->count.malformed;
        }
        r = message_read_command(buf_str(&in->body), &cmd->memory, m, &e);
        buf_done(&in->body); /* the arena has copies of everything that is needed */
        if (r < 0) {
                log_fields(b->log, LOG_WARN, "message dropped: not a command",
                           LOG_F_STR("reason", str_from(e.message)));
                return &b->count.malformed;
        }
        /* A broker that did not get an acknowledgement may deliver a message again. */
        key = str_from(arena_printf(&cmd->memory, "%.*s\n%.*s\n%.*s", STR_ARG(m->sender.instance),
                                    STR_ARG(m->id), STR_ARG(m->correlation)));
        if (!key.p || map_get(&b->by_key, key))
                return &b->count.duplicate;
        map_add(&b->by_key, &cmd->by_key, key);
        if (m->correlation.n == 0 && in->correlation.n > 0)
                m->correlation = buf_str(&in->correlation);
        if (!m->trace_id.p) {
                ids_hex(&b->ids, id);
                m->trace_id = arena_dup_str(&cmd->memory, str_from(id));
        }
        share_join(&b->shares, &cmd->share, str_trim(m->tenant), cmd->memory.used);
        cmd->has_reply_address = has_reply_address(cmd);
        b->count.unaddressed += !cmd->has_reply_address;
        return NULL;
}

void bus_command_take(struct broker_conn *w, struct incoming *m)
{
        struct bridge *b = container_of(w, struct bridge, conn);
        struct bus_command *cmd = xnew(struct bus_command);
        uint64_t *dropped;

        b->count.received++;
        cmd->bridge = b;
        cmd->incoming = m;
        list_init(&cmd->node);
        arena_init(&cmd->memory, BUS_COMMAND_ARENA_MAX);
        dropped = read_message(cmd);
        if (dropped) {
                (*dropped)++;
                broker_conn_accept(w, m);
                bus_command_free(cmd);
        } else if (!cmd->message.command) {
                refuse(cmd, 501, STR_NULL);
        } else if (b->stopping && w->ops->accept) {
                bus_command_free(cmd); /* the broker delivers it to another bridge */
        } else if (b->stopping) {
                bus_command_refuse_stopping(cmd);
        } else if (!set_deadline(cmd)) {
                deadline_passed(&cmd->deadline);
        } else if (share_may_run(&b->shares, &cmd->share)) {
                bus_command_start(cmd);
        } else if (make_place(cmd)) {
                set_state(cmd, BUS_COMMAND_WAITING);
        }
}
