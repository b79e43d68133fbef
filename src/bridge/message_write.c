/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/message.h"

#include "base/base.h"

/* --- heads --- */

/* The same trace, a span of our own. */
static struct str next_span(const struct author *who, struct str parent, struct arena *a)
{
        unsigned char span[8];
        char *text;

        if (!parent.p)
                return STR_NULL;
        text = arena_dup(a, parent);
        if (!text)
                return STR_NULL;
        ids_random(who->ids, span, sizeof(span));
        hex_encode(text + strlen("00-") + 32 + 1, span, sizeof(span));
        return str_of(text, parent.n);
}

int message_reply_head(const struct author *who, const struct command *c, struct str type,
                       struct arena *a, struct message_head *ret)
{
        *ret = (struct message_head){
                .type = type,
                .id = str_eq(type, TYPE_EVENT) ? STR_NULL : c->id, /* a reply has the command's */
                .principal = c->principal,
                .tenant = c->tenant,
                .sender = c->receiver,
                .receiver = c->sender,
                .traceparent = next_span(who, c->traceparent, a),
        };
        ret->sender.instance = who->instance;
        return c->traceparent.p && !ret->traceparent.p ? -ENOMEM : 0;
}

struct message_head message_announcement_head(const struct author *who,
                                              const struct command_kind *kind)
{
        struct message_head head = { .type = TYPE_ANNOUNCEMENT, .sender = command_address(kind) };

        head.sender.instance = who->instance;
        return head;
}

/* --- members --- */

static void add_key(struct buf *b, const char *key)
{
        struct str s = buf_str(b);

        if (s.n > 0 && s.p[s.n - 1] != '{')
                buf_add_char(b, ',');
        buf_addf(b, "\"%s\":", key);
}

/* A null view is left out. */
static void add_text(struct buf *b, const char *key, struct str value)
{
        if (!value.p)
                return;
        add_key(b, key);
        buf_add_quoted(b, value);
}

static void add_json(struct buf *b, const char *key, struct str value)
{
        if (!value.p)
                return;
        add_key(b, key);
        buf_add_str(b, value);
}

static void add_number(struct buf *b, const char *key, uint64_t value)
{
        add_key(b, key);
        buf_add_u64(b, value);
}

static void add_address(struct buf *b, const char *key, const struct address *address)
{
        add_key(b, key);
        buf_add_char(b, '{');
        add_text(b, "serviceName", address->service);
        add_text(b, "serviceVersion", address->version);
        add_text(b, "serviceTarget", address->target);
        add_text(b, "instanceId", address->instance);
        buf_add_char(b, '}');
}

static void add_content(struct buf *b)
{
        add_text(b, "contentType", STR("application/json"));
        add_text(b, "contentEncoding", STR("utf-8"));
}

/* A document in a text; without a trace it is an empty one. */
static void add_otp(struct buf *b, struct str traceparent)
{
        char text[sizeof("{\"traceparent\":\"\"}") + TRACEPARENT_LEN];
        struct buf otp;

        buf_init_fixed(&otp, text, sizeof(text));
        buf_add_char(&otp, '{');
        add_text(&otp, "traceparent", traceparent);
        buf_add_char(&otp, '}');
        add_text(b, "otp", buf_str(&otp));
}

static void add_new_id(struct buf *b, const char *key, const struct author *who)
{
        char id[ID_HEX_LEN + 1];

        ids_hex(who->ids, id);
        add_text(b, key, str_from(id));
}

/* --- replies --- */

static void add_whom(struct buf *b, const struct command *c)
{
        add_text(b, "traceId", c->trace_id);
        add_text(b, "principalId", c->principal);
        add_text(b, "tenantId", c->tenant);
        add_content(b);
}

static void add_from_to(struct buf *b, const struct author *who, const struct message_head *head)
{
        add_number(b, "timestamp", who->now);
        add_text(b, "messageType", head->type);
        add_address(b, "sender", &head->sender);
        add_address(b, "receiver", &head->receiver);
}

void message_add_success(struct buf *b, const struct author *who, const struct command *c,
                         const struct message_head *head, struct str payload)
{
        buf_add_char(b, '{');
        add_text(b, "id", c->id);
        add_text(b, "correlationId", c->correlation);
        add_whom(b, c);
        add_from_to(b, who, head);
        add_json(b, "payload", payload);
        add_otp(b, head->traceparent);
        buf_add_char(b, '}');
}

void message_add_failure(struct buf *b, const struct author *who, const struct command *c,
                         const struct message_head *head, const struct failure *failure)
{
        buf_add_char(b, '{');
        add_text(b, "id", c->id);
        add_json(b, "isHandledError", failure->handled ? STR("true") : STR("false"));
        add_whom(b, c);
        add_text(b, "correlationId", c->correlation);
        add_from_to(b, who, head);
        add_key(b, "payload");
        buf_add_char(b, '{');
        add_number(b, "status", (uint64_t) failure->status);
        add_text(b, "message",
                 failure->handled ? failure->message : message_status_text(failure->status));
        if (failure->handled)
                add_json(b, "data", failure->data);
        add_text(b, "traceId", c->trace_id);
        buf_add_char(b, '}');
        add_otp(b, head->traceparent);
        buf_add_char(b, '}');
}

/* --- what nobody asked for --- */

void message_add_event(struct buf *b, const struct author *who, const struct command *c,
                       const struct message_head *head, struct str payload)
{
        buf_add_char(b, '{');
        add_text(b, "messageType", head->type);
        add_content(b);
        add_address(b, "sender", &head->sender);
        add_text(b, "eventName", head->event);
        add_json(b, "payload", payload);
        add_text(b, "traceId", c->trace_id);
        add_text(b, "principalId", c->principal);
        add_text(b, "tenantId", c->tenant);
        add_text(b, "id", head->id);
        add_number(b, "timestamp", who->now);
        add_otp(b, head->traceparent);
        buf_add_char(b, '}');
}

void message_add_announcement(struct buf *b, const struct author *who,
                              const struct message_head *head, const struct command_kind *kind)
{
        buf_add_char(b, '{');
        add_text(b, "messageType", head->type);
        add_text(b, "id", head->id);
        add_new_id(b, "traceId", who);
        add_number(b, "timestamp", who->now);
        add_content(b);
        add_address(b, "sender", &head->sender);
        add_key(b, "payload");
        command_add_announcement(b, kind);
        add_otp(b, STR_NULL);
        buf_add_char(b, '}');
}

/* --- statuses --- */

static const struct {
        int status;
        struct str text;
} status_texts[] = {
        { 400, STR("Bad Request") },         { 401, STR("Unauthorized") },
        { 403, STR("Forbidden") },           { 404, STR("Not Found") },
        { 408, STR("Request Timeout") },     { 409, STR("Conflict") },
        { 413, STR("Payload Too Large") },   { 422, STR("Unprocessable Entity") },
        { 429, STR("Too Many Requests") },   { 500, STR("Internal Server Error") },
        { 501, STR("Not Implemented") },     { 502, STR("Bad Gateway") },
        { 503, STR("Service Unavailable") }, { 504, STR("Gateway Timeout") },
};

struct str message_status_text(int status)
{
        for (size_t i = 0; i < ARRAY_SIZE(status_texts); i++)
                if (status_texts[i].status == status)
                        return status_texts[i].text;
        return STR("Internal Server Error");
}

/* --- what hutchd is asked --- */

void message_add_request(struct buf *b, const struct command *c)
{
        buf_add_char(b, '{');
        add_text(b, "command", c->kind->name);
        add_text(b, "tenantId", c->tenant);
        add_text(b, "principalId", c->principal);
        add_json(b, "payload", c->payload);
        buf_add_char(b, '}');
}
