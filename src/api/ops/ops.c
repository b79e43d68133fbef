/* SPDX-License-Identifier: Apache-2.0 */
#include "api/ops/ops.h"

#include "api/access/access.h"
#include "api/response.h"
#include "base/base.h"

#define METRICS_MAX (256 * KiB)

static void get_health(struct http_req *req)
{
        http_reply(req, 200, STR("application/json"), STR("{\"status\":\"healthy\"}"));
}

static void get_version(struct http_req *req)
{
        http_reply(req, 200, STR("application/json"), STR("{\"version\":\"" HUTCH_VERSION "\"}"));
}

static void get_metrics(struct http_req *req)
{
        scoped(buf_done) struct buf b;
        struct str text;

        buf_init(&b, METRICS_MAX);
        metrics_write(&b, api_of(req), req->server);
        text = arena_dup_str(&req->arena, buf_str(&b));
        if (!text.p)
                api_fail_too_large(req);
        else
                http_reply(req, 200, STR("text/plain; version=0.0.4; charset=utf-8"), text);
}

static void get_openapi(struct http_req *req)
{
        const struct api *api = api_of(req); /* outlives the response */

        http_reply(req, 200, STR("application/json"), str_of(api->openapi, api->openapi_n));
}

/* --- routes --- */

struct one_text {
        struct str text;
};

static const struct json_field health_fields[] = {
        JSON_STR(struct one_text, text, "status", JSON_REQUIRED),
        JSON_END,
};

static const struct json_field version_fields[] = {
        JSON_STR(struct one_text, text, "version", JSON_REQUIRED),
        JSON_END,
};

#define TAG "Operations"

static const uint16_t metrics_errors[] = { 401, 403, 0 };

API_DOC(health_doc, "getHealth", "Check that the server is up", TAG, 200, "Health", health_fields);
API_DOC(version_doc, "getVersion", "Get the version", TAG, 200, "Version", version_fields);
API_DOC(metrics_doc, "getMetrics", "Get metrics in Prometheus' text format", TAG, 200,
        .response_type = "text/plain", .errors = metrics_errors);
API_DOC(openapi_doc, "getOpenapi", "Get this document", TAG, 200,
        .response_type = "application/json");

static const struct http_route routes[] = {
        { METHOD_GET, "/health", HTTP_SCOPE_PUBLIC, .doc = &health_doc, .exec = get_health },
        { METHOD_GET, "/version", HTTP_SCOPE_PUBLIC, .doc = &version_doc, .exec = get_version },
        { METHOD_GET, "/openapi.json", HTTP_SCOPE_PUBLIC, .doc = &openapi_doc,
          .exec = get_openapi },
        { METHOD_GET, "/metrics", API_ADMIN, .doc = &metrics_doc, .exec = get_metrics },
};

const struct http_api api_ops = {
        .name = "ops",
        .prefix = "",
        .routes = routes,
        .n_routes = ARRAY_SIZE(routes),
        .authorize = access_authorize,
};
