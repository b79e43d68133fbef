/* SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>

#include "base/json.h"
#include "client/decode.h"
#include "client/result.h"
#include "client/url.h"

#include "base/banned.h"

/* Responses of the server: sandboxes, endpoints, keys, events. */

/* --- sandboxes --- */

static bool fill_sandbox(struct decode *d, const json_t *o, void *result)
{
        struct hutch_sandbox *s = result;
        const json_t *status = json_object_get(o, "status");

        s->id = decode_text(d, o, "id", NULL);
        s->state = decode_text(d, status, "state", NULL);
        if (!s->state)
                s->state = decode_text(d, o, "state", NULL);
        s->reason = decode_text(d, status, "reason", NULL);
        s->message = decode_text(d, status, "message", NULL);
        s->created_at = decode_time(o, "createdAt", "created_at");
        s->expires_at = decode_time(o, "expiresAt", "expires_at");
        s->image = decode_text(d, json_object_get(o, "image"), "uri", NULL);
        s->entrypoint = decode_texts(d, o, "entrypoint", &s->n_entrypoint);
        s->metadata = decode_map(d, o, "metadata", &s->n_metadata);
        s->extensions = decode_map(d, o, "extensions", &s->n_extensions);
        return s->id && *s->id && s->state;
}

const struct decoder sandbox_decoder = { .size = sizeof(struct hutch_sandbox),
                                         .fill = fill_sandbox };

/* The items of an array or of {"items":[…]}; NULL if one is not complete. */
static void *decode_items(struct decode *d, const json_t *doc, const struct decoder *item,
                          size_t *ret_n)
{
        const json_t *items = json_is_array(doc) ? doc : json_object_get(doc, "items");
        size_t n = json_array_size(items);
        void **list;

        if (!json_is_array(items))
                return NULL;
        list = arena_alloc_array(d->arena, n, sizeof(void *));
        d->no_memory |= !list;
        for (size_t i = 0; list && i < n; i++) {
                list[i] = arena_zalloc(d->arena, item->size);
                d->no_memory |= !list[i];
                if (!list[i] || !item->fill(d, json_array_get(items, i), list[i]))
                        return NULL;
        }
        *ret_n = n;
        return list;
}

static bool fill_list(struct decode *d, const json_t *doc, void *result)
{
        struct hutch_sandbox_list *l = result;
        const json_t *page = json_object_get(doc, "pagination");

        l->items = decode_items(d, doc, &sandbox_decoder, &l->n);
        l->page = decode_i64(page, "page", NULL);
        l->page_size = decode_i64(page, "pageSize", "page_size");
        l->total_items = decode_i64(page, "totalItems", "total_items");
        l->total_pages = decode_i64(page, "totalPages", "total_pages");
        l->has_next_page = decode_bool(page, "hasNextPage");
        return l->items != NULL;
}

const struct decoder sandbox_list_decoder = { .size = sizeof(struct hutch_sandbox_list),
                                              .fill = fill_list };

/* --- endpoints --- */

/* A missing header could deny access, or weaken it: accept all of them or none. */
static bool has_good_headers(const json_t *o)
{
        json_t *headers = json_object_get(o, "headers");

        if (!headers || json_is_null(headers))
                return true;
        for (void *i = json_object_iter(headers); i; i = json_object_iter_next(headers, i)) {
                const json_t *v = json_object_iter_value(i);

                if (!json_is_string(v) || !url_is_header(str_from(json_object_iter_key(i)), true)
                    || !url_is_header(str_of(json_string_value(v), json_string_length(v)), false))
                        return false;
        }
        return json_is_object(headers);
}

/* The API specifies `endpoint`; other servers send `url`, which may contain a token that is in the headers,
 * too. */
static bool fill_endpoint(struct decode *d, const json_t *o, void *result)
{
        const struct str *scheme = d->context; /* of the server */
        struct hutch_endpoint *e = result;
        const char *text = decode_text(d, o, "endpoint", "url");
        scoped(buf_done) struct buf b;
        struct url u;
        char *host;

        buf_init(&b, URL_MAX);
        if (!text || !*text)
                return false;
        url_add_endpoint(&b, *scheme, str_from(text));
        e->url = buf_failed(&b) ? NULL : arena_dup(d->arena, buf_str(&b));
        d->no_memory |= !e->url;
        if (!e->url || url_parse(str_from(e->url), &u) < 0 || !has_good_headers(o))
                return false;
        host = arena_dup(d->arena, u.host);
        d->no_memory |= !host;
        e->host = host;
        e->port = u.port;
        e->headers = decode_map(d, o, "headers", &e->n_headers);
        return true;
}

const struct decoder endpoint_decoder = { .size = sizeof(struct hutch_endpoint),
                                          .fill = fill_endpoint };

/* --- keys --- */

static bool fill_key(struct decode *d, const json_t *o, void *result)
{
        struct hutch_key *k = result;
        k->id = decode_text(d, o, "id", NULL);
        k->name = decode_text(d, o, "name", NULL);
        k->tenant = decode_text(d, o, "tenant", NULL);
        k->principal = decode_text(d, o, "principal", NULL);
        k->role = decode_text(d, o, "role", NULL);
        k->configured = decode_bool(o, "configured");
        k->created_at = decode_time(o, "createdAt", "created_at");
        k->key = decode_text(d, o, "key", NULL);
        return k->id != NULL;
}

const struct decoder key_decoder = { .size = sizeof(struct hutch_key),
                                     .fill = fill_key,
                                     .secret = true };

static bool fill_keys(struct decode *d, const json_t *doc, void *result)
{
        struct hutch_key_list *l = result;

        l->items = decode_items(d, doc, &key_decoder, &l->n);
        return l->items != NULL;
}

const struct decoder key_list_decoder = { .size = sizeof(struct hutch_key_list),
                                          .fill = fill_keys };

/* --- events --- */

int decode_event(struct str text, struct arena *a, struct hutch_event *ret)
{
        struct decode d = { .arena = a };
        int code = 0;
        scoped(decode__freep) json_t *doc = decode__parse(text, &code);
        struct hutch_event e = { 0 };

        if (!doc)
                return code;
        e.type = decode_text(&d, doc, "type", NULL);
        e.time = decode_time(doc, "time", NULL);
        e.tenant = decode_text(&d, doc, "tenant", NULL);
        e.sandbox_id = decode_text(&d, doc, "sandboxId", NULL);
        e.state = decode_text(&d, doc, "state", NULL);
        e.reason = decode_text(&d, doc, "reason", NULL);
        e.message = decode_text(&d, doc, "message", NULL);
        e.expires_at = decode_time(doc, "expiresAt", NULL);
        e.lost = (uint64_t) MAX_OF(decode_i64(doc, "count", NULL), 0);
        if (d.no_memory)
                return HUTCH_NO_MEMORY;
        if (!e.type)
                return HUTCH_PROTOCOL;
        *ret = e;
        return 0;
}
