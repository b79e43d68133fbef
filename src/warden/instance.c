/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/clone.h"
#include "os/fd.h"
#include "warden/build.h"
#include "warden/warden_impl.h"

/*
 * Theory of operation: the life of an instance.
 *
 *         request   STARTING ──► BUILDING ──► RUNNING ──► EXITED
 *                      │            │            │           │
 *                      │ abort      │ abort      │ destroy   │ destroy
 *                      ▼            ▼            ▼           ▼
 *                    freed        freed       DESTROYING ──► freed
 *
 * The problem. An instance is spread over the kernel and the disk: a process tree, a cgroup, a network
 * namespace, a directory, a range of uids. The warden can be killed at any instruction, the instance
 * outlives it, and the next warden must find all of it again, or remove all of it.
 *
 * The invariant. The file `state` in the instance's directory takes its name before the instance can run
 * (spawn_begin writes it before it sends the order) and the directory is moved away only when its last
 * process is gone. So a directory with `state` is a complete instance, everything else is garbage, and
 * what has processes can be found by the name of its cgroup, which is derived from its uid range. A uid
 * range and a network namespace are given to another instance only when no process can use them any
 * more.
 *
 * Order of a create:
 *   1. The spec is checked, the descriptor budget is checked, a zygote is taken (requests.c).
 *   2. STARTING: the zygote becomes ready; a network namespace of the right kind becomes free.
 *   3. BUILDING: directory, limits, socket, record, `state`; then the order to the zygote. From here on
 *      the zygote is on its own and survives the warden. Its report pipe closes when the agent serves
 *      and has started the entrypoint, or with its last process.
 *   4. RUNNING: its pidfd is watched, and its memory if that is limited. hutchd gets the descriptors, or,
 *      if the agent has ended already, how it ended.
 * A failure in 2 or 3 removes the zygote and what it has. Nothing untrusted has run in it in 2; in 3 the
 * agent may have started the entrypoint, so it is killed before its directory is removed.
 *
 * Order of an end:
 *   1. The pidfd becomes readable. The exit status goes to the file `end`, hutchd gets an event.
 *   2. EXITED: the directory stays for hutchd to look at, until it sends a destroy.
 *   3. DESTROYING: all processes are killed, by their init, or by the cgroup if that is frozen or has lost
 *      its init. When the cgroup is empty the directory is moved to the trash in one step (janitor.c),
 *      hutchd gets its reply, and the cgroup with the uid range is left to cgroup_removal.c.
 *
 * The kernel has no event for three things: that a cgroup is frozen, that it is empty, and that a process
 * of another parent was reaped. These are polled, less often the longer it takes (instance_poll).
 *
 * After a crash of the warden adopt.c enters this file at RUNNING or EXITED, or, for a cgroup without a
 * complete directory, at DESTROYING.
 */

#define FREEZE_MAX      (2 * USEC_PER_SEC)
#define REAP_MAX        USEC_PER_SEC
#define OOM_EVENT_PAUSE USEC_PER_SEC

struct instance *instance_new(struct warden *w, const char *id)
{
        struct instance *x = xnew(struct instance);

        (void) snprintf(x->id, sizeof(x->id), "%s", id);
        x->zygote = ZYGOTE_NULL;
        x->process = x->step = x->oom_source = SOURCE_NULL;
        x->oom = CGROUP_OOM_NULL;
        x->record = x->report = x->net.fd = -EBADF;
        x->status = (struct instance_status){ RUNTIME_RUNNING, WARDEN_EXIT_NONE, 0 };
        list_init(&x->poll_node);
        list_init(&x->netns_waiter);
        arena_init(&x->arena, 4 * PLAN_SPEC_MAX);
        if (*x->id)
                tree_add(&w->instances, &x->by_id, str_from(x->id));
        return x;
}

static void unwatch_memory(struct warden *w, struct instance *x)
{
        source_remove(w, &x->oom_source);
        w->fds.watched -= x->oom.fd >= 0;
        cgroup_oom_close(&x->oom);
}

void instance_free(struct warden *w, struct instance *x)
{
        w->fds.building -= x->building;
        source_remove(w, &x->process);
        source_remove(w, &x->step);
        unwatch_memory(w, x);
        list_remove(&x->poll_node);
        list_remove(&x->netns_waiter);
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

int instance_cgroup(const struct warden *w, const struct instance *x, struct cgroup *ret)
{
        char name[ZYGOTE_CGROUP_MAX];

        if (!w->ctx.tree)
                return -ENOENT;
        zygote_cgroup_name(x->zygote.uid_first, name);
        return cgroup_open(w->ctx.tree, name, ret);
}

void instance_reply(struct warden *w, struct instance *x, const struct err *e)
{
        if (!x->requester.waiting)
                return;
        x->requester.waiting = false;
        control_reply(w,
                      &(struct warden_reply){ .call = x->requester.call,
                                              .request_id = x->requester.request_id,
                                              .result = e ? ERR_RETURN(e->code) : 0,
                                              .text = e ? e->message : NULL,
                                              .state = x->status },
                      NULL);
}

void instance_poll_later(struct warden *w, struct instance *x)
{
        x->poll_since = clock_mono(&clock_system);
        list_remove(&x->poll_node);
        list_append(&w->polled, &x->poll_node);
}

/* --- exit --- */

static bool was_full(const struct warden *w, const struct instance *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;

        return instance_cgroup(w, x, &g) == 0 && cgroup_was_full(w->ctx.tree, &g);
}

/* v2 counts the processes that the OOM killer took. In v1 the agent kills commands, and nothing is counted. */
static bool was_out_of_memory(const struct warden *w, const struct instance *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        struct cgroup_stats c = { 0 };

        return x->out_of_memory
               || (instance_cgroup(w, x, &g) == 0 && cgroup_stats(w->ctx.tree, &g, &c) == 0
                   && c.oom_kills > 0);
}

/* An adopted process has another parent, which gets its status; since Linux 6.15 so do holders of its
 * pidfd. */
static struct instance_status exit_status(const struct warden *w, const struct instance *x)
{
        int status = 0, r = x->is_child ? pidfd_wait(x->zygote.pidfd, &status)
                                        : pidfd_status(x->zygote.pidfd, &status);
        unsigned code;

        if (r < 0)
                return (struct instance_status){ RUNTIME_DEAD,
                                                 was_out_of_memory(w, x) ? WARDEN_EXIT_OOM
                                                                         : WARDEN_EXIT_LOST,
                                                 0 };
        if (WIFEXITED(status)) {
                code = (unsigned) WEXITSTATUS(status);
                /* The signal of the entrypoint, as the agent passes it on. */
                if (code == 128 + SIGKILL && was_out_of_memory(w, x))
                        return (struct instance_status){ RUNTIME_DEAD, WARDEN_EXIT_OOM, SIGKILL };
                return (struct instance_status){ code == 0 ? RUNTIME_ENDED : RUNTIME_DEAD,
                                                 WARDEN_EXIT_CODE, code };
        }
        code = (unsigned) WTERMSIG(status);
        return (struct instance_status){ RUNTIME_DEAD,
                                         code == SIGKILL && was_out_of_memory(w, x)
                                                 ? WARDEN_EXIT_OOM
                                                 : WARDEN_EXIT_SIGNAL,
                                         code };
}

static void exited(struct warden *w, struct instance *x)
{
        const struct err e = { ERR_CONFLICT, 0, "it has ended" };
        scoped(fd_closep) int dir = -EBADF;
        int r;

        x->out_of_memory |= x->oom.fd >= 0 && cgroup_oom_happened(&x->oom) && was_full(w, x);
        unwatch_memory(w, x);
        x->status = exit_status(w, x);
        x->zygote.pidfd = fd_close(x->zygote.pidfd);
        if (x->phase == INSTANCE_DESTROYING) {
                if (instance_poll(w, x))
                        instance_poll_later(w, x);
                return;
        }
        x->phase = INSTANCE_EXITED;
        x->freezing = false;
        list_remove(&x->poll_node);
        network_return(w, x);
        r = instance_open_dir(w, x, &dir);
        if (r == 0)
                r = state_write_end(dir, &x->status);
        if (r < 0)
                (void) log_err(r, w->log, "can't record the end of sandbox '%s'", x->id);
        /* A create has succeeded, whether it is alive or has ended: hutchd has to destroy it. */
        instance_reply(w, x, x->requester.call == WARDEN_MSG_CREATE ? NULL : &e);
        control_event(w, &(struct warden_event){ WARDEN_EVENT_DIED, x->id, x->status });
}

static bool is_unreaped(const struct instance *x)
{
        int status;

        return !x->is_child && pidfd_status(x->zygote.pidfd, &status) == -EAGAIN;
}

static void process_exited(struct warden *w, struct source *s)
{
        struct instance *x = container_of(s, struct instance, process);

        source_remove(w, s);
        x->unreaped = x->phase != INSTANCE_DESTROYING && is_unreaped(x);
        if (!x->unreaped) {
                exited(w, x);
                return;
        }
        /* For requests that come before its parent reaps it. */
        x->status = (struct instance_status){ RUNTIME_DEAD, WARDEN_EXIT_LOST, 0 };
        instance_poll_later(w, x);
}

/* --- watching --- */

/* A sandbox can run out of memory all day long; one event per second is enough. */
static void oom_happened(struct warden *w, struct source *s)
{
        struct instance *x = container_of(s, struct instance, oom_source);
        const usec_t now = clock_mono(&clock_system);

        if (!cgroup_oom_happened(&x->oom) || !was_full(w, x))
                return;
        x->out_of_memory = true;
        if (now - x->last_oom_event < OOM_EVENT_PAUSE)
                return;
        x->last_oom_event = now;
        control_event(w, &(struct warden_event){ .kind = WARDEN_EVENT_OOM, .id = x->id });
}

/* Without a watch of its memory only the event is missing: why an instance exited is found otherwise. */
int instance_watch(struct warden *w, struct instance *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        int r = source_add(w, &x->process, x->zygote.pidfd, EPOLLIN, process_exited);

        if (r < 0 || !x->memory_limited || !fd_budget_has_watch(w))
                return r;
        r = instance_cgroup(w, x, &g);
        if (r == 0)
                r = cgroup_oom_open(w->ctx.tree, &g, &x->oom);
        w->fds.watched += x->oom.fd >= 0;
        if (r == 0)
                r = source_add(w, &x->oom_source, x->oom.fd, (uint32_t) x->oom.events,
                               oom_happened);
        if (r < 0)
                (void) log_err(r, w->log, "can't watch the memory of sandbox '%s'", x->id);
        return 0;
}

int instance_fds(const struct warden *w, const struct instance *x, int fds[static WARDEN_FDS_ALIVE])
{
        scoped(fd_closep) int dir = -EBADF, pidfd = -EBADF;
        int socket, r = instance_open_dir(w, x, &dir);

        if (r < 0)
                return r;
        pidfd = fcntl(x->zygote.pidfd, F_DUPFD_CLOEXEC, 3);
        if (pidfd < 0)
                return -errno;
        socket = openat(dir, "agent.sock", O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (socket < 0)
                return -errno;
        fds[WARDEN_FD_PIDFD] = TAKE_FD(pidfd);
        fds[WARDEN_FD_SOCKET] = socket;
        return 0;
}

/* --- create --- */

/* `r`: whether its processes and what else it had are gone. */
static void abort_removed(struct warden *w, struct instance *x, const struct err *e, int r)
{
        instance_reply(w, x, e);
        if (r < 0) {
                (void) log_err(r, w->log, "can't remove the remains of sandbox '%s'", x->id);
                x->phase = INSTANCE_DESTROYING;
                instance_poll_later(w, x);
                return;
        }
        network_return(w, x);
        uids_free(w, x->zygote.uid_first);
        instance_free(w, x);
}

void instance_abort(struct warden *w, struct instance *x, const struct err *e)
{
        abort_removed(w, x, e, zygote_remove(&w->ctx, &x->zygote));
}

/* After the order was sent, so that there is more to remove than the zygote. */
static void fail_and_destroy(struct warden *w, struct instance *x, int r)
{
        struct err e;

        (void) err_errno(&e, r, "watch sandbox '%s'", x->id);
        instance_reply(w, x, &e);
        instance_destroy(w, x);
}

static void built(struct warden *w, struct source *s)
{
        struct instance *x = container_of(s, struct instance, step);
        int fds[WARDEN_FDS_ALIVE] = { -EBADF, -EBADF }, r, ready;
        struct err e;

        source_remove(w, s);
        ready = spawn_finish(&x->spec, TAKE_FD(x->report), &e);
        if (ready < 0) {
                /* First, because it may be alive and write to its directory. */
                r = zygote_remove(&w->ctx, &x->zygote);
                abort_removed(w, x, &e, r == 0 ? spawn_remove_dir(&w->ctx, x->id) : r);
                return;
        }
        arena_wipe(&x->arena);
        cgroup_close(&x->zygote.group);
        x->net.fd = fd_close(x->net.fd);
        w->fds.building -= x->building; /* it holds only what a running instance does */
        x->building = false;
        x->phase = INSTANCE_RUNNING;
        x->memory_limited = x->spec.memory > 0;
        x->cpu_limited = x->spec.cpu_millis > 0;
        r = instance_watch(w, x);
        if (r == 0 && ready == BUILD_READY)
                r = instance_fds(w, x, fds);
        if (r < 0) {
                fail_and_destroy(w, x, r);
                return;
        }
        if (ready != BUILD_READY)
                return; /* its pidfd will be readable, and the reply has its exit status */
        x->requester.waiting = false;
        control_reply(w,
                      &(struct warden_reply){ .call = x->requester.call,
                                              .request_id = x->requester.request_id,
                                              .state = x->status },
                      fds);
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

        /* Again: it may have become known since the request was checked. */
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
        r = source_add(w, &x->step, x->report, 0, built);
        if (r < 0)
                fail_and_destroy(w, x, r);
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

void instance_await_zygote(struct warden *w, struct instance *x)
{
        int r = source_add(w, &x->step, x->zygote.socket, EPOLLIN, zygote_ready);
        struct err e;

        if (r == 0)
                return;
        (void) err_errno(&e, r, "watch a zygote");
        instance_abort(w, x, &e);
}

/* --- destroy --- */

static int kill_cgroup(struct warden *w, struct instance *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        int r = instance_cgroup(w, x, &g);

        if (r == 0)
                r = cgroup_kill(&g);
        return r == -ENOENT ? 0 : r;
}

/* False: done; the instance is freed unless something can't be removed. */
static bool remove_remains(struct warden *w, struct instance *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        struct err e;
        int r = instance_cgroup(w, x, &g);

        if (r == 0)
                r = cgroup_is_populated(&g);
        if (r > 0) {
                if (kill_cgroup(w, x) < 0)
                        log_debug(w->log, "processes of sandbox '%s' remain", x->id);
                return true;
        }
        if (r == 0 || r == -ENOENT)
                r = zygote_drop_dir(&w->ctx, x->zygote.uid_first);
        if (r == 0 && *x->id)
                r = janitor_trash(w, w->sandboxes, x->id);
        if (r < 0) {
                (void) err_errno(&e, r, "remove sandbox '%s'", x->id);
                log_warn(w->log, "%s", e.message);
                instance_reply(w, x, &e);
                list_remove(&x->poll_node);
                x->phase = INSTANCE_EXITED;
                return false;
        }
        instance_reply(w, x, NULL);
        network_return(w, x);
        removal_add(w, x->zygote.uid_first);
        instance_free(w, x);
        return false;
}

/* Processes that have used up their CPU time die only when they get more. */
static void lift_cpu_limit(const struct warden *w, const struct instance *x)
{
        const struct cgroup_limits none = { .cpu_millis = CGROUP_NO_LIMIT };
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;

        if (instance_cgroup(w, x, &g) < 0 || cgroup_set_limits(w->ctx.tree, &g, &none) < 0)
                log_debug(w->log, "sandbox '%s' keeps its CPU limit", x->id);
}

/* The first process of a pid namespace takes all others with it; killing the cgroup would wait for
 * every cgroup that is being made or removed. But only that reaches frozen processes, and those whose
 * first process is gone. */
void instance_destroy(struct warden *w, struct instance *x)
{
        const bool frozen = x->freezing || x->status.status == RUNTIME_PAUSED;
        struct err e;
        int r;

        if (x->cpu_limited)
                lift_cpu_limit(w, x);
        r = x->zygote.pidfd >= 0 ? pidfd_kill(x->zygote.pidfd, SIGKILL) : -ESRCH;
        if (r == -ESRCH || frozen)
                r = kill_cgroup(w, x);
        x->freezing = x->unreaped = false;
        list_remove(&x->poll_node);
        source_remove(w, &x->step);
        list_remove(&x->netns_waiter);
        if (r == 0 && x->zygote.pidfd >= 0 && x->process.fd < 0)
                r = instance_watch(w, x);
        if (r < 0) {
                (void) err_errno(&e, r, "kill the processes of sandbox '%s'", x->id);
                instance_reply(w, x, &e);
                return;
        }
        x->phase = INSTANCE_DESTROYING;
        if (x->zygote.pidfd < 0 && instance_poll(w, x))
                instance_poll_later(w, x);
}

/* --- polling --- */

static bool poll_frozen(struct warden *w, struct instance *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        struct err e;
        int r = instance_cgroup(w, x, &g);

        if (r == 0)
                r = cgroup_is_frozen(&g);
        if (r == 0 && clock_mono(&clock_system) - x->poll_since < FREEZE_MAX)
                return true;
        x->freezing = false;
        list_remove(&x->poll_node);
        if (r > 0) {
                x->status.status = RUNTIME_PAUSED;
                instance_reply(w, x, NULL);
                return false;
        }
        if (r == 0)
                r = cgroup_freeze(&g, false);
        (void) err_errno(&e, r == 0 ? -ETIMEDOUT : r, "pause sandbox '%s'", x->id);
        instance_reply(w, x, &e);
        return false;
}

bool instance_poll(struct warden *w, struct instance *x)
{
        if (x->phase == INSTANCE_DESTROYING)
                return remove_remains(w, x);
        if (!x->unreaped)
                return x->freezing && poll_frozen(w, x);
        if (is_unreaped(x) && clock_mono(&clock_system) - x->poll_since < REAP_MAX)
                return true;
        x->unreaped = false;
        exited(w, x);
        return false;
}
