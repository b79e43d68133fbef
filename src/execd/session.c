/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/session.h"

#include <signal.h>

#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/event_stream.h"
#include "execd/launch.h"

/* A request for a run: first in the queue, then a stream of events. */
struct session_run {
        struct list node;        /* of the queue */
        struct session *session; /* NULL once the run has ended */
        struct http_req *req;    /* while it is in the queue */
        const struct session_input *input;
        struct event_stream stream; /* from then on */
};

/* --- streams --- */

static void stream_drain(struct event_stream *es)
{
        struct session_run *run = container_of(es, struct session_run, stream);

        if (run->session)
                shell_resume_output(&run->session->_shell);
}

static void stream_ended(struct event_stream *es)
{
        free(container_of(es, struct session_run, stream));
}

/* The end of the shell starts the next run. */
static void stream_gone(struct event_stream *es)
{
        struct session_run *run = container_of(es, struct session_run, stream);
        struct session *s = run->session;

        if (s) {
                s->_current = NULL;
                shell_resume_output(&s->_shell);
                (void) shell_kill(&s->_shell);
        }
        free(run);
}

static const struct event_stream_ops stream_ops = {
        .drain = stream_drain,
        .ended = stream_ended,
        .gone = stream_gone,
};

static void end_current(struct session *s, const struct process_result *r)
{
        struct session_run *run = TAKE_PTR(s->_current);

        if (!run)
                return;
        run->session = NULL;
        event_stream_end(&run->stream, r);
}

/* --- the queue --- */

/* The caller replies to the request. */
static struct http_req *take_from_queue(struct session_run *run)
{
        struct http_req *req = run->req;

        list_remove(&run->node);
        run->session->_n_queued--;
        http_req_set_hooks(req, NULL, NULL);
        return req;
}

static void queued_abort(struct http_req *req, int reason)
{
        struct session_run *run = req->data;

        (void) reason;
        http_req_unref(take_from_queue(run));
        free(run);
}

static const struct http_hooks queued_hooks = { .abort = queued_abort };

static void refuse_queued(struct session *s)
{
        list_for_each (n, &s->_queue) {
                struct session_run *run = container_of(n, struct session_run, node);
                struct http_req *req = take_from_queue(run);

                http_reply_error(req, 500, CODE_RUNTIME_ERROR,
                                 "the session was closed before this run began");
                http_req_unref(req);
                free(run);
        }
}

/* --- runs --- */

/* Begins the first run of the queue that can begin; replies to those that cannot. */
static void begin_next(struct session *s)
{
        list_for_each (n, &s->_queue) {
                struct session_run *run = container_of(n, struct session_run, node);
                const struct session_input *in = run->input;
                struct shell_run r = { .command = in->command,
                                       .timeout = in->timeout ? in->timeout : SESSION_RUN_TIMEOUT };
                struct http_req *req;
                struct err e;
                int error;

                if (s->_shell.busy || s->_closing)
                        return;
                req = take_from_queue(run);
                r.arena = &req->arena;
                if (in->cwd.n > 0
                    && launch_cwd(s->_all->agent, &req->arena, in->cwd, &r.cwd, &e) < 0) {
                        http_reply_error(req, 400, CODE_INVALID_BODY, "%s", e.message);
                        free(run);
                } else if (event_stream_begin(&run->stream, req, &stream_ops,
                                              &(struct event_stream_options){ .id = str_from(s->id),
                                                                              .skip_empty = true })
                           < 0) {
                        free(run);
                } else {
                        s->_current = run;
                        error = shell_run(&s->_shell, &r);
                        if (error < 0)
                                end_current(s, &(struct process_result){ .error = error });
                }
                http_req_unref(req);
        }
}

void session_run(struct session *s, struct http_req *req, const struct session_input *in)
{
        struct session_run *run;

        if (s->_n_queued >= SESSION_QUEUE_MAX) {
                http_reply_error(req, 503, CODE_UNAVAILABLE,
                                 "%d runs are waiting in this session already; try again later",
                                 SESSION_QUEUE_MAX);
                return;
        }
        run = xnew(struct session_run);
        *run = (struct session_run){ .session = s, .req = http_req_ref(req), .input = in };
        list_append(&s->_queue, &run->node);
        s->_n_queued++;
        http_req_set_hooks(req, &queued_hooks, run);
        if (s->_shell.busy)
                http_req_abort_on_eof(req);
        else
                begin_next(s);
}

/* --- callbacks of the shell --- */

static void session_free(struct session *s);

static void shell_output(struct shell *sh, struct str bytes)
{
        struct session *s = container_of(sh, struct session, _shell);

        if (s->_current && !event_stream_output(&s->_current->stream, PROCESS_STDOUT, bytes))
                shell_pause_output(sh);
}

static void shell_run_ended(struct shell *sh, const struct process_result *r)
{
        struct session *s = container_of(sh, struct session, _shell);

        end_current(s, r);
        begin_next(s);
}

static void shell_gone(struct shell *sh)
{
        struct session *s = container_of(sh, struct session, _shell);

        if (s->_closing)
                session_free(s);
}

static const struct shell_ops shell_ops = {
        .output = shell_output,
        .run_ended = shell_run_ended,
        .gone = shell_gone,
};

/* --- lifetime --- */

void sessions_init(struct sessions *ss, struct agent *a)
{
        *ss = (struct sessions){ .agent = a };
        map_init(&ss->by_id);
        list_init(&ss->all);
}

int session_new(struct sessions *ss, const char *cwd, struct session **ret)
{
        struct session *s;
        int r;

        if (ss->n >= SESSIONS_MAX)
                return -EMFILE;
        s = xnew(struct session);
        r = shell_init(&s->_shell, ss->agent, cwd, &shell_ops);
        if (r < 0) {
                free(s);
                return r;
        }
        s->_all = ss;
        list_init(&s->_queue);
        ids_uuid(&ss->agent->ids, s->id);
        map_add(&ss->by_id, &s->_by_id, str_from(s->id));
        list_append(&ss->all, &s->_node);
        ss->n++;
        *ret = s;
        return 0;
}

struct session *session_find(struct sessions *ss, struct str id)
{
        struct map_node *n = map_get(&ss->by_id, id);

        return n ? container_of(n, struct session, _by_id) : NULL;
}

static void session_free(struct session *s)
{
        struct http_req *closer = s->_closer;

        map_remove(&s->_all->by_id, &s->_by_id);
        list_remove(&s->_node);
        s->_all->n--;
        if (s->_current)
                s->_current->session = NULL;
        refuse_queued(s);
        shell_done(&s->_shell);
        free(s);
        if (!closer)
                return;
        http_req_set_hooks(closer, NULL, NULL);
        http_reply_empty(closer, 200);
        http_req_unref(closer);
}

static void closer_abort(struct http_req *req, int reason)
{
        struct session *s = req->data;

        (void) reason;
        s->_closer = NULL;
        http_req_unref(req);
}

static const struct http_hooks closer_hooks = { .abort = closer_abort };

/* The client of the current run gets its last event at once: waiting until it has read all output would let a
 * slow client keep the session open. */
void session_close(struct session *s, struct http_req *req)
{
        s->_closing = true;
        map_remove(&s->_all->by_id, &s->_by_id);
        s->_closer = http_req_ref(req);
        http_req_set_hooks(req, &closer_hooks, s);
        refuse_queued(s);
        end_current(s, &(struct process_result){ .status = SIGKILL });
        shell_resume_output(&s->_shell);
        if (!shell_kill(&s->_shell))
                session_free(s);
}

void sessions_done(struct sessions *ss)
{
        list_for_each (n, &ss->all)
                session_free(container_of(n, struct session, _node));
        map_done(&ss->by_id);
}
