/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "client/body.h"
#include "client/options.h"
#include "client/result.h"
#include "client/simple.h"

#define COMMAND_TIMEOUT_MS (31 * 60 * 1000)

static void *to_data(struct op *op, struct str text, int *ret_code)
{
        struct hutch_data *d = result_new(sizeof(*d));

        if (d) {
                d->n = text.n;
                d->data = result_adopt(d, &op->x.answer);
        }
        if (d && d->data)
                return d;
        result_free(d);
        *ret_code = HUTCH_NO_MEMORY;
        return NULL;
}

int hutch_purista_command(struct hutch_client *client, const struct hutch_purista *command,
                          struct hutch_data **ret, struct hutch_call *call)
{
        static const struct simple_kind kind = {
                .op = { .doing = "carry out a command of PURISTA's",
                        .begin = simple_begin,
                        .timeout_ms = COMMAND_TIMEOUT_MS },
                .method = "POST",
                .has_body = true,
                .decode = to_data,
        };
        struct op *op = op_new(sizeof(*op), &kind.op, client, call);
        struct hutch_purista w;
        int r = options_copy(&w, sizeof(w), command);

        if (r < 0)
                op_refuse(op, r, "the options are of another version, or not initialised");
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
