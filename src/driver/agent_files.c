/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/agent.h"

#include <stdio.h>

#include "base/base.h"
#include "base/id.h"
#include "driver/agent_call.h"
#include "http/url.h"
#include "model/limits.h"

/* What is wrong with a path, or NULL. */
static const char *check_path(struct str path)
{
        if (path.n == 0)
                return "empty";
        return path.n > PATH_MAX_TEXT ? "too long" : NULL;
}

/* --- reading --- */

static void read_body(struct agent_call *c, struct str bytes)
{
        struct agent_read *x = c->own;

        buf_add_str(&x->bytes, bytes);
        if (buf_failed(&x->bytes)
            || (c->http.length != HTTP_LENGTH_UNKNOWN && c->http.length > x->bytes.max))
                agent__call_stop(c, agent__refuse(c, ERR_TOO_LARGE, "it has more than %zu bytes",
                                                  x->bytes.max));
}

static const struct agent_call_kind read_kind = {
        .what = "read a file",
        .body = read_body,
};

void agent_read(struct agents *a, struct agent_read *x, struct driver *d,
                const struct sandbox *record)
{
        struct agent_call *c = agent__call_new(a, &x->req, &read_kind);
        const char *wrong = check_path(x->path);
        scoped(buf_done) struct buf target;

        c->own = x;
        buf_init(&x->bytes, x->max ? x->max : AGENT_FILE_MAX);
        buf_init(&target, 3 * PATH_MAX_TEXT + 64);
        buf_add_str(&target, STR("/files/download?path="));
        if (!wrong)
                url_encode(&target, x->path);
        c->http.method = STR("GET");
        c->http.target = arena_dup_str(&c->arena, buf_str(&target));
        if (wrong)
                agent__call_end(c, agent__refuse(c, ERR_INVALID, "its path is %s", wrong));
        else
                driver_start(d, driver_connect_req(&c->connect, record));
}

void agent_read_done(struct agent_read *x)
{
        buf_done(&x->bytes);
}

/* --- writing: one request, a part for each file and one before it that describes it --- */

#define FILES_MAX 1000 /* measured at once; the agent takes more */

struct metadata {
        struct str path;
        int64_t mode; /* its decimal digits are the octal mode */
};

static const struct json_field metadata_fields[] = {
        JSON_STR(struct metadata, path, "path", 0),
        JSON_I64(struct metadata, mode, "mode", 0),
        JSON_END,
};

struct writing {
        struct agent_write *x;
        char boundary[ID_HEX_LEN + 1];
        struct buf head;   /* before the file that is being sent */
        size_t file;       /* which one; n: the end */
        size_t head_sent;  /* bytes of the head */
        size_t bytes_sent; /* bytes of the file */
};

/* What stands before file i; behind the last one, the end of it all. */
static void make_head(struct writing *w, size_t i)
{
        const struct agent_file *f = &w->x->files[i];
        int64_t digits = 0, at = 1;

        buf_reset(&w->head);
        if (i > 0)
                buf_add_str(&w->head, STR("\r\n"));
        if (i == w->x->n) {
                buf_addf(&w->head, "--%s--\r\n", w->boundary);
                return;
        }
        for (int left = (f->mode ? f->mode : 0644) & 07777; left; left >>= 3, at *= 10)
                digits += (left & 7) * at;
        buf_addf(&w->head,
                 "--%s\r\nContent-Disposition: form-data; name=\"metadata\"\r\n"
                 "Content-Type: application/json\r\n\r\n",
                 w->boundary);
        json_encode(&w->head, metadata_fields, &(struct metadata){ f->path, digits });
        buf_addf(&w->head,
                 "\r\n--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n"
                 "Content-Type: application/octet-stream\r\n\r\n",
                 w->boundary);
}

/* The length of the body, unless a file is to blame: then what is wrong with its path. */
static const char *measure(struct writing *w, uint64_t *ret)
{
        struct agent_write *x = w->x;

        *ret = 0;
        for (size_t i = 0; i < x->n; i++) {
                const char *wrong = check_path(x->files[i].path);

                /* One that is not UTF-8 would become another path in JSON. */
                if (!wrong && !str_is_utf8(x->files[i].path))
                        wrong = "not UTF-8";
                if (wrong) {
                        x->failed = i;
                        return wrong;
                }
                make_head(w, i);
                *ret += w->head.n + x->files[i].bytes.n;
        }
        make_head(w, x->n);
        *ret += w->head.n;
        make_head(w, 0);
        return NULL;
}

/* Takes the next piece; the null view at the end. */
static struct str next_piece(struct writing *w)
{
        struct agent_write *x = w->x;
        struct str head = str_skip(buf_str(&w->head), w->head_sent);
        struct str left;

        if (head.n > 0) {
                w->head_sent += head.n;
                return head;
        }
        if (w->file == x->n)
                return STR_NULL;
        left = str_skip(x->files[w->file].bytes, w->bytes_sent);
        if (left.n > 0) {
                left.n = MIN_OF(left.n, HTTP_WRITE_MAX);
                w->bytes_sent += left.n;
                return left;
        }
        w->file++;
        w->bytes_sent = w->head_sent = 0;
        make_head(w, w->file);
        return next_piece(w);
}

static void write_drain(struct agent_call *c)
{
        while (http_call_writable(&c->http)) {
                struct str piece = next_piece(c->own);

                if (!piece.p) {
                        http_call_end_body(&c->http);
                        return;
                }
                http_call_write(&c->http, piece);
        }
}

/* Notes which file the agent has refused. */
static void write_free(struct agent_call *c)
{
        struct str which = http_headers_get(&c->http.response, STR("EXECD-FAILED-FILE"));
        struct writing *w = c->own;
        uint64_t index;

        if (c->http.status != 200 && w->x->n > 0 && which.p
            && parse_u64_max(which, w->x->n - 1, &index) == 0)
                w->x->failed = (size_t) index;
        buf_done(&w->head);
        free(w);
}

static const struct agent_call_kind write_kind = {
        .what = "write files",
        .drain = write_drain,
        .free = write_free,
};

void agent_write(struct agents *a, struct agent_write *x, struct driver *d,
                 const struct sandbox *record)
{
        struct agent_call *c = agent__call_new(a, &x->req, &write_kind);
        const bool fits = x->n > 0 && x->n <= FILES_MAX;
        struct writing *w = xnew(struct writing);
        const char *wrong;
        struct ids ids;

        c->own = w;
        w->x = x;
        x->failed = x->n;
        /* Random, so no file can contain it. */
        ids_init(&ids);
        ids_hex(&ids, w->boundary);
        buf_init(&w->head, 6 * PATH_MAX_TEXT + 1024);
        wrong = fits ? measure(w, &c->http.body_length) : NULL;
        c->http.method = STR("POST");
        c->http.target = STR("/files/upload");
        c->http.body = HTTP_CALL_SIZED;
        agent__call_add_header(c, STR("Content-Type"),
                               str_from(arena_printf(&c->arena, "multipart/form-data; boundary=%s",
                                                     w->boundary)));
        if (!fits)
                agent__call_end(c, agent__refuse(c, x->n ? ERR_TOO_LARGE : ERR_INVALID,
                                                 "there are %zu, not 1 to %d", x->n, FILES_MAX));
        else if (wrong)
                agent__call_end(c, agent__refuse(c, ERR_INVALID, "the path of file %zu is %s",
                                                 x->failed, wrong));
        else
                driver_start(d, driver_connect_req(&c->connect, record));
}
