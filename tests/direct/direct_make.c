/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/base.h"
#include "base/secret.h"
#include "os/fd.h"
#include "os/socket.h"
#include "os/spawn.h"
#include "tests/direct/direct_impl.h"

#define READY_TIMEOUT (20 * USEC_PER_SEC)

/* --- what the supervisor is started with --- */

/* Texts of a program's start, all freed, and wiped, at once. */
struct texts {
        char **v;
        size_t n;
};

static void texts_add(struct texts *t, const char *name, struct str value)
{
        size_t n = strlen(name), size = n + value.n + 1;

        t->v = xrealloc(t->v, t->n + 2, sizeof(char *));
        t->v[t->n] = xcalloc(1, size);
        memcpy(t->v[t->n], name, n);
        if (value.n)
                memcpy(t->v[t->n] + n, value.p, value.n);
        t->v[++t->n] = NULL;
}

static void texts_done(struct texts *t)
{
        for (size_t i = 0; i < t->n; i++) {
                wipe(t->v[i], strlen(t->v[i]));
                free(t->v[i]);
        }
        free(t->v);
}

static bool has_name(const struct json_map *env, struct str name)
{
        for (size_t i = 0; i < env->n; i++)
                if (str_eq(env->items[i].key, name))
                        return true;
        return false;
}

static void make_environment(struct texts *t, const struct create_request *request, struct str work)
{
        static const struct json_map none = { 0 };
        const struct json_map *env = request ? &request->secret_env : &none;
        const char *path = getenv("PATH");

        for (size_t i = 0; i < env->n; i++) {
                char name[ENV_NAME_MAX + 2];

                if (env_is_for_egress(env->items[i].key))
                        continue;
                (void) snprintf(name, sizeof(name), "%.*s=", STR_ARG(env->items[i].key));
                texts_add(t, name, env->items[i].value);
        }
        if (!has_name(env, STR("PATH")))
                texts_add(t, "PATH=", str_from(path ? path : SPAWN_PATH_DEFAULT));
        if (!has_name(env, STR("HOME")))
                texts_add(t, "HOME=", work);
        if (!has_name(env, STR("LANG")))
                texts_add(t, "LANG=", STR("C.UTF-8"));
}

static void make_arguments(struct texts *t, const struct direct *d, const struct sandbox *record,
                           struct str work, struct str state)
{
        texts_add(t, DIRECT_SUPERVISOR, STR(""));
        texts_add(t, d->agent, STR(""));
        texts_add(t, "--listen-fd=0", STR(""));
        texts_add(t, "--workspace=", work);
        texts_add(t, "--state-dir=", state);
        if (record->entrypoint.n > 0)
                texts_add(t, "--", STR(""));
        for (size_t i = 0; i < record->entrypoint.n; i++)
                texts_add(t, "", record->entrypoint.items[i]);
}

/* --- starting it --- */

static int listen_in(int dir, int *ret)
{
        struct sock_addr addr;
        char path[64];
        int r;

        /* The path of a socket has 108 bytes, that of a directory may have 4,096. */
        (void) snprintf(path, sizeof(path), "unix:/proc/self/fd/%d/sock", dir);
        r = sock_addr_from_string(str_from(path), &addr);
        return r < 0 ? r : sock_listen(&addr, ret);
}

static int spawn_supervisor(const struct direct *d, const struct sandbox *record,
                            const struct create_request *request, const char *directory, pid_t *ret)
{
        scoped(fd_closep) int dir = -EBADF, listening = -EBADF, log = -EBADF;
        scoped(texts_done) struct texts argv = { 0 }, envp = { 0 };
        char work[PATH_MAX_TEXT + 8], state[PATH_MAX_TEXT + 8];
        int r = dir_open(d, record->id, &dir);

        if (r == 0)
                r = listen_in(dir, &listening);
        if (r < 0)
                return r;
        log = openat(dir, "log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (log < 0)
                return -errno;
        (void) snprintf(work, sizeof(work), "%s/work", directory);
        (void) snprintf(state, sizeof(state), "%s/state", directory);
        make_arguments(&argv, d, record, str_from(work), str_from(state));
        make_environment(&envp, request, str_from(work));
        return spawn_program(&(struct spawn){ .argv = argv.v,
                                              .envp = envp.v,
                                              .cwd = directory,
                                              .fds = { listening, log, log } },
                             ret);
}

int supervisor_start(struct direct *d, const struct sandbox *record,
                     const struct create_request *request, struct instance **ret, struct err *e)
{
        char directory[PATH_MAX_TEXT];
        int pidfd, r;
        pid_t pid = 0;

        *ret = NULL;
        if (snprintf(directory, sizeof(directory), "%s/%.*s", d->path, STR_ARG(record->id))
            >= (int) sizeof(directory))
                return err_set(e, ERR_INVALID, "the path of the sandbox is too long");
        r = spawn_supervisor(d, record, request, directory, &pid);
        if (r < 0)
                return err_errno(e, r, "start the agent");
        /* Our child, and not reaped: the number is still its own. */
        pidfd = pidfd_open(pid, 0);
        r = pidfd < 0 ? -errno : instance_watch(d, record->id, pid, pidfd, ret);
        if (r < 0 || !*ret)
                return err_errno(e, r, "watch the agent");
        (*ret)->quiet = true;
        return 0;
}

/* --- create --- */

struct create_op {
        struct agent_ping ping;
        struct teardown undo;
        struct direct *d;
        struct driver_req *req;
        int result;
};

static void undone(struct teardown *t, int r)
{
        struct create_op *m = container_of(t, struct create_op, undo);
        struct driver_req *req = m->req;
        int result = m->result;

        if (r < 0)
                (void) log_err(r, m->d->log, "what is left of a sandbox could not be removed");
        free(m);
        req->_impl = NULL;
        driver_finish(req, result);
}

static void undo(struct create_op *m, int result)
{
        m->result = result;
        teardown_start(&m->undo, m->d, DRIVER_AS(create, m->req)->record->id, undone);
}

/* Whether it has an end of its own to tell, which says more than that it does not answer. */
static int explain(struct create_op *m, int result)
{
        struct str id = DRIVER_AS(create, m->req)->record->id;
        struct driver_health how;
        char message[128];

        m->req->err = m->ping.req.err;
        if (instance_get(m->d, id) || m->req->err.code == ERR_CANCELED)
                return result;
        how = dir_health(m->d, id, message);
        return err_set(&m->req->err, ERR_INVALID, "it ended before its agent answered: %.*s",
                       STR_ARG(how.message));
}

static void pinged(struct op *op, int result)
{
        struct create_op *m = container_of(op, struct create_op, ping.req.op);
        struct driver_req *req = m->req;
        struct instance *b = instance_get(m->d, DRIVER_AS(create, req)->record->id);

        if (result < 0 || !b) {
                if (result == 0)
                        (void) err_set(&m->ping.req.err, ERR_UNAVAILABLE, "it is gone");
                undo(m, explain(m, result));
                return;
        }
        b->quiet = false;
        free(m);
        req->_impl = NULL;
        driver_finish(req, 0);
}

static int check_request(const struct driver_create *c, struct err *e)
{
        if (c->record->limits.gpus)
                return err_set(e, ERR_UNSUPPORTED, "the driver 'direct' has no gpus to give");
        if (c->record->platform && c->record->platform->os.p
            && !str_eq(c->record->platform->os, STR("linux")))
                return err_set(e, ERR_UNSUPPORTED, "the driver 'direct' runs Linux only");
        if (c->request && has_name(&c->request->secret_env, STR("EXECD_ACCESS_TOKEN")))
                return err_set(e, ERR_INVALID,
                               "the variable EXECD_ACCESS_TOKEN is not for clients");
        return 0;
}

static int begin(struct direct *d, struct driver_create *c, int *ret_fd)
{
        struct err *e = &c->req.err;
        struct instance *b;
        int r = supervisor_start(d, c->record, c->request, &b, e);

        if (r < 0)
                return r;
        r = dir_connect(d, c->record->id, ret_fd);
        return r < 0 ? err_errno(e, r, "connect to the agent") : 0;
}

void direct__create(struct driver *driver, struct driver_req *req)
{
        struct direct *d = direct_of(driver);
        struct driver_create *c = DRIVER_AS(create, req);
        struct create_op *m;
        int fd = -EBADF, r = check_request(c, &req->err);

        if (r == 0)
                r = dir_make(d, c->record, &req->err);
        if (r < 0) {
                driver_finish(req, r);
                return;
        }
        m = xnew(struct create_op);
        m->d = d;
        m->req = req;
        op_init(&m->ping.req.op, pinged);
        m->ping.req.timeout = READY_TIMEOUT;
        r = begin(d, c, &fd);
        if (r < 0) {
                undo(m, r);
                return;
        }
        req->_impl = m;
        agent_ping_fd(d->agents, &m->ping, fd);
}

void direct__cancel_create(struct driver_req *req)
{
        struct create_op *m = req->_impl;

        if (m)
                op_cancel(&m->ping.req.op);
}
