/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "base/base.h"
#include "client/body.h"
#include "client/decode.h"
#include "client/op.h"

/*
 * Uploads files as one multipart body, which is generated while it is sent. Each file is a pair of parts,
 * `metadata` and `file`; both have file names, because some agents ignore parts without one.
 */

struct part {
        struct upload_op *up;
        struct hutch_source source;
        uint64_t sent;
        int64_t origin;
        char *metadata, *name; /* in the arena */
        size_t metadata_n;
};

struct upload_op {
        struct op op;
        struct arena arena;
        struct part *parts;
        size_t n;
};

static struct upload_op *upload_of(struct op *op)
{
        return container_of(op, struct upload_op, op);
}

/* --- preparing --- */

static void describe(struct upload_op *u, const struct hutch_file_upload *f, struct part *p)
{
        struct op *op = &u->op;
        const char *slash = strrchr(f->path, '/');
        struct str name = str_from(slash ? slash + 1 : f->path);

        buf_reset(&op->body);
        body_open(op, NULL, '{');
        body_text(op, "path", f->path);
        body_text(op, "owner", f->owner);
        body_text(op, "group", f->group);
        if (f->mode)
                body_i64(op, "mode", decode_mode_digits(f->mode));
        body_close(op, '}');
        p->metadata_n = op->body.n;
        p->metadata = arena_dup(&u->arena, buf_str(&op->body));
        p->name = arena_dup(&u->arena, name.n > 0 ? name : STR("file"));
        if (op->failed == 0 && (buf_failed(&op->body) || !p->metadata || !p->name))
                op_refuse(op, HUTCH_NO_MEMORY, "out of memory");
        buf_reset(&op->body);
}

/* The caller's structs may have another size. */
static void take_files(struct upload_op *u, const struct hutch_file_upload *files, size_t n)
{
        const char *at = (const char *) files;

        if (n == 0 || !files) {
                op_refuse(&u->op, HUTCH_INVALID, "there is no file");
                return;
        }
        u->parts = arena_alloc_array(&u->arena, n, sizeof(*u->parts));
        if (!u->parts) {
                op_refuse(&u->op, HUTCH_NO_MEMORY, "out of memory");
                return;
        }
        for (size_t i = 0; i < n && u->op.failed == 0; i++, at += files[0].size) {
                struct hutch_file_upload f;

                op_take_options(&u->op, &f, sizeof(f), at, "a file");
                if (!op_need(&u->op, f.path, "the path of a file"))
                        break;
                u->parts[i] = (struct part){ .up = u, .source = f.source };
                describe(u, &f, &u->parts[i]);
                u->n++;
        }
}

/* --- sending --- */

static size_t on_read(char *buf, size_t size, size_t n, void *data)
{
        struct part *p = data;

        return source_read(&p->up->op.x, &p->source, &p->sent, buf, size * n);
}

static int on_seek(void *data, curl_off_t offset, int origin)
{
        struct part *p = data;

        if (offset != 0 || origin != SEEK_SET)
                return CURL_SEEKFUNC_CANTSEEK;
        return source_rewind(&p->source, &p->sent, p->origin);
}

static bool add_pair(curl_mime *mime, struct part *p)
{
        curl_mimepart *meta = curl_mime_addpart(mime), *file = curl_mime_addpart(mime);

        if (!meta || !file)
                return false;
        p->origin = source_origin(&p->source);
        return curl_mime_name(meta, "metadata") == CURLE_OK
               && curl_mime_filename(meta, "metadata") == CURLE_OK
               && curl_mime_type(meta, "application/json") == CURLE_OK
               && curl_mime_data(meta, p->metadata, p->metadata_n) == CURLE_OK
               && curl_mime_name(file, "file") == CURLE_OK
               && curl_mime_filename(file, p->name) == CURLE_OK
               && curl_mime_type(file, "application/octet-stream") == CURLE_OK
               && curl_mime_data_cb(file, source_length(&p->source, p->origin), on_read, on_seek,
                                    NULL, p)
                          == CURLE_OK;
}

static curl_mime *make_mime(struct op *op, CURL *easy)
{
        struct upload_op *u = upload_of(op);
        curl_mime *mime = curl_mime_init(easy);

        for (size_t i = 0; mime && i < u->n; i++)
                if (!add_pair(mime, &u->parts[i])) {
                        curl_mime_free(mime);
                        return NULL;
                }
        return mime;
}

static void upload_release(struct op *op)
{
        arena_done(&upload_of(op)->arena);
}

static struct upload_op *new_upload(struct hutch_client *client, struct hutch_call *call)
{
        static const struct op_kind kind = {
                .doing = "upload files",
                .request = { .method = "POST", .mime = make_mime },
                .release = upload_release,
                .stream = true,
        };
        struct op *op = op_new(sizeof(struct upload_op), &kind, client, call);

        if (op)
                arena_init(&upload_of(op)->arena, GiB);
        return op ? upload_of(op) : NULL;
}

int hutch_upload_files(struct hutch_client *client, const struct hutch_endpoint *agent,
                       const struct hutch_file_upload *files, size_t n, struct hutch_call *call)
{
        struct upload_op *u = new_upload(client, call);

        if (!u)
                return HUTCH_NO_MEMORY;
        op_to_agent(&u->op, agent, "/files/upload");
        take_files(u, files, n);
        return op_start(&u->op, NULL);
}

int hutch_write_files(struct hutch_client *client, const char *sandbox_id,
                      const struct hutch_file_upload *files, size_t n, struct hutch_call *call)
{
        struct upload_op *u = new_upload(client, call);

        if (!u)
                return HUTCH_NO_MEMORY;
        op_to_sandbox(&u->op, sandbox_id, "/files/upload");
        take_files(u, files, n);
        return op_start(&u->op, NULL);
}
