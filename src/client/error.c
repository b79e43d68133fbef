/* SPDX-License-Identifier: Apache-2.0 */
#include "client/error.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/json.h"

#include "base/banned.h"

static const char *const code_texts[] = {
        [-HUTCH_OK] = "success",
        [-HUTCH_INVALID] = "invalid argument",
        [-HUTCH_NO_MEMORY] = "out of memory",
        [-HUTCH_CONNECT] = "cannot connect",
        [-HUTCH_BROKEN] = "connection broken",
        [-HUTCH_PROTOCOL] = "malformed response",
        [-HUTCH_TOO_LARGE] = "response too large",
        [-HUTCH_TIMEOUT] = "timed out",
        [-HUTCH_CANCELED] = "canceled",
        [-HUTCH_LOCAL] = "local I/O failed",
        [-HUTCH_REFUSED] = "refused",
        [-HUTCH_UNAUTHORIZED] = "unauthorized",
        [-HUTCH_FORBIDDEN] = "forbidden",
        [-HUTCH_NOT_FOUND] = "not found",
        [-HUTCH_CONFLICT] = "conflict",
        [-HUTCH_BUSY] = "busy",
        [-HUTCH_UNSUPPORTED] = "not supported",
        [-HUTCH_SERVER] = "server failure",
        [-HUTCH_FAILED] = "sandbox failed",
        [-HUTCH_AGAIN] = "would block",
};

const char *hutch_code_text(int code)
{
        int64_t at = -(int64_t) code;

        return at >= 0 && at < (int64_t) ARRAY_SIZE(code_texts) ? code_texts[at] : "unknown";
}

/* --- text --- */

void error_copy_text(char *ret, size_t size, struct str text)
{
        size_t n = 0;

        while (text.n > 0) {
                uint32_t c = 0;
                size_t k = str_utf8_char(text, &c);
                bool bad = k == 0 || c < 0x20 || (c >= 0x7f && c < 0xa0);

                if (n + (bad ? 1 : k) >= size)
                        break;
                if (bad)
                        ret[n++] = '?';
                else
                        memcpy(ret + n, text.p, k);
                n += bad ? 0 : k;
                text = str_skip(text, k ? k : 1);
        }
        ret[n] = '\0';
}

int error_vset(struct hutch_error *e, int code, const char *fmt, va_list ap)
{
        char room[2 * sizeof(e->message)];

        /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): clang 14 loses sight of va_start */
        if (vsnprintf(room, sizeof(room), fmt, ap) < 0)
                room[0] = '\0';
        e->code = code;
        error_copy_text(e->message, sizeof(e->message), str_from(room));
        return code;
}

int error_set(struct hutch_error *e, int code, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        (void) error_vset(e, code, fmt, ap);
        va_end(ap);
        return code;
}

void error_prefix(struct hutch_error *e, const char *doing)
{
        char room[sizeof(e->message)];

        memcpy(room, e->message, sizeof(room));
        (void) error_set(e, e->code, "%s: %s", doing, room);
}

/* --- responses --- */

int error_code_of_status(int status)
{
        static const struct {
                int status, code;
        } table[] = {
                { 401, HUTCH_UNAUTHORIZED }, { 403, HUTCH_FORBIDDEN }, { 404, HUTCH_NOT_FOUND },
                { 405, HUTCH_UNSUPPORTED },  { 409, HUTCH_CONFLICT },  { 410, HUTCH_NOT_FOUND },
                { 426, HUTCH_UNSUPPORTED },  { 429, HUTCH_BUSY },      { 501, HUTCH_UNSUPPORTED },
                { 503, HUTCH_BUSY },
        };

        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (table[i].status == status)
                        return table[i].code;
        if (status >= 500 && status < 600)
                return HUTCH_SERVER;
        return status >= 400 && status < 500 ? HUTCH_REFUSED : HUTCH_PROTOCOL;
}

static struct str text_of(const json_t *v)
{
        return json_is_string(v) ? str_of(json_string_value(v), json_string_length(v)) : STR_NULL;
}

/* {"loc":["body","image","uri"],"msg":"field required"} as body.image.uri: field required */
static void add_detail(struct buf *b, const json_t *item)
{
        const json_t *loc = json_object_get(item, "loc");
        struct str msg = text_of(json_object_get(item, "msg"));

        if (b->n > 0)
                buf_add_str(b, STR("; "));
        for (size_t i = 0; i < json_array_size(loc); i++) {
                const json_t *part = json_array_get(loc, i);

                if (i > 0)
                        buf_add_char(b, '.');
                if (json_is_integer(part))
                        buf_addf(b, "%lld", (long long) json_integer_value(part));
                else
                        buf_add_str(b, text_of(part));
        }
        if (json_array_size(loc) > 0)
                buf_add_str(b, STR(": "));
        buf_add_str(b, msg.p ? msg : STR("not accepted"));
}

static void read_object(const json_t *doc, struct hutch_error *e, struct buf *b)
{
        static const char *const keys[] = { "message", "error", "detail" };
        const json_t *detail = json_object_get(doc, "detail");
        struct str code = text_of(json_object_get(doc, "code"));

        if (json_is_object(detail)) {
                read_object(detail, e, b);
                return;
        }
        if (code.p)
                error_copy_text(e->server_code, sizeof(e->server_code), code);
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                struct str text = text_of(json_object_get(doc, keys[i]));

                if (text.n > 0) {
                        buf_add_str(b, str_of(text.p, MIN_OF(text.n, buf_room(b))));
                        return;
                }
        }
        for (size_t i = 0; i < json_array_size(detail) && !buf_failed(b); i++)
                add_detail(b, json_array_get(detail, i));
}

void error_read_problem(struct str body, struct hutch_error *e, char *ret, size_t size)
{
        scoped(buf_done) struct buf b;
        struct json_error je;
        json_t *doc = NULL;

        buf_init(&b, 4 * KiB);
        ret[0] = '\0';
        if (json_parse(body, 0, &doc, &je) < 0) {
                error_copy_text(ret, size, str_trim(str_of(body.p, MIN_OF(body.n, size))));
                return;
        }
        if (json_is_object(doc))
                read_object(doc, e, &b);
        error_copy_text(ret, size, buf_str(&b));
        json_decref(doc);
}
