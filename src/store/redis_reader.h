/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_REDIS_READER_H
#define HUTCH_STORE_REDIS_READER_H

/*
 * Replies of a Redis server, parsed by hiredis within bounds.
 *
 * hiredis trusts the server: it collects strings of any length and arrays of any size. Here a reply has at most
 * REDIS_REPLY_MAX bytes, and its arrays are those that our scripts and SCAN return. A larger one fails the reader for good.
 */

#include <hiredis/hiredis.h>

#include "base/err.h"
#include "base/str.h"
#include "store/store.h"

#define REDIS_ARRAY_MAX (1 + 3 * STORE_SCAN_MAX)
#define REDIS_REPLY_MAX (STORE_SCAN_BYTES_MAX + STORE_VALUE_MAX + REDIS_ARRAY_MAX * (size_t) 64)

struct redis_reader {
        redisReader *_reader;
        size_t _bytes; /* fed since the last complete reply */
};

void redis_reader_init(struct redis_reader *r);
void redis_reader_done(struct redis_reader *r);

/* -ENOBUFS: too much for a reply. */
int redis_reader_feed(struct redis_reader *r, struct str bytes) must_check;

/* 1 and a reply, to be freed by freeReplyObject; 0 if there is none yet; -EPROTO if it is malformed, or too large. */
int redis_reader_next(struct redis_reader *r, redisReply **ret) must_check;

/* The text of a reply: a string, a status or an error; the null view for anything else. */
struct str redis_text(const redisReply *reply);

/* The same for messages: quoted, escaped and cut. */
#define REDIS_QUOTE_MAX 160
const char *redis_quote(const redisReply *reply, char ret[static REDIS_QUOTE_MAX]);

#endif
