/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A line is built on the stack, field by field, in either format, and written at once. Room for the
 * fields that report omissions (TAIL) is reserved until the end.
 */

#include "base/log.h"

#include <stdio.h>
#include <unistd.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/log_file.h"

#include "base/banned.h"

#define MESSAGE_MAX (4 * KiB)
#define TAIL        (sizeof(",\"suppressed\":4294967295,\"cut\":true}\n"))

static const char *const log_level_names[] = {
        [LOG_DEBUG] = "debug",
        [LOG_INFO] = "info",
        [LOG_WARN] = "warn",
        [LOG_ERROR] = "error",
};
ENUM_TABLE(log_level, log_level_names, LOG_LEVEL_MAX_);

static const char *const log_format_names[] = {
        [LOG_LOGFMT] = "logfmt",
        [LOG_JSON] = "json",
};
ENUM_TABLE(log_format, log_format_names, LOG_FORMAT_MAX_);

/* --- contexts --- */

void log_ctx_init_root(struct log_ctx *c, const struct log_sink *sink)
{
        *c = (struct log_ctx){ .sink = sink };
}

void log_ctx_init(struct log_ctx *c, const struct log_ctx *parent)
{
        *c = (struct log_ctx){ .parent = parent, .sink = parent->sink };
}

void log_ctx_add_str(struct log_ctx *c, const char *key, struct str value)
{
        ASSERT(c->n_fields < LOG_CTX_FIELDS);
        c->fields[c->n_fields++] = LOG_F_STR(key, value);
}

/* --- fields --- */

struct line {
        struct buf b;
        bool json;
        bool cut;
        size_t reserved;
};

static size_t room(const struct line *l)
{
        size_t left = buf_room(&l->b);

        return left > l->reserved ? left - l->reserved : 0;
}

/* Writes separator and key if a value of `need` bytes fits after them. */
static bool begin_field(struct line *l, const char *key, size_t need)
{
        if (room(l) < strlen(key) + sizeof(",\"\":") + need) {
                l->cut = true;
                return false;
        }
        if (l->json) {
                buf_add_str(&l->b, l->b.n ? STR(",\"") : STR("{\""));
                buf_add_str(&l->b, str_from(key));
                buf_add_str(&l->b, STR("\":"));
                return true;
        }
        if (l->b.n)
                buf_add_char(&l->b, ' ');
        buf_add_str(&l->b, str_from(key));
        buf_add_char(&l->b, '=');
        return true;
}

/* Whether logfmt needs no quotes for the text. */
static bool is_bare(struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                char c = s.p[i];
                bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z')
                             || (c >= 'a' && c <= 'z');

                if (!alnum && (c == '\0' || !strchr("-_./:@+,%~", c)))
                        return false;
        }
        return s.n > 0;
}

static void put_str(struct line *l, const char *key, struct str s)
{
        if (!s.p || !begin_field(l, key, BUF_QUOTED_MIN))
                return;
        if (!l->json && s.n <= room(l) && is_bare(s))
                buf_add_str(&l->b, s);
        else if (buf_add_quoted_cut(&l->b, s, room(l)))
                l->cut = true;
}

static void put_u64(struct line *l, const char *key, uint64_t v)
{
        if (begin_field(l, key, 20))
                buf_add_u64(&l->b, v);
}

static void put_fields(struct line *l, const struct log_field *f, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                int64_t v = f[i].type == LOG_FIELD_I64 ? f[i].i : 0;

                switch (f[i].type) {
                case LOG_FIELD_STR:
                        put_str(l, f[i].key, f[i].s);
                        break;
                case LOG_FIELD_I64:
                        if (!begin_field(l, f[i].key, 20))
                                break;
                        if (v < 0)
                                buf_add_char(&l->b, '-');
                        buf_add_u64(&l->b, v < 0 ? -(uint64_t) v : (uint64_t) v);
                        break;
                case LOG_FIELD_U64:
                        put_u64(l, f[i].key, f[i].u);
                        break;
                default:
                        ASSERT(false);
                }
        }
}

static void put_ctx(struct line *l, const struct log_ctx *c)
{
        if (c->parent)
                put_ctx(l, c->parent);
        put_fields(l, c->fields, c->n_fields);
}

/* --- lines --- */

static void put_message(struct line *l, const char *fmt, va_list ap) printf_like(2, 0);

static void put_message(struct line *l, const char *fmt, va_list ap)
{
        char text[MESSAGE_MAX];
        int n = vsnprintf(text, sizeof(text), fmt, ap);
        struct str s = str_of(text, n < 0 ? 0 : (size_t) n);

        if (s.n >= sizeof(text)) {
                s = str_utf8_cut(str_of(text, sizeof(text) - 1), sizeof(text) - 2);
                l->cut = true;
        }
        put_str(l, "msg", s);
}

/* A line that cannot be written to fd is lost and counted: there is no other place to report it. */
static void put_line(const struct log_sink *sink, struct str line)
{
        ssize_t n;

        if (sink->file) {
                log_file_write(sink->file, line);
                return;
        }
        do
                n = write(sink->fd, line.p, line.n);
        while (n < 0 && errno == EINTR);
        if (n != (ssize_t) line.n && sink->lost)
                (*sink->lost)++;
}

static bool admit(struct log_site *site, const struct clock *clock, unsigned *ret_suppressed)
{
        usec_t now;

        *ret_suppressed = 0;
        if (!site)
                return true;
        now = clock_mono(clock);
        if (site->count == 0 || now - site->window >= LOG_INTERVAL_USEC) {
                site->window = now;
                site->count = 0;
        }
        if (site->count >= LOG_BURST) {
                site->suppressed++;
                return false;
        }
        site->count++;
        *ret_suppressed = site->suppressed;
        site->suppressed = 0;
        return true;
}

int log_write(const struct log_ctx *c, const struct log_line *line, const char *fmt, ...)
{
        char storage[BUF_MAX_LOG_LINE + 1], ts[TIME_RFC3339_MAX];
        struct line l = { .reserved = TAIL };
        int saved_errno = errno;
        unsigned suppressed;
        va_list ap;
        bool cut;

        if (!log_enabled(c, line->level) || !admit(line->site, c->sink->clock, &suppressed))
                return line->error;

        buf_init_fixed(&l.b, storage, sizeof(storage));
        l.json = c->sink->format == LOG_JSON;
        put_str(&l, "ts", str_of(ts, time_to_rfc3339(clock_wall(c->sink->clock), ts)));
        put_str(&l, "level", str_from(log_level_to_string((int) line->level)));
        va_start(ap, fmt);
        put_message(&l, fmt, ap);
        va_end(ap);
        if (line->error)
                put_str(&l, "error", str_from(err_text(line->error)));
        put_ctx(&l, c);
        put_fields(&l, line->fields, line->n_fields);
        cut = l.cut;
        l.reserved = 0;
        if (suppressed)
                put_u64(&l, "suppressed", suppressed);
        if (cut && begin_field(&l, "cut", 4))
                buf_add_str(&l.b, STR("true"));
        buf_add_str(&l.b, l.json ? STR("}\n") : STR("\n"));
        put_line(c->sink, buf_str(&l.b));
        errno = saved_errno;
        return line->error;
}
