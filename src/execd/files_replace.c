/* SPDX-License-Identifier: Apache-2.0 */

/*
 * POST /files/replace: replaces every occurrence of a text by another, in files of any size.
 *
 * Theory of operation. A file is read twice. The first pass searches for the first occurrence: a file
 * without one is not touched. The second pass reads from the start again and writes a new file (os/file.h)
 * that takes the place of the old one by rename, so a reader sees the old content or the new, never a
 * mixture, and a crash leaves the old file in place.
 *
 * Both passes go through a window over the file. All of the window is settled (known to hold no part of
 * an occurrence) except for its last bytes, as many as an occurrence has less one: they may be the
 * beginning of an occurrence that ends in the next read.
 *
 * A file that can only be rewritten in place (a mount point, or a directory that is not writable) must be
 * read completely before the first byte is written: its new content is held in memory and limited to
 * IN_PLACE_MAX bytes.
 *
 * All files of a request are checked before the first one is changed. Files that were replaced before a
 * later one fails stay replaced.
 */

#include <unistd.h>

#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/file_batch.h"
#include "os/fd.h"

#define BODY_MAX     (4 * MiB)
#define WINDOW_MIN   (64 * KiB)
#define OUT_MAX      (64 * KiB)
#define IN_PLACE_MAX (8 * MiB)
#define PIECE_COST   (4 * KiB) /* of a piece of work, besides its bytes */
#define TURN_BYTES   (1 * MiB) /* of work between two checks of the clock */

/* --- searching --- */

struct finder {
        int fd;
        struct str old;
        char *window;
        size_t size; /* of the window: at least twice the text, so that a read moves it forward */
        size_t n;    /* bytes in the window */
        size_t pos;  /* of these, settled */
        bool eof;
};

/* Returns bytes that belong to no occurrence, and whether an occurrence follows them: 1, or 0 at the end of
 * the file, or a negative errno. */
static int finder_next(struct finder *f, struct str *ret_plain, bool *ret_found)
{
        char *from = f->window + f->pos;
        const char *at = memmem(from, f->n - f->pos, f->old.p, f->old.n);
        size_t end = f->n;
        ssize_t n;

        if (at)
                end = (size_t) (at - f->window);
        else if (!f->eof)
                end = f->n - f->pos >= f->old.n ? f->n - (f->old.n - 1) : f->pos;
        *ret_plain = str_of(from, end - f->pos);
        *ret_found = at != NULL;
        f->pos = end + (at ? f->old.n : 0);
        if (ret_plain->n > 0 || at)
                return 1;
        if (f->eof)
                return 0;
        memmove(f->window, f->window + f->pos, f->n - f->pos);
        f->n -= f->pos;
        f->pos = 0;
        n = read(f->fd, f->window + f->n, f->size - f->n);
        if (n < 0)
                return errno == EINTR ? 1 : -errno;
        f->eof = n == 0;
        f->n += (size_t) n;
        return 1;
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
        bool open;    /* a file is being processed: */
        bool writing; /* in its second pass */
        uint64_t count;
        size_t spent; /* of TURN_BYTES */
        struct edit edit;
        struct finder finder;
        struct atomic_file file;
        struct buf out;
};

static void close_file(struct replace *w)
{
        free(TAKE_PTR(w->finder.window));
        w->finder.fd = fd_close(w->finder.fd);
        atomic_file_discard(&w->file);
        buf_done(&w->out);
        w->open = w->writing = false;
}

static int open_file(struct replace *w, const char *path)
{
        int fd, r = file_open_read(path, NULL, &fd);

        if (r < 0)
                return r;
        w->finder = (struct finder){ .fd = fd,
                                     .old = w->edit.old,
                                     .size = MAX_OF(WINDOW_MIN, 2 * w->edit.old.n) };
        w->finder.window = xcalloc(1, w->finder.size);
        w->file = ATOMIC_FILE_NULL;
        buf_init(&w->out, OUT_MAX);
        w->open = true;
        w->count = 0;
        return 0;
}

/* Reads the file that will be replaced. It need not be the one that was searched: the path may lead
 * elsewhere by now, and one file's content must not get another's owner and mode. */
static int begin_writing(struct replace *w, const char *path, struct ids *ids)
{
        int fd = -EBADF, r = atomic_file_open(&w->file, path, ids);

        if (r == 0)
                r = atomic_file_open_old(&w->file, &fd);
        if (r < 0)
                return r;
        w->finder.n = w->finder.pos = 0;
        w->finder.eof = false;
        (void) fd_close(w->finder.fd);
        w->finder.fd = fd;
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

/* Small pieces are collected, large ones are written directly. */
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

/* Processes one piece of the file. enum file_batch_progress or a negative errno. */
static int replace_piece(struct replace *w, const char *path, struct ids *ids)
{
        struct str plain;
        bool found;
        int r = finder_next(&w->finder, &plain, &found);

        if (r < 0)
                return r;
        w->spent += PIECE_COST + plain.n + w->edit.old.n + (found ? w->edit.new.n : 0);
        if (!w->writing) {
                if (r == 0)
                        return FILE_BATCH_NEXT;
                r = found ? begin_writing(w, path, ids) : 0;
                return r < 0 ? r : FILE_BATCH_MORE;
        }
        if (r == 0) {
                r = flush(w);
                if (r == 0)
                        r = atomic_file_commit(&w->file, &FILE_ATTRS_KEEP);
                if (r == 0)
                        r = atomic_file_sync_dir(&w->file);
                return r < 0 ? r : FILE_BATCH_NEXT;
        }
        w->count += found;
        r = emit(w, plain);
        if (r == 0 && found)
                r = emit(w, w->edit.new);
        return r < 0 ? r : FILE_BATCH_MORE;
}

/* --- all files --- */

static int check(struct file_batch *fb, struct file_item *item)
{
        scoped(fd_closep) int fd = -EBADF;
        struct arena scratch;
        struct edit edit = { 0 };
        int r;

        /* Validated here, read again later: the request's own arena would not hold all the texts. */
        arena_init(&scratch, 2 * BODY_MAX);
        r = file_item_decode(fb, item, edit_fields, &scratch, &edit);
        arena_done(&scratch);
        if (r == 0)
                r = file_item_resolve(fb, item);
        if (r < 0)
                return r;
        r = file_open_read(item->path.p, NULL, &fd);
        if (r < 0)
                problem_reply_file(fb->req, r, "read", item->path);
        return r;
}

static struct str text_of(const json_t *value, const char *key)
{
        const json_t *s = json_object_get(value, key);

        return json_is_string(s) ? str_of(json_string_value(s), json_string_length(s)) : STR("");
}

static int replace(struct file_batch *fb, struct file_item *item)
{
        struct replace *w = fb->data;
        int r = 0;

        if (!w->open) {
                w->edit = (struct edit){ text_of(item->value, "old"), text_of(item->value, "new") };
                r = open_file(w, item->path.p);
        }
        if (r == 0)
                r = FILE_BATCH_MORE;
        for (w->spent = 0; r == FILE_BATCH_MORE && w->spent < TURN_BYTES;)
                r = replace_piece(w, item->path.p, &agent_of(fb->req)->ids);
        if (r == FILE_BATCH_MORE)
                return r;
        if (w->open)
                close_file(w);
        if (r < 0) {
                problem_reply_file(fb->req, r, "replace in", item->path);
        } else if (w->verbose) {
                file_batch_add_key(fb, item->given);
                buf_add_str(&fb->out, STR("{\"replacedCount\":"));
                buf_add_u64(&fb->out, w->count);
                buf_add_char(&fb->out, '}');
        }
        return r;
}

static void reply(struct file_batch *fb)
{
        const struct replace *w = fb->data;

        if (w->verbose)
                file_batch_reply_object(fb);
        else
                file_batch_reply_empty(fb);
}

static void release(struct file_batch *fb)
{
        struct replace *w = fb->data;

        if (w->open)
                close_file(w);
}

static void post_replace(struct http_req *req)
{
        static const struct file_batch_ops ops = {
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
