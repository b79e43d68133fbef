/* SPDX-License-Identifier: Apache-2.0 */
#include "store/redis_reader.h"

#include <errno.h>

#include "base/base.h"

static redisReplyObjectFunctions *plain; /* hiredis' default functions */

/* NULL fails the reader, as out of memory would. An array may be nested in one of two elements: that is what SCAN returns. */
static void *create_array(const redisReadTask *task, int elements)
{
        const redisReadTask *parent = task->parent;

        if (elements > REDIS_ARRAY_MAX)
                return NULL;
        if (parent && (parent->parent || parent->elements != 2))
                return NULL;
        return plain->createArray(task, elements);
}

static redisReplyObjectFunctions bounded;

void redis_reader_init(struct redis_reader *r)
{
        *r = (struct redis_reader){ ._reader = redisReaderCreate() };
        ASSERT(r->_reader);
        if (!plain) {
                plain = r->_reader->fn;
                bounded = *plain;
                bounded.createArray = create_array;
        }
        r->_reader->fn = &bounded;
}

void redis_reader_done(struct redis_reader *r)
{
        if (r->_reader)
                redisReaderFree(r->_reader);
        *r = (struct redis_reader){ 0 };
}

int redis_reader_feed(struct redis_reader *r, struct str bytes)
{
        r->_bytes += bytes.n;
        if (r->_bytes > REDIS_REPLY_MAX)
                return -ENOBUFS;
        return redisReaderFeed(r->_reader, bytes.p, bytes.n) == REDIS_OK ? 0 : -EPROTO;
}

int redis_reader_next(struct redis_reader *r, redisReply **ret)
{
        void *reply = NULL;

        if (redisReaderGetReply(r->_reader, &reply) != REDIS_OK)
                return -EPROTO;
        if (!reply)
                return 0;
        r->_bytes = r->_reader->len - r->_reader->pos;
        *ret = reply;
        return 1;
}

struct str redis_text(const redisReply *reply)
{
        bool has = reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS
                   || reply->type == REDIS_REPLY_ERROR;

        return has ? str_of(reply->str, reply->len) : STR_NULL;
}

const char *redis_quote(const redisReply *reply, char ret[static REDIS_QUOTE_MAX])
{
        struct buf words;

        buf_init_fixed(&words, ret, REDIS_QUOTE_MAX - 1);
        (void) buf_add_quoted_cut(&words, redis_text(reply), REDIS_QUOTE_MAX - 8);
        ret[words.n] = '\0';
        return ret;
}
