/* SPDX-License-Identifier: Apache-2.0 */
#include "http/req.h"

#include <stdio.h>

#include "base/base.h"
#include "http/conn.h"
#include "http/url.h"
#include "os/fd.h"

static const char *const method_names[] = {
        [METHOD_DELETE] = "DELETE", [METHOD_GET] = "GET",         [METHOD_HEAD] = "HEAD",
        [METHOD_PATCH] = "PATCH",   [METHOD_OPTIONS] = "OPTIONS", [METHOD_POST] = "POST",
        [METHOD_PUT] = "PUT",       [METHOD_OTHER] = "other",     [METHOD_ANY] = "any",
};
ENUM_TABLE(http_method, method_names, METHOD_MAX_);

/* --- life cycle --- */

struct http_req *http_req_new(struct http_conn *c)
{
        struct http_server *s = c->server;
        struct list *spare = list_first(&s->spare_reqs);
        struct http_req *req;
        struct arena arena;

        if (spare) {
                list_remove(spare);
                s->n_spare--;
                req = container_of(spare, struct http_req, _free);
        } else {
                req = xnew(struct http_req);
                arena_init(&req->arena, ARENA_MAX_REQUEST);
        }
        arena = req->arena;
        *req = (struct http_req){
                .arena = arena,
                .server = s,
                .peer_uid = -1,
                .content_length = HTTP_LENGTH_UNKNOWN,
                .res = { .length = HTTP_LENGTH_UNKNOWN, .file = -EBADF },
                ._conn = c,
                ._refs = 1,
        };
        list_init(&req->_free);
        s->live_reqs++;
        return req;
}

struct http_req *http_req_ref(struct http_req *req)
{
        ASSERT(req->_refs > 0);
        req->_refs++;
        return req;
}

void http_req_unref(struct http_req *req)
{
        struct http_server *s = req->server;

        ASSERT(req->_refs > 0);
        if (--req->_refs > 0)
                return;
        buf_done(&req->_collected);
        req->res.file = fd_close(req->res.file);
        s->live_reqs--;
        s->stats.in_flight -= req->_counted;
        req__discharge(req);
        if (s->n_spare < HTTP_SPARE_REQS) {
                arena_reset(&req->arena);
                list_append(&s->spare_reqs, &req->_free);
                s->n_spare++;
        } else {
                arena_done(&req->arena);
                free(req);
        }
        http_server__check_end(s);
}

void http_req_abort_on_eof(struct http_req *req)
{
        if (http_req_is_gone(req))
                return;
        req->_abort_on_eof = true;
        net_task_queue(req->server->loop, &req->_conn->task); /* the FIN may be here already */
}

void http_req_count(struct http_req *req)
{
        req->server->stats.in_flight += !req->_counted;
        req->_counted = true;
}

/* --- identity --- */

void http_req_identify(struct http_req *req)
{
        struct str given = http_headers_get(&req->headers, STR("X-Request-ID"));
        /* A client's id is echoed only if it is harmless in a header and in a log. */
        bool harmless = given.n > 0 && given.n <= HTTP_REQUEST_ID_MAX;
        char made[ID_HEX_LEN + 1];

        for (size_t i = 0; harmless && i < given.n; i++)
                harmless = given.p[i] > ' ' && given.p[i] <= '~';
        if (harmless) {
                req->id = given;
        } else {
                ids_hex(&req->server->ids, made);
                req->id = arena_dup_str(&req->arena, str_of(made, ID_HEX_LEN));
        }
        if (req->server->log.sink) {
                log_ctx_init(&req->log, &req->server->log);
                log_ctx_add_str(&req->log, "request", req->id);
        }
}

int http_req_query(struct http_req *req, const char *name, struct str *ret)
{
        struct str rest = req->query;

        return url_query_each(&req->arena, &rest, name, ret);
}

/* --- the body --- */

void http_req_refuse(struct http_req *req, int reason, const struct http_problem *p)
{
        const struct http_hooks *hooks = TAKE_PTR(req->hooks);

        if (hooks && hooks->abort)
                hooks->abort(req, reason); /* may respond itself */
        if (req->res.state == HTTP_RES_NONE)
                http_reply_error(req, p->status, p->code, "%s", p->message);
        else if (req->res.state == HTTP_RES_STREAM)
                http_stream_fail(req);
        req->_given_up = true;
}

static void refuse_body(struct http_req *req)
{
        char message[64];
        const struct http_problem too_large = { 413, "PAYLOAD_TOO_LARGE", message };

        (void) snprintf(message, sizeof(message), "the body is larger than %llu bytes",
                        (unsigned long long) req->_body_max);
        http_req_refuse(req, -EMSGSIZE, &too_large);
}

void http_body_start(struct http_req *req, uint64_t max)
{
        struct http_conn *c = req->_conn;

        if (http_req_is_gone(req) || req->_body_requested)
                return;
        req->_body_max = max;
        if (req->content_length != HTTP_LENGTH_UNKNOWN && req->content_length > max) {
                refuse_body(req);
                return;
        }
        req->_body_requested = true;
        if (!c->continued && c->state == CONN_BODY) {
                c->continued = true;
                if (req->res.state == HTTP_RES_NONE)
                        stream_queue(&c->stream, STR("HTTP/1.1 100 Continue\r\n\r\n"));
        }
        net_task_queue(c->server->loop, &c->task);
}

static void set_paused(struct http_req *req, bool paused)
{
        if (http_req_is_gone(req) || req->_body_paused == paused)
                return;
        req->_body_paused = paused;
        net_task_queue(req->server->loop, &req->_conn->task);
}

void http_body_pause(struct http_req *req)
{
        set_paused(req, true);
}

void http_body_resume(struct http_req *req)
{
        set_paused(req, false);
}

/* A body that is collected has to arrive as a whole in time. Checked when a part of it arrives: without any
 * for the body timeout, the connection times out anyway. */
static bool is_past_deadline(const struct http_req *req)
{
        usec_t deadline = req->server->config.body_deadline;

        return deadline > 0 && net_loop_now(req->server->loop) - req->_started > deadline;
}

static void message_body(struct http_message *m, const char *p, size_t n)
{
        struct http_conn *c = container_of(m, struct http_conn, message);
        struct http_req *req = c->req;
        const struct http_route *route = req->route;
        static const struct http_problem too_slow = { 408, "REQUEST_TIMEOUT",
                                                      "the body did not arrive in time "
                                                      "(limits.body_deadline)" };
        bool unwanted = c->responded || c->failed, streams;

        if (!unwanted && n > req->_body_max - req->_body_seen) {
                refuse_body(req);
                unwanted = true;
        }
        streams = !route || route->body == HTTP_BODY_STREAM || req->_body_streams;
        if (!unwanted && !streams && is_past_deadline(req)) {
                c->server->stats.timeouts++;
                c->keep_alive = false;
                http_req_refuse(req, -ETIMEDOUT, &too_slow);
                unwanted = true;
        }
        if (unwanted) {
                c->discarded += n;
                return;
        }
        req->_body_seen += n;
        if (!streams && route->body != HTTP_BODY_IGNORE) {
                if (req->_collected.max == 0)
                        buf_init(&req->_collected, req->_body_max);
                buf_add(&req->_collected, p, n);
        } else if (req->hooks && req->hooks->body) {
                req->hooks->body(req, p, n);
        }
}

const struct http_message_ops req__message_ops = { .body = message_body };

void http_req_deliver_end(struct http_req *req)
{
        static const struct http_problem no_memory = { 503, "OUT_OF_MEMORY",
                                                       "out of memory for the body" };
        const struct http_route *route = req->route;
        bool is_json = route && route->body == HTTP_BODY_JSON;
        struct json_error e;
        int r = 0;

        req->_body_done = true;
        if (req->_held)
                return;
        if (buf_failed(&req->_collected)) {
                http_req_refuse(req, -ENOMEM, &no_memory); /* never deliver a part of it */
                return;
        }
        if (!route || route->body == HTTP_BODY_STREAM || req->_body_streams) {
                if (req->hooks && req->hooks->body_end)
                        req->hooks->body_end(req);
                return;
        }
        req->body = buf_str(&req->_collected);
        if (req->res.state != HTTP_RES_NONE || http_req_is_gone(req))
                return;
        if (is_json) {
                req->input = arena_zalloc(&req->arena, route->input_size);
                r = req->input ? 0 : -ENOMEM;
        }
        if (is_json && r == 0 && (req->body.n > 0 || !route->body_optional))
                r = json_decode(req->body, route->fields, 0, &req->arena, req->input, &e);
        if (r == 0)
                route->exec(req);
        else if (r == -ENOMEM)
                http_reply_error(req, 413, "PAYLOAD_TOO_LARGE", "the request is too large");
        else if (req->api->invalid)
                req->api->invalid(req, &e);
        else
                http_reply_error(req, 400, "INVALID_REQUEST_BODY", "%s", e.message);
}

void http_req_release(struct http_req *req)
{
        bool held = req->_held;

        req->_held = false;
        if (held && req->_body_done && !http_req_is_gone(req))
                http_req_deliver_end(req);
}

void http_req_abort(struct http_req *req, int reason)
{
        const struct http_hooks *hooks = req->hooks;
        bool ended = req->res.state == HTTP_RES_ENDED;

        req->_conn = NULL;
        req->hooks = NULL;
        if (hooks && hooks->abort && !ended)
                hooks->abort(req, reason);
}

/* --- log and counters --- */

/* Length of a '~' at the start of s, plain or encoded; else 0. */
static size_t tilde_at(struct str s)
{
        if (s.n > 0 && s.p[0] == '~')
                return 1;
        return s.n >= 3 && s.p[0] == '%' && s.p[1] == '7' && (s.p[2] | 0x20) == 'e' ? 3 : 0;
}

struct str http_path_for_log(struct arena *a, struct str path)
{
        struct str rest = path;
        bool hidden = false, cut;
        struct buf b;
        size_t size;
        char *p;

        /* The target of a malformed head may be anything. */
        if (path.n == 0 || (path.p[0] != '/' && !str_eq(path, STR("*"))))
                return STR("-");
        (void) str_split(&rest, '?', &path);
        cut = path.n > HTTP_LOG_PATH_MAX;
        path = str_utf8_cut(path, HTTP_LOG_PATH_MAX);
        if (!cut && !memchr(path.p, '~', path.n) && !memchr(path.p, '%', path.n))
                return path;
        size = 4 * path.n + sizeof("…"); /* a '~' becomes four characters at most */
        p = arena_alloc(a, size);
        if (!p)
                return STR("-");
        buf_init_fixed(&b, p, size);
        for (size_t i = 0; i < path.n;) {
                size_t tilde = tilde_at(str_skip(path, i)), n = MAX_OF(tilde, (size_t) 1);

                hidden = hidden && path.p[i] != '/';
                if (!hidden)
                        buf_add(&b, path.p + i, n);
                if (!hidden && tilde > 0) {
                        hidden = true;
                        buf_add_str(&b, STR("***"));
                }
                i += n;
        }
        if (cut)
                buf_add_str(&b, STR("…"));
        return buf_str(&b);
}

void http_req_account(struct http_req *req)
{
        struct http_server *s = req->server;
        usec_t took = net_loop_now(s->loop) - req->_started;
        int status = req->res.status;
        struct log_ctx log = req->log;

        s->stats.responses[status >= 100 && status < 600 ? status / 100 : 0]++;
        if (s->ended)
                s->ended(req, took);
        if (!s->config.access_log || !req->log.sink)
                return;
        log.sink = s->config.access_log;
        if (!req->principal && !s->config.log_anonymous
            && !http_anonymous_admit(&s->anonymous, req))
                return;
        log_fields(&log, LOG_INFO, "request",
                   LOG_F_STR("method", req->method_name.p ? req->method_name : STR("-")),
                   LOG_F_STR("path", http_path_for_log(&req->arena, req->path)),
                   LOG_F_I64("status", status), LOG_F_U64("bytes", req->res.sent),
                   LOG_F_U64("usec", took), LOG_F_STR("peer", req->peer.p ? req->peer : STR("-")));
}

/* Each tally has at most HTTP_TALLY_NAMES + 1 parts of a name, a colon, a number and a space. */
#define TALLY_TEXT ((HTTP_TALLY_NAMES + 1) * (HTTP_TALLY_NAME_MAX + 22) + 1)

void http_server__log_omitted(struct http_anonymous *a, const struct http_anonymous_summary *s)
{
        const struct http_server *server = container_of(a, struct http_server, anonymous);
        char reasons_text[TALLY_TEXT], peers_text[TALLY_TEXT];
        struct log_ctx log = server->log;
        struct buf reasons, peers;

        buf_init_fixed(&reasons, reasons_text, sizeof(reasons_text));
        http_tally_print(&s->reasons, &reasons);
        buf_init_fixed(&peers, peers_text, sizeof(peers_text));
        http_tally_print(&s->peers, &peers);
        log.sink = server->config.access_log;
        log_fields(&log, LOG_INFO, "requests omitted", LOG_F_U64("omitted", s->omitted),
                   LOG_F_STR("reasons", buf_str(&reasons)), LOG_F_STR("peers", buf_str(&peers)));
}
