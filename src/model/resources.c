/* SPDX-License-Identifier: Apache-2.0 */
#include "model/resources.h"

#include <stdio.h>

#include "base/base.h"
#include "model/text.h"

/* --- quantities --- */

/* A quantity in parts: digits * 10^exponent * 2^shift. */
struct parts {
        uint64_t digits;
        int exponent;
        unsigned shift;
};

static const struct {
        struct str text;
        int exponent;
        unsigned shift;
} suffixes[] = {
        { STR(""), 0, 0 },    { STR("n"), -9, 0 },  { STR("u"), -6, 0 },  { STR("m"), -3, 0 },
        { STR("k"), 3, 0 },   { STR("M"), 6, 0 },   { STR("G"), 9, 0 },   { STR("T"), 12, 0 },
        { STR("P"), 15, 0 },  { STR("E"), 18, 0 },  { STR("Ki"), 0, 10 }, { STR("Mi"), 0, 20 },
        { STR("Gi"), 0, 30 }, { STR("Ti"), 0, 40 }, { STR("Pi"), 0, 50 }, { STR("Ei"), 0, 60 },
};

/* Takes the number off *s. */
static int take_number(struct str *s, struct parts *p)
{
        bool seen = false, fraction = false;
        size_t i = 0, significant = 0;

        for (; i < s->n; i++) {
                char c = s->p[i];

                if (c == '.' && !fraction) {
                        fraction = true;
                        continue;
                }
                if (c < '0' || c > '9')
                        break;
                seen = true;
                significant += significant > 0 || c != '0';
                if (significant > QUANTITY_DIGITS_MAX)
                        return -ERANGE;
                p->digits = p->digits * 10 + (unsigned) (c - '0');
                p->exponent -= fraction;
        }
        *s = str_skip(*s, i);
        return seen ? 0 : -EINVAL;
}

/* A suffix, or an exponent such as e3. */
static int take_suffix(struct str s, struct parts *p)
{
        bool minus;
        uint64_t v;

        for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
                if (!str_eq(s, suffixes[i].text))
                        continue;
                p->exponent += suffixes[i].exponent;
                p->shift = suffixes[i].shift;
                return 0;
        }
        if (s.p[0] != 'e' && s.p[0] != 'E')
                return -EINVAL;
        s = str_skip(s, 1);
        minus = str_starts_with(s, STR("-"));
        if (minus || str_starts_with(s, STR("+")))
                s = str_skip(s, 1);
        /* Three digits are far beyond any number that fits. */
        if (s.n > 3 || parse_u64(s, &v) < 0)
                return -EINVAL;
        p->exponent += minus ? -(int) v : (int) v;
        return 0;
}

int quantity_parse(struct str s, int scale, int64_t *ret)
{
        bool minus = str_starts_with(s, STR("-"));
        struct parts p = { .exponent = -scale };
        unsigned __int128 v;
        int r;

        if (s.n == 0 || s.n > QUANTITY_MAX)
                return -EINVAL;
        if (minus || str_starts_with(s, STR("+")))
                s = str_skip(s, 1);
        r = take_number(&s, &p);
        if (r == 0)
                r = take_suffix(s, &p);
        if (r < 0)
                return r;
        if (minus || p.digits == 0)
                return -EDOM;
        /* 18 digits and 60 bits of shift make less than 120 bits. Dividing by ten and rounding up again and again gives
         * what dividing once by the power would give. */
        v = (unsigned __int128) p.digits << p.shift;
        for (int i = p.exponent; i < 0 && v > 1; i++)
                v = (v + 9) / 10;
        for (int i = p.exponent; i > 0 && v <= INT64_MAX; i--)
                v *= 10;
        if (v > INT64_MAX)
                return -ERANGE;
        *ret = (int64_t) v;
        return 0;
}

/* --- canonical texts --- */

size_t cpu_to_text(int64_t milli, char ret[static RESOURCE_TEXT_MAX])
{
        bool integer = milli % 1000 == 0;

        return (size_t) snprintf(ret, RESOURCE_TEXT_MAX, "%lld%s",
                                 (long long) (integer ? milli / 1000 : milli), integer ? "" : "m");
}

size_t memory_to_text(int64_t bytes, char ret[static RESOURCE_TEXT_MAX])
{
        static const struct {
                const char *suffix;
                int64_t factor;
        } units[] = {
                { "", 1 },
                { "k", INT64_C(1000) },
                { "M", INT64_C(1000000) },
                { "G", INT64_C(1000000000) },
                { "T", INT64_C(1000000000000) },
                { "Ki", INT64_C(1) << 10 },
                { "Mi", INT64_C(1) << 20 },
                { "Gi", INT64_C(1) << 30 },
                { "Ti", INT64_C(1) << 40 },
        };
        size_t best = SIZE_MAX;

        for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
                char text[RESOURCE_TEXT_MAX];
                size_t n;

                if (bytes % units[i].factor != 0)
                        continue;
                n = (size_t) snprintf(text, sizeof(text), "%lld%s",
                                      (long long) (bytes / units[i].factor), units[i].suffix);
                if (n > best)
                        continue;
                memcpy(ret, text, n + 1);
                best = n;
        }
        return best;
}

static size_t pids_to_text(int64_t n, char ret[static RESOURCE_TEXT_MAX])
{
        return (size_t) snprintf(ret, RESOURCE_TEXT_MAX, "%lld", (long long) n);
}

static size_t gpu_to_text(int64_t gpus, char ret[static RESOURCE_TEXT_MAX])
{
        if (gpus == GPU_ALL)
                return (size_t) snprintf(ret, RESOURCE_TEXT_MAX, "all");
        return (size_t) snprintf(ret, RESOURCE_TEXT_MAX, "%lld", (long long) gpus);
}

/* --- kinds of resource --- */

#define POLICY(m) .has_policy = true, .policy = offsetof(struct resource_amounts, m)

static const struct kind {
        struct str key;
        size_t offset;
        int scale;
        int64_t min, max;
        size_t (*to_text)(int64_t v, char *ret);
        const char *bounds;
        bool devices; /* counted in integer ones, or "all" */
        bool as_given; /* the text is kept: records of earlier versions have others than the canonical one */
        bool has_policy;
        size_t policy; /* offset in struct resource_amounts */
} kinds[] = {
        { STR("cpu"), offsetof(struct resources, cpu_milli), -3, 1, CPU_MILLI_MAX, cpu_to_text,
          "at most 4096 cores", POLICY(cpu_milli) },
        { STR("memory"), offsetof(struct resources, memory_bytes), 0, MEMORY_MIN, MEMORY_MAX,
          memory_to_text, "from 1Mi to 1Pi (\"m\" means thousandths, use \"Mi\")",
          POLICY(memory_bytes) },
        { STR("pids"), offsetof(struct resources, pids), 0, 1, PIDS_MAX, pids_to_text,
          "at most 4194304", POLICY(pids), .as_given = true },
        { STR("gpu"), offsetof(struct resources, gpus), 0, 1, GPU_MAX, gpu_to_text,
          "at most 1024 devices", .devices = true },
};

static int fail(const struct json_pair *p, const char *what, struct err *e)
{
        return err_set(e, ERR_INVALID, "resource %s: %s %s", QUOTED(p->key), QUOTED(p->value),
                       what);
}

static int parse_value(const struct json_pair *p, const struct kind *k, int64_t *ret, struct err *e)
{
        int r;

        if (k && k->devices && str_eq(p->value, STR("all"))) {
                *ret = GPU_ALL;
                return 0;
        }
        /* A fraction of a device does not exist, and rounding up would grant more than requested. */
        if (k && k->devices && parse_u64(p->value, &(uint64_t){ 0 }) == -EINVAL)
                return fail(p, "is neither a whole number nor \"all\"", e);
        r = quantity_parse(p->value, k ? k->scale : -3, ret);
        if (r == -EDOM)
                return fail(p, "must be more than zero", e);
        if (r == -ERANGE)
                return fail(p, "is too large", e);
        if (r < 0)
                return fail(p, "is not a quantity such as \"500m\", \"2\" or \"256Mi\"", e);
        if (k && (*ret < k->min || *ret > k->max)) {
                char what[128];

                (void) snprintf(what, sizeof(what), "is out of range: must be %s", k->bounds);
                return fail(p, what, e);
        }
        return 0;
}

static bool is_key(struct str key)
{
        ssize_t slash = str_find(key, '/');

        if (slash < 0)
                return text_is_label(key, DNS_LABEL_MAX);
        return text_is_dns_name(str_of(key.p, (size_t) slash))
               && text_is_label(str_skip(key, (size_t) slash + 1), DNS_LABEL_MAX);
}

int resources_parse(const struct json_map *texts, struct arena *a, struct resources *ret,
                    struct err *e)
{
        struct resources out = { 0 };

        if (texts->n > RESOURCES_MAX)
                return err_set(e, ERR_INVALID, "more than %d kinds of resource", RESOURCES_MAX);
        out.texts.items = arena_alloc_array(a, texts->n, sizeof(*out.texts.items));
        if (!out.texts.items)
                return err_set(e, ERR_TOO_LARGE, "the record has no room for the resource limits");
        for (size_t i = 0; i < texts->n; i++) {
                const struct json_pair *from = &texts->items[i];
                struct json_pair *to = &out.texts.items[out.texts.n++];
                const struct kind *k = NULL;
                char text[RESOURCE_TEXT_MAX];
                int64_t v = 0;
                int r;

                for (size_t j = 0; !k && j < ARRAY_SIZE(kinds); j++)
                        if (str_eq(kinds[j].key, from->key))
                                k = &kinds[j];
                if (!is_key(from->key))
                        return err_set(e, ERR_INVALID,
                                       "resource %s: the key is not the name of a resource",
                                       QUOTED(from->key));
                r = parse_value(from, k, &v, e);
                if (r < 0)
                        return r;
                if (k)
                        *(int64_t *) (void *) ((char *) &out + k->offset) = v;
                to->key = arena_dup_str(a, from->key);
                to->value = arena_dup_str(a, k && !k->as_given ? str_of(text, k->to_text(v, text))
                                                               : from->value);
                if (!to->key.p || !to->value.p)
                        return err_set(e, ERR_TOO_LARGE,
                                       "the record has no room for the resource limits");
        }
        *ret = out;
        return 0;
}

/* --- what an installation sets --- */

#define PIDS_BY_MEMORY_MIN 128U
#define PIDS_BY_MEMORY_MAX 4096U
#define PIDS_SMALL_CPU     1024U
#define MEMORY_OF_A_PID    (512 * (uint64_t) KiB)

uint64_t resources_pids_by_memory(uint64_t memory_bytes, uint64_t cpu_milli)
{
        const uint64_t max = cpu_milli > 0 && cpu_milli < 1000 ? PIDS_SMALL_CPU
                                                               : PIDS_BY_MEMORY_MAX;

        return MIN_OF(MAX_OF(memory_bytes / MEMORY_OF_A_PID, (uint64_t) PIDS_BY_MEMORY_MIN), max);
}

static const uint64_t *amount_of(const struct resource_amounts *x, const struct kind *k)
{
        return (const uint64_t *) (const void *) ((const char *) x + k->policy);
}

/* Refuses an amount above the maximum. */
static int check_max(const struct json_pair *pair, const struct kind *k, int64_t amount,
                     uint64_t max, struct err *e)
{
        char text[RESOURCE_TEXT_MAX], what[192];

        if (max == 0 || (uint64_t) amount <= max)
                return 0;
        (void) k->to_text((int64_t) max, text);
        (void) snprintf(what, sizeof(what),
                        "is more than this server allows, which is %s: request less, or raise "
                        "resource_limits.max.%s in hutchd.yaml",
                        text, k->key.p);
        return fail(pair, what, e);
}

/* What is in force for one kind of resource: the text of the request, or else the default, which is added. */
static int apply_kind(const struct resource_policy *p, const struct kind *k, struct json_map *texts,
                      struct resource_amounts *in_force, struct arena *a, struct err *e)
{
        const uint64_t max = *amount_of(&p->max, k);
        uint64_t amount = *amount_of(&p->defaults, k);
        struct json_pair *pair = texts->items, *end = texts->items + texts->n;
        char text[RESOURCE_TEXT_MAX];
        int64_t given = 0;

        while (pair < end && !str_eq(pair->key, k->key))
                pair++;
        if (pair < end) {
                int r = parse_value(pair, k, &given, e);

                *(uint64_t *) (uintptr_t) amount_of(in_force, k) = (uint64_t) given;
                return r == 0 ? check_max(pair, k, given, max, e) : r;
        }
        if (amount == RESOURCE_PIDS_BY_MEMORY)
                amount = resources_pids_by_memory(in_force->memory_bytes, in_force->cpu_milli);
        if (amount == 0)
                return 0;
        if (max > 0)
                amount = MIN_OF(amount, max);
        *(uint64_t *) (uintptr_t) amount_of(in_force, k) = amount;
        pair->key = k->key;
        pair->value = arena_dup_str(a, str_of(text, k->to_text((int64_t) amount, text)));
        texts->n++;
        return pair->value.p ? 0
                             : err_set(e, ERR_TOO_LARGE, "the request does not fit into memory");
}

int resources_apply(const struct resource_policy *p, struct json_map *texts, struct arena *a,
                    struct err *e)
{
        struct resource_amounts in_force = { 0 };
        struct json_map out = {
                arena_alloc_array(a, texts->n + ARRAY_SIZE(kinds), sizeof(*out.items)), texts->n
        };
        int r = 0;

        if (!out.items)
                return err_set(e, ERR_TOO_LARGE, "the request does not fit into memory");
        if (texts->n > 0)
                memcpy(out.items, texts->items, texts->n * sizeof(*out.items));
        /* In the order of the table: the default of pids depends on the two before it. */
        for (size_t i = 0; i < ARRAY_SIZE(kinds) && r == 0; i++)
                if (kinds[i].has_policy)
                        r = apply_kind(p, &kinds[i], &out, &in_force, a, e);
        if (r == 0)
                *texts = out;
        return r;
}
