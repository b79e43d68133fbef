/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/run_dir.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/names.h"
#include "model/sandbox.h"
#include "os/fd.h"
#include "os/walk.h"

#define SLICE 64 /* entries removed per iteration */

struct name {
        char text[SANDBOX_ID_MAX + 1];
};

static struct name name_of(struct str id)
{
        struct name n = { "" };

        ASSERT(id.n < sizeof(n.text) && sandbox_id_is_valid(id));
        memcpy(n.text, id.p, id.n);
        return n;
}

/* --- creating and finding --- */

/* Any uid in the container may have to create a socket in it: the agent runs as the user that the image names.
 * Outside, the directory above keeps other users out. */
int run_dir_make(struct run_dirs *b, struct str id)
{
        struct name n = name_of(id);

        if (mkdirat(b->dir, n.text, 0700) < 0)
                return -errno;
        return fchmodat(b->dir, n.text, 01777, 0) < 0 ? -errno : 0;
}

static int run_dir_open(const struct run_dirs *b, struct str id, int *ret)
{
        struct name n = name_of(id);
        int fd = openat(b->dir, n.text, O_PATH | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        *ret = fd;
        return 0;
}

bool run_dir_exists(const struct run_dirs *b, struct str id)
{
        scoped(fd_closep) int fd = -EBADF;

        return run_dir_open(b, id, &fd) == 0;
}

int run_dir_connect(const struct run_dirs *b, struct str id, int *ret_fd)
{
        scoped(fd_closep) int dir = -EBADF, fd = -EBADF, sock = -EBADF;
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        struct stat st;
        int r = run_dir_open(b, id, &dir);

        if (r < 0)
                return r == -ENOENT ? r : -ECONNREFUSED;
        fd = openat(dir, AGENT_SOCKET, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode))
                return -ECONNREFUSED;
        sock = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (sock < 0)
                return -errno;
        (void) snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d", fd);
        if (connect(sock, (const struct sockaddr *) &addr, sizeof(addr)) < 0)
                return errno == ENOENT ? -ECONNREFUSED : -errno;
        *ret_fd = TAKE_FD(sock);
        return 0;
}

struct each {
        void (*f)(void *data, struct str id);
        void *data;
};

static int each_name(void *data, const char *name)
{
        struct each *x = data;

        if (sandbox_id_is_valid(str_from(name)))
                x->f(x->data, str_from(name));
        return 0;
}

void run_dirs_each(struct run_dirs *b, void (*f)(void *data, struct str id), void *data)
{
        int r = walk_names(b->dir, ".", each_name, &(struct each){ f, data });

        if (r < 0)
                (void) log_err(r, b->log, "run directories not listed");
}

/* --- watching --- */

int run_dir_watch(struct run_dirs *b, struct str id, struct run_dir_watch *w,
                  run_dir_changed_fn *changed)
{
        scoped(fd_closep) int dir = -EBADF;
        char path[64];
        int r = run_dir_open(b, id, &dir), wd;

        if (r < 0)
                return r;
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
        wd = inotify_add_watch(b->inotify, path, IN_CREATE | IN_ATTRIB | IN_MOVED_TO);
        if (wd < 0)
                return -errno;
        w->wd = wd;
        w->changed = changed;
        list_append(&b->watches, &w->node);
        return 0;
}

void run_dir_unwatch(struct run_dirs *b, struct run_dir_watch *w)
{
        if (!w->changed)
                return;
        list_remove(&w->node);
        (void) inotify_rm_watch(b->inotify, w->wd);
        w->changed = NULL;
}

static struct run_dir_watch *watch_of(struct run_dirs *b, int wd)
{
        list_for_each (n, &b->watches) {
                struct run_dir_watch *w = container_of(n, struct run_dir_watch, node);

                if (w->wd == wd)
                        return w;
        }
        return NULL;
}

static void on_inotify(uv_poll_t *poll, int status, int events)
{
        struct run_dirs *b = container_of(poll, struct run_dirs, poll);
        _Alignas(struct inotify_event) char bytes[8192];
        ssize_t n = read(b->inotify, bytes, sizeof(bytes));
        int last = -1;

        (void) status, (void) events;
        for (ssize_t at = 0; at < n;) {
                const struct inotify_event *e = (const void *) (bytes + at);
                struct run_dir_watch *w = e->wd == last ? NULL : watch_of(b, e->wd);

                last = e->wd;
                at += (ssize_t) (sizeof(*e) + e->len);
                if (w)
                        w->changed(w);
        }
}

/* --- removing --- */

struct removal {
        struct list node;
        struct net_task task;
        struct run_dirs *run_dirs;
        struct walk_remove walk;
        struct name name;
        void (*done)(void *data, int r);
        void *data;
};

static void close_go_on(struct run_dirs *b)
{
        if (b->closing && b->open == 0) {
                b->dir = fd_close(b->dir);
                b->inotify = fd_close(b->inotify);
                b->closed(b);
        }
}

static void removal_slice(struct net_task *t)
{
        struct removal *x = container_of(t, struct removal, task);
        struct run_dirs *b = x->run_dirs;
        int r = 1;

        for (unsigned i = 0; i < SLICE && r > 0; i++)
                r = walk_remove_step(&x->walk);
        if (r > 0) {
                net_task_queue(b->loop, t);
                return;
        }
        walk_remove_done(&x->walk);
        list_remove(&x->node);
        if (x->done)
                x->done(x->data, r == -ENOENT ? 0 : r);
        free(x);
        b->open--;
        close_go_on(b);
}

void run_dir_remove(struct run_dirs *b, struct str id, void (*done)(void *data, int r), void *data)
{
        struct removal *x = xnew(struct removal);

        x->run_dirs = b;
        x->name = name_of(id);
        x->done = done;
        x->data = data;
        walk_remove_init(&x->walk, b->dir, x->name.text);
        net_task_init(&x->task, removal_slice);
        list_append(&b->removals, &x->node);
        b->open++;
        net_task_queue(b->loop, &x->task);
}

/* --- life cycle --- */

int run_dirs_open(struct run_dirs *b, struct net_loop *l, const char *path)
{
        scoped(fd_closep) int dir = -EBADF, inotify = -EBADF;
        int r;

        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return -errno;
        dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (dir < 0)
                return -errno;
        inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        if (inotify < 0)
                return -errno;
        r = uv_poll_init(&l->uv, &b->poll, inotify);
        if (r == 0)
                r = uv_poll_start(&b->poll, UV_READABLE, on_inotify);
        if (r < 0)
                return r;
        b->loop = l;
        b->path = path;
        b->dir = TAKE_FD(dir);
        b->inotify = TAKE_FD(inotify);
        b->open = 1;
        b->closing = false;
        list_init(&b->watches);
        list_init(&b->removals);
        return 0;
}

static void poll_closed(uv_handle_t *h)
{
        struct run_dirs *b = container_of((uv_poll_t *) (void *) h, struct run_dirs, poll);

        b->open--;
        close_go_on(b);
}

void run_dirs_close(struct run_dirs *b, void (*closed)(struct run_dirs *b))
{
        b->closed = closed;
        b->closing = true;
        uv_close((uv_handle_t *) &b->poll, poll_closed);
}
