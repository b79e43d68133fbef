/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/build.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "os/confine.h"
#include "os/fd.h"
#include "os/in_root.h"
#include "os/mount.h"
#include "os/netns.h"
#include "os/userns.h"
#include "plan/seccomp.h"
#include "warden/build_impl.h"
#include "warden/data.h"
#include "warden/etc.h"

static_assert(PLAN_READONLY == MOUNT_READONLY && PLAN_NOSUID == MOUNT_NOSUID
                      && PLAN_NODEV == MOUNT_NODEV && PLAN_NOEXEC == MOUNT_NOEXEC,
              "the attributes of a plan are those of a mount");

/* That the plan is complete, and that execve has failed. */
#define REPORTS_MAX 2

struct report {
        int step;  /* of the plan */
        int error; /* negative errno; 0: complete except execve */
};

static int send_report(int report, int step, int error)
{
        const struct report r = { step, error };

        return write(report, &r, sizeof(r)) == sizeof(r) ? 0 : -EPIPE;
}

/* --- paths --- */

int build__open_data(const struct builder *x, const char *path, int *ret_fd)
{
        const struct in_root_how how = { .flags = O_PATH | O_NOFOLLOW, .no_symlinks = true };

        return in_root_open(x->data, path, &how, ret_fd);
}

/* The mount point is made if the image does not have it. */
static int attach_in_root(const struct builder *x, int fd, const char *target)
{
        scoped(fd_closep) int place = -EBADF;
        int r = in_root_mkdirs(x->root, target, x->ctx->uid_first, &place);

        return r == 0 ? mount_attach(fd, place) : r;
}

/* --- name --- */

/* The NIS domain name would otherwise be the host's. */
static int do_hostname(struct builder *x, const struct plan_step *s)
{
        static const char none[] = "(none)";
        const bool has_network = x->order->plan->spec->network != PLAN_NETWORK_NONE;
        const struct etc e = { s->name, has_network && x->ctx->resolv ? x->ctx->resolv : "" };

        if (sethostname(s->name, strlen(s->name)) < 0 || setdomainname(none, strlen(none)) < 0)
                return -errno;
        return etc_write(x->root, &e);
}

/* --- layers --- */

/* A read-only clone of a layer, idmapped to the sandbox's uids; not of the host's /usr: owned by the sandbox's root, files
 * that only the host's root may read would be open to it. Clones are stacked on one mount point, where their
 * descriptors still refer to each of them, and go away with the old root. Kernels before 6.15 require layers to
 * be attached; on others it is still faster, because close waits for an RCU grace period for a clone that was
 * never attached. */
static int view_lower(const struct builder *x, const struct plan_layer *l, int *ret_fd)
{
        static const char *const paths[PLAN_LOWER_MAX_] = {
                [PLAN_LOWER_LAYER] = DATA_LAYERS "/",
                [PLAN_LOWER_HOST_ROOT] = DATA_HOST,
                [PLAN_LOWER_EMPTY] = DATA_EMPTY,
        };
        const bool usr = l->dir == PLAN_LOWER_HOST_USR;
        scoped(fd_closep) int dir = -EBADF, view = -EBADF;
        char path[sizeof(DATA_LAYERS) + PLAN_LAYER_NAME_MAX + 1];
        int r;

        if (usr) {
                dir = open("/" DATA_STAGE_USR, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = dir < 0 ? -errno : 0;
        } else {
                (void) snprintf(path, sizeof(path), "%s%s", paths[l->dir], l->name ? l->name : "");
                r = build__open_data(x, path, &dir);
        }
        if (r == 0)
                r = mount_clone(dir, "", false, &view);
        if (r == 0 && !usr)
                r = mount_idmap(view, x->ctx->userns);
        if (r == 0)
                r = mount_set_attrs(view, MOUNT_READONLY, false);
        if (r == 0)
                r = mount_attach(view, x->lowers);
        if (r == 0)
                *ret_fd = TAKE_FD(view);
        return r;
}

/* The first layers are the rootfs. The descriptors of the layers stay open until execve. */
static int do_layers(struct builder *x, const struct plan_step *s)
{
        int lowers[PLAN_LAYERS_MAX], fd = -EBADF, r = 0;
        struct mount_overlay_spec l = { lowers, s->n_layers, s->writable ? x->upper : -EBADF,
                                        s->writable ? x->work : -EBADF, s->attrs };
        scoped(fd_closep) int place = -EBADF;

        if (s->n_layers > ARRAY_SIZE(lowers))
                return -EINVAL;
        for (size_t i = 0; i < s->n_layers && r == 0; i++)
                r = view_lower(x, &s->layers[i], &lowers[i]);
        if (r == 0)
                r = mount_overlay(&l, &fd);
        if (r < 0)
                return r;
        if (x->root >= 0)
                return attach_in_root(x, fd, s->target);
        x->root = fd;
        place = open("/" DATA_STAGE_ROOT, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return place < 0 ? -errno : mount_attach(x->root, place);
}

/* --- mounts --- */

static int do_mount(struct builder *x, const struct plan_step *s)
{
        scoped(fd_closep) int fd = -EBADF;
        struct mount_option options[PLAN_OPTIONS_MAX];
        size_t n = 0;
        int r;

        for (; n < PLAN_OPTIONS_MAX && s->options[n].key; n++)
                options[n] = (struct mount_option){ s->options[n].key, s->options[n].value };
        r = mount_new_fs(&(struct mount_fs_spec){ s->name, NULL, options, n, s->attrs }, &fd);
        return r == 0 ? attach_in_root(x, fd, s->target) : r;
}

static int do_tree(struct builder *x, const struct plan_step *s)
{
        scoped(fd_closep) int dir = -EBADF, view = -EBADF;
        int r = build__open_data(x, DATA_DEVICES, &dir);

        if (r == 0)
                r = mount_clone(dir, "", false, &view);
        if (r == 0)
                r = mount_set_attrs(view, s->attrs, false);
        return r == 0 ? attach_in_root(x, view, s->target) : r;
}

/* Covers a target in /proc or /sys, which are mounted by now, with what the step says; any other file system is
 * refused. What the kernel does not have needs no cover. */
static int do_cover(struct builder *x, const struct plan_step *s)
{
        const struct in_root_how how = { .flags = O_PATH | O_NOFOLLOW, .no_symlinks = true };
        const bool proc = str_starts_with(str_from(s->target), STR("/proc/"));
        scoped(fd_closep) int place = -EBADF, mask = -EBADF, cover = -EBADF;
        struct stat st;
        int r = s->kind == PLAN_CGROUP_MOUNT && !x->groups ? -ENOENT : 0;

        if (r == 0)
                r = in_root_open(x->root, s->target, &how, &place);
        if (r == 0)
                r = in_root_check_fs(place, proc ? PROC_SUPER_MAGIC : SYSFS_MAGIC);
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (s->kind == PLAN_READ_ONLY) {
                r = mount_clone(place, "", true, &cover);
                if (r == 0)
                        r = mount_set_attrs(cover, MOUNT_READONLY, true);
        } else if (s->kind == PLAN_MASK) {
                if (fstat(place, &st) < 0)
                        return -errno;
                r = build__open_data(x,
                                     S_ISDIR(st.st_mode) ? DATA_MASKS "/" DATA_MASK_DIR
                                                         : DATA_MASKS "/" DATA_MASK_FILE,
                                     &mask);
                if (r == 0)
                        r = mount_clone(mask, "", false, &cover);
        } else {
                cover = open("/" DATA_STAGE_GROUPS, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                r = cover < 0 ? -errno : 0;
        }
        return r == 0 ? mount_attach(cover, place) : r;
}

/* --- the plan --- */

int build__step(struct builder *x, const struct plan_step *s)
{
        switch (s->kind) {
        case PLAN_LAYERS:
                return do_layers(x, s);
        case PLAN_MOUNT:
                return do_mount(x, s);
        case PLAN_TREE:
                return do_tree(x, s);
        case PLAN_READ_ONLY:
        case PLAN_MASK:
        case PLAN_CGROUP_MOUNT:
                return do_cover(x, s);
        case PLAN_NETWORK:
                return netns_enter(x->order->netns);
        case PLAN_HOSTNAME:
                return do_hostname(x, s);
        case PLAN_ROOT:
                return mount_over_root(x->root, x->ns_root, x->stage);
        case PLAN_KEYRING:
                return confine_keyring();
        case PLAN_RLIMIT:
                return confine_limit(s->name, s->soft, s->number);
        case PLAN_USERNS:
                return userns_enter(x->ctx->userns);
        case PLAN_CAPS:
                return caps_reduce(s->number);
        case PLAN_NO_NEW_PRIVS:
                return confine_no_new_privs();
        case PLAN_SECCOMP:
                return confine_seccomp(seccomp_filter, seccomp_filter_n);
        case PLAN_CGROUP_JOIN: /* these three by build_prepare */
        case PLAN_CGROUP_NS:
        case PLAN_ISOLATE:
        case PLAN_EXEC: /* by build_execute */
        case PLAN_STEP_MAX_:
        case PLAN_STEP_INVALID:
        default:
                return -EINVAL;
        }
}

/* A rootfs that was pre-built for another image goes. Nothing was written to it, so nothing remains in the directories
 * of the sandbox.
 *
 * The last step is to execute the agent; execve closes all other descriptors. It does not matter whether the report
 * before it is read: a sandbox outlives its warden, and the first process of a pid namespace gets no SIGPIPE it has not
 * asked for. */
void build_execute(struct builder *x, const struct build_order *o)
{
        const struct plan_step *last = &o->plan->steps[o->plan->n - 1];
        int fds[PLAN_FDS], r = last->kind == PLAN_EXEC ? 0 : -ENOEXEC;
        const struct plan_step *s;

        x->order = o;
        memcpy(fds, o->fds, sizeof(fds));
        if (x->done > o->plan->ahead) {
                x->done = PLAN_PREPARED;
                x->root = fd_close(x->root);
                if (umount2("/" DATA_STAGE_ROOT, MNT_DETACH) < 0
                    || unlinkat(x->upper, BUILD_WORKSPACE, AT_REMOVEDIR) < 0)
                        r = -errno;
        }
        s = &o->plan->steps[x->done];
        for (; r == 0 && s < last; s += r == 0)
                r = build__step(x, s);
        if (r == 0) {
                (void) send_report(o->fds[PLAN_FD_READY], (int) (s - o->plan->steps), 0);
                r = confine_descriptors(fds, PLAN_FDS);
        }
        if (r == 0) {
                (void) syscall(SYS_execveat, x->ctx->agent, "", last->list.items,
                               o->plan->env.items, AT_EMPTY_PATH);
                r = -errno;
        }
        _exit(send_report(o->fds[PLAN_FD_READY], (int) (s - o->plan->steps), r) == 0 ? 1 : 2);
}

void build_give_up(int report, int error)
{
        _exit(send_report(report, BUILD_NOWHERE, error) == 0 ? 1 : 2);
}

/* Of the builder's reports the last one counts: that it is complete, unless execve failed. The rest is from inside the
 * sandbox. */
int build_wait(int report, int *ret_step)
{
        struct report last = { BUILD_NOWHERE, -ECHILD }, next;
        ssize_t n = 0;

        for (int i = 0; i <= REPORTS_MAX; i++) {
                do
                        n = read(report, &next, sizeof(next));
                while (n < 0 && errno == EINTR);
                if (n != sizeof(next))
                        break;
                last = next;
        }
        if (n < 0)
                return -errno;
        if (n > 1 || last.error > 0 || (n == 1 && last.error < 0))
                return -EBADMSG;
        if (last.error < 0)
                *ret_step = last.step;
        return last.error < 0 ? last.error : n == 1 ? BUILD_READY : BUILD_EXECUTED;
}
