/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_path.h"

#include <stdio.h>

#include "base/banned.h"

#define KEY_TEXT_MAX 64 /* of a key from outside in a message, quotes included */
#define ELLIPSIS     "\xe2\x80\xa6"

static void add_path(struct buf *b, const struct json_path *p)
{
        if (!p)
                return;
        add_path(b, p->up);
        switch (p->kind) {
        case JSON_PART_NAME:
                buf_addf(b, "%s%s", p->up ? "." : "", p->name);
                break;
        case JSON_PART_INDEX:
                buf_addf(b, "[%zu]", p->index);
                break;
        case JSON_PART_KEY:
                buf_add_char(b, '[');
                (void) buf_add_quoted_cut(b, p->key, KEY_TEXT_MAX);
                buf_add_char(b, ']');
                break;
        default:
                ASSERT(false);
        }
}

static bool add_loc(struct buf *b, const struct json_path *p)
{
        size_t before;

        if (!p)
                return true;
        if (!add_loc(b, p->up))
                return false;
        before = b->n;
        if (before > 0)
                buf_add_char(b, ',');
        if (p->kind == JSON_PART_INDEX)
                buf_addf(b, "%zu", p->index);
        else if (p->kind == JSON_PART_NAME)
                buf_add_quoted(b, str_from(p->name));
        else
                (void) buf_add_quoted_cut(b, p->key, KEY_TEXT_MAX);
        if (!buf_failed(b))
                return true;
        buf_truncate(b, before);
        return false;
}

int json_path__fail(struct json_error *reterr, const struct json_path *at, const char *fmt, ...)
{
        char storage[4 * JSON_ERROR_MAX]; /* longer than what is kept, so that the cut is exact */
        struct buf b, loc;
        struct str s;
        va_list ap;

        reterr->syntax = false;
        reterr->position = 0;
        buf_init_fixed(&b, storage, sizeof(storage));
        add_path(&b, at);
        if (at)
                buf_add_str(&b, STR(": "));
        reterr->text_at = (unsigned) MIN_OF(b.n, JSON_ERROR_MAX - 1);
        buf_init_fixed(&loc, reterr->loc, sizeof(reterr->loc));
        (void) add_loc(&loc, at);
        reterr->loc[loc.n] = '\0';
        va_start(ap, fmt);
        buf_vaddf(&b, fmt, ap);
        va_end(ap);
        s = str_utf8_cut(buf_str(&b), JSON_ERROR_MAX - sizeof(ELLIPSIS));
        (void) snprintf(reterr->message, sizeof(reterr->message), "%.*s%s", STR_ARG(s),
                        buf_failed(&b) || s.n < b.n ? ELLIPSIS : "");
        reterr->text_at = (unsigned) MIN_OF(reterr->text_at, strlen(reterr->message));
        return -EINVAL;
}

int json_path__fail_unknown(struct json_error *reterr, const struct json_path *at, struct str key)
{
        char text[KEY_TEXT_MAX + 1];
        struct buf b;

        buf_init_fixed(&b, text, sizeof(text));
        (void) buf_add_quoted_cut(&b, key, KEY_TEXT_MAX);
        return json_path__fail(reterr, at, "unknown key %s", text);
}

int json_path__fail_enum(struct json_error *reterr, const struct json_path *at,
                         const struct enum_table *t)
{
        char names[JSON_ERROR_MAX];
        struct buf b;

        buf_init_fixed(&b, names, sizeof(names));
        for (int i = 0; i < t->n; i++)
                if (t->names[i])
                        buf_addf(&b, "%s%s", b.n ? ", " : "", t->names[i]);
        return json_path__fail(reterr, at, "must be one of %s%s", names,
                               buf_failed(&b) ? ", " ELLIPSIS : "");
}
