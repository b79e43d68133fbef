/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/ingress_world.h"

#include <stdio.h>

#include "api/access/token.h"
#include "api/api.h"
#include "base/base.h"
#include "http/tunnel.h"
#include "http/url.h"
#include "os/socket.h"

/* --- agents --- */

static void reply_as_requested(struct http_req *req)
{
        struct str rest = req->query, key, value;

        while (url_query_next(&rest, &key, &value)) {
                check_i64_eq(url_decode(&req->arena, value, 0, &value), 0);
                check_i64_eq(http_res_header(req, key, value), 0);
        }
        http_reply(req, 302, STR("text/plain"), STR("answered"));
}

static void stream_forever(struct http_req *req)
{
        http_res_header_const(req, STR("Content-Type"), STR("text/event-stream"));
        http_stream_begin(req, 200, HTTP_LENGTH_UNKNOWN);
        http_stream_write(req, STR("data: first\n\n"));
}

struct echo {
        struct http_tunnel tunnel;
        struct http_req *req;
};

static void echo_data(struct http_tunnel *t, char *p, size_t n)
{
        stream_queue(t->stream, str_of(p, n));
}

static void echo_eof(struct http_tunnel *t)
{
        http_tunnel_close(t);
}

static void echo_closed(struct http_tunnel *t, int r)
{
        http_req_unref(container_of(t, struct echo, tunnel)->req);
}

static void echo_drained(struct http_tunnel *t)
{
}

static const struct http_tunnel_ops echo_ops = {
        .drained = echo_drained, .data = echo_data, .eof = echo_eof, .closed = echo_closed
};

static void switch_protocol(struct http_req *req)
{
        struct echo *e = arena_new(&req->arena, struct echo);

        e->tunnel.ops = &echo_ops;
        e->req = http_req_ref(req);
        http_res_header_const(req, STR("Connection"), STR("Upgrade"));
        http_res_header_const(req, STR("Upgrade"), STR("websocket"));
        http_res_header_const(req, STR("Set-Cookie"), STR("planted=1"));
        check_i64_eq(http_req_upgrade(req, &e->tunnel), 0);
}

static void echo_request(struct http_req *req)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, 256 * KiB);
        buf_addf(&b, "%.*s %.*s\n", STR_ARG(req->method_name), STR_ARG(req->target));
        for (size_t i = 0; i < req->headers.n; i++)
                buf_addf(&b, "%.*s: %.*s\n", STR_ARG(req->headers.v[i].name),
                         STR_ARG(req->headers.v[i].value));
        buf_addf(&b, "agent=%.*s\n\n", STR_ARG(driver_fake_agent_of(req)->id));
        http_reply(req, 200, STR("text/html"), arena_dup_str(&req->arena, buf_str(&b)));
}

static void exec_agent(struct http_req *req)
{
        static const struct {
                struct str end;
                http_exec_fn *exec;
        } special[] = {
                { STR("/answer"), reply_as_requested },
                { STR("/stream"), stream_forever },
                { STR("/ws"), switch_protocol },
                { STR("/close"), http_stream_fail },
        };

        if (str_ends_with(req->path, STR("/ping"))) {
                http_reply_empty(req, 200);
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(special); i++)
                if (str_ends_with(req->path, special[i].end)) {
                        special[i].exec(req);
                        return;
                }
        echo_request(req);
}

static const struct http_route agent_routes[] = {
        { METHOD_ANY, "/{rest...}", HTTP_SCOPE_PUBLIC, .exec = exec_agent },
};

static const struct http_api agent_api = { "agent", "", agent_routes, 1 };

/* --- keys --- */

static void key_of(struct api_key *k, const char *text, const char *tenant, int role)
{
        *k = (struct api_key){ .id = str_from(text),
                               .name = STR(""),
                               .tenant = str_from(tenant),
                               .principal = STR("a-user"),
                               .role = role,
                               .configured = true };
        sha256(text, strlen(text), k->digest);
}

static void add_keys(struct ingress_world *w)
{
        struct api_key keys[4];
        struct err e;

        key_of(&keys[0], KEY_MINE, "t", ROLE_USER);
        key_of(&keys[1], KEY_READ, "t", ROLE_READ);
        key_of(&keys[2], KEY_OTHER, "o", ROLE_USER);
        key_of(&keys[3], KEY_ADMIN, "a", ROLE_ADMIN);
        if (keyring_configure(w->keyring, keys, ARRAY_SIZE(keys), &e) < 0)
                fail_msg("%s", e.message);
}

/* --- lifetime --- */

static void create(struct ingress_world *w, const char *tenant, const char *body, char *ret)
{
        struct made m =
                world_create(&w->base, &(struct create_options){ .tenant = tenant, .body = body });

        check_i64_eq(m.result, 0);
        check_i64_eq(m.state, STATE_RUNNING);
        memcpy(ret, m.id, sizeof(m.id));
}

#define BODY "{\"image\":{\"uri\":\"debian:12\"},\"entrypoint\":[\"sh\"],\"resourceLimits\":{}"

void ingress_world_open(struct ingress_world *w, bool with_keys)
{
        int fd = -EBADF;

        memset(w, 0, sizeof(*w));
        service_world_open(&w->base, NULL);
        uv_ref((uv_handle_t *) &w->base.awake);
        driver_fake_set_agent(w->base.runtime, &agent_api, NULL);
        w->keyring = keyring_new(&w->base.loop, w->base.store);
        if (with_keys)
                add_keys(w);
        w->sandbox_client = http_client_new(&w->base.loop, &http_client_defaults);
        w->server = http_server_new(&w->base.loop, NULL, NULL);
        w->api = (struct api){ .service = w->base.service,
                               .keyring = w->keyring,
                               .sandbox_client = w->sandbox_client,
                               .ids = &w->base.ids,
                               .clock = &w->base.clock.clock,
                               .secret = STR("a secret of thirty-two bytes ..."),
                               .preview_domain = STR(PREVIEW) };
        check_i64_eq(api_open(&w->api, w->server), 0);
        check_i64_eq(sock_addr_from_string(STR("127.0.0.1:0"), &w->addr), 0);
        check_i64_eq(sock_listen(&w->addr, &fd), 0);
        check_i64_eq(sock_local_addr(fd, &w->addr), 0);
        check_i64_eq(http_server_listen(w->server, fd), 0);
        create(w, with_keys ? "t" : "default", BODY "}", w->id);
        create(w, "o", BODY "}", w->other);
        create(w, with_keys ? "t" : "default", BODY ",\"secureAccess\":true}", w->secured);
}

static void set_flag(void *data)
{
        *(bool *) data = true;
}

void ingress_world_close(struct ingress_world *w)
{
        bool server = false, client = false;

        if (w->called)
                http_loopback_done(&w->lb);
        http_server_free(w->server, set_flag, &server);
        service_world_until(&w->base, server);
        api_close(&w->api);
        http_client_free(w->sandbox_client, set_flag, &client);
        service_world_until(&w->base, client);
        service_world_turn(&w->base);
        api_free(&w->api);
        keyring_free(w->keyring);
        service_world_close(&w->base);
}

/* --- requests --- */

void ingress_call(struct ingress_world *w, const struct ingress_request *q)
{
        const char *host = q->host ? q->host : HOST;

        if (w->called)
                http_loopback_done(&w->lb);
        w->called = true;
        http_loopback_init(&w->lb, w->server);
        if (host[0])
                http_loopback_header(&w->lb, STR("Host"), str_from(host));
        for (size_t i = 0; i < ARRAY_SIZE(q->name) && q->name[i]; i++)
                http_loopback_header(&w->lb, str_from(q->name[i]), str_from(q->value[i]));
        http_loopback_run(&w->lb, q->method ? q->method : "GET", q->target, str_from(q->body));
}

int ingress_status(const struct ingress_world *w)
{
        return w->lb.status;
}

bool ingress_body_has(const struct ingress_world *w, const char *text)
{
        struct str body = buf_str(&w->lb.body);

        return memmem(body.p, body.n, text, strlen(text)) != NULL;
}

const char *ingress_header(const struct ingress_world *w, const char *name)
{
        struct str value = http_headers_get(&w->lb.headers, str_from(name));

        return value.p ? ingress_text("%.*s", STR_ARG(value)) : NULL;
}

size_t ingress_count(const struct ingress_world *w, const char *name)
{
        return http_headers_count(&w->lb.headers, str_from(name));
}

const char *ingress_text(const char *fmt, ...)
{
        static char texts[16][1024];
        static unsigned next;
        char *text = texts[next++ % ARRAY_SIZE(texts)];
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(text, sizeof(texts[0]), fmt, ap);
        va_end(ap);
        return text;
}

const char *ingress_token(const struct ingress_world *w, const char *id, uint16_t port,
                          uint64_t expires)
{
        static const struct caller admin = { .all_tenants = true };
        const struct sandbox *record = service_find(w->base.service, &admin, str_from(id));
        const struct token_target target = { str_from(id), record ? record->created_ms : 0, port };
        char text[TOKEN_TEXT_MAX + 1];

        (void) token_write(w->api.secret, &target, expires, text);
        return ingress_text("%s", text);
}
