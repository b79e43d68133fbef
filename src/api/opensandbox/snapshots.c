/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call.h"
#include "api/opensandbox/opensandbox.h"
#include "api/opensandbox/query.h"
#include "base/base.h"
#include "model/limits.h"

/* --- what is snapshot_view --- */

struct status_view {
        int state;
        struct str reason, message, changed_at;
};

static const struct json_field status_view_fields[] = {
        JSON_ENUM(struct status_view, state, "state", JSON_REQUIRED, &snapshot_state_table),
        JSON_STR(struct status_view, reason, "reason", 0),
        JSON_STR(struct status_view, message, "message", 0),
        JSON_STR(struct status_view, changed_at, "lastTransitionAt", 0),
        JSON_END,
};

struct snapshot_view {
        struct str id, sandbox_id, name, created_at;
        struct status_view status;
};

static const struct json_field snapshot_view_fields[] = {
        JSON_STR(struct snapshot_view, id, "id", JSON_REQUIRED),
        JSON_STR(struct snapshot_view, sandbox_id, "sandboxId", JSON_REQUIRED),
        JSON_STR(struct snapshot_view, name, "name", 0),
        JSON_OBJECT(struct snapshot_view, status, struct status_view, "status", JSON_REQUIRED,
                    status_view_fields),
        JSON_STR(struct snapshot_view, created_at, "createdAt", JSON_REQUIRED),
        JSON_END,
};

/* A response_fn for a struct snapshot. */
static void add_snapshot(struct buf *b, const void *snapshot)
{
        const struct snapshot *s = snapshot;
        char created[TIME_RFC3339_MAX], changed[TIME_RFC3339_MAX];
        const struct snapshot_view x = {
                .id = s->id,
                .sandbox_id = s->sandbox_id,
                .name = s->name,
                .created_at = response_time(s->created_ms, created),
                .status = { .state = s->status.state,
                            .reason = s->status.reason,
                            .message = s->status.message,
                            .changed_at = response_time(s->status.changed_ms, changed) },
        };

        json_encode(b, snapshot_view_fields, &x);
}

/* --- reading --- */

static void get_snapshot(struct http_req *req)
{
        const struct snapshot *s =
                service_find_snapshot(api_of(req)->service, api_caller(req), req->params[0]);

        if (s)
                response_send(req, 200, add_snapshot, s);
        else
                http_reply_error(req, 404, CODE_SNAPSHOT_NOT_FOUND, "there is no such snapshot");
}

/* The shape of a list, for the OpenAPI document; write_page writes it without building one. */
struct listed {
        struct json_list items;
        struct pagination pagination;
};

static const struct json_field listed_fields[] = {
        JSON_LIST(struct listed, items, struct snapshot_view, "items", JSON_REQUIRED,
                  snapshot_view_fields),
        JSON_OBJECT(struct listed, pagination, struct pagination, "pagination", JSON_REQUIRED,
                    pagination_fields),
        JSON_END,
};

struct page {
        struct snapshots_page found;
        struct pagination pagination;
};

static void write_page(struct buf *b, const void *data)
{
        const struct page *p = data;

        buf_add_str(b, STR("{\"items\":["));
        for (unsigned i = 0; i < p->found.n; i++) {
                if (i > 0)
                        buf_add_char(b, ',');
                add_snapshot(b, p->found.items[i]);
        }
        buf_add_str(b, STR("],\"pagination\":"));
        json_encode(b, pagination_fields, &p->pagination);
        buf_add_char(b, '}');
}

/* An empty filter counts as none, as on other servers of this API. */
static int parse_text(struct http_req *req, const char *name, struct str *ret)
{
        int r = query_get(req, name, ret);

        if (r > 0 && ret->n == 0)
                *ret = STR_NULL;
        return r;
}

static void list_snapshots(struct http_req *req)
{
        struct snapshots_query q = { 0 };
        struct page page = { 0 };
        int64_t number, size;
        bool nothing = false;

        if (list_query_page(req, &number, &size) < 0
            || parse_text(req, "sandboxId", &q.sandbox_id) < 0
            || parse_text(req, "name", &q.name) < 0
            || list_query_states(req, &snapshot_state_table, &q.states, &nothing) < 0)
                return;
        q.skip = (uint64_t) (number - 1) * (uint64_t) size;
        q.limit = (unsigned) size;
        if (!nothing)
                service_list_snapshots(api_of(req)->service, api_caller(req), &q, &page.found);
        page.pagination = paginate(number, size, page.found.total);
        response_send(req, 200, write_page, &page);
}

/* --- commands --- */

static void create_done(struct http_req *req, void *operation, int result)
{
        const struct service_snapshot *x = operation;
        enum err_code code = x->req.err.code;
        char *location;

        if (result < 0) {
                api_fail_service(req, &x->req,
                                 code == ERR_CONFLICT      ? "SNAPSHOT::INVALID_SOURCE_STATE"
                                 : code == ERR_UNSUPPORTED ? "SNAPSHOT::NOT_IMPLEMENTED"
                                                           : NULL);
                return;
        }
        location = x->snapshot ? arena_printf(&req->arena, "/v1/snapshots/%.*s",
                                              STR_ARG(x->snapshot->id))
                               : NULL;
        if (!location) {
                api_fail_too_large(req);
                return;
        }
        http_res_header_const(req, STR("Location"), str_from(location));
        response_send(req, 202, add_snapshot, x->snapshot);
}

static void delete_done(struct http_req *req, void *operation, int result)
{
        const struct service_snapshot *x = operation;
        enum err_code code = x->req.err.code;

        if (result == 0)
                http_reply_empty(req, 204);
        else
                api_fail_service(req, &x->req,
                                 code == ERR_NOT_FOUND  ? CODE_SNAPSHOT_NOT_FOUND
                                 : code != ERR_CONFLICT ? NULL
                                 : x->in_use            ? "SNAPSHOT::DELETE_CONFLICT"
                                                        : "SNAPSHOT::INVALID_STATE");
}

static struct service_snapshot *snapshot_call(struct http_req *req, api_call_done_fn *done)
{
        struct service_snapshot *x = api_call_new(req, struct service_snapshot, req.op, done, 0);

        if (x) {
                x->caller = api_caller(req);
                x->id = req->params[0];
        }
        return x;
}

struct create_input {
        struct str name;
};

static const char *check_name(const void *v)
{
        return snapshot_name_is_valid(*(const struct str *) v)
                       ? NULL
                       : "must be 1 to 128 bytes of text without control characters";
}

static const struct json_field create_input_fields[] = {
        JSON_STR(struct create_input, name, "name", JSON_NULL_OK | JSON_NONEMPTY,
                 .check = check_name),
        JSON_END,
};

static void create_snapshot(struct http_req *req)
{
        const struct create_input *in = req->input;
        struct service_snapshot *x = snapshot_call(req, create_done);

        if (!x)
                return;
        x->name = in->name;
        service_create_snapshot(api_of(req)->service, x);
}

static void delete_snapshot(struct http_req *req)
{
        struct service_snapshot *x = snapshot_call(req, delete_done);

        if (x)
                service_delete_snapshot(api_of(req)->service, x);
}

/* --- routes --- */

#define TAG "Snapshots"

static const struct http_doc_param list_params[] = {
        { "sandboxId", .text = "Of this sandbox only." },
        { "name", .text = "With exactly this name." },
        { "state", HTTP_DOC_STRINGS, .text = "Any of these states." },
        { "page", HTTP_DOC_INTEGER, .text = "From 1." },
        { "pageSize", HTTP_DOC_INTEGER, .text = "1 to 200; default 20." },
        { 0 },
};

static const uint16_t create_errors[] = { 400, 401, 403, 404, 409, 422, 429, 500, 501, 503, 0 };
static const uint16_t list_errors[] = { 400, 401, 422, 500, 503, 0 };
static const uint16_t one_errors[] = { 401, 404, 500, 503, 0 };
static const uint16_t delete_errors[] = { 401, 403, 404, 409, 500, 503, 0 };

API_DOC(create_doc, "createSnapshot", "Create a snapshot of the file system of a sandbox", TAG, 202,
        "Snapshot", snapshot_view_fields, .input_name = "CreateSnapshotRequest",
        .errors = create_errors);
API_DOC(list_doc, "listSnapshots", "List snapshots, newest first", TAG, 200,
        "ListSnapshotsResponse", listed_fields, .params = list_params, .errors = list_errors);
API_DOC(get_doc, "getSnapshot", "Get a snapshot", TAG, 200, "Snapshot", snapshot_view_fields,
        .errors = one_errors);
API_DOC(delete_doc, "deleteSnapshot", "Delete a snapshot", TAG, 204, .errors = delete_errors);

static const struct http_route routes[] = {
        { METHOD_POST, "/sandboxes/{sandboxId}/snapshots", API_WRITE, .names = ROUTE_SANDBOX,
          HTTP_JSON(struct create_input, create_input_fields), .body_optional = true,
          .doc = &create_doc, .exec = create_snapshot },
        { METHOD_GET, "/snapshots", API_READ, .doc = &list_doc, .exec = list_snapshots },
        { METHOD_GET, "/snapshots/{snapshotId}", API_READ, .doc = &get_doc, .exec = get_snapshot },
        { METHOD_DELETE, "/snapshots/{snapshotId}", API_WRITE, .doc = &delete_doc,
          .exec = delete_snapshot },
};

OPENSANDBOX_API(opensandbox_snapshots, "snapshots", routes);
