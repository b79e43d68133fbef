/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "execd/api.h"
#include "execd/archive.h"
#include "execd/codes.h"
#include "execd/file_batch.h"
#include "execd/path.h"
#include "execd/problem.h"
#include "execd/query.h"
#include "execd/tree_listing.h"
#include "os/fd.h"
#include "os/walk.h"

/* GET /files/search, GET /directories/list and DELETE /directories; the table has the archives, too. */

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* --- searching --- */

static int make_glob(struct http_req *req, struct glob **ret)
{
        struct str pattern = STR_NULL;
        int r = http_req_query(req, "pattern", &pattern);

        if (r < 0)
                return query_refuse(req);
        if (pattern.n == 0)
                pattern = STR("**");
        r = glob_new(pattern, ret);
        if (r == -E2BIG)
                http_reply_error(req, 400, CODE_INVALID_BODY,
                                 "the pattern is too long (%d bytes) or its braces are too deep",
                                 GLOB_MAX);
        else if (r < 0)
                http_reply_error(req, 400, CODE_INVALID_BODY,
                                 "the pattern has a bracket, brace or backslash without its end");
        return r;
}

/* A root that is no directory, or a link to one, is itself the only file; one that leads nowhere is
 * not found. */
static void get_search(struct http_req *req)
{
        struct tree_query q = { .rootfd = -EBADF, .files_only = true };
        struct stat st;

        if (query_path(req, &q.root) < 0)
                return;
        if (stat(q.root.p, &st) < 0) {
                problem_reply_file(req, -errno, "search", q.root);
                return;
        }
        q.rootfd = open(q.root.p, OPEN_DIR);
        if (q.rootfd < 0 && errno != ENOTDIR && errno != ELOOP) {
                problem_reply_file(req, -errno, "search", q.root);
                return;
        }
        if (make_glob(req, &q.glob) < 0)
                (void) fd_close(q.rootfd);
        else
                tree_listing_start(req, &q);
}

/* --- listing --- */

static int read_depth(struct http_req *req, unsigned *ret)
{
        struct str text = STR_NULL;
        uint64_t depth = 1;
        int r = http_req_query(req, "depth", &text);

        if (r < 0)
                return query_refuse(req);
        if (text.n > 0 && parse_u64_max(text, INT32_MAX, &depth) < 0) {
                http_reply_error(req, 400, CODE_INVALID_BODY,
                                 "depth must be a number from 0 to 2147483647");
                return -EINVAL;
        }
        *ret = (unsigned) depth;
        return 0;
}

static void get_list(struct http_req *req)
{
        struct tree_query q = { .rootfd = -EBADF };
        struct stat st;

        if (query_path(req, &q.root) < 0 || read_depth(req, &q.depth_max) < 0)
                return;
        q.rootfd = open(q.root.p, OPEN_DIR);
        if (q.rootfd >= 0 && q.depth_max > 0) {
                tree_listing_start(req, &q);
                return;
        }
        if (q.rootfd >= 0)
                http_reply(req, 200, STR("application/json"), STR("[]"));
        else if (errno != ENOTDIR && errno != ELOOP)
                problem_reply_file(req, -errno, "list", q.root);
        else if (lstat(q.root.p, &st) == 0 && S_ISLNK(st.st_mode))
                http_reply_error(req, 400, CODE_INVALID_BODY,
                                 "'%.*s' is a symbolic link; give the path of the directory",
                                 PROBLEM_PATH(q.root));
        else
                http_reply_error(req, 400, CODE_INVALID_BODY, "'%.*s' is not a directory",
                                 PROBLEM_PATH(q.root));
        (void) fd_close(q.rootfd);
}

/* --- removing --- */

/* "/", also in disguise, and what is no name: all are refused before anything is removed. */
static int check_tree(struct batch *b, size_t i)
{
        struct file_item *item = &file_batch_of(b)->items[i];
        struct str path;
        int r = file_item_resolve(b->req, item);

        if (r < 0)
                return r;
        path = path_clean(&b->req->arena, item->path);
        if (!path.p) {
                http_reply_error(b->req, 400, CODE_INVALID_BODY, "the request has too many items");
                return -ENOMEM;
        }
        if (path.n == 1 || str_ends_with(path, STR("/.."))) {
                http_reply_error(
                        b->req, 400, CODE_INVALID_BODY,
                        "'%.*s' can't be removed; give the path of a directory by its name",
                        PROBLEM_PATH(item->given));
                return -EINVAL;
        }
        item->path = path;
        return BATCH_NEXT;
}

struct removal {
        struct walk_remove rm;
        bool begun; /* of the item that is removed now */
};

static void end_removal(struct removal *x)
{
        if (x->begun)
                walk_remove_done(&x->rm);
        x->begun = false;
}

static int remove_tree(struct batch *b, size_t i)
{
        struct file_batch *fb = file_batch_of(b);
        struct removal *x = fb->data;
        struct str at;
        int r;

        if (!x->begun)
                walk_remove_init(&x->rm, AT_FDCWD, fb->items[i].path.p);
        x->begun = true;
        r = walk_remove_step(&x->rm);
        if (r > 0)
                return BATCH_MORE;
        at = walk_remove_path(&x->rm);
        if (r < 0)
                http_reply_error(b->req, 500, CODE_RUNTIME_ERROR, "remove '%.*s%s%.*s': %s",
                                 PROBLEM_PATH(fb->items[i].path), at.n > 0 ? "/" : "",
                                 PROBLEM_PATH(at), err_text(r));
        end_removal(x);
        return r < 0 ? r : BATCH_NEXT;
}

static void release_trees(struct batch *b)
{
        struct removal *x = file_batch_of(b)->data;

        if (x)
                end_removal(x);
        file_batch_release(b);
}

static void delete_directories(struct http_req *req)
{
        static const struct batch_ops ops = {
                .steps = { check_tree, remove_tree },
                .end = file_batch_reply_empty,
                .release = release_trees,
        };
        struct removal *x = arena_new(&req->arena, struct removal);

        if (x)
                file_batch_start(req, FILE_BATCH_QUERY, &ops, x);
        else
                http_reply_error(req, 500, CODE_RUNTIME_ERROR, "out of memory");
}

static const struct http_route routes[] = {
        { METHOD_GET, "/files/archive", .scope = SCOPE_TOKEN, .exec = archive_get },
        { METHOD_POST, "/files/archive", .scope = SCOPE_TOKEN, .body = HTTP_BODY_STREAM,
          .exec = archive_post },
        { METHOD_GET, "/files/search", .scope = SCOPE_TOKEN, .exec = get_search },
        { METHOD_GET, "/directories/list", .scope = SCOPE_TOKEN, .exec = get_list },
        { METHOD_DELETE, "/directories", .scope = SCOPE_TOKEN, .exec = delete_directories },
};

const struct http_api api_directories = EXECD_API("trees", routes);
