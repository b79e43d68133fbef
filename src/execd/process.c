/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/proctree.h"

/* --- the end --- */

static void handle_gone(struct process *j)
{
        ASSERT(j->_open > 0);
        if (--j->_open > 0)
                return;
        net_task_cancel(&j->_finish);
        list_remove(&j->_node);
        free(j);
}

static void timer_closed(uv_handle_t *h)
{
        handle_gone(container_of((uv_timer_t *) h, struct process, _timer));
}

static void close_timer(struct process *j)
{
        if (j->_timer_open)
                uv_close((uv_handle_t *) &j->_timer, timer_closed);
        j->_timer_open = false;
}

static void close_pipe(struct process_pipe *p)
{
        if (p->open)
                net_pipe_close(&p->pipe);
        p->open = false;
}

/* The owner's reference is one of the open handles. */
void process_release(struct process *j)
{
        j->ops = NULL;
        for (size_t i = 0; i < PROCESS_STREAMS; i++)
                if (j->_pipes[i].open)
                        net_pipe_resume(&j->_pipes[i].pipe);
        handle_gone(j);
}

static bool is_drained(const struct process *j)
{
        for (size_t i = 0; i < PROCESS_STREAMS; i++)
                if (j->_pipes[i].due > 0)
                        return false;
        return true;
}

static void finish(struct net_task *t)
{
        struct process *j = container_of(t, struct process, _finish);

        /* More may have become due since this was queued. */
        if (!j->running || !is_drained(j))
                return;
        if (!j->_exited) {
                j->_draining = false;
                if (j->ops)
                        j->ops->drained(j);
                return;
        }
        j->running = false;
        close_timer(j);
        if (j->ops)
                j->ops->ended(j, &j->_result);
}

static void finish_if_drained(struct process *j)
{
        if ((j->_exited || j->_draining) && j->running && is_drained(j))
                net_task_queue(j->_processes->loop, &j->_finish);
}

/* --- output --- */

static void pipe_data(struct net_pipe *pipe, char *bytes, size_t n)
{
        struct process_pipe *p = container_of(pipe, struct process_pipe, pipe);
        struct process *j = p->process;
        enum process_stream stream = (enum process_stream)(p - j->_pipes);
        size_t wanted = n;

        /* What a process left behind has written after the end, or after a marker, belongs to
         * nobody. */
        if (j->_draining || (j->_exited && !j->_keep_output))
                wanted = MIN_OF(n, p->due);
        p->due -= MIN_OF(n, p->due);
        if (wanted > 0 && j->ops)
                j->ops->output(j, stream, bytes, wanted);
        finish_if_drained(j);
}

static void pipe_ended(struct net_pipe *pipe, int r)
{
        struct process_pipe *p = container_of(pipe, struct process_pipe, pipe);

        (void) r;
        p->due = 0;
        close_pipe(p);
        finish_if_drained(p->process);
}

static void pipe_closed(struct net_pipe *pipe)
{
        handle_gone(container_of(pipe, struct process_pipe, pipe)->process);
}

static const struct net_pipe_ops pipe_ops = {
        .data = pipe_data,
        .ended = pipe_ended,
        .closed = pipe_closed,
};

static void set_reading(struct process *j, bool reading)
{
        for (size_t i = 0; i < PROCESS_STREAMS; i++) {
                if (!j->_pipes[i].open)
                        continue;
                if (reading)
                        net_pipe_resume(&j->_pipes[i].pipe);
                else
                        net_pipe_pause(&j->_pipes[i].pipe);
        }
}

void process_pause_output(struct process *j)
{
        set_reading(j, false);
}

void process_resume_output(struct process *j)
{
        set_reading(j, true);
}

/* --- the supervisor's report --- */

static void control_closed(uv_handle_t *h)
{
        handle_gone(container_of((uv_poll_t *) h, struct process, _control));
}

static void close_control(struct process *j)
{
        if (j->_supervisor < 0)
                return;
        uv_close((uv_handle_t *) &j->_control, control_closed);
        j->_supervisor = fd_close(j->_supervisor);
}

/* The pipes hold the last words, and nothing says how long others will go on writing: what is in
 * them now is what counts. */
static void read_pending(struct process *j)
{
        for (size_t i = 0; i < PROCESS_STREAMS; i++) {
                struct process_pipe *p = &j->_pipes[i];

                p->due = p->open ? net_pipe_pending(&p->pipe) : 0;
        }
        /* Usually the loop has not looked at the pipes yet in this turn. */
        for (size_t i = 0; i < PROCESS_STREAMS; i++)
                while (j->_pipes[i].open && j->_pipes[i].due > 0
                       && net_pipe_read_now(&j->_pipes[i].pipe))
                        ;
}

static void program_gone(struct process *j)
{
        j->_exited = true;
        j->_draining = false;
        read_pending(j);
        finish_if_drained(j);
}

void process_drain(struct process *j)
{
        if (j->_exited || j->_draining)
                return;
        j->_draining = true;
        read_pending(j);
        finish_if_drained(j);
}

void process_read_now(struct process *j)
{
        if (!j->_exited && !j->_draining)
                read_pending(j);
}

/* All there is: libuv stops watching a socket whose peer has reset it. */
static void control_cb(uv_poll_t *h, int status, int events)
{
        struct process *j = container_of(h, struct process, _control);
        struct supervisor_report report;
        int r = supervisor_read(j->_supervisor, &report);

        (void) status;
        (void) events;
        if (r > 0 && report.kind == SUPERVISOR_STARTED) {
                if (j->ops)
                        j->ops->started(j);
                r = supervisor_read(j->_supervisor, &report);
        }
        if (r == 0)
                return;
        if (r < 0) {
                j->_result.lost = true;
                j->_result.status = SIGKILL;
        } else if (report.kind == SUPERVISOR_FAILED) {
                j->_result.error = report.value;
        } else {
                j->_result.status = report.value;
        }
        close_control(j);
        program_gone(j);
}

/* --- asking it to end --- */

void process_signal(struct process *j, int sig)
{
        if (j->_supervisor >= 0)
                supervisor_signal(j->_supervisor, sig);
}

void process_kill(struct process *j)
{
        j->killed = true;
        if (j->_supervisor >= 0)
                supervisor_kill(j->_supervisor);
}

static void timer_cb(uv_timer_t *h)
{
        struct process *j = container_of(h, struct process, _timer);

        /* It ended in time. Only its last words are held back, by a client that reads slowly. */
        if (j->_exited)
                return;
        j->_result.timed_out = !j->_interrupted;
        process_kill(j);
}

static void set_timer(struct process *j, usec_t length)
{
        if (j->_timer_open)
                (void) uv_timer_start(&j->_timer, timer_cb,
                                      length / USEC_PER_MSEC + (length % USEC_PER_MSEC > 0), 0);
}

void process_set_timeout(struct process *j, usec_t length)
{
        if (length > 0)
                set_timer(j, length);
        else if (j->_timer_open)
                (void) uv_timer_stop(&j->_timer);
}

void process_interrupt(struct process *j)
{
        if (j->_interrupted || j->_supervisor < 0)
                return;
        j->_interrupted = true;
        process_signal(j, SIGTERM);
        set_timer(j, PROCESS_GRACE);
}

/* --- all of them --- */

void processes_init(struct processes *js, struct net_loop *l)
{
        js->loop = l;
        list_init(&js->_all);
}

/* A supervisor that hears no more of us kills what it keeps. */
static void abandon(struct process *j)
{
        j->ops = NULL;
        j->running = false;
        close_timer(j);
        close_control(j);
        for (size_t i = 0; i < PROCESS_STREAMS; i++)
                close_pipe(&j->_pipes[i]);
}

/* A command that goes on stopping its supervisor while that is to kill it leaves it no time to. */
void processes_continue(struct processes *js, pid_t child)
{
        list_for_each (n, &js->_all) {
                struct process *j = container_of(n, struct process, _node);

                if (j->_supervisor < 0 || j->_supervisor_pid != child)
                        continue;
                if (j->killed)
                        (void) !proctree_signal(child, SIGKILL);
                (void) kill(child, SIGCONT);
                return;
        }
}

void processes_close(struct processes *js)
{
        list_for_each (n, &js->_all)
                abandon(container_of(n, struct process, _node));
}

/* --- starting --- */

/* Both ends of the pipes, before there is a process. The null descriptor where there is none. */
struct ends {
        int child[3];
        int parent[3];
};

static void ends_done(struct ends *e)
{
        for (int i = 0; i < 3; i++) {
                e->child[i] = fd_close(e->child[i]);
                e->parent[i] = fd_close(e->parent[i]);
        }
}

static int open_pipe(int *ret_read, int *ret_write)
{
        int fds[2];

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        *ret_read = fds[0];
        *ret_write = fds[1];
        return 0;
}

static int open_stdin(const struct process_spec *spec, struct ends *e)
{
        int r;

        if (!spec->pipe_stdin)
                e->child[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (e->child[0] >= 0)
                return 0;
        /* A root without devices: a pipe that nobody writes to is as empty. */
        r = open_pipe(&e->child[0], &e->parent[0]);
        if (r == 0 && !spec->pipe_stdin)
                e->parent[0] = fd_close(e->parent[0]);
        else if (r == 0 && fcntl(e->parent[0], F_SETFL, O_NONBLOCK) < 0)
                r = -errno;
        return r;
}

static int open_ends(const struct process_spec *spec, struct ends *e)
{
        int r = open_stdin(spec, e);

        if (r == 0)
                r = open_pipe(&e->parent[1], &e->child[1]);
        if (r == 0 && !spec->merge)
                r = open_pipe(&e->parent[2], &e->child[2]);
        return r;
}

static int start_keeper(struct process *j, const struct process_spec *spec, const struct ends *e)
{
        const struct spawn s = {
                .oom_first = true,
                .argv = spec->argv,
                .envp = spec->envp,
                .search = spec->search,
                .cwd = spec->cwd,
                .user = spec->user,
                .fds = { e->child[0], e->child[1], spec->merge ? e->child[1] : e->child[2] },
        };

        return supervisor_start(&s, j->ops->started != NULL, &j->_supervisor, &j->_supervisor_pid);
}

/* What fails here (the kernel limits what a user may watch, and what a sandbox may use of its memory)
 * leaves the handles before it open. */
static int watch(struct process *j, struct ends *e)
{
        int r;

        (void) uv_timer_init(&j->_processes->loop->uv, &j->_timer);
        j->_timer_open = true;
        j->_open++;
        r = uv_poll_init(&j->_processes->loop->uv, &j->_control, j->_supervisor);
        if (r < 0) {
                j->_supervisor = fd_close(j->_supervisor);
                return r;
        }
        j->_open++;
        (void) uv_poll_start(&j->_control, UV_READABLE, control_cb);
        for (size_t i = 0; i < PROCESS_STREAMS; i++) {
                struct process_pipe *p = &j->_pipes[i];
                int fd = TAKE_FD(e->parent[i + 1]);

                p->process = j;
                if (fd < 0)
                        continue;
                r = net_pipe_open(&p->pipe, j->_processes->loop, fd, &pipe_ops);
                if (r < 0)
                        return r;
                p->open = true;
                j->_open++;
                net_pipe_resume(&p->pipe);
        }
        return 0;
}

int process_start(struct processes *js, const struct process_spec *spec,
                  const struct process_ops *ops, void *owner, struct process **ret)
{
        scoped(ends_done) struct ends e = { { -EBADF, -EBADF, -EBADF },
                                            { -EBADF, -EBADF, -EBADF } };
        int r = open_ends(spec, &e);
        struct process *j;

        if (r < 0)
                return r;
        j = xnew(struct process);
        *j = (struct process){ .ops = ops,
                               .owner = owner,
                               .running = true,
                               ._processes = js,
                               ._open = 1, /* the owner's */
                               ._supervisor = -EBADF,
                               ._keep_output = spec->keep_output };
        net_task_init(&j->_finish, finish);
        list_append(&js->_all, &j->_node);
        r = start_keeper(j, spec, &e);
        if (r == 0)
                r = watch(j, &e);
        if (r < 0) {
                abandon(j);
                handle_gone(j);
                return r;
        }
        if (spec->timeout > 0)
                set_timer(j, spec->timeout);
        if (spec->ret_stdin)
                *spec->ret_stdin = TAKE_FD(e.parent[0]);
        *ret = j;
        return 0;
}
