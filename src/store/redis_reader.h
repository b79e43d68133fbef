/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_STORE_REDIS_READER_H
#define HUTCH_STORE_REDIS_READER_H

/*
 * Answers of a Redis server, read by hiredis and kept within bounds.
 *
 * hiredis believes a server: it collects a string of any length and an array of any number. Here an
 * answer has at most REDIS_REPLY_MAX bytes, and its arrays are those that our scripts and SCAN make.
 * Whoever sends more is no server of ours: the reader fails, and stays so.
 */

#include <hiredis/hiredis.h>

#include "base/err.h"
#include "base/str.h"
#include "store/store.h"

#define REDIS_ARRAY_MAX (1 + 3 * STORE_SCAN_MAX)
#define REDIS_REPLY_MAX (STORE_SCAN_BYTES_MAX + STORE_VALUE_MAX + REDIS_ARRAY_MAX * (size_t) 64)

struct redis_reader {
        redisReader *_reader;
        size_t _bytes; /* fed since the last answer was complete */
};

void redis_reader_init(struct redis_reader *r);
void redis_reader_done(struct redis_reader *r);

/* -ENOBUFS: too much for an answer. */
int redis_reader_feed(struct redis_reader *r, struct str bytes) must_check;

/* 1 and an answer, to be freed by freeReplyObject; 0 if there is none yet; -EPROTO if this is not the
 * protocol, or more than we take. */
int redis_reader_next(struct redis_reader *r, redisReply **ret) must_check;

/* The text of an answer: a string, a status or an error; a null view for anything else. */
struct str redis_text(const redisReply *reply);

/* The same for people: quoted, escaped and cut. */
#define REDIS_QUOTE_MAX 160
const char *redis_quote(const redisReply *reply, char ret[static REDIS_QUOTE_MAX]);

#endif
