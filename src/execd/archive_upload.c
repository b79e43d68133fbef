/* SPDX-License-Identifier: Apache-2.0 */

/*
 * POST /files/archive?path=[&owner=keep]: extracts a tar archive below a directory.
 *
 * The body is an uncompressed tar archive; the directory is created if necessary. How entries are extracted
 * is in archive/extract.h. The reply is 200 {"entries":N,"bytes":M}. An archive that cannot be read, or an
 * entry that is refused, is 400 INVALID_FILE_CONTENT with the name and the reason; a full disk and the
 * like is 500 RUNTIME_ERROR. Entries that precede the failure stay.
 *
 * A piece of the body is processed for a few milliseconds. If it is not finished by then (it may hold a
 * hundred small files), the remainder is kept, the body is paused, and a task continues in the next turn of
 * the loop.
 */

#include <fcntl.h>
#include <inttypes.h>

#include "archive/extract.h"
#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "os/fd.h"
#include "os/file.h"

#define PENDING_MAX (4 * NET_READ_SIZE) /* after a pause at most one more read arrives */

struct archive_upload {
        struct http_req *req;
        struct tar_reader reader;
        struct extract extract;
        struct net_task task;
        struct buf pending;
        usec_t turn;      /* the loop turn of the current slice, */
        usec_t slice_end; /* which ends then */
        bool ended;       /* the body is complete */
};

static void upload_free(struct archive_upload *a)
{
        struct http_req *req = a->req;

        net_task_cancel(&a->task);
        http_req_set_hooks(req, NULL, NULL);
        extract_done(&a->extract);
        tar_reader_done(&a->reader);
        buf_done(&a->pending);
        free(a);
        http_req_unref(req);
}

/* --- replies --- */

static void reply_bad_archive(struct archive_upload *a)
{
        http_reply_error(a->req, 400, CODE_INVALID_CONTENT,
                         "the archive can't be read after %" PRIu64 " entries: %s",
                         a->extract.entries, a->reader.reason);
}

static void reply_error(struct archive_upload *a, const struct err *e)
{
        bool refused = e->code == ERR_INVALID && e->os_errno == 0;

        http_reply_error(a->req, refused ? 400 : 500,
                         refused ? CODE_INVALID_CONTENT : CODE_RUNTIME_ERROR, "%s", e->message);
}

/* --- extraction --- */

/* After the last input. 1: there is more to do; 0: complete, has replied; negative: failed, has replied. */
static int complete(struct archive_upload *a)
{
        char text[80];
        struct err e;
        int n, r = tar_reader_finish(&a->reader);

        if (r < 0) {
                reply_bad_archive(a);
                return r;
        }
        r = extract_finish(&a->extract, &e);
        if (r < 0) {
                reply_error(a, &e);
        } else if (r == 0) {
                n = snprintf(text, sizeof(text), "{\"entries\":%" PRIu64 ",\"bytes\":%" PRIu64 "}",
                             a->extract.entries, a->extract.bytes);
                http_reply(a->req, 200, STR("application/json"), str_of(text, (size_t) n));
        }
        return r;
}

/* One loop turn may bring many pieces of the body: they share one slice. 1: there may be more to do; 0: the
 * input is consumed (if the body has ended: complete, has replied); negative: has replied. */
static int run_slice(struct archive_upload *a, struct str *input)
{
        const struct agent *agent = agent_of(a->req);
        usec_t turn = net_loop_now(agent->loop);
        struct str data;
        struct err e;
        int r, event;

        if (a->slice_end == 0 || turn != a->turn) {
                a->turn = turn;
                a->slice_end = usec_add(clock_mono(agent->clock), AGENT_SLICE);
        }
        do {
                event = tar_reader_next(&a->reader, input, &data);
                if (event < 0) {
                        reply_bad_archive(a);
                        return event;
                }
                if (event == TAR_NEED_INPUT) {
                        r = a->ended ? complete(a) : 0;
                        if (r <= 0)
                                return r;
                        continue;
                }
                if (event == TAR_HEADER)
                        r = extract_entry(&a->extract, &a->reader.entry, &e);
                else if (event == TAR_DATA)
                        r = extract_data(&a->extract, data, &e);
                else
                        r = extract_entry_end(&a->extract, &e);
                if (r < 0) {
                        reply_error(a, &e);
                        return r;
                }
        } while (clock_mono(agent->clock) < a->slice_end);
        return 1;
}

/* Ends, continues in the next turn, or waits for more of the body. */
static void after_slice(struct archive_upload *a, int r)
{
        if (r < 0 || (r == 0 && a->ended)) {
                http_body_resume(a->req); /* the remainder is discarded */
                upload_free(a);
                return;
        }
        if (r > 0) {
                http_body_pause(a->req);
                net_task_queue(agent_of(a->req)->loop, &a->task);
                return;
        }
        http_body_resume(a->req);
}

static void run_task(struct net_task *t)
{
        struct archive_upload *a = container_of(t, struct archive_upload, task);
        struct str input = buf_str(&a->pending);
        size_t had = input.n;
        int r;

        if (http_req_is_gone(a->req)) {
                upload_free(a);
                return;
        }
        r = run_slice(a, &input);
        buf_consume(&a->pending, had - input.n);
        buf_release(&a->pending);
        after_slice(a, r);
}

/* --- the body --- */

static void on_body(struct http_req *req, const char *p, size_t n)
{
        struct archive_upload *a = req->data;
        struct str input = str_of(p, n);
        int r = 1;

        if (a->pending.n == 0)
                r = run_slice(a, &input);
        if (r > 0)
                buf_add_str(&a->pending, input);
        if (r > 0 && buf_failed(&a->pending)) {
                http_reply_error(req, 500, CODE_RUNTIME_ERROR, "out of memory");
                r = -ENOMEM;
        }
        after_slice(a, r);
}

static void on_body_end(struct http_req *req)
{
        struct archive_upload *a = req->data;

        a->ended = true;
        net_task_queue(agent_of(req)->loop, &a->task);
}

static void on_abort(struct http_req *req, int reason)
{
        (void) reason;
        upload_free(req->data);
}

/* --- the request --- */

static void post_archive(struct http_req *req)
{
        static const struct http_hooks hooks = {
                .body = on_body,
                .body_end = on_body_end,
                .abort = on_abort,
        };
        struct str path, owner = STR_NULL;
        struct archive_upload *a;
        int fd, r;

        if (query_path(req, &path) < 0)
                return;
        if (http_req_query(req, "owner", &owner) < 0) {
                (void) query_refuse(req);
                return;
        }
        if (owner.n > 0 && !str_eq(owner, STR("keep"))) {
                http_reply_error(req, 400, CODE_INVALID_BODY, "owner may only be 'keep'");
                return;
        }
        r = file_mkdirs(path.p, 0777, &FILE_ATTRS_KEEP, NULL, &fd);
        if (r == -ENOTDIR) {
                http_reply_error(req, 400, CODE_INVALID_FILE, "'%.*s' is not a directory",
                                 PROBLEM_PATH(path));
                return;
        }
        if (r < 0) {
                http_reply_error(req, 500, CODE_RUNTIME_ERROR, "create '%.*s': %s",
                                 PROBLEM_PATH(path), err_text(r));
                return;
        }
        a = xnew(struct archive_upload);
        a->req = http_req_ref(req);
        tar_reader_init(&a->reader);
        extract_init(&a->extract, fd, /* keep_owner= */ owner.n > 0, &agent_of(req)->ids);
        net_task_init(&a->task, run_task);
        buf_init(&a->pending, PENDING_MAX);
        http_req_set_hooks(req, &hooks, a);
        http_body_start(req, HTTP_LENGTH_UNKNOWN);
}

static const struct http_route routes[] = {
        { METHOD_POST, "/files/archive", .scope = SCOPE_TOKEN, .body = HTTP_BODY_STREAM,
          .exec = post_archive },
};

const struct http_api api_archive_upload = EXECD_API("archive_upload", routes);
