/* SPDX-License-Identifier: Apache-2.0 */
#include "client/op.h"

#include <sys/epoll.h>

#include "base/base.h"
#include "client/error.h"
#include "client/result.h"

#define BODY_MAX (256 * MiB)

/* --- ending --- */

/* The client's list follows ours; the client frees it. */
static void drop_headers(struct op *op)
{
        struct curl_slist **end = &op->headers;

        while (op->headers_shared && *end && *end != op->client->headers)
                end = &(*end)->next;
        if (op->headers_shared)
                *end = NULL;
        op->headers_shared = false;
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
        buf_done(&op->path);
        free(op->sandbox_id);
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

static void deadline_due(struct op *op)
{
        op->x.error.http_status = op->x.status;
        op_fail(op, HUTCH_TIMEOUT, "%s by the deadline",
                op->kind->timeout_text ? op->kind->timeout_text(op)
                : op->x.status         ? "the response had begun, but did not end"
                                       : "no response");
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

struct op *op_new(size_t size, const struct op_kind *kind, struct hutch_client *client,
                  struct hutch_call *call)
{
        struct op *op = calloc(1, size);
        const char *wrong = NULL;

        if (!client)
                wrong = "client is NULL";
        else if (call && call->size < sizeof(*call))
                wrong = "the call is not initialized";
        else if (call && call->_op)
                wrong = "the call is still running";
        else if (call && call->loop && !call->done)
                wrong = "a call on a loop requires done";
        if (call && call->size < sizeof(*call))
                call = NULL; /* its error cannot be written to */
        if (call)
                memset(&call->error, 0, sizeof(call->error));
        if (!op) {
                if (call)
                        (void) error_set(&call->error, HUTCH_NO_MEMORY, "%s: out of memory",
                                         kind->doing);
                return NULL;
        }
        list_init(&op->node);
        list_init(&op->queue_node);
        timer_init(&op->deadline, op, deadline_due);
        timer_init(&op->pause, op, NULL);
        buf_init(&op->url, URL_MAX);
        buf_init(&op->body, BODY_MAX);
        buf_init(&op->path, URL_MAX);
        op->kind = kind;
        op->client = client;
        op->call = call;
        if (wrong)
                op->failed = error_set(&op->x.error, HUTCH_INVALID, "%s", wrong);
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

bool op__to_sandbox(struct op *op, const char *id)
{
        char *copy = op_strdup(op, id, "the id of the sandbox");

        if (op)
                op->sandbox_id = copy;
        return copy != NULL;
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

static void attach(struct op *op, struct hutch_loop *l)
{
        int64_t ms = op->call->timeout_ms;

        if (ms == 0 && op->kind->stream)
                ms = -1;
        else if (ms == 0)
                ms = op->kind->timeout_ms ? op->kind->timeout_ms : op->client->o.timeout_ms;
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
        if (op->url.no_memory || op->body.no_memory || op->path.no_memory)
                op_refuse(op, HUTCH_NO_MEMORY, "out of memory");
        if (buf_failed(&op->url) || buf_failed(&op->body) || buf_failed(&op->path))
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
        bool begun = op->begun;

        op->begun = true;
        if (op->canceled)
                op__cancel_now(op);
        else if (begun)
                return;
        else if (op->kind->begin)
                op->kind->begin(op);
        else if (op->sandbox_id)
                op_discover(op, op->sandbox_id, &op->kind->request);
        else
                op_send(op, &op->kind->request);
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

void *op_decode(struct op *op, const struct decoder *decoder)
{
        struct exchange *x = &op->x;
        int code = HUTCH_PROTOCOL;
        void *result;

        if (!op_check_response(op))
                return NULL;
        result = decode_result(decoder, buf_str(&x->response), op->context, &code);
        if (result)
                return result;
        x->error.http_status = x->status;
        memcpy(x->error.request_id, x->request_id, sizeof(x->request_id));
        if (code == HUTCH_NO_MEMORY)
                op_fail(op, code, "out of memory");
        else
                op_fail(op, HUTCH_PROTOCOL,
                        "unexpected response (%d, %zu bytes); is this the URL of the API?",
                        x->status, x->response.n);
        return NULL;
}

/* Of a request without on_response. */
static void finish_response(struct op *op)
{
        const struct decoder *decoder = op->kind->result;
        void *result = decoder ? op_decode(op, decoder) : NULL;

        if (result || (!decoder && op_check_response(op)))
                op_succeed(op, result);
}

void op__ended(struct exchange *x, CURLcode result)
{
        struct op *op = x->op;

        x->result = x->problem_truncated ? CURLE_OK : result;
        if (x->result == CURLE_OK && !x->head_done && !x->r.connect_only && x->failure == 0) {
                x->result = CURLE_RECV_ERROR;
                (void) snprintf(x->curl_error, sizeof(x->curl_error),
                                "the connection closed in the head of the response");
        }
        if (op->canceled)
                op__cancel_now(op);
        else if (x->result == CURLE_OK ? x->failure < 0 : !x->r.try_only)
                op_fail_exchange(op, exchange_explain(x));
        else if (x->r.on_response)
                x->r.on_response(op);
        else
                finish_response(op);
}

void op_wait(struct op *op, usec_t time, void (*next)(struct op *op))
{
        op->pause.fire = next;
        timer_set(op->loop, &op->pause, usec_add(loop__now(), time));
}

int op_feed(struct op *op, struct framing *f, struct str bytes, framing_event_fn *event)
{
        int r = bytes.p ? framing_feed(f, bytes, event, op) : framing_finish(f, event, op);

        if (r == -E2BIG)
                return exchange_fail(&op->x, HUTCH_TOO_LARGE, "an event has more than %zu bytes",
                                     f->block.max);
        if (r == -ENOMEM && op->x.failure == 0)
                return exchange_fail(&op->x, HUTCH_NO_MEMORY, "out of memory");
        return r;
}

void op_finish_data(struct op *op, struct buf *b, uint64_t n)
{
        struct hutch_data *d = result_new(sizeof(*d));

        if (d) {
                d->n = (size_t) n;
                d->data = result_adopt(d, b);
        }
        if (d && d->data) {
                op_succeed(op, d);
                return;
        }
        result_free(d);
        op_fail(op, HUTCH_NO_MEMORY, "out of memory");
}
