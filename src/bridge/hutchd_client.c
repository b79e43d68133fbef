/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/hutchd_client.h"

#include "base/base.h"

#define COMMAND_TIMEOUT (31 * 60 * USEC_PER_SEC) /* longer than any command may take */
#define BODY_TIMEOUT    (60 * USEC_PER_SEC)
#define REPLY_MAX       (64 * MiB)
#define PROBLEM_MAX     160 /* of a refusal's text, for the log */
#define TARGET          STR("/api/v1/purista/command")
#define KEY_HEADER      STR("OPEN-SANDBOX-API-KEY")
#define USER_AGENT      "hutch-bridge/" HUTCH_VERSION

/* --- local --- */

static const struct {
        int result, code;
} results[] = {
        { -ECONNREFUSED, HUTCH_CONNECT }, { -ENOENT, HUTCH_CONNECT },
        { -EACCES, HUTCH_CONNECT },       { -EAGAIN, HUTCH_CONNECT }, /* its backlog is full */
        { -EMFILE, HUTCH_CONNECT },       { -ENFILE, HUTCH_CONNECT },
        { -ECONNRESET, HUTCH_BROKEN },    { -EPIPE, HUTCH_BROKEN }, /* it may have started */
        { -ETIMEDOUT, HUTCH_TIMEOUT },    { -EFBIG, HUTCH_TOO_LARGE },
        { -ECANCELED, HUTCH_CANCELED },   { -ENOMEM, HUTCH_NO_MEMORY },
};

/* {"status":403,"message":"only bridges may act for others"} */
static void explain_refusal(struct hutchd_request *q)
{
        struct problem {
                struct str message;
        } p = { STR_NULL };
        static const struct json_field fields[] = {
                JSON_STR(struct problem, message, "message", JSON_REQUIRED),
                JSON_END,
        };
        char words[PROBLEM_MAX];
        struct json_error e;
        struct buf b;

        if (json_decode(buf_str(&q->_reply), fields, 0, q->memory, &p, &e) < 0)
                p.message = buf_str(&q->_reply);
        buf_init_fixed(&b, words, sizeof(words));
        (void) buf_add_quoted_cut(&b, p.message, sizeof(words) - 1);
        (void) snprintf(q->why, sizeof(q->why), "hutchd responds with %d: %s", q->status, words);
}

static void on_head(struct http_call *call)
{
        container_of(call, struct hutchd_request, _local)->status = call->status;
}

static void on_body(struct http_call *call, const char *p, size_t n)
{
        struct hutchd_request *q = container_of(call, struct hutchd_request, _local);

        buf_add(&q->_reply, p, n);
        if (buf_failed(&q->_reply))
                http_call_cancel(call);
}

static void on_end(struct http_call *call, int r)
{
        struct hutchd_request *q = container_of(call, struct hutchd_request, _local);

        if (buf_failed(&q->_reply))
                r = q->_reply.no_memory ? -ENOMEM : -EFBIG;
        if (r < 0) {
                q->code = HUTCH_PROTOCOL;
                for (size_t i = 0; i < ARRAY_SIZE(results); i++)
                        if (results[i].result == r)
                                q->code = results[i].code;
                (void) snprintf(q->why, sizeof(q->why), "hutchd at %s: %s",
                                q->_client->settings->hutchd_socket, err_text(r));
        } else if (q->status != 200) {
                q->code = q->status == 429 || q->status == 503 ? HUTCH_BUSY
                          : q->status >= 500                   ? HUTCH_SERVER
                                                               : HUTCH_REFUSED;
                explain_refusal(q);
        } else {
                q->reply = buf_str(&q->_reply);
        }
        q->done(q);
}

static const struct http_call_hooks hooks = {
        .head = on_head,
        .body = on_body,
        .end = on_end,
};

static int add_headers(struct hutchd_request *q)
{
        const struct settings *s = q->_client->settings;
        struct http_headers *h = &q->_local.headers;
        int r = http_headers_add(h, q->memory, STR("Host"), STR("localhost"));

        if (r == 0)
                r = http_headers_add(h, q->memory, STR("Content-Type"), STR("application/json"));
        if (r == 0)
                r = http_headers_add(h, q->memory, STR("User-Agent"), STR(USER_AGENT));
        if (r == 0 && s->key)
                r = http_headers_add(h, q->memory, KEY_HEADER, secret_expose(s->key));
        return r;
}

/* --- remote --- */

struct remote_request {
        struct hutch_call call;
        struct hutch_data *data;
        struct hutchd_request *request;
        struct net_task task; /* reports a call that did not start */
        int result;
};

static void remote_done(struct hutch_call *call, int result)
{
        struct remote_request *f = container_of(call, struct remote_request, call);
        struct hutchd_request *q = f->request;

        q->code = result;
        q->status = call->error.http_status;
        if (result == 0)
                q->reply = str_of(f->data->data, f->data->n);
        (void) snprintf(q->why, sizeof(q->why), "%.*s", (int) sizeof(q->why) - 1,
                        call->error.message);
        q->done(q);
}

static void remote_failed(struct net_task *t)
{
        struct remote_request *f = container_of(t, struct remote_request, task);

        remote_done(&f->call, f->result);
}

static void start_remote(struct hutchd_client *h, struct hutchd_request *q)
{
        struct hutch_purista command = hutch_purista_init();
        struct remote_request *f = xnew(struct remote_request);

        command.command = q->message->command->name.p;
        command.tenant_id = q->message->tenant.p;
        command.principal_id = q->message->principal.p;
        command.payload = q->message->payload.p;
        command.parameter = q->message->parameter.p;
        q->_remote = f;
        f->request = q;
        f->call = hutch_call_init();
        f->call.loop = h->_libhutch.loop;
        f->call.done = remote_done;
        net_task_init(&f->task, remote_failed);
        f->result = hutch_purista_command(h->_remote, &command, &f->data, &f->call);
        if (f->result < 0)
                net_task_queue(h->_libhutch._net, &f->task);
}

/* --- both --- */

void hutchd_request_start(struct hutchd_client *h, struct hutchd_request *q)
{
        q->_client = h;
        if (!h->_http) {
                start_remote(h, q);
                return;
        }
        buf_init(&q->_reply, REPLY_MAX);
        buf_init(&q->_body, MESSAGE_MAX + 64 * KiB); /* and the names */
        message_add_request(&q->_body, q->message);
        http_call_init(&q->_local, &hooks, q->memory);
        q->_local.method = STR("POST");
        q->_local.target = TARGET;
        http_call_set_body(&q->_local, buf_str(&q->_body));
        if (buf_failed(&q->_body) || add_headers(q) < 0)
                q->_local.target = STR(""); /* the client refuses it, from the loop */
        http_call_start(h->_http, &q->_local, &h->_addr);
}

void hutchd_request_cancel(struct hutchd_request *q)
{
        if (q->_remote)
                hutch_call_cancel(&q->_remote->call);
        else
                http_call_cancel(&q->_local);
}

void hutchd_request_free(struct hutchd_request *q)
{
        buf_done(&q->_body);
        buf_done(&q->_reply);
        if (q->_remote)
                hutch_data_free(q->_remote->data);
        free(TAKE_PTR(q->_remote));
}

int hutchd_client_open(struct hutchd_client *h, struct net_loop *l, const struct settings *settings,
                       struct err *e)
{
        struct http_client_config config = http_client_defaults;
        struct hutch_client_options o = hutch_client_options_init();
        char text[SOCK_ADDR_TEXT_MAX];
        int r;

        *h = (struct hutchd_client){ .settings = settings };
        if (settings->hutchd_socket) {
                (void) snprintf(text, sizeof(text), "unix:%s", settings->hutchd_socket);
                if (sock_addr_from_string(str_from(text), &h->_addr) < 0)
                        return err_set(e, ERR_INVALID, "hutchd: %s is not the path of a socket",
                                       settings->hutchd_socket);
                config.idle_max = config.idle_total = settings->in_flight;
                config.head_timeout = COMMAND_TIMEOUT;
                config.body_timeout = BODY_TIMEOUT;
                h->_http = http_client_new(l, &config);
                return 0;
        }
        o.ca_file = settings->hutchd_ca;
        o.user_agent = USER_AGENT;
        r = hutch_client_new(settings->hutchd_url,
                             settings->key ? secret_expose(settings->key).p : NULL, &o,
                             &h->_remote);
        if (r == 0)
                r = libhutch_loop_open(&h->_libhutch, l);
        return r == 0 ? 0 : err_set(e, ERR_INVALID, "hutchd: %s", hutch_code_text(r));
}

void hutchd_client_close(struct hutchd_client *h)
{
        http_client_free(TAKE_PTR(h->_http), NULL, NULL);
        libhutch_loop_close(&h->_libhutch);
        hutch_client_free(TAKE_PTR(h->_remote));
}
