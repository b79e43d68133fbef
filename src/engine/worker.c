/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/worker.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/base.h"
#include "engine/archive.h"
#include "engine/container.h"
#include "engine/names.h"
#include "http/url.h"
#include "os/fd.h"

/*
 * Theory of operation.
 *
 * The problem. Whoever holds the socket of a root engine is root. hutchd faces the network, so it must not
 * hold that socket; this process does, and carries out a closed table of requests (engine/protocol.h).
 *
 * Trust. The worker does not trust hutchd. What makes a container what it is (mounts, capabilities, seccomp
 * filter, network) is decided here, from the command line and the record; names and labels confine every
 * request to sandboxes of one installation. What engine and images say is parsed strictly (engine/api.h),
 * since parts of it come out of sandboxes.
 *
 * The invariant. The worker keeps no state that the engine does not know better: a container's labels hold
 * its record, its name and labels say whose it is. So a worker that is killed has lost nothing. The exception
 * is a create that has not been replied to: its job undoes what it has made. If the engine is away by then,
 * the undo is repeated when the engine is back; what even that misses has labels, and the next scan finds
 * it.
 *
 * Order of a start: hello names the installation; its directory is created and locked. The lock is waited
 * for: a previous worker may still be undoing its creates, and what this one finds in the engine must be all
 * there is. Then the run directories are opened, hello is replied to, and the event stream begins.
 *
 * Order of an end: hutchd closes the channel (or crashes, which is the same). Jobs that can be canceled are;
 * when no job is left, events, relays and run directories close, then the lock and the HTTP clients. END_TIMEOUT
 * bounds all of it: an engine that hangs must not keep the process, and the next worker waits for the lock.
 */

#define END_TIMEOUT (30 * USEC_PER_SEC)

/* A snapshot copies what a sandbox has written before the engine responds. */
#define SLOW_TIMEOUT (3600 * USEC_PER_SEC)

/* An engine may take its time: it unpacks images while it creates a container. */
static struct http_client *client_new(struct engine_worker *w, usec_t head_timeout,
                                      usec_t body_timeout)
{
        struct http_client_config c = http_client_defaults;

        c.idle_max = 64;
        c.idle_total = 64;
        c.head_timeout = head_timeout;
        c.body_timeout = body_timeout;
        c.tunnel_timeout = c.half_closed_timeout = USEC_INFINITY; /* as on a socket of its own */
        return http_client_new(w->loop, &c);
}

/* --- the end --- */

static void channel_closed(struct channel *c)
{
        engine_worker__part_closed(container_of(c, struct engine_worker, channel));
}

static void end_timer_closed(uv_handle_t *h)
{
        engine_worker__part_closed(
                container_of((uv_timer_t *) (void *) h, struct engine_worker, end_timer));
}

static void run_dirs_closed(struct run_dirs *b)
{
        engine_worker__part_closed(container_of(b, struct engine_worker, run_dirs));
}

static void client_freed(void *data)
{
        engine_worker__part_closed(data);
}

void engine_worker__part_closed(struct engine_worker *w)
{
        w->open--;
        engine_worker__end_continue(w);
}

/* The loop ends when nothing is left in it. */
void engine_worker__end_continue(struct engine_worker *w)
{
        struct events *ev;

        if (!w->ending || !list_empty(&w->jobs))
                return;
        if (!w->parts_closed) {
                w->parts_closed = true;
                ev = TAKE_PTR(w->events);
                if (ev)
                        events_free(ev);
                relays_close(w);
                buf_done(&w->archive);
                if (w->run_dirs_opened)
                        run_dirs_close(&w->run_dirs, run_dirs_closed);
                uv_close((uv_handle_t *) &w->end_timer, end_timer_closed);
        }
        if (w->open > 3 || !w->client) /* three clients are the last */
                return;
        free(TAKE_PTR(w->dir));
        free(TAKE_PTR(w->run_path));
        w->lock = fd_close(w->lock);
        http_client_free(TAKE_PTR(w->client), client_freed, w);
        http_client_free(TAKE_PTR(w->streams), client_freed, w);
        http_client_free(TAKE_PTR(w->slow), client_freed, w);
}

static void end_timed_out(uv_timer_t *t)
{
        log_warn(container_of(t, struct engine_worker, end_timer)->log,
                 "the engine does not respond, exiting with calls under way");
        exit(1);
}

static void on_ended(struct channel *c, int r)
{
        struct engine_worker *w = container_of(c, struct engine_worker, channel);

        if (r < 0)
                (void) log_err(r, w->log, "connection to hutchd lost");
        w->ending = true;
        channel_close(c);
        (void) uv_timer_start(&w->end_timer, end_timed_out, END_TIMEOUT / USEC_PER_MSEC, 0);
        list_for_each (n, &w->jobs) {
                struct job *j = container_of(n, struct job, node);

                if (j->cancel && !j->canceled)
                        job_cancel(w, j->request_id);
        }
        engine_worker__end_continue(w);
}

/* --- the conversation --- */

void engine_worker_send(struct engine_worker *w, const struct engine_message *m, int fd)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, ENGINE_FRAME_MAX);
        engine_message_encode(&b, m);
        if (w->ending || buf_failed(&b))
                (void) fd_close(fd);
        else
                channel_send(&w->channel, buf_str(&b), fd);
}

static char *joined(const char *dir, const char *name)
{
        size_t size = strlen(dir) + strlen(name) + 2;
        char *ret = xcalloc(1, size);

        (void) snprintf(ret, size, "%s/%s", dir, name);
        return ret;
}

static int open_installation(struct engine_worker *w, struct str installation, struct err *e)
{
        int r;

        memcpy(w->installation, installation.p, ID_HEX_LEN);
        w->settings->installation = str_of(w->installation, ID_HEX_LEN);
        w->dir = joined(w->settings->dir, w->installation);
        w->run_path = joined(w->dir, "run");
        if (mkdir(w->dir, 0700) < 0 && errno != EEXIST)
                return err_errno(e, -errno, "create %s", w->dir);
        w->lock = open(w->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (w->lock < 0)
                return err_errno(e, -errno, "open %s", w->dir);
        /* Held until the process ends. Blocking is fine here: nothing else has begun. A worker that was
         * killed has released the lock, too, while the engine may still carry out its last call; the next
         * scan finds that. */
        if (flock(w->lock, LOCK_EX) < 0)
                return err_errno(e, -errno, "lock %s", w->dir);
        r = engine_seccomp_option(w->settings->kind, w->dir, &w->seccomp, e);
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

static void on_hello(struct engine_worker *w, const struct engine_request *q)
{
        struct engine_message reply = { .request_id = q->request_id, .done = true };
        struct str ours = w->settings->installation;
        struct err e;
        int r;

        if (w->greeted)
                r = err_set(&e, ERR_CONFLICT, "hello twice");
        else if (q->version != ENGINE_PROTOCOL_VERSION)
                r = err_set(&e, ERR_UNSUPPORTED,
                            "hutchd and hutch-engine are of different versions; install both of "
                            "the same version");
        else if (ours.p && !str_eq(ours, q->installation))
                r = err_set(&e, ERR_FORBIDDEN, "this worker is for another installation");
        else
                r = open_installation(w, q->installation, &e);
        if (r < 0) {
                reply.code = 1 + (int64_t) e.code;
                reply.text = str_from(e.message);
                log_fields(w->log, LOG_ERROR, "hello refused",
                           LOG_F_STR("error", str_from(e.message)));
        }
        w->greeted |= r == 0;
        reply.version = r == 0 ? ENGINE_PROTOCOL_VERSION : 0;
        engine_worker_send(w, &reply, -EBADF);
        if (r == 0)
                w->events = events_new(w);
}

static void on_frame(struct channel *c, struct str text)
{
        struct engine_worker *w = container_of(c, struct engine_worker, channel);
        struct engine_request q;
        struct arena a;
        struct err e;
        int r;

        arena_init(&a, 4 * ENGINE_FRAME_MAX);
        r = engine_request_decode(text, &a, &q, &e);
        if (r == 0 && !w->greeted && q.call != ENGINE_HELLO)
                r = err_set(&e, ERR_INVALID, "%s before hello", engine_call_to_string(q.call));
        if (r == 0 && q.call == ENGINE_HELLO)
                on_hello(w, &q);
        else if (r == 0 && q.call == ENGINE_CANCEL)
                job_cancel(w, q.other);
        else if (r == 0)
                job_start(w, &q);
        arena_wipe(&a);
        if (r < 0) {
                log_fields(w->log, LOG_ERROR, "invalid request from hutchd",
                           LOG_F_STR("error", str_from(e.message)));
                on_ended(c, -EPROTO);
        }
}

static const struct channel_ops channel_ops = {
        .frame = on_frame,
        .ended = on_ended,
        .closed = channel_closed,
};

/* --- filters --- */

void engine_worker_add_filter(struct engine_worker *w, struct buf *b, bool events)
{
        char json[256];

        (void) snprintf(json, sizeof(json), "{%s\"label\":[\"hutch.installation=%.*s\"]}",
                        events ? "\"type\":[\"container\"]," : "",
                        STR_ARG(w->settings->installation));
        url_encode(b, str_from(json));
}

/* --- the start --- */

int engine_worker_start(struct engine_worker *w, int fd, struct err *e)
{
        char text[PATH_MAX_TEXT + 8];
        int r;

        (void) snprintf(text, sizeof(text), "unix:%s", w->settings->socket);
        r = sock_addr_from_string(str_from(text), &w->engine);
        if (r < 0)
                return err_errno(e, r, "the engine's socket %s", w->settings->socket);
        list_init(&w->jobs);
        list_init(&w->pulls);
        list_init(&w->relays);
        list_init(&w->undos);
        buf_init(&w->archive, ARCHIVE_MAX + MiB);
        w->lock = -EBADF;
        w->client = client_new(w, 180 * USEC_PER_SEC, 60 * USEC_PER_SEC);
        w->streams = client_new(w, 180 * USEC_PER_SEC, USEC_INFINITY);
        w->slow = client_new(w, SLOW_TIMEOUT, 60 * USEC_PER_SEC);
        (void) uv_timer_init(&w->loop->uv, &w->end_timer);
        w->channel.frame_max = ENGINE_FRAME_MAX;
        w->open = 5; /* channel, timer, three clients; run directories, when they are opened */
        r = channel_open(&w->channel, w->loop, fd, &channel_ops);
        return r < 0 ? err_errno(e, r, "open the connection to hutchd") : 0;
}
