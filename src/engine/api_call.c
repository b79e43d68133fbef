/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/api_call.h"

#include <stdarg.h>

#include "base/base.h"
#include "engine/api.h"
#include "engine/worker.h"
#include "model/text.h"
#include "os/socket.h"

#define TARGET_MAX     (64 * KiB)
#define ERROR_BODY_MAX (16 * KiB) /* collected of an error where a stream was expected */

static struct api_call *call_of(struct http_call *call)
{
        return container_of(call, struct api_call, _call);
}

static void on_head(struct http_call *call)
{
        struct api_call *k = call_of(call);

        k->status = call->status;
        if (k->begun && k->status == 200)
                k->begun(k);
}

static void on_body(struct http_call *call, const char *p, size_t n)
{
        struct api_call *k = call_of(call);
        int r = 0;

        if (k->result < 0)
                return;
        if (k->objects && k->status < 300) {
                r = json_stream_feed(k->objects, str_of(p, n));
        } else if (k->objects) {
                buf_add(&k->response, p,
                        MIN_OF(n, ERROR_BODY_MAX - MIN_OF(k->response.n, ERROR_BODY_MAX)));
        } else {
                buf_add(&k->response, p, n);
                r = buf_failed(&k->response) ? -EFBIG : 0;
        }
        if (r < 0) {
                k->result = r;
                http_call_cancel(call);
        }
}

static void on_end(struct http_call *call, int r)
{
        struct api_call *k = call_of(call);

        k->running = false;
        if (k->result == 0)
                k->result = r;
        if (k->result == 0 && k->objects && k->status < 300)
                k->result = json_stream_end(k->objects);
        k->_done(k);
}

static const struct http_call_hooks hooks = {
        .head = on_head,
        .body = on_body,
        .end = on_end,
};

/* --- life cycle --- */

void api_call_init(struct api_call *k, struct engine_worker *w)
{
        *k = (struct api_call){ .worker = w };
        buf_init(&k->target, TARGET_MAX);
        buf_init(&k->body, ENGINE_FRAME_MAX * 2);
        buf_mark_secret(&k->body);
        buf_init(&k->response, API_RESPONSE_MAX);
        buf_mark_secret(&k->response);
        arena_init(&k->arena, ARENA_MAX_REQUEST);
}

void api_call_done(struct api_call *k)
{
        ASSERT(!k->running);
        buf_done(&k->target);
        buf_done(&k->body);
        buf_done(&k->response);
        arena_wipe(&k->arena);
}

void api_call_reset(struct api_call *k)
{
        ASSERT(!k->running);
        buf_reset(&k->target);
        buf_add_str(&k->target, STR(API_BASE));
        buf_done(&k->body);
        buf_done(&k->response);
        arena_wipe(&k->arena);
        arena_init(&k->arena, ARENA_MAX_REQUEST);
        k->auth = k->borrowed = STR_NULL;
        k->objects = NULL;
        k->begun = NULL;
        k->slow = false;
}

void api_call_target(struct api_call *k, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        buf_vaddf(&k->target, fmt, ap);
        va_end(ap);
}

void api_call_start(struct api_call *k, const char *method, bool stream, api_call_done_fn *done)
{
        struct engine_worker *w = k->worker;
        struct http_headers *h = &k->_call.headers;
        struct str body = k->borrowed.p ? k->borrowed : buf_str(&k->body);
        int r;

        k->status = k->result = 0;
        k->_done = done;
        k->running = true;
        http_call_init(&k->_call, &hooks, &k->arena);
        k->_call.method = str_from(method);
        k->_call.target = buf_str(&k->target);
        if (body.n > 0)
                http_call_set_body(&k->_call, body);
        r = http_headers_add(h, &k->arena, STR("Host"), STR("engine"));
        if (r == 0 && body.n > 0)
                r = http_headers_add(h, &k->arena, STR("Content-Type"),
                                     k->borrowed.p ? STR("application/x-tar")
                                                   : STR("application/json"));
        if (r == 0 && k->auth.p)
                r = http_headers_add(h, &k->arena, STR("X-Registry-Auth"), k->auth);
        if (r < 0 || buf_failed(&k->target) || buf_failed(&k->body))
                k->_call.target = STR(""); /* the client refuses this, from the loop */
        http_call_start(k->slow ? w->slow : stream ? w->streams : w->client, &k->_call, &w->engine);
}

void api_call_cancel(struct api_call *k)
{
        if (k->running)
                http_call_cancel(&k->_call);
}

/* --- errors --- */

static const struct {
        int status;
        enum err_code code;
} meanings[] = {
        { 400, ERR_INVALID },   { 401, ERR_FORBIDDEN }, { 403, ERR_FORBIDDEN },
        { 404, ERR_NOT_FOUND }, { 409, ERR_CONFLICT },  { 304, ERR_CONFLICT },
};

static bool says(struct str words, const char *what)
{
        return words.n > 0 && memmem(words.p, words.n, what, strlen(what));
}

int api_call_error(struct api_call *k, struct err *e, const char *what)
{
        const struct engine_settings *s = k->worker->settings;
        enum err_code code = k->status >= 500 ? ERR_UNAVAILABLE : ERR_INTERNAL;
        struct str words;

        if (k->result == -ECANCELED)
                return err_set(e, ERR_CANCELED, "%s: canceled", what);
        if (k->result < 0 && k->status == 0)
                return err_set(e, ERR_UNAVAILABLE,
                               "%s: %s at %s does not respond: %s; is it running?", what,
                               engine_kind_to_string(s->kind), s->socket, err_text(k->result));
        if (k->result < 0)
                return err_set(e, ERR_UNAVAILABLE, "%s: the response of %s is incomplete: %s", what,
                               engine_kind_to_string(s->kind), err_text(k->result));
        words = engine_error_message(buf_str(&k->response), &k->arena);
        for (size_t i = 0; i < ARRAY_SIZE(meanings); i++)
                if (meanings[i].status == k->status)
                        code = meanings[i].code;
        if (says(words, "no space left") || says(words, "cannot allocate memory"))
                code = ERR_EXHAUSTED;
        return err_set(e, code, "%s: %s responds %d: %s", what, engine_kind_to_string(s->kind),
                       k->status, QUOTED(words));
}
