/* SPDX-License-Identifier: Apache-2.0 */
#include "api/call.h"
#include "api/opensandbox/opensandbox.h"
#include "api/opensandbox/query.h"
#include "api/opensandbox/sandbox_view.h"
#include "base/base.h"
#include "model/labels.h"

/* --- reading --- */

static void reply_sandbox(struct http_req *req, const struct sandbox *s)
{
        if (s)
                response_send(req, 200, sandbox_view_add, s);
        else
                api_fail_not_found(req);
}

static void get_sandbox(struct http_req *req)
{
        reply_sandbox(req, service_find(api_of(req)->service, api_caller(req), req->params[0]));
}

/* The shape of a list, for the OpenAPI document; write_page writes it without building one. */
struct listed {
        struct json_list items;
        struct pagination pagination;
};

static const struct json_field listed_fields[] = {
        JSON_LIST(struct listed, items, struct sandbox, "items", JSON_REQUIRED,
                  sandbox_view_fields),
        JSON_OBJECT(struct listed, pagination, struct pagination, "pagination", JSON_REQUIRED,
                    pagination_fields),
        JSON_END,
};

struct page {
        struct registry_page registry;
        struct pagination pagination;
};

static void write_page(struct buf *b, const void *data)
{
        const struct page *p = data;

        buf_add_str(b, STR("{\"items\":["));
        for (unsigned i = 0; i < p->registry.n; i++) {
                if (i > 0)
                        buf_add_char(b, ',');
                sandbox_view_add(b, p->registry.items[i]);
        }
        buf_add_str(b, STR("],\"pagination\":"));
        json_encode(b, pagination_fields, &p->pagination);
        buf_add_char(b, '}');
}

static void reply_page(struct http_req *req, const struct page *page)
{
        char stack[HTTP_COPY_MAX];
        struct str text = response_format(req, stack, write_page, page);

        if (text.p)
                http_reply(req, 200, STR("application/json"), text);
        else
                http_reply_error(req, 400, CODE_INVALID_PARAMETER,
                                 "this page is too large; request a smaller pageSize");
}

struct list_call {
        struct registry_list_all all;
        struct list_query query;
};

static void list_done(struct http_req *req, void *operation, int result)
{
        const struct list_call *c = operation;
        struct page page = { .registry = c->all.page };

        if (result < 0) {
                api_fail(req, &c->all.req.err, NULL);
                return;
        }
        page.pagination = paginate(c->query.page, c->query.page_size, page.registry.total);
        reply_page(req, &page);
}

static void list_sandboxes(struct http_req *req)
{
        struct service *service = api_of(req)->service;
        struct list_call *c;
        struct list_query q;
        struct page page;

        if (list_query_parse(req, &q) < 0)
                return;
        /* In a cluster the records of the other nodes come from the store. */
        if (!q.nothing && service_is_shared(service)) {
                c = api_call_new(req, struct list_call, all.req.op, list_done, API_CALL_DETACHED);
                if (!c)
                        return;
                c->query = q;
                c->all.query = q.registry;
                service_list_all(service, api_caller(req), &c->all);
                return;
        }
        page.registry.n = 0;
        page.registry.total = 0;
        if (!q.nothing)
                service_list(service, api_caller(req), &q.registry, &page.registry);
        page.pagination = paginate(q.page, q.page_size, page.registry.total);
        reply_page(req, &page);
}

/* --- commands --- */

/* One command of the service on the sandbox that the path names. */
struct command_kind {
        void (*start)(struct service *s, struct service_command *c);
        int status; /* of an empty response; 0: reply has the response */
        void (*reply)(struct http_req *req, const struct sandbox *record); /* NULL: it is gone */
        const char *invalid,
                *conflict; /* codes for ERR_INVALID and ERR_CONFLICT; NULL: the general ones */
};

struct command_call {
        struct service_command command;
        const struct command_kind *kind;
};

static void command_done(struct http_req *req, void *operation, int result)
{
        const struct command_call *c = operation;
        const struct service_req *r = &c->command.req;

        if (result < 0)
                api_fail_service(req, r,
                                 r->err.code == ERR_INVALID    ? c->kind->invalid
                                 : r->err.code == ERR_CONFLICT ? c->kind->conflict
                                                               : NULL);
        else if (c->kind->reply)
                c->kind->reply(req, r->record);
        else
                http_reply_empty(req, c->kind->status);
}

static void command_start(struct http_req *req, const struct command_kind *kind, usec_t expires,
                          struct json_map patch)
{
        struct command_call *c =
                api_call_new(req, struct command_call, command.req.op, command_done, 0);

        if (!c)
                return;
        c->kind = kind;
        c->command.caller = api_caller(req);
        c->command.id = req->params[0];
        c->command.expires = expires;
        c->command.patch = patch;
        kind->start(api_of(req)->service, &c->command);
}

struct renewed {
        struct str expires_at;
};

static const char *check_time(const void *v)
{
        usec_t wall;

        return expiry_parse_time(*(const struct str *) v, &wall) == 0
                       ? NULL
                       : "must be a time in RFC 3339 format";
}

static const struct json_field renew_fields[] = {
        JSON_STR(struct renewed, expires_at, "expiresAt", JSON_REQUIRED, .alias = "expires_at",
                 .check = check_time),
        JSON_END,
};

static const struct json_field renewed_fields[] = {
        JSON_STR(struct renewed, expires_at, "expiresAt", JSON_REQUIRED),
        JSON_STR(struct renewed, expires_at, "expires_at", JSON_REQUIRED),
        JSON_END,
};

static void reply_renewed(struct http_req *req, const struct sandbox *record)
{
        char text[TIME_RFC3339_MAX];
        struct renewed out;

        if (!record || !record->expiry) {
                api_fail_not_found(req);
                return;
        }
        out.expires_at = response_time(record->expiry->wall_ms, text);
        response_json(req, 200, renewed_fields, &out);
}

static void delete_sandbox(struct http_req *req)
{
        static const struct command_kind kind = { service_delete, .status = 204 };

        command_start(req, &kind, 0, (struct json_map){ 0 });
}

static void pause_sandbox(struct http_req *req)
{
        static const struct command_kind kind = { service_pause, .status = 202,
                                                  .conflict = CODE_NOT_RUNNING };

        command_start(req, &kind, 0, (struct json_map){ 0 });
}

static void resume_sandbox(struct http_req *req)
{
        static const struct command_kind kind = { service_resume, .status = 202,
                                                  .conflict = CODE_NOT_PAUSED };

        command_start(req, &kind, 0, (struct json_map){ 0 });
}

static void renew_sandbox(struct http_req *req)
{
        static const struct command_kind kind = { service_renew, .reply = reply_renewed,
                                                  .invalid = CODE_INVALID_EXPIRATION,
                                                  .conflict = CODE_INVALID_EXPIRATION };
        const struct renewed *in = req->input;
        usec_t expires;

        if (expiry_parse_time(in->expires_at, &expires) < 0)
                http_reply_error(req, 400, kind.invalid, "expiresAt is not a time");
        else
                command_start(req, &kind, expires, (struct json_map){ 0 });
}

static void patch_metadata(struct http_req *req)
{
        static const struct command_kind kind = { service_patch_metadata, .reply = reply_sandbox,
                                                  .invalid = CODE_INVALID_METADATA_LABEL };
        struct json_map patch;
        struct json_error e;

        if (labels_decode_patch(req->body, &req->arena, &patch, &e) < 0)
                api_fail_body(req, &e);
        else
                command_start(req, &kind, 0, patch);
}

/* --- routes --- */

static const struct http_doc_param create_params[] = {
        { "Idempotency-Key", .header = true,
          .text = "A repetition with the same key and body returns the same sandbox." },
        { 0 },
};

static const struct http_doc_param list_params[] = {
        { "state", HTTP_DOC_STRINGS, .text = "Any of these states." },
        { "metadata", HTTP_DOC_STRINGS, .text = "All of these labels: key=value, URL-encoded." },
        { "page", HTTP_DOC_INTEGER, .text = "From 1." },
        { "pageSize", HTTP_DOC_INTEGER, .text = "1 to 200; default 20." },
        { 0 },
};

#define TAG "Sandboxes"

static const uint16_t create_errors[] = { 400, 401, 403, 409, 413, 422, 429, 500, 501, 503, 0 };
static const uint16_t list_errors[] = { 400, 401, 422, 500, 503, 0 };
static const uint16_t one_errors[] = { 401, 404, 500, 503, 0 };
static const uint16_t change_errors[] = { 400, 401, 403, 404, 409, 422, 500, 501, 503, 0 };

API_DOC(create_doc, "createSandbox", "Create a sandbox", TAG, 202, "CreateSandboxResponse",
        sandbox_created_fields, .input_name = "CreateSandboxRequest", .params = create_params,
        .errors = create_errors);
API_DOC(list_doc, "listSandboxes", "List sandboxes, newest first", TAG, 200,
        "ListSandboxesResponse", listed_fields, .params = list_params, .errors = list_errors);
API_DOC(get_doc, "getSandbox", "Get a sandbox", TAG, 200, "Sandbox", sandbox_view_fields,
        .errors = one_errors);
API_DOC(delete_doc, "deleteSandbox", "Delete a sandbox", TAG, 204, .errors = change_errors);
API_DOC(patch_doc, "patchSandboxMetadata", "Set and delete labels", TAG, 200, "Sandbox",
        sandbox_view_fields, .input_name = "PatchSandboxMetadataRequest", .errors = change_errors);
API_DOC(pause_doc, "pauseSandbox", "Pause a sandbox, keeping its memory", TAG, 202,
        .errors = change_errors);
API_DOC(resume_doc, "resumeSandbox", "Resume a paused sandbox", TAG, 202, .errors = change_errors);
API_DOC(renew_doc, "renewSandboxExpiration", "Set when a sandbox expires", TAG, 200,
        "RenewSandboxExpirationResponse", renewed_fields,
        .input_name = "RenewSandboxExpirationRequest", .errors = change_errors);

#define ONE "/sandboxes/{sandboxId}"

static const struct http_route routes[] = {
        { METHOD_POST, "/sandboxes", API_WRITE, HTTP_JSON(struct create_request, create_fields),
          .doc = &create_doc, .exec = create_sandbox },
        { METHOD_GET, "/sandboxes", API_READ, .doc = &list_doc, .exec = list_sandboxes },
        { METHOD_GET, ONE, API_READ, .names = ROUTE_SANDBOX, .doc = &get_doc, .exec = get_sandbox },
        { METHOD_DELETE, ONE, API_WRITE, .names = ROUTE_SANDBOX, .doc = &delete_doc,
          .exec = delete_sandbox },
        { METHOD_PATCH, ONE "/metadata", API_WRITE, .names = ROUTE_SANDBOX,
          .body = HTTP_BODY_COLLECT, .doc = &patch_doc, .exec = patch_metadata },
        { METHOD_POST, ONE "/pause", API_WRITE, .names = ROUTE_SANDBOX, .doc = &pause_doc,
          .exec = pause_sandbox },
        { METHOD_POST, ONE "/resume", API_WRITE, .names = ROUTE_SANDBOX, .doc = &resume_doc,
          .exec = resume_sandbox },
        { METHOD_POST, ONE "/renew-expiration", API_WRITE, .names = ROUTE_SANDBOX,
          HTTP_JSON(struct renewed, renew_fields), .doc = &renew_doc, .exec = renew_sandbox },
};

OPENSANDBOX_API(opensandbox_sandboxes, "sandboxes", routes);
