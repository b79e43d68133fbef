/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parts of the documented API that this agent does not implement. Clients get what the documentation promises
 * for an agent without that part: creating something fails with a code that they know, lists are empty,
 * and nothing is found.
 */

#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"

static void no_runtime(struct http_req *req)
{
        http_reply_error(req, 500, CODE_RUNTIME_ERROR,
                         "language runtime server not configured; run programs with /command");
}

static void no_terminal(struct http_req *req)
{
        http_reply_error(req, 503, CODE_NOT_SUPPORTED,
                         "this agent has no terminals; run programs with /command or /session");
}

static void no_isolation(struct http_req *req)
{
        http_reply_error(
                req, 503, CODE_UNAVAILABLE,
                "isolated sessions are not available; the sandbox itself is the isolation");
}

static void no_such_context(struct http_req *req)
{
        http_reply_error(req, 404, CODE_CONTEXT_NOT_FOUND, "there is no such context");
}

static void empty_list(struct http_req *req)
{
        http_reply(req, 200, STR("application/json"), STR("[]"));
}

static void no_sessions(struct http_req *req)
{
        http_reply(req, 200, STR("application/json"), STR("{\"sessions\":[]}"));
}

static void delete_contexts(struct http_req *req)
{
        struct str language;

        if (http_req_query(req, "language", &language) <= 0 || language.n == 0)
                http_reply_error(req, 400, CODE_MISSING_QUERY,
                                 "missing query parameter 'language'");
        else
                http_reply_empty(req, 200);
}

static void no_capabilities(struct http_req *req)
{
        http_reply(
                req, 200, STR("application/json"),
                STR("{\"available\":false,\"message\":\"isolated sessions are not available; the "
                    "sandbox itself is the isolation\",\"setpriv_available\":false,"
                    "\"userns_available\":false,\"commit_supported\":false,"
                    "\"diff_supported\":false}"));
}

#define NONE(verb, path, handler)                                                    \
        {                                                                            \
                METHOD_##verb, path, .scope = SCOPE_TOKEN, .body = HTTP_BODY_IGNORE, \
                                     .exec = (handler)                               \
        }

/* DELETE /code?id= is in command_api.c: it interrupts commands. */
static const struct http_route routes[] = {
        NONE(POST, "/code", no_runtime),
        NONE(POST, "/code/context", no_runtime),
        NONE(GET, "/code/contexts", empty_list),
        NONE(DELETE, "/code/contexts", delete_contexts),
        NONE(GET, "/code/contexts/{id}", no_such_context),
        NONE(DELETE, "/code/contexts/{id}", no_such_context),
        NONE(POST, "/pty", no_terminal),
        NONE(GET, "/pty/{id}", no_such_context),
        NONE(DELETE, "/pty/{id}", no_such_context),
        NONE(GET, "/pty/{id}/ws", no_such_context),
        NONE(GET, "/v1/isolated/capabilities", no_capabilities),
        NONE(GET, "/v1/isolated/sessions", no_sessions),
        NONE(ANY, "/v1/isolated/{rest...}", no_isolation),
};

const struct http_api api_unavailable = EXECD_API("unavailable", routes);
