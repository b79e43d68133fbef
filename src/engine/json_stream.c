/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/json_stream.h"

#include "base/base.h"

#define DEPTH_MAX JSON_DEPTH_MAX

void json_stream_init(struct json_stream *p, size_t max, json_stream_fn *object, void *data)
{
        *p = (struct json_stream){ .object = object, .data = data };
        buf_init(&p->buf, max);
}

void json_stream_done(struct json_stream *p)
{
        buf_done(&p->buf);
}

/* Between objects. "null" is how some write an empty list; its letters mean nothing elsewhere. */
static int outside(struct json_stream *p, char c)
{
        if (c == '{' && !p->ended) {
                p->depth = 1;
                return 0;
        }
        if (c == '[' && !p->in_array && !p->ended) {
                p->in_array = true;
                return 0;
        }
        if (c == ']' && p->in_array && !p->ended) {
                p->ended = true;
                return 0;
        }
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || (c == ',' && p->in_array)
            || (!p->in_array && (c == 'n' || c == 'u' || c == 'l')))
                return 0;
        return -EBADMSG;
}

static int inside(struct json_stream *p, char c)
{
        if (p->escaped)
                p->escaped = false;
        else if (p->in_string && c == '\\')
                p->escaped = true;
        else if (c == '"')
                p->in_string = !p->in_string;
        else if (!p->in_string && (c == '{' || c == '['))
                p->depth++;
        else if (!p->in_string && (c == '}' || c == ']'))
                p->depth--;
        return p->depth > DEPTH_MAX ? -EBADMSG : 0;
}

static int keep(struct json_stream *p, struct str run)
{
        buf_add_str(&p->buf, run);
        return buf_failed(&p->buf) ? -EFBIG : 0;
}

int json_stream_feed(struct json_stream *p, struct str bytes)
{
        size_t from = 0;
        int r = 0;

        for (size_t i = 0; i < bytes.n && r == 0; i++) {
                bool was_outside = p->depth == 0;

                r = was_outside ? outside(p, bytes.p[i]) : inside(p, bytes.p[i]);
                if (was_outside)
                        from = i;
                if (r < 0 || was_outside || p->depth > 0)
                        continue;
                r = keep(p, str_of(bytes.p + from, i + 1 - from));
                if (r == 0)
                        r = p->object(p->data, buf_str(&p->buf));
                buf_reset(&p->buf);
                from = i + 1;
        }
        if (r == 0 && p->depth > 0 && from < bytes.n)
                r = keep(p, str_of(bytes.p + from, bytes.n - from));
        return r;
}

int json_stream_end(const struct json_stream *p)
{
        return p->depth > 0 || p->in_array != p->ended ? -EBADMSG : 0;
}
