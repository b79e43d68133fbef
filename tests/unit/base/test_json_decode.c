/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/json.h"

enum mode { MODE_FAST, MODE_SLOW, MODE_MAX_, MODE_INVALID = -EINVAL };
ENUM_DECLARE(mode);
static const char *const mode_names[] = { [MODE_FAST] = "fast", [MODE_SLOW] = "slow" };
ENUM_TABLE(mode, mode_names, MODE_MAX_);

struct volume {
        struct str name, mount_path;
        bool read_only;
};

struct image {
        struct str uri;
        struct image *base; /* an image may be built on another: a table that refers to itself */
};

struct create {
        struct image image;
        struct image *fallback;
        struct json_list volumes;
        struct json_strs args;
        struct json_map metadata, patch;
        struct str note, raw, answer_only;
        int64_t timeout, count, low;
        bool has_timeout, enabled;
        int mode;
};

static const char *check_absolute(const void *v)
{
        return str_starts_with(*(const struct str *) v, STR("/")) ? NULL : "must be absolute";
}

static const struct json_field volume_fields[] = {
        JSON_STR(struct volume, name, "name", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_STR(struct volume, mount_path, "mountPath", JSON_REQUIRED, .alias = "mount_path",
                 .check = check_absolute),
        JSON_BOOL(struct volume, read_only, "readOnly", 0),
        JSON_END,
};

static const struct json_field image_fields[] = {
        JSON_STR(struct image, uri, "uri", JSON_REQUIRED),
        JSON_OPT(struct image, base, struct image, "base", JSON_NULL_OK, image_fields),
        JSON_END,
};

static const struct json_field create_fields[] = {
        JSON_OBJECT(struct create, image, struct image, "image", 0, image_fields),
        JSON_OPT(struct create, fallback, struct image, "fallback", 0, image_fields),
        JSON_LIST(struct create, volumes, struct volume, "volumes", 0, volume_fields,
                  .items_max = 5),
        JSON_STRS(struct create, args, "args", JSON_NONEMPTY),
        JSON_MAP(struct create, metadata, "metadata", JSON_NULL_OK),
        JSON_MAP(struct create, patch, "patch", JSON_MAP_NULLS),
        JSON_STR(struct create, note, "note", JSON_NULL_OK),
        JSON_RAW(struct create, raw, "raw", 0),
        JSON_STR(struct create, answer_only, "answerOnly", JSON_NO_DECODE),
        JSON_I64(struct create, timeout, "timeout", JSON_NULL_OK,
                 JSON_HAS(struct create, has_timeout), JSON_RANGE(60, 86400)),
        JSON_I64(struct create, count, "count", 0),
        JSON_I64(struct create, low, "low", 0, JSON_MIN(0)),
        JSON_BOOL(struct create, enabled, "enabled", 0),
        JSON_ENUM(struct create, mode, "mode", 0, &mode_table),
        JSON_END,
};

/* Decodes and returns the message, "" if there was none. */
static const char *decode(struct arena *a, struct str text, unsigned flags, struct create *ret)
{
        static struct json_error e;
        int r;

        e.message[0] = '\0';
        r = json_decode(text, create_fields, flags, a, ret, &e);
        check_i64_eq(r, e.message[0] ? -EINVAL : 0);
        return e.message;
}

static void decodes_everything(void **state)
{
        static const struct str text = STR(
                "{\"image\":{\"uri\":\"debian\",\"base\":{\"uri\":\"scratch\",\"base\":null}},"
                "\"fallback\":{\"uri\":\"f\"},"
                "\"volumes\":[{\"name\":\"v\",\"mount_path\":\"/a\",\"readOnly\":true}],"
                "\"args\":[\"\",\"b\"],\"metadata\":{\"z\":\"1\",\"a\":\"2\"},"
                "\"patch\":{\"k\":null},\"raw\":{ \"b\" : [1, 2.5, null, \"\\u00e4\"] , \"a\":{} },"
                "\"timeout\":60,\"count\":-9223372036854775808,\"enabled\":true,"
                "\"mode\":\"slow\",\"unknown\":[],\"answerOnly\":7}");
        struct create c = { .note = STR("default"), .low = 7 };
        struct volume *v;
        struct arena a;

        arena_init(&a, 1 * MiB);
        check_z_eq(decode(&a, text, 0, &c), "");
        check_str_eq(c.image.uri, "debian");
        check_str_eq(c.image.base->uri, "scratch");
        check_true(c.image.base->base == NULL);
        check_str_eq(c.fallback->uri, "f");
        check_u64_eq(c.volumes.n, 1);
        v = c.volumes.items;
        check_str_eq(v->name, "v");
        check_str_eq(v->mount_path, "/a");
        check_true(v->read_only);
        check_u64_eq(c.args.n, 2);
        check_str_eq(c.args.items[0], "");
        check_str_eq(c.args.items[1], "b");
        check_u64_eq(c.metadata.n, 2);
        check_str_eq(c.metadata.items[0].key, "z");
        check_str_eq(c.metadata.items[1].value, "2");
        check_view_eq(c.patch.items[0].value, STR_NULL);
        check_str_eq(c.raw, "{\"b\":[1,2.5,null,\"\xc3\xa4\"],\"a\":{}}");
        check_true(c.has_timeout);
        check_i64_eq(c.timeout, 60);
        check_i64_eq(c.count, INT64_MIN);
        check_true(c.enabled);
        check_i64_eq(c.mode, MODE_SLOW);
        check_str_eq(c.note, "default"); /* absent members keep what was there */
        check_i64_eq(c.low, 7);
        check_view_eq(c.answer_only, STR_NULL);
        arena_done(&a);
}

static void tells_absence_from_emptiness(void **state)
{
        struct create c = { 0 };
        struct arena a;

        arena_init(&a, 1 * MiB);
        check_z_eq(decode(&a, STR("{\"timeout\":null,\"note\":null,\"metadata\":null}"), 0, &c),
                   "");
        check_false(c.has_timeout);
        check_view_eq(c.note, STR_NULL);
        check_true(c.metadata.items == NULL && c.volumes.items == NULL);
        check_z_eq(decode(&a, STR("{\"note\":\"\",\"metadata\":{},\"volumes\":[],\"raw\":null}"), 0,
                          &c),
                   "");
        check_view_eq(c.note, STR(""));
        check_true(c.metadata.items != NULL && c.metadata.n == 0);
        check_true(c.volumes.items != NULL && c.volumes.n == 0);
        check_str_eq(c.raw, "null");
        arena_done(&a);
}

static const struct {
        const char *text, *message;
} wrong[] = {
        { "[]", "must be an object" },
        { "null", "must be an object" },
        { "7", "must be an object" },
        { "{\"image\":{}}", "image.uri: is required" },
        { "{\"image\":{\"uri\":null}}", "image.uri: is required" },
        { "{\"image\":null}", "image: must be an object" },
        { "{\"image\":{\"uri\":\"a\",\"base\":{\"uri\":\"b\",\"base\":{}}}}",
          "image.base.base.uri: is required" },
        { "{\"fallback\":[]}", "fallback: must be an object" },
        { "{\"volumes\":{}}", "volumes: must be an array" },
        { "{\"volumes\":[1]}", "volumes[0]: must be an object" },
        { "{\"volumes\":[{\"name\":\"\"}]}", "volumes[0].name: must not be empty" },
        { "{\"volumes\":[{\"name\":\"a\",\"mountPath\":\"/\"},"
          "{\"name\":\"b\",\"mountPath\":\"x\"}]}",
          "volumes[1].mountPath: must be absolute" },
        { "{\"volumes\":[{\"name\":\"b\",\"mount_path\":\"x\"}]}",
          "volumes[0].mount_path: must be absolute" },
        { "{\"volumes\":[{\"name\":\"b\",\"mountPath\":\"/\",\"mount_path\":\"/etc\"}]}",
          "volumes[0].mountPath: is also given as mount_path" },
        { "{\"volumes\":[{},{},{},{},{},{}]}", "volumes: must not have more than 5 items" },
        { "{\"args\":[]}", "args: must not be empty" },
        { "{\"args\":[\"a\",null]}", "args[1]: must be a string" },
        { "{\"args\":\"a\"}", "args: must be an array" },
        { "{\"metadata\":[]}", "metadata: must be an object" },
        { "{\"metadata\":{\"weird\\u0007key\":1}}",
          "metadata[\"weird\\u0007key\"]: must be a string" },
        { "{\"metadata\":{\"a\":null}}", "metadata[\"a\"]: must be a string" },
        { "{\"patch\":{\"a\":{}}}", "patch[\"a\"]: must be a string" },
        { "{\"note\":1}", "note: must be a string" },
        { "{\"timeout\":\"60\"}", "timeout: must be an integer" },
        { "{\"timeout\":60.0}", "timeout: must be an integer" },
        { "{\"timeout\":59}", "timeout: must be at least 60" },
        { "{\"timeout\":86401}", "timeout: must be at most 86400" },
        { "{\"low\":-1}", "low: must be at least 0" },
        { "{\"enabled\":1}", "enabled: must be true or false" },
        { "{\"enabled\":null}", "enabled: must be true or false" },
        { "{\"mode\":\"Fast\"}", "mode: must be one of fast, slow" },
        { "{\"mode\":0}", "mode: must be a string" },
        /* syntax */
        { "", "line 1 column 1: unexpected end" },
        { "{", "line 1 column 1: unexpected end" },
        { "{\"a\":1}x", "line 1 column 8: nothing may follow the document" },
        { "{\"a\":1}{}", "line 1 column 8: nothing may follow the document" },
        { "{\"note\":\"a\",\n\"note\":\"b\"}", "line 2 column 6: duplicate key" },
        { "{\"note\":\"a\",\"no\\u0074e\":\"b\"}", "line 1 column 23: duplicate key" },
        { "{\"a\":\"\\ud800\"}", "line 1 column 13: invalid Unicode '\\uD800'" },
        { "{\"a\":\"\\udc00\"}", "line 1 column 13: invalid Unicode '\\uDC00'" },
        { "{\"a\":\"\\ud800\\u0041\"}", "line 1 column 19: invalid Unicode '\\uD800\\u0041'" },
        { "{\"a\":\"\\u0000\"}", "line 1 column 13: NUL is not allowed" },
        { "{\"\\u0000\":1}", "line 1 column 9: NUL is not allowed" },
        { "{\"a\":\"\x01\"}", "line 1 column 6: control character 0x1" },
        { "{\"a\":\"\xc0\xaf\"}", "line 1 column 6: invalid UTF-8" },
        { "{\"a\":\"\xed\xa0\x80\"}", "line 1 column 6: invalid UTF-8" },
        { "{\"a\":1e999}", "line 1 column 10: number out of range" },
        { "{\"a\":-1e999}", "line 1 column 11: number out of range" },
        { "{\"a\":9223372036854775808}", "line 1 column 24: number out of range" },
        { "{\"a\":-9223372036854775809}", "line 1 column 25: number out of range" },
        { "{\"a\":NaN}", "line 1 column 8: invalid token" },
        { "{\"a\":01}", "line 1 column 6: invalid token" },
        { "{\"a\":+1}", "line 1 column 6: invalid token" },
        { "{\"a\":.5}", "line 1 column 6: invalid token" },
        { "{'a':1}", "line 1 column 2: string or '}' expected" },
        { "{\"a\":1,}", "line 1 column 8: string or '}' expected" },
        { "[1,]", "line 1 column 4: unexpected token" },
        { "{\"a\" 1}", "line 1 column 6: ':' expected" },
        { "/**/{}", "line 1 column 1: invalid token" },
        { "\xef\xbb\xbf{}", "line 1 column 1: invalid token" },
        { "[}", "line 1 column 2: unexpected token" },
        { "{\"a\":\x1b[2J}", "line 1 column 6: invalid token" },
};

static void says_where_and_what(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
                struct create c = { 0 };
                struct arena a;

                check_case(wrong[i].text);
                arena_init(&a, 1 * MiB);
                check_z_eq(decode(&a, str_from(wrong[i].text), 0, &c), wrong[i].message);
                arena_done(&a);
        }
}

static void refuses_unknown_keys(void **state)
{
        static const struct {
                const char *text, *message;
        } cases[] = {
                { "{\"x\":1}", "unknown key \"x\"" },
                { "{\"\":1}", "unknown key \"\"" },
                { "{\"answerOnly\":\"a\"}", "unknown key \"answerOnly\"" },
                { "{\"image\":{\"uri\":\"a\",\"x\":1}}", "image: unknown key \"x\"" },
                { "{\"volumes\":[{\"name\":\"a\",\"mountPath\":\"/\"},{\"\\n\":1}]}",
                  "volumes[1]: unknown key \"\\n\"" },
                { "{\"metadata\":{\"any\":\"thing\"},\"raw\":{\"any\":1}}", "" },
                { "{\"volumes\":[{\"name\":\"a\",\"mount_path\":\"/\"}]}", "" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct create c = { 0 };
                struct arena a;

                check_case(cases[i].text);
                arena_init(&a, 1 * MiB);
                check_z_eq(decode(&a, str_from(cases[i].text), JSON_REFUSE_UNKNOWN, &c),
                           cases[i].message);
                arena_done(&a);
        }
}

/* [[[…]]] or {"a":{"a":…}} with n levels, never closed if n is large. */
static struct str nested(struct arena *a, const char *open, const char *close, size_t n)
{
        size_t len = 0;
        char *p = NULL;

        for (size_t i = 0; i < n; i++, len += strlen(open))
                p = arena_append(a, p, len, str_from(open));
        p = arena_append(a, p, len, STR("1"));
        len++;
        for (size_t i = 0; i < n; i++, len += strlen(close))
                p = arena_append(a, p, len, str_from(close));
        return str_of(p, len);
}

/* Each costs many times its text once it is parsed. */
static void limits_values(void **state)
{
        struct json_error e;
        scoped(buf_done) struct buf b;
        json_t *doc;

        buf_init(&b, MiB);
        buf_add_str(&b, STR("[0"));
        for (int i = 1; i < JSON_VALUES_MAX - 1; i++)
                buf_add_str(&b, STR(",0"));
        buf_add_str(&b, STR("]"));
        check_i64_eq(json_parse(buf_str(&b), 0, &doc, &e), 0);
        json_decref(doc);
        buf_truncate(&b, b.n - 1);
        buf_add_str(&b, STR(",0]"));
        check_i64_eq(json_parse(buf_str(&b), 0, &doc, &e), -EINVAL);
        check_z_eq(e.message, "line 1 column 199999: more than 100000 values");
}

static void limits_depth(void **state)
{
        static const struct {
                const char *open, *close;
        } forms[] = { { "[", "]" }, { "{\"a\":", "}" }, { "[", "" }, { "\n[", "]" } };
        struct json_error e;
        struct arena a;
        json_t *doc;

        for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
                arena_init(&a, 4 * MiB);
                check_case(forms[i].open);
                for (size_t n = 65; n <= 10000; n += 9935) {
                        struct str text = nested(&a, forms[i].open, forms[i].close, n);

                        check_i64_eq(json_parse(text, 0, &doc, &e), -EINVAL);
                        check_true(strstr(e.message, ": nested more than 64 deep") != NULL);
                }
                arena_done(&a);
        }
        arena_init(&a, 1 * MiB);
        check_i64_eq(json_parse(nested(&a, "[", "]", 64), 0, &doc, &e), 0);
        json_decref(doc);
        check_i64_eq(json_parse(nested(&a, "\n[", "]", 65), 0, &doc, &e), -EINVAL);
        check_z_eq(e.message, "line 66 column 1: nested more than 64 deep");
        arena_done(&a);
        /* Brackets in strings are no nesting, whatever is escaped. */
        check_i64_eq(json_parse(STR("[\"\\\\\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
                                    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"]"),
                                0, &doc, &e),
                     0);
        json_decref(doc);
}

static void parses_what_it_is_told(void **state)
{
        struct json_error e;
        json_t *doc;

        check_i64_eq(json_parse(STR("{} [[["), JSON_ALLOW_TRAILING, &doc, &e), 0);
        json_decref(doc);
        check_i64_eq(json_parse(STR("\"a\""), 0, &doc, &e), 0);
        json_decref(doc);
        check_i64_eq(json_parse(STR("{}\0"), 0, &doc, &e), -EINVAL);
        check_i64_eq(json_parse(STR("{\"a\0b\":1}"), 0, &doc, &e), -EINVAL);
        check_i64_eq(json_parse(STR_NULL, 0, &doc, &e), -EINVAL);
        check_i64_eq(json_parse(STR("\"\\"), 0, &doc, &e), -EINVAL);
}

static void cuts_foreign_keys(void **state)
{
        static const char text[] =
                "{\"metadata\":{\"\\u202e\xe2\x82\xac"
                "0123456789012345678901234567890123456789012345678901234567890123456789"
                "0123456789012345678901234567890123456789012345678901234567890123456789\":1}}";
        struct create c = { 0 };
        struct arena a;

        arena_init(&a, 1 * MiB);
        check_z_eq(decode(&a, str_from(text), 0, &c),
                   "metadata[\"\\u202e\xe2\x82\xac"
                   "01234567890123456789012345678901234567890123456789\xe2\x80\xa6\"]: "
                   "must be a string");
        arena_done(&a);
}

static void cuts_long_messages(void **state)
{
        struct image image = { 0 };
        struct json_error e;
        struct arena a;
        struct str text;

        arena_init(&a, 1 * MiB);
        text = nested(&a, "{\"uri\":\"a\",\"base\":", "}", 63);
        check_i64_eq(json_decode(text, image_fields, 0, &a, &image, &e), -EINVAL);
        check_true(str_starts_with(str_from(e.message), STR("base.base.base.")));
        check_true(str_ends_with(str_from(e.message), STR("\xe2\x80\xa6")));
        check_true(strlen(e.message) < JSON_ERROR_MAX);
        arena_done(&a);
}

static void stops_when_the_arena_is_full(void **state)
{
        static const struct str text = STR(
                "{\"fallback\":{\"uri\":\"f\"},\"volumes\":[{\"name\":\"v\",\"mountPath\":\"/a\"}],"
                "\"args\":[\"a\",\"b\"],\"metadata\":{\"z\":\"1\"},\"raw\":[1,2],\"note\":\"\"}");
        int r = -ENOMEM;

        for (size_t max = 0; r != 0; max += 16) {
                struct create c = { 0 };
                struct json_error e = { "" };
                struct arena a;

                check_true(max < 2000);
                arena_init(&a, max);
                r = json_decode(text, create_fields, 0, &a, &c, &e);
                check_true(r == 0 || r == -ENOMEM);
                check_true(r == 0 || strstr(e.message, ": needs too much memory"));
                arena_done(&a);
        }
}

/* The same place for programs; as much of it as fits, always JSON. */
static void says_where_as_json(void **state)
{
        static const struct {
                const char *text, *loc, *what;
        } cases[] = {
                { "{\"volumes\":[{\"name\":\"v\"}]}", "\"volumes\",0,\"mountPath\"",
                  "is required" },
                { "{\"metadata\":{\"a\\\"b\":1}}", "\"metadata\",\"a\\\"b\"", "must be a string" },
                { "[]", "", "must be an object" },
                { "{", "", "line 1 column 1: unexpected end" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct json_error e;
                struct create c = { 0 };
                struct arena a;

                memset(&e, 'x', sizeof(e));
                arena_init(&a, 64 * KiB);
                check_i64_eq(json_decode(str_from(cases[i].text), create_fields, 0, &a, &c, &e),
                             -EINVAL);
                check_z_eq(e.loc, cases[i].loc);
                check_z_eq(e.message + e.text_at, cases[i].what);
                arena_done(&a);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(decodes_everything),
                cmocka_unit_test(tells_absence_from_emptiness),
                cmocka_unit_test(says_where_and_what),
                cmocka_unit_test(says_where_as_json),
                cmocka_unit_test(refuses_unknown_keys),
                cmocka_unit_test(limits_depth),
                cmocka_unit_test(limits_values),
                cmocka_unit_test(parses_what_it_is_told),
                cmocka_unit_test(cuts_foreign_keys),
                cmocka_unit_test(cuts_long_messages),
                cmocka_unit_test(stops_when_the_arena_is_full),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
