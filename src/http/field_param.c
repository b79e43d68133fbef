/* SPDX-License-Identifier: Apache-2.0 */
#include "http/field_param.h"

#include "base/base.h"
#include "http/url.h"

void field_param_value(struct str *rest, struct str *ret)
{
        ssize_t end = str_find(*rest, ';');
        size_t n = end < 0 ? rest->n : (size_t) end;

        *ret = str_trim(str_of(rest->p, n));
        *rest = str_skip(*rest, n);
}

static struct str skip_blank(struct str s)
{
        size_t i = 0;

        while (i < s.n && (s.p[i] == ' ' || s.p[i] == '\t'))
                i++;
        return str_skip(s, i);
}

/* The length of what stands between quotes, s beginning behind the first; -EINVAL if unclosed. */
static ssize_t quoted_length(struct str s)
{
        for (size_t i = 0; i < s.n; i++) {
                if (s.p[i] == '"')
                        return (ssize_t) i;
                if (s.p[i] == '\\')
                        i++;
        }
        return -EINVAL;
}

static int take_value(struct str *rest, struct field_param *ret)
{
        ssize_t n;

        ret->quoted = rest->n > 0 && rest->p[0] == '"';
        if (ret->quoted) {
                *rest = str_skip(*rest, 1);
                n = quoted_length(*rest);
                if (n < 0)
                        return -EINVAL;
                ret->value = str_of(rest->p, (size_t) n);
                *rest = skip_blank(str_skip(*rest, (size_t) n + 1));
                return rest->n == 0 || rest->p[0] == ';' ? 0 : -EINVAL;
        }
        field_param_value(rest, &ret->value);
        return http_token_is_valid(ret->value) ? 0 : -EINVAL;
}

int field_param_next(struct str *rest, struct field_param *ret)
{
        ssize_t eq;
        int r;

        while (rest->n > 0 && (rest->p[0] == ';' || rest->p[0] == ' ' || rest->p[0] == '\t'))
                *rest = str_skip(*rest, 1);
        if (rest->n == 0)
                return 0;

        eq = str_find(*rest, '=');
        if (eq < 0)
                return -EINVAL;
        ret->name = str_of(rest->p, (size_t) eq);
        if (!http_token_is_valid(ret->name))
                return -EINVAL;
        *rest = str_skip(*rest, (size_t) eq + 1);
        r = take_value(rest, ret);
        return r < 0 ? r : 1;
}
