/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "warden/data.h"
#include "warden/warden_impl.h"

typedef int name_fn(struct warden *w, const char *name);

static int for_each_name(struct warden *w, int dir, name_fn *fn)
{
        int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;

        if (!d) {
                r = -errno;
                (void) fd_close(fd);
                return r;
        }
        while (r == 0 && (entry = readdir(d)))
                if (entry->d_name[0] != '.')
                        r = fn(w, entry->d_name);
        (void) closedir(d);
        return r;
}

/* --- sandboxes --- */

/* One that is on its way to be frozen is none: who asked for it is asked again, or has ended. */
static bool is_frozen(const struct warden *w, const struct instance *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;

        if (instance_cgroup(w, x, &g) < 0)
                return false;
        if (cgroup_is_frozen(&g) > 0)
                return true;
        if (cgroup_freeze(&g, false) < 0)
                log_warn(w->log, "sandbox '%s' may come to a stop by itself", x->id);
        return false;
}

static int find_process(struct warden *w, struct instance *x, int dir,
                        const struct instance_state *s)
{
        int r = state_read_end(dir, &x->state);

        if (r == 0) {
                x->phase = INSTANCE_EXITED;
                return 0;
        }
        if (r != -ENOENT)
                return r;
        r = state_adopt(s, &x->zygote.pidfd);
        if (r == -ESRCH) {
                x->phase = INSTANCE_EXITED;
                x->state = (struct instance_status){ RUNTIME_DEAD, WARDEN_EXIT_LOST, 0 };
                return state_write_end(dir, &x->state);
        }
        if (r < 0)
                return r;
        x->phase = INSTANCE_RUNNING;
        x->zygote.pid = s->pid;
        x->net.kind = (enum netns_kind) s->network;
        x->net.index = s->net_index;
        x->has_net = true;
        if (is_frozen(w, x))
                x->state.status = RUNTIME_PAUSED;
        return instance_watch(w, x);
}

/* One whose uids somebody has already is not what it says, and is left as it is. */
static int adopt_complete(struct warden *w, const char *id, int dir,
                          const struct instance_state *s)
{
        struct instance *x;
        int r;

        if (!uids_take(w, s->uid_first)) {
                log_warn(w->log, "sandbox '%s' has the uids of another one", id);
                w->skipped++;
                return 0;
        }
        x = instance_new(w, id);
        x->zygote.uid_first = s->uid_first;
        x->limited = s->memory > 0;
        r = find_process(w, x, dir, s);
        if (r < 0)
                instance_free(w, x);
        return r;
}

static int adopt_sandbox(struct warden *w, const char *id)
{
        scoped(fd_closep) int dir = -EBADF;
        struct instance_state s = { 0 };
        int r;

        if (!plan_spec_is_id(id)) {
                w->skipped++;
                return 0;
        }
        dir = openat(w->sandboxes, id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = dir < 0 ? -errno : state_read(dir, &w->config->uids, &s);
        if (r == -EBADMSG)
                return janitor_trash(w, w->sandboxes, id);
        if (r == 0)
                r = adopt_complete(w, id, dir, &s);
        return r;
}

/* --- seeds --- */

/* They have ended with their warden, or are about to. */
static int sweep_zygote(struct warden *w, const char *name)
{
        scoped(fd_closep) int seeds =
                openat(w->ctx.data, DATA_ZYGOTES, O_PATH | O_DIRECTORY | O_CLOEXEC);

        return seeds < 0 ? -errno : janitor_trash(w, seeds, name);
}

static int sweep_zygotes(struct warden *w)
{
        scoped(fd_closep) int seeds =
                openat(w->ctx.data, DATA_ZYGOTES, O_PATH | O_DIRECTORY | O_CLOEXEC);

        return seeds < 0 ? -errno : for_each_name(w, seeds, sweep_zygote);
}

/* --- groups --- */

/* Of seeds, and of sandboxes that had not come so far as to be written down, or were half removed. */
static int sweep_group(struct warden *w, const char *name)
{
        const struct plan_uids *u = &w->config->uids;
        struct instance *x;
        uint64_t first;

        if (name[0] != 'u' || parse_u64_max(str_from(name + 1), UINT32_MAX, &first) < 0
            || first < u->base || (first - u->base) % PLAN_UIDS != 0
            || (first - u->base) / PLAN_UIDS >= u->ranges || !uids_take(w, (uint32_t) first))
                return 0;
        x = instance_new(w, "");
        x->zygote.uid_first = (uint32_t) first;
        instance_destroy(w, x);
        return 0;
}

int adopt_all(struct warden *w, struct err *e)
{
        int r = for_each_name(w, w->sandboxes, adopt_sandbox);

        if (r < 0)
                return err_errno(e, r, "take over sandboxes");
        for (int i = 0; w->ctx.tree && i < CGROUP_PART_MAX_ && r == 0; i++)
                if (w->tree.dirs[i] >= 0)
                        r = for_each_name(w, w->tree.dirs[i], sweep_group);
        if (r < 0)
                return err_errno(e, r, "look for old cgroups");
        r = sweep_zygotes(w);
        if (r < 0)
                return err_errno(e, r, "look for old seeds");
        if (w->instances.n > 0)
                log_info(w->log, "took over %zu sandboxes", w->instances.n);
        janitor_start(w);
        return 0;
}
