/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/codes.h"
#include "execd/file_batch.h"
#include "execd/path.h"
#include "execd/problem.h"

/* POST /files/mv: renames, one after the other, because one may want what another made. */

struct move {
        struct str src, dest;
};

static const struct json_field fields[] = {
        JSON_STR(struct move, src, "src", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_STR(struct move, dest, "dest", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_END,
};

static int resolve(struct http_req *req, struct str *path)
{
        struct err e;
        int r = path_resolve(agent_of(req), &req->arena, *path, path, &e);

        if (r < 0)
                problem_reply(req, &e);
        return r;
}

/* Paths are resolved for all before anything moves. item->given becomes the source, item->path the
 * destination. */
static int check(struct batch *b, size_t i)
{
        struct file_item *item = &file_batch_of(b)->items[i];
        struct move m = { 0 };
        int r = file_item_decode(b->req, item, fields, &b->req->arena, &m);

        if (r == 0)
                r = resolve(b->req, &m.src);
        if (r == 0)
                r = resolve(b->req, &m.dest);
        item->given = m.src;
        item->path = m.dest;
        return r;
}

/* 404 is for a missing source alone. */
static int move(struct batch *b, size_t i)
{
        const struct file_item *item = &file_batch_of(b)->items[i];
        struct stat st;
        int r;

        if (lstat(item->given.p, &st) < 0) {
                r = -errno;
                problem_reply_file(b->req, r, "move", item->given);
                return r;
        }
        r = file_make_parents(item->path.p, 0755, &FILE_ATTRS_KEEP);
        if (r == 0)
                r = file_move(item->given.p, item->path.p);
        if (r < 0)
                http_reply_error(b->req, 500, CODE_RUNTIME_ERROR, "move '%.*s' to '%.*s': %s",
                                 PROBLEM_PATH(item->given), PROBLEM_PATH(item->path), err_text(r));
        return r;
}

static void post_mv(struct http_req *req)
{
        static const struct batch_ops ops = {
                .steps = { check, move },
                .end = file_batch_reply_empty,
                .release = file_batch_release,
        };

        file_batch_start(req, FILE_BATCH_ARRAY, &ops, NULL);
}

static const struct http_route routes[] = {
        { METHOD_POST, "/files/mv", .scope = SCOPE_TOKEN, .body = HTTP_BODY_COLLECT,
          .exec = post_mv },
};

const struct http_api api_files_move = EXECD_API("files_move", routes);
