/* SPDX-License-Identifier: Apache-2.0 */
#include "client/body.h"

#include <inttypes.h>

#include "base/base.h"
#include "base/json.h"

static void add_quoted(struct op *op, const char *text)
{
        struct str s = str_from(text);

        if (!str_is_utf8(s))
                op_refuse(op, HUTCH_INVALID, "a text is not UTF-8");
        else
                buf_add_quoted(&op->body, s);
}

static void begin_member(struct op *op, const char *key)
{
        struct str b = buf_str(&op->body);

        if (b.n > 0 && b.p[b.n - 1] != '{' && b.p[b.n - 1] != '[')
                buf_add_char(&op->body, ',');
        if (!key)
                return;
        add_quoted(op, key);
        buf_add_char(&op->body, ':');
}

void body_open(struct op *op, const char *key, char bracket)
{
        if (!op_is_valid(op))
                return;
        begin_member(op, key);
        buf_add_char(&op->body, bracket);
}

void body_close(struct op *op, char bracket)
{
        if (op_is_valid(op))
                buf_add_char(&op->body, bracket);
}

void body_text(struct op *op, const char *key, const char *value)
{
        if (!op_is_valid(op) || !value)
                return;
        begin_member(op, key);
        add_quoted(op, value);
}

/* Anything but one value could inject further members. */
void body_json(struct op *op, const char *key, const char *value)
{
        struct json_error e;
        json_t *doc = NULL;
        int r;

        if (!op_is_valid(op) || !value)
                return;
        r = json_parse(str_from(value), JSON_ALLOW_NULS, &doc, &e);
        json_decref(doc);
        if (r < 0) {
                op_refuse(op, r == -ENOMEM ? HUTCH_NO_MEMORY : HUTCH_INVALID, "%s: %s", key,
                          e.message);
                return;
        }
        begin_member(op, key);
        buf_add_str(&op->body, str_from(value));
}

void body_i64(struct op *op, const char *key, int64_t value)
{
        if (!op_is_valid(op))
                return;
        begin_member(op, key);
        buf_addf(&op->body, "%" PRId64, value);
}

void body_true(struct op *op, const char *key, bool value)
{
        if (!op_is_valid(op) || !value)
                return;
        begin_member(op, key);
        buf_add_str(&op->body, STR("true"));
}

void body_null(struct op *op, const char *key)
{
        if (!op_is_valid(op))
                return;
        begin_member(op, key);
        buf_add_str(&op->body, STR("null"));
}

void body_map(struct op *op, const char *key, const struct hutch_pair *pairs, size_t n)
{
        if (n == 0)
                return;
        body_open(op, key, '{');
        for (size_t i = 0; i < n; i++) {
                if (!pairs[i].key || !pairs[i].value)
                        op_refuse(op, HUTCH_INVALID, "%s: a pair without key or value", key);
                body_text(op, pairs[i].key, pairs[i].value);
        }
        body_close(op, '}');
}

void body_texts(struct op *op, const char *key, const char *const *texts, size_t n)
{
        if (n == 0)
                return;
        body_open(op, key, '[');
        for (size_t i = 0; i < n; i++)
                body_text(op, NULL, texts[i] ? texts[i] : "");
        body_close(op, ']');
}
