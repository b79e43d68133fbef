/* SPDX-License-Identifier: Apache-2.0 */
#include "bridge/names.h"

#include "base/base.h"

const struct name_style name_style_nats = {
        .separator = '.', .any = '*', .none = "empty", .bad = "."
};
const struct name_style name_style_mqtt = {
        .separator = '/', .any = '+', .none = "none", .bad = "/+#"
};

/* --- snake case --- */

static bool is_upper(char c)
{
        return c >= 'A' && c <= 'Z';
}

static bool is_lower(char c)
{
        return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

static size_t run_of(struct str s, size_t at, bool (*is)(char c))
{
        size_t n = 0;

        while (at + n < s.n && is(s.p[at + n]))
                n++;
        return n;
}

/* [A-Z]{2,}(?=[A-Z][a-z]+[0-9]*|\b): a run of capitals up to the end of the word, or up to its last one if that begins
 * the next word. */
static size_t match_capitals(struct str s, size_t at)
{
        size_t n = run_of(s, at, is_upper);
        char next = ' ';

        if (at + n < s.n)
                next = s.p[at + n];

        if (n >= 2 && next != '_' && !is_lower(next) && !is_digit(next))
                return n;
        return n >= 3 && is_lower(next) ? n - 1 : 0;
}

/* [A-Z]?[a-z]+[0-9]* */
static size_t match_word(struct str s, size_t at)
{
        size_t capital = at < s.n && is_upper(s.p[at]) ? 1 : 0;
        size_t n = run_of(s, at + capital, is_lower);

        return n == 0 ? 0 : capital + n + run_of(s, at + capital + n, is_digit);
}

static size_t match(struct str s, size_t at)
{
        size_t n = match_capitals(s, at);

        if (n == 0)
                n = match_word(s, at);
        if (n == 0 && is_upper(s.p[at]))
                n = 1;
        return n ? n : run_of(s, at, is_digit);
}

/* Characters from..to are shifted to the other case. */
static void add_with(struct buf *b, struct str s, char from, char to, int by)
{
        for (size_t i = 0; i < s.n; i++) {
                char c = s.p[i];

                if (c >= from && c <= to)
                        c = (char) (c + by);
                buf_add_char(b, c);
        }
}

void names_add_snake(struct buf *b, struct str text)
{
        bool found = false;

        for (size_t at = 0; at < text.n;) {
                size_t n = match(text, at);

                if (n > 0) {
                        if (found)
                                buf_add_char(b, '_');
                        found = true;
                        add_with(b, str_of(text.p + at, n), 'A', 'Z', 'a' - 'A');
                }
                at += n ? n : 1;
        }
        if (!found)
                buf_add_str(b, text);
}

/* --- addresses --- */

void names_add_part(struct buf *b, const struct name_style *style, struct str text)
{
        size_t from = b->n;
        char *p;

        if (text.n == 0) {
                buf_add_str(b, str_from(style->none));
                return;
        }
        names_add_snake(b, text);
        if (buf_failed(b))
                return;
        p = b->p + b->start;
        for (size_t i = from; i < b->n; i++)
                if ((unsigned char) p[i] <= ' ' || p[i] == 0x7f || strchr(style->bad, p[i]))
                        p[i] = '_';
}

void names_add_address(struct buf *b, const struct name_style *style, struct str prefix,
                       const struct message_head *head)
{
        const struct str parts[] = {
                head->type,
                head->principal,
                head->tenant,
                head->sender.instance,
                head->sender.service,
                head->sender.version,
                head->sender.target,
                head->event,
                head->receiver.instance,
                head->receiver.service,
                head->receiver.version,
                head->receiver.target,
        };

        buf_add_str(b, prefix);
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                buf_add_char(b, style->separator);
                names_add_part(b, style, parts[i]);
        }
}

#define ANY_PARTS 8 /* between the type and the receiver's service */

void names_add_commands(struct buf *b, const struct name_style *style, struct str prefix,
                        const struct address *receiver)
{
        const struct str parts[] = { receiver->service, receiver->version, receiver->target };

        buf_add_str(b, prefix);
        buf_add_char(b, style->separator);
        buf_add_str(b, STR("command"));
        for (size_t i = 0; i < ANY_PARTS; i++) {
                buf_add_char(b, style->separator);
                buf_add_char(b, style->any);
        }
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                buf_add_char(b, style->separator);
                names_add_part(b, style, parts[i]);
        }
}

void names_add_queue_group(struct buf *b, struct str prefix, const struct address *receiver)
{
        const struct str parts[] = { STR("queue"), receiver->service, receiver->version,
                                     receiver->target };

        add_with(b, prefix, 'a', 'z', 'A' - 'a');
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                buf_add_char(b, '_');
                add_with(b, parts[i], 'a', 'z', 'A' - 'a');
        }
}

void names_add_queue(struct buf *b, struct str prefix, const struct address *receiver)
{
        const struct str parts[] = { STR("cmd"), receiver->service, receiver->version,
                                     receiver->target };

        buf_add_str(b, prefix);
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
                buf_add_char(b, '.');
                buf_add_str(b, parts[i]);
        }
}
