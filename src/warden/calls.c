/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/cgroup_stats.h"
#include "os/fd.h"
#include "os/memfd.h"
#include "warden/data.h"
#include "warden/warden_impl.h"

/* A request, with descriptors of which what is kept is taken. */
struct incoming {
        const struct wire_request *q;
        int *fds;
};

/* What a request does. A negative result is answered with `e`; 0 means that it was answered, or will
 * be. */
typedef int call_fn(struct warden *w, const struct incoming *in, struct err *e);

static struct asker asker_of(const struct wire_request *q)
{
        return (struct asker){ true, q->call, q->ticket };
}

/* NULL, and `e` says why. */
static struct ward *find(struct warden *w, const char *id, struct err *e)
{
        struct ward *x = ward_find(w, id);

        if (x && x->phase != WARD_DYING)
                return x;
        (void) err_set(e, ERR_NOT_FOUND, "there is no sandbox '%s'", id);
        return NULL;
}

static struct ward *find_living(struct warden *w, const char *id, struct err *e)
{
        struct ward *x = find(w, id, e);

        if (!x || (x->phase == WARD_LIVES && !x->asker.waits))
                return x;
        (void) err_set(e, ERR_CONFLICT, "sandbox '%s' is not in the state for it", id);
        return NULL;
}

static int set_frozen(struct warden *w, struct ward *x, bool frozen, struct err *e)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        int r = ward_group(w, x, &g);

        if (r == 0)
                r = cgroup_freeze(&g, frozen);
        if (r == -ENOENT)
                return err_set(e, ERR_UNSUPPORTED, "sandbox '%s' has no control group", x->id);
        return r < 0 ? err_errno(e, r, "%s sandbox '%s'", frozen ? "pause" : "resume", x->id) : 0;
}

/* --- hello --- */

/* One that is told to be running must not come to a stop a moment later. */
static void stop_freezing(struct warden *w, struct ward *x)
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
static void forget_askers(struct warden *w)
{
        struct tree_node *n = tree_from(&w->wards, STR(""));

        while (n) {
                struct ward *x = container_of(n, struct ward, by_id);
                char id[PLAN_NAME_MAX + 1];

                memcpy(id, x->id, sizeof(id));
                x->asker.waits = false;
                stop_freezing(w, x);
                if (x->phase == WARD_SEEDED || x->phase == WARD_BUILDING)
                        ward_destroy(w, x);
                n = tree_after(&w->wards, str_from(id));
        }
}

static int call_hello(struct warden *w, const struct incoming *in, struct err *e)
{
        const struct wire_request *q = in->q;
        w->control.phase = WIRE_PHASE_NEW;
        if (q->version != WIRE_VERSION)
                return err_set(e, ERR_UNSUPPORTED, "hutchd speaks version %u, the warden %u",
                               q->version, WIRE_VERSION);
        control_forget(w);
        forget_askers(w);
        w->control.phase = WIRE_PHASE_READY;
        control_answer(w,
                       &(struct wire_answer){
                               .call = q->call, .ticket = q->ticket, .version = WIRE_VERSION },
                       NULL);
        return 0;
}

/* --- create --- */

static int check_record(int fd, struct err *e)
{
        struct stat st;

        if (!memfd_is_sealed(fd) || fstat(fd, &st) < 0 || st.st_size > (off_t) WIRE_RECORD_MAX)
                return err_set(e, ERR_INVALID, "a record is a sealed memfd of at most %zu bytes",
                               WIRE_RECORD_MAX);
        return 0;
}

static int check_image(const struct warden *w, const struct plan_spec *s, struct err *e)
{
        if (s->image == PLAN_IMAGE_HOST && !w->ground.host)
                return err_set(
                        e, ERR_UNSUPPORTED,
                        "this machine has no image 'host', because its programs are not all in "
                        "/usr: import an image, and name that");
        for (size_t i = 0; i < s->layers.n; i++) {
                char path[sizeof(DATA_LAYERS) + PLAN_LAYER_NAME_MAX + 1];

                (void) snprintf(path, sizeof(path), DATA_LAYERS "/%s", s->layers.items[i]);
                if (faccessat(w->ground.data, path, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
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
        if (!w->ground.tree->unified_controls)
                return err_set(e, ERR_UNSUPPORTED,
                               "io and iops need control groups of version 2, and this machine's "
                               "are of version 1: boot it with "
                               "systemd.unified_cgroup_hierarchy=1, or leave them out");
        if (!w->ground.tree->io)
                return err_set(e, ERR_UNSUPPORTED,
                               "io and iops need the controller 'io', which was not handed on to "
                               "hutch-warden (see cgroup.controllers)");
        if (w->ground.disk == 0)
                return err_set(e, ERR_UNSUPPORTED,
                               "io and iops: the kernel does not tell which disk the data folder "
                               "'%s' is on; keep it on a file system such as ext4 or xfs",
                               w->config->data);
        return 0;
}

static int check_groups(const struct warden *w, const struct plan_spec *s, struct err *e)
{
        if (w->ground.tree)
                return check_io(w, s, e);
        if (!s->memory && !s->cpu_millis && !s->pids && !s->io_bytes && !s->io_operations)
                return 0;
        return err_set(e, ERR_UNSUPPORTED,
                       "this machine has no control groups to limit a sandbox by");
}

static int read_spec(const struct warden *w, const struct wire_request *q, struct arena *a,
                     struct plan_spec *ret, struct err *e)
{
        int r = plan_spec_decode(q->spec, NULL, a, ret, e);

        if (r < 0)
                return r;
        r = check_image(w, ret, e);
        if (r == 0)
                r = network_check(w, ret->network, e);
        if (r == 0)
                r = check_groups(w, ret, e);
        if (r < 0)
                return r;
        if (ward_find(w, ret->id))
                return err_set(e, ERR_CONFLICT, "there is a sandbox '%s'", ret->id);
        return 0;
}

static int call_create(struct warden *w, const struct incoming *in, struct err *e)
{
        const struct wire_request *q = in->q;
        scoped(arena_wipe) struct arena a;
        struct plan_spec spec;
        struct seed seed = SEED_NULL;
        struct ward *x;
        bool ready = false;
        int r;

        arena_init(&a, 4 * PLAN_SPEC_MAX);
        r = read_spec(w, q, &a, &spec, e);
        if (r == 0)
                r = check_record(in->fds[0], e);
        if (r == 0)
                r = room_for_sandbox(w, e);
        if (r == 0)
                r = pool_take(w, &seed, &ready, e);
        if (r < 0)
                return r;
        x = ward_new(w, spec.id);
        x->seed = seed;
        x->phase = ready ? WARD_BUILDING : WARD_SEEDED;
        x->arena = a;
        arena_init(&a, 1);
        x->spec = spec;
        x->spec.uid_first = seed.uid_first;
        x->record = TAKE_FD(in->fds[0]);
        x->asker = asker_of(q);
        ward_create(w, x);
        return 0;
}

/* --- destroy --- */

/* Also of one that is being made, and again of one that is being destroyed: who asked before is told
 * that somebody else has taken over. */
static int call_destroy(struct warden *w, const struct incoming *in, struct err *e)
{
        const struct wire_request *q = in->q;
        const struct err taken_over = { ERR_CANCELED, 0, "another request took its place" };
        struct ward *x = ward_find(w, q->id);

        (void) e;
        if (!x) {
                control_answer(w, &(struct wire_answer){ .call = q->call, .ticket = q->ticket },
                               NULL);
                return 0;
        }
        control_tell(w, &x->asker, &taken_over, NULL);
        x->asker = asker_of(q);
        if (x->phase != WARD_DYING)
                ward_destroy(w, x);
        return 0;
}

/* --- pause, resume --- */

static int call_pause(struct warden *w, const struct incoming *in, struct err *e)
{
        const struct wire_request *q = in->q;
        struct ward *x = find_living(w, q->id, e);
        int r = 0;

        if (!x)
                return ERR_RETURN(e->code);
        if (x->state.life != WIRE_RUNNING)
                r = err_set(e, ERR_CONFLICT, "sandbox '%s' is paused", q->id);
        if (r == 0)
                r = set_frozen(w, x, true, e);
        if (r < 0)
                return r;
        x->asker = asker_of(q);
        x->freezing = true;
        ward_wait(w, x);
        (void) ward_look(w, x);
        return 0;
}

static int call_resume(struct warden *w, const struct incoming *in, struct err *e)
{
        const struct wire_request *q = in->q;
        struct ward *x = find_living(w, q->id, e);
        int r = 0;

        if (!x)
                return ERR_RETURN(e->code);
        if (x->state.life != WIRE_PAUSED)
                r = err_set(e, ERR_CONFLICT, "sandbox '%s' is not paused", q->id);
        if (r == 0)
                r = set_frozen(w, x, false, e);
        if (r < 0)
                return r;
        x->state.life = WIRE_RUNNING;
        control_answer(w, &(struct wire_answer){ .call = q->call, .ticket = q->ticket }, NULL);
        return 0;
}

/* --- looking --- */

static int call_inspect(struct warden *w, const struct incoming *in, struct err *e)
{
        const struct wire_request *q = in->q;
        struct wire_answer a = { .call = q->call, .ticket = q->ticket };
        int living[WIRE_FD_LIVING] = { -EBADF, -EBADF };
        struct ward *x = find(w, q->id, e);
        int r;

        if (!x)
                return ERR_RETURN(e->code);
        if (x->phase == WARD_SEEDED || x->phase == WARD_BUILDING)
                return err_set(e, ERR_CONFLICT, "sandbox '%s' is being made", q->id);
        a.state = x->state;
        if (wire_lives(&x->state)) {
                r = ward_descriptors(w, x, living);
                if (r < 0)
                        return err_errno(e, r, "look at sandbox '%s'", q->id);
        }
        control_answer(w, &a, living);
        return 0;
}

static int call_usage(struct warden *w, const struct incoming *in, struct err *e)
{
        const struct wire_request *q = in->q;
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;
        struct cgroup_stats c = { 0 };
        struct ward *x = find(w, q->id, e);
        int r;

        if (!x)
                return ERR_RETURN(e->code);
        r = ward_group(w, x, &g);
        if (r == 0)
                r = cgroup_stats(w->ground.tree, &g, &c);
        if (r < 0 && r != -ENOENT)
                return err_errno(e, r, "look at the group of sandbox '%s'", q->id);
        control_answer(w,
                       &(struct wire_answer){ .call = q->call,
                                              .ticket = q->ticket,
                                              .cpu_usec = c.cpu_usec,
                                              .memory_bytes = c.memory,
                                              .processes = c.processes },
                       NULL);
        return 0;
}

static int open_record(const struct warden *w, const struct ward *x, int *ret_fd)
{
        scoped(fd_closep) int folder = -EBADF;
        int r = ward_folder(w, x, &folder);

        return r == 0 ? state_open_record(folder, ret_fd) : r;
}

/* What is being made is known to who asked for it; what is being destroyed is gone. */
static int call_scan(struct warden *w, const struct incoming *in, struct err *e)
{
        const struct wire_request *q = in->q;
        struct wire_found found[WIRE_PAGE_MAX];
        int records[WIRE_PAGE_MAX];
        struct wire_answer a = { .call = q->call, .ticket = q->ticket, .found = found };
        struct tree_node *n = tree_after(&w->wards, str_from(q->id));
        int r = 0;

        for (; n && a.n_found < WIRE_PAGE_MAX && r == 0; n = tree_after(&w->wards, n->key)) {
                const struct ward *x = container_of(n, struct ward, by_id);

                if (x->phase != WARD_LIVES && x->phase != WARD_ENDED)
                        continue;
                found[a.n_found] = (struct wire_found){ x->id, x->state };
                r = open_record(w, x, &records[a.n_found]);
                a.n_found += r == 0;
        }
        if (r == 0) {
                a.more = n != NULL;
                a.skipped = n ? 0 : w->skipped;
                control_answer(w, &a, records);
                return 0;
        }
        while (a.n_found > 0)
                (void) fd_close(records[--a.n_found]);
        return err_errno(e, r, "read the record of a sandbox");
}

static call_fn *const calls[WIRE_CALL_MAX_] = {
        [WIRE_HELLO] = call_hello, [WIRE_CREATE] = call_create, [WIRE_DESTROY] = call_destroy,
        [WIRE_PAUSE] = call_pause, [WIRE_RESUME] = call_resume, [WIRE_INSPECT] = call_inspect,
        [WIRE_SCAN] = call_scan,   [WIRE_USAGE] = call_usage,
};

/* That change something: who looks disturbs nobody, and is not disturbed. */
static bool is_work(enum wire_call call)
{
        return call == WIRE_CREATE || call == WIRE_DESTROY || call == WIRE_PAUSE
               || call == WIRE_RESUME;
}

void calls_run(struct warden *w, const struct wire_request *q, int *fds)
{
        struct err e;
        int r;

        if (is_work(q->call))
                pool_put_off(w);
        r = calls[q->call](w, &(struct incoming){ q, fds }, &e);

        if (r < 0)
                control_answer(w,
                               &(struct wire_answer){ .call = q->call,
                                                      .ticket = q->ticket,
                                                      .result = r,
                                                      .text = e.message },
                               NULL);
}
