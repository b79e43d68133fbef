/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_TESTS_LIB_FAKE_ENGINE_H
#define HUTCH_TESTS_LIB_FAKE_ENGINE_H

/*
 * An engine that says what a test wants: a table of responses by the beginning of "METHOD target", on a unix
 * socket and on the test's own loop. Its requests are kept.
 *
 * A response that begins with "HTTP/" goes out byte for byte, and the connection is closed behind it; one
 * that begins with "stream " is a chunked response that never ends; any other is "STATUS body". Without an
 * entry it responses 404.
 */

#include <stdio.h>

#include "base/base.h"
#include "net/listener.h"
#include "net/stream.h"
#include "tests/lib/check.h"
#include "tests/lib/wire.h"

struct fake_response {
        const char *request; /* as it begins; without the version of the API */
        const char *response;
};

struct fake_engine {
        struct net_loop *loop;
        struct net_listener listener;
        struct sock_addr addr;
        char path[96];
        const struct fake_response *responses; /* ends in an entry without request */
        struct list conns;
        struct buf requests; /* a line for each */
        struct buf bodies;   /* a line for each that had one */
        size_t open;
};

struct fake_conn {
        struct list node;
        struct fake_engine *engine;
        struct net_stream stream;
        struct buf in;
        bool last;
};

static inline void fake_reply(struct fake_conn *c, const char *response)
{
        char head[128];

        if (strncmp(response, "HTTP/", 5) == 0) {
                stream_queue(&c->stream, str_from(response));
                stream_shutdown(&c->stream);
                return;
        }
        if (strncmp(response, "stream ", 7) == 0) {
                (void) snprintf(head, sizeof(head),
                                "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n");
                stream_queue(&c->stream, str_from(head));
                if (response[7]) {
                        (void) snprintf(head, sizeof(head), "%zx\r\n", strlen(response + 7));
                        stream_queue(&c->stream, str_from(head));
                        stream_queue(&c->stream, str_from(response + 7));
                        stream_queue(&c->stream, STR("\r\n"));
                }
                return;
        }
        if (strncmp(response, "204", 3) == 0) {
                stream_queue(&c->stream, STR("HTTP/1.1 204 X\r\n\r\n"));
                return;
        }
        (void) snprintf(head, sizeof(head), "HTTP/1.1 %.3s X\r\nContent-Length: %zu\r\n\r\n",
                        response, strlen(response + 4));
        stream_queue(&c->stream, str_from(head));
        stream_queue(&c->stream, str_from(response + 4));
}

static inline const char *fake_find(const struct fake_engine *f, struct str what)
{
        for (const struct fake_response *a = f->responses; a && a->request; a++)
                if (str_starts_with(what, str_from(a->request)))
                        return a->response;
        return "404 {\"message\":\"no such thing\"}";
}

static inline size_t fake_length(struct str head)
{
        const char *at = memmem(head.p, head.n, "Content-Length: ", 16);

        return at ? (size_t) strtoul(at + 16, NULL, 10) : 0;
}

/* One request off the buffer, if it is whole. */
static inline bool fake_serve(struct fake_conn *c)
{
        struct str in = buf_str(&c->in), line, what;
        const char *end = memmem(in.p, in.n, "\r\n\r\n", 4);
        size_t head = end ? (size_t) (end - in.p) + 4 : 0;
        size_t body = end ? fake_length(str_of(in.p, head)) : 0;
        char text[512];
        ssize_t at;

        if (!end || in.n < head + body)
                return false;
        line = str_of(in.p, (size_t) ((const char *) memchr(in.p, '\r', in.n) - in.p));
        at = str_find(line, ' ');
        what = str_skip(line, (size_t) at + 1 + strlen("/v1.41"));
        what.n -= strlen(" HTTP/1.1");
        (void) snprintf(text, sizeof(text), "%.*s %.*s", (int) at, line.p, STR_ARG(what));
        buf_addf(&c->engine->requests, "%s\n", text);
        buf_add(&c->engine->bodies, in.p + head, body);
        if (body)
                buf_add_char(&c->engine->bodies, '\n');
        fake_reply(c, fake_find(c->engine, str_from(text)));
        buf_consume(&c->in, head + body);
        return true;
}

static inline void fake_data(struct net_stream *s, char *p, size_t n)
{
        struct fake_conn *c = container_of(s, struct fake_conn, stream);

        buf_add(&c->in, p, n);
        while (fake_serve(c))
                ;
}

static inline void fake_eof(struct net_stream *s)
{
        stream_close(s);
}

static inline void fake_drained(struct net_stream *s)
{
        (void) s;
}

static inline void fake_error(struct net_stream *s, int r)
{
        (void) r;
        stream_close(s);
}

static inline void fake_closed(struct net_stream *s)
{
        struct fake_conn *c = container_of(s, struct fake_conn, stream);

        c->engine->open--;
        list_remove(&c->node);
        buf_done(&c->in);
        free(c);
}

static inline void fake_accepted(struct net_listener *l, int fd, const struct sock_addr *peer)
{
        static const struct net_stream_ops ops = { .data = fake_data,
                                                   .eof = fake_eof,
                                                   .drained = fake_drained,
                                                   .error = fake_error,
                                                   .closed = fake_closed };
        struct fake_engine *f = container_of(l, struct fake_engine, listener);
        struct fake_conn *c = xnew(struct fake_conn);

        (void) peer;
        c->engine = f;
        buf_init(&c->in, 64 * MiB);
        check_i64_eq(stream_open(&c->stream, f->loop, fd, 64 * MiB, &ops), 0);
        list_append(&f->conns, &c->node);
        f->open++;
        stream_resume_reading(&c->stream);
}

static inline void fake_listener_closed(struct net_listener *l)
{
        container_of(l, struct fake_engine, listener)->open--;
}

static inline void fake_engine_listen(struct fake_engine *f)
{
        static const struct net_listener_ops ops = { .accepted = fake_accepted,
                                                     .closed = fake_listener_closed };
        int fd;

        check_i64_eq(sock_listen(&f->addr, &fd), 0);
        check_i64_eq(listener_open(&f->listener, f->loop, fd, &ops), 0);
        f->open++;
}

/* Its connections break, and it does not listen. */
static inline void fake_engine_away(struct fake_engine *f)
{
        listener_close(&f->listener);
        list_for_each (n, &f->conns)
                stream_close(&container_of(n, struct fake_conn, node)->stream);
        wire_until(f->loop, f->open == 0);
}

static inline void fake_engine_open(struct fake_engine *f, struct net_loop *loop, const char *dir,
                                    const struct fake_response *responses)
{
        char text[128];

        *f = (struct fake_engine){ .loop = loop, .responses = responses };
        list_init(&f->conns);
        buf_init(&f->requests, MiB);
        buf_init(&f->bodies, MiB);
        (void) snprintf(f->path, sizeof(f->path), "%s/engine.sock", dir);
        (void) snprintf(text, sizeof(text), "unix:%s", f->path);
        check_i64_eq(sock_addr_from_string(str_from(text), &f->addr), 0);
        fake_engine_listen(f);
}

static inline void fake_engine_close(struct fake_engine *f)
{
        if (f->open > 0)
                fake_engine_away(f);
        buf_done(&f->requests);
        buf_done(&f->bodies);
}

static inline bool fake_engine_got_request(const struct fake_engine *f, const char *what)
{
        return memmem(buf_str(&f->requests).p, f->requests.n, what, strlen(what)) != NULL;
}

#endif
