/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/spool_reply.h"

#include "base/base.h"

/* Read and written at once; the ring's seam makes a piece shorter. */
#define PIECE (64 * KiB)

struct spool_response {
        struct http_req *req;
        struct spool *spool;
        struct spool_reader reader;
        uint64_t at, end;
        bool follow;
};

static void let_go(struct spool_response *a)
{
        struct http_req *req = a->req;

        spool_unwait(&a->reader);
        spool_unref(a->spool);
        http_req_set_hooks(req, NULL, NULL);
        http_req_unref(req); /* `a` is in its arena */
}

static void finish(struct spool_response *a, bool complete)
{
        if (complete)
                http_stream_end(a->req);
        else
                http_stream_fail(a->req);
        let_go(a);
}

/* The ring was faster than the client. */
static void skip_dropped(struct spool_response *a)
{
        uint64_t start = MIN_OF(spool_start(a->spool), a->end);
        char text[64];

        (void) snprintf(text, sizeof(text), "\n[%llu bytes of output dropped]\n",
                        (unsigned long long) (start - a->at));
        http_stream_write(a->req, str_from(text));
        a->at = start;
}

/* Sends what the client has room for. */
static void send_more(struct spool_response *a)
{
        scoped(freep) char *piece = NULL;

        /* A finished spool may grow on, by what a command left running: who follows the command has
         * seen enough. */
        if (a->follow) {
                a->end = spool_end(a->spool);
                a->follow = !spool_finished(a->spool);
        }
        if (a->at < spool_start(a->spool) && a->req->res.length == HTTP_LENGTH_UNKNOWN
            && http_stream_writable(a->req))
                skip_dropped(a);
        while (a->at < a->end && http_stream_writable(a->req)) {
                ssize_t n = -ESTALE;

                if (!piece)
                        piece = xcalloc(1, PIECE);
                if (a->at >= spool_start(a->spool))
                        n = spool_read(a->spool, a->at, piece,
                                       (size_t) MIN_OF(a->end - a->at, (uint64_t) PIECE));
                if (n < 0) {
                        finish(a, /* complete= */ false);
                        return;
                }
                http_stream_write(a->req, str_of(piece, (size_t) n));
                a->at += (uint64_t) n;
        }
        if (a->at == a->end && !a->follow)
                finish(a, /* complete= */ true);
}

static void response_drain(struct http_req *req)
{
        send_more(req->data);
}

static void response_abort(struct http_req *req, int reason)
{
        (void) reason;
        let_go(req->data);
}

static const struct http_hooks response_hooks = {
        .drain = response_drain,
        .abort = response_abort,
};

static void reader_more(struct spool_reader *r)
{
        struct spool_response *a = container_of(r, struct spool_response, reader);

        if (http_stream_writable(a->req))
                send_more(a);
}

static void add_number(struct http_req *req, struct str name, uint64_t v)
{
        char text[24];

        (void) snprintf(text, sizeof(text), "%llu", (unsigned long long) v);
        (void) http_res_header(req, name, str_from(text));
}

static uint64_t wanted_cursor(struct http_req *req)
{
        struct str text;
        uint64_t v;

        return http_req_query(req, "cursor", &text) == 1 && parse_u64(text, &v) == 0 ? v : 0;
}

static bool wants_follow(struct http_req *req)
{
        struct str text;

        return http_req_query(req, "follow", &text) == 1
               && (str_eq(text, STR("true")) || str_eq(text, STR("1")));
}

void spool_reply(struct http_req *req, struct spool *s)
{
        struct spool_response *a = arena_new(&req->arena, struct spool_response);
        uint64_t cursor = wanted_cursor(req);

        if (!a) {
                http_reply_error(req, 500, "RUNTIME_ERROR", "out of memory");
                return;
        }
        *a = (struct spool_response){ .req = http_req_ref(req),
                                      .spool = spool_ref(s),
                                      .reader.more = reader_more,
                                      .follow = wants_follow(req) };
        a->end = spool_end(s);
        a->at = MIN_OF(MAX_OF(cursor, spool_start(s)), a->end);
        if (a->at > cursor)
                add_number(req, STR("EXECD-COMMANDS-DROPPED"), a->at - cursor);
        if (!a->follow)
                add_number(req, STR("EXECD-COMMANDS-TAIL-CURSOR"), a->end);
        http_res_header_const(req, STR("Content-Type"), STR("text/plain; charset=utf-8"));
        /* Nothing is sent in chunks: old JavaScript clients take "Content-Length: 0" for no answer. */
        http_stream_begin(req, 200,
                          a->follow || a->at == a->end ? HTTP_LENGTH_UNKNOWN : a->end - a->at);
        if (req->method == METHOD_HEAD) { /* has got all of the answer */
                finish(a, /* complete= */ true);
                return;
        }
        http_req_set_hooks(req, &response_hooks, a);
        if (a->follow)
                spool_wait(s, &a->reader);
        send_more(a);
}
