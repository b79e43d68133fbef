/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/warden.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/confine.h"
#include "os/disk.h"
#include "os/fd.h"
#include "os/host.h"
#include "os/in_root.h"
#include "os/mount.h"
#include "os/memfd.h"
#include "os/virtual_file.h"
#include "os/walk.h"
#include "plan/seccomp.h"
#include "warden/data.h"
#include "warden/host_image.h"
#include "warden/warden_impl.h"

#define HOST_FRESH  "host.fresh" /* until it is complete */
#define RESERVE_MIN (512 * MiB)  /* of memory, for the host */
#define TICK_MAX    100          /* milliseconds between two polls of an instance */

/* --- event sources --- */

int source_add(struct warden *w, struct source *s, int fd, uint32_t events,
               void (*ready)(struct warden *w, struct source *s))
{
        struct epoll_event ev = { .events = events, .data.ptr = s };

        if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
                return -errno;
        *s = (struct source){ ready, fd };
        return 0;
}

void source_remove(struct warden *w, struct source *s)
{
        if (s->fd >= 0)
                (void) epoll_ctl(w->epoll, EPOLL_CTL_DEL, s->fd, NULL);
        s->fd = -EBADF;
}

/* --- the image "host" --- */

static int found_entry(void *data, const char *name)
{
        (void) data;
        (void) name;
        return 1;
}

static bool is_empty(int at, const char *name)
{
        return walk_names(at, name, found_entry, NULL) == 0;
}

/* Takes its name when it is complete. Installing a library renews the cache of the dynamic linker: then the image is
 * outdated. Not replaced while there are sandboxes, which use it. */
static int make_host_image(struct warden *w)
{
        scoped(fd_closep) int host = -EBADF, image = -EBADF;
        struct stat made, cache;
        int r = 0;

        if (!is_empty(w->ctx.data, DATA_HOST)) {
                if (fstatat(w->ctx.data, DATA_HOST, &made, AT_SYMLINK_NOFOLLOW) < 0
                    || stat("/etc/ld.so.cache", &cache) < 0
                    || cache.st_mtim.tv_sec <= made.st_mtim.tv_sec
                    || !is_empty(w->ctx.data, DATA_SANDBOXES))
                        return 0;
                r = janitor_trash(w, w->ctx.data, DATA_HOST);
        }
        if (r == 0)
                r = janitor_trash(w, w->ctx.data, HOST_FRESH);
        if (r == 0 && mkdirat(w->ctx.data, HOST_FRESH, 0755) < 0)
                r = -errno;
        if (r < 0)
                return r;
        host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        image = openat(w->ctx.data, HOST_FRESH, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = host < 0 || image < 0 ? -errno : host_image_fill(host, image);
        if (r == 0 && renameat(w->ctx.data, HOST_FRESH, w->ctx.data, DATA_HOST) < 0)
                r = -errno;
        return r;
}

/* --- startup --- */

static int open_data(struct warden *w, struct err *e)
{
        const struct in_root_how how = { O_PATH | O_DIRECTORY, 0, true };
        int r = 0;

        (void) umask(022);
        if (unshare(CLONE_NEWNS) < 0)
                return err_errno(e, -errno, "make a mount namespace");
        r = mount_make_slave();
        if (r == 0)
                r = data_open(w->config->data, &w->ctx.data);
        if (r == 0)
                r = in_root_open(w->ctx.data, DATA_SANDBOXES, &how, &w->sandboxes);
        if (r == 0)
                r = in_root_open(w->ctx.data, DATA_TRASH, &how, &w->trash);
        if (r < 0)
                return err_errno(e, r, "open the data directory '%s'", w->config->data);
        r = disk_of("", w->ctx.data, &w->ctx.disk);
        if (r < 0 && r != -ENODEV)
                (void) log_err(r, w->log, "can't find the disk of the data directory");
        r = make_host_image(w);
        w->ctx.host = r == 0;
        if (r == -ENOTSUP)
                log_warn(w->log, "no image 'host': this host's programs are not all in /usr");
        return r < 0 && r != -ENOTSUP ? err_errno(e, r, "make the image 'host'") : 0;
}

static int open_agent(struct warden *w, struct err *e)
{
        scoped(fd_closep) int fd = open(w->config->agent, O_RDONLY | O_CLOEXEC);
        int r = fd < 0 ? -errno : memfd_sealed_copy(fd, "hutch-execd", &w->ctx.agent);

        if (r < 0)
                return err_errno(e, r, "open the agent '%s'", w->config->agent);
        w->null_out = openat(w->ctx.data, DATA_DEVICES "/null", O_WRONLY | O_CLOEXEC);
        return w->null_out < 0 ? err_errno(e, -errno, "open null") : 0;
}

static void parent_cgroup(const struct warden *w, char ret[static CGROUP_NAME_MAX + 1])
{
        (void) snprintf(ret, CGROUP_NAME_MAX + 1, "hutch-%s", w->config->installation);
}

/* All sandboxes together leave the host a reserve: without it, sandboxes that each keep their own limit could use all
 * memory, and the host would swap or kill its own processes. */
static int limit_memory(struct warden *w, struct err *e)
{
        uint64_t used, total, reserve = w->config->memory_reserve;
        int r;

        host_memory("", &used, &total);
        if (reserve == 0)
                reserve = MIN_OF(MAX_OF(total / 20, (uint64_t) RESERVE_MIN), total / 2);
        if (reserve >= total)
                return err_set(e, ERR_INVALID,
                               "the memory reserve of %llu bytes is not less than the memory of "
                               "this host, which is %llu: set native.memory_reserve to less",
                               (unsigned long long) reserve, (unsigned long long) total);
        r = cgroup_tree_limit_memory(&w->tree, total - reserve);
        if (r < 0) /* what runs already may use more */
                (void) log_err(r, w->log, "can't limit the memory of all sandboxes together");
        return 0;
}

/* Three quarters of the host's process ids for all sandboxes together. */
static int open_cgroups(struct warden *w, struct err *e)
{
        char parent[CGROUP_NAME_MAX + 1], text[32];
        ssize_t n = virtual_file_read("/proc/sys/kernel/pid_max", text, sizeof(text));
        uint64_t pids = 32768;
        int r;

        while (n > 0 && text[n - 1] == '\n')
                n--;
        if (n > 0 && parse_u64_max(str_of(text, (size_t) n), UINT32_MAX, &pids) < 0)
                pids = 32768;
        parent_cgroup(w, parent);
        r = cgroup_tree_open(&w->tree, "", parent, pids / 4 * 3);
        if (r < 0) {
                (void) log_err(r, w->log, "no cgroups: sandboxes can't have limits");
                return 0;
        }
        w->ctx.tree = &w->tree;
        return limit_memory(w, e);
}

static void stop_signal(struct warden *w, struct source *s)
{
        (void) s;
        w->stop = true;
}

static int open_loop(struct warden *w)
{
        sigset_t set;
        int fd;

        (void) fd_limit_raise();
        (void) signal(SIGPIPE, SIG_IGN);
        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGINT);
        w->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (w->epoll < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        return fd < 0 ? -errno : source_add(w, &w->signals, fd, EPOLLIN, stop_signal);
}

static int open_all(struct warden *w, struct err *e)
{
        int r = confine_seccomp(seccomp_warden_filter, seccomp_warden_filter_n);

        if (r < 0)
                return err_errno(e, r, "load the seccomp filter");
        r = open_loop(w);
        if (r == 0)
                r = control_open(w);
        if (r < 0)
                return err_errno(e, r, "make a loop");
        r = open_data(w, e);
        if (r == 0)
                r = open_agent(w, e);
        if (r < 0)
                return r;
        r = open_cgroups(w, e);
        if (r == 0)
                r = adopt_all(w, e);
        if (r == 0)
                r = network_open(w, e);
        if (r == 0)
                control_event(w, &(struct warden_event){ .kind = WARDEN_EVENT_STARTED });
        return r;
}

/* --- shutdown --- */

/* Sandboxes stay. */
static void close_all(struct warden *w)
{
        char parent[CGROUP_NAME_MAX + 1];
        struct tree_node *n;

        network_close(w);
        while ((n = tree_from(&w->instances, STR(""))))
                instance_free(w, container_of(n, struct instance, by_id));
        /* Instances without an id: their processes are killed and gone in a moment, and without a warden
         * no one would remove the cgroup. */
        list_for_each (m, &w->polled) {
                struct instance *x = container_of(m, struct instance, poll_node);
                int r = x->phase == INSTANCE_DESTROYING ? zygote_remove(&w->ctx, &x->zygote) : 0;

                if (r < 0)
                        (void) log_err(r, w->log, "can't remove a cgroup");
                instance_free(w, x);
        }
        zygote_pool_close(w);
        janitor_close(w);
        control_close(w);
        (void) fd_close(w->signals.fd);
        (void) fd_close(w->epoll);
        (void) fd_close(w->sandboxes);
        (void) fd_close(w->trash);
        (void) fd_close(w->null_out);
        (void) fd_close(w->ctx.data);
        (void) fd_close(w->ctx.agent);
        /* The kernel keeps the parent cgroup as long as there are sandboxes in it. */
        parent_cgroup(w, parent);
        if (w->ctx.tree && cgroup_tree_remove(&w->tree, "", parent) < 0)
                log_debug(w->log, "cgroups of sandboxes remain");
        buf_done(&w->resolv);
}

/* --- the loop --- */

/* Polls less often the longer something takes. Milliseconds until the next time, or -1. */
static int poll_instances(struct warden *w)
{
        usec_t now = clock_mono(&clock_system), youngest = TICK_MAX * 8 * USEC_PER_MSEC;

        list_for_each (n, &w->polled) {
                struct instance *x = container_of(n, struct instance, poll_node);
                usec_t age = now - x->poll_since;

                if (instance_poll(w, x))
                        youngest = MIN_OF(youngest, age);
        }
        return list_empty(&w->polled) ? -1 : 1 + (int) (youngest / 8 / USEC_PER_MSEC);
}

/* Of two timeouts, -1 meaning never. */
static int earlier(int a, int b)
{
        return a < 0 || (b >= 0 && b < a) ? b : a;
}

/* One event per iteration: its handler may remove the source of another. */
static int iterate(struct warden *w)
{
        const int poll = poll_instances(w);
        const int idle =
                earlier(earlier(zygote_pool_timeout(w), removal_timeout(w)), network_timeout(w));
        struct epoll_event ev;
        struct source *s;
        int n = epoll_wait(w->epoll, &ev, 1, earlier(poll, idle));

        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        if (n > 0) {
                s = ev.data.ptr;
                s->ready(w, s);
        } else if (network_timeout(w) == 0) {
                network_start(w);
        } else if (zygote_pool_timeout(w) == 0) {
                zygote_pool_fill(w);
        } else if (removal_timeout(w) == 0) {
                removal_next(w);
        }
        return 0;
}

int warden_run(const struct warden_config *config, struct err *e)
{
        struct warden w = { .config = config,
                            .log = config->log,
                            .epoll = -EBADF,
                            .sandboxes = -EBADF,
                            .trash = -EBADF,
                            .null_out = -EBADF,
                            .ctx = { .data_path = config->data, .data = -EBADF, .agent = -EBADF },
                            .control.source = SOURCE_NULL,
                            .janitor = { SOURCE_NULL, -EBADF },
                            .signals = SOURCE_NULL };
        int r;

        list_init(&w.polled);
        list_init(&w.control.queue);
        tree_init(&w.instances);
        buf_init(&w.resolv, KiB);
        zygote_pool_open(&w);
        network_init(&w);
        r = open_all(&w, e);
        while (r == 0 && !w.stop) {
                r = iterate(&w);
                if (r < 0)
                        r = err_errno(e, r, "wait for events");
        }
        close_all(&w);
        return r;
}
