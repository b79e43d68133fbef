/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_JSON_STREAM_H
#define HUTCH_ENGINE_JSON_STREAM_H

/*
 * JSON objects out of a stream: one behind the other, as engines tell events and progress, or as the
 * items of one array, as they tell lists. A list of ten thousand containers is thus never one document in
 * memory, and an event is there when its last byte is.
 *
 * Only the limits of objects are looked for here; what is between them is for the JSON parser, which
 * refuses what is none.
 */

#include "base/buf.h"
#include "base/compiler.h"

typedef int json_stream_fn(void *data, struct str object);

struct pieces {
        json_stream_fn
                *object; /* a negative value ends it all, and comes back from json_stream_feed */
        void *data;
        struct buf buf;
        unsigned depth;
        bool in_string, escaped;
        bool in_array, ended; /* "[" and "]" were seen */
};

/* An object has at most `max` bytes. */
void json_stream_init(struct pieces *p, size_t max, json_stream_fn *object, void *data);
void json_stream_done(struct pieces *p);

/* -EBADMSG if it is none of the two forms, -EFBIG if an object is too long. */
int json_stream_feed(struct pieces *p, struct str bytes) must_check;

/* -EBADMSG if the stream may not end here. */
int json_stream_end(const struct pieces *p) must_check;

#endif
