/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/outbound.h"

#include "base/base.h"
#include "bridge/bus_command.h"

#define BODY_MAX (128 * MiB) /* if the broker names no limit */

/* --- headers --- */

/* Some brokers' headers are lines. They are a convenience for who looks at traffic: one that can't be
 * said is left out. */
static bool can_be_header(struct str value)
{
        if (!value.p || value.n > MESSAGE_NAME_MAX)
                return false;
        for (size_t i = 0; i < value.n; i++)
                if ((unsigned char) value.p[i] < ' ' || value.p[i] == 0x7f)
                        return false;
        return true;
}

static void add_header(struct outgoing *m, const char *name, struct str value)
{
        if (!can_be_header(value))
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

/* --- life --- */

struct outbound *outbound_of(struct outgoing *m)
{
        return container_of(m, struct outbound, message);
}

struct outbound *outbound_new(struct bridge *b, const struct message_head *head,
                              struct bus_command *bus_command)
{
        struct outbound *p = xnew(struct outbound);

        p->bridge = b;
        p->bus_command = bus_command;
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
        if (!p)
                return;
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
        p->message.probe = p->message.is_reply && bus_command_is_from_earlier_conn(p->bus_command);
        broker_conn_send(&b->broker_conn, &p->message);
}

void outbound_send_all(struct list *parcels)
{
        struct list now;

        list_init(&now);
        list_for_each (n, parcels) {
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

/* --- the end --- */

static void finish(struct outbound *p, enum outcome outcome)
{
        if (p->bus_command)
                bus_command_sent(p->bus_command, p, outcome);
        else
                outbound_free(p);
}

static void outbound_lost(struct outbound *p)
{
        struct bridge *b = p->bridge;

        if (++p->tries >= OUTBOUND_TRIES_MAX)
                finish(p, OUTCOME_REFUSED);
        else
                list_append(&b->unsent, &p->node);
}

static void outbound_no_receiver(struct outbound *p)
{
        struct bridge *b = p->bridge;
        usec_t now = clock_mono(&clock_system);

        if (!p->until)
                p->until = now + OUTBOUND_RETRY_UNTIL;
        if (!p->message.probe || now >= p->until || b->stopping) {
                finish(p, OUTCOME_NO_RECEIVER);
                return;
        }
        log_debug(b->log, "nobody listens for a reply yet");
        list_append(&b->retry, &p->node);
        bridge_retry_later(b);
}

void outbound_ended(struct outbound *p)
{
        if (p->message.outcome == OUTCOME_LOST)
                outbound_lost(p);
        else if (p->message.outcome == OUTCOME_NO_RECEIVER)
                outbound_no_receiver(p);
        else
                finish(p, p->message.outcome);
}
