/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "http/client_impl.h"
#include "http/status.h"
#include "http/url.h"
#include "os/socket.h"

/*
 * A connection to a server, lent to one call at a time. Interest in reading stays on from the first
 * call to the last, in the pool too: an ordinary exchange changes nothing in the epoll set, and a
 * server that closes an idle connection is noticed at once.
 */

static void set_state(struct http_client_conn *c, enum client_state state)
{
        c->client->stats.idle -= c->state == CLIENT_IDLE;
        c->client->stats.idle += state == CLIENT_IDLE;
        c->state = state;
}

/* --- timeouts and reading --- */

static struct timeout_kind *timeout_for(struct http_client_conn *c)
{
        struct http_client *cl = c->client;

        if (c->stream._connecting)
                return &cl->connect_timeout;
        if (c->stream._blocked)
                return &cl->write_timeout;
        switch (c->state) {
        case CLIENT_IDLE:
                return &cl->idle_timeout;
        case CLIENT_HEAD:
                return c->call->_body_ended ? &cl->head_timeout : NULL;
        case CLIENT_BODY:
                return c->call->_paused ? NULL : &cl->body_timeout;
        case CLIENT_TUNNEL:
        case CLIENT_CLOSED:
        default:
                return NULL;
        }
}

/* Write and body timeouts start anew with each byte in their own direction, the others run from when
 * their state began: trickling wins no time. */
static void update_timeout(struct http_client_conn *c)
{
        struct http_client *cl = c->client;
        struct timeout_kind *kind = timeout_for(c);
        uint64_t seen = kind == &cl->write_timeout ? c->stream.bytes_out : c->stream.bytes_in;
        bool renewable = kind == &cl->body_timeout || kind == &cl->write_timeout;

        if (!kind || kind->length == USEC_INFINITY)
                timeout_clear(&c->timeout);
        else if (c->timeout.kind != kind || (renewable && seen != c->timeout_bytes))
                timeout_set(&c->timeout, kind);
        c->timeout_bytes = seen;
}

void client_conn__update(struct http_client_conn *c)
{
        bool want;

        if (c->state == CLIENT_CLOSED)
                return;
        update_timeout(c);
        if (c->state == CLIENT_TUNNEL)
                return;
        want = c->state != CLIENT_BODY || !c->call->_paused;
        if (want != c->stream.reading)
                want ? stream_resume_reading(&c->stream) : stream_pause_reading(&c->stream);
}

void client_conn__timed_out(struct timeout *t)
{
        struct http_client_conn *c = container_of(t, struct http_client_conn, timeout);

        if (c->state != CLIENT_IDLE)
                c->client->stats.timeouts++;
        client_conn__fail(c, -ETIMEDOUT);
}

/* --- the end of calls and connections --- */

void client_conn__close(struct http_client_conn *c, int reason)
{
        struct http_tunnel *t = TAKE_PTR(c->tunnel);

        if (c->state == CLIENT_CLOSED)
                return;
        if (c->state == CLIENT_IDLE && c->endpoint) {
                list_remove(&c->idle_node);
                c->endpoint->n_idle--;
        }
        set_state(c, CLIENT_CLOSED);
        c->call = NULL;
        timeout_clear(&c->timeout);
        net_task_cancel(&c->task);
        stream_close(&c->stream);
        if (t) {
                t->stream = NULL;
                t->_conn = NULL;
                t->ops->closed(t, reason);
        }
}

void client_conn__fail(struct http_client_conn *c, int r)
{
        struct http_call *call = c->call;
        bool again = call && (r == -ECONNRESET || r == -EPIPE) && call__may_retry(call, c);
        bool other = call && c->stream._connecting && call__may_fall_back(call, r);

        client_conn__close(c, r);
        if (!call)
                return;
        call->_conn = NULL;
        if (again)
                call__retry(call); /* c keeps the endpoint until the loop has closed it */
        else if (other)
                call__fall_back(call);
        else
                call__finish(call, r);
}

/* The answer is complete. `rest` bytes came behind it, which nobody asked for. */
static void finish_call(struct http_client_conn *c, size_t rest)
{
        struct http_call *call = TAKE_PTR(c->call);
        bool reusable = c->endpoint && c->keep_alive && call->_body_ended && !c->broken && rest == 0
                        && !c->stream.eof && stream_pending(&c->stream) == 0 && !c->client->freeing;

        call->_conn = NULL;
        if (reusable && endpoint__give_idle(c->endpoint, c)) {
                set_state(c, CLIENT_IDLE);
                client_conn__update(c);
        } else {
                client_conn__close(c, 0);
        }
        call__finish(call, 0);
}

/* --- tunnels --- */

static void tunnel_task(struct net_task *t)
{
        client_conn__close(container_of(t, struct http_client_conn, task), -ECONNABORTED);
}

static void close_tunnel(struct http_tunnel *t)
{
        struct http_client_conn *c = t->_conn;

        net_task_queue(c->client->loop, &c->task);
}

static void begin_tunnel(struct http_client_conn *c, char *p, size_t n)
{
        struct http_call *call = c->call;
        struct http_tunnel *t = call->hooks->upgrade ? call->hooks->upgrade(call) : NULL;

        if (!t) {
                client_conn__fail(c, -ENOTSUP);
                return;
        }
        ASSERT(c->call == call); /* a hook that wants no tunnel returns NULL, it does not cancel */
        c->tunnel = t;
        t->stream = &c->stream;
        t->_conn = c;
        t->_close = close_tunnel;
        if (t->paused)
                stream_pause_reading(&c->stream);
        c->call = NULL;
        call->_conn = NULL;
        set_state(c, CLIENT_TUNNEL);
        client_conn__update(c);
        call__finish(call, 0);
        if (c->state == CLIENT_TUNNEL && n > 0)
                t->ops->data(t, p, n);
}

/* --- parsing responses --- */

/* Parsed messages to answers. All of them are hostile: they come out of a sandbox. */

/* The hook may cancel the call, so c->call is looked at each time. */
static void message_body(struct http_message *m, const char *p, size_t n)
{
        struct http_client_conn *c = container_of(m, struct http_client_conn, message);

        if (c->call && c->call->hooks->body)
                c->call->hooks->body(c->call, p, n);
}

static bool message_is_bodiless(const struct http_message *m)
{
        const struct http_client_conn *c = container_of(m, struct http_client_conn, message);

        return c->head_only || !http_status_has_body(m->llhttp.status_code);
}

const struct http_message_ops client__message_ops = {
        .body = message_body,
        .is_bodiless = message_is_bodiless,
};

void client__parse_begin(struct http_client_conn *c)
{
        http_message_begin(&c->message, c->call->arena, c->client->config.head_max,
                           /* target_max= */ 0);
}

/* --- what llhttp leaves to its user --- */

/* A length that can be read in two ways is how answers are smuggled. llhttp, for answers, takes any
 * Transfer-Encoding it does not know for "until the end of the connection"; since the header does
 * not go further than here, the coding would be lost on the way. */
static bool framing_is_sound(const struct http_client_conn *c)
{
        const struct http_headers *h = &c->message.headers;
        size_t te = http_headers_count(h, STR("Transfer-Encoding"));
        size_t cl = http_headers_count(h, STR("Content-Length"));

        if (te == 0)
                return cl <= 1;
        return te == 1 && cl == 0 && c->message.llhttp.http_minor == 1
               && str_caseeq(http_headers_get(h, STR("Transfer-Encoding")), STR("chunked"));
}

static bool head_is_sound(const struct http_client_conn *c)
{
        const struct http_headers *h = &c->message.headers;

        if (c->message.llhttp.http_major != 1 || c->message.llhttp.http_minor > 1)
                return false;
        if (c->message.llhttp.status_code < 100 || c->message.llhttp.status_code > 599)
                return false;
        for (size_t i = 0; i < h->n; i++)
                if (!http_token_is_valid(h->v[i].name))
                        return false;
        return framing_is_sound(c);
}

/* The length a 204 or 1xx claims is void; whoever claims one may send it, too. */
static bool claims_a_body(const struct http_client_conn *c)
{
        const struct http_headers *h = &c->message.headers;

        return c->message.llhttp.content_length > 0
               || http_headers_count(h, STR("Transfer-Encoding")) > 0;
}

static uint64_t length_of(const struct http_client_conn *c)
{
        if (!http_headers_get(&c->message.headers, STR("Content-Length")).p)
                return HTTP_LENGTH_UNKNOWN;
        return c->message.llhttp.content_length;
}

/* Interim answers mean nothing to us; they are only not allowed to go on forever. */
static int skip_interim(struct http_client_conn *c)
{
        if (++c->interim > CLIENT_INTERIM_MAX || claims_a_body(c))
                return -EBADMSG;
        client__parse_begin(c);
        return 0;
}

static int head_complete(struct http_client_conn *c)
{
        struct http_call *call = c->call;
        int status = c->message.llhttp.status_code;

        if (!head_is_sound(c))
                return -EBADMSG;
        if (status < 200 && status != 101)
                return skip_interim(c);
        if (status == 101
            && (!call->upgrade.p || !c->message.upgrade || claims_a_body(c) || !call->_body_ended))
                return -EBADMSG;
        c->keep_alive = c->message.keep_alive && !(status == 204 && claims_a_body(c));
        call->status = status;
        call->response = c->message.headers;
        call->length = length_of(c);
        c->state = CLIENT_BODY;
        if (status != 101)
                call->hooks->head(call);
        return 0;
}

ssize_t client__parse(struct http_client_conn *c, const char *p, size_t n)
{
        ssize_t used = http_message_feed(&c->message, p, n);

        if (used >= 0 && c->message.got_head && c->state == CLIENT_HEAD) {
                int r = head_complete(c);

                if (r < 0)
                        return r;
        }
        return used;
}

/* --- the stream's callbacks --- */

static struct http_client_conn *conn_of(struct net_stream *st)
{
        return container_of(st, struct http_client_conn, stream);
}

static void parse_all(struct http_client_conn *c, char *p, size_t n)
{
        size_t used = 0;

        while (used < n) {
                ssize_t r = client__parse(c, p + used, n - used);

                if (c->state == CLIENT_CLOSED)
                        return; /* cancelled by a hook */
                if (r < 0) {
                        client_conn__fail(c, (int) r);
                        return;
                }
                used += (size_t) r;
                if (!c->message.got_message)
                        continue;
                if (c->call->status == 101)
                        begin_tunnel(c, p + used, n - used);
                else
                        finish_call(c, n - used);
                return;
        }
        client_conn__update(c);
}

static void conn_data(struct net_stream *st, char *p, size_t n)
{
        struct http_client_conn *c = conn_of(st);

        if (c->state == CLIENT_TUNNEL)
                c->tunnel->ops->data(c->tunnel, p, n);
        else if (c->state == CLIENT_IDLE)
                client_conn__close(c, -EBADMSG); /* an answer nobody asked for */
        else if (c->state == CLIENT_HEAD && c->stream.bytes_out == c->bytes_out_start)
                client_conn__fail(c, -ECONNRESET); /* the same: of our request nothing went yet */
        else
                parse_all(c, p, n);
}

static void conn_eof(struct net_stream *st)
{
        struct http_client_conn *c = conn_of(st);

        if (c->state == CLIENT_TUNNEL)
                c->tunnel->ops->eof(c->tunnel);
        else if (c->state == CLIENT_IDLE)
                client_conn__close(c, 0);
        else if (c->state == CLIENT_BODY && c->message.until_eof && !c->broken)
                finish_call(c, 0);
        else
                client_conn__fail(c, -ECONNRESET);
}

static void notify_drained(struct http_client_conn *c)
{
        if (!c->call || c->call->_body_ended)
                return;
        if (c->call->_bytes.p)
                call__send_bytes(c->call);
        else if (c->call->hooks->drain)
                c->call->hooks->drain(c->call);
}

static void conn_drained(struct net_stream *st)
{
        struct http_client_conn *c = conn_of(st);

        client_conn__update(c);
        if (c->state == CLIENT_TUNNEL)
                c->tunnel->ops->drained(c->tunnel);
        else
                notify_drained(c);
}

static void conn_stalled(struct net_stream *st)
{
        client_conn__update(conn_of(st));
}

/* A server may answer before it has read the whole request, and close; writing then fails while
 * its answer lies unread in the socket. So what can still be read is read first. It may also keep
 * the connection, and its sending side: the rest of the body goes nowhere from now on, but whoever
 * writes it must hear that there is nothing to wait for. */
static void conn_error(struct net_stream *st, int r)
{
        struct http_client_conn *c = conn_of(st);
        bool answering = c->state == CLIENT_HEAD || c->state == CLIENT_BODY;

        if (answering && !c->broken && !st->_connecting && (r == -EPIPE || r == -ECONNRESET)) {
                c->broken = true;
                stream_drop_output(st);
                client_conn__update(c);
                notify_drained(c);
                return;
        }
        client_conn__fail(c, r);
}

static void conn_closed(struct net_stream *st)
{
        struct http_client_conn *c = conn_of(st);
        struct http_client *cl = c->client;

        list_remove(&c->node);
        if (c->endpoint)
                endpoint__unref(c->endpoint);
        free(c);
        cl->stats.connections--;
        client__check_end(cl);
}

static const struct net_stream_ops stream_ops = {
        .data = conn_data,
        .eof = conn_eof,
        .drained = conn_drained,
        .stalled = conn_stalled,
        .error = conn_error,
        .closed = conn_closed,
};

/* --- the beginning --- */

/* Takes fd. */
static int open_over(struct http_client *cl, int fd, bool connecting, struct http_client_conn **ret)
{
        struct http_client_conn *c = xnew(struct http_client_conn);
        int r;

        r = connecting
                    ? stream_open_connecting(&c->stream, cl->loop, fd, CLIENT_OUT_MAX, &stream_ops)
                    : stream_open(&c->stream, cl->loop, fd, CLIENT_OUT_MAX, &stream_ops);
        if (r < 0) {
                free(c);
                return r;
        }
        c->client = cl;
        c->state = CLIENT_CLOSED;
        list_init(&c->idle_node);
        timeout_init(&c->timeout);
        net_task_init(&c->task, tunnel_task);
        http_message_init(&c->message, HTTP_RESPONSE, &client__message_ops);
        list_append(&cl->conns, &c->node);
        cl->stats.connections++;
        *ret = c;
        return 0;
}

int client_conn__open(struct http_client *cl, struct http_endpoint *e,
                      struct http_client_conn **ret)
{
        int fd, r;

        r = sock_connect(&e->addr, &fd);
        if (r < 0 && r != -EINPROGRESS)
                return r;
        r = open_over(cl, fd, r == -EINPROGRESS, ret);
        if (r < 0)
                return r;
        (*ret)->endpoint = e;
        endpoint__ref(e);
        cl->stats.connects++;
        return 0;
}

int client_conn__open_fd(struct http_client *cl, int fd, struct http_client_conn **ret)
{
        return open_over(cl, fd, /* connecting= */ false, ret);
}

void client_conn__begin(struct http_client_conn *c, struct http_call *call, bool reused)
{
        c->call = call;
        call->_conn = c;
        call->_body_left = call->body_length;
        call->_body_ended = call->body == HTTP_CALL_NO_BODY
                            || (call->body == HTTP_CALL_SIZED && call->body_length == 0);
        c->reused = reused;
        c->client->stats.reuses += reused;
        c->interim = 0;
        c->head_only = str_eq(call->method, STR("HEAD"));
        c->bytes_in_start = c->stream.bytes_in;
        c->bytes_out_start = c->stream.bytes_out;
        client__parse_begin(c);
        call__write_head(call, &c->stream.out, c->endpoint != NULL);
        stream_queue_flush(&c->stream);
        set_state(c, CLIENT_HEAD);
        if (call->_bytes.p)
                call__send_bytes(call); /* with the head, if the connection stands */
        client_conn__update(c);
}
