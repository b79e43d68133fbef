/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/api.h"

#include "base/base.h"
#include "execd/agent.h"
#include "execd/codes.h"

#define PROTOCOL 1 /* grows when an answer changes in a way that hutchd must know of */

const struct http_api *const api_tables[] = {
        /* clang-format off */
        &api_commands,
        &api_directories_make,
        &api_entrypoint,
        &api_files,
        &api_files_download,
        &api_files_info,
        &api_files_move,
        &api_files_replace,
        &api_files_upload,
        &api_git,
        &api_health,
        &api_metrics,
        &api_proxy,
        &api_sessions,
        &api_directories,
        &api_tunnel,
        &api_unavailable,
        NULL,
        /* clang-format on */
};

/* --- what all tables share --- */

int api_authorize(struct http_req *req, uint32_t scope)
{
        struct agent *a = agent_of(req);

        (void) scope;
        agent_schedule_trim(a);
        if (!a->config.token
            || secret_matches(a->config.token, http_req_header(req, STR("X-EXECD-ACCESS-TOKEN"))))
                return 0;
        http_reply(req, 401, STR("application/json"),
                   STR("{\"error\":\"Unauthorized: invalid or missing header "
                       "X-EXECD-ACCESS-TOKEN\"}"));
        return -EACCES;
}

/* What the engine itself has to say (no such path, body too large …) has words of its own; clients
 * know only those of codes.h. */
static const char *known_code(int status, const char *code)
{
        static const char *const known[] = {
                CODE_INVALID_BODY,   CODE_MISSING_QUERY,   CODE_RUNTIME_ERROR,
                CODE_INVALID_FILE,   CODE_INVALID_CONTENT, CODE_INVALID_METADATA,
                CODE_FILE_NOT_FOUND, CODE_UNKNOWN,         CODE_CONTEXT_NOT_FOUND,
                CODE_NOT_SUPPORTED,  CODE_UNAVAILABLE,     CODE_SESSION_NOT_FOUND,
        };

        for (size_t i = 0; i < ARRAY_SIZE(known); i++)
                if (strcmp(code, known[i]) == 0)
                        return known[i];
        return status == 400 || status == 413 ? CODE_INVALID_BODY : CODE_UNKNOWN;
}

struct str api_shape(struct http_req *req, const struct http_problem *p, struct buf *ret_body)
{
        (void) req;
        buf_add_str(ret_body, STR("{\"code\":"));
        buf_add_quoted(ret_body, str_from(known_code(p->status, p->code)));
        buf_add_str(ret_body, STR(",\"message\":"));
        buf_add_quoted(ret_body, str_from(p->message));
        buf_add_char(ret_body, '}');
        return STR("application/json");
}

void api_invalid(struct http_req *req, const struct json_error *e)
{
        http_reply_error(req, 400, CODE_INVALID_BODY, "%s", e->message);
}

/* --- health --- */

/* Content-Length: 0 and not an empty chunked body: old JavaScript clients wait for the latter. */
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
