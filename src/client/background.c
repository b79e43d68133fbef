/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/base.h"
#include "client/body.h"
#include "client/decode.h"
#include "client/op.h"
#include "client/result.h"

/* Commands by their id: status, logs, signals, input; and sessions. */

#define COMMAND_ID "the id of the command"

int hutch_get_command_status(struct hutch_client *client, const struct hutch_endpoint *agent,
                             const char *id, struct hutch_command_status **ret,
                             struct hutch_call *call)
{
        static const struct op_kind kind =
                SIMPLE("get the command's status", "GET", false, &command_status_decoder);
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        if (op_need(op, id, COMMAND_ID))
                op_to_agent(op, agent, "/command/status/{}", id);
        return op_start(op, ret);
}

/* --- logs --- */

struct logs_op {
        struct op op;
        uint64_t from;
};

static void got_logs(struct op *op)
{
        struct hutch_logs *l;

        if (!op_check_response(op))
                return;
        l = result_new(sizeof(*l));
        if (l) {
                l->n = op->x.response.n;
                l->cursor = op->x.cursor ? op->x.cursor
                                         : container_of(op, struct logs_op, op)->from + l->n;
                l->dropped = op->x.dropped;
                l->data = result_adopt(l, &op->x.response);
        }
        if (l && l->data) {
                op_succeed(op, l);
                return;
        }
        result_free(l);
        op_fail(op, HUTCH_NO_MEMORY, "out of memory");
}

int hutch_get_command_logs(struct hutch_client *client, const struct hutch_endpoint *agent,
                           const struct hutch_logs_query *query, struct hutch_logs **ret,
                           struct hutch_call *call)
{
        static const struct op_kind kind = {
                .doing = "get the command's logs",
                .request = { .method = "GET", .on_response = got_logs },
        };
        struct op *op = op_new(sizeof(struct logs_op), &kind, client, call);
        struct hutch_logs_query q;
        char cursor[24];

        op_take_options(op, &q, sizeof(q), query, "the query");
        (void) snprintf(cursor, sizeof(cursor), "%" PRIu64, q.cursor);
        if (op_need(op, q.command_id, COMMAND_ID)) {
                container_of(op, struct logs_op, op)->from = q.cursor;
                op_to_agent(op, agent, "/command/{}/logs?cursor={}", q.command_id, cursor);
        }
        return op_start(op, ret);
}

/* --- signals --- */

int hutch_interrupt_command(struct hutch_client *client, const struct hutch_endpoint *agent,
                            const char *id, struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("interrupt the command", "DELETE", false, NULL);
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        if (op_need(op, id, COMMAND_ID))
                op_to_agent(op, agent, "/command?id={}", id);
        return op_start(op, NULL);
}

int hutch_signal_command(struct hutch_client *client, const struct hutch_endpoint *agent,
                         const char *id, int signal, struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("signal the command", "POST", true, NULL);
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        if (signal <= 0)
                op_refuse(op, HUTCH_INVALID, "no signal has the number %d", signal);
        if (op_need(op, id, COMMAND_ID))
                op_to_agent(op, agent, "/command/{}/signal", id);
        body_open(op, NULL, '{');
        body_i64(op, "signal", signal);
        body_close(op, '}');
        return op_start(op, NULL);
}

/* --- input --- */

int hutch_write_stdin(struct hutch_client *client, const struct hutch_endpoint *agent,
                      const struct hutch_stdin *input, struct hutch_call *call)
{
        static const struct op_kind kind = {
                .doing = "write to the command",
                .request = { .method = "POST", .has_source = true },
                .stream = true,
        };
        struct op *op = op_new(sizeof(*op), &kind, client, call);
        struct hutch_stdin in;

        op_take_options(op, &in, sizeof(in), input, "the input");
        if (op_need(op, in.command_id, COMMAND_ID)) {
                op->source = in.source;
                op_to_agent(op, agent, "/command/{}/stdin?close={}", in.command_id,
                            in.end ? "true" : "false");
        }
        return op_start(op, NULL);
}

/* --- sessions --- */

int hutch_create_session(struct hutch_client *client, const struct hutch_endpoint *agent,
                         const char *cwd, struct hutch_session **ret, struct hutch_call *call)
{
        static const struct op_kind kind =
                SIMPLE("create a session", "POST", true, &session_decoder);
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        op_to_agent(op, agent, "/session");
        body_open(op, NULL, '{');
        body_text(op, "cwd", cwd);
        body_close(op, '}');
        return op_start(op, ret);
}

int hutch_delete_session(struct hutch_client *client, const struct hutch_endpoint *agent,
                         const char *id, struct hutch_call *call)
{
        static const struct op_kind kind = SIMPLE("delete the session", "DELETE", false, NULL);
        struct op *op = op_new(sizeof(*op), &kind, client, call);

        if (op_need(op, id, "the id of the session"))
                op_to_agent(op, agent, "/session/{}", id);
        return op_start(op, NULL);
}
