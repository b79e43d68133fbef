/* SPDX-License-Identifier: Apache-2.0 */

/* The six commands: each checks what the caller may do, starts an operation of the service, and writes the response. */

#include "api/forward.h"
#include "api/purista/call.h"
#include "api/response.h"
#include "base/base.h"
#include "model/extensions.h"

#define AWAIT_MAX     (60 * USEC_PER_SEC) /* for a sandbox that is being created or resumed */
#define FILES_TIMEOUT (120 * USEC_PER_SEC)

static struct service *service_of(const struct purista_call *c)
{
        return api_of(c->req)->service;
}

/* For the access and audit logs, which are written after the call is freed. */
static void log_sandbox(struct purista_call *c, struct str id)
{
        struct str copy = arena_dup_str(&c->req->arena, id);

        if (copy.p)
                log_ctx_add_str(&c->req->log, "sandbox", copy);
}

/* --- createSandbox, ensureSandbox --- */

static const struct str keep_running[] = { STR("tail"), STR("-f"), STR("/dev/null") };

static int make_create_request(struct purista_call *c)
{
        const struct purista_config *config = &c->config;
        struct create_request *w = &c->request;
        const struct json_pair named[] = { { EXTENSION_NETWORK, config->network },
                                           { STR("hutch.driver"), config->driver } };
        struct create_image *image = arena_new(&c->arena, struct create_image);
        struct json_pair *x = arena_alloc_array(&c->arena, ARRAY_SIZE(named), sizeof(*x));

        if (!image || !x)
                return -ENOMEM;
        image->uri = config->image;
        w->image = image;
        w->entrypoint = (struct json_strs){ (struct str *) keep_running, ARRAY_SIZE(keep_running) };
        w->resource_limits = config->limits;
        if (!w->resource_limits.items)
                w->resource_limits.items = x; /* an empty map: without one the request is invalid */
        w->extensions.items = x;
        for (size_t i = 0; i < ARRAY_SIZE(named); i++)
                if (named[i].value.p)
                        x[w->extensions.n++] = named[i];
        return 0;
}

static void add_started_event(struct purista_call *c)
{
        struct purista_text *t = &c->out;

        purista_text_add(t, STR(",\"events\":[{\"name\":\"SandboxStarted\",\"payload\":"));
        purista_text_add_member(t, "{", "sandboxId", str_from(c->u.ensure.id));
        purista_text_add_member(t, ",", "organizationId", c->owner.organization_id);
        purista_text_add_member(t, ",", "projectId", c->owner.project_id);
        purista_text_add_member(t, ",", "userId", c->owner.user_id);
        purista_text_add(t, STR("}}]"));
}

static void ensure_done(struct op *op, int result)
{
        struct purista_call *c = container_of(op, struct purista_call, u.ensure.req.op);
        const struct service_ensure *x = &c->u.ensure;

        if (!purista_call_continue(c))
                return;
        if (x->id[0])
                log_sandbox(c, str_from(x->id));
        if (result < 0 && x->remote_node.id[0] && forward_is_allowed(c->req)) {
                purista_call_forward(c, &x->remote_node);
        } else if (result == 0) {
                purista_response_begin(c);
                purista_text_add_member(&c->out, "{", "sandboxId", str_from(x->id));
                purista_text_addf(&c->out, ",\"status\":\"%s\"", x->created ? "starting" : "ready");
                if (!x->must_be_new)
                        purista_text_addf(&c->out, ",\"created\":%s",
                                          x->created ? "true" : "false");
                purista_text_add(&c->out, STR("}"));
                if (x->created && c->bridged)
                        add_started_event(c);
                purista_response_end(c);
        } else if (result == ERR_RETURN(ERR_EXISTS) && x->other_id[0]) {
                purista_fail_begin(c, 409,
                                   "Sandbox %s already exists for this owner. Use ensureSandbox "
                                   "to reuse it.",
                                   x->other_id);
                purista_text_addf(&c->out, "{\"sandboxId\":\"%s\"}", x->other_id);
                purista_response_end(c);
        } else {
                purista_fail_service(c, &x->req);
        }
}

static void start_ensure(struct purista_call *c)
{
        struct service_ensure *x = &c->u.ensure;

        c->owner = (struct owner){ .organization_id = c->caller.tenant,
                                   .project_id = c->in.project_id,
                                   .user_id = c->caller.principal,
                                   .scope = c->in.scope };
        if (make_create_request(c) < 0) {
                purista_fail(c, 413, "the request does not fit into memory");
                return;
        }
        x->caller = &c->caller;
        x->owner = &c->owner;
        x->request = &c->request;
        x->arena = &c->arena;
        x->git = c->in.has_git ? &c->in.git : NULL;
        x->must_be_new = c->command == &purista_commands[PURISTA_CREATE_SANDBOX];
        purista_call_wait(c, &x->req.op, ensure_done);
        service_ensure(service_of(c), x);
}

/* --- commands on one sandbox --- */

static void fail_not_found(struct purista_call *c)
{
        char id[PURISTA_PRINTABLE_MAX];

        purista_fail(c, 404, "Sandbox %s not found in registry",
                     purista_printable(c->in.sandbox_id, id));
}

static int find_owned(struct purista_call *c)
{
        const struct owned which = { &c->caller, c->in.sandbox_id, c->in.project_id };
        struct err e;

        return service_find_owned(service_of(c), &which, &c->record, &e);
}

static bool find_or_fail(struct purista_call *c)
{
        int r = find_owned(c);

        if (r == 0) {
                log_sandbox(c, c->in.sandbox_id);
        } else if (r == ERR_RETURN(ERR_FORBIDDEN)) {
                purista_fail_begin(c, 403, "Caller is not allowed to access this sandbox.");
                purista_text_add_member(&c->out, "{", "sandboxId", c->in.sandbox_id);
                purista_text_add_member(&c->out, ",", "organizationId", c->caller.tenant);
                purista_text_add(&c->out, STR("}"));
                purista_response_end(c);
        } else {
                fail_not_found(c);
        }
        return r == 0;
}

/* The sandbox may have been deleted meanwhile: then that is the error. */
static void fail_in_sandbox(struct purista_call *c, const struct service_req *r)
{
        if (find_owned(c) < 0)
                fail_not_found(c);
        else
                purista_fail_service(c, r);
}

/* --- destroySandbox --- */

static void destroy_done(struct op *op, int result)
{
        struct purista_call *c = container_of(op, struct purista_call, u.command.req.op);

        if (!purista_call_continue(c))
                return;
        if (result < 0 && result != ERR_RETURN(ERR_NOT_FOUND)) {
                purista_fail_service(c, &c->u.command.req);
                return;
        }
        purista_response_begin(c);
        purista_text_add_member(&c->out, "{", "sandboxId", c->in.sandbox_id);
        purista_text_add(&c->out, STR(",\"destroyed\":true}"));
        purista_response_end(c);
}

static void destroy_sandbox(struct purista_call *c)
{
        if (!find_or_fail(c))
                return;
        c->u.command.caller = &c->caller;
        c->u.command.id = c->in.sandbox_id;
        purista_call_wait(c, &c->u.command.req.op, destroy_done);
        service_delete(service_of(c), &c->u.command);
}

/* --- executeBash --- */

static void add_output(struct purista_call *c, const char *name, const struct buf *bytes)
{
        purista_text_addf(&c->out, ",\"%s\":", name);
        purista_text_add_long(&c->out, buf_str(bytes));
}

static int64_t timeout_of(const struct purista_call *c)
{
        return c->in.timeout_ms ? c->in.timeout_ms : PURISTA_TIMEOUT_MAX_MS;
}

static void fail_limit(struct purista_call *c, const char *what, const char *setting, size_t limit)
{
        purista_fail_begin(c, 413,
                           "%s more than %zu bytes, the limit %s of this server; take it in parts",
                           what, limit, setting);
        purista_text_add_member(&c->out, "{", "sandboxId", c->in.sandbox_id);
        purista_text_addf(&c->out, ",\"limit\":%zu}", limit);
        purista_response_end(c);
}

static void exec_done(struct op *op, int result)
{
        struct purista_call *c = container_of(op, struct purista_call, u.exec.req.op);
        const struct agent_exec *x = &c->u.exec.exec;

        c->has_exec = true;
        if (!purista_call_continue(c))
                return;
        if (result == ERR_RETURN(ERR_TIMEOUT)) {
                purista_fail_begin(c, 504, "Sandbox command timed out");
                purista_text_add_member(&c->out, "{", "sandboxId", c->in.sandbox_id);
                purista_text_add(&c->out, STR(",\"command\":"));
                purista_text_add_long(&c->out, c->in.command);
                if (c->in.cwd.p)
                        purista_text_add_member(&c->out, ",", "cwd", c->in.cwd);
                purista_text_addf(&c->out, ",\"timeoutMs\":%lld", (long long) timeout_of(c));
                add_output(c, "stdout", &x->out);
                add_output(c, "stderr", &x->err_out);
                purista_text_add(&c->out, STR("}"));
                purista_response_end(c);
        } else if (result == ERR_RETURN(ERR_TOO_LARGE)) {
                fail_limit(c, "Sandbox command printed", "purista.output_limit",
                           c->config.output_max);
        } else if (result < 0) {
                fail_in_sandbox(c, &c->u.exec.req);
        } else {
                purista_response_begin(c);
                purista_text_add(&c->out, STR("{\"stdout\":"));
                purista_text_add_long(&c->out, buf_str(&x->out));
                add_output(c, "stderr", &x->err_out);
                purista_text_addf(&c->out, ",\"exitCode\":%d}", x->exit_code);
                purista_response_end(c);
        }
}

static void start_bash(struct purista_call *c)
{
        struct service_exec *x = &c->u.exec;

        if (purista_agent_path(&c->arena, c->in.cwd, &x->exec.cwd) < 0) {
                purista_fail(c, 413, "cwd does not fit into memory");
                return;
        }
        x->caller = &c->caller;
        x->id = c->in.sandbox_id;
        x->exec.command = c->in.command.n > 0 ? c->in.command
                                              : STR(":"); /* an empty command does nothing */
        x->exec.out_max = c->config.output_max;
        x->exec.req.timeout = (usec_t) timeout_of(c) * USEC_PER_MSEC;
        purista_call_wait(c, &x->req.op, exec_done);
        service_exec(service_of(c), x);
        /* A command that no one waits for must not go on. This may report at once that the client is gone. */
        http_req_abort_on_eof(c->req);
}

/* --- readFile --- */

static void fail_path(struct purista_call *c, const struct err *e, struct str path)
{
        char text[PURISTA_PRINTABLE_MAX];

        purista_fail_begin(c, api_status(e->code), "%s: %s", purista_printable(path, text),
                           e->message);
        purista_text_add_member(&c->out, "{", "sandboxId", c->in.sandbox_id);
        purista_text_add_member(&c->out, ",", "path", path);
        purista_text_add(&c->out, STR("}"));
        purista_response_end(c);
}

/* Whether an error is about the file: these codes also say that the sandbox is gone or does not run. */
static bool is_about_path(struct purista_call *c, int result)
{
        struct err e;
        usec_t after;

        return (result == ERR_RETURN(ERR_NOT_FOUND) || result == ERR_RETURN(ERR_INVALID)
                || result == ERR_RETURN(ERR_CONFLICT))
               && find_owned(c) == 0 && service_check_ingress(c->record, &after, &e) == 0;
}

static void read_done(struct op *op, int result)
{
        struct purista_call *c = container_of(op, struct purista_call, u.read.req.op);
        const struct buf *bytes = &c->u.read.read.bytes;

        c->has_read = true;
        if (!purista_call_continue(c))
                return;
        if (result == ERR_RETURN(ERR_TOO_LARGE)) {
                fail_limit(c, "The file has", "purista.file_limit", c->config.file_max);
        } else if (is_about_path(c, result)) {
                fail_path(c, &c->u.read.req.err, c->in.path);
        } else if (result < 0) {
                fail_in_sandbox(c, &c->u.read.req);
        } else if (bytes->n == 0 && !c->bridged) {
                purista_response_empty(c);
        } else {
                purista_response_begin(c);
                purista_text_add_long(&c->out, buf_str(bytes));
                purista_response_end(c);
        }
}

static void start_read(struct purista_call *c)
{
        struct service_read *x = &c->u.read;

        if (purista_agent_path(&c->arena, c->in.path, &x->read.path) < 0) {
                purista_fail(c, 413, "the path does not fit into memory");
                return;
        }
        x->caller = &c->caller;
        x->id = c->in.sandbox_id;
        x->read.max = c->config.file_max;
        x->read.req.timeout = FILES_TIMEOUT;
        purista_call_wait(c, &x->req.op, read_done);
        service_read_file(service_of(c), x);
}

/* --- writeFiles --- */

static void reply_written(struct purista_call *c)
{
        purista_response_begin(c);
        purista_text_addf(&c->out, "{\"updated\":%zu}", c->in.n_files);
        purista_response_end(c);
}

static void write_done(struct op *op, int result)
{
        struct purista_call *c = container_of(op, struct purista_call, u.write.req.op);
        const struct service_write *x = &c->u.write;

        if (!purista_call_continue(c))
                return;
        if (result == 0)
                reply_written(c);
        else if (x->write.failed < c->in.n_files)
                fail_path(c, &x->req.err, c->paths[x->write.failed]);
        else
                fail_in_sandbox(c, &x->req);
}

static void start_write(struct purista_call *c)
{
        struct service_write *x = &c->u.write;
        int r = 0;

        if (c->in.files_bytes > c->config.file_max) {
                fail_limit(c, "The files have", "purista.file_limit", c->config.file_max);
                return;
        }
        if (c->in.n_files == 0) {
                reply_written(c);
                return;
        }
        c->paths = arena_alloc_array(&c->arena, c->in.n_files, sizeof(*c->paths));
        for (size_t i = 0; c->paths && r == 0 && i < c->in.n_files; i++) {
                c->paths[i] = c->in.files[i].path;
                r = purista_agent_path(&c->arena, c->paths[i], &c->in.files[i].path);
        }
        if (!c->paths || r < 0) {
                purista_fail(c, 413, "the paths do not fit into memory");
                return;
        }
        x->caller = &c->caller;
        x->id = c->in.sandbox_id;
        x->write.files = c->in.files;
        x->write.n = c->in.n_files;
        x->write.req.timeout = FILES_TIMEOUT;
        purista_call_wait(c, &x->req.op, write_done);
        service_write_files(service_of(c), x);
}

/* --- starting --- */

static const struct {
        void (*start)(struct purista_call *c);
        bool in_sandbox; /* which must be up */
} handlers[PURISTA_COMMAND_MAX_] = {
        [PURISTA_CREATE_SANDBOX] = { start_ensure },
        [PURISTA_ENSURE_SANDBOX] = { start_ensure },
        [PURISTA_DESTROY_SANDBOX] = { destroy_sandbox },
        [PURISTA_EXECUTE_BASH] = { start_bash, .in_sandbox = true },
        [PURISTA_READ_FILE] = { start_read, .in_sandbox = true },
        [PURISTA_WRITE_FILES] = { start_write, .in_sandbox = true },
};

static void located(struct op *op, int result)
{
        struct purista_call *c = container_of(op, struct purista_call, locate.req.op);

        if (!purista_call_continue(c))
                return;
        if (result == 0)
                purista_call_forward(c, &c->locate.node);
        else if (result == ERR_RETURN(ERR_NOT_FOUND))
                purista_command_start(c);
        else
                purista_fail_service(c, &c->locate.req);
}

static void awaited(struct op *op, int result)
{
        struct purista_call *c = container_of(op, struct purista_call, await.req.op);

        if (!purista_call_continue(c))
                return;
        if (result < 0)
                fail_in_sandbox(c, &c->await.req);
        else
                handlers[c->command - purista_commands].start(c);
}

void purista_command_start(struct purista_call *c)
{
        size_t command = (size_t) (c->command - purista_commands);
        struct service *service = service_of(c);

        /* access_authorize has located what a path names; only the body names the sandbox of a bridged command. */
        if (c->bridged && !c->located && c->in.sandbox_id.p && forward_is_allowed(c->req)
            && !service_find(service, &c->caller, c->in.sandbox_id)) {
                c->located = true;
                c->locate.caller = &c->caller;
                c->locate.id = c->in.sandbox_id;
                purista_call_wait(c, &c->locate.req.op, located);
                service_locate(service, &c->locate);
                return;
        }
        if (handlers[command].in_sandbox && !find_or_fail(c))
                return;
        /* It may still be being created or resumed. */
        if (handlers[command].in_sandbox && service_is_transitional(c->record)) {
                c->await.caller = &c->caller;
                c->await.id = c->in.sandbox_id;
                c->await.wait = AWAIT_MAX;
                purista_call_wait(c, &c->await.req.op, awaited);
                service_await(service, &c->await);
                return;
        }
        handlers[command].start(c);
}
