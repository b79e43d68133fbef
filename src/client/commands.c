/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/base.h"
#include "base/base64.h"
#include "base/json.h"
#include "client/body.h"
#include "client/command_event.h"
#include "client/decode.h"
#include "client/error.h"
#include "client/framing.h"
#include "client/op.h"
#include "client/result.h"

/*
 * Runs a command: one request, whose response is a stream of events until the command has ended.
 *
 * Some agents keep the stream open for a second after the last event. The call does not wait for that: it
 * ends END_GRACE after the event, or with the stream if that ends first, which keeps the connection for
 * the next call.
 */

#define END_GRACE (20 * USEC_PER_MSEC)

struct run_op {
        struct op op;
        struct hutch_command_options o; /* only callbacks and limits are used */
        struct framing framing;
        struct buf out[2]; /* stdout, stderr */
        bool truncated[2];
        struct buf id, error, scratch;
        struct command_event end;
        bool started, ended, background;
};

static struct run_op *run_of(struct op *op)
{
        return container_of(op, struct run_op, op);
}

/* --- output --- */

static int no_memory(struct run_op *r)
{
        return exchange_fail(&r->op.x, HUTCH_NO_MEMORY, "out of memory");
}

static int emit(struct run_op *r, enum hutch_stream stream, struct str bytes)
{
        struct buf *b = &r->out[stream - 1];
        size_t room = buf_room(b);

        if (bytes.n == 0)
                return 0;
        if (r->op.canceled) /* by its callback, before the end of this piece */
                return exchange_fail(&r->op.x, HUTCH_CANCELED, "canceled by the caller");
        if (r->o.output) {
                if (r->o.output(r->o.data, stream, bytes.p, bytes.n) == 0)
                        return 0;
                return exchange_fail(&r->op.x, HUTCH_CANCELED, "canceled by the callback");
        }
        if (bytes.n > room) {
                r->truncated[stream - 1] = true;
                bytes.n = room;
        }
        buf_add_str(b, bytes);
        return buf_failed(b) ? no_memory(r) : 0;
}

static int take_output(struct run_op *r, const struct command_event *o)
{
        enum hutch_stream stream = o->kind == COMMAND_EVENT_STDOUT ? HUTCH_STDOUT : HUTCH_STDERR;
        size_t n = 0;
        char *room;

        if (!o->is_base64 && !o->is_line)
                return emit(r, stream, o->text);
        buf_reset(&r->scratch);
        if (o->is_line) { /* in one piece, as callbacks expect lines */
                buf_add_str(&r->scratch, o->text);
                buf_add_char(&r->scratch, '\n');
                return buf_failed(&r->scratch) ? no_memory(r)
                                               : emit(r, stream, buf_str(&r->scratch));
        }
        room = buf_reserve(&r->scratch, BASE64_DECODED_MAX(o->text.n) + 1);
        if (!room)
                return no_memory(r);
        if (base64_decode(o->text, room, &n) < 0)
                return exchange_fail(&r->op.x, HUTCH_PROTOCOL,
                                     "the agent sent output that is not base64");
        return emit(r, stream, str_of(room, n));
}

/* --- events --- */

static void run_finish(struct op *op);

static int take_event(struct run_op *r, const struct command_event *o)
{
        struct exchange *x = &r->op.x;

        switch (o->kind) {
        case COMMAND_EVENT_STARTED:
                if (r->started || !o->text.p)
                        return 0;
                r->started = true;
                buf_add_str(&r->id, o->text);
                if (buf_failed(&r->id))
                        return exchange_fail(x, HUTCH_PROTOCOL,
                                             "the agent sent an id that is too long");
                if (r->o.started)
                        r->o.started(r->o.data, buf_str(&r->id).p);
                return 0;
        case COMMAND_EVENT_STDOUT:
        case COMMAND_EVENT_STDERR:
                return o->text.p ? take_output(r, o) : 0;
        case COMMAND_EVENT_ENDED:
                if (r->ended)
                        return 0;
                r->ended = true;
                r->end = *o;
                r->end.text = STR_NULL; /* its document is freed */
                if (o->text.p)
                        buf_add_str(&r->error,
                                    str_of(o->text.p, MIN_OF(o->text.n, buf_room(&r->error))));
                op_wait(&r->op, END_GRACE, run_finish);
                return 0;
        case COMMAND_EVENT_FAILED:
                error_copy_text(x->error.server_code, sizeof(x->error.server_code), o->code);
                return exchange_fail(x, HUTCH_SERVER, "the agent failed: %.*s",
                                     STR_ARG(o->text.p ? o->text : o->code));
        case COMMAND_EVENT_NONE:
        default:
                return 0;
        }
}

static int on_event(void *data, struct str text)
{
        struct run_op *r = run_of(data);
        struct json_error e;
        struct command_event o;
        json_t *doc = NULL;
        int code = json_parse(text, JSON_ALLOW_NULS, &doc, &e); /* output may contain NUL */

        if (code == -ENOMEM)
                return no_memory(r);
        if (code < 0)
                return exchange_fail(&r->op.x, HUTCH_PROTOCOL,
                                     "the agent sent an event that is not JSON: %s", e.message);
        if (command_event_read(doc, &o) < 0)
                code = exchange_fail(
                        &r->op.x, HUTCH_PROTOCOL,
                        "the agent sent an event without a type, or with invalid output");
        else
                code = take_event(r, &o);
        json_decref(doc);
        return code;
}

static int on_bytes(struct op *op, struct str bytes)
{
        return op_feed(op, &run_of(op)->framing, bytes, on_event);
}

/* --- ending --- */

static void run_finish(struct op *op)
{
        struct run_op *r = run_of(op);
        struct hutch_command_result *c = result_new(sizeof(*c));
        struct arena *a = c ? result_arena(c) : NULL;

        if (c) {
                c->out_n = r->out[0].n;
                c->err_n = r->out[1].n;
                c->out_truncated = r->truncated[0];
                c->err_truncated = r->truncated[1];
                c->out = result_adopt(c, &r->out[0]);
                c->err = result_adopt(c, &r->out[1]);
                c->id = arena_dup(a, buf_str(&r->id));
                c->error = r->error.n > 0 ? arena_dup(a, buf_str(&r->error)) : NULL;
                c->exit_code = r->end.exit_code;
                c->signal = r->end.signal;
                c->timed_out = r->end.timed_out;
                c->duration_ms = r->end.duration_ms;
        }
        if (c && c->out && c->err && c->id && (r->error.n == 0 || c->error)) {
                op_succeed(op, c);
                return;
        }
        result_free(c);
        op_fail(op, HUTCH_NO_MEMORY, "out of memory");
}

static void run_response(struct op *op)
{
        struct run_op *r = run_of(op);
        struct exchange *x = &op->x;

        timer_clear(&op->pause);
        /* The connection may have broken after the last event. */
        if (r->ended && x->failure == 0)
                run_finish(op);
        else if (x->result != CURLE_OK)
                op_fail_exchange(op, exchange_explain(x));
        else if (!op_check_response(op))
                return;
        else if (op_feed(op, &r->framing, STR_NULL, on_event) < 0)
                op_fail_exchange(op, x->failure);
        else if (r->ended)
                run_response(op);
        else
                op_fail(op, HUTCH_BROKEN, "the stream ended before the command did%s",
                        r->started ? "" : ", without a single event");
}

/* --- starting --- */

static void run_release(struct op *op)
{
        struct run_op *r = run_of(op);

        framing_done(&r->framing);
        for (size_t i = 0; i < ARRAY_SIZE(r->out); i++)
                buf_done(&r->out[i]);
        buf_done(&r->id);
        buf_done(&r->error);
        buf_done(&r->scratch);
}

#define RUN(what)                                                        \
        {                                                                \
                .doing = (what), .release = run_release, .stream = true, \
                .request = { .method = "POST",                           \
                             .has_body = true,                           \
                             .bytes = on_bytes,                          \
                             .on_response = run_response,                \
                             .try_only = true },                         \
        }

static const struct op_kind run_kind = RUN("run the command");

static struct run_op *new_run(const struct op_kind *kind, struct hutch_client *client,
                              const struct hutch_command_options *options, struct hutch_call *call)
{
        struct op *op = op_new(sizeof(struct run_op), kind, client, call);
        struct run_op *r = op ? run_of(op) : NULL;
        uint64_t max;

        if (!r)
                return NULL;
        op_take_options(op, &r->o, sizeof(r->o), options, "the options");
        if (!options)
                op_refuse(op, HUTCH_INVALID, "the options are missing");
        if (!client)
                return r;
        max = r->o.output_max ? r->o.output_max : client->o.response_max;
        framing_init(&r->framing, (size_t) client->o.event_max, false);
        for (size_t i = 0; i < ARRAY_SIZE(r->out); i++)
                buf_init(&r->out[i], (size_t) MIN_OF(max, SIZE_MAX / 4));
        buf_init(&r->id, 4 * KiB);
        buf_init(&r->error, 16 * KiB);
        buf_init(&r->scratch, (size_t) client->o.event_max + 16);
        return r;
}

static void write_command(struct run_op *r)
{
        const struct hutch_command_options *o = &r->o;
        struct op *op = &r->op;

        if (!o->command == !o->argv || (o->command && !*o->command) || (o->argv && o->n_argv == 0))
                op_refuse(op, HUTCH_INVALID, "exactly one of command and argv is required");
        body_open(op, NULL, '{');
        body_text(op, "command", o->command);
        body_texts(op, "argv", o->argv, o->n_argv);
        body_text(op, "cwd", o->cwd);
        body_map(op, "envs", o->env, o->n_env);
        if (o->timeout_ms > 0)
                body_i64(op, "timeout", o->timeout_ms);
        if (o->has_uid)
                body_i64(op, "uid", o->uid);
        if (o->has_gid)
                body_i64(op, "gid", o->gid);
        body_true(op, "stdin", o->open_stdin);
        body_true(op, "attached", o->attached);
        /* Servers that support it send bytes, others keep sending lines of text. */
        if (r->background)
                body_true(op, "background", true);
        else
                body_text(op, "output", "base64");
        body_close(op, '}');
}

int hutch_run_command(struct hutch_client *client, const struct hutch_endpoint *agent,
                      const struct hutch_command_options *options,
                      struct hutch_command_result **ret, struct hutch_call *call)
{
        struct run_op *r = new_run(&run_kind, client, options, call);

        if (!r)
                return HUTCH_NO_MEMORY;
        op_to_agent(&r->op, agent, "/command");
        write_command(r);
        return op_start(&r->op, ret);
}

int hutch_start_command(struct hutch_client *client, const struct hutch_endpoint *agent,
                        const struct hutch_command_options *options,
                        struct hutch_command_result **ret, struct hutch_call *call)
{
        static const struct op_kind kind = RUN("start the command");
        struct run_op *r = new_run(&kind, client, options, call);

        if (!r)
                return HUTCH_NO_MEMORY;
        r->background = true;
        r->o.output = NULL;
        op_to_agent(&r->op, agent, "/command");
        write_command(r);
        return op_start(&r->op, ret);
}

int hutch_run_in_session(struct hutch_client *client, const struct hutch_endpoint *agent,
                         const struct hutch_session_command *command,
                         struct hutch_command_result **ret, struct hutch_call *call)
{
        static const struct op_kind kind = RUN("run the command in the session");
        struct hutch_session_command w;
        int code = options_copy(&w, sizeof(w), command);
        struct run_op *r = new_run(&kind, client, w.options, call);

        if (!r)
                return HUTCH_NO_MEMORY;
        if (code < 0)
                op_refuse(&r->op, code, "the command: not initialized, or of a newer version");
        if (op_need(&r->op, w.session_id, "the id of the session")
            && op_need(&r->op, r->o.command, "the command"))
                op_to_agent(&r->op, agent, "/session/{}/run", w.session_id);
        body_open(&r->op, NULL, '{');
        body_text(&r->op, "command", r->o.command);
        body_text(&r->op, "cwd", r->o.cwd);
        if (r->o.timeout_ms > 0)
                body_i64(&r->op, "timeout", r->o.timeout_ms);
        body_close(&r->op, '}');
        return op_start(&r->op, ret);
}

int hutch_execute_bash(struct hutch_client *client, const struct hutch_bash *bash,
                       struct hutch_command_result **ret, struct hutch_call *call)
{
        struct hutch_command_options o = hutch_command_options_init();
        struct hutch_bash w;
        int code = options_copy(&w, sizeof(w), bash);
        struct run_op *r;

        o.command = w.command;
        o.cwd = w.cwd;
        o.timeout_ms = w.timeout_ms;
        r = new_run(&run_kind, client, &o, call);
        if (!r)
                return HUTCH_NO_MEMORY;
        if (code < 0)
                op_refuse(&r->op, code, "the command: not initialized, or of a newer version");
        op_to_sandbox(&r->op, w.sandbox_id, "/command");
        write_command(r);
        return op_start(&r->op, ret);
}
