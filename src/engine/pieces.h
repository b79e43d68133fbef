/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_ENGINE_PIECES_H
#define HUTCH_ENGINE_PIECES_H

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

typedef int pieces_fn(void *data, struct str object);

struct pieces {
        pieces_fn *object; /* a negative value ends it all, and comes back from pieces_feed */
        void *data;
        struct buf buf;
        unsigned depth;
        bool in_string, escaped;
        bool in_array, ended; /* "[" and "]" were seen */
};

/* An object has at most `max` bytes. */
void pieces_init(struct pieces *p, size_t max, pieces_fn *object, void *data);
void pieces_done(struct pieces *p);

/* -EBADMSG if it is none of the two forms, -EFBIG if an object is too long. */
int pieces_feed(struct pieces *p, struct str bytes) must_check;

/* -EBADMSG if the stream may not end here. */
int pieces_end(const struct pieces *p) must_check;

#endif
