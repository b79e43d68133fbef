/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/launch.h"

#include <sys/stat.h>

#include "base/base.h"
#include "execd/path.h"

static bool is_dir(const char *path)
{
        struct stat st;

        return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int launch_cwd(const struct agent *a, struct arena *arena, struct str given, const char **ret,
               struct err *e)
{
        struct str path;
        int r;

        if (given.n == 0) {
                *ret = is_dir(a->config.workspace.p) ? a->config.workspace.p : "/";
                return 0;
        }
        r = path_resolve(a, arena, given, &path, e);
        if (r < 0)
                return err_wrap(e, "cwd");
        if (!is_dir(path.p))
                return err_set(e, ERR_INVALID, "cwd: '%s' is not an existing directory", path.p);
        *ret = path.p;
        return 0;
}

const char *launch_shell(const struct agent *a)
{
        return spawn_exists("bash", a->env.vars) ? "bash" : "sh";
}

const struct spawn_user *launch_user(struct agent *a, struct arena *arena, int64_t uid, int64_t gid)
{
        struct spawn_user *u = arena_new(arena, struct spawn_user);
        gid_t *groups = arena_alloc_array(arena, USERS_GROUPS_MAX, sizeof(gid_t));
        struct user known;

        if (!u || !groups)
                return NULL;
        u->uid = (uid_t) uid;
        u->gid = gid < 0 ? 0 : (gid_t) gid;
        u->groups = groups;
        users_refresh(a->users);
        if (gid < 0 && users_by_id(a->users, u->uid, &known)) {
                u->gid = known.gid;
                u->n_groups = users_groups(a->users, &known, groups, USERS_GROUPS_MAX);
        }
        return u;
}

char **launch_argv(struct arena *arena, const struct str *items, size_t n)
{
        char **argv = arena_alloc_array(arena, n + 1, sizeof(char *));

        for (size_t i = 0; argv && i < n; i++) {
                argv[i] = arena_dup(arena, items[i]);
                if (!argv[i])
                        return NULL;
        }
        if (argv)
                argv[n] = NULL;
        return argv;
}
