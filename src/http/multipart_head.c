/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "http/headers.h"
#include "http/multipart_impl.h"
#include "http/url.h"

/* --- one line --- */

const char *multipart__check_line(struct str line)
{
        ssize_t colon = str_find(line, ':');

        for (size_t i = 0; i < line.n; i++)
                if (((unsigned char) line.p[i] < 0x20 && line.p[i] != '\t') || line.p[i] == 0x7f)
                        return "control character in a header";
        if (line.p[0] == ' ' || line.p[0] == '\t')
                return "folded header line";
        if (colon < 0 || !http_token_is_valid(str_of(line.p, (size_t) colon)))
                return "malformed header";
        return NULL;
}

/* --- values of parameters, decoded in place --- */

/* The header is in memory of the parser, which may be modified. */
static char *writable(struct str s)
{
        return (char *) s.p;
}

/* The character that a browser has encoded inside quotes, or -1. */
static int browser_escape(struct str s)
{
        if (s.n < 3 || s.p[0] != '%')
                return -1;
        if (s.p[1] == '2' && s.p[2] == '2')
                return '"';
        if (s.p[1] != '0')
                return -1;
        if (s.p[2] == 'D' || s.p[2] == 'd')
                return '\r';
        return s.p[2] == 'A' || s.p[2] == 'a' ? '\n' : -1;
}

static struct str unquote(struct str s)
{
        char *to = writable(s);
        size_t n = 0;

        for (size_t i = 0; i < s.n;) {
                int c = browser_escape(str_skip(s, i));

                if (c >= 0) {
                        to[n++] = (char) c;
                        i += 3;
                        continue;
                }
                if (s.p[i] == '\\' && i + 1 < s.n && (s.p[i + 1] == '"' || s.p[i + 1] == '\\'))
                        i++;
                to[n++] = s.p[i++];
        }
        return str_of(to, n);
}

/* --- fields --- */

struct names {
        struct str plain;
        struct str extended; /* from "name*" */
};

struct head {
        struct names name;
        struct names filename;
        struct str content_type;
        bool has_disposition;
};

static const char *take_param(struct field_param *param, struct names *names)
{
        bool extended = param->name.p[param->name.n - 1] == '*';
        struct str *to = extended ? &names->extended : &names->plain;
        struct str text = param->value, charset, language;
        size_t n;

        if (to->p)
                return "parameter given twice";
        if (!extended) {
                *to = param->quoted ? unquote(text) : text;
                return NULL;
        }
        /* UTF-8'language'text (RFC 8187). Other character sets leave *to unchanged: there may be a
         * plain parameter, too. */
        if (!str_split(&text, '\'', &charset) || !str_split(&text, '\'', &language) || !text.p)
                return "malformed encoded parameter";
        if (!str_caseeq(charset, STR("UTF-8")))
                return NULL;
        if (url_decode_in_place(writable(text), text.n, 0, &n) < 0
            || !str_is_utf8(str_of(text.p, n)))
                return "malformed encoded parameter";
        *to = str_of(text.p, n);
        return NULL;
}

static const char *disposition(struct head *h, struct str value)
{
        struct field_param param;
        struct str type;
        int r;

        if (h->has_disposition)
                return "two Content-Disposition headers";
        h->has_disposition = true;
        field_param_value(&value, &type);
        if (!str_caseeq(type, STR("form-data")))
                return "Content-Disposition is not form-data";

        while ((r = field_param_next(&value, &param)) > 0) {
                struct str name = param.name;
                const char *wrong = NULL;

                if (name.p[name.n - 1] == '*')
                        name.n--;
                if (str_caseeq(name, STR("name")))
                        wrong = take_param(&param, &h->name);
                else if (str_caseeq(name, STR("filename")))
                        wrong = take_param(&param, &h->filename);
                if (wrong)
                        return wrong;
        }
        return r < 0 ? "malformed Content-Disposition" : NULL;
}

static const char *parse_line(struct head *h, struct str line)
{
        struct str name, value;

        (void) str_split(&line, ':', &name);
        value = str_trim(line);
        if (str_caseeq(name, STR("content-disposition")))
                return disposition(h, value);
        if (str_caseeq(name, STR("content-type"))) {
                if (h->content_type.p)
                        return "two Content-Type headers";
                h->content_type = value;
        }
        /* Deprecated by RFC 7578, but clients still send the harmless ones. Storing base64 as if it
         * were the content would be worse than rejecting it. */
        if (str_caseeq(name, STR("content-transfer-encoding")) && !str_caseeq(value, STR("binary"))
            && !str_caseeq(value, STR("8bit")) && !str_caseeq(value, STR("7bit")))
                return "transfer encoding not supported";
        return NULL;
}

const char *multipart__parse_head(char *p, size_t n, struct multipart_part *ret)
{
        struct head h = { 0 };
        struct str rest = str_of(p, n), line;

        while (rest.n > 0) {
                const char *wrong;

                (void) str_split(&rest, '\n', &line);
                wrong = parse_line(&h, str_of(line.p, line.n - 1));
                if (wrong)
                        return wrong;
        }
        ret->name = h.name.extended.p ? h.name.extended : h.name.plain;
        ret->filename = h.filename.extended.p ? h.filename.extended : h.filename.plain;
        ret->content_type = h.content_type;
        if (!h.has_disposition)
                return "no Content-Disposition";
        return ret->name.p ? NULL : "no name";
}
