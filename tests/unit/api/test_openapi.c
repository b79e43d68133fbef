/* SPDX-License-Identifier: Apache-2.0 */
#include "api/ops/ops.h"

#include "base/base.h"
#include "tests/lib/check.h"

struct input {
        struct str name;
        int64_t n;
        struct json_map labels;
        struct str hidden;
        int kind;
};

static const char *const kinds[] = { "a", "b" };
static const struct enum_table kind_table = { kinds, 2 };

static const struct json_field fields[] = {
        JSON_STR(struct input, name, "name", JSON_REQUIRED),
        JSON_I64(struct input, n, "n", 0, JSON_RANGE(1, 9)),
        JSON_MAP(struct input, labels, "labels", JSON_MAP_NULLS),
        JSON_STR(struct input, hidden, "password", JSON_NO_ENCODE),
        JSON_ENUM(struct input, kind, "kind", JSON_REQUIRED, &kind_table),
        JSON_END,
};

static void exec(struct http_req *req)
{
        http_reply_empty(req, 204);
}

static const struct http_doc_param params[] = {
        { "q", HTTP_DOC_INTEGER, .required = true, .text = "How \"many\"." },
        { "X-H", .header = true },
        { 0 },
};
static const uint16_t errors[] = { 404, 422, 0 };

static const struct http_doc make_doc = {
        "makeThing",
        "Make",
        "Things",
        201,
        "Thing",
        fields,
        .input_name = "ThingRequest",
        .params = params,
        .errors = errors,
};
static const struct http_doc get_doc = { "getThing", "Get", NULL, 200, "Thing", fields };
static const struct http_doc text_doc = { "getText", "Text", NULL, 200,
                                          .response_type = "text/plain" };

static const struct http_route routes[] = {
        { METHOD_POST, "/things/{a}/x/{b}", 1, HTTP_JSON(struct input, fields), .doc = &make_doc,
          .exec = exec },
        { METHOD_GET, "/things/{a}/x/{b}", 1, .doc = &get_doc, .exec = exec },
        { METHOD_GET, "/text", HTTP_SCOPE_PUBLIC, .doc = &text_doc, .exec = exec },
        { METHOD_GET, "/undocumented", 1, .exec = exec },
};
static const struct http_api bare = { .name = "t", .prefix = "", .routes = routes, .n_routes = 4 };
static const struct http_api v1 = { .name = "t", .prefix = "/v1", .routes = routes, .n_routes = 4 };

static json_t *made(const struct http_api *const *apis)
{
        scoped(buf_done) struct buf b;
        struct json_error e;
        json_t *doc = NULL;

        buf_init(&b, BUF_MAX_JSON);
        openapi_write(&b, apis);
        if (json_parse(buf_str(&b), 0, &doc, &e) < 0)
                CHECK_FAIL_("%s in %s", e.message, buf_str(&b).p);
        return doc;
}

static json_t *at(json_t *v, const char *const *path)
{
        for (; *path; path++) {
                json_t *next = json_is_array(v) ? json_array_get(v, (size_t) (**path - '0'))
                                                : json_object_get(v, *path);

                if (!next)
                        CHECK_FAIL_("there is no '%s'", *path);
                v = next;
        }
        return v;
}

#define AT(doc, ...)   at(doc, (const char *const[]){ __VA_ARGS__, NULL })
#define TEXT(doc, ...) json_string_value(AT(doc, __VA_ARGS__))

static void test_describes_operations(void **state)
{
        const struct http_api *const apis[] = { &bare, &v1, NULL };
        json_t *doc = made(apis), *paths = AT(doc, "paths");
        json_t *post = AT(paths, "/v1/things/{a}/x/{b}", "post");

        check_u64_eq(json_object_size(paths), 2); /* once each, and not what has no doc */
        check_z_eq(TEXT(post, "operationId"), "makeThing");
        check_z_eq(TEXT(post, "tags", "0"), "Things");
        check_u64_eq(json_array_size(AT(post, "parameters")), 4);
        check_z_eq(TEXT(post, "parameters", "1", "name"), "b");
        check_z_eq(TEXT(post, "parameters", "1", "in"), "path");
        check_z_eq(TEXT(post, "parameters", "2", "description"), "How \"many\".");
        check_z_eq(TEXT(post, "parameters", "2", "schema", "type"), "integer");
        check_z_eq(TEXT(post, "parameters", "3", "in"), "header");
        check_z_eq(TEXT(post, "requestBody", "content", "application/json", "schema", "$ref"),
                   "#/components/schemas/ThingRequest");
        check_z_eq(TEXT(post, "responses", "201", "content", "application/json", "schema", "$ref"),
                   "#/components/schemas/Thing");
        check_z_eq(TEXT(post, "responses", "422", "content", "application/json", "schema", "$ref"),
                   "#/components/schemas/ValidationError");
        check_z_eq(TEXT(post, "responses", "404", "description"), "Not Found");
        check_z_eq(TEXT(paths, "/v1/things/{a}/x/{b}", "get", "operationId"), "getThing");
        check_true(json_is_array(AT(paths, "/v1/text", "get", "security")));
        check_z_eq(TEXT(paths, "/v1/text", "get", "responses", "200", "content", "text/plain",
                        "schema", "type"),
                   "string");
        check_false(json_object_get(post, "security"));
        json_decref(doc);
}

static void test_schemas_of_input_and_response(void **state)
{
        const struct http_api *const apis[] = { &v1, NULL };
        json_t *doc = made(apis), *schemas = AT(doc, "components", "schemas");
        json_t *input = AT(schemas, "ThingRequest", "properties");

        check_true(json_object_get(input, "password") != NULL);
        check_false(json_object_get(AT(schemas, "Thing", "properties"), "password"));
        check_i64_eq(json_integer_value(AT(input, "n", "maximum")), 9);
        check_z_eq(TEXT(input, "kind", "enum", "1"), "b");
        check_z_eq(TEXT(input, "labels", "additionalProperties", "type", "1"), "null");
        check_u64_eq(json_array_size(AT(schemas, "Thing", "required")), 2);
        check_z_eq(TEXT(schemas, "Error", "required", "0"), "code");
        json_decref(doc);
}

static void test_an_empty_document(void **state)
{
        const struct http_api *const apis[] = { NULL };
        json_t *doc = made(apis);

        check_u64_eq(json_object_size(AT(doc, "paths")), 0);
        json_decref(doc);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_describes_operations),
                cmocka_unit_test(test_schemas_of_input_and_response),
                cmocka_unit_test(test_an_empty_document),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
