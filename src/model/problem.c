/* SPDX-License-Identifier: Apache-2.0 */
#include "model/problem.h"

#include <stdio.h>

#include "base/base.h"
#include "model/limits.h"

static const struct json_field problem_fields[] = {
        JSON_STR(struct problem, type, "type", JSON_REQUIRED),
        JSON_RAW(struct problem, loc, "loc", JSON_REQUIRED),
        JSON_STR(struct problem, msg, "msg", JSON_REQUIRED),
        JSON_END,
};

const struct json_field problems_fields[] = {
        JSON_LIST(struct problems, detail, struct problem, "detail", JSON_REQUIRED, problem_fields),
        JSON_END,
};

void problems_add(struct problems *p, struct arena *a, const char *type, const char *loc,
                  const char *msg)
{
        static struct problem no_memory[] = {
                { STR("value_error"), STR("[\"body\"]"), STR("needs too much memory") },
        };
        struct problem *items = p->detail.items, next;

        if (p->detail.n == PROBLEMS_MAX || items == no_memory)
                return;
        if (!items)
                items = arena_alloc_array(a, PROBLEMS_MAX, sizeof(*items));
        next = (struct problem){
                .type = arena_dup_str(a, str_from(type)),
                .loc = str_from(arena_printf(a, "[\"body\"%s%s]", loc[0] ? "," : "", loc)),
                .msg = arena_dup_str(a, str_from(msg)),
        };
        if (items && next.type.p && next.loc.p && next.msg.p) {
                items[p->detail.n++] = next;
                p->detail.items = items;
        } else if (p->detail.n == 0) {
                p->detail = (struct json_list){ no_memory, 1 };
        }
}

/* Messages of the JSON decoder, and the types that other servers of this API use for them. */
static const struct {
        struct str begins;
        const char *type;
} types[] = {
        { STR("is required"), "missing" },
        { STR("must be a string"), "string_type" },
        { STR("must be an integer"), "int_type" },
        { STR("must be at least"), "greater_than_equal" },
        { STR("must be at most"), "less_than_equal" },
        { STR("must be true or false"), "bool_type" },
        { STR("must be an object"), "dict_type" },
        { STR("must be an array"), "list_type" },
        { STR("must be one of"), "enum" },
        { STR("must not be empty"), "too_short" },
        { STR("must not have more"), "too_long" },
};

void problems_add_json(struct problems *p, struct arena *a, const struct json_error *e)
{
        const char *what = e->message + e->text_at, *type = "value_error";
        char position[24];

        if (e->syntax) {
                (void) snprintf(position, sizeof(position), "%zu", e->position);
                problems_add(p, a, "json_invalid", position, what);
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (str_starts_with(str_from(what), types[i].begins))
                        type = types[i].type;
        problems_add(p, a, type, e->loc, what);
}

struct str problems_message(const struct problems *p)
{
        return p->detail.n > 0 ? ((const struct problem *) p->detail.items)->msg : STR("");
}
