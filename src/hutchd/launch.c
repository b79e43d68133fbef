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

/* --- directories --- */

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

struct launch_plan {
        const char *launcher, *warden, *self;
        const char *warden_dir;
        char installation[ID_HEX_LEN + 1];
        char uid[16];
        char uids[32]; /* of sandboxes */
};

struct words {
        char **v;
        size_t n;
};

/* A name without a value is left out. */
static void add(struct words *w, const char *name, const char *value)
{
        if (!value)
                return;
        w->v[w->n++] = (char *) (uintptr_t) name;
        w->v[w->n++] = (char *) (uintptr_t) value;
}

/* Returns only on failure. */
static int run(struct config *c, const struct launch_plan *l, char **argv, struct err *e)
{
        struct words w = { 0 };
        char reserve[32];
        size_t n = ADDED_MAX;

        for (char **v = argv; *v; v++)
                n++;
        w.v = xcalloc(n, sizeof(char *));
        add(&w, l->launcher, l->warden);
        add(&w, "--socket-fd", SOCKET);
        add(&w, "--data", l->warden_dir);
        add(&w, "--agent", c->agent);
        add(&w, "--installation", l->installation);
        add(&w, "--uids", l->uids);
        add(&w, "--zygotes", c->native.zygotes);
        (void) snprintf(reserve, sizeof(reserve), "%llu",
                        (unsigned long long) c->native.memory_reserve);
        add(&w, "--memory-reserve", c->native.memory_reserve > 0 ? reserve : NULL);
        add(&w, "--networks", c->native.networks);
        add(&w, "--subnet4", c->native.subnet4);
        add(&w, "--subnet6", c->native.subnet6);
        add(&w, "--dns", c->native.dns);
        if (!c->native.has_private)
                w.v[w.n++] = (char *) (uintptr_t) "--no-private";
        add(&w, "--log-level", log_level_to_string((int) c->log_level));
        add(&w, "--log-format", log_format_to_string((int) c->log_format));
        /* The options of the command line, and values that the file must not change at a later start. */
        add(&w, "--", l->self);
        for (char **v = argv + 1; *v; v++)
                w.v[w.n++] = *v;
        add(&w, "--data", c->data);
        add(&w, "--user", c->user ? c->user : l->uid);
        add(&w, "--warden-fd", SOCKET);
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

/* On a host without the user hutch they decide who hutchd is. */
static int claim_uids(struct config *c, struct launch_plan *l, struct identity *i, struct err *e)
{
        const struct uid_request q = { UID_CLAIMS_DIR, c->data, c->native.uids, i->own };
        struct uid_range uids;
        int r = uid_claims_take(&q, &uids, e);

        if (r < 0)
                return r;
        (void) snprintf(l->uids, sizeof(l->uids), "%u:%u", uids.base, uids.count);
        c->own_uid = uids.base - 1;
        return identity_choose(c, i, e);
}

/* Symbolic links to the data directory are resolved; links in it are not followed. */
static int prepare_dirs(const struct identity *i, struct config *c, struct launch_plan *l,
                        struct err *e)
{
        char real[PATH_MAX];
        const char *resolved = realpath(c->data, real) ? arena_strdup(&c->memory, real) : NULL;
        const char *drivers;
        struct data_dir data;
        struct ids ids;
        int r;

        if (resolved)
                c->data = resolved;
        drivers = arena_printf(&c->memory, "%s/drivers", c->data);
        l->warden_dir = arena_printf(&c->memory, "%s/drivers/" NATIVE, c->data);
        if (!drivers || !l->warden_dir)
                return err_set(e, ERR_TOO_LARGE, "the configuration is too large");
        r = identity_share_data(i, c->data, e);
        /* As the user, who must be able to reach the directory later. This also creates the installation id, and
         * checks that no other hutchd runs. */
        if (r == 0)
                r = identity_switch(i, e);
        if (r < 0)
                return r;
        ids_init(&ids);
        r = data_dir_open(&data, c->data, &ids, e);
        identity_restore();
        if (r < 0)
                return err_wrap(e,
                                "as user %s, who must be able to reach the data directory (or "
                                "choose another --data or --user)",
                                i->name);
        memcpy(l->installation, data.installation, sizeof(l->installation));
        data_dir_close(&data);
        r = identity_share_data(i, drivers, e);
        return r == 0 ? lock_warden(l->warden_dir, e) : r;
}

int launch(const struct options *o, char **argv, struct err *e)
{
        scoped(config_freep) struct config *c = NULL;
        struct launch_plan l = { 0 };
        struct identity i;
        int r;

        if (o->warden >= 0 || o->check_config || config_load(o, NULL, &c, e) < 0
            || !config_has_driver(c, NATIVE))
                return 0;
        if (geteuid() != 0)
                return err_set(
                        e, ERR_FORBIDDEN,
                        "the driver 'native' needs root; start hutchd as root (sudo make run), "
                        "or choose --driver fake");
        r = identity_choose(c, &i, e);
        if (r == 0)
                r = claim_uids(c, &l, &i, e);
        if (r == 0)
                r = find_programs(c, &l, e);
        if (r == 0)
                r = prepare_dirs(&i, c, &l, e);
        if (r < 0)
                return r;
        (void) snprintf(l.uid, sizeof(l.uid), "%u", (unsigned) i.uid);
        return run(c, &l, argv, e);
}
