/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/query.h"

#include "base/base.h"
#include "execd/agent.h"
#include "execd/codes.h"
#include "execd/path.h"
#include "execd/problem.h"

int query_refuse(struct http_req *req)
{
        http_reply_error(req, 400, CODE_INVALID_BODY, "the query is not properly percent-encoded");
        return -EINVAL;
}

int query_path(struct http_req *req, struct str *ret)
{
        struct str given = STR_NULL;
        struct err e;
        int r = http_req_query(req, "path", &given);

        if (r < 0)
                return query_refuse(req);
        if (given.n == 0) {
                http_reply_error(req, 400, CODE_MISSING_QUERY, "missing query parameter 'path'");
                return -EINVAL;
        }
        r = path_resolve(agent_of(req), &req->arena, given, ret, &e);
        if (r < 0)
                problem_reply(req, &e);
        return r;
}
