/* SPDX-License-Identifier: Apache-2.0 */
#include "api/ops/openapi_schema.h"

#include "base/base.h"

static bool is_left_out(const struct json_field *f, enum schema_direction way)
{
        return f->flags & (way == SCHEMA_INPUT ? JSON_NO_DECODE : JSON_NO_ENCODE);
}

static void add_integer(struct buf *b, const struct json_field *f)
{
        buf_add_str(b, STR("\"type\":\"integer\",\"format\":\"int64\""));
        if (!f->limited)
                return;
        buf_addf(b, ",\"minimum\":%lld", (long long) f->min_value);
        if (f->max_value != INT64_MAX)
                buf_addf(b, ",\"maximum\":%lld", (long long) f->max_value);
}

static void add_enum(struct buf *b, const struct enum_table *t)
{
        bool first = true;

        buf_add_str(b, STR("\"type\":\"string\",\"enum\":["));
        for (int i = 0; i < t->n; i++) {
                const char *name = enum_to_string(t, i);

                if (!name)
                        continue;
                if (!first)
                        buf_add_char(b, ',');
                buf_add_quoted(b, str_from(name));
                first = false;
        }
        buf_add_char(b, ']');
}

static void add_map(struct buf *b, const struct json_field *f)
{
        buf_add_str(b, STR("\"type\":\"object\",\"additionalProperties\":{\"type\":"));
        buf_add_str(b,
                    f->flags & JSON_MAP_NULLS ? STR("[\"string\",\"null\"]}") : STR("\"string\"}"));
}

static void add_members(struct buf *b, const struct json_field *fields, enum schema_direction way);

static void add_type(struct buf *b, const struct json_field *f, enum schema_direction way)
{
        static const char *const plain[] = {
                [JSON_T_STR] = "\"type\":\"string\"",
                [JSON_T_BOOL] = "\"type\":\"boolean\"",
                [JSON_T_STRS] = "\"type\":\"array\",\"items\":{\"type\":\"string\"}",
                [JSON_T_RAW] = "",
        };

        if (f->type < ARRAY_SIZE(plain) && plain[f->type]) {
                buf_add_str(b, str_from(plain[f->type]));
        } else if (f->type == JSON_T_I64) {
                add_integer(b, f);
        } else if (f->type == JSON_T_ENUM) {
                add_enum(b, f->table);
        } else if (f->type == JSON_T_MAP) {
                add_map(b, f);
        } else if (f->type == JSON_T_LIST) {
                buf_add_str(b, STR("\"type\":\"array\",\"items\":"));
                schema_write(b, f->fields, way);
        } else {
                add_members(b, f->fields, way);
        }
}

static void add_required(struct buf *b, const struct json_field *fields, enum schema_direction way)
{
        bool any = false;

        for (const struct json_field *f = fields; f->type != JSON_T_END; f++) {
                if (!(f->flags & JSON_REQUIRED) || is_left_out(f, way))
                        continue;
                buf_add_str(b, any ? STR(",") : STR(",\"required\":["));
                buf_add_quoted(b, str_from(f->name));
                any = true;
        }
        if (any)
                buf_add_char(b, ']');
}

static void add_members(struct buf *b, const struct json_field *fields, enum schema_direction way)
{
        bool first = true;

        buf_add_str(b, STR("\"type\":\"object\",\"properties\":{"));
        for (const struct json_field *f = fields; f->type != JSON_T_END; f++) {
                if (is_left_out(f, way))
                        continue;
                if (!first)
                        buf_add_char(b, ',');
                buf_add_quoted(b, str_from(f->name));
                buf_add_str(b, STR(":{"));
                add_type(b, f, way);
                buf_add_char(b, '}');
                first = false;
        }
        buf_add_char(b, '}');
        add_required(b, fields, way);
}

void schema_write(struct buf *b, const struct json_field *fields, enum schema_direction way)
{
        buf_add_char(b, '{');
        add_members(b, fields, way);
        buf_add_char(b, '}');
}
