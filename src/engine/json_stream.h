/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_JSON_STREAM_H
#define HUTCH_ENGINE_JSON_STREAM_H

/*
 * Splits a stream into JSON objects: one after the other, as engines send events and progress, or the items of one
 * array, as they send lists. A list of ten thousand containers is thus never one document in memory, and an
 * event is complete with its last byte.
 *
 * Only the bounds of objects are found here; the JSON parser checks what is between them.
 */

#include "base/buf.h"
#include "base/compiler.h"

typedef int json_stream_fn(void *data, struct str object);

struct json_stream {
        json_stream_fn *object; /* a negative value ends it, and is returned by json_stream_feed */
        void *data;
        struct buf buf;
        unsigned depth;
        bool in_string, escaped;
        bool in_array, ended; /* "[" and "]" were seen */
};

/* An object has at most `max` bytes. */
void json_stream_init(struct json_stream *p, size_t max, json_stream_fn *object, void *data);
void json_stream_done(struct json_stream *p);

/* -EBADMSG if it has neither form, -EFBIG if an object is too long. */
int json_stream_feed(struct json_stream *p, struct str bytes) must_check;

/* -EBADMSG if the stream may not end here. */
int json_stream_end(const struct json_stream *p) must_check;

#endif
