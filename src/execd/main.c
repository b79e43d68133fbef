/* SPDX-License-Identifier: Apache-2.0 */

/* hutch-execd: parses the command line, starts the agent and runs the loop. */

#include <malloc.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/base.h"
#include "execd/agent.h"
#include "execd/options.h"
#include "execd/protect.h"
#include "execd/relay.h"
#include "os/fd.h"
#include "os/mount_identity.h"

struct execd {
        struct net_loop loop;
        struct log_sink sink;
        struct log_ctx log;
        struct agent *agent;
        bool stay, stopping;
        int64_t fds_max; /* negative: unknown */
        int exit_code;
};

/* libuv can look up the user's home directory and calls getpwuid_r for that. glibc's version loads shared
 * libraries at run time: it cannot work in a static program inside a foreign rootfs, and makes up a tenth of the
 * program's size. Nothing here uses that feature of libuv; this definition replaces the function. Users and groups
 * are read by os/users.c.
 * NOLINTNEXTLINE(readability-*): the names and types are glibc's. */
int getpwuid_r(uid_t uid, struct passwd *pwd, char *buf, size_t size, struct passwd **ret)
{
        (void) uid;
        (void) pwd;
        (void) buf;
        (void) size;
        *ret = NULL;
        return ENOENT;
}

/* --- shutdown --- */

static void stop_now(void *data)
{
        struct execd *x = data;
        struct agent *a = TAKE_PTR(x->agent);

        if (a)
                agent_free(a, NULL, NULL);
}

/* Responses that are under way, for example a client's last read of the logs, are completed first. */
static void stop_gracefully(struct execd *x)
{
        if (x->stopping || !x->agent)
                return;
        x->stopping = true;
        http_server_drain(x->agent->server, stop_now, x);
}

static void entrypoint_ended(void *data, int status)
{
        struct execd *x = data;

        (void) status;
        x->exit_code = entrypoint_exit_code(&x->agent->entrypoint);
        if (!x->stay)
                stop_gracefully(x);
}

/* Signals are forwarded to the entrypoint, whose end stops the agent. */
static void signalled(void *data, int sig)
{
        struct execd *x = data;
        struct entrypoint *e = x->agent ? &x->agent->entrypoint : NULL;

        if (e && e->state == ENTRYPOINT_RUNNING && !x->stopping) {
                (void) kill(e->pid, sig); /* the program itself, as if it were PID 1 */
                if (!x->stay)
                        return;
        }
        if (sig == SIGTERM || sig == SIGINT)
                x->stopping ? stop_now(x) : stop_gracefully(x);
}

/* --- start --- */

static int open_agent(struct execd *x, const struct execd_options *o)
{
        struct http_server_config config = http_server_defaults;
        struct secret *token;
        int r = protect_take_token(o->token_fd, &token);

        /* A token that was requested but cannot be read is fatal: without one the agent would be open to
         * everyone. */
        if (r < 0)
                return log_err(r, &x->log, "can't read the access token");
        config.access_log = o->access_log ? x->log.sink : NULL;
        config.log_anonymous = true; /* the agent tells no callers apart */
        /* The other half is left for what requests open, so that refused requests get a reply. */
        if (x->fds_max > 0)
                config.conns_max = (unsigned) MIN_OF((int64_t) config.conns_max,
                                                     MAX_OF(x->fds_max / 2, (int64_t) 8));
        x->agent = agent_new(&x->loop,
                             &(struct agent_config){ .workspace = o->workspace,
                                                     .state_dir = o->state_dir,
                                                     .output_max = o->output_max,
                                                     .entrypoint_max = o->entrypoint_max,
                                                     .token = token,
                                                     .cgroup_fds = o->cgroup_fds },
                             &config, &x->log);
        if (!o->ignore_signals)
                reaper_take_signals(&x->agent->reaper, signalled, x);
        return 0;
}

/* On the inherited socket first. */
static int serve(struct execd *x, const struct execd_options *o)
{
        size_t n_inherited = o->listen_fd >= 0;
        char text[SOCK_ADDR_TEXT_MAX];
        struct sock_addr real;
        int r;

        for (size_t i = 0; i < n_inherited + o->n_listen; i++) {
                const struct sock_addr *at = i < n_inherited ? NULL : &o->listen[i - n_inherited];
                const struct sockaddr_un *un = at ? (const void *) &at->ss : NULL;
                int fd = o->listen_fd;

                if (at) {
                        sock_addr_to_string(at, text);
                        r = sock_listen(at, &fd);
                        if (r < 0)
                                return log_err(r, &x->log, "can't listen on %s", text);
                } else if (!sock_is_listening(fd)) {
                        /* It would be readable forever without a connection to accept. */
                        return log_err(-ENOTSOCK, &x->log, "--listen-fd is not a listening socket");
                }
                r = http_server_listen(x->agent->server, fd);
                if (r == 0)
                        r = sock_local_addr(fd, &real);
                if (r < 0)
                        return log_err(r, &x->log, "can't serve");
                if (!sock_addr_is_unix(&real))
                        agent_add_listen_port(x->agent, sock_addr_port(&real));
                sock_addr_to_string(&real, text);
                printf("hutch-execd: listening on %s\n", text);
                (void) fflush(stdout);
                if (!at || o->socket_mode < 0 || !sock_addr_is_unix(at) || un->sun_path[0] != '/')
                        continue;
                /* The name of a socket exists before it accepts connections. A process outside the
                 * sandbox that waits for the agent watches for this change of mode instead. */
                if (chmod(un->sun_path, (mode_t) o->socket_mode) < 0)
                        return -errno;
        }
        return 0;
}

static int prepare(struct execd *x, const struct execd_options *o, char **argv)
{
        int r = o->seal ? protect_seal(argv, environ) : 0;

        if (r < 0)
                return log_err(r, &x->log, "can't run from a sealed copy");
        r = protect_process();
        if (r < 0)
                return log_err(r, &x->log, "can't protect memory");
        /* A thousand sandboxes pay for idle memory a thousand times: large blocks, and the top of the heap,
         * are returned to the kernel when they are freed. */
        (void) mallopt(M_MMAP_THRESHOLD, (int) (64 * KiB));
        (void) mallopt(M_TRIM_THRESHOLD, (int) (64 * KiB));
        spawn_save_limits();
        x->fds_max = fd_limit_raise();
        (void) signal(SIGPIPE, SIG_IGN); /* a client that is gone is an error code, */
        (void) signal(SIGXFSZ, SIG_IGN); /* and so is a file over its limit */
        r = net_loop_init(&x->loop, &clock_system);
        return r < 0 ? log_err(r, &x->log, "can't create an event loop") : 0;
}

/* The process that mounted the volumes may have been misled on the way to their sources. No program of the
 * sandbox has seen them yet. */
static int check_mounts(struct execd *x, const struct execd_options *o)
{
        int r = 0;

        for (size_t i = 0; i < o->n_mounted && r == 0; i++) {
                r = mount_identity_check(o->mounted[i]);
                if (r < 0)
                        (void) log_err(r, &x->log, "unexpected mount, should be %.*s",
                                       STR_ARG(o->mounted[i]));
        }
        return r;
}

int main(int argc, char **argv)
{
        static struct execd x;
        scoped(buf_done) struct buf text;
        struct execd_options o;
        enum options_result parsed;
        int r;

        buf_init(&text, BUF_MAX_LOG_LINE);
        parsed = execd_options_parse(argc, argv, &o, &text);
        if (parsed != OPTIONS_RUN) {
                (void) fputs(buf_str(&text).p, parsed == OPTIONS_EXIT_OK ? stdout : stderr);
                return parsed == OPTIONS_EXIT_OK ? 0 : 2;
        }
        if (o.relay)
                return relay_run(o.relay);
        x.stay = o.stay;
        x.sink = (struct log_sink){ .fd = STDERR_FILENO,
                                    .level = o.log_level,
                                    .format = o.log_format,
                                    .clock = &clock_system };
        log_ctx_init_root(&x.log, &x.sink);
        if (prepare(&x, &o, argv) < 0)
                return 1;
        if (check_mounts(&x, &o) < 0)
                return MOUNT_IDENTITY_EXIT;
        r = open_agent(&x, &o);
        if (r == 0)
                r = serve(&x, &o);
        if (r == 0 && o.entrypoint) {
                r = entrypoint_start(&x.agent->entrypoint, o.entrypoint, entrypoint_ended, &x);
                if (r < 0)
                        (void) log_err(r, &x.log, "can't start '%s'", o.entrypoint[0]);
        }
        if (r == 0 && o.ready_fd >= 0) {
                if (write(o.ready_fd, "", 1) != 1)
                        log_warn(&x.log, "the reader of --ready-fd is gone");
                (void) fd_close(o.ready_fd);
        }
        if (r == 0)
                command_groups_prepare(&x.agent->processes.groups);
        if (r < 0) {
                x.exit_code = r == -ENOENT ? 127 : 126;
                stop_now(&x);
        }
        net_loop_run(&x.loop);
        net_loop_done(&x.loop);
        return x.exit_code;
}
