/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/warden.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/disk.h"
#include "os/fd.h"
#include "os/in_root.h"
#include "os/mount.h"
#include "os/memfd.h"
#include "os/virtual_file.h"
#include "warden/data.h"
#include "warden/host_image.h"
#include "warden/warden_impl.h"

#define HOST_FRESH "host.fresh" /* until it is complete */
#define TICK_MAX   100          /* milliseconds between two looks at the same thing */

/* --- sources --- */

int source_add_for(struct warden *w, struct source *s, int fd, uint32_t events,
                   void (*ready)(struct warden *w, struct source *s))
{
        struct epoll_event ev = { .events = events, .data.ptr = s };

        if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &ev) < 0)
                return -errno;
        *s = (struct source){ ready, fd };
        return 0;
}

int source_add(struct warden *w, struct source *s, int fd,
               void (*ready)(struct warden *w, struct source *s))
{
        return source_add_for(w, s, fd, EPOLLIN, ready);
}

void source_remove(struct warden *w, struct source *s)
{
        if (s->fd >= 0)
                (void) epoll_ctl(w->epoll, EPOLL_CTL_DEL, s->fd, NULL);
        s->fd = -EBADF;
}

/* --- the host's image --- */

static bool is_empty(int at, const char *name)
{
        int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        DIR *d = fd < 0 ? NULL : fdopendir(fd);
        bool empty = d != NULL;
        const struct dirent *entry;

        while (d && (entry = readdir(d)))
                empty &= strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (d)
                (void) closedir(d);
        return empty;
}

/* Whoever installs something with a library makes the linker's cache anew. */
static bool is_outdated(const struct warden *w)
{
        struct stat image, cache;

        return fstatat(w->ctx.data, DATA_HOST, &image, AT_SYMLINK_NOFOLLOW) == 0
               && stat("/etc/ld.so.cache", &cache) == 0
               && cache.st_mtim.tv_sec > image.st_mtim.tv_sec;
}

/* Put in its place when it is complete, and left alone while there are sandboxes: they look at it. */
static int make_host_image(struct warden *w)
{
        scoped(fd_closep) int machine = -EBADF, dir = -EBADF;
        int r = 0;

        if (!is_empty(w->ctx.data, DATA_HOST)) {
                if (!is_outdated(w) || !is_empty(w->ctx.data, DATA_SANDBOXES))
                        return 0;
                r = janitor_trash(w, w->ctx.data, DATA_HOST);
        }
        if (r == 0)
                r = janitor_trash(w, w->ctx.data, HOST_FRESH);
        if (r == 0 && mkdirat(w->ctx.data, HOST_FRESH, 0755) < 0)
                r = -errno;
        if (r < 0)
                return r;
        machine = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        dir = openat(w->ctx.data, HOST_FRESH, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        r = machine < 0 || dir < 0 ? -errno : host_image_fill(machine, dir);
        if (r == 0 && renameat(w->ctx.data, HOST_FRESH, w->ctx.data, DATA_HOST) < 0)
                r = -errno;
        return r;
}

/* --- opening --- */

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
                log_warn(w->log, "this host's programs are not all in /usr: no image 'host'");
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

/* A quarter of the host's process numbers is left to everybody else. */
static uint64_t pids_of_all(void)
{
        char text[32];
        uint64_t max = 32768;
        ssize_t n = virtual_file_read("/proc/sys/kernel/pid_max", text, sizeof(text));

        while (n > 0 && text[n - 1] == '\n')
                n--;
        if (n > 0 && parse_u64_max(str_of(text, (size_t) n), UINT32_MAX, &max) < 0)
                max = 32768;
        return max / 4 * 3;
}

static void name_of_groups(const struct warden *w, char ret[static CGROUP_NAME_MAX + 1])
{
        (void) snprintf(ret, CGROUP_NAME_MAX + 1, "hutch-%s", w->config->installation);
}

static void open_groups(struct warden *w)
{
        char ours[CGROUP_NAME_MAX + 1];
        int r;

        name_of_groups(w, ours);
        r = cgroup_tree_open(&w->tree, "", ours, pids_of_all());
        if (r == 0)
                w->ctx.tree = &w->tree;
        else
                (void) log_err(r, w->log, "no cgroups: sandboxes can't be limited");
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
        return fd < 0 ? -errno : source_add(w, &w->signals, fd, stop_signal);
}

static int open_all(struct warden *w, struct err *e)
{
        int r = open_loop(w);

        if (r == 0)
                r = control_open(w);
        if (r < 0)
                return err_errno(e, r, "make a loop");
        r = open_data(w, e);
        if (r == 0)
                r = open_agent(w, e);
        if (r < 0)
                return r;
        open_groups(w);
        r = adopt_all(w, e);
        if (r == 0)
                r = network_open(w, e);
        if (r == 0)
                control_event(w, &(struct warden_event){ .kind = WARDEN_EVENT_STARTED });
        return r;
}

/* The one of ours goes with the last sandbox: the kernel keeps it as long as there are any. */
static void close_groups(struct warden *w)
{
        char ours[CGROUP_NAME_MAX + 1];

        name_of_groups(w, ours);
        if (cgroup_tree_remove(&w->tree, "", ours) < 0)
                log_debug(w->log, "cgroups of sandboxes stay");
}

/* Killed processes of which nothing is known but their group: they are gone in a moment, and nobody
 * would look after the group until there is another warden. */
static void remove_killed(struct warden *w, struct instance *x)
{
        int r = x->phase == INSTANCE_DESTROYING ? zygote_remove(&w->ctx, &x->zygote) : 0;

        if (r < 0)
                (void) log_err(r, w->log, "can't remove a group");
        instance_free(w, x);
}

/* Sandboxes stay. */
static void close_all(struct warden *w)
{
        struct tree_node *n;

        network_close(w);
        while ((n = tree_from(&w->instances, STR(""))))
                instance_free(w, container_of(n, struct instance, by_id));
        list_for_each (m, &w->waiting)
                remove_killed(w, container_of(m, struct instance, node));
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
        if (w->ctx.tree)
                close_groups(w);
        buf_done(&w->resolv);
}

/* --- the loop --- */

/* Looks become rarer the longer something takes. */
static int poll_waiting(struct warden *w)
{
        usec_t now = clock_mono(&clock_system), youngest = TICK_MAX * 8 * USEC_PER_MSEC;

        list_for_each (n, &w->waiting) {
                struct instance *x = container_of(n, struct instance, node);
                usec_t age = now - x->since;

                if (instance_poll(w, x))
                        youngest = MIN_OF(youngest, age);
        }
        return list_empty(&w->waiting) ? -1 : 1 + (int) (youngest / 8 / USEC_PER_MSEC);
}

/* Of two that may be "never", -1. */
static int earlier_timeout(int a, int b)
{
        return a < 0 || (b >= 0 && b < a) ? b : a;
}

static void do_idle_work(struct warden *w)
{
        if (network_timeout(w) == 0)
                network_start(w);
        else if (zygote_pool_timeout(w) == 0)
                zygote_pool_fill(w);
        else if (removal_timeout(w) == 0)
                removal_next(w);
}

/* One event at a time: what it does may take away another one's source. */
static int turn(struct warden *w)
{
        const int look = poll_waiting(w),
                  pool = earlier_timeout(zygote_pool_timeout(w), removal_timeout(w));
        struct epoll_event ev;
        struct source *s;
        int n = epoll_wait(w->epoll, &ev, 1,
                           earlier_timeout(look, earlier_timeout(pool, network_timeout(w))));

        if (n < 0)
                return errno == EINTR ? 0 : -errno;
        if (n == 0) {
                do_idle_work(w);
                return 0;
        }
        s = ev.data.ptr;
        s->ready(w, s);
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

        list_init(&w.waiting);
        list_init(&w.control.queue);
        tree_init(&w.instances);
        buf_init(&w.resolv, KiB);
        zygote_pool_open(&w);
        network_init(&w);
        r = open_all(&w, e);
        while (r == 0 && !w.stop) {
                r = turn(&w);
                if (r < 0)
                        r = err_errno(e, r, "wait for something to happen");
        }
        close_all(&w);
        return r;
}
