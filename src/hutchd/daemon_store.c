/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/secret.h"
#include "config/table.h"
#include "hutchd/daemon.h"
#include "os/fd.h"
#include "os/virtual_file.h"
#include "store/store_nats.h"
#include "store/store_redis.h"

/* Between two probes of an unreachable store; each also takes store.wait. */
#define STORE_RETRY_MS 500

/* --- opening --- */

static int open_redis(struct daemon *d, struct err *e)
{
        const struct config *c = d->config;
        struct store_redis_config config = {
                .address = c->store.address.ss,
                .address_len = c->store.address.len,
                .user = c->store.user,
                .database = c->store.database,
                .wait = c->store.wait,
                .log = &d->log,
        };
        int r = c->store.password_file
                        ? config_secret_read("store.password_file", c->store.password_file,
                                             &d->store_password, e)
                        : 0;

        if (r < 0)
                return r;
        sock_addr_to_string(&c->store.address, d->store_address);
        config.where = d->store_address;
        if (str_starts_with(str_from(config.where), STR("http://")))
                config.where += strlen("http://");
        config.password = d->store_password;
        d->store = store_redis_open(&d->loop, &config);
        return 0;
}

/* hutch-store-nats reads these files; errors are better known now. */
static int check_nats_files(const struct config *c, struct err *e)
{
        const struct {
                const char *name, *path;
                mode_t forbidden; /* only its owner and group may access a secret */
        } files[] = {
                { "store.password_file", c->store.password_file, S_IRWXO },
                { "store.token_file", c->store.token_file, S_IRWXO },
                { "store.credentials_file", c->store.credentials_file, S_IRWXO },
                { "store.key_file", c->store.key_file, S_IRWXO },
                { "store.ca_file", c->store.ca_file, 0 },
                { "store.cert_file", c->store.cert_file, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                const char *name = files[i].name, *path = files[i].path;
                struct stat st;

                if (!path)
                        continue;
                if (stat(path, &st) < 0)
                        return err_errno(e, -errno, "%s %s", name, path);
                if (st.st_mode & files[i].forbidden)
                        return err_set(e, ERR_FORBIDDEN, "%s %s: others may read it; chmod o= it",
                                       name, path);
                if (access(path, R_OK) < 0)
                        return err_errno(e, -errno, "%s %s", name, path);
        }
        return 0;
}

static int open_nats(struct daemon *d, struct err *e)
{
        struct config *c = d->config;
        struct store_nats_config config = {
                .program = config_program(c, "hutch-store-nats"),
                .urls = c->store.urls,
                .bucket = c->store.bucket,
                .replicas = c->store.replicas,
                .user = c->store.user.p,
                .password_file = c->store.password_file,
                .token_file = c->store.token_file,
                .credentials_file = c->store.credentials_file,
                .ca_file = c->store.ca_file,
                .cert_file = c->store.cert_file,
                .key_file = c->store.key_file,
                .wait = c->store.wait,
                .log = &d->log,
        };
        int r = check_nats_files(c, e);

        if (r == 0 && !config.program)
                r = err_set(e, ERR_TOO_LARGE, "the configuration is too large");
        return r < 0 ? r : store_nats_open(&d->loop, &config, &d->store, e);
}

int daemon_open_store(struct daemon *d, struct err *e)
{
        char path[PATH_MAX];
        int r;

        if (d->config->store.kind == CONFIG_STORE_REDIS)
                return open_redis(d, e);
        if (d->config->store.kind == CONFIG_STORE_NATS)
                return open_nats(d, e);
        r = data_dir_path(&d->data, "store.sqlite", path, sizeof(path), e);
        return r < 0 ? r : store_sqlite_open(&d->loop, path, &d->store, e);
}

/* --- waiting for the store --- */

static void probe_store_again(uv_timer_t *t)
{
        struct daemon *d = t->data;

        if (!d->ending)
                daemon_await_store(d);
}

static void store_probed(struct op *op, int result)
{
        struct daemon *d = container_of(op, struct daemon, store_probe.req.op);
        const char *why = d->store_probe.req.err.message;

        if (result != ERR_RETURN(ERR_UNAVAILABLE) || d->ending) {
                if (!daemon_start_continues(d, result, &d->store_probe.req.err))
                        return;
                if (d->nodes)
                        daemon_join(d);
                else
                        daemon_load(d);
                return;
        }
        d->starting = NULL;
        if (!d->store_unreachable)
                log_fields(&d->log, LOG_WARN, "store unreachable, waiting for it",
                           LOG_F_STR("reason", str_from(why)));
        d->store_unreachable = true;
        sd_notify_status(&d->notify, "waiting for the store: %s", why);
        (void) uv_timer_start(&d->listen_timer, probe_store_again, STORE_RETRY_MS, 0);
}

void daemon_await_store(struct daemon *d)
{
        op_init(&d->store_probe.req.op, store_probed);
        d->starting = &d->store_probe.req.op;
        store_start(d->store, store_scan_req(&d->store_probe, STR_NULL, STR_NULL, 1));
}
