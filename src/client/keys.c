/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "client/body.h"
#include "client/decode.h"
#include "client/options.h"
#include "client/simple.h"

SIMPLE_DECODER(to_key, decode_key)
SIMPLE_DECODER(to_keys, decode_key_list)

int hutch_create_key(struct hutch_client *client, const struct hutch_key_options *options,
                     struct hutch_key **ret, struct hutch_call *call)
{
        static const struct simple_kind kind = SIMPLE("create a key", "POST", true, to_key);
        struct op *op = op_new(sizeof(*op), &kind.op, client, call);
        struct hutch_key_options o;
        int r = options_copy(&o, sizeof(o), options);

        if (r < 0)
                op_refuse(op, r, "the options are of another version, or not initialised");
        op_to_server(op, "/keys");
        if (op_need(op, o.role, "the role")) {
                body_open(op, NULL, '{');
                body_text(op, "role", o.role);
                body_text(op, "name", o.name);
                body_text(op, "tenant", o.tenant);
                body_text(op, "principal", o.principal);
                body_close(op, '}');
        }
        return op_start(op, ret);
}

int hutch_list_keys(struct hutch_client *client, struct hutch_key_list **ret,
                    struct hutch_call *call)
{
        static const struct simple_kind kind = SIMPLE("list keys", "GET", false, to_keys);
        struct op *op = op_new(sizeof(*op), &kind.op, client, call);

        op_to_server(op, "/keys");
        return op_start(op, ret);
}

int hutch_delete_key(struct hutch_client *client, const char *id, struct hutch_call *call)
{
        static const struct simple_kind kind = SIMPLE("delete the key", "DELETE", false, NULL);
        struct op *op = op_new(sizeof(*op), &kind.op, client, call);

        if (op_need(op, id, "the id of the key"))
                op_to_server(op, "/keys/{}", id);
        return op_start(op, NULL);
}
