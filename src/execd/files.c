/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "base/base.h"
#include "execd/api.h"
#include "execd/codes.h"
#include "execd/file_batch.h"
#include "execd/problem.h"

/* DELETE /files and POST /files/permissions. */

/* --- removing --- */

/* A directory, or what can't be looked at, is found before anything is removed. */
static int check_removable(struct batch *b, size_t i)
{
        struct file_item *item = &file_batch_of(b)->items[i];
        struct stat st;
        int r = file_item_resolve(b->req, item);

        if (r < 0)
                return r;
        if (lstat(item->path.p, &st) < 0)
                r = errno == ENOENT ? 0 : -errno;
        else if (S_ISDIR(st.st_mode))
                r = -EISDIR;
        if (r < 0)
                problem_reply_file(b->req, r, "remove", item->path);
        return r;
}

static int remove_file(struct batch *b, size_t i)
{
        const struct file_item *item = &file_batch_of(b)->items[i];

        if (unlink(item->path.p) == 0 || errno == ENOENT)
                return BATCH_NEXT;
        problem_reply_file(b->req, -errno, "remove", item->path);
        return -EIO;
}

static void delete_files(struct http_req *req)
{
        static const struct batch_ops ops = {
                .steps = { check_removable, remove_file },
                .end = file_batch_reply_empty,
                .release = file_batch_release,
        };

        file_batch_start(req, FILE_BATCH_QUERY, &ops, NULL);
}

/* --- owner and mode --- */

/* A missing file is not 404 here, as it is elsewhere: clients of this call know 500. */
static int refuse(struct batch *b, const struct file_item *item, int r)
{
        http_reply_error(b->req, 500, CODE_RUNTIME_ERROR, "change the permissions of '%.*s': %s",
                         PROBLEM_PATH(item->path), err_text(r));
        return r;
}

static int check_permission(struct batch *b, size_t i)
{
        struct file_item *item = &file_batch_of(b)->items[i];
        struct stat st;
        int r = file_item_resolve(b->req, item);

        if (r == 0)
                r = file_item_permission(b->req, item);
        if (r < 0)
                return r;
        return stat(item->path.p, &st) < 0 ? refuse(b, item, -errno) : BATCH_NEXT;
}

static int set_permission(struct batch *b, size_t i)
{
        const struct file_item *item = &file_batch_of(b)->items[i];
        int r = file_set_attrs(item->path.p, &item->attrs);

        return r < 0 ? refuse(b, item, r) : BATCH_NEXT;
}

static void post_permissions(struct http_req *req)
{
        static const struct batch_ops ops = {
                .steps = { check_permission, set_permission },
                .end = file_batch_reply_empty,
                .release = file_batch_release,
        };

        file_batch_start(req, FILE_BATCH_MAP, &ops, NULL);
}

static const struct http_route routes[] = {
        { METHOD_DELETE, "/files", .scope = SCOPE_TOKEN, .exec = delete_files },
        { METHOD_POST, "/files/permissions", .scope = SCOPE_TOKEN, .body = HTTP_BODY_COLLECT,
          .exec = post_permissions },
};

const struct http_api api_files = EXECD_API("files_change", routes);
