/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdio.h>

#include "base/base.h"
#include "base/base64.h"
#include "base/parse.h"
#include "store/nats/bucket.h"

/*
 * The library reads one message at a time. This file has several requests in flight at once, and parses the replies of
 * JetStream itself:
 *
 *         {"message": {"subject": "$KV.hutch.a", "seq": 7, "hdrs": "<base64>", "data": "<base64>", "time": "2026-…"}}
 *         {"error": {"err_code": 10037, …}}
 */

#define PENDING_MAX ((int) (BUCKET_READ_MAX * 2 * STORE_VALUE_MAX))

struct reading {
        struct bucket *bucket;
        natsInbox *inbox;
        natsSubscription *replies;
};

static void reading_done(struct reading *r)
{
        natsSubscription_Destroy(r->replies);
        natsInbox_Destroy(r->inbox);
}

void bucket__value_done(struct bucket_value *v)
{
        free(v->data);
        *v = (struct bucket_value){ 0 };
}

/* --- replies --- */

static bool decode(const json_t *text, char **ret, size_t *ret_n)
{
        struct str s = str_of(json_string_value(text), json_string_length(text));

        *ret = xcalloc(1, BASE64_DECODED_MAX(s.n) + 1);
        return base64_decode(s, *ret, ret_n) == 0;
}

static bool is_marker(const json_t *headers)
{
        char *text = NULL;
        size_t n = 0;
        bool marker = headers && decode(headers, &text, &n)
                      && memmem(text, n, BUCKET_OPERATION ":", strlen(BUCKET_OPERATION ":"));

        free(text);
        return marker;
}

/* A value that is too large is not ours, and treated as missing. */
static bool read_value(const json_t *message, struct bucket_value *ret)
{
        const json_t *data = json_object_get(message, "data");
        const char *when = json_string_value(json_object_get(message, "time"));
        struct bucket_value v = {
                .version = (uint64_t) json_integer_value(json_object_get(message, "seq")),
                .marker = is_marker(json_object_get(message, "hdrs")),
        };

        if (v.version == 0 || !when || time_from_rfc3339(str_from(when), &v.when) < 0)
                return false;
        if (json_string_length(data) > BASE64_ENCODED(STORE_VALUE_MAX))
                return true;
        if (data && !decode(data, &v.data, &v.n)) {
                free(v.data);
                return false;
        }
        *ret = v;
        return true;
}

static int take_reply(struct reading *r, size_t n, struct bucket_value *ret, struct err *e)
{
        natsMsg *msg = NULL;
        natsStatus s = natsSubscription_NextMsg(&msg, r->replies, r->bucket->settings->wait_ms);
        const char *point = s == NATS_OK ? strrchr(natsMsg_GetSubject(msg), '.') : NULL;
        json_t *reply = NULL;
        const json_t *wrong;
        jsErrCode code;
        uint64_t i;
        int result = 0;

        if (s != NATS_OK)
                return bucket__failed(r->bucket, s, 0, false, e);
        if (point && parse_u64_max(str_from(point + 1), n - 1, &i) == 0 && ret[i].version == 0)
                reply = json_loadb(natsMsg_GetData(msg), (size_t) natsMsg_GetDataLength(msg), 0,
                                   NULL);
        wrong = json_object_get(reply, "error");
        code = (jsErrCode) json_integer_value(json_object_get(wrong, "err_code"));
        if (!json_is_object(reply))
                result =
                        err_set(e, ERR_UNAVAILABLE, "the reply of NATS does not match the request");
        else if (code != 0 && code != JSNoMessageFoundErr)
                result = bucket__failed(r->bucket, NATS_ERR, code, false, e);
        else if (code == 0 && !read_value(json_object_get(reply, "message"), &ret[i]))
                result = err_set(e, ERR_UNAVAILABLE,
                                 "the reply of NATS makes no sense; is it a NATS server?");
        json_decref(reply);
        natsMsg_Destroy(msg);
        return result;
}

int bucket__read(struct bucket *b, const struct str *keys, size_t n, struct bucket_value *ret,
                 struct err *e)
{
        scoped(reading_done) struct reading r = { .bucket = b };
        char api[sizeof(b->stream) + 32], reply[128];
        char subject[BUCKET_SUBJECT_MAX + 1], body[BUCKET_SUBJECT_MAX + 32];
        natsStatus s = natsInbox_Create(&r.inbox);
        int result = 0;

        if (s == NATS_OK) {
                (void) snprintf(reply, sizeof(reply), "%s.*", r.inbox);
                s = natsConnection_SubscribeSync(&r.replies, b->connection, reply);
        }
        if (s == NATS_OK)
                s = natsSubscription_SetPendingLimits(r.replies, -1, PENDING_MAX);
        (void) snprintf(api, sizeof(api), "$JS.API.STREAM.MSG.GET.%s", b->stream);
        for (size_t i = 0; i < n; i++)
                ret[i] = (struct bucket_value){ 0 };
        for (size_t i = 0; i < n && s == NATS_OK; i++) {
                (void) snprintf(reply, sizeof(reply), "%s.%zu", r.inbox, i);
                (void) snprintf(body, sizeof(body), "{\"last_by_subj\":\"%s\"}",
                                bucket__subject(b, keys[i], subject));
                s = natsConnection_PublishRequestString(b->connection, api, reply, body);
        }
        if (s != NATS_OK)
                return bucket__failed(b, s, 0, false, e);
        for (size_t i = 0; i < n && result == 0; i++)
                result = take_reply(&r, n, ret, e);
        return result;
}
