/* SPDX-License-Identifier: Apache-2.0 */

/* Any text either is refused with a message or becomes a struct whose encoded form decodes and
 * encodes to the same bytes again. The first byte chooses the flags. */

#include "tests/fuzz/fuzz.h"

#include "base/base.h"
#include "base/json.h"

static const char *const mode_names[] = { "fast", "slow" };
static const struct enum_table mode_table = { mode_names, 2 };

struct node {
        struct node *opt;
        struct json_list list;
        struct json_strs strs;
        struct json_map map, nulls;
        struct str str, raw;
        int64_t i64, limited;
        int mode;
        bool flag, has_i64;
};

struct root {
        struct node object;
};

static const char *check_no_x(const void *v)
{
        return str_find(*(const struct str *) v, 'x') < 0 ? NULL : "must not hold an x";
}

static const struct json_field node_fields[] = {
        JSON_OPT(struct node, opt, struct node, "opt", JSON_NULL_OK, node_fields),
        JSON_LIST(struct node, list, struct node, "list", 0, node_fields, .items_max = 9),
        JSON_STRS(struct node, strs, "strs", JSON_NONEMPTY),
        JSON_MAP(struct node, map, "map", JSON_OMIT_EMPTY),
        JSON_MAP(struct node, nulls, "nulls", JSON_MAP_NULLS),
        JSON_STR(struct node, str, "str", JSON_NULL_OK, .alias = "s", .check = check_no_x),
        JSON_RAW(struct node, raw, "raw", 0),
        JSON_I64(struct node, i64, "i64", 0, JSON_HAS(struct node, has_i64)),
        JSON_I64(struct node, limited, "limited", 0, JSON_RANGE(-5, 1000)),
        JSON_ENUM(struct node, mode, "mode", 0, &mode_table),
        JSON_BOOL(struct node, flag, "flag", JSON_OMIT_EMPTY),
        JSON_END,
};

static const struct json_field root_fields[] = {
        JSON_OBJECT(struct root, object, struct node, "object", JSON_REQUIRED, node_fields),
        JSON_END,
};

/* text -> struct -> b. False if the text was refused. */
static bool recode(struct str text, unsigned flags, struct buf *b)
{
        struct root root = { 0 };
        struct json_error e = { "" };
        struct arena a;
        int r;

        arena_init(&a, ARENA_MAX_REQUEST);
        r = json_decode(text, root_fields, flags, &a, &root, &e);
        ASSERT(r == 0 || e.message[0]);
        ASSERT(str_is_utf8(str_from(e.message)));
        buf_init(b, BUF_MAX_JSON);
        if (r == 0)
                json_encode(b, root_fields, &root);
        arena_done(&a);
        return r == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct buf first, second;

        if (n == 0)
                return 0;
        if (recode(str_of((const char *) p + 1, n - 1), p[0] & 3, &first) && !buf_failed(&first)) {
                ASSERT(recode(buf_str(&first), JSON_REFUSE_UNKNOWN, &second));
                ASSERT(str_eq(buf_str(&first), buf_str(&second)));
                buf_done(&second);
        }
        buf_done(&first);
        return 0;
}
