/* SPDX-License-Identifier: Apache-2.0 */
#include "api/ops/ops.h"
#include "base/base.h"
#include "http/status.h"

/*
 * The OpenAPI 3.1 document, generated from the route tables: paths and methods are the router's, bodies the decoder's,
 * responses the encoder's, texts those of struct http_doc. So it can't differ from what the server does. Routes without a
 * doc are left out; tables that are served under /v1 and without it are described once, under /v1.
 */

enum schema_direction {
        SCHEMA_INPUT,    /* what is decoded */
        SCHEMA_RESPONSE, /* what is encoded */
};

/* --- JSON schemas of field tables --- */

static bool is_left_out(const struct json_field *f, enum schema_direction direction)
{
        return f->flags & (direction == SCHEMA_INPUT ? JSON_NO_DECODE : JSON_NO_ENCODE);
}

static void add_members(struct buf *b, const struct json_field *fields,
                        enum schema_direction direction);
static void add_object_schema(struct buf *b, const struct json_field *fields,
                              enum schema_direction direction);

static void add_type(struct buf *b, const struct json_field *f, enum schema_direction direction)
{
        static const char *const plain[] = {
                [JSON_T_STR] = "\"type\":\"string\"",
                [JSON_T_BOOL] = "\"type\":\"boolean\"",
                [JSON_T_STRS] = "\"type\":\"array\",\"items\":{\"type\":\"string\"}",
                [JSON_T_RAW] = "",
        };
        const char *separator = "";

        if (f->type < ARRAY_SIZE(plain) && plain[f->type]) {
                buf_add_str(b, str_from(plain[f->type]));
        } else if (f->type == JSON_T_I64) {
                buf_add_str(b, STR("\"type\":\"integer\",\"format\":\"int64\""));
                if (f->limited)
                        buf_addf(b, ",\"minimum\":%lld", (long long) f->min_value);
                if (f->limited && f->max_value != INT64_MAX)
                        buf_addf(b, ",\"maximum\":%lld", (long long) f->max_value);
        } else if (f->type == JSON_T_ENUM) {
                buf_add_str(b, STR("\"type\":\"string\",\"enum\":["));
                for (int i = 0; i < f->table->n; i++) {
                        const char *name = enum_to_string(f->table, i);

                        if (!name)
                                continue;
                        buf_addf(b, "%s\"%s\"", separator, name);
                        separator = ",";
                }
                buf_add_char(b, ']');
        } else if (f->type == JSON_T_MAP) {
                buf_addf(b, "\"type\":\"object\",\"additionalProperties\":{\"type\":%s}",
                         f->flags & JSON_MAP_NULLS ? "[\"string\",\"null\"]" : "\"string\"");
        } else if (f->type == JSON_T_LIST) {
                buf_add_str(b, STR("\"type\":\"array\",\"items\":"));
                add_object_schema(b, f->fields, direction);
        } else {
                add_members(b, f->fields, direction);
        }
}

static void add_members(struct buf *b, const struct json_field *fields,
                        enum schema_direction direction)
{
        const char *separator = "";
        bool any = false;

        buf_add_str(b, STR("\"type\":\"object\",\"properties\":{"));
        for (const struct json_field *f = fields; f->type != JSON_T_END; f++) {
                if (is_left_out(f, direction))
                        continue;
                buf_addf(b, "%s\"%s\":{", separator, f->name);
                add_type(b, f, direction);
                buf_add_char(b, '}');
                separator = ",";
        }
        buf_add_char(b, '}');
        for (const struct json_field *f = fields; f->type != JSON_T_END; f++) {
                if (!(f->flags & JSON_REQUIRED) || is_left_out(f, direction))
                        continue;
                buf_addf(b, "%s\"%s\"", any ? "," : ",\"required\":[", f->name);
                any = true;
        }
        if (any)
                buf_add_char(b, ']');
}

static void add_object_schema(struct buf *b, const struct json_field *fields,
                              enum schema_direction direction)
{
        buf_add_char(b, '{');
        add_members(b, fields, direction);
        buf_add_char(b, '}');
}

/* --- the routes --- */

struct operation {
        const struct http_api *api;
        const struct http_route *route;
};

struct operations {
        struct operation *v;
        size_t n;
};

/* Whether the same table is also served under a longer prefix. */
static bool has_longer_prefix(const struct http_api *const *apis, const struct http_api *api)
{
        for (; *apis; apis++)
                if ((*apis)->routes == api->routes && strlen((*apis)->prefix) > strlen(api->prefix))
                        return true;
        return false;
}

static int by_path(const void *a, const void *b)
{
        const struct operation *x = a, *y = b;
        int r = strcmp(x->api->prefix, y->api->prefix);

        if (r == 0)
                r = strcmp(x->route->pattern, y->route->pattern);
        return r != 0 ? r : (int) x->route->method - (int) y->route->method;
}

static struct operations collect(const struct http_api *const *apis)
{
        struct operations all = { 0 };

        for (const struct http_api *const *a = apis; *a; a++) {
                if ((*a)->claims || has_longer_prefix(apis, *a))
                        continue;
                all.v = xrealloc(all.v, all.n + (*a)->n_routes, sizeof(*all.v));
                for (size_t i = 0; i < (*a)->n_routes; i++)
                        if ((*a)->routes[i].doc && (*a)->routes[i].method < METHOD_OTHER)
                                all.v[all.n++] = (struct operation){ *a, &(*a)->routes[i] };
        }
        if (all.n > 0)
                qsort(all.v, all.n, sizeof(*all.v), by_path);
        return all;
}

/* --- parts of an operation --- */

static void add_member(struct buf *b, const char *name, const char *value)
{
        buf_addf(b, "\"%s\":", name);
        buf_add_quoted(b, str_from(value));
}

static void add_ref(struct buf *b, const char *name)
{
        buf_addf(b, "{\"$ref\":\"#/components/schemas/%s\"}", name);
}

static void add_content(struct buf *b, const char *type)
{
        buf_add_str(b, STR(",\"content\":{"));
        buf_add_quoted(b, str_from(type));
        buf_add_str(b, STR(":{\"schema\":"));
}

/* The next {name} of the pattern. */
static bool next_path_param(struct str *rest, struct str *ret)
{
        ssize_t open = str_find(*rest, '{'), close = str_find(*rest, '}');

        if (open < 0 || close < open)
                return false;
        *ret = str_of(rest->p + open + 1, (size_t) (close - open - 1));
        *rest = str_skip(*rest, (size_t) close + 1);
        return true;
}

static void add_params(struct buf *b, const struct http_route *r)
{
        static const char *const types[] = {
                [HTTP_DOC_STRING] = "{\"type\":\"string\"}",
                [HTTP_DOC_INTEGER] = "{\"type\":\"integer\"}",
                [HTTP_DOC_BOOLEAN] = "{\"type\":\"boolean\"}",
                [HTTP_DOC_STRINGS] = "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}",
        };
        struct str rest = str_from(r->pattern), name;
        bool first = true;

        buf_add_str(b, STR(",\"parameters\":["));
        for (; next_path_param(&rest, &name); first = false) {
                buf_addf(b, "%s{\"name\":\"%.*s\",\"in\":\"path\",\"required\":true,\"schema\":%s}",
                         first ? "" : ",", STR_ARG(name), types[HTTP_DOC_STRING]);
        }
        for (const struct http_doc_param *p = r->doc->params; p && p->name; p++, first = false) {
                buf_addf(b, "%s{\"name\":\"%s\",\"in\":\"%s\",\"required\":%s,", first ? "" : ",",
                         p->name, p->header ? "header" : "query", p->required ? "true" : "false");
                add_member(b, "description", p->text ? p->text : "");
                buf_addf(b, ",\"schema\":%s}", types[p->type]);
        }
        buf_add_char(b, ']');
}

static void add_input(struct buf *b, const struct http_route *r)
{
        if (!r->doc->input_name)
                return;
        buf_addf(b, ",\"requestBody\":{\"required\":%s", r->body_optional ? "false" : "true");
        add_content(b, "application/json");
        add_ref(b, r->doc->input_name);
        buf_add_str(b, STR("}}}"));
}

static void add_responses(struct buf *b, const struct http_doc *d)
{
        buf_addf(b, ",\"responses\":{\"%d\":{", d->status);
        add_member(b, "description", http_status_text(d->status).p);
        if (d->response_name) {
                add_content(b, "application/json");
                if (d->response_is_list)
                        buf_add_str(b, STR("{\"type\":\"array\",\"items\":"));
                add_ref(b, d->response_name);
                buf_add_str(b, d->response_is_list ? STR("}}}") : STR("}}"));
        } else if (d->response_type) {
                add_content(b, d->response_type);
                buf_add_str(b, STR("{\"type\":\"string\"}}}"));
        }
        buf_add_char(b, '}');
        for (const uint16_t *status = d->errors; status && *status; status++) {
                buf_addf(b, ",\"%u\":{", *status);
                add_member(b, "description", http_status_text(*status).p);
                add_content(b, "application/json");
                add_ref(b, *status == 422 ? "ValidationError" : "Error");
                buf_add_str(b, STR("}}}"));
        }
        buf_add_char(b, '}');
}

static void add_operation(struct buf *b, const struct http_route *r)
{
        buf_add_char(b, '"');
        for (const char *p = http_method_to_string((int) r->method); *p; p++)
                buf_add_char(b, (char) (*p + ('a' - 'A')));
        buf_add_str(b, STR("\":{"));
        add_member(b, "operationId", r->doc->id);
        buf_add_char(b, ',');
        add_member(b, "summary", r->doc->summary);
        if (r->doc->tag) {
                buf_add_str(b, STR(",\"tags\":["));
                buf_add_quoted(b, str_from(r->doc->tag));
                buf_add_char(b, ']');
        }
        if (r->scope == HTTP_SCOPE_PUBLIC)
                buf_add_str(b, STR(",\"security\":[]"));
        add_params(b, r);
        add_input(b, r);
        add_responses(b, r->doc);
        buf_add_char(b, '}');
}

/* --- the document --- */

/* A schema is written where its name occurs first. */
static bool is_first(const struct operations *all, size_t at, const char *name)
{
        for (size_t i = 0; i < at; i++) {
                const struct http_doc *d = all->v[i].route->doc;

                if ((d->response_name && strcmp(d->response_name, name) == 0)
                    || (d->input_name && strcmp(d->input_name, name) == 0))
                        return false;
        }
        return true;
}

static void add_schema(struct buf *b, const struct http_route *r, enum schema_direction direction)
{
        bool input = direction == SCHEMA_INPUT;
        http_doc_schema_fn *add = input ? r->doc->add_input : r->doc->add_response;
        const struct json_field *fields = input ? r->fields : r->doc->response;

        buf_addf(b, ",\"%s\":", input ? r->doc->input_name : r->doc->response_name);
        if (add)
                add(b, r);
        else if (fields)
                add_object_schema(b, fields, direction);
        else /* labels: the body is the map itself */
                buf_add_str(b, STR("{\"type\":\"object\",\"additionalProperties\":{\"type\":"
                                   "[\"string\",\"null\"]}}"));
}

static void add_schemas(struct buf *b, const struct operations *all)
{
        buf_add_str(b,
                    STR("\"schemas\":{\"Error\":{\"type\":\"object\",\"properties\":{\"code\":"
                        "{\"type\":\"string\"},\"message\":{\"type\":\"string\"}},\"required\":["
                        "\"code\",\"message\"]},\"ValidationError\":{\"type\":\"object\","
                        "\"properties\":{\"detail\":{\"type\":\"array\",\"items\":{\"type\":"
                        "\"object\",\"properties\":{\"type\":{\"type\":\"string\"},\"loc\":"
                        "{\"type\":\"array\",\"items\":{}},\"msg\":{\"type\":\"string\"}},"
                        "\"required\":[\"type\",\"loc\",\"msg\"]}}},\"required\":[\"detail\"]}"));
        for (size_t i = 0; i < all->n; i++) {
                const struct http_route *r = all->v[i].route;

                if (r->doc->response_name && is_first(all, i, r->doc->response_name))
                        add_schema(b, r, SCHEMA_RESPONSE);
                if (r->doc->input_name && is_first(all, i, r->doc->input_name))
                        add_schema(b, r, SCHEMA_INPUT);
        }
        buf_add_char(b, '}');
}

void openapi_write(struct buf *b, const struct http_api *const *apis)
{
        struct operations all = collect(apis);

        buf_add_str(
                b,
                STR("{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Hutch\",\"version\":\"" HUTCH_VERSION
                    "\",\"description\":\"The lifecycle API is also served "
                    "without /v1.\"},\"servers\":[{\"url\":\"/\"}],"
                    "\"security\":[{\"apiKeyAuth\":[]}],\"paths\":{"));
        for (size_t i = 0; i < all.n; i++) {
                const struct operation *p = &all.v[i], *before = i > 0 ? p - 1 : NULL;
                bool same = before && strcmp(before->api->prefix, p->api->prefix) == 0
                            && strcmp(before->route->pattern, p->route->pattern) == 0;

                if (same)
                        buf_add_char(b, ',');
                else
                        buf_addf(b, "%s\"%s%s\":{", i > 0 ? "}," : "", p->api->prefix,
                                 p->route->pattern);
                add_operation(b, p->route);
        }
        buf_add_str(b, all.n > 0 ? STR("}}") : STR("}"));
        buf_add_str(b, STR(",\"components\":{\"securitySchemes\":{\"apiKeyAuth\":{\"type\":"
                           "\"apiKey\",\"in\":\"header\",\"name\":\"OPEN-SANDBOX-API-KEY\"}},"));
        add_schemas(b, &all);
        buf_add_str(b, STR("}}"));
        free(all.v);
}
