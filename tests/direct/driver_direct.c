/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/direct/driver_direct.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/direct/direct_impl.h"
#include "tests/direct/direct_proc.h"

/* Directories per iteration of a scan. */
#define SCAN_SLICE 8

/* Rounds of stopping processes, a turn each: one that does not stop by then hangs in the kernel. */
#define STOP_ROUNDS 2000

static int fail_not_found(struct driver_req *req)
{
        return err_set(&req->err, ERR_NOT_FOUND, "there is no such sandbox");
}

/* --- how it is doing --- */

struct inspection {
        struct driver_health health;
        struct instance *instance; /* if it lives */
        char message[128];
};

/* A sandbox that was never started before hutchd ended never will be: its lock is held while a note
 * says so, and a supervisor that comes late reads it. */
static void note_never_started(const struct direct *d, struct str id)
{
        scoped(fd_closep) int dir = -EBADF, fd = -EBADF;

        if (dir_open(d, id, &dir) < 0)
                return;
        fd = openat(dir, "exit", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0 && write(fd, "lost\n", 5) < 0)
                log_debug(d->log, "could not write a note");
}

static int inspect_instance(struct direct *d, struct str id, struct inspection *ret)
{
        scoped(fd_closep) int lock = -EBADF;
        int r = instance_adopt(d, id, &ret->instance, &lock);

        ret->health = (struct driver_health){ .status = RUNTIME_GONE };
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return r;
        if (r == 1) {
                ret->health.status = direct_is_stopped(dir_agent(d, id)) ? RUNTIME_PAUSED
                                                                         : RUNTIME_RUNNING;
                return 0;
        }
        note_never_started(d, id);
        ret->instance = NULL;
        ret->health = dir_health(d, id, ret->message);
        return 0;
}

static void run_inspect(struct driver *driver, struct driver_req *req)
{
        struct driver_inspect *i = DRIVER_AS(inspect, req);
        struct inspection l;
        int r = inspect_instance(direct_of(driver), i->record->id, &l);

        if (r < 0)
                return driver_finish(req, err_errno(&req->err, r, "inspect the sandbox"));
        i->health = l.health;
        if (l.health.message.p)
                i->health.message = driver_keep(req, l.health.message);
        return driver_finish(req, 0);
}

/* --- destroy --- */

struct destroying {
        struct teardown teardown;
        struct driver_req *req;
};

static void destroyed(struct teardown *t, int r)
{
        struct destroying *x = container_of(t, struct destroying, teardown);
        struct driver_req *req = x->req;

        free(x);
        if (r < 0)
                r = err_errno(&req->err, r, "remove the dir of the sandbox");
        driver_finish(req, r);
}

static void run_destroy(struct driver *driver, struct driver_req *req)
{
        struct destroying *x = xnew(struct destroying);

        x->req = req;
        teardown_start(&x->teardown, direct_of(driver), DRIVER_AS(destroy, req)->record->id,
                       destroyed);
}

/* --- pause and resume --- */

struct stopping {
        struct net_task task;
        struct direct *d;
        struct driver_req *req;
        unsigned rounds;
};

static int check_status(struct direct *d, struct driver_req *req, int status,
                        struct inspection *ret)
{
        int r = inspect_instance(d, DRIVER_AS(pause, req)->record->id, ret);

        if (r < 0)
                return err_errno(&req->err, r, "inspect the sandbox");
        if (ret->health.status == RUNTIME_GONE)
                return fail_not_found(req);
        if (ret->health.status != status)
                return err_set(&req->err, ERR_CONFLICT, "the sandbox is %s",
                               runtime_status_to_string(ret->health.status));
        return 0;
}

static void stopping_end(struct stopping *s, int result)
{
        struct driver_req *req = s->req;

        free(s);
        driver_finish(req, result);
}

/* A signal stops a process when it next leaves the kernel, and one that is being born is in no list
 * yet: once a scan finds none that runs, all of them stand still. */
static void stopping_round(struct net_task *t)
{
        struct stopping *s = container_of(t, struct stopping, task);
        struct instance *b = instance_get(s->d, DRIVER_AS(pause, s->req)->record->id);
        struct direct_tree tree;
        int r;

        if (!b)
                return stopping_end(s,
                                    err_set(&s->req->err, ERR_CONFLICT, "the sandbox has ended"));
        r = direct_tree_scan(b->pid, SIGSTOP, &tree);
        if (r < 0)
                return stopping_end(s, err_errno(&s->req->err, r, "find its processes"));
        if (tree.running == 0)
                return stopping_end(s, 0);
        if (++s->rounds < STOP_ROUNDS)
                return net_task_queue(s->d->driver.loop, t);
        (void) !direct_tree_scan(b->pid, SIGCONT, &tree);
        return stopping_end(s, err_set(&s->req->err, ERR_UNAVAILABLE, "a process does not stop"));
}

static void run_pause(struct driver *driver, struct driver_req *req)
{
        struct direct *d = direct_of(driver);
        struct stopping *s;
        struct inspection l;
        int r = check_status(d, req, RUNTIME_RUNNING, &l);

        if (r < 0)
                return driver_finish(req, r);
        s = xnew(struct stopping);
        s->d = d;
        s->req = req;
        net_task_init(&s->task, stopping_round);
        return net_task_queue(driver->loop, &s->task);
}

static void run_resume(struct driver *driver, struct driver_req *req)
{
        struct direct *d = direct_of(driver);
        struct direct_tree tree;
        struct inspection l;
        int r = check_status(d, req, RUNTIME_PAUSED, &l);

        if (r < 0)
                return driver_finish(req, r);
        r = direct_tree_scan(l.instance->pid, SIGCONT, &tree);
        return driver_finish(req, r < 0 ? err_errno(&req->err, r, "find its processes") : 0);
}

/* --- connect, usage, probe --- */

static void run_connect(struct driver *driver, struct driver_req *req)
{
        struct driver_connect *c = DRIVER_AS(connect, req);
        int r = dir_connect(direct_of(driver), c->record->id, &c->fd);

        if (r == -ENOENT)
                r = fail_not_found(req);
        else if (r < 0)
                r = err_set(&req->err, ERR_UNAVAILABLE, "its agent does not answer: %s",
                            err_text(r));
        driver_finish(req, r);
}

static void run_usage(struct driver *driver, struct driver_req *req)
{
        struct driver_usage *u = DRIVER_AS(usage, req);
        struct direct_tree tree = { 0 };
        struct inspection l;
        int r = inspect_instance(direct_of(driver), u->record->id, &l);

        if (r == 0 && l.health.status == RUNTIME_GONE)
                return driver_finish(req, fail_not_found(req));
        if (r == 0 && l.instance)
                r = direct_tree_scan(l.instance->pid, 0, &tree);
        if (r < 0)
                return driver_finish(req, err_errno(&req->err, r, "find its processes"));
        u->cpu_usec = tree.cpu_usec;
        u->memory_bytes = tree.memory_bytes;
        u->processes = tree.n;
        return driver_finish(req, 0);
}

static void run_probe(struct driver *driver, struct driver_req *req)
{
        struct driver_probe *p = DRIVER_AS(probe, req);
        const char *agent = direct_of(driver)->agent;
        bool runs = access(agent, X_OK) == 0;

        driver_probe_add(p, "agent", runs, "%s%s", agent, runs ? "" : ": build it first");
        driver_probe_add(p, "isolation", false, "there is none: for tests only");
        driver_finish(req, 0);
}

/* --- scan --- */

struct scanning {
        struct net_task task;
        struct direct *d;
        struct driver_req *req;
        DIR *dir;
};

static void scanning_end(struct scanning *s, int result)
{
        struct driver_req *req = s->req;

        net_task_cancel(&s->task);
        if (s->dir)
                (void) closedir(s->dir);
        free(s);
        req->_impl = NULL;
        driver_finish(req, result);
}

static int read_record(const struct direct *d, struct str id, struct sandbox **ret)
{
        scoped(sandbox_freep) struct sandbox *s = NULL;
        scoped(buf_done) struct buf text;
        struct err e;

        buf_init(&text, RECORD_TEXT_MAX);
        if (dir_read(d, id, "record.json", &text) < 0 || sandbox_decode(buf_str(&text), &s, &e) < 0
            || !str_eq(s->id, id))
                return -EINVAL;
        *ret = TAKE_PTR(s);
        return 0;
}

static bool is_makeshift(struct str name)
{
        return str_starts_with(name, STR("new-")) || str_starts_with(name, STR("trash-"));
}

/* Who can't tell how a sandbox is doing must not pass over it: it would be taken for gone. */
static int scan_entry(struct scanning *s, struct str name)
{
        struct driver_scan *scan = DRIVER_AS(scan, s->req);
        scoped(sandbox_freep) struct sandbox *record = NULL;
        struct inspection l;
        int r;

        if (name.p[0] == '.' || is_makeshift(name))
                return 0;
        if (!sandbox_id_is_valid(name) || read_record(s->d, name, &record) < 0) {
                scan->skipped++;
                return 0;
        }
        r = inspect_instance(s->d, name, &l);
        if (r < 0)
                return err_errno(&s->req->err, r, "inspect the sandbox '%.*s'", STR_ARG(name));
        if (l.health.status != RUNTIME_GONE)
                driver_scan_add(scan, TAKE_PTR(record), l.health.status);
        return 0;
}

static void scan_slice(struct net_task *t)
{
        struct scanning *s = container_of(t, struct scanning, task);

        for (unsigned i = 0; i < SCAN_SLICE; i++) {
                struct dirent *entry = readdir(s->dir);
                int r = entry ? scan_entry(s, str_from(entry->d_name)) : 0;

                if (!entry || r < 0)
                        return scanning_end(s, r);
        }
        return net_task_queue(s->d->driver.loop, t);
}

static void run_scan(struct driver *driver, struct driver_req *req)
{
        struct direct *d = direct_of(driver);
        struct scanning *s = xnew(struct scanning);
        int fd = openat(d->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        s->d = d;
        s->req = req;
        net_task_init(&s->task, scan_slice);
        s->dir = fd < 0 ? NULL : fdopendir(fd);
        if (!s->dir)
                return scanning_end(s, err_errno(&req->err, -errno, "read the dir"));
        req->_impl = s;
        return net_task_queue(driver->loop, &s->task);
}

static void direct_cancel(struct driver *driver, struct driver_req *req)
{
        if (req->_call == DRIVER_CALL_CREATE)
                direct__cancel_create(req);
        else if (req->_call == DRIVER_CALL_SCAN)
                scanning_end(req->_impl, err_set(&req->err, ERR_CANCELED, "canceled"));
}

/* --- life cycle --- */

void direct__close_go_on(struct direct *d)
{
        if (!d->closing || d->open > 0)
                return;
        d->dir = fd_close(d->dir);
        map_done(&d->instances);
        free(d->agent);
        free(d->path);
        driver_closed(&d->driver);
}

static void agents_freed(void *data)
{
        struct direct *d = data;

        d->open--;
        direct__close_go_on(d);
}

static void direct_close(struct driver *driver)
{
        struct direct *d = direct_of(driver);

        removals_stop(d);
        list_for_each (n, &d->all_instances)
                instance_forget(container_of(n, struct instance, node));
        d->closing = true;
        d->open++;
        agents_free(d->agents, agents_freed, d);
}

static const struct driver_ops ops = {
        .name = "direct",
        .caps = DRIVER_PAUSE | DRIVER_USAGE,
        .calls = {
                [DRIVER_CALL_CREATE] = direct__create, [DRIVER_CALL_DESTROY] = run_destroy,
                [DRIVER_CALL_PAUSE] = run_pause,       [DRIVER_CALL_RESUME] = run_resume,
                [DRIVER_CALL_INSPECT] = run_inspect,   [DRIVER_CALL_SCAN] = run_scan,
                [DRIVER_CALL_CONNECT] = run_connect,   [DRIVER_CALL_USAGE] = run_usage,
                [DRIVER_CALL_PROBE] = run_probe,
        },
        .cancel = direct_cancel,
        .close = direct_close,
};

static void sweep(struct direct *d)
{
        int fd = openat(d->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);

        for (struct dirent *entry; dir && (entry = readdir(dir));)
                if (is_makeshift(str_from(entry->d_name)))
                        removal_start(d, entry->d_name, NULL, NULL);
        if (dir)
                (void) closedir(dir);
}

static int open_dir(const struct driver_setup *setup, char **ret_path, int *ret, struct err *e)
{
        char path[PATH_MAX_TEXT];
        int fd, n = snprintf(path, sizeof(path), "%s/%.*s", setup->dir,
                             STR_ARG(setup->installation));

        if (setup->dir[0] != '/' || n >= (int) sizeof(path) || setup->installation.n == 0
            || str_find(setup->installation, '/') >= 0 || setup->installation.p[0] == '.')
                return err_set(e, ERR_INVALID, "no usable dir, or id of the installation");
        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return err_errno(e, -errno, "make '%s'", path);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return err_errno(e, -errno, "open '%s'", path);
        *ret_path = xstrndup_str(str_from(path));
        *ret = fd;
        return 0;
}

int driver_direct_open(const struct driver_setup *setup, struct driver **ret, struct err *e)
{
        const char *allowed = getenv("HUTCH_TEST_DIRECT");
        struct direct *d;
        char *path;
        int fd, r;

        if (!allowed || !str_eq(str_from(allowed), STR("1")))
                return err_set(e, ERR_UNSUPPORTED,
                               "the driver 'direct' isolates nothing; it is for tests, which set "
                               "HUTCH_TEST_DIRECT=1");
        r = driver_check_agent(setup, e);
        if (r == 0 && access(DIRECT_SUPERVISOR, X_OK) < 0)
                r = err_errno(e, -errno, "the supervisor '%s' cannot be run", DIRECT_SUPERVISOR);
        if (r == 0)
                r = open_dir(setup, &path, &fd, e);
        if (r < 0)
                return r;
        d = xnew(struct direct);
        driver_init(&d->driver, &ops, setup->loop);
        d->log = setup->log;
        d->dir = fd;
        d->path = path;
        d->agent = xstrndup_str(str_from(setup->agent));
        d->agents = agents_new(setup->loop);
        ids_init(&d->ids);
        map_init(&d->instances);
        list_init(&d->all_instances);
        list_init(&d->removals);
        sweep(d);
        *ret = &d->driver;
        return 0;
}
