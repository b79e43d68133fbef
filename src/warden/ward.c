/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "os/cgroup_stats.h"
#include "os/clone.h"
#include "os/fd.h"
#include "warden/warden_impl.h"

#define FREEZE_MAX     (2 * USEC_PER_SEC)
#define BURIAL_MAX     USEC_PER_SEC
#define SHORTAGE_PAUSE USEC_PER_SEC

static const struct wire_state running = { WIRE_RUNNING, WIRE_REASON_NONE, 0 };

struct ward *ward_new(struct warden *w, const char *id)
{
        struct ward *x = xnew(struct ward);

        (void) snprintf(x->id, sizeof(x->id), "%s", id);
        x->seed = SEED_NULL;
        x->process = x->step = x->shortage = SOURCE_NULL;
        x->oom = CGROUP_OOM_NULL;
        x->record = x->report = -EBADF;
        x->state = running;
        list_init(&x->node);
        list_init(&x->hungry);
        x->net.fd = -EBADF;
        arena_init(&x->arena, 4 * PLAN_SPEC_MAX);
        if (*x->id)
                tree_add(&w->wards, &x->by_id, str_from(x->id));
        return x;
}

static void forget_memory(struct warden *w, struct ward *x)
{
        source_remove(w, &x->shortage);
        w->room.watched -= x->oom.fd >= 0;
        cgroup_oom_close(&x->oom);
}

/* It has only what a living one has. */
static void is_built(struct warden *w, struct ward *x)
{
        w->room.building -= x->building;
        x->building = false;
}

void ward_free(struct warden *w, struct ward *x)
{
        is_built(w, x);
        source_remove(w, &x->process);
        source_remove(w, &x->step);
        forget_memory(w, x);
        list_remove(&x->node);
        list_remove(&x->hungry);
        (void) fd_close(x->net.fd);
        tree_remove(&w->wards, &x->by_id);
        seed_close(&x->seed);
        (void) fd_close(x->record);
        (void) fd_close(x->report);
        arena_wipe(&x->arena);
        free(x);
}

struct ward *ward_find(const struct warden *w, const char *id)
{
        struct tree_node *n = tree_get(&w->wards, str_from(id));

        return n ? container_of(n, struct ward, by_id) : NULL;
}

int ward_folder(const struct warden *w, const struct ward *x, int *ret_fd)
{
        int fd = openat(w->boxes, x->id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

/* Its descriptors are not kept: one for each sandbox is enough. */
int ward_group(const struct warden *w, const struct ward *x, struct cgroup *ret)
{
        char name[SEED_GROUP_MAX];

        if (!w->ground.tree)
                return -ENOENT;
        seed_group_name(x->seed.uid_first, name);
        return cgroup_open(w->ground.tree, name, ret);
}

void ward_wait(struct warden *w, struct ward *x)
{
        x->since = clock_mono(&clock_system);
        list_remove(&x->node);
        list_append(&w->waiting, &x->node);
}

/* --- its end --- */

static bool was_out_of_memory(const struct warden *w, const struct ward *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        struct cgroup_stats c = { 0 };

        return ward_group(w, x, &g) == 0 && cgroup_stats(w->ground.tree, &g, &c) == 0
               && c.oom_kills > 0;
}

/* The status of one that was adopted is told to whoever is its parent now, and then, by younger kernels,
 * to who has a descriptor of it. */
static struct wire_state why(const struct warden *w, const struct ward *x)
{
        int status = 0;

        if ((x->child ? pidfd_wait(x->seed.pidfd, &status) : pidfd_status(x->seed.pidfd, &status))
            < 0)
                return (struct wire_state){ WIRE_DEAD,
                                            was_out_of_memory(w, x) ? WIRE_OOM_KILLED : WIRE_LOST,
                                            0 };
        /* The entrypoint's signal, as the agent passes it on. */
        if (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL && was_out_of_memory(w, x))
                return (struct wire_state){ WIRE_DEAD, WIRE_OOM_KILLED, SIGKILL };
        if (WIFEXITED(status))
                return (struct wire_state){ WEXITSTATUS(status) == 0 ? WIRE_ENDED : WIRE_DEAD,
                                            WIRE_EXITED, (uint32_t) WEXITSTATUS(status) };
        return (struct wire_state){ WIRE_DEAD,
                                    WTERMSIG(status) == SIGKILL && was_out_of_memory(w, x)
                                            ? WIRE_OOM_KILLED
                                            : WIRE_SIGNALED,
                                    (uint32_t) WTERMSIG(status) };
}

static void note_end(struct warden *w, struct ward *x)
{
        scoped(fd_closep) int folder = -EBADF;
        int r = ward_folder(w, x, &folder);

        if (r == 0)
                r = state_write_end(folder, &x->state);
        if (r < 0)
                (void) log_err(r, w->log, "can't write down the end of sandbox '%s'", x->id);
}

static void ended(struct warden *w, struct ward *x)
{
        const struct err e = { ERR_CONFLICT, 0, "it has ended" };

        forget_memory(w, x);
        x->state = why(w, x);
        x->seed.pidfd = fd_close(x->seed.pidfd);
        if (x->phase == WARD_DYING) {
                if (!ward_look(w, x))
                        return;
                ward_wait(w, x);
                return;
        }
        x->phase = WARD_ENDED;
        x->freezing = false;
        list_remove(&x->node);
        network_give_back(w, x);
        note_end(w, x);
        control_tell(w, &x->asker, &e, NULL);
        control_news(w, &(struct wire_news){ WIRE_DIED, x->id, x->state });
}

static bool is_unburied(const struct ward *x)
{
        int status;

        return !x->child && pidfd_status(x->seed.pidfd, &status) == -EAGAIN;
}

/* How it ended is known when its parent has reaped it, which takes a moment; there is no event. */
static void process_ended(struct warden *w, struct source *s)
{
        struct ward *x = container_of(s, struct ward, process);

        source_remove(w, s);
        x->unburied = x->phase != WARD_DYING && is_unburied(x);
        if (!x->unburied) {
                ended(w, x);
                return;
        }
        /* Who asks meanwhile. */
        x->state = (struct wire_state){ WIRE_DEAD, WIRE_LOST, 0 };
        ward_wait(w, x);
}

static bool look_unburied(struct warden *w, struct ward *x)
{
        if (is_unburied(x) && clock_mono(&clock_system) - x->since < BURIAL_MAX)
                return true;
        x->unburied = false;
        ended(w, x);
        return false;
}

static void memory_is_short(struct warden *w, struct source *s)
{
        struct ward *x = container_of(s, struct ward, shortage);

        const usec_t now = clock_mono(&clock_system);

        /* A sandbox can do that all day long; whoever listens wants to know, and no more. */
        if (!cgroup_oom_happened(&x->oom) || now - x->told < SHORTAGE_PAUSE)
                return;
        x->told = now;
        control_news(w, &(struct wire_news){ .kind = WIRE_OOM, .id = x->id });
}

/* News are all that is lost without it: why a sandbox has ended is found out in another way. */
static void watch_memory(struct warden *w, struct ward *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        int r = ward_group(w, x, &g);

        if (r == 0)
                r = cgroup_oom_open(w->ground.tree, &g, &x->oom);
        w->room.watched += x->oom.fd >= 0;
        if (r == 0)
                r = source_add_for(w, &x->shortage, x->oom.fd, (uint32_t) x->oom.events,
                                   memory_is_short);
        if (r < 0)
                (void) log_err(r, w->log, "can't watch the memory of sandbox '%s'", x->id);
}

int ward_watch(struct warden *w, struct ward *x)
{
        int r = source_add(w, &x->process, x->seed.pidfd, process_ended);

        if (r == 0 && x->limited && room_for_watch(w))
                watch_memory(w, x);
        return r;
}

/* --- its making --- */

void ward_give_up(struct warden *w, struct ward *x, const struct err *e)
{
        int r = seed_remove(&w->ground, &x->seed);

        control_tell(w, &x->asker, e, NULL);
        if (r < 0) {
                (void) log_err(r, w->log, "can't remove what was to be sandbox '%s'", x->id);
                x->phase = WARD_DYING;
                ward_wait(w, x);
                return;
        }
        network_give_back(w, x);
        pool_free_uids(w, x->seed.uid_first);
        ward_free(w, x);
}

static int open_socket(const struct warden *w, const struct ward *x)
{
        scoped(fd_closep) int folder = -EBADF;
        int fd, r = ward_folder(w, x, &folder);

        if (r < 0)
                return r;
        fd = openat(folder, "agent.sock", O_PATH | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int ward_descriptors(const struct warden *w, const struct ward *x, int fds[static WIRE_FD_LIVING])
{
        fds[WIRE_FD_PIDFD] = fcntl(x->seed.pidfd, F_DUPFD_CLOEXEC, 3);
        if (fds[WIRE_FD_PIDFD] < 0)
                return -errno;
        fds[WIRE_FD_SOCKET] = open_socket(w, x);
        if (fds[WIRE_FD_SOCKET] >= 0)
                return 0;
        fds[WIRE_FD_PIDFD] = fd_close(fds[WIRE_FD_PIDFD]);
        return fds[WIRE_FD_SOCKET];
}

static void built(struct warden *w, struct source *s)
{
        struct ward *x = container_of(s, struct ward, step);
        int fds[WIRE_FD_LIVING] = { -EBADF, -EBADF }, r;
        struct err e;

        source_remove(w, s);
        if (box_finish(&w->ground, &x->spec, TAKE_FD(x->report), &e) < 0) {
                ward_give_up(w, x, &e);
                return;
        }
        arena_wipe(&x->arena);
        cgroup_close(&x->seed.group);
        x->net.fd = fd_close(x->net.fd);
        is_built(w, x);
        x->phase = WARD_LIVES;
        x->limited = x->spec.memory > 0;
        r = ward_watch(w, x);
        if (r == 0)
                r = ward_descriptors(w, x, fds);
        if (r < 0) {
                (void) err_errno(&e, r, "watch sandbox '%s'", x->id);
                control_tell(w, &x->asker, &e, NULL);
                ward_destroy(w, x);
                return;
        }
        control_tell(w, &x->asker, NULL, fds);
        for (size_t i = 0; i < WIRE_FD_LIVING; i++)
                (void) fd_close(fds[i]);
}

void ward_go_on(struct warden *w, struct ward *x)
{
        struct box_parts parts = { .record = x->record, .output = w->nowhere };
        struct err e;
        int r;

        /* Once more: it may have come out since it was asked for. */
        if (network_check(w, x->spec.network, &e) < 0) {
                ward_give_up(w, x, &e);
                return;
        }
        if (network_take(w, x) < 0)
                return;
        parts.netns = x->net.fd;
        parts.net_index = x->net.index;
        r = box_begin(&w->ground, &x->seed, &x->spec, &parts, &x->report, &e);
        x->record = fd_close(x->record);
        if (r < 0) {
                ward_give_up(w, x, &e);
                return;
        }
        x->seed.socket = fd_close(x->seed.socket);
        x->phase = WARD_BUILDING;
        r = source_add_for(w, &x->step, x->report, 0, built);
        if (r == 0)
                return;
        (void) err_errno(&e, r, "watch sandbox '%s'", x->id);
        control_tell(w, &x->asker, &e, NULL);
        ward_destroy(w, x);
}

static void seed_ready(struct warden *w, struct source *s)
{
        struct ward *x = container_of(s, struct ward, step);
        struct err e;
        int r;

        source_remove(w, s);
        r = seed_wait(&x->seed);
        if (r == 0) {
                ward_go_on(w, x);
                return;
        }
        (void) err_errno(&e, r, "prepare sandbox '%s'", x->id);
        ward_give_up(w, x, &e);
}

void ward_create(struct warden *w, struct ward *x)
{
        struct err e;
        int r;

        x->child = x->building = true;
        w->room.building++;
        if (x->phase == WARD_BUILDING) {
                ward_go_on(w, x);
                return;
        }
        r = source_add(w, &x->step, x->seed.socket, seed_ready);
        if (r == 0)
                return;
        (void) err_errno(&e, r, "watch a seed");
        ward_give_up(w, x, &e);
}

/* --- its removal --- */

static int kill_group(struct warden *w, struct ward *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        int r = ward_group(w, x, &g);

        if (r == 0)
                r = cgroup_kill(&g);
        return r == -ENOENT ? 0 : r;
}

/* 1 as long as there are any. */
static int end_others(struct warden *w, struct ward *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        int r = ward_group(w, x, &g);

        if (r == 0)
                r = cgroup_is_populated(&g);
        if (r > 0 && kill_group(w, x) < 0)
                log_debug(w->log, "processes of sandbox '%s' are left", x->id);
        return r == -ENOENT ? 0 : r;
}

/* Processes are gone; what is left are names. False: done, and the sandbox is freed. */
static bool take_away(struct warden *w, struct ward *x)
{
        struct err e;
        int r = end_others(w, x);

        if (r > 0)
                return true;
        if (r == 0)
                r = seed_drop_folder(&w->ground, x->seed.uid_first);
        if (r == 0 && *x->id)
                r = janitor_take(w, w->boxes, x->id);
        if (r < 0) {
                (void) err_errno(&e, r, "remove sandbox '%s'", x->id);
                log_warn(w->log, "%s", e.message);
                control_tell(w, &x->asker, &e, NULL);
                list_remove(&x->node);
                x->phase = WARD_ENDED;
                return false;
        }
        control_tell(w, &x->asker, NULL, NULL);
        network_give_back(w, x);
        leave_add(w, x->seed.uid_first);
        ward_free(w, x);
        return false;
}

/* With the first process of a namespace all others end; to kill the group would wait for everybody who
 * makes or removes one. But that reaches what is frozen, and what has no first process any more. */
static int end_processes(struct warden *w, struct ward *x)
{
        const bool frozen = x->freezing || x->state.life == WIRE_PAUSED;
        int r = x->seed.pidfd >= 0 ? pidfd_kill(x->seed.pidfd, SIGKILL) : -ESRCH;

        return r == -ESRCH || frozen ? kill_group(w, x) : r;
}

void ward_destroy(struct warden *w, struct ward *x)
{
        struct err e;
        int r = end_processes(w, x);

        x->freezing = x->unburied = false;
        list_remove(&x->node);
        source_remove(w, &x->step);
        list_remove(&x->hungry);
        if (r == 0 && x->seed.pidfd >= 0 && x->process.fd < 0)
                r = ward_watch(w, x);
        if (r < 0) {
                (void) err_errno(&e, r, "end the processes of sandbox '%s'", x->id);
                control_tell(w, &x->asker, &e, NULL);
                return;
        }
        x->phase = WARD_DYING;
        if (x->seed.pidfd < 0 && ward_look(w, x))
                ward_wait(w, x);
}

/* --- what comes without an event --- */

static bool look_frozen(struct warden *w, struct ward *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        struct err e;
        int r = ward_group(w, x, &g);

        if (r == 0)
                r = cgroup_is_frozen(&g);
        if (r == 0 && clock_mono(&clock_system) - x->since < FREEZE_MAX)
                return true;
        x->freezing = false;
        list_remove(&x->node);
        if (r > 0) {
                x->state.life = WIRE_PAUSED;
                control_tell(w, &x->asker, NULL, NULL);
                return false;
        }
        if (r == 0)
                r = cgroup_freeze(&g, false);
        (void) err_errno(&e, r == 0 ? -ETIMEDOUT : r, "pause sandbox '%s'", x->id);
        control_tell(w, &x->asker, &e, NULL);
        return false;
}

bool ward_look(struct warden *w, struct ward *x)
{
        if (x->phase == WARD_DYING)
                return take_away(w, x);
        if (x->unburied)
                return look_unburied(w, x);
        return x->freezing && look_frozen(w, x);
}
