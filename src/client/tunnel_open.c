/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/random.h>

#include "base/base.h"
#include "base/base64.h"
#include "client/error.h"
#include "client/op.h"
#include "client/tunnel.h"

/* Opens a tunnel: curl connects, then the WebSocket handshake. */

#define HEAD_MAX (64 * KiB)

struct open_op {
        struct op op;
        struct hutch_tunnel *tunnel;
        struct fd_watch watch;
        char key[WS_KEY_TEXT];
};

static struct open_op *open_of(struct op *op)
{
        return container_of(op, struct open_op, op);
}

/* --- request --- */

static void write_request(struct open_op *o)
{
        struct str url = buf_str(&o->op.url);
        struct url u;
        struct buf *b = &o->tunnel->out;

        if (url_parse(url, &u) < 0)
                return;
        buf_add_str(b, STR("GET "));
        buf_add_str(b, str_skip(url, (size_t) (u.authority.p - url.p) + u.authority.n));
        buf_add_str(b, STR(" HTTP/1.1\r\nHost: "));
        buf_add_str(b, u.authority);
        buf_add_str(b, STR("\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                           "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "));
        buf_add(b, o->key, sizeof(o->key));
        buf_addf(b, "\r\nUser-Agent: %s\r\n", o->op.client->o.user_agent);
        for (const struct curl_slist *h = o->op.headers; h; h = h->next)
                if (!str_ends_with(str_from(h->data), STR(":")))
                        buf_addf(b, "%s\r\n", h->data);
        buf_add_str(b, STR("\r\n"));
}

/* --- response --- */

static bool header_of(struct str head, struct str name, struct str *ret)
{
        struct str line;

        while (str_split(&head, '\n', &line)) {
                if (line.n > 0 && line.p[line.n - 1] == '\r')
                        line.n--;
                if (line.n > name.n && line.p[name.n] == ':'
                    && str_caseeq(str_of(line.p, name.n), name)) {
                        *ret = str_trim(str_skip(line, name.n + 1));
                        return true;
                }
        }
        return false;
}

/* The protocol was not switched; the body says why. */
static void handshake_rejected(struct op *op, int status, struct str body)
{
        struct exchange *x = &op->x;

        x->status = status;
        buf_add_str(&x->problem, str_of(body.p, MIN_OF(body.n, buf_room(&x->problem))));
        if (status == 404 && body.n == 0)
                op_fail(op, HUTCH_UNSUPPORTED, "this agent does not support tunnels");
        else if (status == 0 || (status >= 200 && status < 300))
                op_fail(op, HUTCH_PROTOCOL, "the agent does not speak WebSocket");
        else
                (void) op_check_response(op);
}

static void check_handshake(struct op *op, size_t end)
{
        struct open_op *o = open_of(op);
        struct hutch_tunnel *t = o->tunnel;
        struct str all = buf_str(&t->in), head = str_of(all.p, end), value = STR_NULL;
        char accept[WS_ACCEPT_TEXT];
        uint64_t status = 0;

        if (!str_starts_with(head, STR("HTTP/1.1 ")) || head.n < 12
            || parse_u64_max(str_of(head.p + 9, 3), 999, &status) < 0)
                status = 0;
        if (header_of(head, STR("X-Request-ID"), &value))
                error_copy_text(op->x.request_id, sizeof(op->x.request_id), value);
        if (status != 101) {
                handshake_rejected(op, (int) status, str_skip(all, head.n + 4));
                return;
        }
        ws_accept_text(str_of(o->key, sizeof(o->key)), accept);
        if (!header_of(head, STR("Sec-WebSocket-Accept"), &value)
            || !str_eq(value, str_of(accept, sizeof(accept)))) {
                op_fail(op, HUTCH_PROTOCOL, "the agent does not speak WebSocket");
                return;
        }
        buf_consume(&t->in, head.n + 4);
        loop__watch(op->loop, &o->watch, 0);
        t->multi = op->loop->multi;
        t->easy = TAKE_PTR(op->x.easy);
        (void) curl_easy_setopt(t->easy, CURLOPT_PRIVATE, NULL);
        if (!op->call->loop) {
                t->loop = op->loop;
                op->loop->taken = true;
        }
        if (op->ret)
                *op->ret = TAKE_PTR(o->tunnel);
        op->ret = NULL;
        op_succeed(op, NULL);
}

static void advance(struct op *op)
{
        struct open_op *o = open_of(op);
        struct hutch_tunnel *t = o->tunnel;
        int r = tunnel__flush(t);

        while (r == 0 || r == HUTCH_AGAIN) {
                int got = tunnel__receive(t);
                struct str in = buf_str(&t->in);
                const char *end;

                if (got == HUTCH_AGAIN) {
                        loop__watch(op->loop, &o->watch,
                                    HUTCH_READABLE
                                            | (t->out.n > 0 ? (unsigned) HUTCH_WRITABLE : 0U));
                        return;
                }
                end = memmem(in.p, in.n, "\r\n\r\n", 4);
                if (end) {
                        check_handshake(op, (size_t) (end - in.p));
                        return;
                }
                if (got <= 0 || in.n > HEAD_MAX)
                        break;
        }
        op_fail(op, HUTCH_BROKEN, "the connection closed during the handshake");
}

static void connected(struct op *op)
{
        struct open_op *o = open_of(op);
        struct hutch_tunnel *t = o->tunnel;
        curl_socket_t fd = CURL_SOCKET_BAD;
        uint8_t bytes[16];

        (void) curl_easy_getinfo(op->x.easy, CURLINFO_ACTIVESOCKET, &fd);
        if (fd == CURL_SOCKET_BAD || getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
                op_fail(op, HUTCH_LOCAL, "no socket, or no random numbers");
                return;
        }
        (void) base64_encode(bytes, sizeof(bytes), o->key);
        memcpy(&t->masks, bytes, sizeof(t->masks));
        t->fd = o->watch.fd = fd;
        t->easy = op->x.easy; /* kept if it becomes a tunnel */
        write_request(o);
        advance(op);
}

/* --- the call --- */

static void open_stop(struct op *op)
{
        struct open_op *o = open_of(op);

        if (!list_empty(&o->watch.node))
                loop__watch(op->loop, &o->watch, 0);
}

static void open_release(struct op *op)
{
        struct open_op *o = open_of(op);

        if (o->tunnel)
                o->tunnel->easy = NULL;
        hutch_tunnel_free(o->tunnel);
}

int hutch_open_tunnel(struct hutch_client *client, const struct hutch_endpoint *agent, int port,
                      struct hutch_tunnel **ret, struct hutch_call *call)
{
        static const struct op_kind kind = {
                .doing = "open a tunnel",
                .request = { .method = "GET", .connect_only = true, .on_response = connected },
                .release = open_release,
                .stop = open_stop,
        };
        struct op *op = op_new(sizeof(struct open_op), &kind, client, call);
        struct open_op *o = op ? open_of(op) : NULL;
        char number[16];

        if (!o)
                return HUTCH_NO_MEMORY;
        list_init(&o->watch.node);
        o->watch.op = op;
        o->watch.ready = advance;
        o->tunnel = calloc(1, sizeof(*o->tunnel));
        if (!o->tunnel)
                op_refuse(op, HUTCH_NO_MEMORY, "out of memory");
        else {
                buf_init(&o->tunnel->in, HEAD_MAX + 2 * TUNNEL_PIECE);
                buf_init(&o->tunnel->out, 3 * TUNNEL_PIECE);
                o->tunnel->fd = -EBADF;
        }
        if (!ret)
                op_refuse(op, HUTCH_INVALID, "ret is NULL");
        if (port < 1 || port > UINT16_MAX)
                op_refuse(op, HUTCH_INVALID, "the port must be from 1 to 65535");
        (void) snprintf(number, sizeof(number), "%d", port);
        op_to_agent(op, agent, "/tunnel/{}", number);
        return op_start(op, ret);
}
