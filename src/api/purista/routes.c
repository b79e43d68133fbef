/* SPDX-License-Identifier: Apache-2.0 */
#include "api/purista/call.h"
#include "base/base.h"

/* --- over HTTP: the path and the query are part of the payload --- */

static struct caller caller_of(const struct http_req *req)
{
        struct caller caller = *api_caller(req);

        /* Commands obey ownership: an administrator's key is a caller like any other. */
        caller.role = ROLE_USER;
        caller.all_tenants = false;
        return caller;
}

/* The query of a request without a body, as a payload. A badly encoded parameter is left out. */
static json_t *query_payload(struct http_req *req, const struct purista_command *command)
{
        json_t *doc = json_object();

        for (const struct purista_field *f = command->fields; f->name; f++) {
                struct str value;

                if (f->in_url && f->member != PURISTA_SANDBOX_ID
                    && http_req_query(req, f->name, &value) == 1)
                        (void) json_object_set_new(doc, f->name, json_stringn(value.p, value.n));
        }
        return doc;
}

static void run_http(struct purista_call *c)
{
        const struct http_req *req = c->req;

        c->caller = caller_of(req);
        purista_call_run(c, c->doc, NULL,
                         req->route->names == ROUTE_OWNED_SANDBOX ? req->params[0] : STR_NULL);
}

static const struct http_route routes[PURISTA_COMMAND_MAX_ + 1];

/* routes[i] serves purista_commands[i]. */
static const struct purista_command *command_of(const struct http_route *route)
{
        return &purista_commands[route - routes];
}

static void serve_command(struct http_req *req)
{
        struct purista_call *c = purista_call_new(req);

        if (!c)
                return;
        c->command = command_of(req->route);
        if (req->route->body == HTTP_BODY_STREAM) {
                purista_call_read_body(c, run_http);
                return;
        }
        c->doc = query_payload(req, c->command);
        run_http(c);
}

/* --- for bridges --- */

/* Absent and null are the same: a message without that member. False after a response. */
static bool get_member(struct purista_call *c, const char *name, struct str *ret)
{
        const json_t *v = json_object_get(c->doc, name);

        *ret = STR("");
        if (!v || json_is_null(v))
                return true;
        if (json_is_string(v)) {
                *ret = str_of(json_string_value(v), json_string_length(v));
                return true;
        }
        c->bridged = false;
        purista_fail(c, 400, "%s: expected a string", name);
        return false;
}

static void run_bridged(struct purista_call *c)
{
        struct str command;

        if (!json_is_object(c->doc)) {
                purista_fail(c, 400, "expected {command, tenantId, principalId, payload}");
                return;
        }
        c->bridged = true;
        c->caller = caller_of(c->req);
        if (!get_member(c, "command", &command) || !get_member(c, "tenantId", &c->caller.tenant)
            || !get_member(c, "principalId", &c->caller.principal))
                return;
        c->command = purista_command_find(command);
        if (!c->command) {
                purista_fail(c, 501, "Sandbox version 1 has no such command");
                return;
        }
        purista_call_run(c, json_object_get(c->doc, "payload"),
                         json_object_get(c->doc, "parameter"), STR_NULL);
}

static void serve_bridge(struct http_req *req)
{
        struct purista_call *c = purista_call_new(req);

        if (c)
                purista_call_read_body(c, run_bridged);
}

/* --- the table --- */

static void add_input(struct buf *b, const struct http_route *route)
{
        purista_command_add_input(b, command_of(route), /* over_http= */ true);
}

static void add_output(struct buf *b, const struct http_route *route)
{
        buf_add_str(b, str_from(command_of(route)->output));
}

static const uint16_t errors[] = { 400, 401, 403, 404, 409, 413, 429, 500, 501, 503, 504, 0 };

static const struct http_doc_param project_param[] = {
        { "projectId", .text = "If given, must be the project of the sandbox." },
        { 0 },
};

static const struct http_doc_param read_params[] = {
        { "path", .required = true, .text = "A relative path starts in the working directory." },
        { "projectId", .text = "If given, must be the project of the sandbox." },
        { 0 },
};

#define DOC(name, text, ...)                                                                    \
        {                                                                                       \
                "purista" name, text, "PURISTA", 200, .errors = errors, .add_input = add_input, \
                                                      .add_response = add_output, ##__VA_ARGS__ \
        }
#define BODY(name)   .input_name = "Purista" name "Request"
#define RESULT(name) .response_name = "Purista" name

static const struct http_doc docs[PURISTA_COMMAND_MAX_] = {
        [PURISTA_CREATE_SANDBOX] = DOC("CreateSandbox",
                                       "Create the owner's sandbox; 409 if there is one",
                                       BODY("CreateSandbox"), RESULT("Sandbox")),
        [PURISTA_ENSURE_SANDBOX] = DOC("EnsureSandbox", "Return the owner's sandbox, healthy",
                                       BODY("EnsureSandbox"), RESULT("EnsuredSandbox")),
        [PURISTA_DESTROY_SANDBOX] = DOC("DestroySandbox", "Delete the owner's sandbox",
                                        RESULT("Destroyed"), .params = project_param),
        [PURISTA_EXECUTE_BASH] = DOC("ExecuteBash", "Run a command in a shell", BODY("ExecuteBash"),
                                     RESULT("Result")),
        [PURISTA_READ_FILE] = DOC("ReadFile", "Read a file as a JSON string; 204 if it is empty",
                                  .params = read_params),
        [PURISTA_WRITE_FILES] =
                DOC("WriteFiles", "Write files", BODY("WriteFiles"), RESULT("Updated")),
};

API_DOC(bridge_doc, "puristaCommand", "Any of these on behalf of others: for hutch-bridge",
        "PURISTA", 200, .errors = errors);

#define BODY_POST     HTTP_BODY_STREAM
#define BODY_GET      HTTP_BODY_IGNORE
#define BODY_DELETE   HTTP_BODY_IGNORE
#define NAMES_OWNER   0
#define NAMES_SANDBOX ROUTE_OWNED_SANDBOX

static const struct http_route routes[PURISTA_COMMAND_MAX_ + 1] = {
#define X(id, name, verb, path, target, ...)           \
        [PURISTA_##id] = { METHOD_##verb,              \
                           path,                       \
                           API_WRITE,                  \
                           .body = BODY_##verb,        \
                           .names = NAMES_##target,    \
                           .doc = &docs[PURISTA_##id], \
                           .exec = serve_command },
        PURISTA_COMMAND_MAP(X)
#undef X
                { METHOD_POST, "/purista/command", API_BRIDGE, .body = HTTP_BODY_STREAM,
                  .doc = &bridge_doc, .exec = serve_bridge },
};

const struct http_api purista_api = {
        .name = "purista",
        .prefix = "/api/v1",
        .routes = routes,
        .n_routes = ARRAY_SIZE(routes),
        .shape = purista_shape,
        .authorize = access_authorize,
};
