/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/cgroup.h"
#include "os/clone.h"
#include "os/fd.h"
#include "warden/warden_impl.h"

#define FREEZE_MAX      (2 * USEC_PER_SEC)
#define REAP_MAX        USEC_PER_SEC
#define OOM_EVENT_PAUSE USEC_PER_SEC

static const struct instance_status running = { RUNTIME_RUNNING, WARDEN_EXIT_NONE, 0 };

struct instance *instance_new(struct warden *w, const char *id)
{
        struct instance *x = xnew(struct instance);

        (void) snprintf(x->id, sizeof(x->id), "%s", id);
        x->zygote = ZYGOTE_NULL;
        x->process = x->step = x->oom_source = SOURCE_NULL;
        x->oom = CGROUP_OOM_NULL;
        x->record = x->report = -EBADF;
        x->state = running;
        list_init(&x->node);
        list_init(&x->waiters);
        x->net.fd = -EBADF;
        arena_init(&x->arena, 4 * PLAN_SPEC_MAX);
        if (*x->id)
                tree_add(&w->instances, &x->by_id, str_from(x->id));
        return x;
}

static void unwatch_memory(struct warden *w, struct instance *x)
{
        source_remove(w, &x->oom_source);
        w->fd_budget.watched -= x->oom.fd >= 0;
        cgroup_oom_close(&x->oom);
}

/* It has only what a living one has. */
static void is_built(struct warden *w, struct instance *x)
{
        w->fd_budget.building -= x->building;
        x->building = false;
}

void instance_free(struct warden *w, struct instance *x)
{
        is_built(w, x);
        source_remove(w, &x->process);
        source_remove(w, &x->step);
        unwatch_memory(w, x);
        list_remove(&x->node);
        list_remove(&x->waiters);
        (void) fd_close(x->net.fd);
        tree_remove(&w->instances, &x->by_id);
        zygote_close(&x->zygote);
        (void) fd_close(x->record);
        (void) fd_close(x->report);
        arena_wipe(&x->arena);
        free(x);
}

struct instance *instance_find(const struct warden *w, const char *id)
{
        struct tree_node *n = tree_get(&w->instances, str_from(id));

        return n ? container_of(n, struct instance, by_id) : NULL;
}

int instance_open_dir(const struct warden *w, const struct instance *x, int *ret_fd)
{
        int fd = openat(w->sandboxes, x->id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

/* Its descriptors are not kept: one for each sandbox is enough. */
int instance_cgroup(const struct warden *w, const struct instance *x, struct cgroup *ret)
{
        char name[ZYGOTE_CGROUP_MAX];

        if (!w->ctx.tree)
                return -ENOENT;
        zygote_cgroup_name(x->zygote.uid_first, name);
        return cgroup_open(w->ctx.tree, name, ret);
}

void instance_poll_later(struct warden *w, struct instance *x)
{
        x->since = clock_mono(&clock_system);
        list_remove(&x->node);
        list_append(&w->waiting, &x->node);
}

/* --- its end --- */

static bool was_out_of_memory(const struct warden *w, const struct instance *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        struct cgroup_stats c = { 0 };

        return instance_cgroup(w, x, &g) == 0 && cgroup_stats(w->ctx.tree, &g, &c) == 0
               && c.oom_kills > 0;
}

/* The status of one that was adopted is told to whoever is its parent now, and then, by younger kernels,
 * to who has a descriptor of it. */
static struct instance_status why(const struct warden *w, const struct instance *x)
{
        int status = 0;

        if ((x->child ? pidfd_wait(x->zygote.pidfd, &status)
                      : pidfd_status(x->zygote.pidfd, &status))
            < 0)
                return (struct instance_status){ RUNTIME_DEAD,
                                                 was_out_of_memory(w, x) ? WARDEN_EXIT_OOM
                                                                         : WARDEN_EXIT_LOST,
                                                 0 };
        /* The entrypoint's signal, as the agent passes it on. */
        if (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL && was_out_of_memory(w, x))
                return (struct instance_status){ RUNTIME_DEAD, WARDEN_EXIT_OOM, SIGKILL };
        if (WIFEXITED(status))
                return (struct instance_status){ WEXITSTATUS(status) == 0 ? RUNTIME_ENDED
                                                                          : RUNTIME_DEAD,
                                                 WARDEN_EXIT_CODE, (uint32_t) WEXITSTATUS(status) };
        return (struct instance_status){ RUNTIME_DEAD,
                                         WTERMSIG(status) == SIGKILL && was_out_of_memory(w, x)
                                                 ? WARDEN_EXIT_OOM
                                                 : WARDEN_EXIT_SIGNAL,
                                         (uint32_t) WTERMSIG(status) };
}

static void note_end(struct warden *w, struct instance *x)
{
        scoped(fd_closep) int dir = -EBADF;
        int r = instance_open_dir(w, x, &dir);

        if (r == 0)
                r = state_write_end(dir, &x->state);
        if (r < 0)
                (void) log_err(r, w->log, "can't write down the end of sandbox '%s'", x->id);
}

static void ended(struct warden *w, struct instance *x)
{
        const struct err e = { ERR_CONFLICT, 0, "it has ended" };

        unwatch_memory(w, x);
        x->state = why(w, x);
        x->zygote.pidfd = fd_close(x->zygote.pidfd);
        if (x->phase == INSTANCE_DESTROYING) {
                if (!instance_poll(w, x))
                        return;
                instance_poll_later(w, x);
                return;
        }
        x->phase = INSTANCE_EXITED;
        x->freezing = false;
        list_remove(&x->node);
        network_return(w, x);
        note_end(w, x);
        control_reply_to(w, &x->requester, &e, NULL);
        control_event(w, &(struct warden_event){ WARDEN_EVENT_DIED, x->id, x->state });
}

static bool is_unreaped(const struct instance *x)
{
        int status;

        return !x->child && pidfd_status(x->zygote.pidfd, &status) == -EAGAIN;
}

/* How it ended is known when its parent has reaped it, which takes a moment; there is no event. */
static void process_ended(struct warden *w, struct source *s)
{
        struct instance *x = container_of(s, struct instance, process);

        source_remove(w, s);
        x->unreaped = x->phase != INSTANCE_DESTROYING && is_unreaped(x);
        if (!x->unreaped) {
                ended(w, x);
                return;
        }
        /* Who asks meanwhile. */
        x->state = (struct instance_status){ RUNTIME_DEAD, WARDEN_EXIT_LOST, 0 };
        instance_poll_later(w, x);
}

static bool poll_unreaped(struct warden *w, struct instance *x)
{
        if (is_unreaped(x) && clock_mono(&clock_system) - x->since < REAP_MAX)
                return true;
        x->unreaped = false;
        ended(w, x);
        return false;
}

static void oom_happened(struct warden *w, struct source *s)
{
        struct instance *x = container_of(s, struct instance, oom_source);

        const usec_t now = clock_mono(&clock_system);

        /* A sandbox can do that all day long; whoever listens wants to know, and no more. */
        if (!cgroup_oom_happened(&x->oom) || now - x->told < OOM_EVENT_PAUSE)
                return;
        x->told = now;
        control_event(w, &(struct warden_event){ .kind = WARDEN_EVENT_OOM, .id = x->id });
}

/* News are all that is lost without it: why a sandbox has ended is found out in another way. */
static void watch_memory(struct warden *w, struct instance *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        int r = instance_cgroup(w, x, &g);

        if (r == 0)
                r = cgroup_oom_open(w->ctx.tree, &g, &x->oom);
        w->fd_budget.watched += x->oom.fd >= 0;
        if (r == 0)
                r = source_add_for(w, &x->oom_source, x->oom.fd, (uint32_t) x->oom.events,
                                   oom_happened);
        if (r < 0)
                (void) log_err(r, w->log, "can't watch the memory of sandbox '%s'", x->id);
}

int instance_watch(struct warden *w, struct instance *x)
{
        int r = source_add(w, &x->process, x->zygote.pidfd, process_ended);

        if (r == 0 && x->limited && fd_budget_has_watch(w))
                watch_memory(w, x);
        return r;
}

/* --- its making --- */

void instance_abort(struct warden *w, struct instance *x, const struct err *e)
{
        int r = zygote_remove(&w->ctx, &x->zygote);

        control_reply_to(w, &x->requester, e, NULL);
        if (r < 0) {
                (void) log_err(r, w->log, "can't remove what was to be sandbox '%s'", x->id);
                x->phase = INSTANCE_DESTROYING;
                instance_poll_later(w, x);
                return;
        }
        network_return(w, x);
        uids_free(w, x->zygote.uid_first);
        instance_free(w, x);
}

static int open_socket(const struct warden *w, const struct instance *x)
{
        scoped(fd_closep) int dir = -EBADF;
        int fd, r = instance_open_dir(w, x, &dir);

        if (r < 0)
                return r;
        fd = openat(dir, "agent.sock", O_PATH | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int instance_fds(const struct warden *w, const struct instance *x, int fds[static WARDEN_FDS_ALIVE])
{
        fds[WARDEN_FD_PIDFD] = fcntl(x->zygote.pidfd, F_DUPFD_CLOEXEC, 3);
        if (fds[WARDEN_FD_PIDFD] < 0)
                return -errno;
        fds[WARDEN_FD_SOCKET] = open_socket(w, x);
        if (fds[WARDEN_FD_SOCKET] >= 0)
                return 0;
        fds[WARDEN_FD_PIDFD] = fd_close(fds[WARDEN_FD_PIDFD]);
        return fds[WARDEN_FD_SOCKET];
}

static void built(struct warden *w, struct source *s)
{
        struct instance *x = container_of(s, struct instance, step);
        int fds[WARDEN_FDS_ALIVE] = { -EBADF, -EBADF }, r;
        struct err e;

        source_remove(w, s);
        if (spawn_finish(&w->ctx, &x->spec, TAKE_FD(x->report), &e) < 0) {
                instance_abort(w, x, &e);
                return;
        }
        arena_wipe(&x->arena);
        cgroup_close(&x->zygote.group);
        x->net.fd = fd_close(x->net.fd);
        is_built(w, x);
        x->phase = INSTANCE_RUNNING;
        x->limited = x->spec.memory > 0;
        r = instance_watch(w, x);
        if (r == 0)
                r = instance_fds(w, x, fds);
        if (r < 0) {
                (void) err_errno(&e, r, "watch sandbox '%s'", x->id);
                control_reply_to(w, &x->requester, &e, NULL);
                instance_destroy(w, x);
                return;
        }
        control_reply_to(w, &x->requester, NULL, fds);
        for (size_t i = 0; i < WARDEN_FDS_ALIVE; i++)
                (void) fd_close(fds[i]);
}

void instance_build(struct warden *w, struct instance *x)
{
        struct spawn_order order = { .zygote = &x->zygote,
                                     .spec = &x->spec,
                                     .spec_bytes = x->spec_bytes,
                                     .record = x->record,
                                     .output = w->null_out };
        struct err e;
        int r;

        /* Once more: it may have come out since it was asked for. */
        if (network_check(w, x->spec.network, &e) < 0) {
                instance_abort(w, x, &e);
                return;
        }
        if (network_take(w, x) < 0)
                return;
        order.netns = x->net.fd;
        order.net_index = x->net.index;
        r = spawn_begin(&w->ctx, &order, &x->report, &e);
        x->record = fd_close(x->record);
        if (r < 0) {
                instance_abort(w, x, &e);
                return;
        }
        x->zygote.socket = fd_close(x->zygote.socket);
        x->phase = INSTANCE_BUILDING;
        r = source_add_for(w, &x->step, x->report, 0, built);
        if (r == 0)
                return;
        (void) err_errno(&e, r, "watch sandbox '%s'", x->id);
        control_reply_to(w, &x->requester, &e, NULL);
        instance_destroy(w, x);
}

static void zygote_ready(struct warden *w, struct source *s)
{
        struct instance *x = container_of(s, struct instance, step);
        struct err e;
        int r;

        source_remove(w, s);
        r = zygote_wait(&x->zygote);
        if (r == 0) {
                instance_build(w, x);
                return;
        }
        (void) err_errno(&e, r, "prepare sandbox '%s'", x->id);
        instance_abort(w, x, &e);
}

void instance_create(struct warden *w, struct instance *x)
{
        struct err e;
        int r;

        x->child = x->building = true;
        w->fd_budget.building++;
        if (x->phase == INSTANCE_BUILDING) {
                instance_build(w, x);
                return;
        }
        r = source_add(w, &x->step, x->zygote.socket, zygote_ready);
        if (r == 0)
                return;
        (void) err_errno(&e, r, "watch a zygote");
        instance_abort(w, x, &e);
}

/* --- its removal --- */

static int kill_group(struct warden *w, struct instance *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        int r = instance_cgroup(w, x, &g);

        if (r == 0)
                r = cgroup_kill(&g);
        return r == -ENOENT ? 0 : r;
}

/* 1 as long as there are any. */
static int end_others(struct warden *w, struct instance *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        int r = instance_cgroup(w, x, &g);

        if (r == 0)
                r = cgroup_is_populated(&g);
        if (r > 0 && kill_group(w, x) < 0)
                log_debug(w->log, "processes of sandbox '%s' are left", x->id);
        return r == -ENOENT ? 0 : r;
}

/* Processes are gone; what is left are names. False: done, and the sandbox is freed. */
static bool remove_remains(struct warden *w, struct instance *x)
{
        struct err e;
        int r = end_others(w, x);

        if (r > 0)
                return true;
        if (r == 0)
                r = zygote_drop_dir(&w->ctx, x->zygote.uid_first);
        if (r == 0 && *x->id)
                r = janitor_trash(w, w->sandboxes, x->id);
        if (r < 0) {
                (void) err_errno(&e, r, "remove sandbox '%s'", x->id);
                log_warn(w->log, "%s", e.message);
                control_reply_to(w, &x->requester, &e, NULL);
                list_remove(&x->node);
                x->phase = INSTANCE_EXITED;
                return false;
        }
        control_reply_to(w, &x->requester, NULL, NULL);
        network_return(w, x);
        removal_add(w, x->zygote.uid_first);
        instance_free(w, x);
        return false;
}

/* With the first process of a namespace all others end; to kill the group would wait for everybody who
 * makes or removes one. But that reaches what is frozen, and what has no first process any more. */
static int end_processes(struct warden *w, struct instance *x)
{
        const bool frozen = x->freezing || x->state.status == RUNTIME_PAUSED;
        int r = x->zygote.pidfd >= 0 ? pidfd_kill(x->zygote.pidfd, SIGKILL) : -ESRCH;

        return r == -ESRCH || frozen ? kill_group(w, x) : r;
}

void instance_destroy(struct warden *w, struct instance *x)
{
        struct err e;
        int r = end_processes(w, x);

        x->freezing = x->unreaped = false;
        list_remove(&x->node);
        source_remove(w, &x->step);
        list_remove(&x->waiters);
        if (r == 0 && x->zygote.pidfd >= 0 && x->process.fd < 0)
                r = instance_watch(w, x);
        if (r < 0) {
                (void) err_errno(&e, r, "end the processes of sandbox '%s'", x->id);
                control_reply_to(w, &x->requester, &e, NULL);
                return;
        }
        x->phase = INSTANCE_DESTROYING;
        if (x->zygote.pidfd < 0 && instance_poll(w, x))
                instance_poll_later(w, x);
}

/* --- what comes without an event --- */

static bool poll_frozen(struct warden *w, struct instance *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        struct err e;
        int r = instance_cgroup(w, x, &g);

        if (r == 0)
                r = cgroup_is_frozen(&g);
        if (r == 0 && clock_mono(&clock_system) - x->since < FREEZE_MAX)
                return true;
        x->freezing = false;
        list_remove(&x->node);
        if (r > 0) {
                x->state.status = RUNTIME_PAUSED;
                control_reply_to(w, &x->requester, NULL, NULL);
                return false;
        }
        if (r == 0)
                r = cgroup_freeze(&g, false);
        (void) err_errno(&e, r == 0 ? -ETIMEDOUT : r, "pause sandbox '%s'", x->id);
        control_reply_to(w, &x->requester, &e, NULL);
        return false;
}

bool instance_poll(struct warden *w, struct instance *x)
{
        if (x->phase == INSTANCE_DESTROYING)
                return remove_remains(w, x);
        if (x->unreaped)
                return poll_unreaped(w, x);
        return x->freezing && poll_frozen(w, x);
}
