/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_HTTP_MESSAGE_H
#define HUTCH_HTTP_MESSAGE_H

/*
 * Parses HTTP/1 messages: requests for the server, responses for the client. Internal to src/http.
 *
 * The head guard sees heads and trailers before llhttp does (docs/decisions/0003). llhttp is fed exactly
 * the head and then decides alone where the body ends. Its callbacks only record what happened; the
 * owner acts on it after http_message_feed has returned, with no parser on the stack. The exception is
 * the body, which is delivered from inside, directly from the memory that was fed.
 *
 * A feed stops at the end of the head and at the end of the message; got_head and got_message tell.
 * Trailers are checked and dropped. The framing of chunks may be larger than their content, within
 * limits; endless extensions are rejected.
 */

#include <llhttp/llhttp.h>

#include "http/head_guard.h"
#include "http/headers.h"

/* Bytes of the start line that are kept, to look back at. */
#define HTTP_MESSAGE_TAIL 7

struct http_message;

struct http_message_ops {
        /* A piece of the body, decoded from its chunks. */
        void (*body)(struct http_message *m, const char *p, size_t n);
        /* Called when the head is complete: true if there is no body, regardless of the head
         * (responses to HEAD). NULL: the head decides. */
        bool (*is_bodiless)(const struct http_message *m);
};

struct http_message {
        const struct http_message_ops *ops;
        llhttp_t llhttp; /* status_code, method, http_minor, content_length, flags */

        /* --- parsed; views into the arena --- */
        struct http_headers headers; /* once got_head */
        struct str target;           /* of a request, as far as it was read */
        bool got_head, got_message;
        bool keep_alive; /* as the message says */
        bool until_eof;  /* the body ends with the connection */
        bool upgrade;    /* requests (or, with 101, grants) another protocol; parsing continues */

        /* --- errors --- */
        const char *reason;      /* after a failed feed: static text */
        enum llhttp_errno error; /* of llhttp, or HPE_OK */

        struct arena *_arena;
        size_t _head_max, _target_max;
        struct head_guard _guard;
        struct str _name, _value; /* of the field that is being read; views into the arena */
        bool _in_value;           /* of that field */
        bool _guarding;           /* in a head or in trailers */
        bool _in_trailer;
        const char *_fed; /* input of llhttp, and the bytes before it */
        char _tail[HTTP_MESSAGE_TAIL];
        uint64_t _body_bytes, _framing_bytes;
        int _failure; /* of a callback: negative errno */
};

void http_message_init(struct http_message *m, llhttp_type_t type,
                       const struct http_message_ops *ops);

/* Starts a new message. head_max limits its head and, separately, its trailers. */
void http_message_begin(struct http_message *m, struct arena *a, size_t head_max,
                        size_t target_max);

/* Returns the number of bytes consumed. -EBADMSG: malformed. -E2BIG: the head is too large or has too
 * many fields. -ENAMETOOLONG: the target is too long. After an error, only http_message_begin. */
ssize_t http_message_feed(struct http_message *m, const char *p, size_t n) must_check;

#endif
