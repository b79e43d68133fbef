/* SPDX-License-Identifier: Apache-2.0 */

/* hutch-engine: sets up the worker and runs the loop. Standard input is the socket to hutchd. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/worker.h"
#include "os/fd.h"

/* The socket moves away from standard input, which child processes would inherit. */
static int take_socket(struct err *e)
{
        struct stat st;
        int fd, null;

        if (fstat(STDIN_FILENO, &st) < 0 || !S_ISSOCK(st.st_mode))
                return err_set(e, ERR_INVALID,
                               "standard input is not a socket; hutch-engine is started by hutchd");
        fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
        null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (fd < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0)
                return err_errno(e, -errno, "take the socket");
        (void) fd_close(null);
        return fd;
}

int main(int argc, char **argv)
{
        static struct engine_settings settings;
        static struct net_loop loop;
        static struct log_sink sink;
        static struct log_ctx log;
        static struct engine_worker w;
        scoped(buf_done) struct buf text;
        enum options_result parsed;
        struct err e;
        int r;

        /* Secrets pass through this process, and perhaps a connection to a root engine: other processes of the
         * same user must not read its memory. */
        (void) prctl(PR_SET_DUMPABLE, 0);
        buf_init(&text, BUF_MAX_LOG_LINE);
        parsed = engine_settings_parse(argc, argv, &settings, &text);
        if (parsed != OPTIONS_RUN) {
                (void) fputs(buf_str(&text).p, parsed == OPTIONS_EXIT_OK ? stdout : stderr);
                return parsed == OPTIONS_EXIT_OK ? 0 : 2;
        }
        sink = (struct log_sink){ .fd = STDERR_FILENO,
                                  .level = settings.log_level,
                                  .format = settings.log_format,
                                  .clock = &clock_system };
        log_ctx_init_root(&log, &sink);
        log_ctx_add_str(&log, "engine", str_from(engine_kind_to_string(settings.kind)));
        (void) signal(SIGPIPE, SIG_IGN);
        (void) fd_limit_raise();
        r = net_loop_init(&loop, &clock_system);
        if (r < 0) {
                (void) log_err(r, &log, "cannot create the event loop");
                return 1;
        }
        w.loop = &loop;
        w.log = &log;
        w.settings = &settings;
        r = take_socket(&e);
        if (r >= 0)
                r = engine_worker_start(&w, r, &e);
        if (r < 0) {
                (void) fprintf(stderr, "hutch-engine: %s\n", e.message);
                return 1;
        }
        net_loop_run(&loop);
        net_loop_done(&loop);
        return 0;
}
