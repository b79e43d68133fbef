/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/codes.h"
#include "execd/file_commits.h"
#include "execd/path.h"
#include "execd/permission.h"
#include "execd/problem.h"
#include "http/upload.h"
#include "os/file.h"

/*
 * POST /files/upload: files of any size, each described by a part of its own.
 *
 * The parts "metadata" and "file" are paired by their order, and a file's metadata comes before it:
 * usually right before it, but several may come first and wait. Parts of other names are passed
 * over. Files take their places in their order, and those before a failure stay: so it is told when
 * they have.
 *
 * A file that has come takes its place in a later turn of the loop (execd/file_commits.h), while the
 * client is held back: a hundred small files that came in one read keep nobody else waiting.
 */

#define METADATA_MAX (64 * KiB)
#define WAITING_MAX  (1 * MiB) /* of metadata whose files have not come yet */
#define PARTS_MAX    20000

#define NO_FILE SIZE_MAX

enum part {
        PART_NONE,
        PART_METADATA,
        PART_FILE,
        PART_OTHER,
};

struct metadata {
        struct str path;
        struct permission permission;
};

static const struct json_field metadata_fields[] = {
        JSON_STR(struct metadata, path, "path", JSON_REQUIRED | JSON_NONEMPTY),
        PERMISSION_FIELDS(struct metadata, permission),
        JSON_END,
};

/* What the client will be told. */
struct failure {
        int status;  /* 0: nothing went wrong */
        size_t file; /* which one is to blame, counted from 0; or NO_FILE */
        const char *code;
        char message[ERR_MESSAGE_MAX];
};

struct upload {
        struct http_upload http;
        struct http_req *req;
        struct agent *agent;
        enum part part;
        size_t n_metadata, n_files;
        size_t metadata_bytes; /* of the part that is being received */
        struct buf waiting;    /* metadata without their files yet, a NUL behind each */

        /* --- the file that is being received --- */
        struct arena arena;
        struct str path;
        struct file_attrs attrs;
        struct atomic_file file;

        /* --- those that were --- */
        struct file_commits commits;
        struct net_task task;
        struct failure failure;
        bool ended; /* nothing more will come */
};

static struct upload *upload_of(struct http_upload *u)
{
        return container_of(u, struct upload, http);
}

/* --- what goes wrong --- */

static void reply_failure(struct upload *u)
{
        const struct failure *f = &u->failure;
        char number[24];

        (void) snprintf(number, sizeof(number), "%zu", f->file);
        if (f->file != NO_FILE)
                (void) http_res_header(u->req, STR("EXECD-FAILED-FILE"), str_from(number));
        http_reply_error(u->req, f->status, f->code, "%s", f->message);
}

/* What still comes is passed over. Files that wait for their places get them first; else the client
 * is told at once, and negative is returned. */
printf_like(4, 5) static int refuse(struct upload *u, int status, const char *code, const char *fmt,
                                    ...)
{
        struct failure *f = &u->failure;
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(f->message, sizeof(f->message), fmt, ap);
        va_end(ap);
        f->status = status;
        f->code = code;
        u->part = PART_OTHER;
        atomic_file_discard(&u->file);
        if (file_commits_pending(&u->commits))
                return 0;
        reply_failure(u);
        return -ECANCELED;
}

/* Here nothing is 404: a missing directory is made, and what else is missing is our trouble. */
static int refuse_file(struct upload *u, size_t number, struct str path, int r)
{
        u->failure.file = number;
        return refuse(u, 500, CODE_RUNTIME_ERROR, "write '%.*s': %s", PROBLEM_PATH(path),
                      r == -EINVAL ? "it exists and is not a regular file" : err_text(r));
}

static int refuse_metadata(struct upload *u, const char *why)
{
        u->failure.file = u->n_files - 1;
        return refuse(u, 400, CODE_INVALID_METADATA, "metadata of file %zu: %s", u->n_files, why);
}

/* --- where a file goes --- */

static int resolve(struct upload *u, const struct metadata *m, struct err *e)
{
        int r;

        users_refresh(u->agent->users);
        r = path_resolve(u->agent, &u->arena, m->path, &u->path, e);
        return r < 0 ? r : permission_resolve(&m->permission, u->agent->users, &u->attrs, e);
}

/* Folders on the way get the file's owner, if they are new, but not its mode. */
static int open_target(struct upload *u)
{
        int r = file_make_parents(u->path.p, 0777, &u->attrs);

        return r < 0 ? r : atomic_file_open(&u->file, u->path.p, &u->agent->ids);
}

static int begin_file(struct upload *u)
{
        struct str text = str_from(buf_str(&u->waiting).p);
        struct metadata m = { 0 };
        struct json_error je;
        struct err e;
        int r;

        u->n_files++;
        if (u->n_files > u->n_metadata) {
                u->failure.file = u->n_files - 1;
                return refuse(u, 400, u->n_metadata ? CODE_INVALID_FILE : CODE_INVALID_METADATA,
                              "file %zu has no metadata part before it", u->n_files);
        }
        arena_reset(&u->arena);
        r = json_decode(text, metadata_fields, JSON_ALLOW_TRAILING, &u->arena, &m, &je);
        buf_consume(&u->waiting, text.n + 1);
        if (r < 0)
                return refuse_metadata(u, je.message);
        if (resolve(u, &m, &e) < 0) {
                u->failure.file = u->n_files - 1;
                return e.code == ERR_NOT_FOUND ? refuse(u, 500, CODE_RUNTIME_ERROR, "%s", e.message)
                                               : refuse_metadata(u, e.message);
        }
        r = open_target(u);
        return r < 0 ? refuse_file(u, u->n_files - 1, u->path, r) : 0;
}

static void end_file(struct upload *u)
{
        file_commits_add(&u->commits, &u->file, &u->attrs, u->path);
        http_body_pause(u->req);
        net_task_queue(u->agent->loop, &u->task);
}

/* --- parts --- */

static bool has_failed(const struct upload *u)
{
        return u->failure.status || u->commits.failed < 0;
}

static int got_part(struct http_upload *http, const struct multipart_part *part)
{
        struct upload *u = upload_of(http);

        u->part = PART_OTHER;
        if (has_failed(u))
                return 0;
        if (str_eq(part->name, STR("metadata"))) {
                u->part = PART_METADATA;
                u->metadata_bytes = 0;
                u->n_metadata++;
        } else if (str_eq(part->name, STR("file"))) {
                u->part = PART_FILE;
                return begin_file(u);
        }
        return 0;
}

static int got_metadata(struct upload *u, const char *p, size_t n)
{
        u->metadata_bytes += n;
        if (memchr(p, '\0', n) || u->metadata_bytes > METADATA_MAX) {
                u->failure.file = u->n_metadata - 1;
                return refuse(u, 400, CODE_INVALID_METADATA,
                              "metadata %zu is not text, or longer than %zu KiB", u->n_metadata,
                              METADATA_MAX / KiB);
        }
        buf_add(&u->waiting, p, n);
        return 0;
}

static int got_data(struct http_upload *http, const char *p, size_t n)
{
        struct upload *u = upload_of(http);
        int r;

        if (u->part == PART_METADATA)
                return got_metadata(u, p, n);
        if (u->part != PART_FILE || has_failed(u))
                return 0;
        r = atomic_file_write(&u->file, p, n);
        return r < 0 ? refuse_file(u, u->n_files - 1, u->path, r) : 0;
}

static int got_part_end(struct http_upload *http)
{
        struct upload *u = upload_of(http);
        enum part part = u->part;

        u->part = PART_NONE;
        if (has_failed(u))
                return 0;
        if (part == PART_FILE)
                end_file(u);
        else if (part == PART_METADATA)
                buf_add_char(&u->waiting, '\0');
        if (buf_failed(&u->waiting))
                return refuse(u, 400, CODE_INVALID_METADATA,
                              "more than %zu KiB of metadata come before their files",
                              WAITING_MAX / KiB);
        return 0;
}

/* --- the end --- */

static void upload_free(struct upload *u)
{
        net_task_cancel(&u->task);
        file_commits_done(&u->commits);
        atomic_file_discard(&u->file);
        buf_done(&u->waiting);
        arena_done(&u->arena);
        http_req_unref(u->req);
        free(u);
}

static void reply(struct upload *u)
{
        struct http_req *req = u->req;

        if (u->commits.failed < 0)
                (void) refuse_file(u, u->commits.failed_at, str_from(u->commits.failed_path),
                                   u->commits.failed);
        else if (u->failure.status)
                reply_failure(u);
        else if (u->n_metadata == 0)
                http_reply_error(req, 400, CODE_INVALID_METADATA, "there is no metadata part");
        else if (u->n_files == 0)
                http_reply_error(req, 400, CODE_INVALID_CONTENT, "there is no file part");
        else if (u->n_metadata != u->n_files)
                http_reply_error(req, 400, CODE_INVALID_FILE,
                                 "there are %zu metadata parts but %zu files", u->n_metadata,
                                 u->n_files);
        else
                http_reply_empty(req, 200);
}

/* All that came is in its place, or something went wrong: then what still comes is read over. */
static void finish(struct upload *u)
{
        http_upload_stop(&u->http);
        reply(u);
        http_body_resume(u->req);
        upload_free(u);
}

static void run_commits(struct net_task *t)
{
        struct upload *u = container_of(t, struct upload, task);

        if (file_commits_step(&u->commits))
                net_task_queue(u->agent->loop, &u->task);
        else if (u->ended || has_failed(u))
                finish(u);
        else
                http_body_resume(u->req);
}

static void lost_while_committing(struct http_req *req, int reason)
{
        (void) reason;
        upload_free(req->data);
}

static void got_end(struct http_upload *http)
{
        static const struct http_hooks hooks = { .abort = lost_while_committing };
        struct upload *u = upload_of(http);

        u->ended = true;
        http_req_set_hooks(u->req, &hooks, u);
        if (!file_commits_pending(&u->commits))
                finish(u);
}

static void got_abort(struct http_upload *http, int reason)
{
        (void) reason;
        upload_free(upload_of(http));
}

static const struct http_upload_ops ops = {
        .part = got_part,
        .data = got_data,
        .part_end = got_part_end,
        .end = got_end,
        .abort = got_abort,
};

static void post_upload(struct http_req *req)
{
        static const struct http_upload_options options = {
                .type_status = 400,
                .type_code = CODE_INVALID_FILE,
                .invalid_code = CODE_INVALID_FILE,
                .limits = { .parts_max = PARTS_MAX },
        };
        struct upload *u = xnew(struct upload);

        u->req = http_req_ref(req);
        u->agent = agent_of(req);
        u->file = ATOMIC_FILE_NULL;
        u->failure.file = NO_FILE;
        file_commits_init(&u->commits);
        net_task_init(&u->task, run_commits);
        buf_init(&u->waiting, WAITING_MAX);
        arena_init(&u->arena, 8 * METADATA_MAX);
        if (http_upload_start(&u->http, req, &ops, &options) < 0)
                upload_free(u);
}

static const struct http_route routes[] = {
        { METHOD_POST, "/files/upload", .scope = SCOPE_TOKEN, .body = HTTP_BODY_STREAM,
          .exec = post_upload },
};

const struct http_api api_files_upload = EXECD_API("files_upload", routes);
