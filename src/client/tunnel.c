/* SPDX-License-Identifier: Apache-2.0 */
#include "client/tunnel.h"

#include "base/base.h"

/* --- bytes --- */

static int broken(struct hutch_tunnel *t)
{
        t->failure = HUTCH_BROKEN;
        return HUTCH_BROKEN;
}

int tunnel__receive(struct hutch_tunnel *t)
{
        char *room;
        size_t n = 0;
        CURLcode r;

        if (t->failure < 0)
                return t->failure;
        room = buf_reserve(&t->in, TUNNEL_PIECE);
        if (!room)
                return HUTCH_NO_MEMORY;
        r = curl_easy_recv(t->easy, room, TUNNEL_PIECE, &n);
        if (r == CURLE_AGAIN)
                return HUTCH_AGAIN;
        if (r != CURLE_OK)
                return broken(t);
        buf_advance(&t->in, n);
        return n > 0 ? 1 : 0;
}

int tunnel__flush(struct hutch_tunnel *t)
{
        while (t->out.n > 0 && t->failure == 0) {
                struct str s = buf_str(&t->out);
                size_t n = 0;
                CURLcode r = curl_easy_send(t->easy, s.p, s.n, &n);

                if (r == CURLE_AGAIN)
                        return HUTCH_AGAIN;
                if (r != CURLE_OK)
                        return broken(t);
                buf_consume(&t->out, n);
        }
        return t->failure;
}

static void add_frame(struct hutch_tunnel *t, enum ws_op op, struct str bytes)
{
        uint8_t mask[4];

        t->masks = t->masks * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        for (unsigned i = 0; i < sizeof(mask); i++)
                mask[i] = (uint8_t) (t->masks >> (32 + 8 * i));
        ws_add_frame(&t->out, op, bytes, mask);
}

/* --- public functions --- */

int hutch_tunnel_fd(const struct hutch_tunnel *tunnel)
{
        return tunnel->fd;
}

unsigned hutch_tunnel_events(const struct hutch_tunnel *tunnel)
{
        return (tunnel->peer_closed ? 0U : (unsigned) HUTCH_READABLE)
               | (tunnel->out.n > 0 ? (unsigned) HUTCH_WRITABLE : 0U);
}

/* Parses what was received: bytes, 0 for the end, or HUTCH_AGAIN if more is needed. */
static int64_t read_held(struct hutch_tunnel *t, void *buf, size_t n)
{
        for (;;) {
                struct str input = buf_str(&t->in), piece = STR_NULL;
                int event = ws_read(&t->reader, &input, n, &piece);
                unsigned code = 1005; /* the frame has no code */

                if (event < 0) {
                        t->failure = HUTCH_PROTOCOL;
                        return HUTCH_PROTOCOL;
                }
                if (event == WS_PIECE)
                        memcpy(buf, piece.p, piece.n);
                buf_consume(&t->in, t->in.n - input.n);
                if (event == WS_PIECE)
                        return (int64_t) piece.n;
                if (event == WS_NEED_MORE)
                        return HUTCH_AGAIN;
                if (t->reader.op == WS_CLOSE) {
                        if (piece.n >= 2)
                                code = (unsigned) (uint8_t) piece.p[0] << 8 | (uint8_t) piece.p[1];
                        t->peer_closed = true;
                        if (!t->closed)
                                add_frame(t, WS_CLOSE, piece);
                        t->closed = true;
                        (void) tunnel__flush(t);
                        /* 1000: the server in the sandbox has sent everything. */
                        if (code != 1000 && code != 1001 && code != 1005)
                                t->failure = HUTCH_BROKEN;
                        return t->failure;
                }
                if (t->reader.op == WS_PING && t->out.n < TUNNEL_PIECE) { /* else ignored */
                        add_frame(t, WS_PONG, piece);
                        (void) tunnel__flush(t);
                }
        }
}

int64_t hutch_tunnel_read(struct hutch_tunnel *tunnel, void *buf, size_t n)
{
        if (!tunnel || !buf || n == 0)
                return HUTCH_INVALID;
        for (;;) {
                int64_t got = tunnel->peer_closed ? tunnel->failure : read_held(tunnel, buf, n);
                int r;

                if (got != HUTCH_AGAIN)
                        return got;
                r = tunnel__receive(tunnel);
                if (r == 0)
                        return broken(tunnel); /* without a close frame */
                if (r < 0)
                        return r;
        }
}

int64_t hutch_tunnel_write(struct hutch_tunnel *tunnel, const void *bytes, size_t n)
{
        int r;

        if (!tunnel || (n > 0 && !bytes) || (tunnel->closed && n > 0))
                return HUTCH_INVALID;
        r = tunnel__flush(tunnel);
        if (r < 0 && (r != HUTCH_AGAIN || n == 0))
                return r;
        if (n == 0)
                return 0;
        if (tunnel->out.n >= TUNNEL_PIECE)
                return HUTCH_AGAIN;
        n = MIN_OF(n, TUNNEL_PIECE);
        add_frame(tunnel, WS_BYTES, str_of(bytes, n));
        if (buf_failed(&tunnel->out))
                return HUTCH_NO_MEMORY;
        r = tunnel__flush(tunnel);
        return r < 0 && r != HUTCH_AGAIN ? r : (int64_t) n;
}

int hutch_tunnel_end(struct hutch_tunnel *tunnel)
{
        if (!tunnel)
                return HUTCH_INVALID;
        if (!tunnel->closed)
                add_frame(tunnel, WS_CLOSE, STR("\003\350")); /* 1000 */
        tunnel->closed = true;
        return tunnel__flush(tunnel);
}

void hutch_tunnel_free(struct hutch_tunnel *tunnel)
{
        if (!tunnel)
                return;
        if (tunnel->easy) {
                (void) curl_multi_remove_handle(tunnel->multi, tunnel->easy);
                curl_easy_cleanup(tunnel->easy);
        }
        buf_done(&tunnel->in);
        buf_done(&tunnel->out);
        hutch_loop_free(tunnel->loop);
        free(tunnel);
}
