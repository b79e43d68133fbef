/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "hutchd/daemon.h"

/* --- log files --- */

static void report_log(void *data, const char *path, const char *event, int error)
{
        struct daemon *d = data;

        (void) log_err(error, &d->log, "%s: %s", event, path);
}

static int open_log(struct daemon *d, const struct config *c, const char *path,
                    struct log_file **ret, struct err *e)
{
        int r = log_file_open(&(struct log_file_config){ .path = path,
                                                         .size_max = c->rotate_size,
                                                         .count = c->rotate_count,
                                                         .report = report_log,
                                                         .report_data = d },
                              ret);

        if (r == -EACCES && d->confined)
                return err_errno(e, r,
                                 "open the log file %s; if it is in another directory than at the "
                                 "start, restart hutchd",
                                 path);
        return r < 0 ? err_errno(e, r, "open the log file %s", path) : 0;
}

static int open_audit(struct daemon *d, const struct config *c, struct log_file **ret,
                      struct err *e)
{
        char path[PATH_MAX];
        int r = data_dir_path(&d->data, "audit.log", path, sizeof(path), e);

        return r < 0 ? r : open_log(d, c, c->audit_file ? c->audit_file : path, ret, e);
}

int daemon_open_logs(struct daemon *d, const struct config *c, struct err *e)
{
        struct log_file *audit;
        int r = 0;

        if (c->audit)
                r = open_audit(d, c, &audit, e);
        if (r == 0 && c->audit)
                d->audit = audit_new(audit, &clock_system);
        if (r == 0 && c->access_log && c->access_file)
                r = open_log(d, c, c->access_file, &d->access_file, e);
        d->access_sink = (struct log_sink){ .fd = -EBADF,
                                            .level = LOG_INFO,
                                            .format = c->log_format,
                                            .clock = &clock_system,
                                            .file = d->access_file };
        return r;
}

/* --- keys --- */

int daemon_check_keys(struct daemon *d, const struct config *c, struct err *e)
{
        size_t stored = 0;

        for (const struct api_key *k = keyring_next(d->keyring, STR_NULL); k;
             k = keyring_next(d->keyring, k->id))
                stored += !k->configured;
        if (c->n_keys + stored > 0)
                return 0;
        /* The addresses are those in use, whatever a new file has. */
        if (!config_is_local(d->config) && !d->config->insecure)
                return err_set(e, ERR_FORBIDDEN,
                               "there is no API key, so only 127.0.0.1, [::1] and unix sockets may "
                               "be served; set " API_KEY_VAR ", configure keys, or use --insecure");
        if (keyring_is_enforced(d->keyring)) {
                log_warn(&d->log,
                         "there is no valid API key: access is locked until one is configured");
                return 0;
        }
        log_warn(&d->log, "there is no API key: every caller is an administrator%s",
                 d->config->insecure ? ", also from other hosts (--insecure)" : "");
        return 0;
}

/* The file is checked more strictly than the service checks quotas: after the keys nothing fails. */
int daemon_apply(struct daemon *d, const struct config *c, struct err *e)
{
        int r = keyring_configure(d->keyring, c->keys, c->n_keys, e);

        return r < 0 ? r : service_set_limits(d->service, &c->quotas, e);
}

/* --- reload --- */

static bool needs_restart(const struct config *a, const struct config *b)
{
        char left[SOCK_ADDR_TEXT_MAX], right[SOCK_ADDR_TEXT_MAX];

        if (a->n_listen != b->n_listen || a->n_drivers != b->n_drivers
            || strcmp(a->data, b->data) != 0 || a->insecure != b->insecure)
                return true;
        for (size_t i = 0; i < a->n_listen; i++) {
                sock_addr_to_string(&a->listen[i], left);
                sock_addr_to_string(&b->listen[i], right);
                if (strcmp(left, right) != 0)
                        return true;
        }
        for (size_t i = 0; i < a->n_drivers; i++)
                if (strcmp(a->drivers[i], b->drivers[i]) != 0)
                        return true;
        return false;
}

static int reload(struct daemon *d, struct err *e)
{
        scoped(config_freep) struct config *c = NULL;
        scoped(log_file_closep) struct log_file *audit = NULL, *access = NULL;
        int r = config_load(d->options, d->has_env ? &d->env : NULL, &c, e);

        if (r == 0)
                r = daemon_check_keys(d, c, e);
        /* Whether a log has a file at all is decided at the start. */
        if (r == 0 && d->audit && c->audit)
                r = open_audit(d, c, &audit, e);
        if (r == 0 && d->access_file && c->access_file)
                r = open_log(d, c, c->access_file, &access, e);
        if (r == 0)
                r = daemon_apply(d, c, e);
        if (r < 0)
                return r;
        /* Nothing fails from here on. */
        if (audit)
                audit_reopen(d->audit, TAKE_PTR(audit));
        if (access)
                log_file_replace(d->access_file, TAKE_PTR(access));
        d->sink.level = c->log_level;
        if (needs_restart(c, d->config))
                log_warn(&d->log, "changes of listen, data, insecure and drivers need a restart");
        log_info(&d->log, "reloaded: %zu keys, quotas of %zu tenants, %zu bridges", c->n_keys,
                 c->quotas.n_tenants, c->n_bridges);
        /* A PURISTA command that runs has a copy of what it needs (api/purista/call.h). */
        d->api.purista = &c->purista;
        d->api.bridges = c->bridges;
        d->api.n_bridges = c->n_bridges;
        config_free(d->reloaded);
        d->reloaded = TAKE_PTR(c);
        return 0;
}

void daemon_reload(struct daemon *d)
{
        struct err e;

        d->reload_due = !d->server; /* the start has read the file already */
        if (d->ending || d->reload_due)
                return;
        sd_notify_reloading(&d->notify);
        if (reload(d, &e) < 0)
                log_fields(&d->log, LOG_ERROR, "reload failed, configuration unchanged",
                           LOG_F_STR("reason", str_from(e.message)));
        sd_notify_ready(&d->notify);
}
