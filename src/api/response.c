/* SPDX-License-Identifier: Apache-2.0 */
#include "api/response.h"

#include "api/problem.h"
#include "base/base.h"

static int write_large(struct http_req *req, int status, response_fn *write, const void *data)
{
        scoped(buf_done) struct buf b;
        struct str text;

        buf_init(&b, BUF_MAX_JSON);
        write(&b, data);
        text = buf_failed(&b) ? STR_NULL : arena_dup_str(&req->arena, buf_str(&b));
        if (!text.p)
                return -EMSGSIZE;
        http_reply(req, status, STR("application/json"), text);
        return 0;
}

int response_write(struct http_req *req, int status, response_fn *write, const void *data)
{
        char room[HTTP_COPY_MAX];
        struct buf b;

        buf_init_fixed(&b, room, sizeof(room));
        write(&b, data);
        if (buf_failed(&b))
                return write_large(req, status, write, data);
        http_reply(req, status, STR("application/json"), buf_str(&b));
        return 0;
}

void response_too_large(struct http_req *req)
{
        http_reply_error(req, 500, CODE_INTERNAL, "the answer is larger than the server can hold");
}

struct by_table {
        const struct json_field *fields;
        const void *v;
};

static void write_by_table(struct buf *b, const void *data)
{
        const struct by_table *t = data;

        json_encode(b, t->fields, t->v);
}

void response_json(struct http_req *req, int status, const struct json_field *fields, const void *v)
{
        const struct by_table t = { fields, v };

        if (response_write(req, status, write_by_table, &t) < 0)
                response_too_large(req);
}
