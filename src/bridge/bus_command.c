/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/bus_command.h"

#include "base/base.h"
#include "bridge/outbound.h"

/* --- states --- */

static void set_state(struct bus_command *cmd, enum bus_command_state state)
{
        struct bridge *b = cmd->bridge;

        list_remove(&cmd->node);
        b->n_running -= cmd->state == BUS_COMMAND_RUNNING;
        b->n_refused -= cmd->state == BUS_COMMAND_REFUSED;
        if (cmd->state == BUS_COMMAND_WAITING) {
                b->n_waiting--;
                b->waiting_bytes -= cmd->size;
        }
        cmd->state = state;
        b->n_running += state == BUS_COMMAND_RUNNING;
        b->n_refused += state == BUS_COMMAND_REFUSED;
        if (state == BUS_COMMAND_WAITING) {
                b->n_waiting++;
                b->waiting_bytes += cmd->size;
        }
        if (state != BUS_COMMAND_NEW)
                list_append(state == BUS_COMMAND_WAITING ? &b->waiting : &b->running, &cmd->node);
}

void bus_command_free(struct bus_command *cmd)
{
        set_state(cmd, BUS_COMMAND_NEW);
        map_remove(&cmd->bridge->by_key, &cmd->by_key);
        hutchd_request_free(&cmd->request);
        incoming_free(cmd->incoming);
        arena_done(&cmd->memory);
        free(cmd);
}

bool bus_command_is_from_earlier_conn(const struct bus_command *cmd)
{
        return cmd && cmd->incoming->epoch != cmd->bridge->epoch;
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

static struct outbound *new_outbound(struct bus_command *cmd, struct str type, struct str event)
{
        struct author who = bridge_author(cmd->bridge);
        struct message_head head;

        if (message_reply_head(&who, &cmd->message, type, &cmd->memory, &head) < 0)
                head.traceparent = STR_NULL;
        head.event = event;
        if (event.p)
                head.receiver = (struct address){ .service = STR_NULL };
        return outbound_new(cmd->bridge, &head, cmd);
}

static struct outbound *new_reply(struct bus_command *cmd, struct str type)
{
        struct outbound *p = new_outbound(cmd, type, STR_NULL);

        p->message.is_reply = true;
        p->message.correlation = cmd->message.correlation;
        if (cmd->incoming->reply_to.n > 0)
                p->message.reply_to = buf_str(&cmd->incoming->reply_to);
        return p;
}

static void send_outbound(struct bus_command *cmd, struct outbound *p)
{
        cmd->n_outbound++;
        outbound_send(p);
}

static void reply_failure(struct bus_command *cmd, const struct failure *failure)
{
        const struct failure small = { .status = failure->status,
                                       .message = message_status_text(failure->status),
                                       .handled = failure->handled };
        struct author who;
        struct outbound *p;

        cmd->bridge->count.failed++;
        if (!cmd->has_reply_address)
                return;
        p = new_reply(cmd, TYPE_ERROR);
        who = outbound_author(p);
        message_add_failure(&p->message.body, &who, &cmd->message, &p->message.head, failure);
        if (buf_failed(&p->message.body)) {
                buf_reset(&p->message.body);
                message_add_failure(&p->message.body, &who, &cmd->message, &p->message.head,
                                    &small);
        }
        send_outbound(cmd, p);
}

static void reply_too_large(struct bus_command *cmd)
{
        struct bridge *b = cmd->bridge;
        char text[256];

        b->count.too_large++;
        (void) snprintf(text, sizeof(text),
                        "The reply is larger than the message broker accepts (%zu bytes). Request "
                        "less at a time: a part of the file, or less output.",
                        b->body_max);
        reply_failure(cmd, &(struct failure){
                                   .status = 413, .message = str_from(text), .handled = true });
}

static void reply_success(struct bus_command *cmd, struct str payload)
{
        struct author who;
        struct outbound *p;

        if (!cmd->has_reply_address) {
                cmd->bridge->count.succeeded++;
                return;
        }
        p = new_reply(cmd, TYPE_SUCCESS);
        who = outbound_author(p);
        message_add_success(&p->message.body, &who, &cmd->message, &p->message.head, payload);
        if (buf_failed(&p->message.body)) {
                outbound_free(p);
                reply_too_large(cmd);
                return;
        }
        cmd->bridge->count.succeeded++;
        send_outbound(cmd, p);
}

static void publish_event(struct bus_command *cmd, const struct reply_event *event)
{
        struct outbound *p = new_outbound(cmd, TYPE_EVENT, event->name);
        struct author who = outbound_author(p);

        message_add_event(&p->message.body, &who, &cmd->message, &p->message.head, event->payload);
        if (buf_failed(&p->message.body)) {
                outbound_free(p);
                return;
        }
        cmd->bridge->count.events++;
        send_outbound(cmd, p);
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
        cmd->n_outbound--;
        if (too_large) {
                b->count.succeeded--;
                reply_too_large(cmd);
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

static void take_reply(struct bus_command *cmd)
{
        struct json_error e;
        struct hutchd_reply reply;
        int r = message_read_reply(cmd->request.reply, &cmd->memory, &reply, &e);

        if (r == -ENOMEM) {
                reply_too_large(cmd);
        } else if (r < 0) {
                log_failed(cmd, e.message);
                reply_failure(cmd, &(struct failure){ .status = 500 });
        } else if (reply.ok) {
                const struct reply_event *events = reply.events.items;

                for (size_t i = 0; i < reply.events.n; i++)
                        publish_event(cmd, &events[i]);
                reply_success(cmd, reply.payload);
        } else {
                reply_failure(cmd, &reply.error);
        }
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

static void take_failure(struct bus_command *cmd)
{
        struct failure failure = { .status = 500 };

        for (size_t i = 0; i < ARRAY_SIZE(request_failures); i++)
                if (request_failures[i].code == cmd->request.code)
                        failure = (struct failure){ .status = request_failures[i].status,
                                                    .message = request_failures[i].message,
                                                    .handled = true };
        if (cmd->request.status == 413)
                failure = (struct failure){
                        .status = 413,
                        .message = STR("The command is larger than the sandbox server accepts. "
                                       "Send files in parts, or raise purista.file_limit in "
                                       "hutchd.yaml."),
                        .handled = true
                };
        log_failed(cmd, cmd->request.why);
        reply_failure(cmd, &failure);
}

static void request_done(struct hutchd_request *request)
{
        struct bus_command *cmd = container_of(request, struct bus_command, request);

        if (request->code == HUTCH_OK)
                take_reply(cmd);
        else
                take_failure(cmd);
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

static void refuse(struct bus_command *cmd, const struct failure *failure)
{
        set_state(cmd, BUS_COMMAND_REFUSED);
        broker_conn_accept(&cmd->bridge->conn, cmd->incoming);
        reply_failure(cmd, failure);
        end_if_sent(cmd);
}

static void refuse_busy(struct bus_command *cmd, struct str why)
{
        cmd->bridge->count.busy++;
        refuse(cmd, &(struct failure){ .status = 503, .message = why, .handled = true });
}

void bus_command_refuse_stopping(struct bus_command *cmd)
{
        refuse_busy(cmd, STR("This sandbox service is stopping. Try again."));
}

/* --- reading --- */

static int read_message(struct bus_command *cmd)
{
        struct incoming *m = cmd->incoming;
        struct json_error e;
        int r;

        if (buf_failed(&m->body)) {
                log_fields(cmd->bridge->log, LOG_WARN, "message dropped: too large",
                           LOG_F_U64("max", MESSAGE_MAX));
                return -EMSGSIZE;
        }
        r = message_read_command(buf_str(&m->body), &cmd->memory, &cmd->message, &e);
        buf_done(&m->body); /* the arena has copies of everything that is needed */
        if (r < 0)
                log_fields(cmd->bridge->log, LOG_WARN, "message dropped: not a command",
                           LOG_F_STR("reason", str_from(e.message)));
        return r;
}

/* A broker that did not get an acknowledgement may deliver a message again. */
static bool is_duplicate(struct bus_command *cmd)
{
        const struct command_message *m = &cmd->message;
        struct str key =
                str_from(arena_printf(&cmd->memory, "%.*s\n%.*s\n%.*s", STR_ARG(m->sender.instance),
                                      STR_ARG(m->id), STR_ARG(m->correlation)));

        if (!key.p || map_get(&cmd->bridge->by_key, key))
                return true;
        map_add(&cmd->bridge->by_key, &cmd->by_key, key);
        return false;
}

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

static void complete(struct bus_command *cmd)
{
        struct command_message *m = &cmd->message;
        char id[ID_HEX_LEN + 1];

        if (m->correlation.n == 0 && cmd->incoming->correlation.n > 0)
                m->correlation = buf_str(&cmd->incoming->correlation);
        if (!m->trace_id.p) {
                ids_hex(&cmd->bridge->ids, id);
                m->trace_id = arena_dup_str(&cmd->memory, str_from(id));
        }
        cmd->size = cmd->memory.used;
        cmd->has_reply_address = has_reply_address(cmd);
        cmd->bridge->count.unaddressed += !cmd->has_reply_address;
}

static void start_wait_or_refuse(struct bus_command *cmd)
{
        struct bridge *b = cmd->bridge;

        if (!cmd->message.command)
                refuse(cmd, &(struct failure){ .status = 501 });
        else if (b->stopping && b->settings->transport->accept)
                bus_command_free(cmd); /* the broker delivers it to another bridge */
        else if (b->stopping)
                bus_command_refuse_stopping(cmd);
        else if (b->n_running < b->settings->in_flight && list_empty(&b->waiting))
                bus_command_start(cmd);
        else if (b->n_waiting >= b->settings->waiting
                 || b->waiting_bytes + cmd->size > WAITING_BYTES_MAX)
                refuse_busy(cmd, STR("Too many sandbox commands are waiting. Try again later."));
        else
                set_state(cmd, BUS_COMMAND_WAITING);
}

void bus_command_take(struct bridge *b, struct incoming *m)
{
        struct bus_command *cmd = xnew(struct bus_command);
        uint64_t *dropped = NULL;

        b->count.received++;
        cmd->bridge = b;
        cmd->incoming = m;
        list_init(&cmd->node);
        arena_init(&cmd->memory, BUS_COMMAND_ARENA_MAX);
        /* Refusals pile up if the broker accepts none: a sender of that many gets no reply. */
        if (b->n_refused > (size_t) b->settings->waiting + b->settings->in_flight)
                dropped = &b->count.dropped;
        else if (read_message(cmd) < 0)
                dropped = &b->count.malformed;
        else if (is_duplicate(cmd))
                dropped = &b->count.duplicate;
        if (!dropped) {
                complete(cmd);
                start_wait_or_refuse(cmd);
                return;
        }
        (*dropped)++;
        broker_conn_accept(&b->conn, m);
        bus_command_free(cmd);
}
