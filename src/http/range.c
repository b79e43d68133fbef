/* SPDX-License-Identifier: Apache-2.0 */
#include "http/range.h"

#include "base/base.h"

/* --- ranges --- */

struct spec {
        bool has_first;
        bool has_last;
        uint64_t first;
        uint64_t last; /* or the length of a suffix */
};

/* Removes the digits from the start of *s; false if there are none. Saturates at 2^63-1. */
static bool take_number(struct str *s, uint64_t *ret)
{
        uint64_t v = 0;
        size_t i = 0;

        for (; i < s->n && s->p[i] >= '0' && s->p[i] <= '9'; i++) {
                uint64_t digit = (uint64_t) (s->p[i] - '0');

                v = v > (INT64_MAX - digit) / 10 ? INT64_MAX : v * 10 + digit;
        }
        *ret = v;
        *s = str_skip(*s, i);
        return i > 0;
}

static bool parse_spec(struct str s, struct spec *ret)
{
        ret->has_first = take_number(&s, &ret->first);
        if (s.n == 0 || s.p[0] != '-')
                return false;
        s = str_skip(s, 1);
        ret->has_last = take_number(&s, &ret->last);
        if (s.n > 0)
                return false;
        if (ret->has_first && ret->has_last)
                return ret->first <= ret->last;
        return ret->has_first || ret->has_last;
}

/* Whether the range can be satisfied, and its bytes. size > 0. */
static bool resolve(const struct spec *spec, uint64_t size, struct range *ret)
{
        if (!spec->has_first) {
                if (spec->last == 0)
                        return false;
                ret->start = size - MIN_OF(spec->last, size);
                ret->end = size - 1;
                return true;
        }
        if (spec->first >= size)
                return false;
        ret->start = spec->first;
        ret->end = spec->has_last ? MIN_OF(spec->last, size - 1) : size - 1;
        return true;
}

enum range_result range_parse(struct str field, uint64_t size, struct range *ret)
{
        enum range_result result = RANGE_UNSATISFIABLE;
        struct str rest = str_trim(field);
        struct str item;
        size_t n_items = 0, n_specs = 0;

        if (rest.n < 6 || !str_caseeq(str_of(rest.p, 6), STR("bytes=")))
                return RANGE_FULL;
        rest = str_skip(rest, 6);

        while (str_split(&rest, ',', &item)) {
                struct spec spec;

                if (++n_items > RANGE_SPECS_MAX)
                        return RANGE_FULL;
                item = str_trim(item);
                if (item.n == 0)
                        continue; /* empty list elements are legal (RFC 9110, 5.6.1) */
                if (!parse_spec(item, &spec))
                        return RANGE_FULL;
                n_specs++;
                if (size == 0 && !spec.has_first && spec.last > 0)
                        return RANGE_FULL;
                if (result == RANGE_UNSATISFIABLE && size > 0 && resolve(&spec, size, ret))
                        result = RANGE_PARTIAL;
        }
        return n_specs == 0 ? RANGE_FULL : result;
}

/* --- conditions --- */

static bool is_weak(struct str tag)
{
        return tag.n >= 2 && tag.p[0] == 'W' && tag.p[1] == '/';
}

bool range_if_range(struct str if_range, const struct validators *v)
{
        usec_t when;

        if (!if_range.p)
                return true;
        if_range = str_trim(if_range);
        if (if_range.n > 0 && (if_range.p[0] == '"' || is_weak(if_range)))
                return v->etag.p && !is_weak(if_range) && str_eq(if_range, v->etag);
        if (v->modified == USEC_INFINITY || time_from_http(if_range, &when) < 0)
                return false;
        return when / USEC_PER_SEC == v->modified / USEC_PER_SEC;
}

static bool none_match_hits(struct str list, struct str etag)
{
        list = str_trim(list);
        if (str_eq(list, STR("*")))
                return true;
        if (!etag.p)
                return false;
        if (is_weak(etag))
                etag = str_skip(etag, 2);
        /* A tag may contain commas, so the list cannot be split at them. */
        while (list.n > 0) {
                size_t quote = is_weak(list) ? 2 : 0;
                ssize_t len;

                if (list.p[0] == ',' || list.p[0] == ' ' || list.p[0] == '\t') {
                        list = str_skip(list, 1);
                        continue;
                }
                if (list.n <= quote || list.p[quote] != '"')
                        return false;
                len = str_find(str_skip(list, quote + 1), '"');
                if (len < 0)
                        return false;
                if (str_eq(str_of(list.p + quote, (size_t) len + 2), etag))
                        return true;
                list = str_skip(list, quote + (size_t) len + 2);
        }
        return false;
}

bool http_not_modified(struct str if_none_match, struct str if_modified_since,
                       const struct validators *v)
{
        usec_t since;

        if (if_none_match.p)
                return none_match_hits(if_none_match, v->etag);
        if (!if_modified_since.p || v->modified == USEC_INFINITY)
                return false;
        if (time_from_http(str_trim(if_modified_since), &since) < 0)
                return false;
        return v->modified / USEC_PER_SEC <= since / USEC_PER_SEC;
}
