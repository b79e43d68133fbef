/* SPDX-License-Identifier: Apache-2.0 */
#include "api/purista/call.h"
#include "base/base.h"

#define ONE "/sandbox/{sandboxId}"

/* --- over HTTP: the path and the query belong to the payload --- */

static struct caller caller_of(const struct http_req *req)
{
        struct caller caller = *api_caller(req);

        /* Ownership is what counts here, for administrators as well. */
        caller.role = ROLE_USER;
        caller.all_tenants = false;
        return caller;
}

/* What a request without a body says in its query. One that is badly encoded is none. */
static json_t *query_doc(struct http_req *req)
{
        static const char *const names[] = { "projectId", "path" };
        json_t *doc = json_object();

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                struct str value;

                if (http_req_query(req, names[i], &value) == 1)
                        (void) json_object_set_new(doc, names[i], json_stringn(value.p, value.n));
        }
        return doc;
}

static void run(struct purista_call *c)
{
        bool has_id = str_starts_with(str_from(c->req->route->pattern), STR(ONE));

        c->caller = caller_of(c->req);
        purista_call_run(c, c->doc, has_id ? c->req->params[0] : STR_NULL);
}

static void serve(struct http_req *req, const char *command)
{
        struct purista_call *c = purista_call_new(req);

        if (!c)
                return;
        c->command = purista_command_find(str_from(command));
        if (req->method == METHOD_POST) {
                purista_call_read_body(c, run);
                return;
        }
        c->doc = query_doc(req);
        run(c);
}

static void post_sandbox(struct http_req *req)
{
        serve(req, "createSandbox");
}

static void post_ensure(struct http_req *req)
{
        serve(req, "ensureSandbox");
}

static void delete_sandbox(struct http_req *req)
{
        serve(req, "destroySandbox");
}

static void post_bash(struct http_req *req)
{
        serve(req, "executeBash");
}

static void get_file(struct http_req *req)
{
        serve(req, "readFile");
}

static void post_files(struct http_req *req)
{
        serve(req, "writeFiles");
}

/* --- for bridges --- */

/* Absent and null are the same here: a message that has no such member. False after an answer. */
static bool member_of(struct purista_call *c, const char *name, struct str *ret)
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
        purista_fail(c, 400, "%s: expected a text", name);
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
        if (!member_of(c, "command", &command) || !member_of(c, "tenantId", &c->caller.tenant)
            || !member_of(c, "principalId", &c->caller.principal))
                return;
        c->command = purista_command_find(command);
        if (!c->command) {
                purista_fail(c, 501, "Sandbox version 1 has no such command");
                return;
        }
        purista_call_run(c, json_object_get(c->doc, "payload"), STR_NULL);
}

static void post_command(struct http_req *req)
{
        struct purista_call *c = purista_call_new(req);

        if (c)
                purista_call_read_body(c, run_bridged);
}

/* --- the table --- */

#define TAG "PURISTA"

struct made {
        struct str sandbox_id, status;
        bool created;
};

static const struct json_field made_fields[] = {
        JSON_STR(struct made, sandbox_id, "sandboxId", JSON_REQUIRED),
        JSON_STR(struct made, status, "status", JSON_REQUIRED),
        JSON_END,
};

static const struct json_field ensured_fields[] = {
        JSON_STR(struct made, sandbox_id, "sandboxId", JSON_REQUIRED),
        JSON_STR(struct made, status, "status", JSON_REQUIRED),
        JSON_BOOL(struct made, created, "created", JSON_REQUIRED),
        JSON_END,
};

struct ended {
        struct str sandbox_id;
        bool destroyed;
};

static const struct json_field ended_fields[] = {
        JSON_STR(struct ended, sandbox_id, "sandboxId", JSON_REQUIRED),
        JSON_BOOL(struct ended, destroyed, "destroyed", JSON_REQUIRED),
        JSON_END,
};

struct ran {
        struct str out, err;
        int64_t exit_code;
};

static const struct json_field ran_fields[] = {
        JSON_STR(struct ran, out, "stdout", JSON_REQUIRED),
        JSON_STR(struct ran, err, "stderr", JSON_REQUIRED),
        JSON_I64(struct ran, exit_code, "exitCode", JSON_REQUIRED),
        JSON_END,
};

struct updated {
        int64_t updated;
};

static const struct json_field updated_fields[] = {
        JSON_I64(struct updated, updated, "updated", JSON_REQUIRED),
        JSON_END,
};

static const uint16_t errors[] = { 400, 401, 403, 404, 409, 413, 429, 500, 501, 503, 504, 0 };

static const struct http_doc_param project_param[] = {
        { "projectId", .text = "Must be the sandbox's own, if it is given." },
        { 0 },
};

static const struct http_doc_param read_params[] = {
        { "path", .required = true, .text = "Relative ones begin in the working folder." },
        { "projectId", .text = "Must be the sandbox's own, if it is given." },
        { 0 },
};

#define DOC(var, id, text, name, fields, ...)                                     \
        static const struct http_doc var = {                                      \
                id, text, TAG, 200, name, fields, .errors = errors, ##__VA_ARGS__ \
        }

DOC(create_doc, "puristaCreateSandbox", "Make the owner's sandbox; 409 if there is one",
    "PuristaSandbox", made_fields);
DOC(ensure_doc, "puristaEnsureSandbox", "Give the owner his sandbox, healthy",
    "PuristaEnsuredSandbox", ensured_fields);
DOC(destroy_doc, "puristaDestroySandbox", "Delete the owner's sandbox", "PuristaDestroyed",
    ended_fields, .params = project_param);
DOC(bash_doc, "puristaExecuteBash", "Run a command in a shell", "PuristaResult", ran_fields);
DOC(read_doc, "puristaReadFile", "Read a file as a JSON string; 204 if it is empty", NULL, NULL,
    .params = read_params);
DOC(write_doc, "puristaWriteFiles", "Write files", "PuristaUpdated", updated_fields);
DOC(command_doc, "puristaCommand", "Any of these on behalf of others: for hutch-bridge", NULL,
    NULL);

static const struct http_route routes[] = {
        { METHOD_POST, "/sandbox", API_WRITE, .body = HTTP_BODY_STREAM, .doc = &create_doc,
          .exec = post_sandbox },
        { METHOD_POST, "/sandbox/ensure", API_WRITE, .body = HTTP_BODY_STREAM, .doc = &ensure_doc,
          .exec = post_ensure },
        { METHOD_DELETE, ONE, API_WRITE, .doc = &destroy_doc, .exec = delete_sandbox },
        { METHOD_POST, ONE "/bash", API_WRITE, .body = HTTP_BODY_STREAM, .doc = &bash_doc,
          .exec = post_bash },
        { METHOD_GET, ONE "/file", API_WRITE, .doc = &read_doc, .exec = get_file },
        { METHOD_POST, ONE "/files", API_WRITE, .body = HTTP_BODY_STREAM, .doc = &write_doc,
          .exec = post_files },
        { METHOD_POST, "/purista/command", API_BRIDGE, .body = HTTP_BODY_STREAM,
          .doc = &command_doc, .exec = post_command },
};

const struct http_api purista_api = {
        .name = "purista",
        .prefix = "/api/v1",
        .routes = routes,
        .n_routes = ARRAY_SIZE(routes),
        .shape = purista_shape,
        .authorize = access_authorize,
};
