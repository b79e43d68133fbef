/* SPDX-License-Identifier: Apache-2.0 */
#include "hutchd/daemon.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"

/* --- signals --- */

static void on_signal(uv_signal_t *h, int number)
{
        struct daemon *d = h->data;

        if (number == SIGHUP) {
                daemon_reload(d);
                return;
        }
        log_info(&d->log,
                 d->ending ? "%s again: ending at once"
                           : "%s: finishing what runs, accepting nothing new",
                 strsignal(number));
        daemon_end(d);
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

/* --- the whole --- */

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
                (void) log_err(r, &d->log, "can't make an event loop");
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
        notify_open(&d->notify);
        /* A client that is gone is an error code, not our end; a full disk likewise. */
        (void) signal(SIGPIPE, SIG_IGN);
        (void) signal(SIGXFSZ, SIG_IGN);
        run(d);
        notify_close(&d->notify);
}

int daemon_run(const struct options *o)
{
        struct daemon d = { .options = o };

        if (load(&d) < 0)
                d.exit_code = 1;
        else if (o->check_config)
                puts("hutchd: the configuration is right");
        else
                serve(&d);
        config_free(d.config);
        return d.exit_code;
}
