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

/* "00-" trace "-" span "-" flags, in lower case hexadecimal digits. */
static bool is_traceparent(struct str s)
{
        static const char form[] = "00-tttttttttttttttttttttttttttttttt-tttttttttttttttt-tt";

        if (s.n != TRACEPARENT_LEN)
                return false;
        for (size_t i = 0; i < s.n; i++) {
                bool hex = (s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f');

                if (form[i] == 't' ? !hex : s.p[i] != form[i])
                        return false;
        }
        return true;
}

/* What is wrong with it is no reason to refuse a command. */
static struct str read_traceparent(struct str otp, struct arena *a)
{
        struct {
                struct str traceparent;
        } v = { STR_NULL };
        static const struct json_field fields[] = {
                JSON_STR(typeof(v), traceparent, "traceparent", JSON_NULL_OK),
                JSON_END,
        };
        struct json_error e;

        if (otp.n == 0 || json_decode(otp, fields, 0, a, &v, &e) < 0
            || !is_traceparent(v.traceparent))
                return STR_NULL;
        return v.traceparent;
}

/* --- parameters of a gateway --- */

static const char *const parameter_names[] = { "sandboxId", "path", "projectId" };

/* Whether anything was taken over. */
static bool take_over(json_t *payload, const json_t *parameter)
{
        bool any = false;

        for (size_t i = 0; i < ARRAY_SIZE(parameter_names); i++) {
                json_t *v = json_object_get(parameter, parameter_names[i]);

                if (!json_is_string(v) || json_object_get(payload, parameter_names[i]))
                        continue;
                if (json_object_set(payload, parameter_names[i], v) == 0)
                        any = true;
        }
        return any;
}

static struct str merge(struct str payload, struct str parameter, struct arena *a)
{
        scoped(json_decrefp) json_t *to = NULL, *from = NULL;
        scoped(buf_done) struct buf b;
        struct json_error e;

        buf_init(&b, MESSAGE_MAX);
        if (json_parse(parameter, JSON_ALLOW_NULS, &from, &e) < 0)
                return payload;
        if (payload.n == 0 || str_eq(payload, STR("null")))
                to = json_object();
        else if (json_parse(payload, JSON_ALLOW_NULS, &to, &e) < 0)
                return payload;
        if (!json_is_object(to) || !json_is_object(from) || !take_over(to, from))
                return payload;
        json_encode_value(&b, to);
        return buf_failed(&b) ? STR_NULL : arena_dup_str(a, buf_str(&b));
}

/* Nearly always the parameter is {}, and a payload may be large. */
static struct str read_payload(struct str payload, struct str parameter, struct arena *a)
{
        return parameter.n <= strlen("{}") ? payload : merge(payload, parameter, a);
}

int message_read_command(struct str text, struct arena *a, struct command *ret,
                         struct json_error *reterr)
{
        struct envelope m = { 0 };
        bool ours;
        int r = json_decode(text, envelope_fields, JSON_ALLOW_NULS, a, &m, reterr);

        if (r < 0)
                return r;
        ours = str_eq(m.receiver.service, SERVICE_NAME)
               && str_eq(m.receiver.version, SERVICE_VERSION);
        *ret = (struct command){
                .id = m.id,
                .correlation = m.correlation,
                .trace_id = m.trace_id,
                .principal = m.principal,
                .tenant = m.tenant,
                .sender = m.sender,
                .receiver = m.receiver,
                .kind = ours ? command_find(m.receiver.target) : NULL,
                .payload = read_payload(m.payload.payload, m.payload.parameter, a),
                .traceparent = read_traceparent(m.otp, a),
        };
        return 0;
}

/* --- what hutchd answers --- */

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
