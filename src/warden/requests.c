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

/* A request, with descriptors of which what is kept is taken. */
struct incoming {
        const struct warden_request *q;
        int *fds;
};

/* What a request does. A negative result is answered with `e`; 0 means that it was answered, or will
 * be. */
typedef int call_fn(struct warden *w, const struct incoming *in, struct err *e);

static struct requester requester_of(const struct warden_request *q)
{
        return (struct requester){ true, q->call, q->request_id };
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

static struct instance *find_living(struct warden *w, const char *id, struct err *e)
{
        struct instance *x = find(w, id, e);

        if (!x || (x->phase == INSTANCE_RUNNING && !x->requester.waits))
                return x;
        (void) err_set(e, ERR_CONFLICT, "sandbox '%s' is not in the state for it", id);
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

/* One that is told to be running must not come to a stop a moment later. */
static void stop_freezing(struct warden *w, struct instance *x)
{
        struct err e;

        if (!x->freezing)
                return;
        x->freezing = false;
        list_remove(&x->node);
        if (set_frozen(w, x, false, &e) < 0)
                log_warn(w->log, "%s", e.message);
}

/* What the hutchd before had under way is nobody's now: creates are undone, because nobody knows of
 * them, and so are pauses; the rest comes to its end and is not told. */
static void drop_requesters(struct warden *w)
{
        struct tree_node *n = tree_from(&w->instances, STR(""));

        while (n) {
                struct instance *x = container_of(n, struct instance, by_id);
                char id[PLAN_NAME_MAX + 1];

                memcpy(id, x->id, sizeof(id));
                x->requester.waits = false;
                stop_freezing(w, x);
                if (x->phase == INSTANCE_STARTING || x->phase == INSTANCE_BUILDING)
                        instance_destroy(w, x);
                n = tree_after(&w->instances, str_from(id));
        }
}

static int call_hello(struct warden *w, const struct incoming *in, struct err *e)
{
        const struct warden_request *q = in->q;
        w->control.phase = WARDEN_PHASE_NEW;
        if (q->version != WARDEN_PROTOCOL_VERSION)
                return err_set(e, ERR_UNSUPPORTED, "hutchd speaks version %u, the warden %u",
                               q->version, WARDEN_PROTOCOL_VERSION);
        control_discard(w);
        drop_requesters(w);
        w->control.phase = WARDEN_PHASE_READY;
        control_reply(w,
                      &(struct warden_reply){ .call = q->call,
                                              .request_id = q->request_id,
                                              .version = WARDEN_PROTOCOL_VERSION },
                      NULL);
        return 0;
}

/* --- create --- */

static int check_record(int fd, struct err *e)
{
        struct stat st;

        if (!memfd_is_sealed(fd) || fstat(fd, &st) < 0 || st.st_size > (off_t) WARDEN_RECORD_MAX)
                return err_set(e, ERR_INVALID, "a record is a sealed memfd of at most %zu bytes",
                               WARDEN_RECORD_MAX);
        return 0;
}

static int check_image(const struct warden *w, const struct plan_spec *s, struct err *e)
{
        if (s->image == PLAN_IMAGE_HOST && !w->ctx.host)
                return err_set(
                        e, ERR_UNSUPPORTED,
                        "this host has no image 'host', because its programs are not all in "
                        "/usr: import an image, and name that");
        for (size_t i = 0; i < s->layers.n; i++) {
                char path[sizeof(DATA_LAYERS) + PLAN_LAYER_NAME_MAX + 1];

                (void) snprintf(path, sizeof(path), DATA_LAYERS "/%s", s->layers.items[i]);
                if (faccessat(w->ctx.data, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
                        return err_set(e, ERR_NOT_FOUND,
                                       "there is no image '%s': import it (hutch-warden --import)",
                                       s->layers.items[i]);
        }
        return 0;
}

/* Version 1 can't, whatever is mounted. */
static int check_io(const struct warden *w, const struct plan_spec *s, struct err *e)
{
        if (s->io_bytes == 0 && s->io_operations == 0)
                return 0;
        if (!w->ctx.tree->unified_controls)
                return err_set(e, ERR_UNSUPPORTED,
                               "io and iops need cgroup v2, and this host's "
                               "are of version 1: boot it with "
                               "systemd.unified_cgroup_hierarchy=1, or leave them out");
        if (!w->ctx.tree->io)
                return err_set(e, ERR_UNSUPPORTED,
                               "io and iops need the controller 'io', which was not handed on to "
                               "hutch-warden (see cgroup.controllers)");
        if (w->ctx.disk == 0)
                return err_set(e, ERR_UNSUPPORTED,
                               "io and iops: the kernel does not tell which disk the data directory "
                               "'%s' is on; keep it on a file system such as ext4 or xfs",
                               w->config->data);
        return 0;
}

static int check_groups(const struct warden *w, const struct plan_spec *s, struct err *e)
{
        if (w->ctx.tree)
                return check_io(w, s, e);
        if (!s->memory && !s->cpu_millis && !s->pids && !s->io_bytes && !s->io_operations)
                return 0;
        return err_set(e, ERR_UNSUPPORTED,
                       "this host has no cgroups to limit a sandbox by");
}

static int read_spec(const struct warden *w, const struct warden_request *q, struct arena *a,
                     struct plan_spec *ret, struct err *e)
{
        int r = plan_spec_decode(q->spec, a, ret, e);

        if (r < 0)
                return r;
        r = check_image(w, ret, e);
        if (r == 0)
                r = network_check(w, ret->network, e);
        if (r == 0)
                r = check_groups(w, ret, e);
        if (r < 0)
                return r;
        if (instance_find(w, ret->id))
                return err_set(e, ERR_CONFLICT, "there is a sandbox '%s'", ret->id);
        return 0;
}

static int call_create(struct warden *w, const struct incoming *in, struct err *e)
{
        const struct warden_request *q = in->q;
        scoped(arena_wipe) struct arena a;
        struct plan_spec spec;
        struct str bytes;
        struct zygote zygote = ZYGOTE_NULL;
        struct instance *x;
        bool ready = false;
        int r;

        arena_init(&a, 4 * PLAN_SPEC_MAX);
        bytes = str_of(arena_dup(&a, q->spec), q->spec.n);
        r = read_spec(w, q, &a, &spec, e);
        if (r == 0)
                r = check_record(in->fds[0], e);
        if (r == 0)
                r = fd_budget_check(w, e);
        if (r == 0)
                r = zygote_pool_take(w, &zygote, &ready, e);
        if (r < 0)
                return r;
        x = instance_new(w, spec.id);
        x->zygote = zygote;
        x->phase = ready ? INSTANCE_BUILDING : INSTANCE_STARTING;
        x->arena = a;
        arena_init(&a, 1);
        x->spec = spec;
        x->spec.uid_first = zygote.uid_first;
        x->spec_bytes = bytes;
        x->record = TAKE_FD(in->fds[0]);
        x->requester = requester_of(q);
        instance_create(w, x);
        return 0;
}

/* --- destroy --- */

/* Also of one that is being made, and again of one that is being destroyed: who asked before is told
 * that someone else has taken over. */
static int call_destroy(struct warden *w, const struct incoming *in, struct err *e)
{
        const struct warden_request *q = in->q;
        const struct err taken_over = { ERR_CANCELED, 0, "another request took its place" };
        struct instance *x = instance_find(w, q->id);

        (void) e;
        if (!x) {
                control_reply(w,
                              &(struct warden_reply){ .call = q->call,
                                                      .request_id = q->request_id },
                              NULL);
                return 0;
        }
        control_reply_to(w, &x->requester, &taken_over, NULL);
        x->requester = requester_of(q);
        if (x->phase != INSTANCE_DESTROYING)
                instance_destroy(w, x);
        return 0;
}

/* --- pause, resume --- */

static int call_pause(struct warden *w, const struct incoming *in, struct err *e)
{
        const struct warden_request *q = in->q;
        struct instance *x = find_living(w, q->id, e);
        int r = 0;

        if (!x)
                return ERR_RETURN(e->code);
        if (x->state.status != RUNTIME_RUNNING)
                r = err_set(e, ERR_CONFLICT, "sandbox '%s' is paused", q->id);
        if (r == 0)
                r = set_frozen(w, x, true, e);
        if (r < 0)
                return r;
        x->requester = requester_of(q);
        x->freezing = true;
        instance_poll_later(w, x);
        (void) instance_poll(w, x);
        return 0;
}

static int call_resume(struct warden *w, const struct incoming *in, struct err *e)
{
        const struct warden_request *q = in->q;
        struct instance *x = find_living(w, q->id, e);
        int r = 0;

        if (!x)
                return ERR_RETURN(e->code);
        if (x->state.status != RUNTIME_PAUSED)
                r = err_set(e, ERR_CONFLICT, "sandbox '%s' is not paused", q->id);
        if (r == 0)
                r = set_frozen(w, x, false, e);
        if (r < 0)
                return r;
        x->state.status = RUNTIME_RUNNING;
        control_reply(w, &(struct warden_reply){ .call = q->call, .request_id = q->request_id },
                      NULL);
        return 0;
}

/* --- looking --- */

static int call_inspect(struct warden *w, const struct incoming *in, struct err *e)
{
        const struct warden_request *q = in->q;
        struct warden_reply a = { .call = q->call, .request_id = q->request_id };
        int living[WARDEN_FDS_ALIVE] = { -EBADF, -EBADF };
        struct instance *x = find(w, q->id, e);
        int r;

        if (!x)
                return ERR_RETURN(e->code);
        if (x->phase == INSTANCE_STARTING || x->phase == INSTANCE_BUILDING)
                return err_set(e, ERR_CONFLICT, "sandbox '%s' is being made", q->id);
        a.state = x->state;
        if (instance_is_alive(&x->state)) {
                r = instance_fds(w, x, living);
                if (r < 0)
                        return err_errno(e, r, "look at sandbox '%s'", q->id);
        }
        control_reply(w, &a, living);
        return 0;
}

static int call_usage(struct warden *w, const struct incoming *in, struct err *e)
{
        const struct warden_request *q = in->q;
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
                return err_errno(e, r, "look at the group of sandbox '%s'", q->id);
        control_reply(w,
                      &(struct warden_reply){ .call = q->call,
                                              .request_id = q->request_id,
                                              .cpu_usec = c.cpu_usec,
                                              .memory_bytes = c.memory,
                                              .processes = c.processes },
                      NULL);
        return 0;
}

static int open_record(const struct warden *w, const struct instance *x, int *ret_fd)
{
        scoped(fd_closep) int dir = -EBADF;
        int r = instance_open_dir(w, x, &dir);

        return r == 0 ? state_open_record(dir, ret_fd) : r;
}

/* What is being made is known to who asked for it; what is being destroyed is gone. */
static int call_scan(struct warden *w, const struct incoming *in, struct err *e)
{
        const struct warden_request *q = in->q;
        struct warden_found found[WARDEN_PAGE_MAX];
        int records[WARDEN_PAGE_MAX];
        struct warden_reply a = { .call = q->call, .request_id = q->request_id, .found = found };
        struct tree_node *n = tree_after(&w->instances, str_from(q->id));
        int r = 0;

        for (; n && a.n_found < WARDEN_PAGE_MAX && r == 0; n = tree_after(&w->instances, n->key)) {
                const struct instance *x = container_of(n, struct instance, by_id);

                if (x->phase != INSTANCE_RUNNING && x->phase != INSTANCE_EXITED)
                        continue;
                found[a.n_found] = (struct warden_found){ x->id, x->state };
                r = open_record(w, x, &records[a.n_found]);
                a.n_found += r == 0;
        }
        if (r == 0) {
                a.more = n != NULL;
                a.skipped = n ? 0 : w->skipped;
                control_reply(w, &a, records);
                return 0;
        }
        while (a.n_found > 0)
                (void) fd_close(records[--a.n_found]);
        return err_errno(e, r, "read the record of a sandbox");
}

static call_fn *const calls[WARDEN_MSG_KIND_MAX_] = {
        [WARDEN_MSG_HELLO] = call_hello,     [WARDEN_MSG_CREATE] = call_create,
        [WARDEN_MSG_DESTROY] = call_destroy, [WARDEN_MSG_PAUSE] = call_pause,
        [WARDEN_MSG_RESUME] = call_resume,   [WARDEN_MSG_INSPECT] = call_inspect,
        [WARDEN_MSG_SCAN] = call_scan,       [WARDEN_MSG_USAGE] = call_usage,
};

/* That change something: who looks disturbs nobody, and is not disturbed. */
static bool is_work(enum warden_msg call)
{
        return call == WARDEN_MSG_CREATE || call == WARDEN_MSG_DESTROY || call == WARDEN_MSG_PAUSE
               || call == WARDEN_MSG_RESUME;
}

void requests_dispatch(struct warden *w, const struct warden_request *q, int *fds)
{
        struct err e;
        int r;

        if (is_work(q->call))
                zygote_pool_defer(w);
        r = calls[q->call](w, &(struct incoming){ q, fds }, &e);

        if (r < 0)
                control_reply(w,
                              &(struct warden_reply){ .call = q->call,
                                                      .request_id = q->request_id,
                                                      .result = r,
                                                      .text = e.message },
                              NULL);
}
