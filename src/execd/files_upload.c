/* SPDX-License-Identifier: Apache-2.0 */

/*
 * POST /files/upload: files of any size, each described by a part of its own.
 *
 * The parts "metadata" and "file" are paired by their order, and the metadata of a file comes before it:
 * usually right before it, but several may come first and wait. Parts of other names are skipped.
 *
 * Theory of operation. The content of a file is written, as it arrives, to a hidden file beside the
 * target (os/file.h). A partial file is never visible: when the content is complete, a commit syncs it and
 * renames it over the target, and then syncs the directory. A crash before the rename leaves the old file;
 * a crash after the reply leaves the new one.
 *
 *         metadata part   collected, as JSON text, in `waiting`
 *         file part       got_part: decode the metadata, resolve the path, open the hidden file
 *                         got_data: write
 *                         got_part_end: queue the commit, pause the body
 *         loop turns      run_commits: one commit step per turn, then resume the body;
 *                         after the end of the body: reply, once the queue is empty
 *
 * A commit waits for the disk, so each loop turn runs only one step of one commit: a hundred small files
 * that arrive in one read do not delay other requests. Files are renamed in the order of their arrival, and
 * all queued files are renamed before the first directory is synced: one write of the filesystem's
 * journal then serves all of them.
 *
 * The first failure, in the order of the files, is the reply; its header EXECD-FAILED-FILE has the
 * number of the file. Files before it are in place when the reply is sent and stay there; files after it
 * are discarded. A client that disconnects discards everything that is not renamed yet.
 */

#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/file_info.h"
#include "execd/path.h"
#include "http/upload.h"
#include "os/file.h"

#define METADATA_MAX (64 * KiB)
#define WAITING_MAX  (1 * MiB) /* of metadata whose files have not arrived yet */
#define PARTS_MAX    20000
#define COMMITS_MAX  128 /* queued; each holds two descriptors */

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

/* A complete file that waits to take its place. */
struct commit {
        struct list node;
        struct atomic_file file;
        struct file_attrs attrs;
        char *path;
        size_t number;
        bool renamed; /* only its directory is still to be synced */
};

struct upload {
        struct http_upload http;
        struct http_req *req;
        struct agent *agent;
        enum part part;
        size_t n_metadata, n_files;
        size_t metadata_bytes; /* of the current part */
        struct buf waiting;    /* metadata without their files, each terminated by NUL */
        bool ended;            /* the body is complete */

        /* --- the file that is being received --- */
        struct arena arena;
        struct str path;
        struct file_attrs attrs;
        struct atomic_file file;

        /* --- complete files --- */
        struct list commits; /* struct commit */
        size_t n_commits;
        struct net_task task;

        /* --- the reply, if something failed --- */
        struct {
                int status;  /* 0: nothing has failed */
                size_t file; /* counted from 0; or NO_FILE */
                const char *code;
                char message[ERR_MESSAGE_MAX];
        } failure;
};

/* --- failures --- */

printf_like(5, 6) static void set_failure(struct upload *u, int status, const char *code,
                                          size_t file, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        (void) vsnprintf(u->failure.message, sizeof(u->failure.message), fmt, ap);
        va_end(ap);
        u->failure.status = status;
        u->failure.code = code;
        u->failure.file = file;
        u->part = PART_OTHER; /* what still arrives is discarded */
        atomic_file_discard(&u->file);
}

/* Nothing is 404 here: missing directories are created. */
static void set_file_failure(struct upload *u, size_t file, struct str path, int r)
{
        set_failure(u, 500, CODE_RUNTIME_ERROR, file, "write '%.*s': %s", PROBLEM_PATH(path),
                    r == -EINVAL ? "it exists and is not a regular file" : err_text(r));
}

static void reply_failure(struct upload *u)
{
        char number[24];

        (void) snprintf(number, sizeof(number), "%zu", u->failure.file);
        if (u->failure.file != NO_FILE)
                (void) http_res_header(u->req, STR("EXECD-FAILED-FILE"), str_from(number));
        http_reply_error(u->req, u->failure.status, u->failure.code, "%s", u->failure.message);
}

/* For callbacks that have called set_failure: queued files take their places before the reply. */
static int refuse(struct upload *u)
{
        if (!list_empty(&u->commits))
                return 0;
        reply_failure(u);
        return -ECANCELED;
}

/* --- commits --- */

static void commit_free(struct upload *u, struct commit *c)
{
        list_remove(&c->node);
        u->n_commits--;
        atomic_file_discard(&c->file);
        free(c->path);
        free(c);
}

static void drop_commits(struct upload *u)
{
        list_for_each (n, &u->commits)
                commit_free(u, container_of(n, struct commit, node));
}

/* One wait for the disk: the rename, or the sync of the directory. True if `c` is gone then. */
static bool commit_step(struct upload *u, struct commit *c)
{
        int r = c->renamed ? atomic_file_sync_dir(&c->file)
                           : atomic_file_commit(&c->file, &c->attrs);

        if (r < 0) {
                set_file_failure(u, c->number, str_from(c->path), r);
                drop_commits(u);
                return true;
        }
        if (c->renamed) {
                commit_free(u, c);
                return true;
        }
        c->renamed = true;
        return false;
}

/* --- parts --- */

/* Decodes the metadata of the file that begins: u->path, u->attrs. False: it has failed. */
static bool take_metadata(struct upload *u, size_t number)
{
        struct str text = str_from(buf_str(&u->waiting).p);
        struct metadata m = { 0 };
        struct json_error je;
        struct err e;
        int r;

        if (u->n_files > u->n_metadata) {
                set_failure(u, 400, u->n_metadata ? CODE_INVALID_FILE : CODE_INVALID_METADATA,
                            number, "file %zu has no metadata part before it", u->n_files);
                return false;
        }
        arena_reset(&u->arena);
        r = json_decode(text, metadata_fields, JSON_ALLOW_TRAILING, &u->arena, &m, &je);
        buf_consume(&u->waiting, text.n + 1);
        if (r < 0) {
                set_failure(u, 400, CODE_INVALID_METADATA, number, "metadata of file %zu: %s",
                            u->n_files, je.message);
                return false;
        }
        users_refresh(u->agent->users);
        r = path_resolve(u->agent, &u->arena, m.path, &u->path, &e);
        if (r == 0)
                r = permission_resolve(&m.permission, u->agent->users, &u->attrs, &e);
        if (r < 0 && e.code == ERR_NOT_FOUND)
                set_failure(u, 500, CODE_RUNTIME_ERROR, number, "%s", e.message);
        else if (r < 0)
                set_failure(u, 400, CODE_INVALID_METADATA, number, "metadata of file %zu: %s",
                            u->n_files, e.message);
        return r == 0;
}

static int got_part(struct multipart *mp, const struct multipart_part *part)
{
        struct upload *u = container_of(http_upload_of(mp), struct upload, http);
        size_t number;
        int r;

        u->part = PART_OTHER;
        if (u->failure.status)
                return 0;
        if (str_eq(part->name, STR("metadata"))) {
                u->part = PART_METADATA;
                u->metadata_bytes = 0;
                u->n_metadata++;
        }
        if (!str_eq(part->name, STR("file")))
                return 0;
        u->part = PART_FILE;
        number = u->n_files++;
        if (!take_metadata(u, number))
                return refuse(u);
        /* New directories on the way get the owner of the file, but not its mode. */
        r = file_make_parents(u->path.p, 0777, &u->attrs);
        if (r == 0)
                r = atomic_file_open(&u->file, u->path.p, &u->agent->ids);
        if (r == 0)
                return 0;
        set_file_failure(u, number, u->path, r);
        return refuse(u);
}

static int got_data(struct multipart *mp, const char *p, size_t n)
{
        struct upload *u = container_of(http_upload_of(mp), struct upload, http);
        int r = 0;

        if (u->part == PART_FILE) {
                r = atomic_file_write(&u->file, p, n);
                if (r < 0)
                        set_file_failure(u, u->n_files - 1, u->path, r);
        } else if (u->part == PART_METADATA) {
                u->metadata_bytes += n;
                buf_add(&u->waiting, p, n);
                if (memchr(p, '\0', n) || u->metadata_bytes > METADATA_MAX) {
                        r = -EINVAL;
                        set_failure(u, 400, CODE_INVALID_METADATA, u->n_metadata - 1,
                                    "metadata %zu is not text, or longer than %zu KiB",
                                    u->n_metadata, METADATA_MAX / KiB);
                }
        }
        return r < 0 ? refuse(u) : 0;
}

static int got_part_end(struct multipart *mp)
{
        struct upload *u = container_of(http_upload_of(mp), struct upload, http);
        enum part part = u->part;
        struct commit *c, *first;

        u->part = PART_NONE;
        if (part == PART_METADATA)
                buf_add_char(&u->waiting, '\0');
        if (part == PART_FILE) {
                c = xnew(struct commit);
                *c = (struct commit){ .file = u->file,
                                      .attrs = u->attrs,
                                      .path = xstrndup_str(u->path),
                                      .number = u->n_files - 1 };
                u->file = ATOMIC_FILE_NULL;
                atomic_file_start_writeback(&c->file);
                list_append(&u->commits, &c->node);
                u->n_commits++;
                /* A full queue holds too many descriptors: then its first file is committed here. */
                first = container_of(list_first(&u->commits), struct commit, node);
                while (u->n_commits > COMMITS_MAX && !commit_step(u, first))
                        ;
                http_body_pause(u->req);
                net_task_queue(u->agent->loop, &u->task);
        }
        if (u->failure.status || !buf_failed(&u->waiting))
                return 0;
        set_failure(u, 400, CODE_INVALID_METADATA, NO_FILE,
                    "more than %zu KiB of metadata come before their files", WAITING_MAX / KiB);
        return refuse(u);
}

/* --- the end --- */

static void upload_free(struct upload *u)
{
        net_task_cancel(&u->task);
        drop_commits(u);
        atomic_file_discard(&u->file);
        buf_done(&u->waiting);
        arena_done(&u->arena);
        http_req_unref(u->req);
        free(u);
}

/* Runs until every file that arrived is in place, or something has failed: then the rest of the body is discarded. */
static void run_commits(struct net_task *t)
{
        struct upload *u = container_of(t, struct upload, task);
        struct list *next = list_first(&u->commits);
        struct http_req *req = u->req;

        list_for_each (n, &u->commits) {
                if (!container_of(n, struct commit, node)->renamed) {
                        next = n;
                        break;
                }
        }
        if (next)
                commit_step(u, container_of(next, struct commit, node));
        if (!list_empty(&u->commits)) {
                net_task_queue(u->agent->loop, &u->task);
                return;
        }
        http_body_resume(req);
        if (!u->ended && !u->failure.status)
                return;
        http_upload_stop(&u->http);
        if (u->failure.status)
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
        upload_free(u);
}

static void lost_while_committing(struct http_req *req, int reason)
{
        (void) reason;
        upload_free(req->data);
}

static void got_end(struct http_upload *http)
{
        static const struct http_hooks hooks = { .abort = lost_while_committing };
        struct upload *u = container_of(http, struct upload, http);

        u->ended = true;
        http_req_set_hooks(u->req, &hooks, u);
        net_task_queue(u->agent->loop, &u->task);
}

static void got_abort(struct http_upload *http, int reason)
{
        (void) reason;
        upload_free(container_of(http, struct upload, http));
}

static const struct http_upload_ops ops = {
        .parts = { .part = got_part, .data = got_data, .part_end = got_part_end },
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
        list_init(&u->commits);
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
