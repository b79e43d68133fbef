/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "execd/api.h"
#include "execd/file_batch.h"
#include "execd/problem.h"

/* POST /directories: mkdir -p. A directory that was there keeps its mode, but gets the owner. */

static int check(struct batch *b, size_t i)
{
        struct file_item *item = &file_batch_of(b)->items[i];
        int r = file_item_resolve(b->req, item);

        return r < 0 ? r : file_item_permission(b->req, item);
}

static int make(struct batch *b, size_t i)
{
        const struct file_item *item = &file_batch_of(b)->items[i];
        struct file_attrs attrs = item->attrs;
        bool made;
        int r = file_mkdirs(item->path.p, 0777, &attrs, &made, NULL);

        attrs.mode = FILE_MODE_KEEP;
        if (r == 0 && !made)
                r = file_set_attrs(item->path.p, &attrs);
        if (r < 0)
                problem_reply_errno(b->req, r, "make directory '%.*s'", PROBLEM_PATH(item->path));
        return r;
}

static void post_directories(struct http_req *req)
{
        static const struct batch_ops ops = {
                .steps = { check, make },
                .end = file_batch_reply_empty,
                .release = file_batch_release,
        };

        file_batch_start(req, FILE_BATCH_MAP, &ops, NULL);
}

static const struct http_route routes[] = {
        { METHOD_POST, "/directories", .scope = SCOPE_TOKEN, .body = HTTP_BODY_COLLECT,
          .exec = post_directories },
};

const struct http_api api_directories_make = EXECD_API("directories_make", routes);
