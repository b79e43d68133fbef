/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/parcel.h"

#include "base/base.h"
#include "bridge/job.h"

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

struct parcel *parcel_of(struct outgoing *m)
{
        return container_of(m, struct parcel, message);
}

struct parcel *parcel_new(struct bridge *b, const struct message_head *head, struct job *job)
{
        struct parcel *p = xnew(struct parcel);

        p->bridge = b;
        p->job = job;
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

struct author parcel_author(const struct parcel *p)
{
        struct author who = bridge_author(p->bridge);

        who.now = p->message.timestamp;
        return who;
}

void parcel_free(struct parcel *p)
{
        if (!p)
                return;
        list_remove(&p->node);
        buf_done(&p->message.body);
        free(p);
}

/* --- sending --- */

void parcel_send(struct parcel *p)
{
        struct bridge *b = p->bridge;

        if (!b->up) {
                list_append(&b->unsent, &p->node);
                return;
        }
        p->message.probe = p->message.is_reply && job_is_from_before(p->job);
        wire_send(&b->wire, &p->message);
}

void parcel_send_all(struct list *parcels)
{
        struct list now;

        list_init(&now);
        list_for_each (n, parcels) {
                list_remove(n);
                list_append(&now, n);
        }
        list_for_each (n, &now) {
                struct parcel *p = container_of(n, struct parcel, node);

                list_remove(n);
                p->bridge->count.resent++;
                parcel_send(p);
        }
}

/* --- the end --- */

static void finish(struct parcel *p, enum outcome outcome)
{
        if (p->job)
                job_parcel_ended(p->job, p, outcome);
        else
                parcel_free(p);
}

static void was_lost(struct parcel *p)
{
        struct bridge *b = p->bridge;

        if (++p->tries >= PARCEL_TRIES_MAX)
                finish(p, OUTCOME_REFUSED);
        else
                list_append(&b->unsent, &p->node);
}

static void nobody_listens(struct parcel *p)
{
        struct bridge *b = p->bridge;
        usec_t now = clock_mono(&clock_system);

        if (!p->until)
                p->until = now + PARCEL_RETRY_UNTIL;
        if (!p->message.probe || now >= p->until || b->stopping) {
                finish(p, OUTCOME_NO_RECEIVER);
                return;
        }
        log_debug(b->log, "nobody listens for a reply yet");
        list_append(&b->retry, &p->node);
        bridge_retry_later(b);
}

void parcel_ended(struct parcel *p)
{
        if (p->message.outcome == OUTCOME_LOST)
                was_lost(p);
        else if (p->message.outcome == OUTCOME_NO_RECEIVER)
                nobody_listens(p);
        else
                finish(p, p->message.outcome);
}
