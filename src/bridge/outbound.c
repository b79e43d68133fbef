/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/outbound.h"

#include "base/base.h"
#include "bridge/bus_command.h"

#define BODY_MAX (128 * MiB) /* if the broker announces no limit */

/* --- headers --- */

/* Headers are lines on some brokers, and only for people who watch the traffic: one that would need escapes is
 * left out. */
static void add_header(struct outgoing *m, const char *name, struct str value)
{
        if (!value.p || value.n > MESSAGE_NAME_MAX)
                return;
        for (size_t i = 0; i < value.n; i++)
                if ((unsigned char) value.p[i] < ' ' || value.p[i] == 0x7f)
                        return;
        ASSERT(m->n_headers < ARRAY_SIZE(m->headers));
        m->headers[m->n_headers++] = (struct header){ name, value };
}

static void add_headers(struct outgoing *m)
{
        const struct message_head *h = &m->head;

        add_header(m, "messageType", h->type);
        add_header(m, "senderServiceName", h->sender.service);
        add_header(m, "senderServiceVersion", h->sender.version);
        add_header(m, "senderServiceTarget", h->sender.target);
        add_header(m, "senderInstanceId", h->sender.instance);
        add_header(m, "receiverServiceName", h->receiver.service);
        add_header(m, "receiverServiceVersion", h->receiver.version);
        add_header(m, "receiverServiceTarget", h->receiver.target);
        add_header(m, "receiverInstanceId", h->receiver.instance);
        add_header(m, "traceparent", h->traceparent);
        add_header(m, "eventName", h->event);
        add_header(m, "principalId", h->principal);
        add_header(m, "tenantId", h->tenant);
}

/* --- life cycle --- */

struct outbound *outbound_new(struct bridge *b, const struct message_head *head,
                              struct bus_command *cmd)
{
        struct outbound *p = xnew(struct outbound);

        p->bridge = b;
        p->cmd = cmd;
        if (cmd)
                cmd->n_outbound++;
        list_init(&p->node);
        list_init(&p->message.node);
        p->message.head = *head;
        if (!head->id.p) {
                ids_hex(&b->ids, p->id);
                p->message.head.id = str_from(p->id);
        }
        p->message.timestamp = bridge_author(b).now;
        buf_init(&p->message.body, b->body_max ? b->body_max : BODY_MAX);
        add_headers(&p->message);
        return p;
}

struct author outbound_author(const struct outbound *p)
{
        struct author who = bridge_author(p->bridge);

        who.now = p->message.timestamp;
        return who;
}

void outbound_free(struct outbound *p)
{
        if (p->cmd)
                p->cmd->n_outbound--;
        list_remove(&p->node);
        buf_done(&p->message.body);
        free(p);
}

/* --- sending --- */

void outbound_send(struct outbound *p)
{
        struct bridge *b = p->bridge;

        if (!b->up) {
                list_append(&b->unsent, &p->node);
                return;
        }
        /* True if the command came by an earlier connection. */
        p->message.probe = p->message.is_reply && p->cmd->incoming->epoch != b->epoch;
        broker_conn_send(&b->conn, &p->message);
}

/* Sending may append to the same list, so it is emptied first. */
void outbound_send_all(struct list *messages)
{
        struct list now;

        list_init(&now);
        list_for_each (n, messages) {
                list_remove(n);
                list_append(&now, n);
        }
        list_for_each (n, &now) {
                struct outbound *p = container_of(n, struct outbound, node);

                list_remove(n);
                p->bridge->count.resent++;
                outbound_send(p);
        }
}

static void retry_due(uv_timer_t *t)
{
        struct bridge *b = t->data;

        outbound_send_all(&b->retry);
}

void outbound_completed(struct broker_conn *w, struct outgoing *m)
{
        struct outbound *p = container_of(m, struct outbound, message);
        struct bridge *b = p->bridge;
        enum outcome outcome = m->outcome;
        usec_t now = clock_mono(&clock_system);

        (void) w;
        if (outcome == OUTCOME_LOST && ++p->losses < OUTBOUND_LOSSES_MAX) {
                list_append(&b->unsent, &p->node);
                return;
        }
        if (outcome == OUTCOME_NO_RECEIVER && !p->retry_until)
                p->retry_until = now + OUTBOUND_RETRY_FOR;
        if (outcome == OUTCOME_NO_RECEIVER && m->probe && now < p->retry_until && !b->stopping) {
                log_debug(b->log, "no receiver for a reply yet");
                list_append(&b->retry, &p->node);
                if (!uv_is_active((uv_handle_t *) &b->retry_timer))
                        (void) uv_timer_start(&b->retry_timer, retry_due, OUTBOUND_RETRY_MS, 0);
                return;
        }
        if (p->cmd)
                bus_command_sent(p->cmd, p, outcome == OUTCOME_LOST ? OUTCOME_REFUSED : outcome);
        else
                outbound_free(p);
}
