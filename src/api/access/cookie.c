/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/cookie.h"

#include "base/base.h"

bool cookie_next(struct cookie_iter *it, struct cookie *ret)
{
        struct str text;
        ssize_t eq;

        do {
                while (!str_split(&it->_rest, ';', &text)) {
                        if (it->_line == it->headers->n)
                                return false;
                        if (str_caseeq(it->headers->v[it->_line].name, STR("Cookie")))
                                it->_rest = it->headers->v[it->_line].value;
                        it->_line++;
                }
                text = str_trim(text);
        } while (text.n == 0);
        eq = str_find(text, '=');
        *ret = (struct cookie){
                .name = eq < 0 ? STR("") : str_trim(str_of(text.p, (size_t) eq)),
                .value = eq < 0 ? text : str_trim(str_skip(text, (size_t) eq + 1)),
                .text = text,
        };
        return true;
}

/* Appends a part, after "; " unless it is the first. */
static int append(struct arena *a, struct str *s, struct str part)
{
        char *p = (char *) s->p;

        if (p) {
                p = arena_append(a, p, s->n, STR("; "));
                s->n += 2;
        }
        if (!p && s->p)
                return -ENOMEM;
        p = arena_append(a, p, s->n, part);
        if (!p)
                return -ENOMEM;
        *s = str_of(p, s->n + part.n);
        return 0;
}

int cookie_without(const struct http_headers *h, struct str name, struct arena *a, struct str *ret)
{
        struct cookie_iter it = { .headers = h };
        struct str all = STR_NULL;
        struct cookie c;
        int r = 0;

        while (r == 0 && cookie_next(&it, &c))
                if (!str_eq(c.name, name))
                        r = append(a, &all, c.text);
        if (r == 0)
                *ret = all;
        return r;
}

int cookie_host_only(struct str set_cookie, struct arena *a, struct str *ret)
{
        struct str rest = set_cookie, part, all = STR_NULL;
        bool first = true;
        int r = 0;

        while (r == 0 && str_split(&rest, ';', &part)) {
                struct str attribute = part, name;

                (void) str_split(&attribute, '=', &name);
                if (first || !str_caseeq(str_trim(name), STR("Domain")))
                        r = append(a, &all, str_trim(part));
                first = false;
        }
        if (r == 0)
                *ret = all;
        return r;
}
