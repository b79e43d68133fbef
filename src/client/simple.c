/* SPDX-License-Identifier: Apache-2.0 */
#include "client/simple.h"

#include "base/base.h"

static const struct simple_kind *kind_of(const struct op *op)
{
        return container_of(op->kind, struct simple_kind, op);
}

void op_fail_response(struct op *op, int code)
{
        op->x.error.http_status = op->x.status;
        memcpy(op->x.error.request_id, op->x.request_id, sizeof(op->x.request_id));
        if (code == HUTCH_NO_MEMORY)
                op_fail(op, code, "out of memory");
        else
                op_fail(op, HUTCH_PROTOCOL,
                        "the answer (%d, %zu bytes) is not what was asked for; is this the API's address?",
                        op->x.status, op->x.answer.n);
}

static void on_response(struct op *op)
{
        const struct simple_kind *k = kind_of(op);
        int code = HUTCH_PROTOCOL;
        void *result;

        if (!op_check_response(op))
                return;
        if (!k->decode) {
                op_succeed(op, NULL);
                return;
        }
        result = k->decode(op, buf_str(&op->x.answer), &code);
        if (result)
                op_succeed(op, result);
        else
                op_fail_response(op, code);
}

void simple_begin(struct op *op)
{
        const struct simple_kind *k = kind_of(op);

        op_send(op, &(struct request){ .method = k->method,
                                       .has_body = k->has_body,
                                       .on_response = on_response });
}
