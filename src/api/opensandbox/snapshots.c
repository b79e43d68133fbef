/* SPDX-License-Identifier: Apache-2.0 */
#include "api/response.h"
#include "api/opensandbox/list_query.h"
#include "api/opensandbox/opensandbox.h"
#include "api/opensandbox/pagination.h"
#include "api/query.h"
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

static struct str time_text(int64_t wall_ms, char ret[static TIME_RFC3339_MAX])
{
        return str_of(ret, time_to_rfc3339((usec_t) wall_ms * USEC_PER_MSEC, ret));
}

static void add_snapshot(struct buf *b, const struct snapshot *s)
{
        char created[TIME_RFC3339_MAX], changed[TIME_RFC3339_MAX];
        const struct snapshot_view x = {
                .id = s->id,
                .sandbox_id = s->sandbox_id,
                .name = s->name,
                .created_at = time_text(s->created_ms, created),
                .status = { .state = s->status.state,
                            .reason = s->status.reason,
                            .message = s->status.message,
                            .changed_at = time_text(s->status.changed_ms, changed) },
        };

        json_encode(b, snapshot_view_fields, &x);
}

static void write_snapshot(struct buf *b, const void *data)
{
        add_snapshot(b, data);
}

static void reply_snapshot(struct http_req *req, int status, const struct snapshot *s)
{
        if (response_write(req, status, write_snapshot, s) < 0)
                response_too_large(req);
}

/* --- looking --- */

static void get_snapshot(struct http_req *req)
{
        const struct snapshot *s =
                service_find_snapshot(api_of(req)->service, api_caller(req), req->params[0]);

        if (s)
                reply_snapshot(req, 200, s);
        else
                http_reply_error(req, 404, CODE_SNAPSHOT_NOT_FOUND, "there is no such snapshot");
}

/* What a list looks like, for the description; it is written without making one. */
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

/* A state that does not exist is the state of no snapshot. */
static int parse_states(struct http_req *req, unsigned *ret, bool *ret_nothing)
{
        struct str rest = req->query, text;
        bool any = false;
        int r;

        while ((r = query_get_each(req, &rest, "state", &text)) > 0) {
                int state = snapshot_state_from_string_any_case(text);

                any = true;
                if (state >= 0)
                        *ret |= STATE_SET(state);
        }
        *ret_nothing = any && *ret == 0;
        return r;
}

/* An empty filter is none, as in other servers of this API. */
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
            || parse_text(req, "name", &q.name) < 0 || parse_states(req, &q.states, &nothing) < 0)
                return;
        q.skip = (uint64_t) (number - 1) * (uint64_t) size;
        q.limit = (unsigned) size;
        if (!nothing)
                service_list_snapshots(api_of(req)->service, api_caller(req), &q, &page.found);
        page.pagination = paginate(number, size, page.found.total);
        if (response_write(req, 200, write_page, &page) < 0)
                response_too_large(req);
}

/* --- commands --- */

struct call {
        struct service_snapshot command;
        struct http_req *req;
        void (*reply)(struct http_req *req, const struct service_snapshot *x, int result);
};

static void call_done(struct op *op, int result)
{
        struct call *c = container_of(op, struct call, command.req.op);
        struct http_req *req = c->req;

        http_req_set_hooks(req, NULL, NULL);
        c->reply(req, &c->command, result);
        http_req_unref(req); /* `c` is in its arena */
}

static void call_abort(struct http_req *req, int reason)
{
        struct call *c = req->data;

        (void) reason;
        op_cancel(&c->command.req.op);
}

static const struct http_hooks call_hooks = { .abort = call_abort };

static struct call *call_new(struct http_req *req)
{
        struct call *c = arena_new(&req->arena, struct call);

        if (!c) {
                response_too_large(req);
                return NULL;
        }
        c->command.caller = api_caller(req);
        c->command.id = req->params[0];
        c->req = http_req_ref(req);
        op_init(&c->command.req.op, call_done);
        http_req_set_hooks(req, &call_hooks, c);
        return c;
}

static const char *create_code(enum err_code code)
{
        return code == ERR_CONFLICT      ? "SNAPSHOT::INVALID_SOURCE_STATE"
               : code == ERR_UNSUPPORTED ? "SNAPSHOT::NOT_IMPLEMENTED"
                                         : NULL;
}

static void created(struct http_req *req, const struct service_snapshot *x, int result)
{
        char *location;

        if (result < 0)
                return api_fail_service(req, &x->req, create_code(x->req.err.code));
        location = x->snapshot ? arena_printf(&req->arena, "/v1/snapshots/%.*s",
                                              STR_ARG(x->snapshot->id))
                               : NULL;
        if (!location)
                return response_too_large(req);
        http_res_header_const(req, STR("Location"), str_from(location));
        return reply_snapshot(req, 202, x->snapshot);
}

static void deleted(struct http_req *req, const struct service_snapshot *x, int result)
{
        enum err_code code = x->req.err.code;

        if (result == 0)
                return http_reply_empty(req, 204);
        return api_fail_service(req, &x->req,
                                code == ERR_NOT_FOUND  ? CODE_SNAPSHOT_NOT_FOUND
                                : code != ERR_CONFLICT ? NULL
                                : x->in_use            ? "SNAPSHOT::DELETE_CONFLICT"
                                                       : "SNAPSHOT::INVALID_STATE");
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

static const struct json_field create_fields_of_snapshot[] = {
        JSON_STR(struct create_input, name, "name", JSON_NULL_OK | JSON_NONEMPTY,
                 .check = check_name),
        JSON_END,
};

static void create_snapshot(struct http_req *req)
{
        const struct create_input *in = req->input;
        struct call *c = call_new(req);

        if (!c)
                return;
        c->reply = created;
        c->command.name = in->name;
        service_create_snapshot(api_of(req)->service, &c->command);
}

static void delete_snapshot(struct http_req *req)
{
        struct call *c = call_new(req);

        if (!c)
                return;
        c->reply = deleted;
        service_delete_snapshot(api_of(req)->service, &c->command);
}

/* --- routes --- */

#define TAG "Snapshots"

static const struct http_doc_param list_params[] = {
        { "sandboxId", .text = "Of this sandbox only." },
        { "name", .text = "With exactly this name." },
        { "state", HTTP_DOC_STRINGS, .text = "Any of these states." },
        { "page", HTTP_DOC_INTEGER, .text = "From 1 on." },
        { "pageSize", HTTP_DOC_INTEGER, .text = "1 to 200; 20 if it is not said." },
        { 0 },
};

static const uint16_t create_errors[] = { 400, 401, 403, 404, 409, 422, 429, 500, 501, 503, 0 };
static const uint16_t list_errors[] = { 400, 401, 422, 500, 503, 0 };
static const uint16_t one_errors[] = { 401, 404, 500, 503, 0 };
static const uint16_t delete_errors[] = { 401, 403, 404, 409, 500, 503, 0 };

static const struct http_doc create_doc = {
        "createSnapshot",
        "Keep the file system of a sandbox",
        TAG,
        202,
        "Snapshot",
        snapshot_view_fields,
        .input_name = "CreateSnapshotRequest",
        .errors = create_errors,
};
static const struct http_doc list_doc = {
        "listSnapshots",
        "List snapshots, newest first",
        TAG,
        200,
        "ListSnapshotsResponse",
        listed_fields,
        .params = list_params,
        .errors = list_errors,
};
static const struct http_doc get_doc = {
        "getSnapshot",        "Show one snapshot",  TAG, 200, "Snapshot",
        snapshot_view_fields, .errors = one_errors,
};
static const struct http_doc delete_doc = {
        "deleteSnapshot", "Delete a snapshot", TAG, 204, .errors = delete_errors,
};

static const struct http_route routes[] = {
        { METHOD_POST, "/sandboxes/{sandboxId}/snapshots", API_WRITE, ROUTE_SANDBOX,
          HTTP_JSON(struct create_input, create_fields_of_snapshot), .body_optional = true,
          .doc = &create_doc, .exec = create_snapshot },
        { METHOD_GET, "/snapshots", API_READ, .doc = &list_doc, .exec = list_snapshots },
        { METHOD_GET, "/snapshots/{snapshotId}", API_READ, .doc = &get_doc, .exec = get_snapshot },
        { METHOD_DELETE, "/snapshots/{snapshotId}", API_WRITE, .doc = &delete_doc,
          .exec = delete_snapshot },
};

OPENSANDBOX_API(opensandbox_snapshots, "snapshots", routes);
