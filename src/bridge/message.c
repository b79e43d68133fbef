/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/message.h"

#include "base/base.h"

/* --- reading --- */

struct envelope {
        struct str type, id, correlation, trace_id, principal, tenant, otp;
        struct address sender, receiver;
        struct {
                struct str payload, parameter;
        } payload;
};

static const char *check_name(const void *v)
{
        const struct str *s = v;

        if (s->n > MESSAGE_NAME_MAX)
                return "is too long";
        return s->p && memchr(s->p, '\0', s->n) ? "must not hold a NUL" : NULL;
}

static const char *check_type(const void *v)
{
        return str_eq(*(const struct str *) v, STR("command")) ? NULL : "is not command";
}

#define NAME(T, m, key, fl) JSON_STR(T, m, key, fl, .check = check_name)

static const struct json_field address_fields[] = {
        NAME(struct address, service, "serviceName", JSON_REQUIRED | JSON_NONEMPTY),
        NAME(struct address, version, "serviceVersion", JSON_REQUIRED | JSON_NONEMPTY),
        NAME(struct address, target, "serviceTarget", JSON_REQUIRED),
        NAME(struct address, instance, "instanceId", JSON_NULL_OK),
        JSON_END,
};

#define PAYLOAD typeof(((struct envelope *) NULL)->payload)
static const struct json_field payload_fields[] = {
        JSON_RAW(PAYLOAD, payload, "payload", 0),
        JSON_RAW(PAYLOAD, parameter, "parameter", 0),
        JSON_END,
};

static const struct json_field envelope_fields[] = {
        JSON_STR(struct envelope, type, "messageType", JSON_REQUIRED, .check = check_type),
        NAME(struct envelope, id, "id", JSON_REQUIRED | JSON_NONEMPTY),
        NAME(struct envelope, correlation, "correlationId", JSON_NULL_OK),
        NAME(struct envelope, trace_id, "traceId", JSON_NULL_OK),
        NAME(struct envelope, principal, "principalId", JSON_NULL_OK),
        NAME(struct envelope, tenant, "tenantId", JSON_NULL_OK),
        NAME(struct envelope, otp, "otp", JSON_NULL_OK),
        JSON_OBJECT(struct envelope, sender, struct address, "sender", JSON_REQUIRED,
                    address_fields),
        JSON_OBJECT(struct envelope, receiver, struct address, "receiver", JSON_REQUIRED,
                    address_fields),
        JSON_OBJECT(struct envelope, payload, PAYLOAD, "payload", JSON_REQUIRED, payload_fields),
        JSON_END,
};

/* "00-" trace "-" span "-" flags, in lower case hexadecimal digits. A trace context that is not valid is ignored, so a
 * scan of the small document is enough. */
static struct str find_traceparent(struct str otp)
{
        static const char form[] = "00-tttttttttttttttttttttttttttttttt-tttttttttttttttt-tt";
        static const struct str key = STR("\"traceparent\"");
        const char *found = otp.p ? memmem(otp.p, otp.n, key.p, key.n) : NULL;
        struct str rest = found ? str_skip(otp, (size_t) (found - otp.p) + key.n) : STR_NULL;

        rest = str_trim(rest);
        if (!str_starts_with(rest, STR(":")))
                return STR_NULL;
        rest = str_trim(str_skip(rest, 1));
        if (rest.n < TRACEPARENT_LEN + 2 || rest.p[0] != '"' || rest.p[TRACEPARENT_LEN + 1] != '"')
                return STR_NULL;
        rest = str_of(rest.p + 1, TRACEPARENT_LEN);
        for (size_t i = 0; i < rest.n; i++) {
                char c = rest.p[i];
                bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');

                if (form[i] == 't' ? !hex : c != form[i])
                        return STR_NULL;
        }
        return rest;
}

int message_read_command(struct str text, struct arena *a, struct command_message *ret,
                         struct json_error *reterr)
{
        struct envelope m = { 0 };
        bool ours;
        int r = json_decode(text, envelope_fields, JSON_ALLOW_NULS, a, &m, reterr);

        if (r < 0)
                return r;
        ours = str_eq(m.receiver.service, PURISTA_SERVICE)
               && str_eq(m.receiver.version, PURISTA_VERSION);
        *ret = (struct command_message){
                .id = m.id,
                .correlation = m.correlation,
                .trace_id = m.trace_id,
                .principal = m.principal,
                .tenant = m.tenant,
                .sender = m.sender,
                .receiver = m.receiver,
                .command = ours ? purista_command_find(m.receiver.target) : NULL,
                .payload = m.payload.payload,
                .parameter = m.payload.parameter,
                .traceparent = find_traceparent(m.otp),
        };
        return 0;
}

/* --- heads --- */

int message_reply_head(const struct author *who, const struct command_message *c, struct str type,
                       struct arena *a, struct message_head *ret)
{
        unsigned char span[8];
        char *traceparent;

        *ret = (struct message_head){
                .type = type,
                .id = str_eq(type, TYPE_EVENT) ? STR_NULL : c->id, /* a reply has the command's */
                .principal = c->principal,
                .tenant = c->tenant,
                .sender = c->receiver,
                .receiver = c->sender,
        };
        ret->sender.instance = who->instance;
        if (!c->traceparent.p)
                return 0;
        /* The same trace with a new span. */
        traceparent = arena_dup(a, c->traceparent);
        if (!traceparent)
                return -ENOMEM;
        ids_random(who->ids, span, sizeof(span));
        hex_encode(traceparent + strlen("00-") + 32 + 1, span, sizeof(span));
        ret->traceparent = str_of(traceparent, c->traceparent.n);
        return 0;
}

struct address message_command_address(const struct purista_command *command)
{
        return (struct address){ .service = PURISTA_SERVICE,
                                 .version = PURISTA_VERSION,
                                 .target = command->name };
}

struct message_head message_announcement_head(const struct author *who,
                                              const struct purista_command *command)
{
        struct message_head head = { .type = TYPE_ANNOUNCEMENT,
                                     .sender = message_command_address(command) };

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

/* --- replies --- */

static void add_caller(struct buf *b, const struct command_message *c)
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

void message_add_success(struct buf *b, const struct author *who, const struct command_message *c,
                         const struct message_head *head, struct str payload)
{
        buf_add_char(b, '{');
        add_text(b, "id", c->id);
        add_text(b, "correlationId", c->correlation);
        add_caller(b, c);
        add_from_to(b, who, head);
        add_json(b, "payload", payload);
        add_otp(b, head->traceparent);
        buf_add_char(b, '}');
}

void message_add_failure(struct buf *b, const struct author *who, const struct command_message *c,
                         const struct message_head *head, const struct failure *failure)
{
        buf_add_char(b, '{');
        add_text(b, "id", c->id);
        add_json(b, "isHandledError", failure->handled ? STR("true") : STR("false"));
        add_caller(b, c);
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

/* --- events and announcements --- */

void message_add_event(struct buf *b, const struct author *who, const struct command_message *c,
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

#define CONTENT(which) \
        "\"contentType" which "\":\"application/json\",\"contentEncoding" which "\":\"utf-8\","

void message_add_announcement(struct buf *b, const struct author *who,
                              const struct message_head *head,
                              const struct purista_command *command)
{
        char trace_id[ID_HEX_LEN + 1];

        ids_hex(who->ids, trace_id);
        buf_add_char(b, '{');
        add_text(b, "messageType", head->type);
        add_text(b, "id", head->id);
        add_text(b, "traceId", str_from(trace_id));
        add_number(b, "timestamp", who->now);
        add_content(b);
        add_address(b, "sender", &head->sender);
        add_key(b, "payload");
        /* What the command takes and returns, as JSON schemas, and how a gateway offers it over HTTP. */
        buf_add_str(b, STR("{\"expose\":{" CONTENT("Request") CONTENT("Response")));
        buf_add_str(b, STR("\"inputPayload\":"));
        purista_command_add_input(b, command, /* over_http= */ false);
        buf_addf(
                b,
                ",\"outputPayload\":%s,\"deprecated\":false,\"http\":{\"method\":\"%s\",\"path\":\"",
                command->output, command->method);
        purista_command_add_gateway_path(b, command);
        buf_addf(b,
                 "\",\"mode\":\"sync\",\"openApi\":{\"description\":\"%s\",\"summary\":\"%.*s\","
                 "\"isSecure\":true,\"query\":[],\"tags\":[],\"additionalStatusCodes\":[],"
                 "\"operationId\":\"%.*s\"}}}}",
                 command->description, STR_ARG(command->name), STR_ARG(command->name));
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

/* --- the request to hutchd --- */

/* Gateways send {} if a command has no parameters. */
void message_add_request(struct buf *b, const struct command_message *c)
{
        buf_add_char(b, '{');
        add_text(b, "command", c->command->name);
        add_text(b, "tenantId", c->tenant);
        add_text(b, "principalId", c->principal);
        add_json(b, "payload", c->payload);
        if (c->parameter.n > strlen("{}"))
                add_json(b, "parameter", c->parameter);
        buf_add_char(b, '}');
}

/* --- the reply of hutchd --- */

static const struct json_field event_fields[] = {
        JSON_STR(struct reply_event, name, "name", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_RAW(struct reply_event, payload, "payload", 0),
        JSON_END,
};

struct raw_failure {
        int64_t status;
        struct str message, data;
        bool handled;
};

static const struct json_field failure_fields[] = {
        JSON_I64(struct raw_failure, status, "status", JSON_REQUIRED, JSON_RANGE(100, 599)),
        JSON_STR(struct raw_failure, message, "message", JSON_REQUIRED),
        JSON_RAW(struct raw_failure, data, "data", 0),
        JSON_BOOL(struct raw_failure, handled, "handled", 0),
        JSON_END,
};

struct raw_reply {
        bool ok;
        struct str payload;
        struct json_list events;
        struct raw_failure *error;
};

static const struct json_field reply_fields[] = {
        JSON_BOOL(struct raw_reply, ok, "ok", JSON_REQUIRED),
        JSON_RAW(struct raw_reply, payload, "payload", 0),
        JSON_LIST(struct raw_reply, events, struct reply_event, "events", JSON_NULL_OK,
                  event_fields, .items_max = 64),
        JSON_OPT(struct raw_reply, error, struct raw_failure, "error", JSON_NULL_OK,
                 failure_fields),
        JSON_END,
};

int message_read_reply(struct str text, struct arena *a, struct hutchd_reply *ret,
                       struct json_error *reterr)
{
        struct raw_reply raw = { 0 };
        int r = json_decode(text, reply_fields, JSON_ALLOW_NULS, a, &raw, reterr);

        if (r < 0)
                return r;
        if (!raw.ok && !raw.error) {
                (void) snprintf(reterr->message, sizeof(reterr->message), "error: is missing");
                return -EINVAL;
        }
        *ret = (struct hutchd_reply){ .ok = raw.ok, .payload = raw.payload, .events = raw.events };
        if (raw.error)
                ret->error = (struct failure){ .status = (int) raw.error->status,
                                               .message = raw.error->message,
                                               .data = raw.error->data,
                                               .handled = raw.error->handled };
        return 0;
}
