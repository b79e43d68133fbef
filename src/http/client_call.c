/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "http/client_impl.h"
#include "http/url.h"
#include "os/fd.h"

/* The caller's side of a call: start, body, cancel. */

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

/* --- starting --- */

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

void http_call_init(struct http_call *call, const struct http_call_hooks *hooks,
                    struct arena *arena)
{
        *call = (struct http_call){ .hooks = hooks, .arena = arena, .length = HTTP_LENGTH_UNKNOWN };
        net_task_init(&call->_task, end_task);
}

/* Counts and checks the call. */
static int admit_call(struct http_client *cl, struct http_call *call)
{
        call->_client = cl;
        cl->live_calls++;
        cl->stats.calls++;
        if (cl->freeing)
                return -ECANCELED;
        /* A 2xx response to CONNECT has no framing: it would need a tunnel. */
        if (str_eq(call->method, STR("CONNECT")) || !http_token_is_valid(call->method))
                return -EINVAL;
        for (size_t i = 0; i < call->target.n; i++)
                if (call->target.p[i] <= ' ' || call->target.p[i] > '~')
                        return -EINVAL;
        if (call->target.n == 0)
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

int call__connect(struct http_call *call, const struct sock_addr *to, bool fresh)
{
        struct http_endpoint *e = endpoint__get(call->_client, to);
        struct list *idle = fresh ? NULL : list_first(&e->idle);
        struct http_client_conn *c = NULL;
        int fd, r = 0;

        e->n_conns++;
        call->_endpoint = e;
        if (idle) {
                list_remove(idle);
                e->n_idle--;
                c = container_of(idle, struct http_client_conn, idle_node);
        } else {
                r = sock_connect(&e->addr, &fd);
                if (r == 0 || r == -EINPROGRESS)
                        r = client_conn__open(call->_client, e, fd, r < 0, &c);
        }
        if (r == 0)
                client_conn__begin(c, call, /* reused= */ idle != NULL);
        endpoint__unref(e); /* the connection holds it now */
        if (r == -ECONNREFUSED && call->fallback)
                return call__connect(call, TAKE_PTR(call->fallback), /* fresh= */ false);
        return r;
}

void http_call_start(struct http_client *cl, struct http_call *call, const struct sock_addr *to)
{
        int r = admit_call(cl, call);

        if (r == 0)
                r = call__connect(call, to, /* fresh= */ false);
        if (r < 0)
                finish_later(call, r);
}

void http_call_start_fd(struct http_client *cl, struct http_call *call, int fd)
{
        struct http_client_conn *c;
        int r = admit_call(cl, call);

        if (r < 0)
                (void) fd_close(fd);
        else
                r = client_conn__open(cl, NULL, fd, /* connecting= */ false, &c);
        if (r < 0)
                finish_later(call, r);
        else
                client_conn__begin(c, call, /* reused= */ false);
}

/* --- bodies --- */

void http_call_set_body(struct http_call *call, struct str bytes)
{
        call->body = HTTP_CALL_SIZED;
        call->body_length = bytes.n;
        call->_bytes = bytes;
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
        ASSERT(call->body != HTTP_CALL_NO_BODY);
        call->_body_begun = true;
        if (call->body == HTTP_CALL_CHUNKED) {
                ASSERT(!call->_body_ended);
                buf_addf(&c->stream.out, "%zx\r\n", bytes.n);
                buf_add_str(&c->stream.out, bytes);
                buf_add(&c->stream.out, "\r\n", 2);
        } else if (bytes.n > call->_body_left) {
                finish_later(call, -EMSGSIZE);
                return;
        } else {
                buf_add_str(&c->stream.out, bytes);
                call->_body_left -= bytes.n;
                call->_body_ended = call->_body_left == 0;
        }
        stream_queue_flush(&c->stream);
        if (call->_body_ended)
                client_conn__update(c);
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

void http_call_set_paused(struct http_call *call, bool paused)
{
        if (call->_paused == paused)
                return;
        call->_paused = paused;
        if (call->_conn)
                client_conn__update(call->_conn);
}
