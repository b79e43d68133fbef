/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "client/body.h"
#include "client/decode.h"
#include "client/result.h"
#include "client/sandboxes.h"

/* PURISTA's commands that are more than another name for a call. */

/*
 * hutch_ensure_sandbox: the sandbox of an owner, created if necessary.
 *
 *         search ──► alive ──► (resume) ──► wait until ready ──► done
 *            │  ▲                                │ dead
 *            │  └────────── delete ◄─────────────┘
 *            └──► none ──► create ──► wait until ready ──► done, created
 *
 * Two concurrent calls may both find none. Their creates carry the same idempotency key, so a server
 * that supports such keys (Hutch) returns the same sandbox to both. If it rejects the second because its
 * options differ, the search starts again.
 */

#define HEALTH_TIME (5 * USEC_PER_SEC) /* for the agent of an existing sandbox to respond */
#define ROUNDS_MAX  4
#define COMMAND_TIMEOUT_MS \
        (31 * 60 * 1000) /* of hutch_purista_command: commands may run for 30 minutes */

struct ensure_op {
        struct ready_op ready;
        char owner[OWNER_TEXT];
        bool created;
        unsigned rounds;
};

static struct ensure_op *ensure_of(struct op *op)
{
        return container_of(op, struct ensure_op, ready.op);
}

static void ensure_search(struct op *op);

/* --- ready --- */

static void ensure_ready(struct op *op)
{
        struct ensure_op *e = ensure_of(op);
        struct hutch_ensured *out = result_new(sizeof(*out));

        if (out) {
                out->sandbox_id = arena_strdup(result_arena(out), e->ready.id);
                out->status = "ready";
                out->created = e->created;
        }
        if (out && out->sandbox_id) {
                op_succeed(op, out);
                return;
        }
        result_free(out);
        op_fail(op, HUTCH_NO_MEMORY, "out of memory");
}

/* --- a failed sandbox --- */

static void ensure_deleted(struct op *op)
{
        if (op->x.status == 404 || op_check_response(op))
                ensure_search(op);
}

static void ensure_replace(struct op *op)
{
        struct ensure_op *e = ensure_of(op);
        const struct hutch_sandbox *s = e->ready.sandbox;

        if (e->created) {
                op_fail(op, HUTCH_FAILED, "the new sandbox failed%s%.300s",
                        s && s->message ? ": " : "", s && s->message ? s->message : "");
                return;
        }
        op_to_server(op, "/sandboxes/{}", e->ready.id);
        op_send(op, &(struct request){ .method = "DELETE", .on_response = ensure_deleted });
}

/* --- search --- */

static bool set_sandbox(struct ensure_op *e, const struct hutch_sandbox *s, usec_t agent_by)
{
        free(e->ready.id);
        e->ready.id = strdup(s->id);
        e->ready.agent_by = agent_by;
        if (!e->ready.id)
                op_fail(&e->ready.op, HUTCH_NO_MEMORY, "out of memory");
        return e->ready.id != NULL;
}

/* A sandbox that is no longer paused gives 409, which is as good. */
static void ensure_resumed(struct op *op)
{
        if (op->x.status == 409 || op_check_response(op))
                ready_begin(op);
}

static void ensure_created(struct op *op)
{
        struct ensure_op *e = ensure_of(op);
        struct hutch_sandbox *s;

        if (op->x.status == 409 && e->rounds < ROUNDS_MAX) {
                ensure_search(op);
                return;
        }
        s = op_decode(op, &sandbox_decoder);
        if (s && set_sandbox(e, s, 0)) {
                e->created = true;
                ready_begin(op);
        }
        hutch_sandbox_free(s);
}

static void ensure_searched(struct op *op)
{
        struct ensure_op *e = ensure_of(op);
        struct hutch_sandbox_list *l = op_decode(op, &sandbox_list_decoder);
        const struct hutch_sandbox *s = l ? sandboxes_pick(l) : NULL;
        char key[OWNER_TEXT + 16];

        if (!l)
                return;
        if (s && !set_sandbox(e, s, loop__now() + HEALTH_TIME)) {
                hutch_sandbox_list_free(l);
                return;
        }
        if (!s) {
                (void) snprintf(key, sizeof(key), "hutch-ensure-%s", e->owner);
                op_to_server(op, "/sandboxes");
                op_header(op, "Idempotency-Key", key);
                op_send(op, &(struct request){ .method = "POST",
                                               .has_body = true,
                                               .on_response = ensure_created });
        } else if (!sandbox_is_alive(s)) {
                ensure_replace(op);
        } else if (strcmp(s->state, "Paused") == 0 || strcmp(s->state, "Pausing") == 0) {
                op_to_server(op, "/sandboxes/{}/resume", e->ready.id);
                op_send(op, &(struct request){ .method = "POST", .on_response = ensure_resumed });
        } else {
                ready_begin(op);
        }
        hutch_sandbox_list_free(l);
}

static void ensure_search(struct op *op)
{
        struct ensure_op *e = ensure_of(op);

        if (e->rounds++ >= ROUNDS_MAX)
                op_fail(op, HUTCH_CONFLICT,
                        "the sandbox of the owner changed during every attempt");
        else
                sandboxes_search_owner(op, e->owner, ensure_searched);
}

/* --- the call --- */

int hutch_ensure_sandbox(struct hutch_client *client, const struct hutch_sandbox_options *options,
                         struct hutch_ensured **ret, struct hutch_call *call)
{
        static const struct op_kind kind = {
                .doing = "ensure the sandbox",
                .begin = ensure_search,
                .release = ready_done,
                .timeout_ms = CREATE_TIMEOUT_MS,
                .timeout_text = ready_timeout_text,
        };
        struct op *op = op_new(sizeof(struct ensure_op), &kind, client, call);
        struct ensure_op *e = op ? ensure_of(op) : NULL;
        struct hutch_sandbox_options o;

        if (!e)
                return HUTCH_NO_MEMORY;
        op_take_options(op, &o, sizeof(o), options, "the options");
        if (!o.owner || owner_digest(o.owner, e->owner) < 0)
                op_refuse(op, HUTCH_INVALID, "the owner requires organization, project and user");
        e->ready.on_ready = ensure_ready;
        e->ready.on_failed = ensure_replace;
        sandboxes_write(op, &o, e->owner);
        return op_start(op, ret);
}

/* --- for bridges --- */

static void purista_executed(struct op *op)
{
        if (op_check_response(op))
                op_finish_data(op, &op->x.response, op->x.response.n);
}

int hutch_purista_command(struct hutch_client *client, const struct hutch_purista *command,
                          struct hutch_data **ret, struct hutch_call *call)
{
        static const struct op_kind kind = {
                .doing = "execute a PURISTA command",
                .request = { .method = "POST", .has_body = true, .on_response = purista_executed },
                .timeout_ms = COMMAND_TIMEOUT_MS,
        };
        struct op *op = op_new(sizeof(*op), &kind, client, call);
        struct hutch_purista w;

        op_take_options(op, &w, sizeof(w), command, "the command");
        op_to_root(op, "/api/v1/purista/command");
        if (op_need(op, w.command, "the command")) {
                body_open(op, NULL, '{');
                body_text(op, "command", w.command);
                body_text(op, "tenantId", w.tenant_id);
                body_text(op, "principalId", w.principal_id);
                body_json(op, "payload", w.payload);
                body_json(op, "parameter", w.parameter);
                body_close(op, '}');
        }
        return op_start(op, ret);
}
