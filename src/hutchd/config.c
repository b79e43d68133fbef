/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/config.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/secret.h"
#include "hutchd/config_table.h"

/* --- memory --- */

static struct config *config_new(void)
{
        struct config *c = xnew(struct config);

        arena_init(&c->memory, CONFIG_ARENA_MAX);
        config_table_defaults(&hutchd_config_table, c, &c->memory);
        c->audit = true;
        c->own_uid = UID_BASE_FIRST - 1;
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

/* --- the command line, the environment and what is left --- */

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

#define DEFAULT_CPU_MILLI 2000U
#define DEFAULT_MEMORY    (2 * (uint64_t) GiB)
#define MAX_CPU_MILLI     4000U
#define MAX_MEMORY        (4 * (uint64_t) GiB)

/* The maxima are not below what clients send by themselves (2Gi), however small the host is: a limit above what it has
 * limits nothing, but refusing it would make the server useless. */
struct resource_policy config_resources(const struct config *c, unsigned cpus, uint64_t memory)
{
        struct resource_policy p = c->resources;
        const uint64_t cpu_milli = (uint64_t) cpus * 1000;

        memory -= memory % MiB; /* for texts that people can read */
        if (p.max.cpu_milli == 0)
                p.max.cpu_milli =
                        MAX_OF(MAX_OF(cpu_milli, (uint64_t) MAX_CPU_MILLI), p.defaults.cpu_milli);
        if (p.max.memory_bytes == 0)
                p.max.memory_bytes = MAX_OF(MAX_OF(memory, MAX_MEMORY), p.defaults.memory_bytes);
        if (p.defaults.cpu_milli == 0)
                p.defaults.cpu_milli = MIN_OF(cpu_milli, (uint64_t) DEFAULT_CPU_MILLI);
        if (p.defaults.memory_bytes == 0)
                p.defaults.memory_bytes = MIN_OF(memory / MiB / 2 * MiB, DEFAULT_MEMORY);
        if (p.defaults.pids == 0)
                p.defaults.pids = RESOURCE_PIDS_BY_MEMORY;
        return p;
}

/* What no one has set. Drivers pass the data directory to processes with another working directory, so it is
 * absolute. */
static int fill_in(struct config *c, struct err *e)
{
        const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
        char cwd[PATH_MAX];

        if (c->n_listen == 0
            && sock_addr_from_string(STR("127.0.0.1:8080"), &c->listen[c->n_listen++]) < 0)
                return err_set(e, ERR_INTERNAL, "no address to listen on");
        /* The data directory of the system for root, else that of the user. */
        if (!c->data && geteuid() == 0)
                c->data = "/var/lib/hutch";
        else if (!c->data && state && state[0] == '/')
                c->data = arena_printf(&c->memory, "%s/hutch", state);
        else if (!c->data && home && home[0] == '/')
                c->data = arena_printf(&c->memory, "%s/.local/state/hutch", home);
        if (c->data && c->data[0] != '/')
                c->data = getcwd(cwd, sizeof(cwd)) ? arena_printf(&c->memory, "%s/%s", cwd, c->data)
                                                   : NULL;
        if (!c->data)
                return err_set(e, ERR_INVALID,
                               "no data directory: HOME is not set; choose one with --data");
        if (!c->agent)
                c->agent = config_program(c, "hutch-execd");
        return c->agent ? 0 : err_set(e, ERR_TOO_LARGE, "the configuration is too large");
}

static int add_env_key(struct config *c, const struct api_key *env, struct err *e)
{
        struct api_key *all = arena_alloc_array(&c->memory, c->n_keys + 1, sizeof(*all));

        if (!all)
                return err_set(e, ERR_TOO_LARGE, "too many keys");
        for (size_t i = 0; i < c->n_keys; i++) {
                if (memcmp(c->keys[i].digest, env->digest, sizeof(env->digest)) == 0)
                        return err_set(e, ERR_EXISTS,
                                       "the key of " API_KEY_VAR " is also in the file (keys[%zu])",
                                       i);
                all[i] = c->keys[i];
        }
        all[c->n_keys++] = *env;
        c->keys = all;
        return 0;
}

int config_load(const struct options *o, const struct api_key *env, struct config **ret,
                struct err *e)
{
        scoped(config_freep) struct config *c = config_new();
        scoped(buf_done) struct buf text = { 0 };
        struct config_source file = { .name = o->config };
        mode_t mode = 0;
        int r = 0;

        if (o->config) {
                r = config_file_read(o->config, CONFIG_FILE_MAX, S_IWOTH, &text, &mode, e);
                file.text = buf_str(&text);
                file.others_may_read = (mode & (S_IRGRP | S_IROTH)) != 0;
                if (r == 0)
                        r = config_table_read(&hutchd_config_table, &file, c, &c->memory, e);
        }
        if (r == 0 && env)
                r = add_env_key(c, env, e);
        if (r < 0)
                return r;
        apply_options(c, o);
        r = fill_in(c, e);
        if (r == 0)
                *ret = TAKE_PTR(c);
        return r;
}

int config_parse(struct str text, const char *name, struct config **ret, struct err *e)
{
        scoped(config_freep) struct config *c = config_new();
        int r = config_table_read(&hutchd_config_table,
                                  &(struct config_source){ .text = text, .name = name }, c,
                                  &c->memory, e);

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
