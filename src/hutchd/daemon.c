/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/daemon.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/base.h"
#include "hutchd/config_table.h"
#include "hutchd/launch.h"
#include "hutchd/privilege.h"
#include "os/landlock.h"

/* --- signals and the timer of the start --- */

static void on_signal(uv_signal_t *h, int number)
{
        struct daemon *d = h->data;

        if (number == SIGHUP) {
                daemon_reload(d);
                return;
        }
        log_info(&d->log, d->ending ? "%s again: stopping at once" : "%s: draining",
                 strsignal(number));
        daemon_stop(d);
}

static int watch_events(struct daemon *d)
{
        static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };

        int r = uv_timer_init(&d->loop.uv, &d->listen_timer);

        static_assert(ARRAY_SIZE(numbers) == DAEMON_SIGNALS, "signals out of step");
        d->listen_timer.data = d;
        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(numbers); i++) {
                r = uv_signal_init(&d->loop.uv, &d->signals[i]);
                d->signals[i].data = d;
                if (r == 0)
                        r = uv_signal_start(&d->signals[i], on_signal, numbers[i]);
        }
        return r;
}

/* --- before the loop --- */

/* A change of user clears the parent-death signal, so it is set afterwards. */
static int drop_privileges(struct daemon *d, struct err *e)
{
        const char *path = d->options->config;
        const pid_t parent = getppid();
        struct identity i;
        int r = identity_choose(d->config, &i, e);

        if (r < 0)
                return r;
        /* Bound as the user where the user may. An address in use is retried later, by the user. */
        for (size_t n = 0; n < d->config->n_listen && i.change; n++) {
                const struct sock_addr *a = &d->config->listen[n];

                r = identity_switch(&i, e) < 0 ? -EPERM : sock_bind(a, &d->bound[n]);
                identity_restore();
                if (r == -EACCES || r == -EPERM || (r == -EADDRINUSE && sock_addr_is_unix(a)))
                        r = sock_bind(a, &d->bound[n]);
                if (r < 0)
                        d->bound[n] = -EBADF;
        }
        r = identity_become(&i, e);
        if (r < 0)
                return r;
        /* A reload, and a start after a crash, read the file as the user: better to fail now. */
        if (path && i.change && access(path, R_OK) < 0)
                return err_errno(e, -errno, "user %s must be able to read %s; chown or move it",
                                 i.name, path);
        if (d->options->warden >= 0
            && (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent))
                return err_set(e, ERR_UNAVAILABLE, "hutch-launcher has ended");
        return 0;
}

/* roff, for the manual page. */
static int print_reference(void)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, 1 * MiB);
        config_table_print_reference(&hutchd_config_table, &b);
        return buf_failed(&b) || fputs(buf_str(&b).p, stdout) == EOF ? 1 : 0;
}

static int configure(struct daemon *d, char **argv, struct err *e)
{
        const struct options *o = d->options;
        int r;

        for (size_t i = 0; i < LISTEN_MAX; i++)
                d->bound[i] = -EBADF;
        r = launch(o, argv, e);
        if (r == 0)
                r = config_take_env(&d->env, e);
        d->has_env = r > 0;
        if (r >= 0)
                r = config_load(o, d->has_env ? &d->env : NULL, &d->config, e);
        for (size_t i = 0; r == 0 && i < d->config->n_drivers; i++)
                r = drivers_check(d->config->drivers[i], e);
        if (r == 0 && d->config->landlock == CONFIG_LANDLOCK_REQUIRED && landlock_abi() == 0)
                r = err_set(e, ERR_UNSUPPORTED, CONFINEMENT_MISSING);
        if (r == 0 && !o->check_config)
                r = drop_privileges(d, e);
        return r;
}

/* --- running --- */

static int loop_open(struct daemon *d)
{
        int r;

        d->sink = (struct log_sink){ .fd = STDERR_FILENO,
                                     .level = d->config->log_level,
                                     .format = d->config->log_format,
                                     .clock = &clock_system,
                                     .lost = &d->log_lost };
        log_ctx_init_root(&d->log, &d->sink);
        ids_init(&d->ids);
        /* A closed connection and a full disk are error codes, not signals. */
        (void) signal(SIGPIPE, SIG_IGN);
        (void) signal(SIGXFSZ, SIG_IGN);
        r = net_loop_init(&d->loop, &clock_system);
        return r < 0 ? log_err(r, &d->log, "event loop not created") : 0;
}

int daemon_run(const struct options *o, char **argv)
{
        struct daemon d = { .options = o };
        struct err e;
        int r;

        if (o->print_reference)
                return print_reference();
        if (configure(&d, argv, &e) < 0) {
                fprintf(stderr, "hutchd: %s\n", e.message);
                d.exit_code = 1;
        } else if (o->check_config) {
                puts("hutchd: configuration OK");
                if (d.config->landlock == CONFIG_LANDLOCK_AUTO && landlock_abi() == 0)
                        puts("hutchd: this kernel has no Landlock: hutchd will not be confined to "
                             "its own files");
        } else if (loop_open(&d) < 0) {
                d.exit_code = 1;
        } else {
                sd_notify_open(&d.notify);
                r = watch_events(&d);
                if (r < 0) {
                        (void) err_errno(&e, r, "watch signals");
                        daemon_fail(&d, &e);
                } else {
                        daemon_start(&d);
                }
                net_loop_run(&d.loop);
                net_loop_done(&d.loop);
                sd_notify_close(&d.notify);
        }
        confinement_done(&d.confinement);
        config_free(d.config);
        config_free(d.reloaded);
        return d.exit_code;
}
