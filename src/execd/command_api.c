/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>

#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/command.h"
#include "execd/launch.h"
#include "execd/spool.h"

/* More than the kernel accepts as arguments and environment. */
#define BODY_MAX (2 * MiB)
#define ENVS_MAX 65536
#define ARGV_MAX 65536

/* --- POST /command --- */

struct run_input {
        struct str command;
        struct json_strs argv;
        struct str cwd;
        bool background;
        int64_t timeout; /* msec */
        int64_t uid, gid;
        bool has_uid, has_gid;
        struct json_map envs;
        bool with_stdin;
        int output; /* enum output */
        bool attached;
};

/* How the output of a foreground command is encoded. */
enum output { OUTPUT_TEXT, OUTPUT_BASE64, OUTPUT_MAX_ };

static const char *const output_names[] = { [OUTPUT_TEXT] = "text", [OUTPUT_BASE64] = "base64" };
static const struct enum_table output_table = { output_names, OUTPUT_MAX_ };

static const char *check_envs(const void *v)
{
        const struct json_map *envs = v;

        for (size_t i = 0; i < envs->n; i++)
                if (!environment_name_is_valid(envs->items[i].key))
                        return "a name must not be empty or contain '='";
        return NULL;
}

static const struct json_field run_fields[] = {
        JSON_STR(struct run_input, command, "command", JSON_NULL_OK),
        JSON_STRS(struct run_input, argv, "argv", JSON_NULL_OK, .items_max = ARGV_MAX),
        JSON_STR(struct run_input, cwd, "cwd", JSON_NULL_OK),
        JSON_BOOL(struct run_input, background, "background", JSON_NULL_OK),
        JSON_I64(struct run_input, timeout, "timeout", JSON_NULL_OK, JSON_MIN(0)),
        JSON_I64(struct run_input, uid, "uid", JSON_NULL_OK, JSON_RANGE(0, UINT32_MAX - 1),
                 JSON_HAS(struct run_input, has_uid)),
        JSON_I64(struct run_input, gid, "gid", JSON_NULL_OK, JSON_RANGE(0, UINT32_MAX - 1),
                 JSON_HAS(struct run_input, has_gid)),
        JSON_MAP(struct run_input, envs, "envs", JSON_NULL_OK, .items_max = ENVS_MAX,
                 .check = check_envs),
        JSON_BOOL(struct run_input, with_stdin, "stdin", JSON_NULL_OK),
        JSON_ENUM(struct run_input, output, "output", JSON_NULL_OK, &output_table),
        JSON_BOOL(struct run_input, attached, "attached", JSON_NULL_OK),
        JSON_END,
};

/* The arguments joined by spaces, as far as the arena has room. */
static struct str join(struct arena *arena, const struct json_strs *argv)
{
        char *text = NULL;
        size_t n = 0;

        for (size_t i = 0; i < argv->n; i++) {
                struct str parts[] = { i ? STR(" ") : STR(""), argv->items[i] };

                for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
                        char *more = arena_append(arena, text, n, parts[k]);

                        if (!more)
                                return str_of(text ? text : "", n);
                        text = more;
                        n += parts[k].n;
                }
        }
        return str_of(text, n);
}

/* What has to run. ERR_INVALID or ERR_TOO_LARGE if the request cannot be carried out. */
static int make_request(struct http_req *req, const struct run_input *in,
                        struct command_request *ret, struct err *e)
{
        struct agent *a = agent_of(req);
        struct process_spec *p = &ret->process;
        struct str shell[] = { STR_NULL, STR("-c"), in->command };
        int r;

        if ((in->command.n > 0) == (in->argv.n > 0))
                return err_set(e, ERR_INVALID,
                               "exactly one of command and argv is needed, and not empty");
        if (in->argv.n > 0 && in->argv.items[0].n == 0)
                return err_set(e, ERR_INVALID, "argv[0]: is empty; name a program");
        if (in->has_gid && !in->has_uid)
                return err_set(e, ERR_INVALID, "gid: needs a uid");
        r = launch_cwd(a, &req->arena, in->cwd, &p->cwd, e);
        if (r < 0)
                return r;
        if (in->argv.n > 0) {
                p->argv = launch_argv(&req->arena, in->argv.items, in->argv.n);
        } else {
                shell[0] = str_from(launch_shell(a));
                p->argv = launch_argv(&req->arena, shell, ARRAY_SIZE(shell));
                /* The agent finds the shell, whatever PATH the request sets for the command. */
                p->search = spawn_search_path(a->env.vars);
        }
        p->envp = environment_build(&a->env, &req->arena, &in->envs);
        if (in->has_uid)
                p->user = launch_user(a, &req->arena, in->uid, in->has_gid ? in->gid : -1);
        if (!p->argv || !p->envp || (in->has_uid && !p->user))
                return err_set(e, ERR_TOO_LARGE, "command and environment are too large");
        if ((usec_t) in->timeout <= USEC_INFINITY / USEC_PER_MSEC)
                p->timeout = (usec_t) in->timeout * USEC_PER_MSEC;
        p->pipe_stdin = in->with_stdin;
        ret->background = in->background;
        ret->exact = in->output == OUTPUT_BASE64;
        ret->attached = in->attached;
        ret->content = in->argv.n ? join(&req->arena, &in->argv) : in->command;
        return 0;
}

static void post_command(struct http_req *req)
{
        struct command_request r = { 0 };
        struct err e;

        if (make_request(req, req->input, &r, &e) < 0)
                http_reply_error(req, 400, CODE_INVALID_BODY, "%s", e.message);
        else
                command_run(&agent_of(req)->commands, req, &r);
}

/* --- GET /command/status/{id} --- */

struct status_output {
        struct str id, content;
        bool running;
        int64_t exit_code;
        bool has_exit_code;
        struct str error, started_at, finished_at;
        int64_t output_dropped;
};

static const struct json_field status_fields[] = {
        JSON_STR(struct status_output, id, "id", 0),
        JSON_STR(struct status_output, content, "content", JSON_OMIT_EMPTY),
        JSON_BOOL(struct status_output, running, "running", 0),
        JSON_I64(struct status_output, exit_code, "exit_code", 0,
                 JSON_HAS(struct status_output, has_exit_code)),
        JSON_STR(struct status_output, error, "error", JSON_OMIT_EMPTY),
        JSON_STR(struct status_output, started_at, "started_at", 0),
        JSON_STR(struct status_output, finished_at, "finished_at", JSON_OMIT_EMPTY),
        JSON_I64(struct status_output, output_dropped, "output_dropped", JSON_OMIT_EMPTY),
        JSON_END,
};

/* NULL: has replied. */
static struct command *find_or_reply(struct http_req *req, int status)
{
        struct command *c = command_find(&agent_of(req)->commands, req->params[0]);

        if (!c)
                http_reply_error(
                        req, status, CODE_INVALID_BODY,
                        "there is no command with that id; its record may have been dropped");
        return c;
}

static void get_status(struct http_req *req)
{
        struct command *c = find_or_reply(req, 404);
        char started[TIME_RFC3339_MAX], finished[TIME_RFC3339_MAX], error[64];
        struct status_output out;
        scoped(buf_done) struct buf b;

        buf_init(&b, BUF_MAX_JSON);
        if (!c)
                return;
        out = (struct status_output){ .id = str_from(c->id),
                                      .content = str_from(c->content),
                                      .running = !c->finished };
        out.started_at = str_of(started, time_to_rfc3339(c->started, started));
        if (c->finished) {
                out.finished_at = str_of(finished, time_to_rfc3339(c->finished, finished));
                out.exit_code = process_exit_code(&c->result);
                out.has_exit_code = true;
                out.error = str_from(process_error_text(&c->result, error));
        }
        if (c->output)
                out.output_dropped = (int64_t) spool_start(c->output);
        json_encode(&b, status_fields, &out);
        http_reply(req, 200, STR("application/json"), arena_dup_str(&req->arena, buf_str(&b)));
}

/* --- GET /command/{id}/logs --- */

static void get_logs(struct http_req *req)
{
        struct command *c = find_or_reply(req, 400);

        if (c && !c->output)
                http_reply_error(req, 400, CODE_INVALID_BODY,
                                 "a foreground command keeps no logs; its output was streamed");
        else if (c)
                spool_reply(req, c->output);
}

/* --- DELETE /command?id= --- */

struct interrupt {
        struct command_waiter waiter;
        struct http_req *req;
};

static void interrupt_ended(struct command_waiter *w)
{
        struct interrupt *i = container_of(w, struct interrupt, waiter);
        struct http_req *req = i->req;

        http_req_set_hooks(req, NULL, NULL);
        http_reply_empty(req, 200);
        http_req_unref(req);
}

static void interrupt_abort(struct http_req *req, int reason)
{
        struct interrupt *i = req->data;

        (void) reason;
        list_remove(&i->waiter.node);
        http_req_unref(req);
}

static const struct http_hooks interrupt_hooks = { .abort = interrupt_abort };

/* The reply follows when the command has ended. */
static void delete_command(struct http_req *req)
{
        struct agent *a = agent_of(req);
        struct interrupt *i;
        struct session *s;
        struct command *c;
        struct str id;

        if (http_req_query(req, "id", &id) != 1 || id.n == 0) {
                http_reply_error(req, 400, CODE_MISSING_QUERY, "the query parameter id is missing");
                return;
        }
        c = command_find(&a->commands, id);
        s = c ? NULL : session_find(&a->sessions, id);
        if (s) {
                session_close(s, req);
                return;
        }
        i = c && c->process && !c->finished ? arena_new(&req->arena, struct interrupt) : NULL;
        if (!i) {
                http_reply_error(req, 500, CODE_RUNTIME_ERROR,
                                 c ? "the command is not running"
                                   : "there is no command or session with that id");
                return;
        }
        i->req = http_req_ref(req);
        i->waiter.ended = interrupt_ended;
        http_req_set_hooks(req, &interrupt_hooks, i);
        list_append(&c->waiters, &i->waiter.node);
        process_interrupt(c->process);
}

/* --- POST /command/{id}/signal --- */

struct signal_input {
        struct str name;
};

static const struct json_field signal_fields[] = {
        JSON_RAW(struct signal_input, name, "signal", JSON_REQUIRED),
        JSON_END,
};

/* JSON text: a number, or a name with or without SIG in any case. 0: neither. */
static int signal_from_json(struct str raw)
{
        uint64_t number;

        if (parse_u64_max(raw, SIGRTMAX, &number) == 0)
                return (int) number;
        if (raw.n < 2 || raw.p[0] != '"')
                return 0;
        raw = str_of(raw.p + 1, raw.n - 2);
        if (raw.n > 3 && str_caseeq(str_of(raw.p, 3), STR("SIG")))
                raw = str_skip(raw, 3);
        for (int sig = 1; sig < NSIG; sig++) {
                const char *name = sigabbrev_np(sig);

                if (name && str_caseeq(raw, str_from(name)))
                        return sig;
        }
        return parse_u64_max(raw, SIGRTMAX, &number) == 0 ? (int) number : 0;
}

static void post_signal(struct http_req *req)
{
        const struct signal_input *in = req->input;
        int sig = signal_from_json(in->name);
        struct command *c = find_or_reply(req, 404);

        if (!c)
                return;
        if (sig <= 0) {
                http_reply_error(req, 400, CODE_INVALID_BODY,
                                 "signal: neither the name of a signal (\"SIGINT\") nor a number");
                return;
        }
        if (c->finished || !c->process) {
                http_reply_error(req, 409, CODE_RUNTIME_ERROR, "the command is not running");
                return;
        }
        process_signal(c->process, sig);
        http_reply_empty(req, 200);
}

/* --- POST /command/{id}/stdin --- */

static void post_stdin(struct http_req *req)
{
        struct command *c = find_or_reply(req, 404);

        if (c)
                command_stdin(req, c);
}

static const struct http_route routes[] = {
        { METHOD_POST, "/command", .scope = SCOPE_TOKEN, HTTP_JSON(struct run_input, run_fields),
          .body_max = BODY_MAX, .exec = post_command },
        { METHOD_DELETE, "/command", .scope = SCOPE_TOKEN, .exec = delete_command },
        { METHOD_DELETE, "/code", .scope = SCOPE_TOKEN, .exec = delete_command },
        { METHOD_GET, "/command/status/{id}", .scope = SCOPE_TOKEN, .exec = get_status },
        { METHOD_GET, "/command/{id}/logs", .scope = SCOPE_TOKEN, .exec = get_logs },
        { METHOD_POST, "/command/{id}/signal", .scope = SCOPE_TOKEN,
          HTTP_JSON(struct signal_input, signal_fields), .exec = post_signal },
        { METHOD_POST, "/command/{id}/stdin", .scope = SCOPE_TOKEN, .body = HTTP_BODY_STREAM,
          .exec = post_stdin },
};

const struct http_api api_commands = EXECD_API("commands", routes);
