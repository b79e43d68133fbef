/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/launch.h"
#include "execd/path.h"
#include "execd/session.h"
#include "os/file.h"

/* As for commands: a long script fits. */
#define BODY_MAX (2 * MiB)

/* --- POST /session --- */

struct new_input {
        struct str cwd;
};

static const struct json_field new_fields[] = {
        JSON_STR(struct new_input, cwd, "cwd", JSON_NULL_OK),
        JSON_END,
};

static int make_cwd(struct http_req *req, struct str given, const char **ret, struct err *e)
{
        struct agent *a = agent_of(req);
        struct str path;
        int r;

        if (given.n == 0)
                return launch_cwd(a, &req->arena, given, ret, e);
        r = path_resolve(a, &req->arena, given, &path, e);
        if (r < 0)
                return err_wrap(e, "cwd");
        r = file_mkdirs(path.p, 0755, &FILE_ATTRS_KEEP, NULL, NULL);
        if (r < 0)
                return err_set(e, ERR_INVALID, "cwd: can't create the directory '%s': %s", path.p,
                               err_text(r));
        return launch_cwd(a, &req->arena, given, ret, e);
}

static void post_session(struct http_req *req)
{
        const struct new_input *in = req->input;
        struct agent *a = agent_of(req);
        struct session *s;
        const char *cwd = NULL;
        struct err e;
        int r;

        if (make_cwd(req, in->cwd, &cwd, &e) < 0) {
                http_reply_error(req, 400, CODE_INVALID_BODY, "%s", e.message);
                return;
        }
        r = session_new(&a->sessions, cwd, &s);
        if (r == -EMFILE && a->sessions.n >= SESSIONS_MAX)
                http_reply_error(req, 503, CODE_UNAVAILABLE,
                                 "there are %d sessions, which is the limit; delete some",
                                 SESSIONS_MAX);
        else if (r < 0)
                http_reply_error(req, 500, CODE_RUNTIME_ERROR,
                                 "can't create the session's directory in '%s': %s",
                                 a->config.state_dir.p, err_text(r));
        else
                http_reply(req, 200, STR("application/json"),
                           str_from(arena_printf(&req->arena, "{\"session_id\":\"%s\"}", s->id)));
}

/* --- POST /session/{id}/run --- */

struct run_input {
        struct str command, cwd;
        int64_t timeout; /* msec */
};

static const struct json_field run_fields[] = {
        JSON_STR(struct run_input, command, "command", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_STR(struct run_input, cwd, "cwd", JSON_NULL_OK),
        JSON_I64(struct run_input, timeout, "timeout", JSON_NULL_OK, JSON_MIN(0)),
        JSON_END,
};

static void post_run(struct http_req *req)
{
        const struct run_input *in = req->input;
        struct session *s = session_find(&agent_of(req)->sessions, req->params[0]);
        struct session_input *input = arena_new(&req->arena, struct session_input);

        if (!s) {
                http_reply_error(req, 500, CODE_RUNTIME_ERROR, "there is no session with that id");
                return;
        }
        if (!input) {
                http_reply_error(req, 400, CODE_INVALID_BODY, "the command is too large");
                return;
        }
        *input = (struct session_input){ .command = in->command, .cwd = in->cwd };
        if ((usec_t) in->timeout <= USEC_INFINITY / USEC_PER_MSEC)
                input->timeout = (usec_t) in->timeout * USEC_PER_MSEC;
        session_run(s, req, input);
}

/* --- DELETE /session/{id} --- */

static void delete_session(struct http_req *req)
{
        struct session *s = session_find(&agent_of(req)->sessions, req->params[0]);

        if (s)
                session_close(s, req);
        else
                http_reply_error(req, 404, CODE_CONTEXT_NOT_FOUND,
                                 "there is no session with that id");
}

static const struct http_route routes[] = {
        { METHOD_POST, "/session", .scope = SCOPE_TOKEN, HTTP_JSON(struct new_input, new_fields),
          .body_optional = true, .exec = post_session },
        { METHOD_POST, "/session/{id}/run", .scope = SCOPE_TOKEN,
          HTTP_JSON(struct run_input, run_fields), .body_max = BODY_MAX, .exec = post_run },
        { METHOD_DELETE, "/session/{id}", .scope = SCOPE_TOKEN, .exec = delete_session },
};

const struct http_api api_sessions = EXECD_API("sessions", routes);
