/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/codes.h"
#include "execd/file_batch.h"
#include "execd/problem.h"
#include "execd/query.h"
#include "os/fd.h"

/*
 * POST /files/replace: every occurrence of a text by another, in files of any size.
 *
 * A file is read twice: first up to the first occurrence, so that a file without one is left
 * alone; then from its start into a new file that takes its place. Both go through a window
 * of which all but the last few bytes, which could be the beginning of an occurrence, are settled.
 *
 * A file that can only be filled in place (os/file.h) must have been read to its end before: its new
 * content is held in memory, and may have IN_PLACE_MAX bytes at most.
 */

#define BODY_MAX     (4 * MiB)
#define WINDOW_MIN   (64 * KiB)
#define OUT_MAX      (64 * KiB)
#define IN_PLACE_MAX (8 * MiB)
#define PIECE_COST   (4 * KiB) /* besides its bytes */
#define TURN_BYTES   (1 * MiB) /* between two looks at the clock */

/* --- finding --- */

struct finder {
        int fd;
        struct str old;
        char *window;
        size_t size; /* of the window: what is read at a time is not less than what is read again */
        size_t n;    /* bytes in it */
        size_t pos;  /* of these, settled */
        bool eof;
};

static void finder_open(struct finder *f, int fd, struct str old)
{
        *f = (struct finder){ .fd = fd, .old = old, .size = MAX_OF(WINDOW_MIN, 2 * old.n) };
        f->window = xcalloc(1, f->size);
}

static void finder_close(struct finder *f)
{
        free(TAKE_PTR(f->window));
        f->fd = fd_close(f->fd);
}

/* From the start of another file; takes fd. */
static void finder_restart(struct finder *f, int fd)
{
        f->n = f->pos = 0;
        f->eof = false;
        (void) fd_close(f->fd);
        f->fd = fd;
}

static int refill(struct finder *f)
{
        ssize_t n;

        memmove(f->window, f->window + f->pos, f->n - f->pos);
        f->n -= f->pos;
        f->pos = 0;
        n = read(f->fd, f->window + f->n, f->size - f->n);
        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        f->eof = n == 0;
        f->n += (size_t) n;
        return 0;
}

/* Settles what can be: bytes that belong to no occurrence, perhaps one that follows them. */
static void settle(struct finder *f, struct str *ret_plain, bool *ret_found)
{
        char *from = f->window + f->pos;
        const char *at = memmem(from, f->n - f->pos, f->old.p, f->old.n);
        size_t end = f->n;

        if (at)
                end = (size_t) (at - f->window);
        else if (!f->eof)
                end = f->n - f->pos >= f->old.n ? f->n - (f->old.n - 1) : f->pos;
        *ret_plain = str_of(from, end - f->pos);
        *ret_found = at != NULL;
        f->pos = end + (at ? f->old.n : 0);
}

/* 1, 0 at the end of the file, or a negative errno. */
static int finder_next(struct finder *f, struct str *ret_plain, bool *ret_found)
{
        int r = 0;

        settle(f, ret_plain, ret_found);
        if (ret_plain->n > 0 || *ret_found)
                return 1;
        if (f->eof)
                return 0;
        r = refill(f);
        return r < 0 ? r : 1;
}

/* --- one file --- */

struct edit {
        struct str old, new;
};

static const struct json_field edit_fields[] = {
        JSON_STR(struct edit, old, "old", JSON_REQUIRED | JSON_NONEMPTY),
        JSON_STR(struct edit, new, "new", JSON_NULL_OK),
        JSON_END,
};

struct replace {
        bool verbose;
        bool open; /* a file is being worked on: */
        bool writing;
        uint64_t count;
        size_t spent; /* of this turn's TURN_BYTES */
        struct edit edit;
        struct finder finder;
        struct atomic_file file;
        struct buf out;
};

static void close_file(struct replace *w)
{
        finder_close(&w->finder);
        atomic_file_discard(&w->file);
        buf_done(&w->out);
        w->open = w->writing = false;
}

static int open_file(struct replace *w, const char *path)
{
        int fd, r = file_open_read(path, NULL, &fd);

        if (r < 0)
                return r;
        finder_open(&w->finder, fd, w->edit.old);
        w->file = ATOMIC_FILE_NULL;
        buf_init(&w->out, OUT_MAX);
        w->open = true;
        w->count = 0;
        return 0;
}

/* Read is what will be replaced, which need not be what was searched: the path may lead elsewhere
 * by now, and one file's content must not get another's owner and mode. */
static int begin_writing(struct replace *w, const char *path, struct ids *ids)
{
        int fd = -EBADF, r = atomic_file_open(&w->file, path, ids);

        if (r == 0)
                r = atomic_file_open_old(&w->file, &fd);
        if (r < 0)
                return r;
        finder_restart(&w->finder, fd);
        if (atomic_file_is_in_place(&w->file))
                buf_init(&w->out, IN_PLACE_MAX);
        w->writing = true;
        return 0;
}

static int flush(struct replace *w)
{
        int r = atomic_file_write(&w->file, buf_str(&w->out).p, w->out.n);

        buf_reset(&w->out);
        return r;
}

/* Small pieces are gathered, large ones pass. */
static int emit(struct replace *w, struct str bytes)
{
        int r = 0;

        if (bytes.n > buf_room(&w->out) && atomic_file_is_in_place(&w->file))
                return -EFBIG;
        if (bytes.n > buf_room(&w->out))
                r = flush(w);
        if (r == 0 && bytes.n > OUT_MAX && !atomic_file_is_in_place(&w->file))
                return atomic_file_write(&w->file, bytes.p, bytes.n);
        buf_add_str(&w->out, bytes);
        return buf_failed(&w->out) ? -ENOMEM : r;
}

static int finish_file(struct replace *w)
{
        int r = 0;

        if (!w->writing)
                return 0;
        r = flush(w);
        if (r == 0)
                r = atomic_file_commit(&w->file, &FILE_ATTRS_KEEP);
        return r < 0 ? r : atomic_file_sync_dir(&w->file);
}

/* A piece of the file; enum batch_step or a negative errno. */
static int work(struct replace *w, const char *path, struct ids *ids)
{
        struct str plain;
        bool found;
        int r = finder_next(&w->finder, &plain, &found);

        if (r < 0)
                return r;
        w->spent += PIECE_COST + plain.n + w->edit.old.n + (found ? w->edit.new.n : 0);
        if (r == 0) {
                r = finish_file(w);
                return r < 0 ? r : BATCH_NEXT;
        }
        if (!w->writing) {
                r = found ? begin_writing(w, path, ids) : 0;
                return r < 0 ? r : BATCH_MORE;
        }
        w->count += found;
        r = emit(w, plain);
        if (r == 0 && found)
                r = emit(w, w->edit.new);
        return r < 0 ? r : BATCH_MORE;
}

/* --- all of them --- */

static int check(struct batch *b, size_t i)
{
        struct file_item *item = &file_batch_of(b)->items[i];
        scoped(fd_closep) int fd = -EBADF;
        struct arena scratch;
        struct edit edit = { 0 };
        int r;

        /* Only looked at here: the request's own arena would not hold all these texts. */
        arena_init(&scratch, 2 * BODY_MAX);
        r = file_item_decode(b->req, item, edit_fields, &scratch, &edit);
        arena_done(&scratch);
        if (r == 0)
                r = file_item_resolve(b->req, item);
        if (r < 0)
                return r;
        r = file_open_read(item->path.p, NULL, &fd);
        if (r < 0)
                problem_reply_file(b->req, r, "read", item->path);
        return r;
}

static void add_count(struct file_batch *fb, const struct file_item *item, uint64_t count)
{
        buf_add_char(&fb->out, fb->out.n == 0 ? '{' : ',');
        buf_add_quoted(&fb->out, item->given);
        buf_add_str(&fb->out, STR(":{\"replacedCount\":"));
        buf_add_u64(&fb->out, count);
        buf_add_char(&fb->out, '}');
}

static struct str text_of(const json_t *value, const char *key)
{
        const json_t *s = json_object_get(value, key);

        return json_is_string(s) ? str_of(json_string_value(s), json_string_length(s)) : STR("");
}

static int replace(struct batch *b, size_t i)
{
        struct file_batch *fb = file_batch_of(b);
        const struct file_item *item = &fb->items[i];
        struct replace *w = fb->data;
        int r = 0;

        if (!w->open) {
                w->edit = (struct edit){ text_of(item->value, "old"), text_of(item->value, "new") };
                r = open_file(w, item->path.p);
        }
        if (r == 0)
                r = BATCH_MORE;
        for (w->spent = 0; r == BATCH_MORE && w->spent < TURN_BYTES;)
                r = work(w, item->path.p, &agent_of(b->req)->ids);
        if (r == BATCH_MORE)
                return r;
        if (w->open)
                close_file(w);
        if (r < 0)
                problem_reply_file(b->req, r, "replace in", item->path);
        else if (w->verbose)
                add_count(fb, item, w->count);
        return r;
}

static void reply(struct batch *b)
{
        struct file_batch *fb = file_batch_of(b);
        const struct replace *w = fb->data;

        if (!w->verbose) {
                file_batch_reply_empty(b);
                return;
        }
        if (fb->out.n == 0)
                buf_add_char(&fb->out, '{');
        buf_add_char(&fb->out, '}');
        file_batch_reply_out(b);
}

static void release(struct batch *b)
{
        struct replace *w = file_batch_of(b)->data;

        if (w->open)
                close_file(w);
        file_batch_release(b);
}

static void post_replace(struct http_req *req)
{
        static const struct batch_ops ops = {
                .steps = { check, replace },
                .end = reply,
                .release = release,
        };

        struct replace *w = arena_new(&req->arena, struct replace);
        struct str verbose = STR("");

        if (!w || http_req_query(req, "verbose", &verbose) < 0) {
                (void) query_refuse(req);
                return;
        }
        w->verbose = str_eq(verbose, STR("true"));
        file_batch_start(req, FILE_BATCH_MAP, &ops, w);
}

static const struct http_route routes[] = {
        { METHOD_POST, "/files/replace", .scope = SCOPE_TOKEN, .body = HTTP_BODY_COLLECT,
          .body_max = BODY_MAX, .exec = post_replace },
};

const struct http_api api_files_replace = EXECD_API("files_replace", routes);
