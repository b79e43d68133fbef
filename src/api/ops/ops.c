/* SPDX-License-Identifier: Apache-2.0 */
#include "api/ops/ops.h"

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
        struct http_server_stats stats = http_server_stats(req->server);
        scoped(buf_done) struct buf b;
        struct str text;

        buf_init(&b, METRICS_MAX);
        api_metrics_write(&b, &stats);
        text = arena_dup_str(&req->arena, buf_str(&b));
        if (!text.p)
                http_reply_error(req, 500, "INTERNAL_ERROR", "out of memory");
        else
                http_reply(req, 200, STR("text/plain; version=0.0.4; charset=utf-8"), text);
}

static const struct http_route routes[] = {
        { METHOD_GET, "/health", .scope = HTTP_SCOPE_PUBLIC, .exec = get_health },
        { METHOD_GET, "/version", .scope = HTTP_SCOPE_PUBLIC, .exec = get_version },
        { METHOD_GET, "/metrics", .scope = HTTP_SCOPE_PUBLIC, .exec = get_metrics },
};

const struct http_api api_ops = {
        .name = "ops",
        .prefix = "",
        .routes = routes,
        .n_routes = ARRAY_SIZE(routes),
};
