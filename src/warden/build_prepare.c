/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/build.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/in_root.h"
#include "os/mount.h"
#include "os/walk.h"
#include "warden/build_impl.h"
#include "warden/data.h"
#include "warden/etc.h"

void build_name(uint32_t uid_first, char ret[static BUILD_NAME_MAX])
{
        (void) snprintf(ret, BUILD_NAME_MAX, "u%u", uid_first);
}

/* --- the process --- */

/* A warden that is protected from the OOM killer must not pass that on. Set by root, this is also the lowest value
 * the sandbox can set. */
static int reset_oom_score(void)
{
        scoped(fd_closep) int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
        char first;

        if (fd < 0 || pread(fd, &first, 1, 0) < 0)
                return -errno;
        return first == '-' && pwrite(fd, "0", 1, 0) < 0 ? -errno : 0;
}

/* Ignored and blocked signals would stay so across execve. */
static void reset_signals(void)
{
        sigset_t none;

        for (int sig = 1; sig < NSIG; sig++)
                (void) signal(sig, SIG_DFL);
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) umask(022);
        (void) setsid();
}

/* --- a small tree instead of the host's --- */

static int attach_at(int fd, int dir, const char *name)
{
        scoped(fd_closep) int place =
                openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return place < 0 ? -errno : mount_attach(fd, place);
}

/* Clones the data directory, with what is mounted below it, before anything is mounted there. */
static int attach_stage(int data, int ctx, int *ret_stage)
{
        scoped(fd_closep) int stage = -EBADF, clone = -EBADF, usr = -EBADF, proc = -EBADF;
        int r = mount_clone(data, "", true, &clone);

        if (r == 0)
                r = mount_clone(data, DATA_STAGE, false, &stage);
        if (r == 0)
                r = attach_at(ctx, data, DATA_NS_ROOT);
        if (r == 0)
                r = attach_at(stage, ctx, DATA_NS_ROOT_STAGE);
        if (r == 0)
                r = attach_at(clone, stage, DATA_STAGE_DATA);
        if (r == 0)
                r = mount_clone(AT_FDCWD, "/usr", false, &usr);
        if (r == 0)
                r = attach_at(usr, stage, DATA_STAGE_USR);
        if (r == 0)
                r = mount_new_fs(&(struct mount_fs_spec){ .type = "proc", .attrs = MOUNT_SAFE },
                                 &proc);
        if (r == 0)
                r = attach_at(proc, stage, DATA_STAGE_PROC);
        if (r == 0)
                *ret_stage = TAKE_FD(stage);
        return r;
}

/* Older kernels clone only mounts of the current namespace: directories that were opened before are opened again,
 * and once more after the change of root. */
static int leave_host_root(struct builder *x, const char *data)
{
        scoped(fd_closep) int old = open(data, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int r = old < 0 ? -errno : mount_clone(old, DATA_NS_ROOT, false, &x->ns_root);

        if (r == 0)
                r = mount_set_attrs(x->ns_root, MOUNT_SAFE | MOUNT_READONLY, false);
        if (r == 0)
                r = attach_stage(old, x->ns_root, &x->stage);
        if (r == 0)
                r = mount_pivot_root(x->ns_root);
        if (r == 0 && (fchdir(x->stage) < 0 || chroot(".") < 0))
                r = -errno;
        if (r < 0)
                return r;
        x->data = open("/" DATA_STAGE_DATA, O_PATH | O_DIRECTORY | O_CLOEXEC);
        x->lowers = open("/" DATA_STAGE_LOWERS, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return x->data < 0 || x->lowers < 0 ? -errno : 0;
}

/* --- its cgroups --- */

static int open_mount_point(const char *path)
{
        int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        return fd < 0 ? -errno : fd;
}

static int attach_hierarchy(const struct mount_fs_spec *m, const char *path)
{
        scoped(fd_closep) int fd = -EBADF, place = -EBADF;
        int r = mount_new_fs(m, &fd);

        if (r < 0)
                return r;
        place = open_mount_point(path);
        return place < 0 ? place : mount_attach(fd, place);
}

#define GROUPS "/" DATA_STAGE_GROUPS

static const enum cgroup_part visible[] = { CGROUP_MEMORY, CGROUP_CPU };

/* For cgroup v1, while the host's tree is still there: clones of the directories of its cgroups. Mounting the
 * hierarchy would show the same, but makes the kernel visit every cgroup of the host. */
static void view_groups(const struct build_context *g, int views[static ARRAY_SIZE(visible)])
{
        char name[BUILD_NAME_MAX];

        build_name(g->uid_first, name);
        for (size_t i = 0; i < ARRAY_SIZE(visible); i++) {
                scoped(fd_closep) int dir = -EBADF, view = -EBADF;

                views[i] = -EBADF;
                dir = g->tree ? cgroup_open_v1(g->tree, visible[i], name) : -EBADF;
                if (dir >= 0 && mount_clone(dir, "", false, &view) == 0
                    && mount_set_attrs(view, MOUNT_SAFE | MOUNT_READONLY, false) == 0)
                        views[i] = TAKE_FD(view);
        }
}

/* Of v2 only the commands: the agent is beside them. The namespace's root stays mounted below. */
static int attach_commands(const char *path)
{
        const struct mount_fs_spec unified = { .type = "cgroup2",
                                               .attrs = MOUNT_SAFE | MOUNT_READONLY };
        scoped(fd_closep) int root = -EBADF, view = -EBADF;
        int r = attach_hierarchy(&unified, path);

        if (r < 0)
                return r;
        root = open_mount_point(path);
        r = root < 0 ? root : mount_clone(root, "commands", false, &view);
        return r == 0 ? mount_attach(view, root) : r;
}

static int attach_v1(const struct builder *x, int views[static ARRAY_SIZE(visible)])
{
        scoped(fd_closep) int from = -EBADF, place = -EBADF, view = -EBADF;
        int r = build__open_data(x, DATA_GROUPS, &from);

        if (r == 0)
                r = mount_clone(from, "", false, &view);
        if (r < 0)
                return r;
        place = open_mount_point(GROUPS);
        r = place < 0 ? place : mount_attach(view, place);
        for (size_t i = 0; i < ARRAY_SIZE(visible) && r == 0; i++) {
                scoped(fd_closep) int to = -EBADF;
                char path[PATH_MAX];

                if (views[i] < 0)
                        continue;
                (void) snprintf(path, sizeof(path), GROUPS "/%s",
                                x->ctx->tree->v1_names[visible[i]]);
                to = open_mount_point(path);
                (void) (to < 0 ? to : mount_attach(views[i], to));
        }
        if (r == 0)
                (void) attach_commands(GROUPS "/unified");
        return r;
}

/* --- the sandbox's directory --- */

/* A directory of this name is that of a zygote with this uid range that was killed with its warden; no sandbox has
 * used it. The upper directory is the top of the sandbox's rootfs, so it belongs to its root.
 *
 * The workspace is made here and not in the image "host": the kernel would copy the directory up when the first file is
 * created in it, with blocks that are charged to the sandbox's cgroup, and look up every name in the image, too. */
static int make_dirs(struct builder *x)
{
        const uid_t owner = x->ctx->uid_first;
        scoped(fd_closep) int zygotes = -EBADF, dir = -EBADF;
        char name[BUILD_NAME_MAX];
        int r = build__open_data(x, DATA_ZYGOTES, &zygotes);

        build_name(owner, name);
        if (r == 0 && mkdirat(zygotes, name, 0700) < 0)
                r = -errno;
        if (r == -EEXIST) {
                r = walk_remove_all(zygotes, name);
                if (r == 0 && mkdirat(zygotes, name, 0700) < 0)
                        r = -errno;
        }
        if (r < 0)
                return r;
        dir = openat(zygotes, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0 || mkdirat(dir, "upper", 0755) < 0 || mkdirat(dir, "work", 0700) < 0
            || fchownat(dir, "upper", owner, owner, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        x->upper = openat(dir, "upper", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        x->work = openat(dir, "work", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (x->upper < 0 || x->work < 0)
                return -errno;
        if (x->ctx->host
            && (mkdirat(x->upper, BUILD_WORKSPACE, 0755) < 0
                || fchownat(x->upper, BUILD_WORKSPACE, owner, owner, AT_SYMLINK_NOFOLLOW) < 0))
                return -errno;
        return etc_make(x->upper, owner);
}

/* --- the first steps --- */

/* For a spec with nothing but the uid range: these steps are the same in all plans of the image "host". */
static int build_ahead(struct builder *x)
{
        const struct plan_spec spec = { .id = "",
                                        .hostname = "",
                                        .workspace = "",
                                        .image = PLAN_IMAGE_HOST,
                                        .uid_first = x->ctx->uid_first };
        static struct plan plan;
        struct arena arena;
        int r;

        arena_init(&arena, MiB);
        r = plan_make(&spec, &arena, &plan);
        for (; r == 0 && x->done < plan.ahead; x->done += r == 0)
                r = build__step(x, &plan.steps[x->done]);
        arena_done(&arena);
        return r;
}

/* After all disk access: the kernel keeps a removed memory cgroup as long as it caches a page of a directory that was
 * first accessed from it, and everything that visits cgroups visits those as well.
 *
 * The cgroups of its commands are mounted, read-only, and only those, because it has a cgroup namespace: its programs,
 * and the agent, see their limits and not the host's. What can't be mounted is not visible. */
static int join_groups(struct builder *x, int views[static ARRAY_SIZE(visible)])
{
        const struct build_context *g = x->ctx;
        int r = g->tree ? cgroup_join(g->agent_group) : 0;

        if (r == 0 && setns(g->cgroupns, CLONE_NEWCGROUP) < 0)
                r = -errno;
        if (r < 0)
                return r;
        if (g->tree)
                x->groups =
                        (g->tree->unified_controls ? attach_commands(GROUPS) : attach_v1(x, views))
                        == 0;
        for (size_t i = 0; i < ARRAY_SIZE(visible); i++)
                (void) fd_close(views[i]);
        return 0;
}

/* The agent finds null in place of what the host does not have. */
static int open_agent_fds(struct builder *x)
{
        const struct build_context *g = x->ctx;
        int r = g->tree ? cgroup_agent_fds(g->tree, g->group, x->cgroup) : 0;

        for (size_t i = 0; i < CGROUP_AGENT_FDS && r == 0; i++)
                if (x->cgroup[i] < 0) {
                        x->cgroup[i] = openat(x->data, DATA_DEVICES "/null", O_RDONLY | O_CLOEXEC);
                        r = x->cgroup[i] < 0 ? -errno : 0;
                }
        return r;
}

int build_prepare(struct builder *x, const struct build_context *g)
{
        int views[ARRAY_SIZE(visible)], r;

        *x = BUILDER_NULL;
        x->ctx = g;
        x->done = PLAN_PREPARED;
        reset_signals();
        r = reset_oom_score();
        if (r == 0)
                r = mount_make_private();
        if (r < 0)
                return r;
        view_groups(g, views);
        r = leave_host_root(x, g->data);
        if (r == 0)
                r = data_mount_trees(x->data);
        if (r == 0)
                r = make_dirs(x);
        if (r == 0 && g->host)
                r = build_ahead(x);
        if (r == 0)
                r = open_agent_fds(x);
        /* On failure the process exits, which closes all descriptors. */
        return r == 0 ? join_groups(x, views) : r;
}
