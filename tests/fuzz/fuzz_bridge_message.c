/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/message.h"
#include "tests/fuzz/fuzz.h"
#include "tests/lib/ids.h"

/* Messages of anyone on a bus, and replies of hutchd. Replies to what is accepted as a command are valid JSON, and addresses
 * have thirteen parts. */

static void check_json(const struct buf *b)
{
        struct json_error e;
        json_t *doc = NULL;

        ASSERT(json_parse(buf_str(b), JSON_ALLOW_NULS, &doc, &e) == 0);
        json_decref(doc);
}

static void check_address(const struct message_head *head, const struct name_style *style)
{
        scoped(buf_done) struct buf b;
        size_t separators = 0;

        buf_init(&b, MiB);
        names_add_address(&b, style, STR("purista"), head);
        for (size_t i = 0; i < b.n; i++) {
                char c = buf_str(&b).p[i];

                separators += c == style->separator;
                ASSERT((unsigned char) c > ' ' && c != 0x7f);
        }
        ASSERT(separators == 12);
}

static void write_replies(const struct command_message *c, struct arena *a)
{
        struct ids ids;
        struct author who = { .instance = STR("me"), .ids = &ids, .now = 1 };
        struct failure failure = { .status = 404, .message = c->id, .handled = true };
        struct message_head head;
        scoped(buf_done) struct buf b;

        ids_init_fake(&ids);
        buf_init(&b, 16 * MiB);
        ASSERT(message_reply_head(&who, c, TYPE_SUCCESS, a, &head) == 0);
        check_address(&head, &name_style_nats);
        check_address(&head, &name_style_mqtt);
        message_add_success(&b, &who, c, &head, c->payload);
        check_json(&b);
        buf_reset(&b);
        message_add_failure(&b, &who, c, &head, &failure);
        check_json(&b);
        buf_reset(&b);
        message_add_event(&b, &who, c, &head, c->payload);
        check_json(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct str text = str_of((const char *) p, n);
        struct json_error e;
        struct command_message c;
        struct hutchd_reply reply;
        struct arena a;

        arena_init(&a, 64 * MiB);
        if (message_read_command(text, &a, &c, &e) == 0) {
                ASSERT(c.id.n > 0);
                write_replies(&c, &a);
        }
        if (message_read_reply(text, &a, &reply, &e) == 0)
                ASSERT(reply.ok || reply.error.status >= 100);
        arena_done(&a);
        return 0;
}
