/* SPDX-License-Identifier: Apache-2.0 */
#include "client/op.h"

#include <sys/epoll.h>

#include "base/base.h"
#include "client/error.h"
#include "client/result.h"

#define BODY_MAX (256 * MiB)

/* --- ending --- */

/* The client's list follows ours; the client frees it. */
static void unshare_headers(struct op *op)
{
        struct curl_slist *n = op->headers;

        if (!op->headers_shared)
                return;
        op->headers_shared = false;
        if (n == op->client->headers) {
                op->headers = NULL;
                return;
        }
        while (n && n->next != op->client->headers)
                n = n->next;
        if (n)
                n->next = NULL;
}

static void drop_headers(struct op *op)
{
        unshare_headers(op);
        curl_slist_free_all(TAKE_PTR(op->headers));
}

static void op_free(struct op *op)
{
        if (op->kind->stop && op->loop)
                op->kind->stop(op);
        exchange_drop(&op->x);
        timer_clear(&op->deadline);
        timer_clear(&op->pause);
        list_remove(&op->queue_node);
        list_remove(&op->node);
        if (op->kind->release)
                op->kind->release(op);
        result_free(op->result);
        buf_done(&op->url);
        buf_done(&op->body);
        drop_headers(op);
        free(op);
}

static void save_error(struct hutch_call *call, const struct hutch_error *e)
{
        if (call)
                call->error = *e;
}

/* Frees the operation before `done`, which may start the next call with the same struct. */
static void op_end(struct op *op, int code)
{
        struct hutch_call *call = op->call;

        op->loop->n_calls--;
        call->_op = NULL;
        if (code < 0)
                save_error(call, &op->x.error);
        else if (op->ret)
                *op->ret = TAKE_PTR(op->result);
        op_free(op);
        if (call->done)
                call->done(call, code);
}

void op_succeed(struct op *op, void *result)
{
        op->result = result;
        op_end(op, 0);
}

static printf_like(3, 0) void describe(struct op *op, int code, const char *fmt, va_list ap)
{
        (void) error_vset(&op->x.error, code, fmt, ap);
        error_prefix(&op->x.error, op->kind->doing);
}

void op_fail(struct op *op, int code, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        describe(op, code, fmt, ap);
        va_end(ap);
        op_end(op, code);
}

static void deadline_due(struct timer *t)
{
        struct op *op = container_of(t, struct op, deadline);

        op->x.error.http_status = op->x.status;
        if (op->kind->timeout_text)
                op_fail(op, HUTCH_TIMEOUT, "%s by the deadline", op->kind->timeout_text(op));
        else
                op_fail(op, HUTCH_TIMEOUT, "%s by the deadline",
                        op->x.status ? "the response had begun, but did not end" : "no response");
}

void op__cancel_now(struct op *op)
{
        op_fail(op, HUTCH_CANCELED, "canceled by the caller");
}

void hutch_call_cancel(struct hutch_call *call)
{
        struct op *op = call ? call->_op : NULL;

        if (!op || !call->loop)
                return;
        op->canceled = true;
        loop__queue(op->loop, op);
}

/* --- creating --- */

bool op_is_valid(const struct op *op)
{
        return op && op->failed == 0;
}

static int check_call(const struct hutch_client *client, struct hutch_call *call)
{
        if (call && call->size < sizeof(*call))
                return HUTCH_INVALID; /* its error cannot be written to */
        if (call)
                memset(&call->error, 0, sizeof(call->error));
        if (!client)
                return call ? error_set(&call->error, HUTCH_INVALID, "client is NULL")
                            : HUTCH_INVALID;
        if (call && call->_op)
                return error_set(&call->error, HUTCH_INVALID, "the call is still running");
        if (call && call->loop && !call->done)
                return error_set(&call->error, HUTCH_INVALID, "a call on a loop requires done");
        return 0;
}

struct op *op_new(size_t size, const struct op_kind *kind, struct hutch_client *client,
                  struct hutch_call *call)
{
        int r = check_call(client, call);
        struct op *op = calloc(1, size);

        if (!op) {
                if (r == 0 && call)
                        (void) error_set(&call->error, HUTCH_NO_MEMORY, "%s: out of memory",
                                         kind->doing);
                return NULL;
        }
        list_init(&op->node);
        list_init(&op->queue_node);
        timer_init(&op->deadline, deadline_due);
        timer_init(&op->pause, NULL);
        buf_init(&op->url, URL_MAX);
        buf_init(&op->body, BODY_MAX);
        op->kind = kind;
        op->client = client;
        op->call = r < 0 && call && call->size < sizeof(*call) ? NULL : call;
        op->failed = r;
        if (r < 0 && op->call)
                op->x.error = call->error;
        return op;
}

void op_refuse(struct op *op, int code, const char *fmt, ...)
{
        va_list ap;

        if (!op_is_valid(op))
                return;
        va_start(ap, fmt);
        describe(op, code, fmt, ap);
        va_end(ap);
        op->failed = code;
}

bool op_need(struct op *op, const char *text, const char *name)
{
        if (op_is_valid(op) && (!text || !*text))
                op_refuse(op, HUTCH_INVALID, "%s is missing", name);
        return op_is_valid(op);
}

void op_take_options(struct op *op, void *to, size_t size, const void *from, const char *name)
{
        int r = options_copy(to, size, from);

        if (r < 0)
                op_refuse(op, r, "%s: not initialized, or of a newer version", name);
}

char *op_strdup(struct op *op, const char *text, const char *name)
{
        char *copy = op_need(op, text, name) ? strdup(text) : NULL;

        if (op_is_valid(op) && !copy)
                op_refuse(op, HUTCH_NO_MEMORY, "out of memory");
        return copy;
}

/* --- URLs and headers --- */

static bool reset_request(struct op *op)
{
        if (!op)
                return false;
        exchange_drop(&op->x); /* it points to the headers */
        drop_headers(op);
        buf_reset(&op->url);
        return op->failed == 0;
}

bool op__to_server(struct op *op)
{
        if (!reset_request(op))
                return false;
        op->headers = op->client->headers;
        op->headers_shared = true;
        url_add_base(&op->url, &op->client->url);
        if (op->call && op->call->request_id)
                op_header(op, "X-Request-ID", op->call->request_id);
        return op_is_valid(op);
}

void op_to_root(struct op *op, const char *path)
{
        if (!op__to_server(op))
                return;
        buf_reset(&op->url);
        url_add_root(&op->url, &op->client->url);
        buf_add_str(&op->url, str_from(path));
}

bool op__to_agent(struct op *op, const struct hutch_endpoint *agent)
{
        struct str key = str_from(op && op->client ? op->client->secret_key : NULL);

        if (!reset_request(op))
                return false;
        if (!agent || !agent->url) {
                op_refuse(op, HUTCH_INVALID, "the endpoint of the agent is missing");
                return false;
        }
        buf_add_str(&op->url, str_from(agent->url));
        /* A server might list the API key as a header of the endpoint; it must not reach a sandbox. */
        for (size_t i = 0; i < agent->n_headers; i++)
                if (agent->headers[i].value && !str_eq(str_from(agent->headers[i].value), key))
                        op_header(op, agent->headers[i].key, agent->headers[i].value);
        return op_is_valid(op);
}

/* Prepends: the end of the list may be the client's. */
void op_header(struct op *op, const char *name, const char *value)
{
        struct curl_slist *n;
        scoped(buf_done) struct buf b;

        buf_init(&b, 64 * KiB);
        if (!op_is_valid(op))
                return;
        if (!name || !url_is_header(str_from(name), true)
            || !url_is_header(str_from(value), false)) {
                op_refuse(op, HUTCH_INVALID, "a header has an invalid name or value");
                return;
        }
        /* For curl, "Name:" removes a header and "Name;" makes an empty one. */
        buf_add_str(&b, str_from(name));
        buf_add_str(&b, !value ? STR(":") : *value ? STR(": ") : STR(";"));
        buf_add_str(&b, str_from(value));
        n = buf_failed(&b) ? NULL : curl_slist_append(NULL, buf_str(&b).p);
        if (!n) {
                op_refuse(op, HUTCH_NO_MEMORY, "out of memory");
                return;
        }
        n->next = op->headers;
        op->headers = n;
}

/* --- starting --- */

static int64_t time_limit(const struct op *op)
{
        int64_t requested = op->call->timeout_ms;

        if (requested != 0)
                return requested;
        if (op->kind->stream)
                return -1;
        return op->kind->timeout_ms ? op->kind->timeout_ms : op->client->o.timeout_ms;
}

static void attach(struct op *op, struct hutch_loop *l)
{
        int64_t ms = time_limit(op);

        op->loop = l;
        op->call->_op = op;
        list_append(&l->all, &op->node);
        l->n_calls++;
        if (ms >= 0)
                timer_set(l, &op->deadline,
                          usec_add(loop__now(),
                                   (usec_t) MIN_OF(ms, INT64_MAX / 2000) * USEC_PER_MSEC));
        loop__queue(l, op);
}

struct blocking {
        struct hutch_call call;
        bool over;
        int result;
};

static void blocking_done(struct hutch_call *call, int result)
{
        struct blocking *b = container_of(call, struct blocking, call);

        b->over = true;
        b->result = result;
}

static int watch_cancel(struct hutch_loop *l, int fd, int how)
{
        struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

        return fd > 0 ? epoll_ctl(l->epoll, how, fd, &e) : 0;
}

static int run_blocking(struct op *op)
{
        struct blocking b = { .call = hutch_call_init() };
        struct hutch_call *call = op->call;
        struct hutch_client *client = op->client;
        struct hutch_loop *l = client_take_loop(client);
        int cancel = call ? call->cancel_fd : 0;

        if (!l) {
                op_refuse(op, HUTCH_NO_MEMORY, "out of memory or descriptors");
                save_error(call, &op->x.error);
                op_free(op);
                return HUTCH_NO_MEMORY;
        }
        if (call) {
                b.call.timeout_ms = call->timeout_ms;
                b.call.request_id = call->request_id;
        }
        b.call.done = blocking_done;
        op->call = &b.call; /* cppcheck-suppress autoVariables ; it has ended before we return */
        attach(op, l);
        if (watch_cancel(l, cancel, EPOLL_CTL_ADD) < 0)
                op_fail(op, HUTCH_INVALID, "cancel_fd cannot be polled");
        while (!b.over)
                if (loop__run_once(l, -1, cancel > 0 ? cancel : -1) && !b.over)
                        op__cancel_now(b.call._op);
        (void) watch_cancel(l, cancel, EPOLL_CTL_DEL);
        if (b.result < 0)
                save_error(call, &b.call.error);
        if (!l->taken)
                client_give_loop(client, l);
        return b.result;
}

static int check_request(struct op *op)
{
        if (op->url.no_memory || op->body.no_memory)
                op_refuse(op, HUTCH_NO_MEMORY, "out of memory");
        if (buf_failed(&op->url) || buf_failed(&op->body))
                op_refuse(op, HUTCH_INVALID, "the request is too large");
        if (op->failed == 0 && op->call && op->call->loop && op->call->loop->closing)
                op_refuse(op, HUTCH_CANCELED, "the loop is being freed");
        return op->failed;
}

int op_start(struct op *op, void *ret)
{
        int r;

        if (!op)
                return HUTCH_NO_MEMORY;
        r = check_request(op);
        if (r < 0) {
                save_error(op->call, &op->x.error);
                op_free(op);
                return r;
        }
        op->ret = ret;
        if (!op->call || !op->call->loop)
                return run_blocking(op);
        attach(op, op->call->loop);
        return 0;
}

/* --- running --- */

void op__run_queued(struct op *op)
{
        if (op->canceled) {
                op__cancel_now(op);
        } else if (!op->begun) {
                op->begun = true;
                op->kind->begin(op);
        }
}

void op_send(struct op *op, const struct request *r)
{
        int code;

        if (check_request(op) < 0) {
                op_end(op, op->failed);
                return;
        }
        code = exchange_send(&op->x, op, r);
        if (code < 0)
                op_fail_exchange(op, code);
}

void op_fail_exchange(struct op *op, int code)
{
        op_fail(op, code, "%.400s", op->x.error.message);
}

void op__ended(struct exchange *x, CURLcode result)
{
        struct op *op = x->op;

        exchange_ended(x, result);
        if (op->canceled)
                op__cancel_now(op);
        else if (x->result == CURLE_OK ? x->failure == 0 : x->r.try_only)
                x->r.on_response(op);
        else
                op_fail_exchange(op, exchange_explain(x));
}

bool op_check_response(struct op *op)
{
        struct exchange *x = &op->x;
        char problem_text[400];
        int code;

        if (x->status >= 200 && x->status < 300)
                return true;
        x->error.http_status = x->status;
        memcpy(x->error.request_id, x->request_id, sizeof(x->request_id));
        error_read_problem(buf_str(&x->problem), &x->error, problem_text, sizeof(problem_text));
        code = error_code_of_status(x->status);
        op_fail(op, code, "%s (%d%s%s)", problem_text[0] ? problem_text : hutch_code_text(code),
                x->status, x->error.server_code[0] ? " " : "", x->error.server_code);
        return false;
}

void op_wait(struct op *op, usec_t time, void (*next)(struct timer *t))
{
        op->pause.fire = next;
        timer_set(op->loop, &op->pause, usec_add(loop__now(), time));
}

void op_fail_response(struct op *op, int code)
{
        op->x.error.http_status = op->x.status;
        memcpy(op->x.error.request_id, op->x.request_id, sizeof(op->x.request_id));
        if (code == HUTCH_NO_MEMORY)
                op_fail(op, code, "out of memory");
        else
                op_fail(op, HUTCH_PROTOCOL,
                        "unexpected response (%d, %zu bytes); is this the URL of the API?",
                        op->x.status, op->x.response.n);
}

void op_finish(struct op *op, void *result, int code)
{
        if (result)
                op_succeed(op, result);
        else
                op_fail_response(op, code);
}

void op_finish_empty(struct op *op)
{
        if (op_check_response(op))
                op_succeed(op, NULL);
}

/* --- calls with one request and one response --- */

static const struct simple_kind *simple_kind_of(const struct op *op)
{
        return container_of(op->kind, struct simple_kind, op);
}

static void simple_response(struct op *op)
{
        int code = HUTCH_PROTOCOL;
        void *result;

        if (!op_check_response(op))
                return;
        result = simple_kind_of(op)->decode(op, buf_str(&op->x.response), &code);
        op_finish(op, result, code);
}

void simple_begin(struct op *op)
{
        const struct simple_kind *k = simple_kind_of(op);

        op_send(op,
                &(struct request){ .method = k->method,
                                   .has_body = k->has_body,
                                   .on_response = k->decode ? simple_response : op_finish_empty });
}
