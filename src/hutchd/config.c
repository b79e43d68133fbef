/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/secret.h"
#include "http/server.h"
#include "hutchd/config_rules.h"
#include "hutchd/config_schema.h"
#include "hutchd/config_where.h"
#include "os/fd.h"
#include "os/file.h"

#define REQUESTS_DEFAULT 4096

/* --- memory --- */

static struct config *config_new(void)
{
        struct config *c = xnew(struct config);

        arena_init(&c->memory, CONFIG_ARENA_MAX);
        c->log_level = LOG_INFO;
        c->log_format = LOG_LOGFMT;
        c->audit = true;
        c->requests_max = REQUESTS_DEFAULT;
        c->native.network = "private";
        c->purista.output_max = PURISTA_OUTPUT_DEFAULT;
        c->purista.file_max = PURISTA_FILE_DEFAULT;
        c->native.has_private = true;
        c->create_wait = service_defaults.create_wait;
        c->tombstone = service_defaults.tombstone_for;
        c->reconcile = service_defaults.reconcile_every;
        c->drain_timeout = http_server_defaults.drain_timeout;
        return c;
}

void config_free(struct config *c)
{
        if (!c)
                return;
        arena_done(&c->memory);
        free(c);
}

void config_freep(struct config **c)
{
        config_free(*c);
}

/* --- from bytes --- */

struct source {
        struct str text;
        const char *name;
        bool others_read; /* it is a file that others may read */
};

static bool has_plain_keys(const struct config_raw *raw)
{
        for (uint64_t i = 0; i < raw->n_keys; i++)
                if (raw->keys[i].key)
                        return true;
        return false;
}

static int parse_raw(const struct source *s, struct config_where *w, struct config *to,
                     struct err *e)
{
        struct config_raw *raw;
        int r = config_raw_load(s->text, w, s->name, &raw, e);

        if (r < 0 || !raw)
                return r;
        if (s->others_read && has_plain_keys(raw))
                r = err_set(e, ERR_FORBIDDEN,
                            "%s: holds keys and may be read by others; chmod 600 it, or use "
                            "sha256: instead of key:",
                            s->name);
        else
                r = config_rules_apply(
                        &(struct config_rules){ .raw = raw, .where = w, .name = s->name, .to = to },
                        e);
        config_raw_free(raw);
        return r;
}

static int parse_source(const struct source *s, struct config *to, struct err *e)
{
        struct config_where w;
        int r = config_where_open(&w, s->text, s->name, e);

        if (r < 0)
                return r;
        r = parse_raw(s, &w, to, e);
        config_where_close(&w);
        return r;
}

/* --- the file --- */

static int read_all(int fd, struct buf *text)
{
        for (;;) {
                char *p = buf_reserve(text, 16 * KiB);
                ssize_t n = p ? read(fd, p, 16 * KiB) : -1;

                if (!p)
                        return -EFBIG;
                if (n < 0 && errno != EINTR)
                        return -errno;
                if (n == 0)
                        return 0;
                if (n > 0)
                        buf_advance(text, (size_t) n);
        }
}

static int parse_file(const char *path, struct config *to, struct err *e)
{
        scoped(fd_closep) int fd = -EBADF;
        scoped(buf_done) struct buf text;
        struct source s = { .name = path };
        struct stat st;
        int r;

        /* Grows by doubling, and a reservation is larger than what it brings. */
        buf_init(&text, CONFIG_FILE_MAX + 16 * KiB);
        buf_mark_secret(&text);
        r = file_open_read(path, &st, &fd);
        if (r == 0)
                r = st.st_size > (off_t) CONFIG_FILE_MAX ? -EFBIG : read_all(fd, &text);
        if (r < 0)
                return err_errno(e, r, "read %s", path);
        if (st.st_mode & S_IWOTH)
                return err_set(e, ERR_FORBIDDEN, "everybody may write %s; chmod o-w it", path);
        s.text = buf_str(&text);
        s.others_read = (st.st_mode & (S_IRGRP | S_IROTH)) != 0;
        return parse_source(&s, to, e);
}

/* --- the rest --- */

static void apply_options(struct config *c, const struct options *o)
{
        if (o->n_listen > 0) {
                memcpy(c->listen, o->listen, sizeof(c->listen));
                c->n_listen = o->n_listen;
        }
        if (o->n_drivers > 0) {
                memcpy(c->drivers, o->drivers, o->n_drivers * sizeof(c->drivers[0]));
                c->n_drivers = o->n_drivers;
        }
        if (o->data)
                c->data = o->data;
        if (o->user)
                c->user = o->user;
        c->insecure = c->insecure || o->insecure;
        c->access_log = c->access_log || o->access_log;
        if (o->has_log_level)
                c->log_level = o->log_level;
        if (o->has_log_format)
                c->log_format = o->log_format;
        if (o->max_connections > 0)
                c->connections_max = (unsigned) o->max_connections;
        if (o->has_drain_timeout)
                c->drain_timeout = o->drain_timeout;
}

/* One more, for which the array has no room yet. */
static int add_env_key(struct config *c, const struct api_key *env, struct err *e)
{
        struct api_key *all = arena_alloc_array(&c->memory, c->n_keys + 1, sizeof(*all));

        if (!all)
                return err_set(e, ERR_TOO_LARGE, "too many keys");
        for (size_t i = 0; i < c->n_keys; i++) {
                if (memcmp(c->keys[i].digest, env->digest, sizeof(env->digest)) == 0)
                        return err_set(e, ERR_EXISTS,
                                       "the key of " API_KEY_VAR " is in the file, too (keys[%zu])",
                                       i);
                all[i] = c->keys[i];
        }
        all[c->n_keys++] = *env;
        c->keys = all;
        return 0;
}

/* As root that of the system, else the user's own. */
static const char *default_data(struct config *c)
{
        const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

        if (geteuid() == 0)
                return "/var/lib/hutch";
        if (state && state[0] == '/')
                return arena_printf(&c->memory, "%s/hutch", state);
        return home && home[0] == '/' ? arena_printf(&c->memory, "%s/.local/state/hutch", home)
                                      : NULL;
}

/* Drivers hand it to other processes, whose working folder is another one. */
static const char *absolute(struct config *c, const char *path)
{
        char cwd[PATH_MAX];

        if (path[0] == '/')
                return path;
        return getcwd(cwd, sizeof(cwd)) ? arena_printf(&c->memory, "%s/%s", cwd, path) : NULL;
}

const char *config_program(struct config *c, const char *name)
{
        char self[PATH_MAX], path[PATH_MAX];
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        char *slash;

        if (n > 0) {
                self[n] = '\0';
                slash = strrchr(self, '/');
                if (slash)
                        *slash = '\0';
                if (snprintf(path, sizeof(path), "%s/%s", self, name) < (int) sizeof(path)
                    && access(path, X_OK) == 0)
                        return arena_strdup(&c->memory, path);
        }
        return arena_printf(&c->memory, HUTCH_LIBEXECDIR "/%s", name);
}

bool config_has_driver(const struct config *c, const char *name)
{
        for (size_t i = 0; i < c->n_drivers; i++)
                if (strcmp(c->drivers[i], name) == 0)
                        return true;
        return false;
}

static int fill_in(struct config *c, struct err *e)
{
        if (c->n_listen == 0
            && sock_addr_from_string(STR("127.0.0.1:8080"), &c->listen[c->n_listen++]) < 0)
                return err_set(e, ERR_INTERNAL, "no address");
        if (!c->data)
                c->data = default_data(c);
        if (c->data)
                c->data = absolute(c, c->data);
        if (!c->data)
                return err_set(e, ERR_INVALID,
                               "no data folder: there is no HOME; give one with --data");
        if (!c->agent)
                c->agent = config_program(c, "hutch-execd");
        return c->agent ? 0 : err_set(e, ERR_TOO_LARGE, "the configuration is too large");
}

static int load_into(struct config *c, const struct options *o, const struct api_key *env,
                     struct err *e)
{
        int r = o->config ? parse_file(o->config, c, e) : 0;

        if (r == 0 && env)
                r = add_env_key(c, env, e);
        if (r < 0)
                return r;
        apply_options(c, o);
        return fill_in(c, e);
}

int config_load(const struct options *o, const struct api_key *env, struct config **ret,
                struct err *e)
{
        scoped(config_freep) struct config *c = config_new();
        int r = load_into(c, o, env, e);

        if (r == 0)
                *ret = TAKE_PTR(c);
        return r;
}

int config_parse(struct str text, const char *name, struct config **ret, struct err *e)
{
        scoped(config_freep) struct config *c = config_new();
        int r = parse_source(&(struct source){ .text = text, .name = name }, c, e);

        if (r == 0)
                r = fill_in(c, e);
        if (r == 0)
                *ret = TAKE_PTR(c);
        return r;
}

/* --- the environment --- */

int config_take_env(struct api_key *ret, struct err *e)
{
        static char id[CONFIG_KEY_ID_LEN + 1];
        char *value = getenv(API_KEY_VAR);
        const char *expected = NULL;
        bool given = value && *value;

        *ret = (struct api_key){ .name = STR(API_KEY_VAR),
                                 .tenant = STR("default"),
                                 .principal = STR("default"),
                                 .role = ROLE_ADMIN,
                                 .configured = true };
        if (given)
                expected = config_key_set(ret, str_from(value), id);
        /* unsetenv only forgets the pointer; /proc/PID/environ shows the bytes themselves. */
        if (value)
                wipe(value, strlen(value));
        (void) unsetenv(API_KEY_VAR);
        if (expected)
                return err_set(e, ERR_INVALID, API_KEY_VAR ": %s", expected);
        return given;
}

/* --- addresses --- */

bool config_address_is_local(const struct sock_addr *a)
{
        if (a->ss.ss_family == AF_INET) {
                const struct sockaddr_in *in = (const void *) &a->ss;

                return ntohl(in->sin_addr.s_addr) >> 24 == 127;
        }
        if (a->ss.ss_family == AF_INET6)
                return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *) &a->ss)->sin6_addr);
        return sock_addr_is_unix(a);
}

bool config_is_local(const struct config *c)
{
        for (size_t i = 0; i < c->n_listen; i++)
                if (!config_address_is_local(&c->listen[i]))
                        return false;
        return true;
}
