/* SPDX-License-Identifier: Apache-2.0 */
#include "http/headers.h"

#include "base/base.h"
#include "http/url.h"

int http_headers_add(struct http_headers *h, struct arena *a, struct str name, struct str value)
{
        if (h->n == h->cap) {
                size_t cap = h->cap ? 2 * h->cap : 16;
                struct http_header *v = arena_alloc_array(a, cap, sizeof(*v));

                if (!v)
                        return -ENOMEM;
                if (h->n)
                        memcpy(v, h->v, h->n * sizeof(*v));
                h->v = v;
                h->cap = cap;
        }
        h->v[h->n++] = (struct http_header){ name, value };
        return 0;
}

struct str http_headers_get(const struct http_headers *h, struct str name)
{
        for (size_t i = 0; i < h->n; i++)
                if (str_caseeq(h->v[i].name, name))
                        return h->v[i].value;
        return STR_NULL;
}

size_t http_headers_count(const struct http_headers *h, struct str name)
{
        size_t count = 0;

        for (size_t i = 0; i < h->n; i++)
                count += str_caseeq(h->v[i].name, name);
        return count;
}

bool http_headers_has_token(const struct http_headers *h, struct str name, struct str token)
{
        for (size_t i = 0; i < h->n; i++) {
                struct str list = h->v[i].value, item;

                if (!str_caseeq(h->v[i].name, name))
                        continue;
                while (str_split(&list, ',', &item))
                        if (str_caseeq(str_trim(item), token))
                                return true;
        }
        return false;
}

void http_header_write(struct buf *b, struct str name, struct str value)
{
        size_t n = name.n + value.n + 4;
        char *p = buf_reserve(b, n);

        if (!p)
                return;
        p = mempcpy(p, name.p, name.n);
        p = mempcpy(p, ": ", 2);
        p = mempcpy(p, value.p, value.n);
        memcpy(p, "\r\n", 2);
        buf_advance(b, n);
}

/* --- parameters of a field --- */

void field_param_value(struct str *field, struct str *ret)
{
        ssize_t end = str_find(*field, ';');
        size_t n = end < 0 ? field->n : (size_t) end;

        *ret = str_trim(str_of(field->p, n));
        *field = str_skip(*field, n);
}

int field_param_next(struct str *field, struct field_param *ret)
{
        struct str rest = *field;
        ssize_t eq;
        size_t n = 0;

        while (rest.n > 0 && (rest.p[0] == ';' || rest.p[0] == ' ' || rest.p[0] == '\t'))
                rest = str_skip(rest, 1);
        *field = rest;
        if (rest.n == 0)
                return 0;

        eq = str_find(rest, '=');
        if (eq < 0)
                return -EINVAL;
        ret->name = str_of(rest.p, (size_t) eq);
        if (!http_token_is_valid(ret->name))
                return -EINVAL;
        rest = str_skip(rest, (size_t) eq + 1);
        ret->quoted = rest.n > 0 && rest.p[0] == '"';
        if (!ret->quoted) {
                field_param_value(&rest, &ret->value);
                *field = rest;
                return http_token_is_valid(ret->value) ? 1 : -EINVAL;
        }
        rest = str_skip(rest, 1);
        while (n < rest.n && rest.p[n] != '"')
                n += rest.p[n] == '\\' ? 2 : 1;
        if (n >= rest.n)
                return -EINVAL; /* unclosed */
        ret->value = str_of(rest.p, n);
        *field = str_trim(str_skip(rest, n + 1));
        return field->n == 0 || field->p[0] == ';' ? 1 : -EINVAL;
}
