/* SPDX-License-Identifier: Apache-2.0 */
#include "api/purista/call.h"
#include "base/base.h"

/* routes[i] serves purista_commands[i]; the last serves any of them, for bridges. */
static const struct http_route routes[PURISTA_COMMAND_MAX_ + 1];

static void add_input(struct buf *b, const struct http_route *route)
{
        purista_command_add_input(b, &purista_commands[route - routes], /* over_http= */ true);
}

static void add_output(struct buf *b, const struct http_route *route)
{
        buf_add_str(b, str_from(purista_commands[route - routes].output));
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
                           .exec = purista_serve },
        PURISTA_COMMAND_MAP(X)
#undef X
                { METHOD_POST, "/purista/command", API_BRIDGE, .body = HTTP_BODY_STREAM,
                  .doc = &bridge_doc, .exec = purista_serve },
};

const struct http_api purista_api = {
        .name = "purista",
        .prefix = "/api/v1",
        .routes = routes,
        .n_routes = ARRAY_SIZE(routes),
        .shape = purista_shape,
        .authorize = access_authorize,
};
