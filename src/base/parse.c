/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include "base/banned.h"

static size_t count_digits(struct str s)
{
        size_t n = 0;

        while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
                n++;
        return n;
}

int parse_u64(struct str s, uint64_t *ret)
{
        uint64_t v = 0;

        if (s.n == 0 || count_digits(s) != s.n)
                return -EINVAL;
        for (size_t i = 0; i < s.n; i++)
                if (__builtin_mul_overflow(v, 10u, &v)
                    || __builtin_add_overflow(v, (unsigned) (s.p[i] - '0'), &v))
                        return -ERANGE;
        *ret = v;
        return 0;
}

int parse_i64(struct str s, int64_t *ret)
{
        bool negative = str_starts_with(s, STR("-"));
        uint64_t v;
        int r;

        r = parse_u64(negative ? str_skip(s, 1) : s, &v);
        if (r < 0)
                return r;
        if (v > (uint64_t) INT64_MAX + negative)
                return -ERANGE;
        /* -INT64_MIN does not exist, so the sign is set before the value leaves unsigned. */
        *ret = (int64_t) (negative ? -v : v);
        return 0;
}

int parse_u64_max(struct str s, uint64_t max, uint64_t *ret)
{
        uint64_t v;
        int r;

        r = parse_u64(s, &v);
        if (r < 0)
                return r;
        if (v > max)
                return -ERANGE;
        *ret = v;
        return 0;
}

int parse_port(struct str s, uint16_t *ret)
{
        uint64_t v;
        int r;

        r = parse_u64_max(s, UINT16_MAX, &v);
        if (r < 0)
                return r;
        if (v == 0)
                return -ERANGE;
        *ret = (uint16_t) v;
        return 0;
}

/* --- numbers with a unit --- */

struct unit {
        struct str suffix;
        uint64_t factor;
};

static int parse_with_unit(struct str s, const struct unit *units, size_t n_units, uint64_t *ret)
{
        size_t digits = count_digits(s);
        struct str suffix = str_skip(s, digits);
        uint64_t v;
        int r;

        for (size_t i = 0; i < n_units; i++) {
                if (!str_eq(suffix, units[i].suffix))
                        continue;
                r = parse_u64(str_of(s.p, digits), &v);
                if (r < 0)
                        return r;
                if (__builtin_mul_overflow(v, units[i].factor, &v))
                        return -ERANGE;
                *ret = v;
                return 0;
        }
        return -EINVAL;
}

int parse_duration(struct str s, usec_t *ret)
{
        static const struct unit units[] = {
                { STR("ms"), USEC_PER_MSEC },
                { STR("s"), USEC_PER_SEC },
                { STR("m"), 60 * USEC_PER_SEC },
                { STR("h"), 3600 * USEC_PER_SEC },
        };

        return parse_with_unit(s, units, ARRAY_SIZE(units), ret);
}

int parse_bytes(struct str s, uint64_t *ret)
{
        static const struct unit units[] = {
                { STR(""), 1 },
                { STR("k"), 1000 },
                { STR("M"), 1000 * 1000 },
                { STR("G"), 1000 * 1000 * 1000 },
                { STR("T"), UINT64_C(1000) * 1000 * 1000 * 1000 },
                { STR("Ki"), KiB },
                { STR("Mi"), MiB },
                { STR("Gi"), GiB },
                { STR("Ti"), 1024 * (uint64_t) GiB },
        };

        return parse_with_unit(s, units, ARRAY_SIZE(units), ret);
}
