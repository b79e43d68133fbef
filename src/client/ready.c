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

static bool is_one_of(const char *state, const char *const *states)
{
        for (; *states; states++)
                if (strcmp(state, *states) == 0)
                        return true;
        return false;
}

static void get_sandbox(struct ready_op *r);

static void poll_again(struct timer *t)
{
        get_sandbox(ready_of(container_of(t, struct op, pause)));
}

static void wait_more(struct ready_op *r)
{
        op_wait(&r->op, r->interval, poll_again);
        r->interval = MIN_OF(r->interval + r->interval / 2, LAST_INTERVAL);
}

/* --- the agent --- */

static void never_ready(struct ready_op *r)
{
        const struct hutch_sandbox *s = r->sandbox;

        if (r->on_failed)
                r->on_failed(r);
        else
                op_fail(&r->op, HUTCH_FAILED, "it is %s%s%.300s", s->state, s->message ? ": " : "",
                        s->message ? s->message : "");
}

static void pinged(struct op *op)
{
        struct ready_op *r = ready_of(op);

        if (op->x.result != CURLE_OK || op->x.status < 200 || op->x.status >= 300) {
                if (r->agent_by > 0 && loop__now() >= r->agent_by)
                        never_ready(r);
                else
                        wait_more(r);
                return;
        }
        if (r->on_ready)
                r->on_ready(r);
        else
                op_succeed(op, TAKE_PTR(r->sandbox));
}

static void ping(struct op *op, const struct hutch_endpoint *agent)
{
        op_to_agent(op, agent, "/ping");
        op_send(op, &(struct request){ .method = "GET", .on_response = pinged, .try_only = true });
}

/* --- the sandbox --- */

static void got_sandbox(struct op *op)
{
        /* Kubernetes reports Allocated when the pod exists. */
        static const char *const running[] = { "Running", "Allocated", NULL };
        static const char *const over[] = { "Failed", "Terminated", "Stopping", NULL };
        struct ready_op *r = ready_of(op);
        int code = HUTCH_PROTOCOL;

        if (op->x.status == 404 && r->on_failed) {
                r->on_failed(r);
                return;
        }
        if (!op_check_response(op))
                return;
        hutch_sandbox_free(r->sandbox);
        r->sandbox = decode_sandbox(buf_str(&op->x.response), &code);
        if (!r->sandbox)
                op_fail_response(op, code);
        else if (is_one_of(r->sandbox->state, running))
                op_discover(op, r->id, ping);
        else if (is_one_of(r->sandbox->state, over))
                never_ready(r);
        else
                wait_more(r);
}

static void get_sandbox(struct ready_op *r)
{
        op_to_server(&r->op, "/sandboxes/{}", r->id);
        op_send(&r->op, &(struct request){ .method = "GET", .on_response = got_sandbox });
}

void ready_begin(struct ready_op *r)
{
        r->interval = FIRST_INTERVAL;
        get_sandbox(r);
}

void ready_done(struct ready_op *r)
{
        hutch_sandbox_free(TAKE_PTR(r->sandbox));
        free(TAKE_PTR(r->id));
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

static void wait_begin(struct op *op)
{
        ready_begin(ready_of(op));
}

static void wait_release(struct op *op)
{
        ready_done(ready_of(op));
}

int hutch_wait_ready(struct hutch_client *client, const char *id, struct hutch_sandbox **ret,
                     struct hutch_call *call)
{
        static const struct op_kind kind = {
                .doing = "wait for the sandbox",
                .begin = wait_begin,
                .release = wait_release,
                .timeout_ms = READY_TIMEOUT_MS,
                .timeout_text = ready_timeout_text,
        };
        struct op *op = op_new(sizeof(struct ready_op), &kind, client, call);

        if (op)
                ready_of(op)->id = op_strdup(op, id, "the id of the sandbox");
        return op_start(op, ret);
}
