/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_MESSAGE_H
#define HUTCH_HTTP_MESSAGE_H

/*
 * Bytes to HTTP/1 messages, for the server's requests and the client's answers. Internal to
 * src/http.
 *
 * The head guard sees heads and trailers before llhttp does (docs/decisions/0003), so llhttp is fed
 * exactly up to the end of a head and then decides alone where the body ends. Its callbacks only
 * note what happened; what follows from it is the owner's business after http_message_feed has
 * returned, with no parser on the stack. The one exception is the body, which is handed over from
 * inside, straight from the memory that was fed.
 *
 * A feed consumes no further than the end of the head, then no further than the end of the message;
 * got_head and got_message tell. Trailers are checked and dropped. Chunks may be wrapped in more
 * bytes than they carry, within reason; what has no end, as an extension may have, is refused.
 */

#include <llhttp/llhttp.h>

#include "http/head_guard.h"
#include "http/headers.h"

/* How far the start line is looked back upon. */
#define HTTP_MESSAGE_TAIL 7

struct http_message;

struct http_message_ops {
        /* A piece of the body, decoded from its chunks. */
        void (*body)(struct http_message *m, const char *p, size_t n);
        /* The head is complete and the body's length about to be decided: true if there is none,
         * whatever the head says (answers to HEAD). NULL: the head decides. */
        bool (*is_bodiless)(const struct http_message *m);
};

struct http_message {
        const struct http_message_ops *ops;
        llhttp_t llhttp; /* status_code, method, http_minor, content_length, flags */

        /* --- what came; views into the arena --- */
        struct http_headers headers; /* once got_head */
        struct str target;           /* of a request, as much as was read */
        bool got_head, got_message;
        bool keep_alive; /* as far as the message is concerned */
        bool until_eof;  /* only the end of the connection ends the body */
        bool upgrade;    /* asks for (or, with 101, grants) another protocol; parsing goes on */

        /* --- what was wrong --- */
        const char *reason;      /* after a failed feed: for people, static text */
        enum llhttp_errno error; /* of llhttp, or HPE_OK */

        struct arena *_arena;
        size_t _head_max, _target_max;
        struct head_guard _guard;
        struct http_head_builder _head;
        bool _guarding; /* in a head or in trailers */
        bool _in_trailer;
        const char *_fed; /* what llhttp is at, and what stood before it */
        char _tail[HTTP_MESSAGE_TAIL];
        uint64_t _body_bytes, _framing_bytes;
        int _failure; /* noted by a callback: negative errno */
};

void http_message_init(struct http_message *m, llhttp_type_t type,
                       const struct http_message_ops *ops);

/* Expects a new message. head_max bounds its head and, separately, its trailers. */
void http_message_begin(struct http_message *m, struct arena *a, size_t head_max,
                        size_t target_max);

/* How much of the n bytes was consumed. -EBADMSG, -E2BIG: the head is too large or has too many
 * fields, -ENAMETOOLONG: the target is; then nothing more may be fed before the next begin. */
ssize_t http_message_feed(struct http_message *m, const char *p, size_t n) must_check;

#endif
