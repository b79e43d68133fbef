/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/opensandbox.h"
#include "base/base.h"

/*
 * Clients tell here how long a create took, as they saw it. It is checked and then forgotten: our own
 * numbers (GET /metrics) do not depend on what a client says of itself.
 */

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

static const uint16_t errors[] = { 401, 403, 413, 422, 0 };

static const struct http_doc post_doc = {
        "reportMetricsEvent",
        "Tell how long a create took",
        "Metrics",
        204,
        .input_name = "MetricsEvent",
        .errors = errors,
};

/* It changes nothing, so it is none of those that are recorded. A reader may not POST all the same. */
static const struct http_route routes[] = {
        { METHOD_POST, "/metrics/events", API_READ, HTTP_JSON(struct metrics_event, event_fields),
          .body_max = 16 * KiB, .doc = &post_doc, .exec = post_event },
};

OPENSANDBOX_API_V1(opensandbox_metrics_events, "metrics events", routes);
