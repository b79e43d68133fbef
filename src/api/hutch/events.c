/* SPDX-License-Identifier: Apache-2.0 */
#include "api/hutch/events.h"

#include "api/response.h"
#include "api/hutch/hutch.h"
#include "base/base.h"
#include "http/sse.h"

/* A message has at most MESSAGE_MAX bytes, which JSON escapes to up to six times as many. */
#define EVENT_MAX (16 * KiB)

struct event_hub {
        struct service_listener listener;
        struct http_sse_group group;
        struct list streams;
        size_t n;
        bool closed;
};

struct event_stream {
        struct http_sse sse;
        struct list node;
        struct event_hub *hub;
        const struct caller *caller; /* the request's */
        uint64_t count;              /* events so far */
        uint64_t lost;               /* since the reader stopped keeping up */
};

/* --- one event --- */

struct event_view {
        struct str type, time, tenant, sandbox_id, reason, message, expires_at;
        int state;
};

#define E struct event_view

static const struct json_field event_fields[] = {
        JSON_STR(E, type, "type", JSON_REQUIRED),
        JSON_STR(E, time, "time", JSON_REQUIRED),
        JSON_STR(E, tenant, "tenant", JSON_REQUIRED),
        JSON_STR(E, sandbox_id, "sandboxId", JSON_REQUIRED),
        JSON_ENUM(E, state, "state", JSON_REQUIRED, &state_table),
        JSON_STR(E, reason, "reason", 0),
        JSON_STR(E, message, "message", 0),
        JSON_STR(E, expires_at, "expiresAt", 0),
        JSON_END,
};

static int send_event(struct event_stream *s, struct str type, struct str data)
{
        char id[24];
        struct buf b;

        buf_init_fixed(&b, id, sizeof(id));
        buf_add_u64(&b, s->count + 1);
        return http_sse_event(&s->sse, &(struct http_sse_event){
                                               .event = type, .id = buf_str(&b), .data = data });
}

static void stream_remove(struct event_stream *s)
{
        list_remove(&s->node);
        s->hub->n--;
}

/* A key may have been removed since, or the first one added. */
static bool is_still_allowed(const struct event_stream *s)
{
        const struct api *api = api_of(s->sse.req);
        const struct api_key *key;

        if (!s->caller->key.p)
                return api_is_open(api);
        key = keyring_get(api->keyring, s->caller->key);
        return key && key->role == s->caller->role && str_eq(key->tenant, s->caller->tenant);
}

static void stream_end(struct event_stream *s)
{
        stream_remove(s);
        http_sse_end(&s->sse); /* frees the stream */
}

static void on_event(struct service_listener *l, const struct service_event *e)
{
        struct event_hub *h = container_of(l, struct event_hub, listener);
        char text[EVENT_MAX], time[TIME_RFC3339_MAX], expires[TIME_RFC3339_MAX];
        const struct sandbox *record = e->record;
        struct buf b;

        if (list_empty(&h->streams))
                return;
        buf_init_fixed(&b, text, sizeof(text));
        json_encode(&b, event_fields,
                    &(struct event_view){
                            .type = str_from(e->type),
                            .time = str_of(time, time_to_rfc3339(e->at, time)),
                            .tenant = record->tenant,
                            .sandbox_id = record->id,
                            .state = record->status.state,
                            .reason = record->status.reason,
                            .message = record->status.message,
                            .expires_at = record->expiry
                                                  ? response_time(record->expiry->wall_ms, expires)
                                                  : STR_NULL,
                    });
        list_for_each (n, &h->streams) {
                struct event_stream *s = container_of(n, struct event_stream, node);

                if (!is_still_allowed(s))
                        stream_end(s);
                else if (!s->caller->all_tenants && !str_eq(s->caller->tenant, record->tenant))
                        continue;
                else if (s->lost == 0 && send_event(s, str_from(e->type), buf_str(&b)) == 0)
                        s->count++;
                else /* lost; no other event is sent until the loss is reported */
                        s->lost++;
        }
}

/* --- one stream --- */

static void stream_drain(struct http_sse *sse)
{
        struct event_stream *s = container_of(sse, struct event_stream, sse);
        char text[64];
        struct buf b;

        if (s->lost == 0)
                return;
        buf_init_fixed(&b, text, sizeof(text));
        buf_addf(&b, "{\"type\":\"lost\",\"count\":%llu}", (unsigned long long) s->lost);
        if (send_event(s, STR("lost"), buf_str(&b)) < 0)
                return;
        s->count++;
        s->lost = 0;
}

static void stream_gone(struct http_sse *sse, int reason)
{
        (void) reason;
        stream_remove(container_of(sse, struct event_stream, sse));
}

static void stream_ping(struct http_sse *sse)
{
        struct event_stream *s = container_of(sse, struct event_stream, sse);

        if (is_still_allowed(s))
                http_stream_write(sse->req, STR(":\n\n"));
        else
                stream_end(s);
}

static const struct http_sse_ops stream_ops = { .drain = stream_drain,
                                                .ping = stream_ping,
                                                .gone = stream_gone };

static void get_events(struct http_req *req)
{
        struct event_hub *h = api_of(req)->events;
        struct event_stream *s;

        if (!h || h->closed) {
                http_reply_error(req, 503, CODE_UNAVAILABLE, "the server is stopping");
                return;
        }
        s = arena_new(&req->arena, struct event_stream);
        if (!s) {
                api_fail_too_large(req);
                return;
        }
        s->hub = h;
        s->caller = api_caller(req);
        if (http_sse_begin(&s->sse, req, &h->group, &stream_ops) < 0)
                return;
        list_append(&h->streams, &s->node);
        h->n++;
        http_req_abort_on_eof(req); /* may call stream_gone at once */
}

/* --- the hub --- */

struct event_hub *event_hub_new(struct net_loop *loop, struct service *service)
{
        struct event_hub *h = xnew(struct event_hub);

        list_init(&h->streams);
        http_sse_group_init(&h->group, loop, HTTP_SSE_FIELDS, EVENTS_PING);
        h->listener.event = on_event;
        service_listen(service, &h->listener);
        return h;
}

void event_hub_close(struct event_hub *h)
{
        if (!h || h->closed)
                return;
        h->closed = true;
        service_unlisten(&h->listener);
        while (!list_empty(&h->streams))
                stream_end(container_of(list_first(&h->streams), struct event_stream, node));
        http_sse_group_close(&h->group);
}

void event_hub_free(struct event_hub *h)
{
        free(h);
}

size_t event_hub_count(const struct event_hub *h)
{
        return h ? h->n : 0;
}

/* --- routes --- */

static const uint16_t errors[] = { 401, 503, 0 };

API_DOC(events_doc, "streamEvents", "Stream events about sandboxes", "Events", 200,
        .response_type = "text/event-stream", .errors = errors);

static const struct http_route routes[] = {
        { METHOD_GET, "/events", API_READ, .lasting = true, .doc = &events_doc,
          .exec = get_events },
};

HUTCH_API(hutch_events, "events", routes);
