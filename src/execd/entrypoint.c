/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/entrypoint.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "execd/agent.h"
#include "execd/api.h"
#include "execd/launch.h"
#include "execd/spool.h"
#include "os/clone.h"
#include "os/fd.h"

void entrypoint_init(struct entrypoint *e, struct agent *a)
{
        *e = (struct entrypoint){ .agent = a };
}

void entrypoint_done(struct entrypoint *e)
{
        if (e->_pipe_open)
                net_pipe_close(&e->_pipe);
        e->_pipe_open = false;
        spool_unref(TAKE_PTR(e->output));
}

/* --- output --- */

static void pipe_data(struct net_pipe *p, char *bytes, size_t n)
{
        struct entrypoint *e = container_of(p, struct entrypoint, _pipe);

        spool_add(e->output, str_of(bytes, n));
}

/* Readers that follow the output see its end when the program is gone, not when it has closed its
 * descriptors: their next request is how it ended. */
static void pipe_ended(struct net_pipe *p, int r)
{
        struct entrypoint *e = container_of(p, struct entrypoint, _pipe);

        (void) r;
        e->_pipe_open = false;
        net_pipe_close(p);
}

static void pipe_closed(struct net_pipe *p)
{
        (void) p;
}

static const struct net_pipe_ops pipe_ops = {
        .data = pipe_data,
        .ended = pipe_ended,
        .closed = pipe_closed,
};

/* --- lifetime --- */

static void reaped(void *data, int status)
{
        struct entrypoint *e = data;
        uint64_t until;

        e->state = ENTRYPOINT_ENDED;
        e->status = status;
        e->pid = 0;
        e->finished = clock_wall(e->agent->clock);
        /* What it has printed, and no more: processes that it left behind may write faster than this reads. */
        until = spool_end(e->output) + (e->_pipe_open ? net_pipe_pending(&e->_pipe) : 0);
        while (e->_pipe_open && spool_end(e->output) < until && net_pipe_read_now(&e->_pipe))
                ;
        spool_finish(e->output);
        e->_ended(e->_ended_data, status);
}

/* Only a fork can be born in a cgroup of v2. So a child starts the program and exits; the program becomes ours then, and
 * its group is that of a command that has left something behind. */
static int spawn_in_group(const struct spawn *s, struct command_group *g, pid_t *ret_pid)
{
        struct {
                int error;
                pid_t pid;
        } result = { -ECHILD, 0 };
        scoped(fd_closep) int ours = -EBADF, theirs = -EBADF, pidfd = -EBADF;
        int fds[2];
        pid_t pid;

        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        ours = fds[0];
        theirs = fds[1];
        pid = clone_child(&(struct clone_child){ .cgroup = g->dir }, &pidfd);
        if (pid < 0)
                return pid;
        if (pid == 0) {
                result.error = spawn_program(s, &result.pid);
                _exit(write(theirs, &result, sizeof(result)) == sizeof(result) ? 0 : 1);
        }
        (void) fd_close(TAKE_FD(theirs));
        (void) !read(ours, &result, sizeof(result));
        *ret_pid = result.pid;
        return result.error;
}

static int spawn_entrypoint(struct entrypoint *e, char *const *argv, int out)
{
        scoped(fd_closep) int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        struct agent *a = e->agent;
        struct arena arena;
        const struct command_groups *groups = &a->processes.groups;
        struct spawn s = { .argv = argv,
                           .fds = { null, out, out },
                           .oom_first = true,
                           .join = groups->tasks,
                           .n_join = groups->n_tasks };
        struct command_group *g = NULL;
        int r;

        if (null < 0)
                return -errno;
        arena_init(&arena, 2 * ENV_FILE_MAX);
        s.envp = environment_build(&a->env, &arena, NULL);
        r = launch_cwd(a, &arena, STR_NULL, &s.cwd, NULL);
        if (r == 0 && !s.envp)
                r = -ENOMEM;
        if (r == 0)
                r = command_group_take(&a->processes.groups, &g);
        s.deny_clone3 = g != NULL;
        if (r == 0)
                r = g ? spawn_in_group(&s, g, &e->pid) : spawn_program(&s, &e->pid);
        if (g)
                command_group_release(g);
        arena_done(&arena);
        return r;
}

int entrypoint_start(struct entrypoint *e, char *const *argv, entrypoint_ended_fn *ended,
                     void *data)
{
        struct agent *a = e->agent;
        scoped(fd_closep) int out = -EBADF;
        int fds[2], r;

        r = spool_new(a->loop, a->config.state_dir.p, a->config.entrypoint_max, &e->output);
        if (r < 0)
                return r;
        if (pipe2(fds, O_CLOEXEC) < 0)
                return -errno;
        out = fds[1];
        r = net_pipe_open(&e->_pipe, a->loop, fds[0], &pipe_ops);
        if (r < 0)
                return r;
        e->_pipe_open = true;
        net_pipe_resume(&e->_pipe);
        e->started = clock_wall(a->clock);
        e->_ended = ended;
        e->_ended_data = data;
        r = spawn_entrypoint(e, argv, out);
        if (r < 0)
                return r;
        e->state = ENTRYPOINT_RUNNING;
        reaper_await(&a->reaper, e->pid, reaped, e);
        return 0;
}

int entrypoint_exit_code(const struct entrypoint *e)
{
        return WIFEXITED(e->status) ? WEXITSTATUS(e->status) : 128 + WTERMSIG(e->status);
}

/* --- routes --- */

struct entrypoint_output {
        bool running;
        int64_t pid, exit_code;
        bool has_exit_code;
        struct str started_at, finished_at;
        int64_t output_start, output_end;
};

static const struct json_field output_fields[] = {
        JSON_BOOL(struct entrypoint_output, running, "running", 0),
        JSON_I64(struct entrypoint_output, pid, "pid", JSON_OMIT_EMPTY),
        JSON_I64(struct entrypoint_output, exit_code, "exit_code", 0,
                 JSON_HAS(struct entrypoint_output, has_exit_code)),
        JSON_STR(struct entrypoint_output, started_at, "started_at", 0),
        JSON_STR(struct entrypoint_output, finished_at, "finished_at", JSON_OMIT_EMPTY),
        JSON_I64(struct entrypoint_output, output_start, "output_start", 0),
        JSON_I64(struct entrypoint_output, output_end, "output_end", 0),
        JSON_END,
};

/* NULL: has replied. */
static struct entrypoint *find_or_reply(struct http_req *req)
{
        struct entrypoint *e = &agent_of(req)->entrypoint;

        if (e->state != ENTRYPOINT_NONE)
                return e;
        http_reply_error(req, 404, CODE_CONTEXT_NOT_FOUND,
                         "the agent was started without an entrypoint");
        return NULL;
}

static void get_entrypoint(struct http_req *req)
{
        const struct entrypoint *e = find_or_reply(req);
        char started[TIME_RFC3339_MAX], finished[TIME_RFC3339_MAX];
        struct entrypoint_output out;
        scoped(buf_done) struct buf b;

        buf_init(&b, 4 * KiB);
        if (!e)
                return;
        out = (struct entrypoint_output){ .running = e->state == ENTRYPOINT_RUNNING,
                                          .pid = e->pid,
                                          .output_start = (int64_t) spool_start(e->output),
                                          .output_end = (int64_t) spool_end(e->output) };
        out.started_at = str_of(started, time_to_rfc3339(e->started, started));
        if (e->state == ENTRYPOINT_ENDED) {
                out.finished_at = str_of(finished, time_to_rfc3339(e->finished, finished));
                out.exit_code = entrypoint_exit_code(e);
                out.has_exit_code = true;
        }
        json_encode(&b, output_fields, &out);
        http_reply(req, 200, STR("application/json"), arena_dup_str(&req->arena, buf_str(&b)));
}

static void get_logs(struct http_req *req)
{
        struct entrypoint *e = find_or_reply(req);

        if (e)
                spool_reply(req, e->output);
}

static const struct http_route routes[] = {
        { METHOD_GET, "/entrypoint", .scope = SCOPE_TOKEN, .exec = get_entrypoint },
        { METHOD_GET, "/entrypoint/logs", .scope = SCOPE_TOKEN, .exec = get_logs },
};

const struct http_api api_entrypoint = EXECD_API("entrypoint", routes);
