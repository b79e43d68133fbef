/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "http/client_impl.h"
#include "http/url.h"
#include "os/fd.h"

/* The caller's side of a call: start, body, cancel. */

/* Reserved for an ordinary head, instead of doubling the buffer. */
#define HEAD_ROOM 1024

/* --- the end --- */

static void end_task(struct net_task *t)
{
        struct http_call *call = container_of(t, struct http_call, _task);

        call__finish(call, call->_result);
}

void call__finish(struct http_call *call, int r)
{
        struct http_client *cl = call->_client;

        call->_conn = NULL;
        net_task_cancel(&call->_task);
        cl->live_calls--;
        call->hooks->end(call, r); /* may free call */
        client__check_end(cl);
}

/* For functions that the user calls: `end` follows from the loop. */
static void finish_later(struct http_call *call, int r)
{
        struct http_client_conn *c = TAKE_PTR(call->_conn);

        if (c)
                client_conn__close(c, r);
        call->_result = r;
        net_task_queue(call->_client->loop, &call->_task);
}

void http_call_cancel(struct http_call *call)
{
        if (call->_conn)
                finish_later(call, -ECANCELED);
}

/* --- the request's head --- */

/* Framing and persistence of the connection are decided by the client. */
static bool is_reserved_header(struct str name)
{
        static const struct str reserved[] = {
                STR("Connection"), STR("Content-Length"), STR("Transfer-Encoding"),
                STR("Keep-Alive"), STR("Upgrade"),
        };

        for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
                if (str_caseeq(name, reserved[i]))
                        return true;
        return false;
}

/* Printable ASCII without spaces. */
static bool target_is_valid(struct str s)
{
        for (size_t i = 0; i < s.n; i++)
                if (s.p[i] <= ' ' || s.p[i] > '~')
                        return false;
        return s.n > 0;
}

static int check_request(const struct http_call *call)
{
        /* A 2xx response to CONNECT has no framing: it would need a tunnel. */
        if (str_eq(call->method, STR("CONNECT")))
                return -EINVAL;
        if (!http_token_is_valid(call->method) || !target_is_valid(call->target))
                return -EINVAL;
        if (call->upgrade.p
            && (call->upgrade.n == 0 || !http_field_value_is_valid(call->upgrade)
                || call->body == HTTP_CALL_CHUNKED))
                return -EINVAL;
        for (size_t i = 0; i < call->headers.n; i++) {
                const struct http_header *h = &call->headers.v[i];

                if (!http_token_is_valid(h->name) || !http_field_value_is_valid(h->value)
                    || is_reserved_header(h->name))
                        return -EINVAL;
        }
        return 0;
}

void call__write_head(struct http_call *call, struct buf *out, bool keep_alive)
{
        (void) !buf_reserve(out, HEAD_ROOM); /* a failure is recorded in the buffer */
        buf_add_str(out, call->method);
        buf_add_char(out, ' ');
        buf_add_str(out, call->target);
        buf_add_str(out, STR(" HTTP/1.1\r\n"));
        for (size_t i = 0; i < call->headers.n; i++)
                http_header_write(out, call->headers.v[i].name, call->headers.v[i].value);
        if (call->body == HTTP_CALL_SIZED) {
                buf_add_str(out, STR("Content-Length: "));
                buf_add_u64(out, call->body_length);
                buf_add(out, "\r\n", 2);
        } else if (call->body == HTTP_CALL_CHUNKED) {
                buf_add_str(out, STR("Transfer-Encoding: chunked\r\n"));
        }
        if (call->upgrade.p) {
                buf_add_str(out, STR("Connection: Upgrade\r\n"));
                http_header_write(out, STR("Upgrade"), call->upgrade);
        } else if (!keep_alive) {
                buf_add_str(out, STR("Connection: close\r\n"));
        }
        buf_add(out, "\r\n", 2);
}

/* --- starting --- */

void http_call_init(struct http_call *call, const struct http_call_hooks *hooks,
                    struct arena *arena)
{
        *call = (struct http_call){ .hooks = hooks, .arena = arena, .length = HTTP_LENGTH_UNKNOWN };
        net_task_init(&call->_task, end_task);
}

static int prepare(struct http_client *cl, struct http_call *call)
{
        call->_client = cl;
        cl->live_calls++;
        cl->stats.calls++;
        return cl->freeing ? -ECANCELED : check_request(call);
}

static int open_and_begin(struct http_call *call)
{
        struct http_client_conn *c;
        int r = client_conn__open(call->_client, call->_endpoint, &c);

        if (r == 0)
                client_conn__begin(c, call, /* reused= */ false);
        return r;
}

static int begin_at(struct http_call *call, const struct sock_addr *to)
{
        struct http_client_conn *c;
        int r = 0;

        call->_endpoint = endpoint__get(call->_client, to);
        endpoint__ref(call->_endpoint);
        c = endpoint__take_idle(call->_endpoint);
        if (c)
                client_conn__begin(c, call, /* reused= */ true);
        else
                r = open_and_begin(call);
        endpoint__unref(call->_endpoint); /* the connection holds it now */
        return r;
}

void http_call_start(struct http_client *cl, struct http_call *call, const struct sock_addr *to)
{
        int r = prepare(cl, call);

        if (r == 0)
                r = begin_at(call, to);
        if (r < 0 && call__may_fall_back(call, r))
                r = begin_at(call, TAKE_PTR(call->fallback));
        if (r < 0)
                finish_later(call, r);
}

void http_call_start_fd(struct http_client *cl, struct http_call *call, int fd)
{
        struct http_client_conn *c;
        int r = prepare(cl, call);

        if (r < 0)
                (void) fd_close(fd);
        else
                r = client_conn__open_fd(cl, fd, &c);
        if (r < 0)
                finish_later(call, r);
        else
                client_conn__begin(c, call, /* reused= */ false);
}

/* --- retry and fallback --- */

static bool is_idempotent(struct str method)
{
        static const struct str names[] = {
                STR("GET"), STR("HEAD"), STR("PUT"), STR("DELETE"), STR("OPTIONS"), STR("TRACE"),
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (str_eq(method, names[i]))
                        return true;
        return false;
}

bool call__may_retry(const struct http_call *call, const struct http_client_conn *c)
{
        if (!c->reused || call->_retried || (call->_body_begun && !call->_bytes.p))
                return false;
        return c->stream.bytes_out == c->bytes_out_start
               || (c->stream.bytes_in == c->bytes_in_start && is_idempotent(call->method));
}

void call__retry(struct http_call *call)
{
        int r;

        call->_retried = true;
        call->_client->stats.retries++;
        /* Not from the pool: the other connections there are as old as the one that failed. */
        r = open_and_begin(call);
        if (r < 0 && call__may_fall_back(call, r))
                call__fall_back(call);
        else if (r < 0)
                call__finish(call, r);
}

bool call__may_fall_back(const struct http_call *call, int r)
{
        return r == -ECONNREFUSED && call->fallback;
}

void call__fall_back(struct http_call *call)
{
        int r = begin_at(call, TAKE_PTR(call->fallback));

        if (r < 0)
                call__finish(call, r);
}

/* --- bodies --- */

void http_call_set_body(struct http_call *call, struct str bytes)
{
        call->body = HTTP_CALL_SIZED;
        call->body_length = bytes.n;
        call->_bytes = bytes;
}

void call__send_bytes(struct http_call *call)
{
        while (http_call_writable(call)) {
                struct str left = str_skip(call->_bytes, call->_bytes.n - call->_body_left);

                if (left.n == 0 || call->_conn->broken)
                        http_call_end_body(call);
                else
                        http_call_write(call, str_of(left.p, MIN_OF(left.n, HTTP_WRITE_MAX)));
        }
}

bool http_call_writable(const struct http_call *call)
{
        const struct http_client_conn *c = call->_conn;

        return c && !c->stream._connecting && !call->_body_ended
               && stream_pending(&c->stream) < CLIENT_OUT_LOW;
}

void http_call_write(struct http_call *call, struct str bytes)
{
        struct http_client_conn *c = call->_conn;

        ASSERT(bytes.n <= HTTP_WRITE_MAX);
        if (!c || c->broken || bytes.n == 0)
                return;
        ASSERT(call->body != HTTP_CALL_NO_BODY && !call->_body_ended);
        call->_body_begun = true;
        if (call->body == HTTP_CALL_CHUNKED) {
                buf_addf(&c->stream.out, "%zx\r\n", bytes.n);
                buf_add_str(&c->stream.out, bytes);
                stream_queue(&c->stream, STR("\r\n"));
                return;
        }
        if (bytes.n > call->_body_left) {
                finish_later(call, -EMSGSIZE);
                return;
        }
        call->_body_left -= bytes.n;
        stream_queue(&c->stream, bytes);
}

void http_call_end_body(struct http_call *call)
{
        struct http_client_conn *c = call->_conn;

        if (!c || call->_body_ended)
                return;
        if (call->body == HTTP_CALL_SIZED && call->_body_left > 0 && !c->broken) {
                finish_later(call, -EMSGSIZE);
                return;
        }
        if (call->body == HTTP_CALL_CHUNKED && !c->broken) {
                call->_body_begun = true;
                stream_queue(&c->stream, STR("0\r\n\r\n"));
        }
        call->_body_ended = true;
        client_conn__update(c);
}

static void set_paused(struct http_call *call, bool paused)
{
        if (call->_paused == paused)
                return;
        call->_paused = paused;
        if (call->_conn)
                client_conn__update(call->_conn);
}

void http_call_pause(struct http_call *call)
{
        set_paused(call, true);
}

void http_call_resume(struct http_call *call)
{
        set_paused(call, false);
}
