/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/tree_listing.h"

#include <fcntl.h>
#include <limits.h>

#include "base/base.h"
#include "execd/agent.h"
#include "execd/file_info.h"
#include "execd/response_stream.h"
#include "execd/problem.h"
#include "os/fd.h"
#include "os/walk.h"

struct tree_listing {
        struct response_stream flow;
        struct tree_query q;
        struct walk walk;
        bool walking;
        bool begun;      /* "[" is out */
        bool any;        /* and something behind it */
        struct buf path; /* of the entry to be told; begins with the root */
        size_t root_n;
};

static struct tree_listing *listing_of(struct response_stream *f)
{
        return container_of(f, struct tree_listing, flow);
}

/* --- one entry --- */

static bool is_shortage(const struct walk_entry *e)
{
        return e->what == WALK_FAILED
               && (e->error == -EMFILE || e->error == -ENFILE || e->error == -ENOMEM);
}

static bool is_wanted(const struct tree_listing *t, const struct walk_entry *e)
{
        if (e->what == WALK_DIR)
                return !t->q.files_only;
        return e->what == WALK_ENTRY && (!t->q.glob || glob_matches(t->q.glob, str_from(e->name)));
}

static void tell(struct tree_listing *t, int dirfd, const char *name, struct buf *out)
{
        struct statx st;

        if (file_info_stat(dirfd, name, &st) < 0)
                return;
        if (t->any)
                buf_add_char(out, ',');
        t->any = true;
        file_info_add(out, buf_str(&t->path), &st, agent_of(t->flow.req)->users);
}

static int tell_root(struct tree_listing *t, struct buf *out)
{
        struct str root = buf_str(&t->path);
        const char *name = memrchr(root.p, '/', root.n);

        if (!t->q.glob || glob_matches(t->q.glob, str_from(name + 1)))
                tell(t, AT_FDCWD, t->q.root.p, out);
        return 0;
}

static int tell_next(struct tree_listing *t, struct buf *out)
{
        struct walk_entry e;
        int r = walk_next(&t->walk, &e);

        if (r > 0 && is_shortage(&e))
                return e.error;
        if (r <= 0 || !is_wanted(t, &e))
                return r;
        buf_truncate(&t->path, t->root_n);
        if (t->root_n > 1) /* all but "/" */
                buf_add_char(&t->path, '/');
        buf_add_str(&t->path, e.path);
        tell(t, e.dirfd, e.name, out);
        return 1;
}

/* --- the array --- */

static int produce(struct response_stream *f, struct buf *out)
{
        struct tree_listing *t = listing_of(f);
        int r;

        if (!t->begun)
                buf_add_char(out, '[');
        t->begun = true;
        r = t->walking ? tell_next(t, out) : tell_root(t, out);
        if (r == 0)
                buf_add_char(out, ']');
        return r;
}

static void release(struct response_stream *f)
{
        struct tree_listing *t = listing_of(f);

        if (t->walking)
                walk_close(&t->walk);
        (void) fd_close(t->q.rootfd);
        glob_free(t->q.glob);
        buf_done(&t->path);
        free(t);
}

/* A directory is walked; of anything else only the root is told. */
static int open_root(struct tree_listing *t)
{
        const struct walk_options options = {
                .flags = WALK_SORTED,
                .depth_max = t->q.depth_max,
                .path_max = PATH_MAX - 1 - MIN_OF(t->root_n + 1, (size_t) PATH_MAX - 2),
        };
        int r;

        if (t->q.rootfd < 0)
                return 0;
        r = walk_open(&t->walk, TAKE_FD(t->q.rootfd), &options);
        t->walking = r == 0;
        return r;
}

void tree_listing_start(struct http_req *req, const struct tree_query *q)
{
        static const struct response_stream_ops ops = { .produce = produce, .release = release };
        struct tree_listing *t = xnew(struct tree_listing);
        struct str shown = path_clean(&req->arena, q->root);
        int r;

        t->q = *q;
        t->root_n = shown.n;
        buf_init(&t->path, PATH_MAX - 1);
        buf_add_str(&t->path, shown);
        r = shown.p ? open_root(t) : -ENOMEM;
        if (r < 0) {
                problem_reply_file(req, r, "read", q->root);
                release(&t->flow);
                return;
        }
        users_refresh(agent_of(req)->users);
        response_stream_start(&t->flow, req, STR("application/json"), &ops);
}

struct str path_clean(struct arena *a, struct str path)
{
        char *p = arena_alloc(a, path.n + 2);
        struct str part;
        size_t n = 0;

        if (!p)
                return STR_NULL;
        while (str_split(&path, '/', &part)) {
                if (part.n == 0 || str_eq(part, STR(".")))
                        continue;
                p[n++] = '/';
                memcpy(p + n, part.p, part.n);
                n += part.n;
        }
        if (n == 0)
                p[n++] = '/';
        p[n] = '\0';
        return str_of(p, n);
}
