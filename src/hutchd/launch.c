/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/launch.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "hutchd/data_dir.h"
#include "hutchd/privilege.h"
#include "os/fd.h"

#define NATIVE    "native"
#define SOCKET    "3" /* the descriptor that the launcher passes */
#define ADDED_MAX 48

bool launch_is_due(const struct options *o, const struct config *c)
{
        return o->warden < 0 && !o->check_config && config_has_driver(c, NATIVE);
}

/* --- directories --- */

/* As the user, who must be able to reach the directory later. Also creates the installation id, and checks that no
 * other hutchd runs. */
static int take_installation(const struct identity *i, const char *path,
                             char ret[static ID_HEX_LEN + 1], struct err *e)
{
        struct data_dir data;
        struct ids ids;
        int r;

        ids_init(&ids);
        r = identity_switch(i, e);
        if (r < 0)
                return r;
        r = data_dir_open(&data, path, &ids, e);
        identity_restore();
        if (r < 0)
                return err_wrap(e,
                                "as user %s, who must be able to reach the data directory (or "
                                "choose another --data or --user)",
                                i->name);
        memcpy(ret, data.installation, ID_HEX_LEN + 1);
        data_dir_close(&data);
        return 0;
}

/* Owned by root. The descriptor stays open, so the lock lasts as long as any process that inherits it. */
static int lock_warden(const char *path, struct err *e)
{
        int fd;

        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return err_errno(e, -errno, "create the directory %s", path);
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        if (fd < 0)
                return err_errno(e, -errno, "open the directory %s", path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                int r = -errno;

                (void) fd_close(fd);
                return r == -EWOULDBLOCK
                               ? err_set(e, ERR_CONFLICT,
                                         "another hutch-launcher uses %s; stop that one first",
                                         path)
                               : err_errno(e, r, "lock %s", path);
        }
        return 0;
}

/* --- arguments --- */

struct words {
        char **v;
        size_t n;
};

static void add(struct words *w, const char *text)
{
        w->v[w->n++] = (char *) (uintptr_t) text;
}

static void add_pair(struct words *w, const char *name, const char *value)
{
        if (!value)
                return;
        add(w, name);
        add(w, value);
}

struct launch_plan {
        const char *launcher, *warden, *self;
        const char *warden_dir, *installation;
        char uid[16];
};

static void add_warden(struct words *w, const struct config *c, const struct launch_plan *l)
{
        static const char *const levels[] = { "debug", "info", "warn", "error" };

        add(w, l->warden);
        add_pair(w, "--socket-fd", SOCKET);
        add_pair(w, "--data", l->warden_dir);
        add_pair(w, "--agent", c->agent);
        add_pair(w, "--installation", l->installation);
        add_pair(w, "--uids", c->native.uids);
        add_pair(w, "--zygotes", c->native.zygotes);
        add_pair(w, "--networks", c->native.networks);
        add_pair(w, "--subnet4", c->native.subnet4);
        add_pair(w, "--subnet6", c->native.subnet6);
        add_pair(w, "--dns", c->native.dns);
        if (!c->native.has_private)
                add(w, "--no-private");
        add_pair(w, "--log-level", levels[c->log_level]);
        add_pair(w, "--log-format", c->log_format == LOG_JSON ? "json" : "logfmt");
}

/* The options of the command line, and values that the file must not change at a later start. */
static void add_hutchd(struct words *w, const struct config *c, const struct launch_plan *l,
                       char **argv)
{
        add(w, l->self);
        for (char **v = argv + 1; *v; v++)
                add(w, *v);
        add_pair(w, "--data", c->data);
        add_pair(w, "--user", c->user ? c->user : l->uid);
        add_pair(w, "--warden-fd", SOCKET);
}

static int run(struct config *c, const struct launch_plan *l, char **argv, struct err *e)
{
        struct words w = { 0 };
        size_t n = ADDED_MAX;

        for (char **v = argv; *v; v++)
                n++;
        w.v = xcalloc(n, sizeof(char *));
        add(&w, l->launcher);
        add_warden(&w, c, l);
        add(&w, "--");
        add_hutchd(&w, c, l, argv);
        (void) execv(l->launcher, w.v);
        free(w.v);
        return err_errno(e, -errno, "start %s", l->launcher);
}

/* --- all --- */

static int find_programs(struct config *c, struct launch_plan *l, struct err *e)
{
        char self[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

        if (n < 0)
                return err_errno(e, -errno, "find our own program");
        self[n] = '\0';
        l->self = arena_strdup(&c->memory, self);
        l->launcher = config_program(c, "hutch-launcher");
        l->warden = config_program(c, "hutch-warden");
        if (!l->self || !l->launcher || !l->warden)
                return err_set(e, ERR_TOO_LARGE, "the configuration is too large");
        if (access(l->warden, X_OK) < 0)
                return err_errno(e, -errno, "cannot execute %s", l->warden);
        if (access(c->agent, X_OK) < 0)
                return err_errno(e, -errno, "cannot execute the agent %s", c->agent);
        return 0;
}

/* Symbolic links to the data directory are resolved; links in it are not followed. */
static int prepare_dirs(const struct identity *i, struct config *c, struct launch_plan *l,
                        char installation[static ID_HEX_LEN + 1], struct err *e)
{
        char real[PATH_MAX];
        const char *resolved = realpath(c->data, real) ? arena_strdup(&c->memory, real) : NULL;
        const char *drivers;
        int r;

        if (resolved)
                c->data = resolved;
        drivers = arena_printf(&c->memory, "%s/drivers", c->data);
        l->warden_dir = arena_printf(&c->memory, "%s/drivers/" NATIVE, c->data);
        if (!drivers || !l->warden_dir)
                return err_set(e, ERR_TOO_LARGE, "the configuration is too large");
        r = identity_share_data(i, c->data, e);
        if (r == 0)
                r = take_installation(i, c->data, installation, e);
        if (r == 0)
                r = identity_share_data(i, drivers, e);
        return r == 0 ? lock_warden(l->warden_dir, e) : r;
}

int launch(const struct options *o, struct config *c, char **argv, struct err *e)
{
        char installation[ID_HEX_LEN + 1];
        struct launch_plan l = { .installation = installation };
        struct identity i;
        int r;

        (void) o;
        if (geteuid() != 0)
                return err_set(
                        e, ERR_FORBIDDEN,
                        "the driver 'native' needs root; start hutchd as root (sudo make run), "
                        "or choose --driver fake");
        r = identity_choose(c, &i, e);
        if (r == 0)
                r = find_programs(c, &l, e);
        if (r == 0)
                r = prepare_dirs(&i, c, &l, installation, e);
        if (r < 0)
                return r;
        (void) snprintf(l.uid, sizeof(l.uid), "%u", (unsigned) i.uid);
        return run(c, &l, argv, e);
}
