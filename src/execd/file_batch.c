/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/file_batch.h"

#include "base/base.h"
#include "execd/agent.h"
#include "execd/codes.h"
#include "execd/path.h"
#include "execd/permission.h"
#include "execd/problem.h"
#include "execd/query.h"
#include "http/url.h"

/* --- items of the query --- */

static size_t count_query(struct http_req *req)
{
        struct str rest = req->query, key, value;
        size_t n = 0;

        while (url_query_next(&rest, &key, &value))
                n++;
        return n;
}

static int items_from_query(struct file_batch *fb, struct http_req *req)
{
        struct str rest = req->query;
        size_t n = 0;
        int r;

        fb->items = arena_zalloc(&req->arena, (count_query(req) + 1) * sizeof(*fb->items));
        if (!fb->items)
                return -ENOMEM;
        while ((r = url_query_each(&req->arena, &rest, "path", &fb->items[n].given)) > 0)
                n++;
        fb->batch.n = n;
        return r < 0 ? query_refuse(req) : 0;
}

/* --- items of the body --- */

static void items_from_map(struct file_batch *fb)
{
        size_t i = 0;

        for (void *it = json_object_iter(fb->_doc); it; it = json_object_iter_next(fb->_doc, it)) {
                fb->items[i].given = str_from(json_object_iter_key(it));
                fb->items[i++].value = json_object_iter_value(it);
        }
}

static int items_from_body(struct file_batch *fb, struct http_req *req, bool map)
{
        struct json_error e;

        if (json_parse(req->body, JSON_ALLOW_TRAILING, &fb->_doc, &e) < 0) {
                http_reply_error(req, 400, CODE_INVALID_BODY, "%s", e.message);
                return -EINVAL;
        }
        if (map ? !json_is_object(fb->_doc) : !json_is_array(fb->_doc)) {
                http_reply_error(req, 400, CODE_INVALID_BODY, "the body must be %s",
                                 map ? "an object with paths as keys" : "an array");
                return -EINVAL;
        }
        fb->batch.n = map ? json_object_size(fb->_doc) : json_array_size(fb->_doc);
        fb->items = arena_zalloc(&req->arena, (fb->batch.n + 1) * sizeof(*fb->items));
        if (!fb->items)
                return -ENOMEM;
        if (map)
                items_from_map(fb);
        for (size_t i = 0; !map && i < fb->batch.n; i++)
                fb->items[i].value = json_array_get(fb->_doc, i);
        return 0;
}

/* --- life --- */

void file_batch_start(struct http_req *req, enum file_batch_source source,
                      const struct batch_ops *ops, void *data)
{
        struct file_batch *fb = arena_new(&req->arena, struct file_batch);
        int r = fb ? 0 : -ENOMEM;

        if (fb) {
                fb->data = data;
                buf_init(&fb->out, BUF_MAX_JSON);
                r = source == FILE_BATCH_QUERY ? items_from_query(fb, req)
                                               : items_from_body(fb, req, source == FILE_BATCH_MAP);
        }
        if (r == -ENOMEM)
                http_reply_error(req, 400, CODE_INVALID_BODY, "the request has too many items");
        if (r < 0) {
                if (fb)
                        file_batch_release(&fb->batch);
                return;
        }
        users_refresh(agent_of(req)->users);
        batch_start(&fb->batch, req, ops, fb->batch.n);
}

void file_batch_release(struct batch *b)
{
        struct file_batch *fb = file_batch_of(b);

        buf_done(&fb->out);
        json_decref(fb->_doc);
        fb->_doc = NULL;
}

void file_batch_reply_empty(struct batch *b)
{
        http_reply_empty(b->req, 200);
}

void file_batch_reply_out(struct batch *b)
{
        struct file_batch *fb = file_batch_of(b);
        struct str text = arena_dup_str(&b->req->arena, buf_str(&fb->out));

        if (buf_failed(&fb->out) || !text.p)
                http_reply_error(b->req, 500, CODE_RUNTIME_ERROR,
                                 "the answer is too large; ask for fewer files");
        else
                http_reply(b->req, 200, STR("application/json"), text);
}

/* --- items --- */

int file_item_resolve(struct http_req *req, struct file_item *item)
{
        struct err e;
        int r = path_resolve(agent_of(req), &req->arena, item->given, &item->path, &e);

        if (r < 0)
                problem_reply(req, &e);
        return r;
}

int file_item_decode(struct http_req *req, const struct file_item *item,
                     const struct json_field *fields, struct arena *a, void *ret)
{
        struct json_error e;
        int r = json_decode_value(item->value, fields, 0, a, ret, &e);

        if (r < 0)
                http_reply_error(req, 400, CODE_INVALID_BODY, "'%.*s': %s",
                                 PROBLEM_PATH(item->given.p ? item->given : STR("item")),
                                 e.message);
        return r;
}

struct permission_body {
        struct permission permission;
};

int file_item_permission(struct http_req *req, struct file_item *item)
{
        static const struct json_field fields[] = {
                PERMISSION_FIELDS(struct permission_body, permission),
                JSON_END,
        };
        struct permission_body body = { 0 };
        struct err e;
        int r = file_item_decode(req, item, fields, &req->arena, &body);

        if (r < 0)
                return r;
        r = permission_resolve(&body.permission, agent_of(req)->users, &item->attrs, &e);
        if (r < 0)
                problem_reply(req, &e);
        return r;
}
