/* SPDX-License-Identifier: Apache-2.0 */
#include "model/text.h"

#include "base/base.h"
#include "model/limits.h"

static bool is_lower_or_digit(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_alnum(char c)
{
        return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z');
}

bool text_is_dns_label(struct str s)
{
        if (s.n == 0 || s.n > DNS_LABEL_MAX)
                return false;
        for (size_t i = 0; i < s.n; i++)
                if (!is_lower_or_digit(s.p[i]) && (s.p[i] != '-' || i == 0 || i == s.n - 1))
                        return false;
        return true;
}

bool text_is_dns_name(struct str s)
{
        struct str label;

        if (s.n == 0 || s.n > DNS_NAME_MAX)
                return false;
        while (str_split(&s, '.', &label))
                if (!text_is_dns_label(label))
                        return false;
        return true;
}

bool text_is_label(struct str s, size_t max)
{
        if (s.n == 0 || s.n > max || !is_alnum(s.p[0]) || !is_alnum(s.p[s.n - 1]))
                return false;
        for (size_t i = 0; i < s.n; i++)
                if (!is_alnum(s.p[i]) && s.p[i] != '-' && s.p[i] != '_' && s.p[i] != '.')
                        return false;
        return true;
}

bool text_is_clean(struct str s, size_t max)
{
        if (s.n == 0 || s.n > max)
                return false;
        while (s.n > 0) {
                uint32_t code_point;
                size_t n = str_utf8_char(s, &code_point);

                /* C0, DEL and C1 control terminals. */
                if (n == 0 || code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0))
                        return false;
                s = str_skip(s, n);
        }
        return true;
}

bool text_is_argument(struct str s, size_t max)
{
        return s.p && s.n <= max && str_is_utf8(s) && !memchr(s.p, '\0', s.n);
}

bool text_is_plain_path(struct str s)
{
        struct str rest = str_skip(s, 1), part;

        if (!text_is_clean(s, PATH_MAX_TEXT) || s.p[0] != '/')
                return false;
        if (s.n == 1)
                return true;
        while (str_split(&rest, '/', &part))
                if (part.n == 0 || str_eq(part, STR(".")) || str_eq(part, STR("..")))
                        return false;
        return true;
}

const char *text_quote(struct str s, char ret[static TEXT_QUOTE_MAX])
{
        struct buf b;

        buf_init_fixed(&b, ret, TEXT_QUOTE_MAX);
        (void) buf_add_quoted_cut(&b, s, TEXT_QUOTE_MAX - 1);
        return ret;
}
