/* SPDX-License-Identifier: Apache-2.0 */
#include "api/query.h"

#include "api/problem.h"
#include "base/base.h"
#include "http/url.h"

int query_refuse(struct http_req *req, const char *name, const char *type, const char *msg)
{
        api_fail_query(req, type, name, msg);
        return -EINVAL;
}

int query_get_each(struct http_req *req, struct str *rest, const char *name, struct str *ret)
{
        int r = url_query_each(&req->arena, rest, name, ret);

        if (r == -ENOMEM)
                http_reply_error(req, 413, "PAYLOAD_TOO_LARGE", "the request is too large");
        else if (r < 0)
                return query_refuse(req, name, "value_error", "is badly encoded");
        return r;
}

int query_get(struct http_req *req, const char *name, struct str *ret)
{
        struct str rest = req->query;

        return query_get_each(req, &rest, name, ret);
}

static int refuse_range(struct http_req *req, const struct query_int *what, bool low)
{
        const char *msg = arena_printf(&req->arena, "Input should be %s than or equal to %lld",
                                       low ? "greater" : "less",
                                       (long long) (low ? what->lowest : what->highest));

        return query_refuse(req, what->name, low ? "greater_than_equal" : "less_than_equal",
                            msg ? msg : "is out of its range");
}

int query_get_int(struct http_req *req, const struct query_int *what, int64_t *ret)
{
        struct str text;
        int64_t v;
        int r = query_get(req, what->name, &text);

        if (r == 0 && what->alias)
                r = query_get(req, what->alias, &text);
        if (r <= 0)
                return r;
        r = parse_i64(text, &v);
        if (r == -ERANGE)
                return refuse_range(req, what, text.p[0] == '-');
        if (r < 0)
                return query_refuse(req, what->name, "int_parsing",
                                    "Input should be a valid integer, unable to parse string as an "
                                    "integer");
        if (v < what->lowest || v > what->highest)
                return refuse_range(req, what, v < what->lowest);
        *ret = v;
        return 1;
}
