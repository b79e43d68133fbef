/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/file_batch.h"

#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/file_info.h"
#include "execd/path.h"
#include "http/url.h"

/* --- items --- */

static int items_from_query(struct file_batch *fb)
{
        struct str rest = fb->req->query, key, value;
        size_t n = 1;
        int r;

        while (url_query_next(&rest, &key, &value))
                n++;
        fb->items = arena_zalloc(&fb->req->arena, n * sizeof(*fb->items));
        if (!fb->items)
                return -ENOMEM;
        rest = fb->req->query;
        while ((r = url_query_each(&fb->req->arena, &rest, "path", &fb->items[fb->_n].given)) > 0)
                fb->_n++;
        return r < 0 ? query_refuse(fb->req) : 0;
}

static int items_from_body(struct file_batch *fb, bool map)
{
        struct http_req *req = fb->req;
        struct json_error e;
        size_t i = 0;

        if (json_parse(req->body, JSON_ALLOW_TRAILING, &fb->_doc, &e) < 0) {
                http_reply_error(req, 400, CODE_INVALID_BODY, "%s", e.message);
                return -EINVAL;
        }
        if (map ? !json_is_object(fb->_doc) : !json_is_array(fb->_doc)) {
                http_reply_error(req, 400, CODE_INVALID_BODY, "the body must be %s",
                                 map ? "an object with paths as keys" : "an array");
                return -EINVAL;
        }
        fb->_n = map ? json_object_size(fb->_doc) : json_array_size(fb->_doc);
        fb->items = arena_zalloc(&req->arena, (fb->_n + 1) * sizeof(*fb->items));
        if (!fb->items)
                return -ENOMEM;
        for (void *it = map ? json_object_iter(fb->_doc) : NULL; it;
             it = json_object_iter_next(fb->_doc, it)) {
                fb->items[i].given = str_from(json_object_iter_key(it));
                fb->items[i++].value = json_object_iter_value(it);
        }
        for (; !map && i < fb->_n; i++)
                fb->items[i].value = json_array_get(fb->_doc, i);
        return 0;
}

int file_item_resolve(struct file_batch *fb, struct file_item *item)
{
        struct err e;
        int r = path_resolve(agent_of(fb->req), &fb->req->arena, item->given, &item->path, &e);

        if (r < 0)
                problem_reply(fb->req, &e);
        return r;
}

int file_item_decode(struct file_batch *fb, const struct file_item *item,
                     const struct json_field *fields, struct arena *a, void *ret)
{
        struct json_error e;
        int r = json_decode_value(item->value, fields, 0, a, ret, &e);

        if (r < 0)
                http_reply_error(fb->req, 400, CODE_INVALID_BODY, "'%.*s': %s",
                                 PROBLEM_PATH(item->given.p ? item->given : STR("item")),
                                 e.message);
        return r;
}

struct permission_body {
        struct permission permission;
};

int file_item_permission(struct file_batch *fb, struct file_item *item)
{
        static const struct json_field fields[] = {
                PERMISSION_FIELDS(struct permission_body, permission),
                JSON_END,
        };
        struct permission_body body = { 0 };
        struct err e;
        int r = file_item_decode(fb, item, fields, &fb->req->arena, &body);

        if (r < 0)
                return r;
        r = permission_resolve(&body.permission, agent_of(fb->req)->users, &item->attrs, &e);
        if (r < 0)
                problem_reply(fb->req, &e);
        return r;
}

/* --- running --- */

static void batch_free(struct file_batch *fb)
{
        struct http_req *req = fb->req;

        net_task_cancel(&fb->_task);
        http_req_set_hooks(req, NULL, NULL);
        if (fb->_ops->release)
                fb->_ops->release(fb);
        buf_done(&fb->out);
        json_decref(fb->_doc);
        http_req_unref(req);
}

static void run_slice(struct net_task *t)
{
        struct file_batch *fb = container_of(t, struct file_batch, _task);
        struct agent *a = agent_of(fb->req);
        usec_t end = usec_add(clock_mono(a->clock), AGENT_SLICE);

        do {
                int r = FILE_BATCH_NEXT;

                if (fb->_i < fb->_n)
                        r = fb->_ops->steps[fb->_step](fb, &fb->items[fb->_i]);
                if (r < 0) {
                        batch_free(fb);
                        return;
                }
                if (r == FILE_BATCH_MORE || ++fb->_i < fb->_n)
                        continue;
                fb->_i = 0;
                fb->_step++;
                if (fb->_step == FILE_BATCH_STEPS_MAX || !fb->_ops->steps[fb->_step]) {
                        fb->_ops->end(fb);
                        batch_free(fb);
                        return;
                }
        } while (clock_mono(a->clock) < end);
        net_task_queue(a->loop, t);
}

static void batch_abort(struct http_req *req, int reason)
{
        (void) reason;
        batch_free(req->data);
}

void file_batch_start(struct http_req *req, enum file_batch_source source,
                      const struct file_batch_ops *ops, void *data)
{
        static const struct http_hooks hooks = { .abort = batch_abort };
        struct file_batch *fb = arena_new(&req->arena, struct file_batch);
        int r = -ENOMEM;

        if (fb) {
                *fb = (struct file_batch){ .req = http_req_ref(req), .data = data, ._ops = ops };
                buf_init(&fb->out, BUF_MAX_JSON);
                net_task_init(&fb->_task, run_slice);
                r = source == FILE_BATCH_QUERY ? items_from_query(fb)
                                               : items_from_body(fb, source == FILE_BATCH_MAP);
        }
        if (r == -ENOMEM)
                http_reply_error(req, 400, CODE_INVALID_BODY, "the request has too many items");
        if (r < 0) {
                if (fb)
                        batch_free(fb);
                return;
        }
        users_refresh(agent_of(req)->users);
        http_req_set_hooks(req, &hooks, fb);
        run_slice(&fb->_task);
}

/* --- replies --- */

void file_batch_reply_empty(struct file_batch *fb)
{
        http_reply_empty(fb->req, 200);
}

void file_batch_add_key(struct file_batch *fb, struct str name)
{
        buf_add_char(&fb->out, fb->out.n == 0 ? '{' : ',');
        buf_add_quoted(&fb->out, name);
        buf_add_char(&fb->out, ':');
}

void file_batch_reply_object(struct file_batch *fb)
{
        struct str text;

        if (fb->out.n == 0)
                buf_add_char(&fb->out, '{');
        buf_add_char(&fb->out, '}');
        text = arena_dup_str(&fb->req->arena, buf_str(&fb->out));
        if (buf_failed(&fb->out) || !text.p)
                http_reply_error(fb->req, 500, CODE_RUNTIME_ERROR,
                                 "the response is too large; request fewer files");
        else
                http_reply(fb->req, 200, STR("application/json"), text);
}
