/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/opensandbox.h"
#include "base/base.h"

/* Parts of the API that clients may call and that do nothing here. */

/* --- pools of Kubernetes pods: 501, in the words of other servers that have none --- */

static void no_pools(struct http_req *req)
{
        http_reply_error(req, 501, "KUBERNETES::POOL_NOT_SUPPORTED",
                         "this server has no pools: they need Kubernetes");
}

#define TAG "Pools"

static const uint16_t pool_errors[] = { 401, 403, 501, 0 };

API_DOC(create_doc, "createPool", "Create a pool", TAG, 201, .errors = pool_errors);
API_DOC(list_doc, "listPools", "List pools", TAG, 200, .errors = pool_errors);
API_DOC(get_doc, "getPool", "Get a pool", TAG, 200, .errors = pool_errors);
API_DOC(put_doc, "updatePool", "Change a pool's size", TAG, 200, .errors = pool_errors);
API_DOC(delete_doc, "deletePool", "Delete a pool", TAG, 204, .errors = pool_errors);

static const struct http_route pool_routes[] = {
        { METHOD_POST, "/pools", API_WRITE, .doc = &create_doc, .exec = no_pools },
        { METHOD_GET, "/pools", API_READ, .doc = &list_doc, .exec = no_pools },
        { METHOD_GET, "/pools/{poolName}", API_READ, .doc = &get_doc, .exec = no_pools },
        { METHOD_PUT, "/pools/{poolName}", API_WRITE, .doc = &put_doc, .exec = no_pools },
        { METHOD_DELETE, "/pools/{poolName}", API_WRITE, .doc = &delete_doc, .exec = no_pools },
};

OPENSANDBOX_API(opensandbox_pools, "pools", pool_routes);

/* --- clients report how long a create took: checked, then dropped; GET /metrics has our own numbers --- */

struct metrics_event {
        int event_type;
        struct str sandbox_id, image;
        int64_t create_duration_ms;
        bool success;
};

static const char *const event_types[] = { "sandbox.create" };
static const struct enum_table event_type_table = { event_types, ARRAY_SIZE(event_types) };

#define E struct metrics_event

static const struct json_field event_fields[] = {
        JSON_ENUM(E, event_type, "eventType", JSON_REQUIRED, &event_type_table,
                  .alias = "event_type"),
        JSON_STR(E, sandbox_id, "sandboxId", JSON_NULL_OK, .alias = "sandbox_id"),
        JSON_STR(E, image, "image", JSON_NULL_OK),
        JSON_I64(E, create_duration_ms, "createDurationMs", JSON_REQUIRED,
                 .alias = "create_duration_ms", JSON_MIN(0)),
        JSON_BOOL(E, success, "success", JSON_REQUIRED),
        JSON_END,
};

static void post_event(struct http_req *req)
{
        http_reply_empty(req, 204);
}

static const uint16_t event_errors[] = { 401, 403, 413, 422, 0 };

API_DOC(post_doc, "reportMetricsEvent", "Report how long a create took", "Metrics", 204,
        .input_name = "MetricsEvent", .errors = event_errors);

/* API_READ: it changes nothing, so the audit log leaves it out. A key of role read may not POST all the same. */
static const struct http_route event_routes[] = {
        { METHOD_POST, "/metrics/events", API_READ, HTTP_JSON(struct metrics_event, event_fields),
          .body_max = 16 * KiB, .doc = &post_doc, .exec = post_event },
};

OPENSANDBOX_API_V1(opensandbox_metrics_events, "metrics events", event_routes);
