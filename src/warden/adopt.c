/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/walk.h"
#include "warden/data.h"
#include "warden/warden_impl.h"

/* --- instances --- */

/* An instance that is still freezing is thawed: the pause failed with the warden that began it. */
static bool is_frozen(const struct warden *w, const struct instance *x)
{
        scoped(cgroup_close) struct cgroup g = CGROUP_NULL;

        if (instance_cgroup(w, x, &g) < 0)
                return false;
        if (cgroup_is_frozen(&g) > 0)
                return true;
        if (cgroup_freeze(&g, false) < 0)
                log_warn(w->log, "sandbox '%s' may freeze by itself", x->id);
        return false;
}

static int find_process(struct warden *w, struct instance *x, int dir,
                        const struct instance_state *s)
{
        int r = state_read_end(dir, &x->status);

        if (r == 0) {
                x->phase = INSTANCE_EXITED;
                return 0;
        }
        if (r != -ENOENT)
                return r;
        r = state_adopt(s, &x->zygote.pidfd);
        if (r == -ESRCH) {
                x->phase = INSTANCE_EXITED;
                x->status = (struct instance_status){ RUNTIME_DEAD, WARDEN_EXIT_LOST, 0 };
                return state_write_end(dir, &x->status);
        }
        if (r < 0)
                return r;
        x->phase = INSTANCE_RUNNING;
        x->zygote.pid = s->pid;
        x->net.kind = (enum netns_kind) s->network;
        x->net.index = s->net_index;
        x->has_net = true;
        if (is_frozen(w, x))
                x->status.status = RUNTIME_PAUSED;
        return instance_watch(w, x);
}

/* A directory without a valid state is an incomplete create, which has never run. One whose uid range is
 * in use is not what it claims to be, and is left alone. */
static int adopt_sandbox(void *data, const char *id)
{
        struct warden *w = data;
        scoped(fd_closep) int dir = -EBADF;
        struct instance_state s = { 0 };
        struct instance *x;
        int r;

        if (id[0] == '.')
                return 0;
        if (!plan_spec_is_id(id)) {
                w->skipped++;
                return 0;
        }
        dir = openat(w->sandboxes, id, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = dir < 0 ? -errno : state_read(dir, &w->config->uids, &s);
        if (r < 0)
                return r == -EBADMSG ? janitor_trash(w, w->sandboxes, id) : r;
        if (!uids_take(w, s.uid_first)) {
                log_warn(w->log, "sandbox '%s' has the uid range of another one", id);
                w->skipped++;
                return 0;
        }
        x = instance_new(w, id);
        x->zygote.uid_first = s.uid_first;
        x->memory_limited = s.memory > 0;
        x->cpu_limited = s.cpu_millis > 0;
        r = find_process(w, x, dir, &s);
        if (r < 0)
                instance_free(w, x);
        return r;
}

/* --- remains --- */

/* Zygotes exit with their warden. */
static int sweep_zygote(void *data, const char *name)
{
        struct warden *w = data;
        scoped(fd_closep) int zygotes =
                openat(w->ctx.data, DATA_ZYGOTES, O_PATH | O_DIRECTORY | O_CLOEXEC);

        return zygotes < 0 ? -errno : janitor_trash(w, zygotes, name);
}

/* A cgroup of ours without an instance: a zygote, a create that was not complete, or a destroy. */
static int sweep_cgroup(void *data, const char *name)
{
        struct warden *w = data;
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
        int r = walk_names(w->sandboxes, ".", adopt_sandbox, w);

        if (r < 0)
                return err_errno(e, r, "adopt sandboxes");
        for (int i = 0; w->ctx.tree && i < CGROUP_PART_MAX_ && r == 0; i++)
                if (w->tree.dirs[i] >= 0)
                        r = walk_names(w->tree.dirs[i], ".", sweep_cgroup, w);
        if (r < 0)
                return err_errno(e, r, "list old cgroups");
        r = walk_names(w->ctx.data, DATA_ZYGOTES, sweep_zygote, w);
        if (r < 0)
                return err_errno(e, r, "list old zygotes");
        if (w->instances.n > 0)
                log_info(w->log, "adopted %zu sandboxes", w->instances.n);
        janitor_start(w);
        return 0;
}
