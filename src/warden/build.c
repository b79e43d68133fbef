/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/build.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "os/caps.h"
#include "os/confine.h"
#include "os/fd.h"
#include "os/inside.h"
#include "os/mount.h"
#include "os/netns.h"
#include "os/userns.h"
#include "plan/seccomp.h"
#include "warden/data.h"

static_assert(PLAN_READONLY == MOUNT_READONLY && PLAN_NOSUID == MOUNT_NOSUID
                      && PLAN_NODEV == MOUNT_NODEV && PLAN_NOEXEC == MOUNT_NOEXEC,
              "a plan's attributes are a mount's");

struct failure {
        int step;  /* index into the plan */
        int error; /* negative errno */
};

typedef int step_fn(struct builder *x, const struct plan_step *s);

/* --- places --- */

/* A folder of the sandbox to mount something upon; images need not have it. */
static int place_in_root(const struct builder *x, const char *target, int *ret_fd)
{
        return inside_make_folder(x->root, target, x->order->plan->spec->uid_first, ret_fd);
}

static int open_data(const struct builder *x, const char *path, int *ret_fd)
{
        const struct inside_how how = { .flags = O_PATH | O_NOFOLLOW, .no_links = true };

        return inside_open(x->data, path, &how, ret_fd);
}

static int attach_in_root(const struct builder *x, int fd, const char *target)
{
        scoped(fd_closep) int place = -EBADF;
        int r = place_in_root(x, target, &place);

        return r == 0 ? mount_attach(fd, place) : r;
}

/* --- name --- */

static int do_hostname(struct builder *x, const struct plan_step *s)
{
        (void) x;
        return sethostname(s->name, strlen(s->name)) < 0 ? -errno : 0;
}

/* --- layers --- */

static int open_lower(const struct builder *x, const struct plan_layer *l, int *ret_fd)
{
        static const char *const paths[PLAN_FOLDER_MAX_] = {
                [PLAN_FOLDER_LAYER] = DATA_LAYERS "/",
                [PLAN_FOLDER_HOST_ROOT] = DATA_HOST,
                [PLAN_FOLDER_EMPTY] = DATA_EMPTY,
        };
        char path[sizeof(DATA_LAYERS) + PLAN_LAYER_NAME_MAX + 1];

        if (l->folder == PLAN_FOLDER_HOST_USR) {
                *ret_fd = open("/usr", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                return *ret_fd < 0 ? -errno : 0;
        }
        (void) snprintf(path, sizeof(path), "%s%s", paths[l->folder], l->name ? l->name : "");
        return open_data(x, path, ret_fd);
}

/* A read-only view with the sandbox's owners. Views are put on top of each other in one place, where
 * their descriptors still lead to each of them, and go away with the old root. Kernels before 6.15
 * want them attached; on others it is quicker all the same, because a view that was never attached
 * makes close wait for all processors. */
static int view_lower(const struct builder *x, const struct plan_layer *l, int *ret_fd)
{
        scoped(fd_closep) int folder = -EBADF, view = -EBADF;
        int r = open_lower(x, l, &folder);

        if (r == 0)
                r = mount_view(folder, "", false, &view);
        if (r == 0)
                r = mount_idmap(view, x->ground->userns);
        if (r == 0)
                r = mount_restrict(view, MOUNT_READONLY, false);
        if (r == 0)
                r = mount_attach(view, x->lowers);
        if (r == 0)
                *ret_fd = TAKE_FD(view);
        return r;
}

/* The folders of the sandbox that take its changes. */
static int open_upper(const struct builder *x, struct mount_layers *l)
{
        char path[sizeof(DATA_BOXES) + PLAN_NAME_MAX + 16];
        const char *id = x->order->plan->spec->id;
        int r;

        (void) snprintf(path, sizeof(path), "%s/%s/upper", DATA_BOXES, id);
        r = open_data(x, path, &l->upper);
        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), "%s/%s/work", DATA_BOXES, id);
        return open_data(x, path, &l->work);
}

/* The descriptors of the layers stay open until execve: there is no one to miss them. */
static int do_layers(struct builder *x, const struct plan_step *s)
{
        scoped(fd_closep) int place = -EBADF;
        int lowers[PLAN_LAYERS_MAX], fd = -EBADF, r = 0;
        struct mount_layers l = { lowers, s->n_layers, -EBADF, -EBADF, s->attrs };

        if (s->n_layers > ARRAY_SIZE(lowers))
                return -EINVAL;
        for (size_t i = 0; i < s->n_layers && r == 0; i++)
                r = view_lower(x, &s->layers[i], &lowers[i]);
        if (r == 0 && s->writable)
                r = open_upper(x, &l);
        if (r == 0)
                r = mount_overlay(&l, &fd);
        if (r < 0)
                return r;
        if (x->root >= 0)
                return attach_in_root(x, fd, s->target);
        x->root = fd;
        r = open_data(x, DATA_ROOT, &place);
        return r == 0 ? mount_attach(fd, place) : r;
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
        r = mount_make(&(struct mount_new){ s->name, NULL, options, n, s->attrs }, &fd);
        return r == 0 ? attach_in_root(x, fd, s->target) : r;
}

static int do_shared(struct builder *x, const struct plan_step *s)
{
        scoped(fd_closep) int folder = -EBADF, view = -EBADF;
        int r = open_data(x, DATA_DEVICES, &folder);

        if (r == 0)
                r = mount_view(folder, "", false, &view);
        if (r == 0)
                r = mount_restrict(view, s->attrs, false);
        return r == 0 ? attach_in_root(x, view, s->target) : r;
}

/* What is looked for in there was put there by us: /proc and /sys are mounted by now, and other file
 * systems are not what a plan means. */
static int open_target(const struct builder *x, const char *target, int *ret_fd)
{
        const struct inside_how how = { .flags = O_PATH | O_NOFOLLOW, .no_links = true };
        const bool proc = str_starts_with(str_from(target), STR("/proc/"));
        int r = inside_open(x->root, target, &how, ret_fd);

        return r == 0 ? inside_check_fs(*ret_fd, proc ? PROC_SUPER_MAGIC : SYSFS_MAGIC) : r;
}

static int do_read_only(struct builder *x, const struct plan_step *s)
{
        scoped(fd_closep) int place = -EBADF, view = -EBADF;
        int r = open_target(x, s->target, &place);

        if (r == -ENOENT)
                return 0;
        if (r == 0)
                r = mount_view(place, "", true, &view);
        if (r == 0)
                r = mount_restrict(view, MOUNT_READONLY, true);
        return r == 0 ? mount_attach(view, place) : r;
}

static int do_mask(struct builder *x, const struct plan_step *s)
{
        scoped(fd_closep) int place = -EBADF, mask = -EBADF, view = -EBADF;
        struct stat st;
        int r = open_target(x, s->target, &place);

        if (r == -ENOENT)
                return 0;
        if (r == 0 && fstat(place, &st) < 0)
                r = -errno;
        if (r == 0)
                r = open_data(x,
                              S_ISDIR(st.st_mode) ? DATA_MASKS "/" DATA_MASK_FOLDER
                                                  : DATA_MASKS "/" DATA_MASK_FILE,
                              &mask);
        if (r == 0)
                r = mount_view(mask, "", false, &view);
        return r == 0 ? mount_attach(view, place) : r;
}

static int do_root(struct builder *x, const struct plan_step *s)
{
        (void) s;
        return mount_become_root(x->root);
}

/* --- privileges --- */

static int do_keyring(struct builder *x, const struct plan_step *s)
{
        (void) x;
        (void) s;
        return confine_keyring();
}

static int do_rlimit(struct builder *x, const struct plan_step *s)
{
        static const struct {
                const char *name;
                int resource;
        } names[] = {
                { "core", RLIMIT_CORE },
                { "memlock", RLIMIT_MEMLOCK },
                { "msgqueue", RLIMIT_MSGQUEUE },
                { "nice", RLIMIT_NICE },
                { "nofile", RLIMIT_NOFILE },
                { "rtprio", RLIMIT_RTPRIO },
                { "sigpending", RLIMIT_SIGPENDING },
        };

        (void) x;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                const struct confine_limit l = { names[i].resource, s->number, s->number };

                if (strcmp(names[i].name, s->name) == 0)
                        return confine_limits(&l, 1);
        }
        return -EINVAL;
}

static int do_users(struct builder *x, const struct plan_step *s)
{
        (void) s;
        return userns_enter(x->ground->userns);
}

static int do_caps(struct builder *x, const struct plan_step *s)
{
        (void) x;
        return caps_reduce(s->number);
}

static int do_no_privs(struct builder *x, const struct plan_step *s)
{
        (void) x;
        (void) s;
        return confine_no_new_privs();
}

static int do_filter(struct builder *x, const struct plan_step *s)
{
        (void) x;
        (void) s;
        return confine_filter(seccomp_filter, seccomp_filter_n);
}

/* --- the agent --- */

/* All other descriptors are closed by execve, that of the report among them. */
static int do_execute(struct builder *x, const struct plan_step *s)
{
        int fds[PLAN_FDS], r;

        memcpy(fds, x->order->fds, sizeof(fds));
        r = confine_descriptors(fds, PLAN_FDS);
        if (r < 0)
                return r;
        (void) syscall(SYS_execveat, x->ground->agent, "", s->list.items, x->order->plan->env.items,
                       AT_EMPTY_PATH);
        return -errno;
}

/* --- before the plan --- */

/* A warden that is the last to be killed when memory is short makes no sandboxes that are. Written by
 * root, it is also the least that the sandbox can set. */
static int be_killed_like_others(void)
{
        scoped(fd_closep) int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
        char first;

        if (fd < 0 || pread(fd, &first, 1, 0) < 0)
                return -errno;
        return first == '-' && pwrite(fd, "0", 1, 0) < 0 ? -errno : 0;
}

/* Handlers of the warden mean nothing in here, and what it ignores or blocks would stay so across
 * execve. */
static void forget_parent(void)
{
        sigset_t none;

        for (int sig = 1; sig < NSIG; sig++)
                (void) signal(sig, SIG_DFL);
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) umask(022);
        (void) setsid();
}

/* Descriptors from before lead to the parent's mounts, which older kernels make no views of: the
 * data folder is opened anew. */
int build_prepare(struct builder *x, const struct build_ground *g)
{
        int r = netns_enter(g->netns);

        *x = (struct builder){ g, NULL, -EBADF, -EBADF, -EBADF };
        forget_parent();
        if (r == 0)
                r = be_killed_like_others();
        if (r == 0 && g->tree)
                r = cgroup_join(g->tree, g->group);
        if (r == 0 && unshare(CLONE_NEWCGROUP) < 0)
                r = -errno;
        if (r == 0)
                r = mount_isolate();
        if (r < 0)
                return r;
        x->data = open(g->data, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return x->data < 0 ? -errno : open_data(x, DATA_LOWERS, &x->lowers);
}

/* --- the plan --- */

static step_fn *const steps[PLAN_STEP_MAX_] = {
        [PLAN_HOSTNAME] = do_hostname,   [PLAN_LAYERS] = do_layers,
        [PLAN_MOUNT] = do_mount,         [PLAN_SHARED] = do_shared,
        [PLAN_READ_ONLY] = do_read_only, [PLAN_MASK] = do_mask,
        [PLAN_ROOT] = do_root,           [PLAN_KEYRING] = do_keyring,
        [PLAN_RLIMIT] = do_rlimit,       [PLAN_USERS] = do_users,
        [PLAN_CAPS] = do_caps,           [PLAN_NO_PRIVS] = do_no_privs,
        [PLAN_FILTER] = do_filter,       [PLAN_EXECUTE] = do_execute,
};

void build_execute(struct builder *x, const struct build_order *o)
{
        struct failure f = { PLAN_PREPARED, -ENOEXEC };

        x->order = o;
        for (; f.step < (int) o->plan->n; f.step++) {
                const struct plan_step *s = &o->plan->steps[f.step];

                f.error = steps[s->kind] ? steps[s->kind](x, s) : -EINVAL;
                if (f.error < 0)
                        break;
        }
        _exit(write(o->report, &f, sizeof(f)) == sizeof(f) ? 1 : 2);
}

int build_wait(int report, int *ret_step)
{
        struct failure f;
        ssize_t n;

        do
                n = read(report, &f, sizeof(f));
        while (n < 0 && errno == EINTR);
        if (n == 0)
                return 0;
        if (n < 0)
                return -errno;
        if (n != sizeof(f) || f.error >= 0)
                return -EBADMSG;
        *ret_step = f.step;
        return f.error;
}
