/* SPDX-License-Identifier: Apache-2.0 */
#include "config/table.h"

#include "base/base.h"
#include "config/table_impl.h"
#include "model/resources.h"
#include "model/text.h"

#define DAY (24 * 3600 * USEC_PER_SEC)

/* --- what is allowed --- */

/* The largest unit that divides it. */
static void add_time(struct buf *b, usec_t t)
{
        static const struct {
                usec_t unit;
                const char *name;
        } units[] = {
                { 3600 * USEC_PER_SEC, "h" },
                { 60 * USEC_PER_SEC, "m" },
                { USEC_PER_SEC, "s" },
                { USEC_PER_MSEC, "ms" },
        };
        size_t i = 0;

        while (i + 1 < ARRAY_SIZE(units) && (t < units[i].unit || t % units[i].unit))
                i++;
        buf_addf(b, "%llu%s", (unsigned long long) (t / units[i].unit), units[i].name);
}

static void add_size(struct buf *b, uint64_t n)
{
        static const char *const units[] = { "", "Ki", "Mi", "Gi", "Ti" };
        size_t i = 0;

        while (i + 1 < ARRAY_SIZE(units) && n >= KiB && n % KiB == 0) {
                n /= KiB;
                i++;
        }
        buf_addf(b, "%llu%s", (unsigned long long) n, units[i]);
}

static void add_number(struct buf *b, uint64_t n)
{
        buf_add_u64(b, n);
}

/* "a time from 100ms to 24h, such as 10s". A bound beyond what people write is not mentioned. */
static void add_range(struct buf *b, const struct config_key *k, const char *what,
                      void (*add)(struct buf *b, uint64_t n), uint64_t unbounded)
{
        buf_add_str(b, str_from(what));
        if ((k->min > 0 || add == add_number) && !(k->min == 0 && k->zero) && k->max < unbounded) {
                buf_add_str(b, STR(" from "));
                add(b, k->min);
                buf_add_str(b, STR(" to "));
                add(b, k->max);
        } else if (k->min > 0 || k->max < unbounded) {
                buf_add_str(b, k->min > 0 ? STR(" of at least ") : STR(" up to "));
                add(b, k->min > 0 ? k->min : k->max);
        }
}

static void add_allowed(struct buf *b, const struct config_key *k)
{
        if (k->expected) {
                buf_add_str(b, str_from(k->expected));
                return;
        }
        switch ((int) k->type) {
        case CONFIG_T_PATH:
                buf_add_str(b, STR("an absolute path without . and .."));
                break;
        case CONFIG_T_BOOL:
                buf_add_str(b, STR("true or false"));
                break;
        case CONFIG_T_UINT:
        case CONFIG_T_U64:
                add_range(b, k, "a number", add_number, INT32_MAX);
                break;
        case CONFIG_T_TIME:
                add_range(b, k, "a time", add_time, 365 * DAY);
                if (k->value || k->min == 0)
                        buf_addf(b, ", such as %s", k->value ? k->value : "500ms, 30s or 5m");
                break;
        case CONFIG_T_CPU:
                buf_add_str(b, STR("a number of processors, such as 4 or 500m"));
                break;
        case CONFIG_T_BYTES:
                add_range(b, k, "a size", add_size, 1024 * GiB);
                if (k->max >= 1024 * GiB)
                        buf_add_str(b, STR(", such as 512Mi or 8Gi"));
                break;
        case CONFIG_T_ENUM:
                for (int i = 0; i < k->names->n; i++) {
                        if (i > 0)
                                buf_add_str(b, i + 1 == k->names->n ? STR(" or ") : STR(", "));
                        buf_add_str(b, str_from(enum_to_string(k->names, i)));
                }
                break;
        default:
                buf_add_str(b, STR("a text"));
        }
        if (k->zero)
                buf_addf(b, "; 0%s means %s", k->type == CONFIG_T_TIME ? "s" : "", k->zero);
}

/* --- values --- */

static bool number_from(const struct config_key *k, struct str v, uint64_t *ret)
{
        int64_t amount = 0;
        int r;

        switch ((int) k->type) {
        case CONFIG_T_TIME:
                r = parse_duration(v, ret);
                break;
        case CONFIG_T_CPU:
        case CONFIG_T_BYTES:
                r = quantity_parse(v, k->type == CONFIG_T_CPU ? -3 : 0, &amount);
                if (r == -EDOM && k->zero && str_eq(v, STR("0")))
                        r = 0; /* no amount of a resource is 0, but this key says what it means */
                *ret = (uint64_t) amount;
                break;
        default:
                r = parse_u64(v, ret);
        }
        return r == 0 && *ret <= k->max && (*ret >= k->min || (*ret == 0 && k->zero));
}

void *config__grow(struct arena *memory, void *items, size_t *n, size_t size)
{
        void **array = items;
        char *element;

        if ((*n & (*n - 1)) == 0) {
                void *larger = arena_alloc_array(memory, *n > 0 ? 2 * *n : 1, size);

                if (!larger)
                        return NULL;
                if (*n > 0)
                        memcpy(larger, *array, *n * size);
                *array = larger;
        }
        element = (char *) *array + (*n)++ * size;
        return memset(element, 0, size);
}

/* Returns NULL, "" if the value is not one that is allowed, or CONFIG_NO_ROOM. */
static const char *store(struct config_read *r, void *field, struct str v)
{
        const struct config_key *k = r->key;
        static const char *const words[] = { "false", "true", "no", "yes", "off", "on" };
        static const struct enum_table bools = { words, ARRAY_SIZE(words) };
        struct json_strs *list = field;
        uint64_t number = 0;
        struct str text;
        int name;

        switch ((int) k->type) {
        case CONFIG_T_BOOL:
                name = enum_from_string(&bools, v);
                if (name >= 0)
                        *(bool *) field = name % 2;
                return name < 0 ? "" : NULL;
        case CONFIG_T_ENUM:
                name = enum_from_string(k->names, v);
                if (name >= 0)
                        memcpy(field, &name, sizeof(name));
                return name < 0 ? "" : NULL;
        case CONFIG_T_UINT:
        case CONFIG_T_U64:
        case CONFIG_T_TIME:
        case CONFIG_T_CPU:
        case CONFIG_T_BYTES:
                if (!number_from(k, v, &number))
                        return "";
                if (k->type == CONFIG_T_UINT)
                        *(unsigned *) field = (unsigned) number;
                else
                        *(uint64_t *) field = number;
                return NULL;
        default:
                break;
        }
        if (v.n == 0 || (k->check && !k->check(v))
            || (k->type == CONFIG_T_PATH && !text_is_plain_path(v)))
                return "";
        text = arena_dup_str(r->memory, v);
        if (k->type == CONFIG_T_STRS)
                field = config__grow(r->memory, &list->items, &list->n, sizeof(text));
        if (!text.p || !field)
                return CONFIG_NO_ROOM;
        if (k->type == CONFIG_T_STR || k->type == CONFIG_T_STRS)
                *(struct str *) field = text;
        else
                *(const char **) field = text.p;
        return NULL;
}

const char *config__set(struct config_read *r, const struct config_key *k, void *base, struct str v,
                        char expected[static CONFIG_EXPECTED_MAX])
{
        void *field = (char *) base + k->offset;
        const char *wrong;
        struct buf b;

        r->key = k;
        wrong = k->type == CONFIG_T_CUSTOM ? k->set(r, field, v) : store(r, field, v);
        if (!wrong)
                return NULL;
        buf_init_fixed(&b, expected, CONFIG_EXPECTED_MAX);
        if (*wrong) {
                buf_add_str(&b, str_from(wrong));
        } else {
                buf_add_str(&b, STR("expected "));
                add_allowed(&b, k);
        }
        return expected;
}

bool config__set_defaults(struct config_read *r, struct str prefix, void *base)
{
        char expected[CONFIG_EXPECTED_MAX];

        for (size_t i = 0; i < r->table->n; i++) {
                const struct config_key *k = &r->table->keys[i];
                struct str path = str_from(k->path);

                if (k->value && str_starts_with(path, prefix) && !strstr(k->path + prefix.n, "[]")
                    && config__set(r, k, base, str_from(k->value), expected))
                        return false;
        }
        return true;
}

void config_table_defaults(const struct config_table *t, void *target, struct arena *memory)
{
        struct config_read r = { .table = t, .target = target, .memory = memory };

        ASSERT(config__set_defaults(&r, STR(""), target));
}

const char *config_table_set(const struct config_table *t, const char *path, struct str value,
                             void *target, struct arena *memory)
{
        static char expected[CONFIG_EXPECTED_MAX];
        struct config_read r = { .table = t, .target = target, .memory = memory };
        size_t i = 0;

        while (i < t->n && strcmp(path, t->keys[i].path) != 0)
                i++;
        ASSERT(i < t->n);
        return config__set(&r, &t->keys[i], target, value, expected);
}

/* --- the manual --- */

/* A dot or an apostrophe at the beginning of a line is a request, a hyphen is a minus to be copied. */
static void add_sentence(struct buf *b, const char *begin, const char *text, const char *end)
{
        buf_add_str(b, str_from(begin));
        if (*text == '.' || *text == '\'')
                buf_add_str(b, STR("\\&"));
        for (; *text; text++) {
                if (*text == '\\')
                        buf_add_str(b, STR("\\e"));
                else if (*text == '-')
                        buf_add_str(b, STR("\\-"));
                else
                        buf_add_char(b, *text);
        }
        buf_add_str(b, str_from(end));
}

static void print_key(struct buf *b, const struct config_key *k)
{
        struct str path = str_from(k->path);
        char allowed[CONFIG_EXPECTED_MAX];
        struct buf a;

        if (str_ends_with(path, STR("[]")))
                path.n -= 2;
        buf_addf(b, ".TP\n.B %.*s\n", STR_ARG(path));
        add_sentence(b, "", k->doc, "\n");
        if (k->type < CONFIG_T_CUSTOM && (k->expected || k->type > CONFIG_T_STR)) {
                buf_init_fixed(&a, allowed, sizeof(allowed));
                add_allowed(&a, k);
                add_sentence(b, "Allowed: ", allowed,
                             str_ends_with(buf_str(&a), STR(".")) ? "\n" : ".\n");
        }
        if (k->value || k->otherwise)
                add_sentence(b, "Default: ", k->value ? k->value : k->otherwise, ".\n");
}

void config_table_print_reference(const struct config_table *t, struct buf *b)
{
        for (size_t i = 0; i < t->n; i++)
                if (t->keys[i].type == CONFIG_T_HEADING)
                        buf_addf(b, ".SH %s\n", t->keys[i].doc);
                else
                        print_key(b, &t->keys[i]);
}
