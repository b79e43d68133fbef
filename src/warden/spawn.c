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

/* --- its folder --- */

static int open_sandboxes(const struct host_context *g, int *ret_fd)
{
        const struct in_root_how how = { O_PATH | O_DIRECTORY, 0, true };

        return in_root_open(g->data, DATA_SANDBOXES, &how, ret_fd);
}

/* The address of a socket has room for 108 bytes; a data folder may be anywhere. Whoever is given a
 * descriptor of the socket may connect, hutchd above all, which is not root; nobody else gets past the
 * folders. */
static int listen_in(int folder, int *ret_fd)
{
        char text[64];
        struct sock_addr addr;
        int r;

        (void) snprintf(text, sizeof(text), "unix:/proc/self/fd/%d/" SOCKET, folder);
        r = sock_addr_from_string(str_from(text), &addr);
        if (r == 0)
                r = sock_listen(&addr, ret_fd);
        return r == 0 && fchmodat(folder, SOCKET, 0666, 0) < 0 ? -errno : r;
}

static int remove_folder(const struct host_context *g, const char *id)
{
        scoped(fd_closep) int sandboxes = -EBADF;
        int r = open_sandboxes(g, &sandboxes);

        return r == 0 ? walk_remove_all(sandboxes, id) : r;
}

/* --- its start --- */

static int set_limits(const struct host_context *g, const struct zygote *zygote,
                      const struct plan_spec *s)
{
        const struct cgroup_limits limits = { .memory = s->memory,
                                              .cpu_millis = s->cpu_millis,
                                              .pids = s->pids > 0 ? s->pids : PLAN_PIDS_DEFAULT,
                                              .io_bytes = s->io_bytes,
                                              .io_operations = s->io_operations,
                                              .disk = g->disk };

        return g->tree ? cgroup_set_limits(g->tree, &zygote->group, &limits) : 0;
}

/* Where it failed, in words: the plan is made again, which costs nothing. */
static int explain(const struct plan_spec *spec, int step, int r, struct err *e)
{
        scoped(arena_done) struct arena arena;
        const struct plan_step *s;
        struct plan p;

        arena_init(&arena, 4 * PLAN_SPEC_MAX);
        if (step == BUILD_NOWHERE)
                return err_errno(e, r, "its first process ended before it was complete");
        if (plan_make(spec, &arena, &p) < 0 || step < 0 || (size_t) step >= p.n)
                return err_errno(e, r, "step %d", step);
        s = &p.steps[step];
        return err_errno(e, r, "step %d, %s%s%s%s%s", step, plan_step_to_string((int) s->kind),
                         s->name ? " " : "", s->name ? s->name : "", s->target ? " " : "",
                         s->target ? s->target : "");
}

/* The writing end of the report becomes the zygote's alone. */
static int order(const struct zygote *zygote, const struct plan_spec *spec,
                 int fds[static ZYGOTE_FDS], int *ret_report, struct err *e)
{
        scoped(buf_done) struct buf message;
        scoped(fd_closep) int ours = -EBADF, theirs = -EBADF;
        int pipe_fds[2], r;

        buf_init(&message, PLAN_SPEC_MAX);
        buf_mark_secret(&message);
        r = plan_spec_encode(spec, &message, e);
        if (r < 0)
                return r;
        if (pipe2(pipe_fds, O_CLOEXEC) < 0)
                return err_errno(e, -errno, "make a pipe");
        ours = pipe_fds[0];
        theirs = pipe_fds[1];
        fds[ZYGOTE_FD_REPORT] = theirs;
        r = zygote_send(zygote, buf_str(&message), fds);
        if (r < 0)
                return err_errno(e, r, "send its spec");
        *ret_report = TAKE_FD(ours);
        return 0;
}

struct filling {
        const struct zygote *zygote;
        const struct plan_spec *spec;
        const struct spawn_parts *parts;
};

static int note(int folder, const struct filling *f)
{
        struct instance_state s = { .uid_first = f->spec->uid_first,
                                    .pid = f->zygote->pid,
                                    .image = f->spec->image,
                                    .network = f->spec->network,
                                    .net_index = f->parts->net_index,
                                    .memory = f->spec->memory,
                                    .cpu_millis = f->spec->cpu_millis,
                                    .pids = f->spec->pids };
        int r = state_boot(s.boot);

        if (r == 0)
                r = state_start_time(s.pid, &s.start_time);
        return r == 0 ? state_write(folder, &s, f->parts->record) : r;
}

static int fill(const struct host_context *g, int folder, const struct filling *f, int *ret_report,
                struct err *e)
{
        scoped(fd_closep) int null = -EBADF, listener = -EBADF;
        int fds[ZYGOTE_FDS], r = listen_in(folder, &listener);

        if (r == 0 && f->parts->record >= 0)
                r = note(folder, f);
        if (r < 0)
                return err_errno(e, r, "fill its folder");
        /* Not that of the machine, which is a way to its /dev. */
        null = openat(g->data, DATA_DEVICES "/null", O_RDONLY | O_CLOEXEC);
        if (null < 0)
                return err_errno(e, -errno, "open null");
        fds[0] = null;
        fds[1] = fds[2] = f->parts->output;
        fds[PLAN_FD_LISTEN] = listener;
        fds[ZYGOTE_FD_NETNS] = f->parts->netns;
        return order(f->zygote, f->spec, fds, ret_report, e);
}

/* After a failure, which stays the message. */
static int give_up(const struct host_context *g, const struct plan_spec *spec, struct err *e)
{
        int r = remove_folder(g, spec->id);

        if (r < 0)
                (void) err_wrap(e, "its folder can't be removed (%s), and before that",
                                err_text(r));
        return err_wrap(e, "create sandbox '%s'", spec->id);
}

int spawn_begin(const struct host_context *g, const struct zygote *zygote,
                const struct plan_spec *spec, const struct spawn_parts *parts, int *ret_report,
                struct err *e)
{
        const struct filling filling = { zygote, spec, parts };
        scoped(fd_closep) int sandboxes = -EBADF, folder = -EBADF;
        int r = spec->uid_first == zygote->uid_first && parts->netns >= 0
                        ? open_sandboxes(g, &sandboxes)
                        : -EINVAL;

        /* One that is there already is not ours to remove. */
        if (r == 0)
                r = zygote_take_dir(g, zygote, sandboxes, spec->id);
        if (r < 0)
                return err_errno(e, r, "make the folder of sandbox '%s'", spec->id);
        folder = openat(sandboxes, spec->id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = folder < 0 ? -errno : set_limits(g, zygote, spec);
        r = r < 0 ? err_errno(e, r, "limit it") : fill(g, folder, &filling, ret_report, e);
        return r < 0 ? give_up(g, spec, e) : 0;
}

int spawn_finish(const struct host_context *g, const struct plan_spec *spec, int report,
                 struct err *e)
{
        int step = BUILD_NOWHERE, r = build_wait(report, &step);

        (void) fd_close(report);
        if (r == 0)
                return 0;
        (void) explain(spec, step, r, e);
        return give_up(g, spec, e);
}

/* --- its end --- */

int spawn_destroy(const struct host_context *g, const char *id, struct zygote *zygote,
                  struct err *e)
{
        int r;

        if (!plan_spec_is_id(id))
                return err_set(e, ERR_INVALID, "not the id of a sandbox");
        r = zygote_remove(g, zygote);
        if (r < 0)
                return err_errno(e, r, "end the processes of sandbox '%s'", id);
        r = remove_folder(g, id);
        return r < 0 ? err_errno(e, r, "remove the folder of sandbox '%s'", id) : 0;
}
