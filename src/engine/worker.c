/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/worker.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/base.h"
#include "engine/archive.h"
#include "engine/names.h"
#include "engine/seccomp.h"
#include "http/url.h"
#include "os/fd.h"

/* Creates that are under way when hutchd goes are undone; an engine that hangs must not keep us. */
#define END_TIMEOUT_MS 30000

/* An engine may take its time: images are unpacked while it makes a container. */
static struct http_client_config client_config(bool stream)
{
        struct http_client_config c = http_client_defaults;

        c.idle_max = 64;
        c.idle_total = 64;
        c.head_timeout = 180 * USEC_PER_SEC;
        c.tunnel_timeout = c.half_closed_timeout = USEC_INFINITY; /* as on a socket of its own */
        c.body_timeout = stream ? USEC_INFINITY : 60 * USEC_PER_SEC;
        return c;
}

/* A snapshot copies what a sandbox has written, and answers when it has. */
#define SLOW_TIMEOUT (3600 * USEC_PER_SEC)

static struct http_client_config slow_config(void)
{
        struct http_client_config c = client_config(false);

        c.head_timeout = SLOW_TIMEOUT;
        return c;
}

/* --- the end --- */

static void channel_is_closed(struct channel *c)
{
        engine_worker__part_closed(container_of(c, struct worker, channel));
}

static void timeout_closed(uv_handle_t *h)
{
        engine_worker__part_closed(
                container_of((uv_timer_t *) (void *) h, struct worker, patience));
}

static void run_dirs_closed(struct run_dirs *b)
{
        engine_worker__part_closed(container_of(b, struct worker, run_dirs));
}

static void client_freed(void *data)
{
        engine_worker__part_closed(data);
}

/* Once nothing is asked any more. */
static void close_parts(struct worker *w)
{
        struct events *ev = TAKE_PTR(w->events);

        if (ev)
                events_free(ev);
        relays_close(w);
        buf_done(&w->archive);
        if (w->run_dirs_opened)
                run_dirs_close(&w->run_dirs, run_dirs_closed);
        uv_close((uv_handle_t *) &w->patience, timeout_closed);
        w->parts_closed = true;
}

void engine_worker__part_closed(struct worker *w)
{
        w->open--;
        engine_worker__end_continue(w);
}

/* Jobs, then what they use, then the clients. The loop ends when nothing is left in it. */
void engine_worker__end_continue(struct worker *w)
{
        if (!w->ending || !list_empty(&w->jobs))
                return;
        if (!w->parts_closed)
                close_parts(w);
        if (w->open > 3 || !w->client)
                return;
        free(TAKE_PTR(w->folder));
        free(TAKE_PTR(w->run_path));
        w->lock = fd_close(w->lock);
        http_client_free(TAKE_PTR(w->client), client_freed, w);
        http_client_free(TAKE_PTR(w->streams), client_freed, w);
        http_client_free(TAKE_PTR(w->slow), client_freed, w);
}

static void timeout_expired(uv_timer_t *t)
{
        struct worker *w = container_of(t, struct worker, patience);

        log_warn(w->log, "the engine does not come to an end; what it was asked is left to it");
        exit(1);
}

static void hutchd_is_gone(struct channel *c, int r)
{
        struct worker *w = container_of(c, struct worker, channel);

        if (r < 0)
                (void) log_err(r, w->log, "the conversation with hutchd broke off");
        w->ending = true;
        channel_close(c);
        (void) uv_timer_start(&w->patience, timeout_expired, END_TIMEOUT_MS, 0);
        list_for_each (n, &w->jobs) {
                struct job *j = container_of(n, struct job, node);

                if (j->cancel && !j->canceled)
                        job_cancel(w, j->request_id);
        }
        engine_worker__end_continue(w);
}

/* --- the conversation --- */

void engine_worker_send(struct worker *w, const struct engine_message *m, int fd)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, ENGINE_FRAME_MAX);
        engine_message_encode(&b, m);
        if (w->ending || buf_failed(&b))
                (void) fd_close(fd);
        else
                channel_send(&w->channel, buf_str(&b), fd);
}

/* Held for as long as we live. One who is killed gives it up, too; what he has asked the engine may still
 * happen then, which the next scan finds. Waiting here keeps nobody waiting: it is the first that is done. */
static int lock_folder(struct worker *w, struct err *e)
{
        if (mkdir(w->folder, 0700) < 0 && errno != EEXIST)
                return err_errno(e, -errno, "make %s", w->folder);
        w->lock = open(w->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (w->lock < 0)
                return err_errno(e, -errno, "open %s", w->folder);
        return flock(w->lock, LOCK_EX) < 0 ? err_errno(e, -errno, "lock %s", w->folder) : 0;
}

static char *joined(const char *folder, const char *name)
{
        size_t size = strlen(folder) + strlen(name) + 2;
        char *ret = xcalloc(1, size);

        (void) snprintf(ret, size, "%s/%s", folder, name);
        return ret;
}

static int open_what_is_ours(struct worker *w, struct str installation, struct err *e)
{
        int r;

        memcpy(w->installation, installation.p, ID_HEX_LEN);
        w->settings->installation = str_of(w->installation, ID_HEX_LEN);
        w->folder = joined(w->settings->folder, w->installation);
        w->run_path = joined(w->folder, "run");
        r = lock_folder(w, e);
        if (r == 0)
                r = engine_seccomp_option(w->settings->kind, w->folder, &w->seccomp, e);
        if (r < 0)
                return r;
        r = run_dirs_open(&w->run_dirs, w->loop, w->run_path);
        if (r < 0)
                return err_errno(e, r, "open %s", w->run_path);
        w->run_dirs.log = w->log;
        w->run_dirs_opened = true;
        w->open++;
        return 0;
}

static int check_hello(struct worker *w, const struct engine_request *q, struct err *e)
{
        if (w->greeted)
                return err_set(e, ERR_CONFLICT, "hello twice");
        if (q->version != ENGINE_PROTOCOL_VERSION)
                return err_set(
                        e, ERR_UNSUPPORTED,
                        "hutchd and hutch-engine are of different versions; install both anew");
        if (w->settings->installation.p && !str_eq(w->settings->installation, q->installation))
                return err_set(e, ERR_FORBIDDEN, "this worker is for another installation");
        return 0;
}

static void greet(struct worker *w, const struct engine_request *q)
{
        struct engine_message answer = { .request_id = q->request_id, .done = true };
        struct err e;
        int r = check_hello(w, q, &e);

        if (r == 0)
                r = open_what_is_ours(w, q->installation, &e);
        if (r < 0) {
                answer.code = 1 + (int64_t) e.code;
                answer.text = str_from(e.message);
                log_fields(w->log, LOG_ERROR, "can't begin",
                           LOG_F_STR("error", str_from(e.message)));
        }
        w->greeted |= r == 0;
        answer.version = r == 0 ? ENGINE_PROTOCOL_VERSION : 0;
        engine_worker_send(w, &answer, -EBADF);
        if (r == 0)
                w->events = events_new(w);
}

static void take_request(struct worker *w, const struct engine_request *q)
{
        if (q->call == ENGINE_HELLO)
                greet(w, q);
        else if (q->call == ENGINE_CANCEL)
                job_cancel(w, q->other);
        else
                job_start(w, q);
}

static void on_frame(struct channel *c, struct str text)
{
        struct worker *w = container_of(c, struct worker, channel);
        struct engine_request q;
        struct arena a;
        struct err e;
        int r;

        arena_init(&a, 4 * ENGINE_FRAME_MAX);
        r = engine_request_decode(text, &a, &q, &e);
        if (r == 0 && !w->greeted && q.call != ENGINE_HELLO)
                r = err_set(&e, ERR_INVALID, "%s before hello", engine_call_to_string(q.call));
        if (r == 0)
                take_request(w, &q);
        arena_wipe(&a);
        if (r < 0) {
                log_fields(w->log, LOG_ERROR, "a frame is no request",
                           LOG_F_STR("error", str_from(e.message)));
                hutchd_is_gone(c, -EPROTO);
        }
}

static const struct channel_ops channel_ops = {
        .frame = on_frame,
        .ended = hutchd_is_gone,
        .closed = channel_is_closed,
};

/* --- what is ours in an engine --- */

void engine_worker_add_filter(struct worker *w, struct buf *b, bool events)
{
        char json[256];

        (void) snprintf(json, sizeof(json), "{%s\"label\":[\"hutch.installation=%.*s\"]}",
                        events ? "\"type\":[\"container\"]," : "",
                        STR_ARG(w->settings->installation));
        url_encode(b, str_from(json));
}

void engine_worker_add_volume_filter(struct worker *w, struct buf *b, struct str claim)
{
        char json[256 + DNS_NAME_MAX];

        (void) snprintf(json, sizeof(json),
                        "{\"label\":[\"" LABEL_INSTALLATION "=%.*s\",\"" LABEL_VOLUME "%.*s\"]}",
                        STR_ARG(w->settings->installation), STR_ARG(claim));
        url_encode(b, str_from(json));
}

void engine_worker_add_image_filter(struct worker *w, struct buf *b)
{
        char json[256];

        (void) snprintf(json, sizeof(json),
                        "{\"label\":[\"" LABEL_SNAPSHOT_INSTALLATION "=%.*s\"]}",
                        STR_ARG(w->settings->installation));
        url_encode(b, str_from(json));
}

/* --- the beginning --- */

int engine_worker_start(struct worker *w, int fd, struct err *e)
{
        struct http_client_config config = client_config(false), stream = client_config(true);
        struct http_client_config slow = slow_config();
        char text[PATH_MAX_TEXT + 8];
        int r;

        (void) snprintf(text, sizeof(text), "unix:%s", w->settings->socket);
        r = sock_addr_from_string(str_from(text), &w->engine);
        if (r < 0)
                return err_errno(e, r, "the engine's socket %s", w->settings->socket);
        list_init(&w->jobs);
        list_init(&w->pulls);
        list_init(&w->relays);
        buf_init(&w->archive, ARCHIVE_MAX + MiB);
        list_init(&w->undoings);
        w->lock = -EBADF;
        w->client = http_client_new(w->loop, &config);
        w->streams = http_client_new(w->loop, &stream);
        w->slow = http_client_new(w->loop, &slow);
        (void) uv_timer_init(&w->loop->uv, &w->patience);
        w->channel.frame_max = ENGINE_FRAME_MAX;
        w->open = 5; /* channel, patience, three clients; run_dirs, when they are opened */
        r = channel_open(&w->channel, w->loop, fd, &channel_ops);
        return r < 0 ? err_errno(e, r, "listen to hutchd") : 0;
}
