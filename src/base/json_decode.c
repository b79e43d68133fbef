/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Document to struct: one function per member type, selected by a table.
 *
 * The position in the document is a chain of path parts on the decoder's stack, innermost first; the null path is
 * the document itself. It becomes text only for an error: volumes[2].mountPath, metadata["a\u0007"].
 */

#include "base/json.h"

#include <stdio.h>

#include "base/banned.h"

#define KEY_TEXT_MAX 64 /* of a key from outside in a message, quotes included */
#define ELLIPSIS     "\xe2\x80\xa6"

/* --- errors --- */

enum json_part { JSON_PART_NAME, JSON_PART_INDEX, JSON_PART_KEY };

struct json_path {
        const struct json_path *up;
        enum json_part kind;
        const char *name; /* NAME: ours, printed as it is */
        size_t index;     /* INDEX */
        struct str key;   /* KEY: from outside, escaped and cut */
};

static void add_path(struct buf *b, const struct json_path *p)
{
        if (!p)
                return;
        add_path(b, p->up);
        switch (p->kind) {
        case JSON_PART_NAME:
                buf_addf(b, "%s%s", p->up ? "." : "", p->name);
                break;
        case JSON_PART_INDEX:
                buf_addf(b, "[%zu]", p->index);
                break;
        case JSON_PART_KEY:
                buf_add_char(b, '[');
                (void) buf_add_quoted_cut(b, p->key, KEY_TEXT_MAX);
                buf_add_char(b, ']');
                break;
        default:
                ASSERT(false);
        }
}

static bool add_loc(struct buf *b, const struct json_path *p)
{
        size_t before;

        if (!p)
                return true;
        if (!add_loc(b, p->up))
                return false;
        before = b->n;
        if (before > 0)
                buf_add_char(b, ',');
        if (p->kind == JSON_PART_INDEX)
                buf_addf(b, "%zu", p->index);
        else if (p->kind == JSON_PART_NAME)
                buf_add_quoted(b, str_from(p->name));
        else
                (void) buf_add_quoted_cut(b, p->key, KEY_TEXT_MAX);
        if (!buf_failed(b))
                return true;
        buf_truncate(b, before);
        return false;
}

/* All fill *reterr and return -EINVAL. */
static int fail_at(struct json_error *reterr, const struct json_path *at, const char *fmt, ...)
        printf_like(3, 4);

static int fail_at(struct json_error *reterr, const struct json_path *at, const char *fmt, ...)
{
        char storage[4 * JSON_ERROR_MAX]; /* longer than what is kept, so that the cut is exact */
        struct buf b, loc;
        struct str s;
        va_list ap;

        reterr->syntax = false;
        reterr->position = 0;
        buf_init_fixed(&b, storage, sizeof(storage));
        add_path(&b, at);
        if (at)
                buf_add_str(&b, STR(": "));
        reterr->text_at = (unsigned) MIN_OF(b.n, JSON_ERROR_MAX - 1);
        buf_init_fixed(&loc, reterr->loc, sizeof(reterr->loc));
        (void) add_loc(&loc, at);
        reterr->loc[loc.n] = '\0';
        va_start(ap, fmt);
        buf_vaddf(&b, fmt, ap);
        va_end(ap);
        s = str_utf8_cut(buf_str(&b), JSON_ERROR_MAX - sizeof(ELLIPSIS));
        (void) snprintf(reterr->message, sizeof(reterr->message), "%.*s%s", STR_ARG(s),
                        buf_failed(&b) || s.n < b.n ? ELLIPSIS : "");
        reterr->text_at = (unsigned) MIN_OF(reterr->text_at, strlen(reterr->message));
        return -EINVAL;
}

/* --- decoders --- */

struct decoder {
        struct arena *arena;
        unsigned flags;
        struct json_error *reterr;
};

typedef int decode_fn(struct decoder *d, const struct json_path *at, const struct json_field *f,
                      const json_t *v, void *ret);

static cold_path int fail_memory(struct decoder *d, const struct json_path *at)
{
        (void) fail_at(d->reterr, at, "needs too much memory");
        return -ENOMEM;
}

/* --- scalars --- */

static int copy_string(struct decoder *d, const struct json_path *at, const json_t *v,
                       struct str *ret)
{
        if (!json_is_string(v))
                return fail_at(d->reterr, at, "must be a string");
        *ret = arena_dup_str(d->arena, str_of(json_string_value(v), json_string_length(v)));
        return ret->p ? 0 : fail_memory(d, at);
}

static int decode_str(struct decoder *d, const struct json_path *at, const struct json_field *f,
                      const json_t *v, void *ret)
{
        if (json_is_string(v) && json_string_length(v) == 0 && (f->flags & JSON_NONEMPTY))
                return fail_at(d->reterr, at, "must not be empty");
        return copy_string(d, at, v, ret);
}

static int decode_bool(struct decoder *d, const struct json_path *at, const struct json_field *f,
                       const json_t *v, void *ret)
{
        if (!json_is_boolean(v))
                return fail_at(d->reterr, at, "must be true or false");
        *(bool *) ret = json_is_true(v);
        return 0;
}

static int decode_i64(struct decoder *d, const struct json_path *at, const struct json_field *f,
                      const json_t *v, void *ret)
{
        int64_t n;

        if (!json_is_integer(v))
                return fail_at(d->reterr, at, "must be an integer");
        n = json_integer_value(v);
        if (f->limited && n < f->min_value)
                return fail_at(d->reterr, at, "must be at least %lld", (long long) f->min_value);
        if (f->limited && n > f->max_value)
                return fail_at(d->reterr, at, "must be at most %lld", (long long) f->max_value);
        *(int64_t *) ret = n;
        return 0;
}

static int decode_enum(struct decoder *d, const struct json_path *at, const struct json_field *f,
                       const json_t *v, void *ret)
{
        const struct enum_table *t = f->table;
        char names[JSON_ERROR_MAX];
        struct buf b;
        int n;

        if (!json_is_string(v))
                return fail_at(d->reterr, at, "must be a string");
        n = enum_from_string(t, str_of(json_string_value(v), json_string_length(v)));
        if (n >= 0) {
                *(int *) ret = n;
                return 0;
        }
        buf_init_fixed(&b, names, sizeof(names));
        for (int i = 0; i < t->n; i++)
                if (t->names[i])
                        buf_addf(&b, "%s%s", b.n ? ", " : "", t->names[i]);
        return fail_at(d->reterr, at, "must be one of %s%s", names,
                       buf_failed(&b) ? ", " ELLIPSIS : "");
}

static int decode_raw(struct decoder *d, const struct json_path *at, const struct json_field *f,
                      const json_t *v, void *ret)
{
        scoped(buf_done) struct buf b;
        struct str text;

        buf_init(&b, d->arena->max);
        json_encode_value(&b, v);
        if (buf_failed(&b))
                return fail_memory(d, at);
        text = arena_dup_str(d->arena, buf_str(&b));
        if (!text.p)
                return fail_memory(d, at);
        *(struct str *) ret = text;
        return 0;
}

/* --- structs --- */

static int decode_members(struct decoder *d, const struct json_path *at,
                          const struct json_field *fields, const json_t *v, void *ret);

static int decode_object(struct decoder *d, const struct json_path *at, const struct json_field *f,
                         const json_t *v, void *ret)
{
        return decode_members(d, at, f->fields, v, ret);
}

static int decode_opt(struct decoder *d, const struct json_path *at, const struct json_field *f,
                      const json_t *v, void *ret)
{
        void *item = arena_zalloc(d->arena, f->item_size);
        int r;

        if (!item)
                return fail_memory(d, at);
        r = decode_members(d, at, f->fields, v, item);
        if (r < 0)
                return r;
        *(void **) ret = item;
        return 0;
}

/* --- lists and maps --- */

/* Checks the number of items and allocates a zeroed array for them, which is not NULL when
 * empty: that would mean absent. */
static int begin_items(struct decoder *d, const struct json_path *at, const struct json_field *f,
                       size_t n, size_t size, void **ret)
{
        size_t max = f->items_max ? f->items_max : JSON_ITEMS_MAX;

        if (n == 0 && (f->flags & JSON_NONEMPTY)) {
                (void) fail_at(d->reterr, at, "must not be empty");
                return -EINVAL;
        }
        if (n > max) {
                (void) fail_at(d->reterr, at, "must not have more than %zu items", max);
                return -EINVAL;
        }
        *ret = arena_alloc_array(d->arena, n, size);
        if (!*ret)
                return fail_memory(d, at);
        memset(*ret, 0, n * size);
        return 0;
}

/* Of structs, or of strings: these have no table. */
static int decode_list(struct decoder *d, const struct json_path *at, const struct json_field *f,
                       const json_t *v, void *ret)
{
        const size_t n = json_array_size(v), size = f->fields ? f->item_size : sizeof(struct str);
        void *items = NULL;
        int r;

        if (!json_is_array(v))
                return fail_at(d->reterr, at, "must be an array");
        r = begin_items(d, at, f, n, size, &items);
        for (size_t i = 0; r == 0 && i < n; i++) {
                struct json_path path = { .up = at, .kind = JSON_PART_INDEX, .index = i };
                void *item = (char *) items + i * size;

                r = f->fields ? decode_members(d, &path, f->fields, json_array_get(v, i), item)
                              : copy_string(d, &path, json_array_get(v, i), item);
        }
        if (r == 0)
                *(struct json_list *) ret = (struct json_list){ items, n };
        return r;
}

static int decode_strs(struct decoder *d, const struct json_path *at, const struct json_field *f,
                       const json_t *v, void *ret)
{
        struct json_list list;
        int r = decode_list(d, at, f, v, &list);

        if (r == 0)
                *(struct json_strs *) ret = (struct json_strs){ list.items, list.n };
        return r;
}

/* jansson iterates through non-const pointers, but changes nothing. */
static json_t *iterable(const json_t *v)
{
        return (json_t *) (uintptr_t) v;
}

static int decode_map(struct decoder *d, const struct json_path *at, const struct json_field *f,
                      const json_t *v, void *ret)
{
        size_t n = json_object_size(v);
        void *items = NULL;
        struct json_pair *pair;
        int r;

        if (!json_is_object(v))
                return fail_at(d->reterr, at, "must be an object");
        r = begin_items(d, at, f, n, sizeof(struct json_pair), &items);
        pair = items;
        for (void *iter = json_object_iter(iterable(v)); r == 0 && iter;
             iter = json_object_iter_next(iterable(v), iter), pair++) {
                struct str key = str_of(json_object_iter_key(iter), json_object_iter_key_len(iter));
                struct json_path path = { .up = at, .kind = JSON_PART_KEY, .key = key };
                const json_t *value = json_object_iter_value(iter);

                pair->key = arena_dup_str(d->arena, key);
                if (!pair->key.p)
                        return fail_memory(d, at);
                if (!json_is_null(value) || !(f->flags & JSON_MAP_NULLS))
                        r = copy_string(d, &path, value, &pair->value);
        }
        if (r < 0)
                return r;
        *(struct json_map *) ret = (struct json_map){ items, n };
        return 0;
}

/* --- members --- */

static decode_fn *const decoders[] = {
        [JSON_T_STR] = decode_str,   [JSON_T_BOOL] = decode_bool,     [JSON_T_I64] = decode_i64,
        [JSON_T_ENUM] = decode_enum, [JSON_T_OBJECT] = decode_object, [JSON_T_OPT] = decode_opt,
        [JSON_T_LIST] = decode_list, [JSON_T_STRS] = decode_strs,     [JSON_T_MAP] = decode_map,
        [JSON_T_RAW] = decode_raw,
};

static int decode_member(struct decoder *d, const struct json_path *up, const struct json_field *f,
                         const json_t *doc, void *base)
{
        const json_t *v = json_object_get(doc, f->name);
        const json_t *other = f->alias ? json_object_get(doc, f->alias) : NULL;
        const char *name = v || !other ? f->name : f->alias;
        struct json_path at = { .up = up, .kind = JSON_PART_NAME, .name = name };
        char *ret = (char *) base + f->offset;
        const char *wrong;
        int r;

        if (v && other)
                return fail_at(d->reterr, &at, "is also given as %s", f->alias);
        v = v ? v : other;
        if (!v || (json_is_null(v) && (f->flags & (JSON_NULL_OK | JSON_REQUIRED))))
                return f->flags & JSON_REQUIRED ? fail_at(d->reterr, &at, "is required") : 0;
        r = decoders[f->type](d, &at, f, v, ret);
        if (r < 0)
                return r;
        wrong = f->check ? f->check(ret) : NULL;
        if (wrong)
                return fail_at(d->reterr, &at, "%s", wrong);
        if (f->has_offset)
                *(bool *) ((char *) base + f->has_offset - 1) = true;
        return 0;
}

static int refuse_unknown(struct decoder *d, const struct json_path *at,
                          const struct json_field *fields, const json_t *v)
{
        char text[KEY_TEXT_MAX + 1];
        struct buf b;

        for (void *iter = json_object_iter(iterable(v)); iter;
             iter = json_object_iter_next(iterable(v), iter)) {
                struct str key = str_of(json_object_iter_key(iter), json_object_iter_key_len(iter));
                const struct json_field *f = fields;

                while (f->type != JSON_T_END
                       && ((f->flags & JSON_NO_DECODE)
                           || (!str_eq(key, str_from(f->name))
                               && (!f->alias || !str_eq(key, str_from(f->alias))))))
                        f++;
                if (f->type != JSON_T_END)
                        continue;
                buf_init_fixed(&b, text, sizeof(text));
                (void) buf_add_quoted_cut(&b, key, KEY_TEXT_MAX);
                return fail_at(d->reterr, at, "unknown key %s", text);
        }
        return 0;
}

static int decode_members(struct decoder *d, const struct json_path *at,
                          const struct json_field *fields, const json_t *v, void *ret)
{
        int r = 0;

        if (!json_is_object(v))
                return fail_at(d->reterr, at, "must be an object");
        if (d->flags & JSON_REFUSE_UNKNOWN)
                r = refuse_unknown(d, at, fields, v);
        for (const struct json_field *f = fields; r == 0 && f->type != JSON_T_END; f++)
                if (!(f->flags & JSON_NO_DECODE))
                        r = decode_member(d, at, f, v, ret);
        return r;
}

int json_decode_value(const json_t *doc, const struct json_field *fields, unsigned flags,
                      struct arena *a, void *ret, struct json_error *reterr)
{
        struct decoder d = { .arena = a, .flags = flags, .reterr = reterr };

        return decode_members(&d, NULL, fields, doc, ret);
}

int json_decode(struct str text, const struct json_field *fields, unsigned flags, struct arena *a,
                void *ret, struct json_error *reterr)
{
        json_t *doc;
        int r;

        r = json_parse(text, flags, &doc, reterr);
        if (r < 0)
                return r;
        r = json_decode_value(doc, fields, flags, a, ret, reterr);
        json_decref(doc);
        return r;
}
