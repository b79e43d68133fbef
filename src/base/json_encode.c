/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/banned.h"

/* --- values --- */

static void add_i64(struct buf *b, int64_t v)
{
        if (v < 0)
                buf_add_char(b, '-');
        buf_add_u64(b, v < 0 ? -(uint64_t) v : (uint64_t) v);
}

/* The shorter of two texts that reads back as the same number; always with a fraction or an
 * exponent, so that a reader that distinguishes integers keeps it a real. */
static void add_double(struct buf *b, double v)
{
        char text[32];
        char *comma;

        (void) snprintf(text, sizeof(text), "%.15g", v);
        if (strtod(text, NULL) != v)
                (void) snprintf(text, sizeof(text), "%.17g", v);
        comma = strchr(text, ','); /* a host program of the client library may have set a locale */
        if (comma)
                *comma = '.';
        buf_add_str(b, str_from(text));
        if (!strpbrk(text, ".e"))
                buf_add_str(b, STR(".0"));
}

static void add_comma_after(struct buf *b, char open)
{
        struct str s = buf_str(b);

        if (s.n > 0 && s.p[s.n - 1] != open)
                buf_add_char(b, ',');
}

static void add_strs(struct buf *b, const struct json_strs *v)
{
        buf_add_char(b, '[');
        for (size_t i = 0; i < v->n; i++) {
                if (i > 0)
                        buf_add_char(b, ',');
                buf_add_quoted(b, v->items[i]);
        }
        buf_add_char(b, ']');
}

static void add_list(struct buf *b, const struct json_field *f, const struct json_list *v)
{
        buf_add_char(b, '[');
        for (size_t i = 0; i < v->n; i++) {
                if (i > 0)
                        buf_add_char(b, ',');
                json_encode(b, f->fields, (const char *) v->items + i * f->item_size);
        }
        buf_add_char(b, ']');
}

static void add_map(struct buf *b, const struct json_field *f, const struct json_map *v)
{
        bool nulls = f->flags & JSON_MAP_NULLS;

        buf_add_char(b, '{');
        for (size_t i = 0; i < v->n; i++) {
                const struct json_pair *pair = &v->items[i];

                if (!pair->value.p && !nulls)
                        continue;
                add_comma_after(b, '{');
                buf_add_quoted(b, pair->key);
                buf_add_char(b, ':');
                if (pair->value.p)
                        buf_add_quoted(b, pair->value);
                else
                        buf_add_str(b, STR("null"));
        }
        buf_add_char(b, '}');
}

static void add_member(struct buf *b, const struct json_field *f, const void *v)
{
        switch (f->type) {
        case JSON_T_STR:
                buf_add_quoted(b, *(const struct str *) v);
                break;
        case JSON_T_BOOL:
                buf_add_str(b, *(const bool *) v ? STR("true") : STR("false"));
                break;
        case JSON_T_I64:
                add_i64(b, *(const int64_t *) v);
                break;
        case JSON_T_ENUM:
                buf_add_quoted(b, str_from(enum_to_string(f->table, *(const int *) v)));
                break;
        case JSON_T_OBJECT:
                json_encode(b, f->fields, v);
                break;
        case JSON_T_OPT:
                json_encode(b, f->fields, *(const void *const *) v);
                break;
        case JSON_T_LIST:
                add_list(b, f, v);
                break;
        case JSON_T_STRS:
                add_strs(b, v);
                break;
        case JSON_T_MAP:
                add_map(b, f, v);
                break;
        case JSON_T_RAW:
                buf_add_str(b, *(const struct str *) v);
                break;
        case JSON_T_END:
        default:
                ASSERT(false);
        }
}

/* --- omissions --- */

static bool items_absent(const struct json_field *f, const void *items, size_t n)
{
        if (n > 0)
                return false;
        return f->flags & JSON_OMIT_EMPTY || (!items && !(f->flags & JSON_REQUIRED));
}

static bool is_absent(const struct json_field *f, const void *v)
{
        bool omit = f->flags & JSON_OMIT_EMPTY;

        switch (f->type) {
        case JSON_T_STR:
                return !((const struct str *) v)->p || (omit && ((const struct str *) v)->n == 0);
        case JSON_T_RAW:
                return ((const struct str *) v)->n == 0;
        case JSON_T_BOOL:
                return omit && !*(const bool *) v;
        case JSON_T_I64:
                return omit && *(const int64_t *) v == 0;
        case JSON_T_ENUM:
                return !enum_to_string(f->table, *(const int *) v);
        case JSON_T_OPT:
                return !*(const void *const *) v;
        case JSON_T_LIST:
                return items_absent(f, ((const struct json_list *) v)->items,
                                    ((const struct json_list *) v)->n);
        case JSON_T_STRS:
                return items_absent(f, ((const struct json_strs *) v)->items,
                                    ((const struct json_strs *) v)->n);
        case JSON_T_MAP:
                return items_absent(f, ((const struct json_map *) v)->items,
                                    ((const struct json_map *) v)->n);
        case JSON_T_OBJECT:
        case JSON_T_END:
        default:
                return false;
        }
}

/* --- objects --- */

void json_encode(struct buf *b, const struct json_field *fields, const void *v)
{
        const char *base = v;
        size_t before = b->n;

        buf_add_char(b, '{');
        for (const struct json_field *f = fields; f->type != JSON_T_END; f++) {
                size_t at = b->n, value;

                if ((f->flags & JSON_NO_ENCODE)
                    || (f->has_offset && !*(const bool *) (base + f->has_offset - 1))
                    || is_absent(f, base + f->offset))
                        continue;
                add_comma_after(b, '{');
                buf_add_quoted(b, str_from(f->name));
                buf_add_char(b, ':');
                value = b->n;
                add_member(b, f, base + f->offset);
                /* A struct is known to be empty only when it has been written. */
                if ((f->flags & JSON_OMIT_EMPTY) && str_eq(str_skip(buf_str(b), value), STR("{}")))
                        buf_truncate(b, at);
        }
        buf_add_char(b, '}');
        if (buf_failed(b))
                buf_truncate(b, before);
}

/* --- documents --- */

static void add_object_value(struct buf *b, const json_t *v)
{
        json_t *object = (json_t *) (uintptr_t) v; /* iterating changes nothing */

        buf_add_char(b, '{');
        for (void *iter = json_object_iter(object); iter;
             iter = json_object_iter_next(object, iter)) {
                add_comma_after(b, '{');
                buf_add_quoted(b,
                               str_of(json_object_iter_key(iter), json_object_iter_key_len(iter)));
                buf_add_char(b, ':');
                json_encode_value(b, json_object_iter_value(iter));
        }
        buf_add_char(b, '}');
}

void json_encode_value(struct buf *b, const json_t *v)
{
        size_t before = b->n;

        switch (json_typeof(v)) {
        case JSON_OBJECT:
                add_object_value(b, v);
                break;
        case JSON_ARRAY:
                buf_add_char(b, '[');
                for (size_t i = 0; i < json_array_size(v); i++) {
                        if (i > 0)
                                buf_add_char(b, ',');
                        json_encode_value(b, json_array_get(v, i));
                }
                buf_add_char(b, ']');
                break;
        case JSON_STRING:
                buf_add_quoted(b, str_of(json_string_value(v), json_string_length(v)));
                break;
        case JSON_INTEGER:
                add_i64(b, json_integer_value(v));
                break;
        case JSON_REAL:
                add_double(b, json_real_value(v));
                break;
        case JSON_TRUE:
                buf_add_str(b, STR("true"));
                break;
        case JSON_FALSE:
                buf_add_str(b, STR("false"));
                break;
        case JSON_NULL:
        default:
                buf_add_str(b, STR("null"));
        }
        if (buf_failed(b))
                buf_truncate(b, before);
}
