/* SPDX-License-Identifier: Apache-2.0 */
#include "client/sandboxes.h"

#include "base/base.h"
#include "client/decode.h"
#include "client/op.h"

#define FIRST_INTERVAL (100 * USEC_PER_MSEC)
#define LAST_INTERVAL  (2 * USEC_PER_SEC)

static struct ready_op *ready_of(struct op *op)
{
        return container_of(op, struct ready_op, op);
}

static void get_sandbox(struct op *op);

static void wait_more(struct ready_op *r)
{
        op_wait(&r->op, r->interval, get_sandbox);
        r->interval = MIN_OF(r->interval + r->interval / 2, LAST_INTERVAL);
}

static void never_ready(struct ready_op *r)
{
        const struct hutch_sandbox *s = r->sandbox;

        if (r->on_failed)
                r->on_failed(&r->op);
        else
                op_fail(&r->op, HUTCH_FAILED, "it is %s%s%.300s", s->state, s->message ? ": " : "",
                        s->message ? s->message : "");
}

static void pinged(struct op *op)
{
        struct ready_op *r = ready_of(op);

        if (op->x.result == CURLE_OK && op->x.status >= 200 && op->x.status < 300) {
                if (r->on_ready)
                        r->on_ready(op);
                else
                        op_succeed(op, TAKE_PTR(r->sandbox));
        } else if (r->agent_by > 0 && loop__now() >= r->agent_by) {
                never_ready(r);
        } else {
                wait_more(r);
        }
}

static void got_sandbox(struct op *op)
{
        static const struct request ping = { .method = "GET",
                                             .on_response = pinged,
                                             .try_only = true };
        struct ready_op *r = ready_of(op);
        struct hutch_sandbox *s;

        if (op->x.status == 404 && r->on_failed) {
                r->on_failed(op);
                return;
        }
        s = op_decode(op, &sandbox_decoder);
        if (!s)
                return;
        hutch_sandbox_free(r->sandbox);
        r->sandbox = s;
        /* Kubernetes reports Allocated when the pod exists. */
        if (strcmp(s->state, "Running") == 0 || strcmp(s->state, "Allocated") == 0)
                op_discover(op, r->id, &ping);
        else if (!sandbox_is_alive(s))
                never_ready(r);
        else
                wait_more(r);
}

static void get_sandbox(struct op *op)
{
        op_to_server(op, "/sandboxes/{}", ready_of(op)->id);
        op_send(op, &(struct request){ .method = "GET", .on_response = got_sandbox });
}

void ready_begin(struct op *op)
{
        ready_of(op)->interval = FIRST_INTERVAL;
        buf_reset(&op->path);
        buf_add_str(&op->path, STR("/ping"));
        get_sandbox(op);
}

void ready_done(struct op *op)
{
        hutch_sandbox_free(ready_of(op)->sandbox);
        free(ready_of(op)->id);
}

const char *ready_timeout_text(struct op *op)
{
        const struct hutch_sandbox *s = ready_of(op)->sandbox;

        if (!s)
                return "no response";
        return strcmp(s->state, "Running") == 0 ? "it is running, but its agent did not respond"
                                                : "it did not become Running";
}

/* --- the call --- */

int hutch_wait_ready(struct hutch_client *client, const char *id, struct hutch_sandbox **ret,
                     struct hutch_call *call)
{
        static const struct op_kind kind = {
                .doing = "wait for the sandbox",
                .begin = ready_begin,
                .release = ready_done,
                .timeout_ms = READY_TIMEOUT_MS,
                .timeout_text = ready_timeout_text,
        };
        struct op *op = op_new(sizeof(struct ready_op), &kind, client, call);

        if (op)
                ready_of(op)->id = op_strdup(op, id, "the id of the sandbox");
        return op_start(op, ret);
}
