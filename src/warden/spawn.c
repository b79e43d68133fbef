/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/spawn.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/in_root.h"
#include "os/socket.h"
#include "os/walk.h"
#include "warden/build.h"
#include "warden/data.h"
#include "warden/state.h"

#define SOCKET "agent.sock"

static const struct in_root_how dir_how = { O_PATH | O_DIRECTORY, 0, true };

/* Sets the limits of its cgroup, listens on the agent's socket and records the sandbox.
 *
 * A socket address holds 108 bytes, and the data directory may have a longer path. A process that is given a
 * descriptor of the socket may connect, even hutchd, which is not root; the directories above it keep
 * everyone else out. */
static int fill_dir(const struct host_context *ctx, const struct spawn_order *order, int dir,
                    int *ret_listener, struct err *e)
{
        const struct plan_spec *s = order->spec;
        const struct cgroup_limits limits = { .memory = s->memory,
                                              .cpu_millis = s->cpu_millis,
                                              .pids = s->pids > 0 ? s->pids : PLAN_PIDS_DEFAULT,
                                              .io_bytes = s->io_bytes,
                                              .io_operations = s->io_operations,
                                              .disk = ctx->disk };
        struct instance_state state = { .uid_first = s->uid_first,
                                        .pid = order->zygote->pid,
                                        .image = s->image,
                                        .network = s->network,
                                        .net_index = order->net_index,
                                        .memory = s->memory,
                                        .cpu_millis = s->cpu_millis,
                                        .pids = s->pids };
        struct sock_addr addr;
        char text[64];
        int r = ctx->tree ? cgroup_set_limits(ctx->tree, &order->zygote->group, &limits) : 0;

        if (r < 0)
                return err_errno(e, r, "set its limits");
        (void) snprintf(text, sizeof(text), "unix:/proc/self/fd/%d/" SOCKET, dir);
        r = sock_addr_from_string(str_from(text), &addr);
        if (r == 0)
                r = sock_listen(&addr, ret_listener);
        if (r == 0 && fchmodat(dir, SOCKET, 0666, 0) < 0)
                r = -errno;
        if (r == 0 && order->record >= 0) {
                r = state_boot(state.boot);
                if (r == 0)
                        r = state_start_time(state.pid, &state.start_time);
                if (r == 0)
                        r = state_write(dir, &state, order->record);
        }
        return r < 0 ? err_errno(e, r, "fill its directory") : 0;
}

/* Sends the spec and the descriptors. Only the zygote keeps the write end of the report, so that its
 * exit closes the pipe. */
static int send_order(const struct host_context *ctx, const struct spawn_order *order, int listener,
                      int *ret_report, struct err *e)
{
        scoped(fd_closep) int null = -EBADF, ours = -EBADF, theirs = -EBADF;
        int fds[ZYGOTE_FDS] = { [1] = order->output,
                                [2] = order->output,
                                [PLAN_FD_LISTEN] = listener,
                                [ZYGOTE_FD_NETNS] = order->netns };
        int pipe_fds[2];
        ssize_t n;

        /* Not the host's /dev/null, which would be a way to its /dev. */
        null = openat(ctx->data, DATA_DEVICES "/null", O_RDONLY | O_CLOEXEC);
        if (null < 0)
                return err_errno(e, -errno, "open null");
        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return err_errno(e, -errno, "make a pipe");
        ours = pipe_fds[0];
        theirs = pipe_fds[1];
        fds[0] = null;
        fds[PLAN_FD_READY] = theirs;
        n = fd_pass_send(order->zygote->socket, order->spec_bytes, fds, ZYGOTE_FDS, 0);
        if (n < 0)
                return err_errno(e, (int) n, "send its spec");
        *ret_report = TAKE_FD(ours);
        return 0;
}

int spawn_remove_dir(const struct host_context *ctx, const char *id)
{
        scoped(fd_closep) int sandboxes = -EBADF;
        int r = in_root_open(ctx->data, DATA_SANDBOXES, &dir_how, &sandboxes);

        return r == 0 ? walk_remove_all(sandboxes, id) : r;
}

/* Keeps the message of the failure that led here. */
static int undo(const struct host_context *ctx, const struct plan_spec *spec, struct err *e)
{
        int r = spawn_remove_dir(ctx, spec->id);

        if (r < 0)
                (void) err_wrap(e, "its directory can't be removed (%s), and before that",
                                err_text(r));
        return err_wrap(e, "create sandbox '%s'", spec->id);
}

int spawn_begin(const struct host_context *ctx, const struct spawn_order *order, int *ret_report,
                struct err *e)
{
        const struct plan_spec *spec = order->spec;
        scoped(fd_closep) int zygotes = -EBADF, sandboxes = -EBADF, dir = -EBADF, listener = -EBADF;
        char name[BUILD_NAME_MAX];
        int r = -EINVAL;

        build_name(order->zygote->uid_first, name);
        if (spec->uid_first == order->zygote->uid_first && order->netns >= 0)
                r = in_root_open(ctx->data, DATA_SANDBOXES, &dir_how, &sandboxes);
        if (r == 0)
                r = in_root_open(ctx->data, DATA_ZYGOTES, &dir_how, &zygotes);
        /* The zygote's directory becomes that of the sandbox. -EEXIST: another sandbox has the name; its
         * directory is not removed. */
        if (r == 0 && renameat2(zygotes, name, sandboxes, spec->id, RENAME_NOREPLACE) < 0)
                r = -errno;
        if (r < 0)
                return err_errno(e, r, "make the directory of sandbox '%s'", spec->id);
        dir = openat(sandboxes, spec->id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = dir < 0 ? err_errno(e, -errno, "set its limits")
                    : fill_dir(ctx, order, dir, &listener, e);
        if (r == 0)
                r = send_order(ctx, order, listener, ret_report, e);
        return r < 0 ? undo(ctx, spec, e) : 0;
}

/* Names the step that failed. The plan is made again for that, which is cheap. */
int spawn_finish(const struct plan_spec *spec, int report, struct err *e)
{
        scoped(arena_done) struct arena arena;
        int step = BUILD_NOWHERE, r = build_wait(report, &step);
        const struct plan_step *s;
        struct plan p;

        arena_init(&arena, 4 * PLAN_SPEC_MAX);
        (void) fd_close(report);
        if (r >= 0)
                return r;
        if (step == BUILD_NOWHERE) {
                (void) err_errno(e, r, "its first process exited before it was complete");
        } else if (plan_make(spec, &arena, &p) < 0 || step < 0 || (size_t) step >= p.n) {
                (void) err_errno(e, r, "step %d", step);
        } else {
                s = &p.steps[step];
                (void) err_errno(e, r, "step %d, %s%s%s%s%s", step,
                                 plan_step_to_string((int) s->kind), s->name ? " " : "",
                                 s->name ? s->name : "", s->target ? " " : "",
                                 s->target ? s->target : "");
        }
        return err_wrap(e, "create sandbox '%s'", spec->id);
}

int spawn_destroy(const struct host_context *ctx, const char *id, struct zygote *zygote,
                  struct err *e)
{
        int r;

        if (!plan_spec_is_id(id))
                return err_set(e, ERR_INVALID, "'%s' is not a sandbox id", id);
        r = zygote_remove(ctx, zygote);
        if (r < 0)
                return err_errno(e, r, "kill the processes of sandbox '%s'", id);
        r = spawn_remove_dir(ctx, id);
        return r < 0 ? err_errno(e, r, "remove the directory of sandbox '%s'", id) : 0;
}
