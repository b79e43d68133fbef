/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/api.h"

#include "base/base.h"
#include "execd/agent.h"
#include "execd/path.h"

/* Incremented when a response changes in a way that hutchd has to know of. */
#define PROTOCOL 1

const struct http_api *const api_tables[] = {
        /* clang-format off */
        &api_archive_download,
        &api_archive_upload,
        &api_commands,
        &api_directories,
        &api_entrypoint,
        &api_files,
        &api_files_download,
        &api_files_replace,
        &api_files_upload,
        &api_git,
        &api_health,
        &api_metrics,
        &api_proxy,
        &api_sessions,
        &api_tunnel,
        &api_unavailable,
        NULL,
        /* clang-format on */
};

/* --- callbacks of the route tables --- */

/* Is called for each request. Shortly after the last one, memory that malloc holds is returned to the kernel, so
 * that an agent that was busy costs no more memory than one that was not. */
int api_authorize(struct http_req *req, uint32_t scope)
{
        struct agent *a = agent_of(req);

        (void) scope;
        if (!a->trim.kind)
                timeout_set(&a->trim, &a->trims);
        if (!a->config.token
            || secret_matches(a->config.token, http_req_header(req, STR("X-EXECD-ACCESS-TOKEN"))))
                return 0;
        http_reply(req, 401, STR("application/json"),
                   STR("{\"error\":\"Unauthorized: invalid or missing header "
                       "X-EXECD-ACCESS-TOKEN\"}"));
        return -EACCES;
}

/* The HTTP engine's own errors (no such route, body too large) have codes that clients do not know. */
struct str api_shape(struct http_req *req, const struct http_problem *p, struct buf *ret_body)
{
        static const char *const known[] = {
                CODE_INVALID_BODY,   CODE_MISSING_QUERY,   CODE_RUNTIME_ERROR,
                CODE_INVALID_FILE,   CODE_INVALID_CONTENT, CODE_INVALID_METADATA,
                CODE_FILE_NOT_FOUND, CODE_UNKNOWN,         CODE_CONTEXT_NOT_FOUND,
                CODE_NOT_SUPPORTED,  CODE_UNAVAILABLE,     CODE_SESSION_NOT_FOUND,
        };
        const char *code = p->status == 400 || p->status == 413 ? CODE_INVALID_BODY : CODE_UNKNOWN;

        (void) req;
        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (strcmp(p->code, known[i]) == 0)
                        code = known[i];
        buf_add_str(ret_body, STR("{\"code\":"));
        buf_add_quoted(ret_body, str_from(code));
        buf_add_str(ret_body, STR(",\"message\":"));
        buf_add_quoted(ret_body, str_from(p->message));
        buf_add_char(ret_body, '}');
        return STR("application/json");
}

void api_invalid(struct http_req *req, const struct json_error *e)
{
        http_reply_error(req, 400, CODE_INVALID_BODY, "%s", e->message);
}

/* --- error replies --- */

void problem_reply(struct http_req *req, const struct err *e)
{
        if (e->os_errno == ENOENT)
                http_reply_error(req, 404, CODE_FILE_NOT_FOUND, "%s", e->message);
        else if (e->os_errno == 0 && (e->code == ERR_INVALID || e->code == ERR_EXHAUSTED))
                http_reply_error(req, 400, CODE_INVALID_BODY, "%s", e->message);
        else
                http_reply_error(req, 500, CODE_RUNTIME_ERROR, "%s", e->message);
}

void problem_reply_errno(struct http_req *req, int r, const char *fmt, ...)
{
        char room[ERR_MESSAGE_MAX];
        struct buf text;
        struct err e;
        va_list ap;

        buf_init_fixed(&text, room, sizeof(room));
        va_start(ap, fmt);
        buf_vaddf(&text, fmt, ap);
        va_end(ap);
        (void) err_errno(&e, r, "%.*s", STR_ARG(buf_str(&text)));
        problem_reply(req, &e);
}

void problem_reply_file(struct http_req *req, int r, const char *verb, struct str path)
{
        if (r == -EINVAL)
                http_reply_error(req, 500, CODE_RUNTIME_ERROR, "%s '%.*s': not a regular file",
                                 verb, PROBLEM_PATH(path));
        else
                problem_reply_errno(req, r, "%s '%.*s'", verb, PROBLEM_PATH(path));
}

/* --- query parameters --- */

int query_refuse(struct http_req *req)
{
        http_reply_error(req, 400, CODE_INVALID_BODY, "the query is not properly percent-encoded");
        return -EINVAL;
}

int query_path(struct http_req *req, struct str *ret)
{
        struct str given = STR_NULL;
        struct err e;
        int r = http_req_query(req, "path", &given);

        if (r < 0)
                return query_refuse(req);
        if (given.n == 0) {
                http_reply_error(req, 400, CODE_MISSING_QUERY, "missing query parameter 'path'");
                return -EINVAL;
        }
        r = path_resolve(agent_of(req), &req->arena, given, ret, &e);
        if (r < 0)
                problem_reply(req, &e);
        return r;
}

bool query_is_true(struct http_req *req, const char *name)
{
        struct str text;

        return http_req_query(req, name, &text) == 1
               && (str_eq(text, STR("true")) || str_eq(text, STR("1")));
}

/* --- health --- */

/* Content-Length: 0 instead of an empty chunked body, which old JavaScript clients wait for. */
static void get_ping(struct http_req *req)
{
        http_reply_empty(req, 200);
}

static void get_version(struct http_req *req)
{
        const char *text = arena_printf(&req->arena,
                                        "{\"name\":\"hutch-execd\",\"version\":\"%s\","
                                        "\"protocol\":%d,\"build\":\"%s\"}",
                                        HUTCH_VERSION, PROTOCOL, HUTCH_BUILD);

        http_reply(req, 200, STR("application/json"), str_from(text));
}

static const struct http_route routes[] = {
        { METHOD_GET, "/ping", .scope = SCOPE_TOKEN, .exec = get_ping },
        { METHOD_GET, "/version", .scope = SCOPE_TOKEN, .exec = get_version },
};

const struct http_api api_health = EXECD_API("health", routes);
