/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Directory trees: GET /files/search, GET /directories/list, DELETE /directories.
 *
 * A search or listing is a JSON array of file objects (execd/file_info.h), streamed in constant memory
 * however many files there are. Directories come before their content, names in ascending order.
 *
 * Left out are files that vanish meanwhile, directories that cannot be read, and files so deep that their
 * path is longer than the kernel accepts. The response is aborted when the tree is moved away during
 * the walk, and when descriptors or memory run out.
 */

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/file_batch.h"
#include "execd/file_info.h"
#include "execd/glob.h"
#include "execd/path.h"
#include "execd/response_stream.h"
#include "os/fd.h"
#include "os/walk.h"

#define OPEN_DIR (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)

/* --- the array of files --- */

struct tree_query {
        struct str root;    /* absolute, NUL-terminated, in the request's arena */
        int rootfd;         /* a directory, or -EBADF: the array has only the root itself */
        unsigned depth_max; /* 0: no limit */
        bool files_only;    /* directories are walked but not listed */
        struct glob *glob;  /* of the names to list, or NULL: all */
};

struct tree_listing {
        struct response_stream stream;
        struct tree_query q;
        struct walk walk;
        bool walking;
        bool begun;      /* "[" was produced */
        bool any;        /* and a file after it */
        struct buf path; /* of the current entry; begins with the root */
        size_t root_n;
};

static void add_file(struct tree_listing *t, int dirfd, const char *name, struct buf *out)
{
        struct statx st;

        if (file_info_stat(dirfd, name, &st) < 0)
                return;
        if (t->any)
                buf_add_char(out, ',');
        t->any = true;
        file_info_add(out, buf_str(&t->path), &st, agent_of(t->stream.req)->users);
}

static int add_next(struct tree_listing *t, struct buf *out)
{
        struct walk_entry e;
        int r = walk_next(&t->walk, &e);
        bool listed;

        if (r <= 0)
                return r;
        if (e.event == WALK_FAILED
            && (e.error == -EMFILE || e.error == -ENFILE || e.error == -ENOMEM))
                return e.error;
        if (e.event == WALK_DIR)
                listed = !t->q.files_only;
        else
                listed = e.event == WALK_ENTRY
                         && (!t->q.glob || glob_matches(t->q.glob, str_from(e.name)));
        if (!listed)
                return 1;
        buf_truncate(&t->path, t->root_n);
        if (t->root_n > 1) /* the root is not "/" */
                buf_add_char(&t->path, '/');
        buf_add_str(&t->path, e.path);
        add_file(t, e.dirfd, e.name, out);
        return 1;
}

static int produce(struct response_stream *s, struct buf *out)
{
        struct tree_listing *t = container_of(s, struct tree_listing, stream);
        struct str root = buf_str(&t->path);
        int r = 0;

        if (!t->begun)
                buf_add_char(out, '[');
        t->begun = true;
        if (t->walking)
                r = add_next(t, out);
        else if (!t->q.glob || glob_matches(t->q.glob, str_from(strrchr(root.p, '/') + 1)))
                add_file(t, AT_FDCWD, t->q.root.p, out);
        if (r == 0)
                buf_add_char(out, ']');
        return r;
}

static void release(struct response_stream *s)
{
        struct tree_listing *t = container_of(s, struct tree_listing, stream);

        if (t->walking)
                walk_close(&t->walk);
        (void) fd_close(t->q.rootfd);
        glob_free(t->q.glob);
        buf_done(&t->path);
        free(t);
}

/* Replies. Takes rootfd and glob. */
static void list_tree(struct http_req *req, const struct tree_query *q)
{
        static const struct response_stream_ops ops = { .produce = produce, .release = release };
        struct tree_listing *t = xnew(struct tree_listing);
        struct str clean = path_clean(&req->arena, q->root);
        int r = clean.p ? 0 : -ENOMEM;

        t->q = *q;
        t->root_n = clean.n;
        buf_init(&t->path, PATH_MAX - 1);
        buf_add_str(&t->path, clean);
        if (r == 0 && q->rootfd >= 0) {
                const struct walk_options options = {
                        .flags = WALK_SORTED,
                        .depth_max = q->depth_max,
                        .path_max = PATH_MAX - 1 - MIN_OF(t->root_n + 1, (size_t) PATH_MAX - 2),
                };

                r = walk_open(&t->walk, TAKE_FD(t->q.rootfd), &options);
                t->walking = r == 0;
        }
        if (r < 0) {
                problem_reply_file(req, r, "read", q->root);
                release(&t->stream);
                return;
        }
        users_refresh(agent_of(req)->users);
        response_stream_start(&t->stream, req, STR("application/json"), &ops);
}

/* --- GET /files/search --- */

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

/* A root that is not a directory, or is a symlink to one, is itself the only file. A dangling symlink is
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
                list_tree(req, &q);
}

/* --- GET /directories/list --- */

static void get_list(struct http_req *req)
{
        struct tree_query q = { .rootfd = -EBADF };
        struct str text = STR_NULL;
        uint64_t depth = 1;
        struct stat st;

        if (query_path(req, &q.root) < 0)
                return;
        if (http_req_query(req, "depth", &text) < 0) {
                (void) query_refuse(req);
                return;
        }
        if (text.n > 0 && parse_u64_max(text, INT32_MAX, &depth) < 0) {
                http_reply_error(req, 400, CODE_INVALID_BODY,
                                 "depth must be a number from 0 to 2147483647");
                return;
        }
        q.depth_max = (unsigned) depth;
        q.rootfd = open(q.root.p, OPEN_DIR);
        if (q.rootfd >= 0 && q.depth_max > 0) {
                list_tree(req, &q);
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

/* --- DELETE /directories --- */

/* Refuses "/", under any spelling, and paths that end in "..", before anything is removed. */
static int check_tree(struct file_batch *fb, struct file_item *item)
{
        struct str path;
        int r = file_item_resolve(fb, item);

        if (r < 0)
                return r;
        path = path_clean(&fb->req->arena, item->path);
        if (!path.p) {
                http_reply_error(fb->req, 400, CODE_INVALID_BODY, "the request has too many items");
                return -ENOMEM;
        }
        if (path.n == 1 || str_ends_with(path, STR("/.."))) {
                http_reply_error(
                        fb->req, 400, CODE_INVALID_BODY,
                        "'%.*s' can't be removed; give the path of a directory by its name",
                        PROBLEM_PATH(item->given));
                return -EINVAL;
        }
        item->path = path;
        return FILE_BATCH_NEXT;
}

struct removal {
        struct walk_remove rm;
        bool begun; /* for the current item */
};

static void end_removal(struct file_batch *fb)
{
        struct removal *x = fb->data;

        if (x->begun)
                walk_remove_done(&x->rm);
        x->begun = false;
}

static int remove_tree(struct file_batch *fb, struct file_item *item)
{
        struct removal *x = fb->data;
        struct str at;
        int r;

        if (!x->begun)
                walk_remove_init(&x->rm, AT_FDCWD, item->path.p);
        x->begun = true;
        r = walk_remove_step(&x->rm);
        if (r > 0)
                return FILE_BATCH_MORE;
        at = walk_remove_path(&x->rm);
        if (r < 0)
                http_reply_error(fb->req, 500, CODE_RUNTIME_ERROR, "remove '%.*s%s%.*s': %s",
                                 PROBLEM_PATH(item->path), at.n > 0 ? "/" : "", PROBLEM_PATH(at),
                                 err_text(r));
        end_removal(fb);
        return r < 0 ? r : FILE_BATCH_NEXT;
}

static void delete_directories(struct http_req *req)
{
        static const struct file_batch_ops ops = {
                .steps = { check_tree, remove_tree },
                .end = file_batch_reply_empty,
                .release = end_removal,
        };
        struct removal *x = arena_new(&req->arena, struct removal);

        if (x)
                file_batch_start(req, FILE_BATCH_QUERY, &ops, x);
        else
                http_reply_error(req, 500, CODE_RUNTIME_ERROR, "out of memory");
}

static const struct http_route routes[] = {
        { METHOD_GET, "/files/search", .scope = SCOPE_TOKEN, .exec = get_search },
        { METHOD_GET, "/directories/list", .scope = SCOPE_TOKEN, .exec = get_list },
        { METHOD_DELETE, "/directories", .scope = SCOPE_TOKEN, .exec = delete_directories },
};

const struct http_api api_directories = EXECD_API("directories", routes);
