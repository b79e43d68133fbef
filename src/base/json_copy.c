/* SPDX-License-Identifier: Apache-2.0 */

/* Struct to struct by the same tables: one function per member type. */

#include "base/json.h"

#include "base/banned.h"

static int copy_str(struct str from, struct arena *a, struct str *ret)
{
        if (!from.p) {
                *ret = STR_NULL;
                return 0;
        }
        *ret = arena_dup_str(a, from);
        return ret->p ? 0 : -ENOMEM;
}

/* A zeroed array; NULL stays NULL, which means absent. */
static int take_items(const void *from, size_t n, size_t size, struct arena *a, void **ret)
{
        *ret = from ? arena_alloc_array(a, n, size) : NULL;
        if (*ret)
                memset(*ret, 0, n * size);
        return *ret || !from ? 0 : -ENOMEM;
}

static int copy_list(const struct json_field *f, const struct json_list *from, struct arena *a,
                     struct json_list *ret)
{
        int r = take_items(from->items, from->n, f->item_size, a, &ret->items);

        for (size_t i = 0; r == 0 && i < from->n; i++)
                r = json_copy_struct(f->fields, (const char *) from->items + i * f->item_size, a,
                                     (char *) ret->items + i * f->item_size);
        ret->n = from->n;
        return r;
}

static int copy_strs(const struct json_strs *from, struct arena *a, struct json_strs *ret)
{
        void *items;
        int r = take_items(from->items, from->n, sizeof(struct str), a, &items);

        *ret = (struct json_strs){ items, from->n };
        for (size_t i = 0; r == 0 && i < from->n; i++)
                r = copy_str(from->items[i], a, &ret->items[i]);
        return r;
}

static int copy_map(const struct json_map *from, struct arena *a, struct json_map *ret)
{
        void *items;
        int r = take_items(from->items, from->n, sizeof(struct json_pair), a, &items);

        *ret = (struct json_map){ items, from->n };
        for (size_t i = 0; r == 0 && i < from->n; i++) {
                r = copy_str(from->items[i].key, a, &ret->items[i].key);
                if (r == 0)
                        r = copy_str(from->items[i].value, a, &ret->items[i].value);
        }
        return r;
}

static int copy_member(const struct json_field *f, const void *from, struct arena *a, void *ret)
{
        const void *opt;

        switch (f->type) {
        case JSON_T_STR:
        case JSON_T_RAW:
                return copy_str(*(const struct str *) from, a, ret);
        case JSON_T_BOOL:
                *(bool *) ret = *(const bool *) from;
                return 0;
        case JSON_T_I64:
                *(int64_t *) ret = *(const int64_t *) from;
                return 0;
        case JSON_T_ENUM:
                *(int *) ret = *(const int *) from;
                return 0;
        case JSON_T_OBJECT:
                return json_copy_struct(f->fields, from, a, ret);
        case JSON_T_OPT:
                opt = *(const void *const *) from;
                *(void **) ret = opt ? arena_zalloc(a, f->item_size) : NULL;
                if (!opt)
                        return 0;
                return *(void **) ret ? json_copy_struct(f->fields, opt, a, *(void **) ret)
                                      : -ENOMEM;
        case JSON_T_LIST:
                return copy_list(f, from, a, ret);
        case JSON_T_STRS:
                return copy_strs(from, a, ret);
        case JSON_T_MAP:
                return copy_map(from, a, ret);
        case JSON_T_END:
        default:
                ASSERT(false);
        }
        return -EINVAL;
}

int json_copy_struct(const struct json_field *fields, const void *from, struct arena *a, void *ret)
{
        const char *source = from;
        char *target = ret;
        int r = 0;

        for (const struct json_field *f = fields; r == 0 && f->type != JSON_T_END; f++) {
                if (f->has_offset)
                        *(bool *) (target + f->has_offset - 1) =
                                *(const bool *) (source + f->has_offset - 1);
                r = copy_member(f, source + f->offset, a, target + f->offset);
        }
        return r;
}
