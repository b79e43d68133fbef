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

/* --- signals --- */

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

static int watch_signals(struct daemon *d)
{
        static const int numbers[] = { SIGTERM, SIGINT, SIGHUP };

        static_assert(ARRAY_SIZE(numbers) == DAEMON_SIGNALS, "signals out of step");
        for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
                int r = uv_signal_init(&d->loop.uv, &d->signals[i]);

                d->signals[i].data = d;
                if (r == 0)
                        r = uv_signal_start(&d->signals[i], on_signal, numbers[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* --- running --- */

static int load(struct daemon *d)
{
        struct err e;
        int r = config_take_env(&d->env, &e);

        d->has_env = r > 0;
        if (r >= 0)
                r = config_load(d->options, d->has_env ? &d->env : NULL, &d->config, &e);
        for (size_t i = 0; r >= 0 && i < d->config->n_drivers; i++)
                r = drivers_check(d->config->drivers[i], &e);
        if (r < 0)
                fprintf(stderr, "hutchd: %s\n", e.message);
        return r;
}

static void run(struct daemon *d)
{
        struct err e;
        int r = net_loop_init(&d->loop, &clock_system);

        if (r < 0) {
                (void) log_err(r, &d->log, "event loop not created");
                d->exit_code = 1;
                return;
        }
        r = uv_timer_init(&d->loop.uv, &d->listen_timer);
        d->listen_timer.data = d;
        if (r == 0)
                r = watch_signals(d);
        if (r < 0) {
                (void) err_errno(&e, r, "watch signals");
                daemon_fail(d, &e);
        } else {
                daemon_start(d);
        }
        net_loop_run(&d->loop);
        net_loop_done(&d->loop);
}

static void serve(struct daemon *d)
{
        d->sink = (struct log_sink){ .fd = STDERR_FILENO,
                                     .level = d->config->log_level,
                                     .format = d->config->log_format,
                                     .clock = &clock_system };
        log_ctx_init_root(&d->log, &d->sink);
        ids_init(&d->ids);
        sd_notify_open(&d->notify);
        /* A closed connection and a full disk are error codes, not signals. */
        (void) signal(SIGPIPE, SIG_IGN);
        (void) signal(SIGXFSZ, SIG_IGN);
        run(d);
        sd_notify_close(&d->notify);
}

/* --- before the loop --- */

/* As the user where the user may. An address in use is retried later, by the user. */
static void bind_early(struct daemon *d, const struct identity *i)
{
        for (size_t n = 0; n < d->config->n_listen && i->change; n++) {
                const struct sock_addr *a = &d->config->listen[n];
                struct err e;
                int r = identity_switch(i, &e) < 0 ? -EPERM : sock_bind(a, &d->bound[n]);

                identity_restore();
                if (r == -EACCES || r == -EPERM || (r == -EADDRINUSE && sock_addr_is_unix(a)))
                        r = sock_bind(a, &d->bound[n]);
                if (r < 0)
                        d->bound[n] = -EBADF;
        }
}

/* A reload, and a start after a crash, read the file as the user: better to fail now. */
static int check_file(const struct daemon *d, const struct identity *i, struct err *e)
{
        const char *path = d->options->config;

        if (!path || !i->change || access(path, R_OK) == 0)
                return 0;
        return err_errno(e, -errno, "user %s must be able to read %s; chown or move it", i->name,
                         path);
}

/* A change of user clears the parent-death signal, so it is set afterwards. */
static int drop_privileges(struct daemon *d, struct err *e)
{
        const pid_t parent = getppid();
        struct identity i;
        int r = identity_choose(d->config, &i, e);

        if (r < 0)
                return r;
        bind_early(d, &i);
        r = identity_become(&i, e);
        if (r == 0)
                r = check_file(d, &i, e);
        if (r == 0 && d->options->warden >= 0
            && (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent))
                r = err_set(e, ERR_UNAVAILABLE, "hutch-launcher has ended");
        return r;
}

/* A file that is invalid is reported by load(), which reads it again. */
static int start_by_launcher(const struct options *o, char **argv)
{
        scoped(config_freep) struct config *c = NULL;
        struct err e;

        if (config_load(o, NULL, &c, &e) < 0 || !launch_is_due(o, c))
                return 0;
        if (launch(o, c, argv, &e) < 0)
                fprintf(stderr, "hutchd: %s\n", e.message);
        return -1;
}

/* roff, for the manual page. */
static int print_reference(void)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, 1 * MiB);
        config_table_print_reference(&hutchd_config_table, &b);
        return buf_failed(&b) || fputs(buf_str(&b).p, stdout) == EOF ? 1 : 0;
}

int daemon_run(const struct options *o, char **argv)
{
        struct daemon d = { .options = o };
        struct err e;

        if (o->print_reference)
                return print_reference();
        for (size_t i = 0; i < LISTEN_MAX; i++)
                d.bound[i] = -EBADF;
        if (start_by_launcher(o, argv) < 0 || load(&d) < 0) {
                d.exit_code = 1;
        } else if (o->check_config) {
                puts("hutchd: configuration OK");
        } else if (drop_privileges(&d, &e) < 0) {
                fprintf(stderr, "hutchd: %s\n", e.message);
                d.exit_code = 1;
        } else {
                serve(&d);
        }
        config_free(d.config);
        config_free(d.reloaded);
        return d.exit_code;
}
