/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/confinement.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/kind.h"
#include "os/confine.h"
#include "os/fd.h"
#include "os/landlock.h"

#define READ_ALL  (LANDLOCK_READ | LANDLOCK_LIST)
#define KEEP_LOGS (LANDLOCK_READ | LANDLOCK_WRITE | LANDLOCK_FILES)
#define ALL       (READ_ALL | LANDLOCK_WRITE | LANDLOCK_FILES | LANDLOCK_DIRS | LANDLOCK_SOCKETS)

/* Whatever the configuration is. */
static const struct confinement_path always[] = {
        { "/dev/null", LANDLOCK_READ | LANDLOCK_WRITE },
        { "/dev/urandom", LANDLOCK_READ },
        { "/proc/self", READ_ALL },
        { "/proc/filesystems", LANDLOCK_READ },
        { "/proc/sys/user/max_user_namespaces", LANDLOCK_READ },
};

/* For programs that hutchd starts. They have their own directory in /proc. */
static const struct confinement_path programs[] = {
        { "/lib", READ_ALL | LANDLOCK_EXECUTE },
        { "/lib64", READ_ALL | LANDLOCK_EXECUTE },
        { "/usr/lib", READ_ALL | LANDLOCK_EXECUTE },
        { "/usr/lib64", READ_ALL | LANDLOCK_EXECUTE },
        { "/usr/local/lib", READ_ALL | LANDLOCK_EXECUTE },
        { "/etc/ld.so.cache", LANDLOCK_READ },
        { "/proc", READ_ALL },
};

/* For hutch-store-nats, which resolves names and verifies certificates. Those in /etc are often links. */
static const struct confinement_path resolving[] = {
        { "/etc", READ_ALL },
        { "/run/systemd/resolve", READ_ALL },
        { "/run/NetworkManager", READ_ALL },
        { "/run/resolvconf", READ_ALL },
        { "/usr/share/ca-certificates", READ_ALL },
        { "/usr/local/share/ca-certificates", READ_ALL },
};

/* --- the rules of a configuration --- */

static void add(struct confinement *x, const char *path, unsigned access)
{
        ASSERT(x->n < CONFINEMENT_PATHS_MAX);
        if (path)
                x->paths[x->n++] = (struct confinement_path){ path, access };
}

static void add_all(struct confinement *x, const struct confinement_path *paths, size_t n)
{
        for (size_t i = 0; i < n; i++)
                add(x, paths[i].path, paths[i].access);
}

/* The directory of a file that may be replaced; if the file is a link, that of its target as well. */
static int add_dir_of(struct confinement *x, struct config *c, const char *path, unsigned access)
{
        char real[PATH_MAX];
        const char *ends[] = { path, realpath(path, real) ? real : NULL };

        for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
                const char *slash = ends[i] ? strrchr(ends[i], '/') : NULL;
                const char *dir = !slash ? "."
                                  : slash == ends[i]
                                          ? "/"
                                          : arena_printf(&c->memory, "%.*s",
                                                         (int) (slash - ends[i]), ends[i]);

                if (!dir)
                        return -ENOMEM;
                if (ends[i] && (i == 0 || strcmp(dir, x->paths[x->n - 1].path) != 0))
                        add(x, dir, access);
        }
        return 0;
}

/* A device, such as /dev/stderr, is not replaced, and its directory has others. */
static int add_log(struct confinement *x, struct config *c, const char *path)
{
        if (!path)
                return 0;
        add(x, path, KEEP_LOGS);
        return strncmp(path, "/dev/", 5) == 0 ? 0 : add_dir_of(x, c, path, KEEP_LOGS);
}

static int add_listen(struct confinement *x, struct config *c)
{
        int r = 0;

        for (size_t i = 0; i < c->n_listen && r == 0; i++) {
                const struct sock_addr *a = &c->listen[i];
                const char *path = ((const struct sockaddr_un *) &a->ss)->sun_path;

                if (!sock_addr_is_unix(a))
                        x->bind[x->n_bind++] = sock_addr_port(a);
                else if (*path)
                        r = add_dir_of(x, c, path, LANDLOCK_SOCKETS);
        }
        return r;
}

/* hutch-store-nats reads its files at each start, and certificates are replaced when they are renewed. */
static int add_store(struct confinement *x, struct config *c)
{
        const char *files[] = { c->store.password_file,    c->store.token_file,
                                c->store.credentials_file, c->store.ca_file,
                                c->store.cert_file,        c->store.key_file };
        const bool nats = c->store.kind == CONFIG_STORE_NATS;
        const char *program = nats ? config_program(c, "hutch-store-nats") : NULL;
        int r = nats && !program ? -ENOMEM : 0;

        for (size_t i = 0; i < ARRAY_SIZE(files) && r == 0; i++)
                if (files[i] && nats)
                        r = add_dir_of(x, c, files[i], LANDLOCK_READ);
                else
                        add(x, files[i], LANDLOCK_READ);
        if (r == 0 && nats) {
                add_all(x, resolving, ARRAY_SIZE(resolving));
                r = add_dir_of(x, c, program, LANDLOCK_READ | LANDLOCK_EXECUTE);
        }
        return r;
}

/* Returns whether hutchd starts a worker of a container engine. */
static int add_engines(struct confinement *x, struct config *c)
{
        int r = 0, found = 0;

        for (int kind = 0; kind < (int) ARRAY_SIZE(c->engines) && r == 0; kind++) {
                const char *worker = c->engines[kind].worker;

                if (!config_has_driver(c, engine_kind_to_string(kind))
                    || (worker && strncmp(worker, "unix:", 5) == 0))
                        continue;
                r = add_dir_of(x, c, worker ? worker : c->agent, LANDLOCK_READ | LANDLOCK_EXECUTE);
                found = 1;
        }
        if (found)
                add(x, "/", LANDLOCK_MAKE_DIR);
        return r < 0 ? r : found;
}

static bool is_abstract(const struct sock_addr *a)
{
        return sock_addr_is_unix(a) && *((const struct sockaddr_un *) &a->ss)->sun_path == '\0';
}

static void add_scopes(struct confinement *x, const struct config *c,
                       const struct sd_notify *notify)
{
        const struct sock_addr *redis = c->store.kind == CONFIG_STORE_REDIS ? &c->store.address
                                                                            : NULL;

        x->scopes = LANDLOCK_BIND | LANDLOCK_SIGNALS;
        if (!sd_notify_is_abstract(notify) && (!redis || !is_abstract(redis)))
                x->scopes |= LANDLOCK_ABSTRACT;
        if (!c->cluster.advertise && c->store.kind != CONFIG_STORE_NATS)
                x->scopes |= LANDLOCK_CONNECT;
        if (redis && !sock_addr_is_unix(redis))
                x->connect[x->n_connect++] = sock_addr_port(redis);
}

int confinement_make(struct config *c, const char *file, const struct sd_notify *notify,
                     struct confinement *ret, struct err *e)
{
        int r, engines;

        *ret = (struct confinement){ 0 };
        add_all(ret, always, ARRAY_SIZE(always));
        add(ret, c->data, ALL);
        add(ret, c->cluster.key_file, LANDLOCK_READ);
        add_scopes(ret, c, notify);
        r = file ? add_dir_of(ret, c, file, LANDLOCK_READ) : 0;
        if (r == 0 && c->audit)
                r = add_log(ret, c, c->audit_file);
        if (r == 0 && c->access_log)
                r = add_log(ret, c, c->access_file);
        if (r == 0)
                r = add_listen(ret, c);
        if (r == 0)
                r = add_store(ret, c);
        engines = r == 0 ? add_engines(ret, c) : r;
        if (engines > 0 || (engines == 0 && c->store.kind == CONFIG_STORE_NATS))
                add_all(ret, programs, ARRAY_SIZE(programs));
        return engines < 0 ? err_set(e, ERR_TOO_LARGE, "the configuration is too large") : 0;
}

/* --- entering --- */

/*
 * The kernel makes the inodes of procfs anew when they have fallen out of its cache, and a rule is about an inode. An
 * open descriptor keeps the directory entry, and with it the inode, in the cache.
 */
static void pin(struct confinement *x, const char *path, int fd)
{
        if (strncmp(path, "/proc/", 6) == 0 && x->n_pins < CONFINEMENT_PINS_MAX)
                x->pins[x->n_pins++] = fd;
        else
                (void) fd_close(fd);
}

static int allow(struct confinement *x, struct landlock *l, const struct confinement_path *p)
{
        int fd = open(p->path, O_PATH | O_CLOEXEC), r;

        if (fd < 0)
                return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -errno : 0;
        r = landlock_allow(l, fd, p->access);
        pin(x, p->path, fd);
        return r;
}

static int fill(struct confinement *x, struct landlock *l, struct err *e)
{
        int r = 0;

        for (size_t i = 0; i < x->n; i++) {
                r = allow(x, l, &x->paths[i]);
                if (r < 0)
                        return err_errno(e, r, "allow access to %s by Landlock", x->paths[i].path);
        }
        for (size_t i = 0; i < x->n_bind && r == 0; i++)
                r = landlock_allow_bind(l, x->bind[i]);
        for (size_t i = 0; i < x->n_connect && r == 0; i++)
                r = landlock_allow_connect(l, x->connect[i]);
        return r < 0 ? err_errno(e, r, "allow a port by Landlock") : 0;
}

int confinement_enter(struct confinement *x, enum config_landlock mode, struct err *e)
{
        struct landlock l = LANDLOCK_NULL;
        int r = mode == CONFIG_LANDLOCK_OFF ? -EOPNOTSUPP : landlock_open(&l, x->scopes);

        if (r == -EOPNOTSUPP && mode == CONFIG_LANDLOCK_REQUIRED)
                return err_set(e, ERR_UNSUPPORTED, CONFINEMENT_MISSING);
        if (r == -EOPNOTSUPP)
                return 0;
        if (r < 0)
                return err_errno(e, r, "make a Landlock rule set");
        r = fill(x, &l, e);
        if (r == 0) {
                r = confine_no_new_privs();
                if (r == 0)
                        r = landlock_enter(&l);
                if (r < 0)
                        (void) err_errno(e, r, "enter the Landlock rule set");
        }
        landlock_close(&l);
        return r < 0 ? ERR_RETURN(e->code) : (int) l.abi;
}

void confinement_done(struct confinement *x)
{
        while (x->n_pins > 0)
                (void) fd_close(x->pins[--x->n_pins]);
}
