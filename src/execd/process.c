/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/proctree.h"

#define DEATH_MAX 800 /* milliseconds from SIGKILL until a process counts as dead */

/* --- lifetime --- */

static void process_unref(struct process *proc)
{
        ASSERT(proc->_open > 0);
        if (--proc->_open > 0)
                return;
        net_task_cancel(&proc->_finish);
        list_remove(&proc->_node);
        free(proc);
}

static void timer_closed(uv_handle_t *h)
{
        process_unref(container_of((uv_timer_t *) h, struct process, _timer));
}

static void close_timer(struct process *proc)
{
        if (proc->_timer_open)
                uv_close((uv_handle_t *) &proc->_timer, timer_closed);
        proc->_timer_open = false;
}

/* --- the end of the program, or of a drain --- */

/* Queued when it may be over; more bytes may have become due since. */
static void finish(struct net_task *t)
{
        struct process *proc = container_of(t, struct process, _finish);

        if (!proc->running || (!proc->_exited && !proc->_draining))
                return;
        for (size_t i = 0; i < PROCESS_STREAMS; i++)
                if (proc->_pipes[i].due > 0)
                        return;
        if (!proc->_exited) {
                proc->_draining = false;
                if (proc->ops)
                        proc->ops->drained(proc->owner);
                return;
        }
        proc->running = false;
        close_timer(proc);
        if (proc->ops)
                proc->ops->ended(proc->owner, &proc->_result);
}

/* --- output --- */

static void pipe_data(struct net_pipe *pipe, char *bytes, size_t n)
{
        struct process_pipe *p = container_of(pipe, struct process_pipe, pipe);
        struct process *proc = p->process;
        enum process_stream stream = (enum process_stream)(p - proc->_pipes);
        size_t n_output = n;

        /* Bytes written after the end of the program, or after a marker, are discarded. */
        if (proc->_draining || (proc->_exited && !proc->_keep_output))
                n_output = MIN_OF(n, p->due);
        if (p->due > 0) {
                p->due -= MIN_OF(n, p->due);
                net_task_queue(proc->_processes->loop, &proc->_finish);
        }
        if (n_output > 0 && proc->ops)
                proc->ops->output(proc->owner, stream, bytes, n_output);
}

static void pipe_ended(struct net_pipe *pipe, int r)
{
        struct process_pipe *p = container_of(pipe, struct process_pipe, pipe);

        (void) r;
        p->due = 0;
        p->open = false;
        net_pipe_close(pipe);
        net_task_queue(p->process->_processes->loop, &p->process->_finish);
}

static void pipe_closed(struct net_pipe *pipe)
{
        process_unref(container_of(pipe, struct process_pipe, pipe)->process);
}

static const struct net_pipe_ops pipe_ops = {
        .data = pipe_data,
        .ended = pipe_ended,
        .closed = pipe_closed,
};

void process_pause_output(struct process *proc)
{
        for (size_t i = 0; i < PROCESS_STREAMS; i++)
                if (proc->_pipes[i].open)
                        net_pipe_pause(&proc->_pipes[i].pipe);
}

void process_resume_output(struct process *proc)
{
        for (size_t i = 0; i < PROCESS_STREAMS; i++)
                if (proc->_pipes[i].open)
                        net_pipe_resume(&proc->_pipes[i].pipe);
}

void process_release(struct process *proc)
{
        proc->ops = NULL;
        process_resume_output(proc);
        process_unref(proc);
}

/* --- the report of the supervisor --- */

static void control_closed(uv_handle_t *h)
{
        process_unref(container_of((uv_poll_t *) h, struct process, _control));
}

static void close_control(struct process *proc)
{
        if (proc->_supervisor < 0)
                return;
        uv_close((uv_handle_t *) &proc->_control, control_closed);
        proc->_supervisor = fd_close(proc->_supervisor);
}

/* The pipes hold the last output of the program, and other processes may go on writing for any time: what
 * is in the pipes now is what counts. */
static void read_pending(struct process *proc)
{
        for (size_t i = 0; i < PROCESS_STREAMS; i++) {
                struct process_pipe *p = &proc->_pipes[i];

                p->due = p->open ? net_pipe_pending(&p->pipe) : 0;
        }
        /* Usually the loop has not read the pipes yet in this turn. */
        for (size_t i = 0; i < PROCESS_STREAMS; i++)
                while (proc->_pipes[i].open && proc->_pipes[i].due > 0
                       && net_pipe_read_now(&proc->_pipes[i].pipe))
                        ;
}

void process_drain(struct process *proc)
{
        if (proc->_exited || proc->_draining)
                return;
        proc->_draining = true;
        read_pending(proc);
        net_task_queue(proc->_processes->loop, &proc->_finish);
}

void process_read_now(struct process *proc)
{
        if (!proc->_exited && !proc->_draining)
                read_pending(proc);
}

static void release_group(struct process *proc)
{
        struct command_group *g = TAKE_PTR(proc->_group);

        if (g)
                command_group_release(g);
        if (proc->_dying)
                proc->_processes->_n_dying--;
        proc->_dying = false;
}

static void exited(struct process *proc)
{
        if (proc->_group)
                proc->_result.out_of_memory = command_group_out_of_memory(proc->_group);
        close_control(proc);
        release_group(proc);
        proc->_exited = true;
        proc->_draining = false;
        read_pending(proc);
        net_task_queue(proc->_processes->loop, &proc->_finish);
}

/* Processes die when they get CPU time, which a limit may keep from them for long: the client need not wait. */
static void death_overdue(uv_timer_t *h)
{
        struct process *proc = container_of(h, struct process, _timer);

        if (!proc->_exited)
                exited(proc);
}

static void expect_death(struct process *proc)
{
        if (proc->_dying)
                return;
        proc->_dying = true;
        proc->_processes->_n_dying++;
        if (proc->_timer_open)
                (void) uv_timer_start(&proc->_timer, death_overdue, DEATH_MAX, 0);
}

/* The supervisor is gone, and the command with it. With a group, what the command has started is killed, and the end is
 * that of its last process, which is ours to reap now (processes_reaped). */
static void killed(struct process *proc)
{
        proc->_result.lost = !proc->killed;
        proc->_result.status = SIGKILL;
        if (proc->_group && !proc->killed)
                command_group_kill(proc->_group);
        if (!proc->_group || !command_group_is_populated(proc->_group)) {
                exited(proc);
                return;
        }
        close_control(proc);
        expect_death(proc);
}

void processes_reaped(void *processes)
{
        struct processes *all = processes;

        if (all->_n_dying == 0)
                return;
        list_for_each (n, &all->_all) {
                struct process *proc = container_of(n, struct process, _node);

                if (proc->_dying && proc->_supervisor < 0
                    && !command_group_is_populated(proc->_group))
                        exited(proc);
        }
}

/* Reads everything: libuv stops watching a socket whose peer has reset it. */
static void control_cb(uv_poll_t *h, int status, int events)
{
        struct process *proc = container_of(h, struct process, _control);
        struct supervisor_report report;
        int r = supervisor_read(proc->_supervisor, &report);

        (void) status;
        (void) events;
        if (r > 0 && report.kind == SUPERVISOR_STARTED) {
                if (proc->ops)
                        proc->ops->started(proc->owner);
                r = supervisor_read(proc->_supervisor, &report);
        }
        if (r == 0)
                return;
        if (r < 0) {
                killed(proc);
                return;
        }
        if (report.kind == SUPERVISOR_FAILED)
                proc->_result.error = report.value;
        else
                proc->_result.status = report.value;
        exited(proc);
}

/* --- signals and timeouts --- */

void process_signal(struct process *proc, int sig)
{
        if (proc->_supervisor >= 0)
                supervisor_signal(proc->_supervisor, sig);
}

void process_kill(struct process *proc)
{
        proc->killed = true;
        if (proc->_supervisor < 0)
                return;
        if (!proc->_group) {
                supervisor_kill(proc->_supervisor);
                return;
        }
        command_group_kill(proc->_group);
        proc->_result.status = SIGKILL;
        expect_death(proc);
}

static void timer_cb(uv_timer_t *h)
{
        struct process *proc = container_of(h, struct process, _timer);

        /* It ended in time; only its last output is held back, by a client that reads slowly. */
        if (proc->_exited)
                return;
        proc->_result.timed_out = !proc->_interrupted;
        process_kill(proc);
}

void process_set_timeout(struct process *proc, usec_t length)
{
        if (!proc->_timer_open || proc->killed)
                return;
        if (length > 0)
                (void) uv_timer_start(&proc->_timer, timer_cb,
                                      length / USEC_PER_MSEC + (length % USEC_PER_MSEC > 0), 0);
        else
                (void) uv_timer_stop(&proc->_timer);
}

void process_interrupt(struct process *proc)
{
        if (proc->_interrupted || proc->_supervisor < 0)
                return;
        proc->_interrupted = true;
        process_signal(proc, SIGTERM);
        process_set_timeout(proc, PROCESS_GRACE);
}

/* --- all processes --- */

void processes_init(struct processes *all, struct net_loop *l, int cgroup_fds)
{
        all->loop = l;
        command_groups_init(&all->groups, l, cgroup_fds);
        list_init(&all->_all);
}

/* A supervisor whose socket is closed kills everything below it. */
static void abandon(struct process *proc)
{
        proc->ops = NULL;
        proc->running = false;
        close_timer(proc);
        close_control(proc);
        release_group(proc);
        for (size_t i = 0; i < PROCESS_STREAMS; i++) {
                if (proc->_pipes[i].open)
                        net_pipe_close(&proc->_pipes[i].pipe);
                proc->_pipes[i].open = false;
        }
}

/* A command that keeps stopping its supervisor leaves it no time to kill: then the agent does it. */
void processes_continue(void *processes, pid_t child)
{
        struct processes *all = processes;

        list_for_each (n, &all->_all) {
                struct process *proc = container_of(n, struct process, _node);

                if (proc->_supervisor < 0 || proc->_supervisor_pid != child)
                        continue;
                if (proc->killed)
                        (void) !proctree_signal(child, SIGKILL);
                (void) kill(child, SIGCONT);
                return;
        }
}

void processes_close(struct processes *all)
{
        list_for_each (n, &all->_all)
                abandon(container_of(n, struct process, _node));
        command_groups_close(&all->groups);
}

/* --- starting --- */

/* Both ends of the pipes, -EBADF where there is none. */
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

static int open_ends(const struct process_spec *spec, struct ends *e)
{
        int r = 0;

        if (!spec->pipe_stdin)
                e->child[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        /* A rootfs without devices: a pipe without a writer is as empty. */
        if (e->child[0] < 0)
                r = open_pipe(&e->child[0], &e->parent[0]);
        if (!spec->pipe_stdin)
                e->parent[0] = fd_close(e->parent[0]);
        else if (r == 0 && fcntl(e->parent[0], F_SETFL, O_NONBLOCK) < 0)
                r = -errno;
        if (r == 0)
                r = open_pipe(&e->parent[1], &e->child[1]);
        if (r == 0 && !spec->merge)
                r = open_pipe(&e->parent[2], &e->child[2]);
        return r;
}

/* Fails at the kernel's limits on epoll watches and memory. Handles opened before the failure stay open. */
static int watch(struct process *proc, struct ends *e)
{
        int r;

        (void) uv_timer_init(&proc->_processes->loop->uv, &proc->_timer);
        proc->_timer_open = true;
        proc->_open++;
        r = uv_poll_init(&proc->_processes->loop->uv, &proc->_control, proc->_supervisor);
        if (r < 0) {
                proc->_supervisor = fd_close(proc->_supervisor);
                return r;
        }
        proc->_open++;
        (void) uv_poll_start(&proc->_control, UV_READABLE, control_cb);
        for (size_t i = 0; i < PROCESS_STREAMS; i++) {
                struct process_pipe *p = &proc->_pipes[i];
                int fd = TAKE_FD(e->parent[i + 1]);

                p->process = proc;
                if (fd < 0)
                        continue;
                r = net_pipe_open(&p->pipe, proc->_processes->loop, fd, &pipe_ops);
                if (r < 0)
                        return r;
                p->open = true;
                proc->_open++;
                net_pipe_resume(&p->pipe);
        }
        return 0;
}

int process_start(struct processes *all, const struct process_spec *spec,
                  const struct process_ops *ops, void *owner, struct process **ret)
{
        scoped(ends_done) struct ends e = { { -EBADF, -EBADF, -EBADF },
                                            { -EBADF, -EBADF, -EBADF } };
        struct spawn s = { .oom_first = true,
                           .join = all->groups.tasks,
                           .n_join = all->groups.n_tasks,
                           .argv = spec->argv,
                           .envp = spec->envp,
                           .search = spec->search,
                           .cwd = spec->cwd,
                           .user = spec->user };
        struct process *proc;
        int r = open_ends(spec, &e);

        if (r < 0)
                return r;
        s.fds[0] = e.child[0];
        s.fds[1] = e.child[1];
        s.fds[2] = spec->merge ? e.child[1] : e.child[2];
        proc = xnew(struct process);
        *proc = (struct process){ .ops = ops,
                                  .owner = owner,
                                  .running = true,
                                  ._processes = all,
                                  ._open = 1, /* the owner */
                                  ._supervisor = -EBADF,
                                  ._keep_output = spec->keep_output };
        net_task_init(&proc->_finish, finish);
        list_append(&all->_all, &proc->_node);
        r = command_group_take(&all->groups, &proc->_group);
        if (r == 0)
                r = supervisor_start(&s, proc->_group ? proc->_group->dir : -EBADF,
                                     ops->started != NULL, &proc->_supervisor,
                                     &proc->_supervisor_pid);
        if (r == 0)
                r = watch(proc, &e);
        if (r < 0) {
                abandon(proc);
                process_unref(proc);
                return r;
        }
        process_set_timeout(proc, spec->timeout);
        if (spec->ret_stdin)
                *spec->ret_stdin = TAKE_FD(e.parent[0]);
        *ret = proc;
        return 0;
}
