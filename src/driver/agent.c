/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/agent.h"

#include <stdio.h>

#include "base/base.h"
#include "base/json.h"
#include "driver/agent_call.h"
#include "os/fd.h"

struct agents {
        struct net_loop *loop;
        struct http_client *client;
        struct list calls;
        size_t open; /* calls whose memory is not yet gone */
        bool freeing;
        void (*freed)(void *data);
        void *freed_data;
};

/* The version of the protocol that we speak. */
#define PROTOCOL 1

/* Of the agent's words in a message, quotes included. */
#define QUOTE_MAX 200

/* Nothing but the deadline of the call ends it, and connections are never kept. */
static const struct http_client_config client_config = {
        .head_max = 16 * KiB,
        .idle_timeout = USEC_PER_SEC,
        .connect_timeout = USEC_INFINITY,
        .write_timeout = USEC_INFINITY,
        .head_timeout = USEC_INFINITY,
        .body_timeout = USEC_INFINITY,
        .tunnel_timeout = USEC_INFINITY,
        .half_closed_timeout = USEC_INFINITY,
};

/* --- life cycle --- */

struct agents *agents_new(struct net_loop *loop)
{
        struct agents *a = xnew(struct agents);

        a->loop = loop;
        a->client = http_client_new(loop, &client_config);
        list_init(&a->calls);
        return a;
}

static void client_freed(void *data)
{
        struct agents *a = data;
        void (*freed)(void *) = a->freed;
        void *freed_data = a->freed_data;

        free(a);
        if (freed)
                freed(freed_data);
}

static void free_go_on(struct agents *a)
{
        if (a->freeing && a->open == 0)
                http_client_free(a->client, client_freed, a);
}

void agents_free(struct agents *a, void (*freed)(void *data), void *data)
{
        if (!a)
                return;
        ASSERT(!a->freeing);
        a->freed = freed;
        a->freed_data = data;
        list_for_each (n, &a->calls) {
                struct agent_call *c = container_of(n, struct agent_call, node);

                agent__call_stop(c, agent__refuse(c, ERR_CANCELED, "we are being shut down"));
        }
        a->freeing = true;
        free_go_on(a);
}

/* --- messages --- */

int agent__refuse(struct agent_call *c, enum err_code code, const char *fmt, ...)
{
        char text[ERR_MESSAGE_MAX];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        /* An earlier reason counts. */
        if (c->result < 0)
                return c->result;
        return err_set(&c->req->err, code, "%s: %s", c->kind->what, text);
}

/* --- the end of a call --- */

static void timer_closed(uv_handle_t *h)
{
        struct agent_call *c = container_of((uv_timer_t *) h, struct agent_call, timer);
        struct agents *a = c->agents;

        arena_done(&c->arena);
        buf_done(&c->answer);
        free(c);
        a->open--;
        free_go_on(a);
}

void agent__call_end(struct agent_call *c, int result)
{
        struct agent_req *req = TAKE_PTR(c->req);

        list_remove(&c->node);
        if (c->kind->free)
                c->kind->free(c);
        req->_impl = NULL;
        uv_close((uv_handle_t *) &c->timer, timer_closed);
        op_finish(&req->op, result);
}

void agent__call_stop(struct agent_call *c, int result)
{
        if (c->result < 0 || c->ended)
                return;
        c->result = result;
        if (c->talking)
                http_call_cancel(&c->http);
        else
                op_cancel(&c->connect.req.op);
}

static void call_cancel(struct op *op)
{
        struct agent_req *req = container_of(op, struct agent_req, op);
        struct agent_call *c = req->_impl;

        agent__call_stop(c, agent__refuse(c, ERR_CANCELED, "canceled"));
}

static void timer_expired(uv_timer_t *t)
{
        struct agent_call *c = container_of(t, struct agent_call, timer);

        agent__call_stop(c, agent__refuse(c, ERR_TIMEOUT, "the agent did not answer in time"));
}

/* --- the answer --- */

struct agent_error {
        struct str code, message;
};

static const struct json_field error_fields[] = {
        JSON_STR(struct agent_error, code, "code", JSON_NULL_OK),
        JSON_STR(struct agent_error, message, "message", JSON_NULL_OK),
        JSON_END,
};

static const struct {
        int status;
        enum err_code code;
} statuses[] = {
        { 400, ERR_INVALID },
        { 404, ERR_NOT_FOUND },
        { 413, ERR_TOO_LARGE },
        { 500, ERR_CONFLICT }, /* its word for whatever the system has refused */
};

/* The agent has said no. Only an answer in its own shape counts as its word, which is quoted as one printable line. */
static int refused(struct agent_call *c)
{
        enum err_code code = ERR_UNAVAILABLE;
        struct agent_error e = { 0 };
        char words[QUOTE_MAX + 1];
        struct json_error je;
        struct buf b;

        if (buf_failed(&c->answer)
            || json_decode(buf_str(&c->answer), error_fields, 0, &c->arena, &e, &je) < 0
            || !e.message.p)
                return agent__refuse(c, ERR_UNAVAILABLE, "the agent answers with status %d",
                                     c->http.status);
        for (size_t i = 0; i < ARRAY_SIZE(statuses); i++)
                if (statuses[i].status == c->http.status)
                        code = statuses[i].code;
        buf_init_fixed(&b, words, sizeof(words));
        (void) buf_add_quoted_cut(&b, e.message, QUOTE_MAX);
        return agent__refuse(c, code, "the agent says %s", words);
}

static void on_head(struct http_call *call)
{
        (void) call;
}

static void on_body(struct http_call *call, const char *p, size_t n)
{
        struct agent_call *c = container_of(call, struct agent_call, http);

        if (call->status == 200 && c->kind->body)
                c->kind->body(c, str_of(p, n));
        else
                buf_add(&c->answer, p, n);
        /* Whoever talks on and on has nothing to say. */
        if (buf_failed(&c->answer))
                agent__call_stop(c, agent__refuse(c, ERR_UNAVAILABLE,
                                                  "the agent's answer is too long"));
}

static void on_drain(struct http_call *call)
{
        struct agent_call *c = container_of(call, struct agent_call, http);

        if (c->kind->drain)
                c->kind->drain(c);
}

static void on_end(struct http_call *call, int r)
{
        struct agent_call *c = container_of(call, struct agent_call, http);

        c->talking = false;
        c->ended = true;
        if (c->result < 0)
                r = c->result;
        else if (r < 0)
                r = agent__refuse(c, ERR_UNAVAILABLE, "talk to the agent: %s", err_text(r));
        else if (call->status != 200)
                r = refused(c);
        else if (c->kind->ended)
                r = c->kind->ended(c);
        agent__call_end(c, r);
}

static const struct http_call_hooks hooks = {
        .head = on_head,
        .body = on_body,
        .drain = on_drain,
        .end = on_end,
};

/* --- the beginning of a call --- */

void agent__call_add_header(struct agent_call *c, struct str name, struct str value)
{
        /* The arena is empty: a few headers fit. */
        ASSERT(http_headers_add(&c->http.headers, &c->arena, name, value) == 0);
}

static void connected(struct op *op, int result)
{
        struct agent_call *c = container_of(op, struct agent_call, connect.req.op);
        int fd = TAKE_FD(c->connect.fd);

        if (result == 0 && c->result == 0) {
                c->talking = true;
                http_call_start_fd(c->agents->client, &c->http, fd);
                return;
        }
        (void) fd_close(fd);
        c->ended = true;
        if (c->result < 0) {
                result = c->result;
        } else {
                c->req->err = c->connect.req.err;
                result = err_wrap(&c->req->err, "%s: connect to the agent", c->kind->what);
        }
        agent__call_end(c, result);
}

struct agent_call *agent__call_new(struct agents *a, struct agent_req *req,
                                   const struct agent_call_kind *kind)
{
        struct agent_call *c = xnew(struct agent_call);
        const usec_t deadline = usec_add(agent__timeout(req), kind->grace);

        ASSERT(!a->freeing);
        c->agents = a;
        c->kind = kind;
        c->req = req;
        req->err = (struct err){ 0 };
        req->_impl = c;
        arena_init(&c->arena, 256 * KiB);
        buf_init(&c->answer, AGENT_ANSWER_MAX);
        http_call_init(&c->http, &hooks, &c->arena);
        agent__call_add_header(c, STR("Host"), STR("agent"));
        list_append(&a->calls, &c->node);
        a->open++;
        (void) uv_timer_init(&a->loop->uv, &c->timer);
        (void) uv_timer_start(&c->timer, timer_expired, deadline / USEC_PER_MSEC, 0);
        op_begin(&req->op, a->loop, call_cancel);
        op_init(&c->connect.req.op, connected);
        return c;
}

/* --- ping --- */

struct version {
        int64_t protocol;
};

static const struct json_field version_fields[] = {
        JSON_I64(struct version, protocol, "protocol", JSON_REQUIRED),
        JSON_END,
};

static int ping_ended(struct agent_call *c)
{
        struct version v = { 0 };
        struct json_error je;

        if (json_decode(buf_str(&c->answer), version_fields, 0, &c->arena, &v, &je) < 0)
                return agent__refuse(c, ERR_UNAVAILABLE, "what answers is no agent: %s",
                                     je.message);
        if (v.protocol != PROTOCOL)
                return agent__refuse(c, ERR_UNSUPPORTED, "the agent speaks protocol %lld, not %d",
                                     (long long) v.protocol, PROTOCOL);
        return 0;
}

static const struct agent_call_kind ping_kind = { .what = "ask the agent", .ended = ping_ended };

void agent_ping(struct agents *a, struct agent_ping *p, struct driver *d,
                const struct sandbox *record)
{
        struct agent_call *c = agent__call_new(a, &p->req, &ping_kind);

        c->http.method = STR("GET");
        c->http.target = STR("/version");
        driver_start(d, driver_connect_req(&c->connect, record));
}

void agent_ping_fd(struct agents *a, struct agent_ping *p, int fd)
{
        struct agent_call *c = agent__call_new(a, &p->req, &ping_kind);

        c->http.method = STR("GET");
        c->http.target = STR("/version");
        c->talking = true;
        http_call_start_fd(a->client, &c->http, fd);
}
