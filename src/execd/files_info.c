/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>

#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/file_batch.h"
#include "execd/file_info.h"
#include "execd/problem.h"

/* GET /files/info: what files are, keyed by the paths as they were asked for. */

static bool was_there(const struct file_batch *fb, size_t i)
{
        for (size_t k = 0; k < i; k++)
                if (str_eq(fb->items[k].given, fb->items[i].given))
                        return true;
        return false;
}

static int add_info(struct batch *b, size_t i)
{
        struct file_batch *fb = file_batch_of(b);
        struct file_item *item = &fb->items[i];
        struct statx st;
        int r;

        if (was_there(fb, i))
                return BATCH_NEXT;
        r = file_item_resolve(b->req, item);
        if (r < 0)
                return r;
        r = file_info_stat(AT_FDCWD, item->path.p, &st);
        if (r < 0) {
                problem_reply_file(b->req, r, "look at", item->path);
                return r;
        }
        buf_add_char(&fb->out, fb->out.n == 0 ? '{' : ',');
        buf_add_quoted(&fb->out, item->given);
        buf_add_char(&fb->out, ':');
        file_info_add(&fb->out, item->path, &st, agent_of(b->req)->users);
        return BATCH_NEXT;
}

static void reply(struct batch *b)
{
        struct buf *out = &file_batch_of(b)->out;

        if (out->n == 0)
                buf_add_char(out, '{');
        buf_add_char(out, '}');
        file_batch_reply_out(b);
}

static const struct batch_ops ops = {
        .steps = { add_info },
        .end = reply,
        .release = file_batch_release,
};

static void get_info(struct http_req *req)
{
        file_batch_start(req, FILE_BATCH_QUERY, &ops, NULL);
}

static const struct http_route routes[] = {
        { METHOD_GET, "/files/info", .scope = SCOPE_TOKEN, .exec = get_info },
};

const struct http_api api_files_info = EXECD_API("files_info", routes);
