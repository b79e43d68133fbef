/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "client/decode.h"
#include "client/options.h"
#include "client/ready.h"
#include "client/result.h"
#include "client/sandboxes.h"
#include "client/simple.h"

/*
 * The sandbox of an owner, made if need be.
 *
 *         search ──► alive ──► (resume) ──► wait until ready ──► done
 *            │  ▲                                │ dead
 *            │  └────────── delete ◄─────────────┘
 *            └──► none ──► create ──► wait until ready ──► done, created
 *
 * Two who do this at once may both find none. Their creates carry the same idempotency key, so a server
 * that knows such keys (Hutch) gives both the same sandbox. If it refuses the second for being different,
 * the search begins anew.
 */

#define HEALTH_TIME (5 * USEC_PER_SEC)
#define ROUNDS_MAX  4

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

static void search(struct ensure_op *e);

/* --- the end --- */

static void is_ready(struct ready_op *r)
{
        struct ensure_op *e = container_of(r, struct ensure_op, ready);
        struct hutch_ensured *out = result_new(sizeof(*out));

        if (out) {
                out->sandbox_id = arena_strdup(result_arena(out), r->id);
                out->status = "ready";
                out->created = e->created;
        }
        if (out && out->sandbox_id) {
                op_succeed(&r->op, out);
                return;
        }
        result_free(out);
        op_fail(&r->op, HUTCH_NO_MEMORY, "out of memory");
}

/* --- one that is dead --- */

static void deleted(struct op *op)
{
        struct ensure_op *e = ensure_of(op);

        if (op->x.status == 404 || op_check_response(op))
                search(e);
}

static void replace(struct ready_op *r)
{
        struct ensure_op *e = container_of(r, struct ensure_op, ready);

        if (e->created) {
                op_fail(&r->op, HUTCH_FAILED, "the new sandbox failed%s%.300s",
                        r->sandbox && r->sandbox->message ? ": " : "",
                        r->sandbox && r->sandbox->message ? r->sandbox->message : "");
                return;
        }
        op_to_server(&r->op, "/sandboxes/{}", r->id);
        op_send(&r->op, &(struct request){ .method = "DELETE", .on_response = deleted });
}

/* --- one that lives --- */

static bool wait_for(struct ensure_op *e, const struct hutch_sandbox *s, usec_t agent_by)
{
        free(e->ready.id);
        e->ready.id = strdup(s->id);
        e->ready.agent_by = agent_by;
        if (!e->ready.id)
                op_fail(&e->ready.op, HUTCH_NO_MEMORY, "out of memory");
        return e->ready.id != NULL;
}

/* One that is no longer paused refuses it, which is as good. */
static void resumed(struct op *op)
{
        if (op->x.status == 409 || op_check_response(op))
                ready_begin(&ensure_of(op)->ready);
}

static void use(struct ensure_op *e, const struct hutch_sandbox *s)
{
        struct op *op = &e->ready.op;
        bool paused = strcmp(s->state, "Paused") == 0 || strcmp(s->state, "Pausing") == 0;
        bool alive = sandbox_is_alive(s);

        if (!wait_for(e, s, loop__now() + HEALTH_TIME))
                return;
        if (!alive) {
                replace(&e->ready);
        } else if (paused) {
                op_to_server(op, "/sandboxes/{}/resume", e->ready.id);
                op_send(op, &(struct request){ .method = "POST", .on_response = resumed });
        } else {
                ready_begin(&e->ready);
        }
}

/* --- a new one --- */

static void created(struct op *op)
{
        struct ensure_op *e = ensure_of(op);
        struct hutch_sandbox *s;
        int code = HUTCH_PROTOCOL;

        if (op->x.status == 409 && e->rounds < ROUNDS_MAX) {
                search(e);
                return;
        }
        if (!op_check_response(op))
                return;
        s = decode_sandbox(buf_str(&op->x.answer), &code);
        if (!s) {
                op_fail_response(op, code);
        } else if (wait_for(e, s, 0)) {
                e->created = true;
                ready_begin(&e->ready);
        }
        hutch_sandbox_free(s);
}

static void create(struct ensure_op *e)
{
        struct op *op = &e->ready.op;
        char key[OWNER_TEXT + 16];

        (void) snprintf(key, sizeof(key), "hutch-ensure-%s", e->owner);
        op_to_server(op, "/sandboxes");
        op_header(op, "Idempotency-Key", key);
        op_send(op,
                &(struct request){ .method = "POST", .has_body = true, .on_response = created });
}

static void searched(struct op *op)
{
        struct ensure_op *e = ensure_of(op);
        const struct hutch_sandbox *s;
        struct hutch_sandbox_list *l;
        int code = HUTCH_PROTOCOL;

        if (!op_check_response(op))
                return;
        l = decode_sandbox_list(buf_str(&op->x.answer), &code);
        s = l ? sandboxes_pick(l) : NULL;
        if (!l)
                op_fail_response(op, code);
        else if (s)
                use(e, s);
        else
                create(e);
        hutch_sandbox_list_free(l);
}

static void search(struct ensure_op *e)
{
        if (e->rounds++ >= ROUNDS_MAX) {
                op_fail(&e->ready.op, HUTCH_CONFLICT,
                        "the owner's sandbox came and went all the time");
                return;
        }
        sandboxes_search_owner(&e->ready.op, e->owner);
        op_send(&e->ready.op, &(struct request){ .method = "GET", .on_response = searched });
}

/* --- the call --- */

static void ensure_begin(struct op *op)
{
        search(ensure_of(op));
}

static void ensure_release(struct op *op)
{
        ready_done(&ensure_of(op)->ready);
}

int hutch_ensure_sandbox(struct hutch_client *client, const struct hutch_sandbox_options *options,
                         struct hutch_ensured **ret, struct hutch_call *call)
{
        static const struct op_kind kind = {
                .doing = "ensure the sandbox",
                .begin = ensure_begin,
                .release = ensure_release,
                .timeout_ms = CREATE_TIMEOUT_MS,
                .timeout_text = ready_timeout_text,
        };
        struct op *op = op_new(sizeof(struct ensure_op), &kind, client, call);
        struct ensure_op *e = op ? ensure_of(op) : NULL;
        struct hutch_sandbox_options o;
        int r = options_copy(&o, sizeof(o), options);

        if (!e)
                return op_start(NULL, NULL);
        if (r < 0)
                op_refuse(op, r, "the options are of another version, or not initialised");
        if (!o.owner || owner_digest(o.owner, e->owner) < 0)
                op_refuse(op, HUTCH_INVALID, "the owner needs organization, project and user");
        e->ready.then = is_ready;
        e->ready.otherwise = replace;
        sandboxes_write(op, &o, e->owner);
        return op_start(op, ret);
}
