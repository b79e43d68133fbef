/* SPDX-License-Identifier: Apache-2.0 */
#include "api/purista/text.h"

#include "base/base.h"
#include "http/url.h"

/* Of a long string at a time: six times that when all of it is control characters. */
#define SLICE (40 * KiB)

void purista_text_init(struct purista_text *t)
{
        *t = (struct purista_text){ 0 };
        buf_init(&t->plain, BUF_MAX_JSON);
}

void purista_text_done(struct purista_text *t)
{
        buf_done(&t->plain);
}

void purista_text_reset(struct purista_text *t)
{
        buf_reset(&t->plain);
        t->n = t->at = t->sent = 0;
}

/* What was added to `plain` since `from` is a piece, or a part of the last one. */
static void close_piece(struct purista_text *t, size_t from)
{
        if (t->n > 0 && !t->pieces[t->n - 1].raw.p) {
                t->pieces[t->n - 1].to = t->plain.n;
                return;
        }
        ASSERT(t->n < PURISTA_PIECES_MAX);
        t->pieces[t->n].from = from;
        t->pieces[t->n].to = t->plain.n;
        t->pieces[t->n++].raw = STR_NULL;
}

void purista_text_add(struct purista_text *t, struct str json)
{
        size_t from = t->plain.n;

        buf_add_str(&t->plain, json);
        close_piece(t, from);
}

void purista_text_addf(struct purista_text *t, const char *fmt, ...)
{
        size_t from = t->plain.n;
        va_list ap;

        va_start(ap, fmt);
        buf_vaddf(&t->plain, fmt, ap);
        va_end(ap);
        close_piece(t, from);
}

void purista_text_add_string(struct purista_text *t, struct str s)
{
        size_t from = t->plain.n;

        buf_add_quoted(&t->plain, s);
        close_piece(t, from);
}

void purista_text_add_member(struct purista_text *t, const char *before, const char *name,
                             struct str value)
{
        purista_text_addf(t, "%s\"%s\":", before, name);
        purista_text_add_string(t, value);
}

void purista_text_add_long(struct purista_text *t, struct str s)
{
        if (s.n < SLICE / 8) {
                purista_text_add_string(t, s);
                return;
        }
        purista_text_add(t, STR("\""));
        ASSERT(t->n < PURISTA_PIECES_MAX);
        t->pieces[t->n++].raw = s;
        purista_text_add(t, STR("\""));
}

bool purista_text_next(struct purista_text *t, struct buf *part)
{
        size_t from = part->n, total, n;
        struct str s;

        if (t->at == t->n)
                return false;
        if (!t->pieces[t->at].raw.p) {
                total = t->pieces[t->at].to - t->pieces[t->at].from;
                s = str_skip(buf_str(&t->plain), t->pieces[t->at].from + t->sent);
                s.n = MIN_OF(total - t->sent, 6 * SLICE);
                buf_add_str(part, s);
        } else {
                total = t->pieces[t->at].raw.n;
                s = str_skip(t->pieces[t->at].raw, t->sent);
                n = MIN_OF(s.n, SLICE);
                /* A slice does not end within a character: the two halves of one would be two that are invalid. */
                for (size_t back = 0; n < s.n && back < 4; back++)
                        if (((unsigned char) s.p[n - back] & 0xc0) != 0x80) {
                                n -= back;
                                break;
                        }
                s.n = n;
                buf_add_quoted(part, s);
        }
        if (t->pieces[t->at].raw.p && !buf_failed(part)) { /* without its quotes */
                memmove(part->p + part->start + from, part->p + part->start + from + 1,
                        part->n - from - 2);
                buf_truncate(part, part->n - 2);
        }
        t->sent += s.n;
        if (t->sent == total) {
                t->at++;
                t->sent = 0;
        }
        return true;
}

/* --- texts of callers --- */

int purista_agent_path(struct arena *a, struct str path, struct str *ret)
{
        bool variable = path.p && str_find(path, '$') >= 0;
        bool special = str_starts_with(path, STR("~")) || str_starts_with(path, STR("file:"));
        scoped(buf_done) struct buf b;

        buf_init(&b, 3 * path.n + 64);
        *ret = path;
        if (!variable && !special)
                return 0;
        if (!variable) {
                buf_add_str(&b, STR("./"));
                buf_add_str(&b, path);
        } else {
                buf_add_str(&b, STR("file://"));
                if (!str_starts_with(path, STR("/")))
                        buf_add_str(&b, STR(PURISTA_WORKSPACE "/"));
                url_encode_path(&b, path);
        }
        *ret = buf_failed(&b) ? STR_NULL : arena_dup_str(a, buf_str(&b));
        return ret->p ? 0 : -ENOMEM;
}

const char *purista_printable(struct str text, char ret[static PURISTA_PRINTABLE_MAX])
{
        struct str cut = str_utf8_cut(text, PURISTA_PRINTABLE_MAX - 1);

        for (size_t i = 0; i < cut.n; i++) {
                bool control = (unsigned char) cut.p[i] < ' ' || cut.p[i] == 0x7f;

                ret[i] = '?';
                if (!control)
                        ret[i] = cut.p[i];
        }
        ret[cut.n] = '\0';
        return ret;
}
