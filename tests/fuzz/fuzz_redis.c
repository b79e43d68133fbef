/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/fuzz.h"

#include "base/base.h"
#include "store/redis_reader.h"

/* An answer is within its bounds, whatever a server says, and by whatever pieces. */
static void check_answer(const redisReply *reply, int depth)
{
        char words[REDIS_QUOTE_MAX];

        ASSERT(depth < 2 || reply->type != REDIS_REPLY_ARRAY);
        ASSERT(strlen(redis_quote(reply, words)) < sizeof(words) && !strchr(words, '\x1b'));
        if (reply->type != REDIS_REPLY_ARRAY)
                return;
        ASSERT(reply->elements <= REDIS_ARRAY_MAX);
        for (size_t i = 0; i < reply->elements; i++)
                check_answer(reply->element[i], depth + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct redis_reader r;
        redisReply *reply;
        int result = 0;

        redis_reader_init(&r);
        while (n > 0 && result == 0) {
                size_t piece = MIN_OF(n, (size_t) (p[0] % 16) + 1);

                result = redis_reader_feed(&r, str_of((const char *) p, piece));
                while (result == 0 && (result = redis_reader_next(&r, &reply)) > 0) {
                        check_answer(reply, 0);
                        freeReplyObject(reply);
                        result = 0;
                }
                p += piece;
                n -= piece;
        }
        redis_reader_done(&r);
        return 0;
}
