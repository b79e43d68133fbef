/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/launch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/map.h"
#include "execd/agent.h"
#include "execd/path.h"
#include "os/fd.h"

static struct str name_of(struct str var)
{
        ssize_t eq = str_find(var, '=');

        return eq < 0 ? var : str_of(var.p, (size_t) eq);
}

static bool is_agent_config(struct str name)
{
        return str_starts_with(name, STR("EXECD_")) || str_starts_with(name, STR("HUTCH_EXECD_"));
}

bool environment_name_is_valid(struct str name)
{
        return name.n > 0 && !memchr(name.p, '=', name.n) && !memchr(name.p, '\0', name.n);
}

/* --- the environment of the agent --- */

void environment_init(struct environment *e, char *const *environ_now)
{
        const char *file = ENV_FILE_DEFAULT;
        size_t count = 0;

        *e = (struct environment){ 0 };
        while (environ_now && environ_now[count])
                count++;
        e->vars = xcalloc(count + 1, sizeof(char *));
        for (size_t i = 0; i < count; i++) {
                struct str var = str_from(environ_now[i]);

                if (str_starts_with(var, STR("EXECD_ENVS=")))
                        file = environ_now[i] + strlen("EXECD_ENVS=");
                else if (!is_agent_config(name_of(var)))
                        e->vars[e->n++] = xstrndup_str(var);
        }
        e->file = *file ? xstrndup_str(str_from(file)) : NULL;
}

void environment_done(struct environment *e)
{
        for (size_t i = 0; i < e->n; i++)
                free(e->vars[i]);
        free(e->vars);
        free(e->file);
        *e = (struct environment){ 0 };
}

/* --- the environment file --- */

/* The sandbox controls the file: it may be a FIFO, a device, or endless. */
static struct str read_file(const char *path, struct arena *a)
{
        scoped(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat st;
        char *text;
        ssize_t n;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0
            || (uint64_t) st.st_size > ENV_FILE_MAX)
                return STR_NULL;
        text = arena_alloc(a, (size_t) st.st_size + 1);
        n = text ? read(fd, text, (size_t) st.st_size) : -1;
        return n > 0 ? str_of(text, (size_t) n) : STR_NULL;
}

/* "NAME=value" or "export NAME=value", the value optionally quoted; "#" begins a comment line. */
static bool next_line(struct str *rest, struct str *ret_name, struct str *ret_value)
{
        struct str line;

        while (str_split(rest, '\n', &line)) {
                ssize_t eq;

                if (str_ends_with(line, STR("\r")))
                        line.n--;
                line = str_trim(line);
                if (str_starts_with(line, STR("export ")))
                        line = str_trim(str_skip(line, 7));
                eq = str_find(line, '=');
                if (eq <= 0 || line.p[0] == '#')
                        continue;
                *ret_name = str_trim(str_of(line.p, (size_t) eq));
                *ret_value = str_trim(str_skip(line, (size_t) eq + 1));
                if (ret_value->n >= 2 && (ret_value->p[0] == '"' || ret_value->p[0] == '\'')
                    && ret_value->p[ret_value->n - 1] == ret_value->p[0])
                        *ret_value = str_of(ret_value->p + 1, ret_value->n - 2);
                if (environment_name_is_valid(*ret_name) && !is_agent_config(*ret_name)
                    && !memchr(ret_value->p, '\0', ret_value->n))
                        return true;
        }
        return false;
}

struct str environment_get(const struct environment *e, struct arena *a, struct str name)
{
        struct str text = e->file ? read_file(e->file, a) : STR_NULL;
        struct str found = STR_NULL, n, v;

        while (text.p && next_line(&text, &n, &v))
                if (str_eq(n, name))
                        found = v;
        for (size_t i = 0; i < e->n && !found.p; i++) {
                const char *var = e->vars[i];

                if (var && str_eq(name_of(str_from(var)), name) && var[name.n] == '=')
                        found = str_from(var + name.n + 1);
        }
        return found;
}

/* --- the environment of a new process --- */

struct vector {
        char **vars;
        size_t n;
        struct map by_name;
        struct var {
                struct map_node node;
                size_t index;
        } * index;
};

/* Replaces a variable of the same name. */
static void put(struct vector *v, char *text)
{
        struct str name = name_of(str_from(text));
        struct map_node *old = map_get(&v->by_name, name);
        size_t at = old ? container_of(old, struct var, node)->index : v->n;

        v->vars[at] = text;
        if (old)
                return;
        v->index[at] = (struct var){ .index = at };
        map_add(&v->by_name, &v->index[at].node, name);
        v->n++;
}

static bool put_pair(struct vector *v, struct arena *a, struct str name, struct str value)
{
        char *text = arena_alloc(a, name.n + value.n + 2), *p;

        if (!text)
                return false;
        p = mempcpy(text, name.p, name.n);
        *p++ = '=';
        p = mempcpy(p, value.p ? value.p : "", value.n);
        *p = '\0';
        put(v, text);
        return true;
}

char **environment_build(const struct environment *e, struct arena *a, const struct json_map *more)
{
        struct str text = e->file ? read_file(e->file, a) : STR_NULL, rest = text, name, value;
        size_t room = e->n + (more ? more->n : 0);
        struct vector v = { 0 };
        bool ok;

        while (rest.p && next_line(&rest, &name, &value))
                room++;
        v.vars = arena_alloc_array(a, room + 1, sizeof(char *));
        v.index = arena_alloc_array(a, room, sizeof(struct var));
        if (!v.vars || !v.index)
                return NULL;
        map_init(&v.by_name);
        for (size_t i = 0; i < e->n; i++)
                put(&v, e->vars[i]);
        ok = true;
        while (ok && text.p && next_line(&text, &name, &value))
                ok = put_pair(&v, a, name, value);
        for (size_t i = 0; ok && more && i < more->n; i++)
                ok = put_pair(&v, a, more->items[i].key, more->items[i].value);
        v.vars[v.n] = NULL;
        map_done(&v.by_name);
        return ok ? v.vars : NULL;
}

/* --- directory, shell, user, arguments --- */

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
