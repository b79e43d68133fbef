/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Requests about files by name:
 *
 *         GET /files/info            stat, keyed by the paths as requested
 *         DELETE /files              unlink
 *         POST /files/permissions    owner, group and mode
 *         POST /files/mv             rename
 *         POST /directories          mkdir -p
 */

#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/file_batch.h"
#include "execd/file_info.h"
#include "execd/path.h"

/* --- GET /files/info --- */

static int add_info(struct file_batch *fb, struct file_item *item)
{
        struct statx st;
        int r;

        for (const struct file_item *i = fb->items; i < item; i++)
                if (str_eq(i->given, item->given))
                        return FILE_BATCH_NEXT; /* a second member of that name */
        r = file_item_resolve(fb, item);
        if (r < 0)
                return r;
        r = file_info_stat(AT_FDCWD, item->path.p, &st);
        if (r < 0) {
                problem_reply_file(fb->req, r, "stat", item->path);
                return r;
        }
        file_batch_add_key(fb, item->given);
        file_info_add(&fb->out, item->path, &st, agent_of(fb->req)->users);
        return FILE_BATCH_NEXT;
}

static void get_info(struct http_req *req)
{
        static const struct file_batch_ops ops = {
                .steps = { add_info },
                .end = file_batch_reply_object,
        };

        file_batch_start(req, FILE_BATCH_QUERY, &ops, NULL);
}

/* --- DELETE /files --- */

/* A directory, or a path that cannot be examined, is found before anything is removed. */
static int check_removable(struct file_batch *fb, struct file_item *item)
{
        struct stat st;
        int r = file_item_resolve(fb, item);

        if (r < 0)
                return r;
        if (lstat(item->path.p, &st) < 0)
                r = errno == ENOENT ? 0 : -errno;
        else if (S_ISDIR(st.st_mode))
                r = -EISDIR;
        if (r < 0)
                problem_reply_file(fb->req, r, "remove", item->path);
        return r;
}

static int remove_file(struct file_batch *fb, struct file_item *item)
{
        if (unlink(item->path.p) == 0 || errno == ENOENT)
                return FILE_BATCH_NEXT;
        problem_reply_file(fb->req, -errno, "remove", item->path);
        return -EIO;
}

static void delete_files(struct http_req *req)
{
        static const struct file_batch_ops ops = {
                .steps = { check_removable, remove_file },
                .end = file_batch_reply_empty,
        };

        file_batch_start(req, FILE_BATCH_QUERY, &ops, NULL);
}

/* --- POST /files/permissions --- */

/* Clients of this call expect 500 for a missing file, not 404. */
static int refuse_permission(struct file_batch *fb, const struct file_item *item, int r)
{
        http_reply_error(fb->req, 500, CODE_RUNTIME_ERROR, "change the permissions of '%.*s': %s",
                         PROBLEM_PATH(item->path), err_text(r));
        return r;
}

static int check_permission(struct file_batch *fb, struct file_item *item)
{
        struct stat st;
        int r = file_item_resolve(fb, item);

        if (r == 0)
                r = file_item_permission(fb, item);
        if (r < 0)
                return r;
        return stat(item->path.p, &st) < 0 ? refuse_permission(fb, item, -errno) : FILE_BATCH_NEXT;
}

static int set_permission(struct file_batch *fb, struct file_item *item)
{
        int r = file_set_attrs(item->path.p, &item->attrs);

        return r < 0 ? refuse_permission(fb, item, r) : FILE_BATCH_NEXT;
}

static void post_permissions(struct http_req *req)
{
        static const struct file_batch_ops ops = {
                .steps = { check_permission, set_permission },
                .end = file_batch_reply_empty,
        };

        file_batch_start(req, FILE_BATCH_MAP, &ops, NULL);
}

/* --- POST /files/mv --- */

struct move {
        struct str src, dest;
};

static const struct json_field move_fields[] = {
        JSON_STR(struct move, src, "src", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_STR(struct move, dest, "dest", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_END,
};

/* item->given becomes the resolved source, item->path the destination. */
static int check_move(struct file_batch *fb, struct file_item *item)
{
        struct http_req *req = fb->req;
        struct move m = { 0 };
        struct err e;
        int r = file_item_decode(fb, item, move_fields, &req->arena, &m);

        if (r < 0)
                return r;
        r = path_resolve(agent_of(req), &req->arena, m.src, &item->given, &e);
        if (r == 0)
                r = path_resolve(agent_of(req), &req->arena, m.dest, &item->path, &e);
        if (r < 0)
                problem_reply(req, &e);
        return r;
}

/* Only a missing source is 404. Moves run in order, because one may need what another has made. */
static int move_file(struct file_batch *fb, struct file_item *item)
{
        struct stat st;
        int r;

        if (lstat(item->given.p, &st) < 0) {
                r = -errno;
                problem_reply_file(fb->req, r, "move", item->given);
                return r;
        }
        r = file_make_parents(item->path.p, 0755, &FILE_ATTRS_KEEP);
        if (r == 0)
                r = file_move(item->given.p, item->path.p);
        if (r < 0)
                http_reply_error(fb->req, 500, CODE_RUNTIME_ERROR, "move '%.*s' to '%.*s': %s",
                                 PROBLEM_PATH(item->given), PROBLEM_PATH(item->path), err_text(r));
        return r;
}

static void post_mv(struct http_req *req)
{
        static const struct file_batch_ops ops = {
                .steps = { check_move, move_file },
                .end = file_batch_reply_empty,
        };

        file_batch_start(req, FILE_BATCH_ARRAY, &ops, NULL);
}

/* --- POST /directories --- */

static int check_directory(struct file_batch *fb, struct file_item *item)
{
        int r = file_item_resolve(fb, item);

        return r < 0 ? r : file_item_permission(fb, item);
}

/* A directory that exists keeps its mode but gets the owner. */
static int make_directory(struct file_batch *fb, struct file_item *item)
{
        struct file_attrs attrs = item->attrs;
        bool made;
        int r = file_mkdirs(item->path.p, 0777, &attrs, &made, NULL);

        attrs.mode = FILE_MODE_KEEP;
        if (r == 0 && !made)
                r = file_set_attrs(item->path.p, &attrs);
        if (r < 0)
                problem_reply_errno(fb->req, r, "create directory '%.*s'",
                                    PROBLEM_PATH(item->path));
        return r;
}

static void post_directories(struct http_req *req)
{
        static const struct file_batch_ops ops = {
                .steps = { check_directory, make_directory },
                .end = file_batch_reply_empty,
        };

        file_batch_start(req, FILE_BATCH_MAP, &ops, NULL);
}

static const struct http_route routes[] = {
        { METHOD_GET, "/files/info", .scope = SCOPE_TOKEN, .exec = get_info },
        { METHOD_DELETE, "/files", .scope = SCOPE_TOKEN, .exec = delete_files },
        { METHOD_POST, "/files/permissions", .scope = SCOPE_TOKEN, .body = HTTP_BODY_COLLECT,
          .exec = post_permissions },
        { METHOD_POST, "/files/mv", .scope = SCOPE_TOKEN, .body = HTTP_BODY_COLLECT,
          .exec = post_mv },
        { METHOD_POST, "/directories", .scope = SCOPE_TOKEN, .body = HTTP_BODY_COLLECT,
          .exec = post_directories },
};

const struct http_api api_files = EXECD_API("files", routes);
