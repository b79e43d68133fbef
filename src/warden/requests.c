/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/cgroup.h"
#include "os/fd.h"
#include "os/memfd.h"
#include "warden/data.h"
#include "warden/warden_impl.h"

static void reply_success(struct warden *w, const struct warden_request *q)
{
        control_reply(w, &(struct warden_reply){ .call = q->call, .request_id = q->request_id },
                      NULL);
}

/* NULL, and `e` says why. */
static struct instance *find(struct warden *w, const char *id, struct err *e)
{
        struct instance *x = instance_find(w, id);

        if (x && x->phase != INSTANCE_DESTROYING)
                return x;
        (void) err_set(e, ERR_NOT_FOUND, "there is no sandbox '%s'", id);
        return NULL;
}

static int set_frozen(struct warden *w, struct instance *x, bool frozen, struct err *e)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        int r = instance_cgroup(w, x, &g);

        if (r == 0)
                r = cgroup_freeze(&g, frozen);
        if (r == -ENOENT)
                return err_set(e, ERR_UNSUPPORTED, "sandbox '%s' has no cgroup", x->id);
        return r < 0 ? err_errno(e, r, "%s sandbox '%s'", frozen ? "pause" : "resume", x->id) : 0;
}

/* --- hello --- */

/* The requests of the hutchd before this one are void. Creates are undone, because no one knows of them;
 * so are pauses, because an instance that is reported as running must not freeze afterwards. The rest is
 * completed without a reply. */
static int run_hello(struct warden *w, const struct warden_request *q, struct request_fds *f,
                     struct err *e)
{
        struct tree_node *n = tree_from(&w->instances, STR(""));

        w->control.phase = WARDEN_PHASE_NEW;
        if (q->version != WARDEN_PROTOCOL_VERSION)
                return err_set(e, ERR_UNSUPPORTED, "hutchd speaks version %u, the warden %u",
                               q->version, WARDEN_PROTOCOL_VERSION);
        control_discard(w);
        while (n) {
                struct instance *x = container_of(n, struct instance, by_id);
                char id[PLAN_NAME_MAX + 1];

                memcpy(id, x->id, sizeof(id)); /* it may be freed */
                x->requester.waiting = false;
                if (x->freezing) {
                        x->freezing = false;
                        list_remove(&x->poll_node);
                        if (set_frozen(w, x, false, e) < 0)
                                log_warn(w->log, "%s", e->message);
                }
                if (x->phase == INSTANCE_STARTING || x->phase == INSTANCE_BUILDING)
                        instance_destroy(w, x);
                n = tree_after(&w->instances, str_from(id));
        }
        w->control.phase = WARDEN_PHASE_READY;
        control_reply(w,
                      &(struct warden_reply){ .call = q->call,
                                              .request_id = q->request_id,
                                              .version = WARDEN_PROTOCOL_VERSION },
                      NULL);
        return 0;
}

/* --- create --- */

static int check_image(const struct warden *w, const struct plan_spec *s, struct err *e)
{
        if (s->image == PLAN_IMAGE_HOST && !w->ctx.host)
                return err_set(e, ERR_UNSUPPORTED,
                               "this host has no image 'host', because its programs are not all in "
                               "/usr: import an image (hutch-warden --import) and use that");
        for (size_t i = 0; i < s->layers.n; i++) {
                char path[sizeof(DATA_LAYERS) + PLAN_LAYER_NAME_MAX + 1];

                (void) snprintf(path, sizeof(path), DATA_LAYERS "/%s", s->layers.items[i]);
                if (faccessat(w->ctx.data, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                        return err_set(
                                e, ERR_NOT_FOUND,
                                "there is no image '%s': import it with 'hutch-warden --import'",
                                s->layers.items[i]);
        }
        return 0;
}

/* cgroup v1 can't limit io that is written back later, whatever is mounted. */
static int check_limits(const struct warden *w, const struct plan_spec *s, struct err *e)
{
        const bool io = s->io_bytes > 0 || s->io_operations > 0;

        if (!w->ctx.tree && (io || s->memory || s->cpu_millis || s->pids))
                return err_set(
                        e, ERR_UNSUPPORTED,
                        "this host has no cgroups, so a sandbox can't have limits: mount cgroup2 at "
                        "/sys/fs/cgroup, with the controllers memory, cpu and pids, and "
                        "restart hutchd");
        if (!io)
                return 0;
        if (!w->ctx.tree->unified_controls)
                return err_set(
                        e, ERR_UNSUPPORTED,
                        "the limits io and iops need cgroup v2, and this host uses v1: boot it "
                        "with systemd.unified_cgroup_hierarchy=1, or omit them");
        if (!w->ctx.tree->io)
                return err_set(e, ERR_UNSUPPORTED,
                               "the limits io and iops need the controller 'io', which is not "
                               "delegated to hutch-warden (see cgroup.controllers)");
        if (w->ctx.disk == 0)
                return err_set(
                        e, ERR_UNSUPPORTED,
                        "the limits io and iops need the disk of the data directory '%s', "
                        "which the kernel does not report; use a file system such as ext4 or xfs",
                        w->config->data);
        return 0;
}

/* Whether the host has what the sandbox needs, and the record is one. */
static int check_create(const struct warden *w, const struct plan_spec *s, int record,
                        struct err *e)
{
        struct stat st;
        int r = check_image(w, s, e);

        if (r == 0)
                r = network_check(w, s->network, e);
        if (r == 0)
                r = check_limits(w, s, e);
        if (r < 0)
                return r;
        if (instance_find(w, s->id))
                return err_set(e, ERR_CONFLICT, "sandbox '%s' exists already", s->id);
        if (!memfd_is_sealed(record) || fstat(record, &st) < 0
            || st.st_size > (off_t) WARDEN_RECORD_MAX)
                return err_set(e, ERR_INVALID, "a record is a sealed memfd of at most %zu bytes",
                               WARDEN_RECORD_MAX);
        return fd_budget_check(w, e);
}

static int run_create(struct warden *w, const struct warden_request *q, struct request_fds *f,
                      struct err *e)
{
        scoped(arena_wipe) struct arena a;
        struct zygote zygote = ZYGOTE_NULL;
        struct plan_spec spec;
        struct instance *x;
        struct str bytes;
        bool ready = false;
        int r;

        arena_init(&a, 4 * PLAN_SPEC_MAX);
        bytes = arena_dup_str(&a, q->spec);
        r = plan_spec_decode(q->spec, &a, &spec, e);
        if (r == 0)
                r = check_create(w, &spec, f->fds[0], e);
        if (r == 0)
                r = zygote_pool_take(w, &zygote, &ready, e);
        if (r < 0)
                return r;
        x = instance_new(w, spec.id);
        x->zygote = zygote;
        x->phase = INSTANCE_STARTING;
        x->arena = a;
        arena_init(&a, 1);
        x->spec = spec;
        x->spec.uid_first = zygote.uid_first;
        x->spec_bytes = bytes;
        x->record = TAKE_FD(f->fds[0]);
        x->requester = (struct requester){ true, q->call, q->request_id };
        x->is_child = x->building = true;
        w->fds.building++;
        w->build_began = clock_mono(&clock_system);
        if (ready)
                instance_build(w, x);
        else
                instance_await_zygote(w, x);
        return 0;
}

/* --- destroy --- */

/* Also during a create, and again during a destroy: the earlier request is replied as canceled. */
static int run_destroy(struct warden *w, const struct warden_request *q, struct request_fds *f,
                       struct err *e)
{
        const struct err canceled = { ERR_CANCELED, 0, "replaced by a destroy request" };
        struct instance *x = instance_find(w, q->id);

        (void) e;
        if (!x) {
                reply_success(w, q);
                return 0;
        }
        instance_reply(w, x, &canceled);
        x->requester = (struct requester){ true, q->call, q->request_id };
        if (x->phase != INSTANCE_DESTROYING)
                instance_destroy(w, x);
        return 0;
}

/* --- pause, resume --- */

static int run_pause_resume(struct warden *w, const struct warden_request *q, struct request_fds *f,
                            struct err *e)
{
        const bool pause = q->call == WARDEN_MSG_PAUSE;
        struct instance *x = find(w, q->id, e);
        int r;

        if (!x)
                return ERR_RETURN(e->code);
        if (x->phase != INSTANCE_RUNNING || x->requester.waiting)
                return err_set(e, ERR_CONFLICT, "sandbox '%s' is not running, or is busy", q->id);
        if (x->status.status != (pause ? RUNTIME_RUNNING : RUNTIME_PAUSED))
                return err_set(e, ERR_CONFLICT, "sandbox '%s' is %spaused", q->id,
                               pause ? "" : "not ");
        r = set_frozen(w, x, pause, e);
        if (r < 0)
                return r;
        if (!pause) {
                x->status.status = RUNTIME_RUNNING;
                reply_success(w, q);
                return 0;
        }
        x->requester = (struct requester){ true, q->call, q->request_id };
        x->freezing = true;
        instance_poll_later(w, x);
        (void) instance_poll(w, x);
        return 0;
}

/* --- queries --- */

static int run_inspect(struct warden *w, const struct warden_request *q, struct request_fds *f,
                       struct err *e)
{
        struct warden_reply reply = { .call = q->call, .request_id = q->request_id };
        int alive[WARDEN_FDS_ALIVE] = { -EBADF, -EBADF };
        struct instance *x = find(w, q->id, e);
        int r;

        if (!x)
                return ERR_RETURN(e->code);
        if (x->phase == INSTANCE_STARTING || x->phase == INSTANCE_BUILDING)
                return err_set(e, ERR_CONFLICT, "sandbox '%s' is being created", q->id);
        reply.state = x->status;
        if (instance_is_alive(&x->status)) {
                r = instance_fds(w, x, alive);
                if (r < 0)
                        return err_errno(e, r, "inspect sandbox '%s'", q->id);
        }
        control_reply(w, &reply, alive);
        return 0;
}

static int run_usage(struct warden *w, const struct warden_request *q, struct request_fds *f,
                     struct err *e)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        struct cgroup_stats c = { 0 };
        struct instance *x = find(w, q->id, e);
        int r;

        if (!x)
                return ERR_RETURN(e->code);
        r = instance_cgroup(w, x, &g);
        if (r == 0)
                r = cgroup_stats(w->ctx.tree, &g, &c);
        if (r < 0 && r != -ENOENT)
                return err_errno(e, r, "read the cgroup of sandbox '%s'", q->id);
        control_reply(w,
                      &(struct warden_reply){ .call = q->call,
                                              .request_id = q->request_id,
                                              .cpu_usec = c.cpu_usec,
                                              .memory_bytes = c.memory,
                                              .processes = c.processes },
                      NULL);
        return 0;
}

/* Without those that are being created, which their requester knows, or destroyed. */
static int run_scan(struct warden *w, const struct warden_request *q, struct request_fds *f,
                    struct err *e)
{
        struct warden_found found[WARDEN_PAGE_MAX];
        int records[WARDEN_PAGE_MAX];
        struct warden_reply reply = { .call = q->call,
                                      .request_id = q->request_id,
                                      .found = found };
        struct tree_node *n = tree_after(&w->instances, str_from(q->id));
        int r = 0;

        for (; n && reply.n_found < WARDEN_PAGE_MAX && r == 0;
             n = tree_after(&w->instances, n->key)) {
                const struct instance *x = container_of(n, struct instance, by_id);
                scoped(fd_closep) int dir = -EBADF;

                if (x->phase != INSTANCE_RUNNING && x->phase != INSTANCE_EXITED)
                        continue;
                found[reply.n_found] = (struct warden_found){ x->id, x->status };
                r = instance_open_dir(w, x, &dir);
                if (r == 0)
                        r = state_open_record(dir, &records[reply.n_found]);
                reply.n_found += r == 0;
        }
        if (r == 0) {
                reply.more = n != NULL;
                reply.skipped = n ? 0 : w->skipped;
                control_reply(w, &reply, records);
                return 0;
        }
        while (reply.n_found > 0)
                (void) fd_close(records[--reply.n_found]);
        return err_errno(e, r, "read the record of a sandbox");
}

const struct request_kind requests[WARDEN_MSG_KIND_MAX_] = {
        [WARDEN_MSG_HELLO] = { run_hello, false },
        [WARDEN_MSG_CREATE] = { run_create, true },
        [WARDEN_MSG_DESTROY] = { run_destroy, true },
        [WARDEN_MSG_PAUSE] = { run_pause_resume, true },
        [WARDEN_MSG_RESUME] = { run_pause_resume, true },
        [WARDEN_MSG_INSPECT] = { run_inspect, false },
        [WARDEN_MSG_SCAN] = { run_scan, false },
        [WARDEN_MSG_USAGE] = { run_usage, false },
};
