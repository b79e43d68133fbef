/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "driver/engine/impl.h"
#include "model/text.h"
#include "os/fd.h"
#include "os/spawn.h"

#define WAIT_MIN_MS 50
#define WAIT_MAX_MS 10000

/* A worker that was told to end undoes what it is at. */
#define CLOSE_TIMEOUT_MS 40000

static void start_worker(struct engine *g);
static void worker_is_down(struct engine *g);

/* --- asking --- */

static void end(struct asking *a, const struct engine_message *m, int fd, const struct err *e)
{
        list_remove(&a->node);
        a->ops->end(a, m, fd, e);
        free(a);
}

static void fail_all(struct engine *g, const struct err *e)
{
        struct list todo;

        list_init(&todo);
        list_for_each (n, &g->asked) {
                list_remove(n);
                list_append(&todo, n);
        }
        while (!list_empty(&todo))
                end(container_of(list_first(&todo), struct asking, node), NULL, -EBADF, e);
}

/* Asked while there is no worker. */
struct refusal {
        struct net_task task;
        struct engine *engine;
        int64_t request_id;
};

static struct asking *asking_of(struct engine *g, int64_t request_id)
{
        list_for_each (n, &g->asked) {
                struct asking *a = container_of(n, struct asking, node);

                if (a->request_id == request_id)
                        return a;
        }
        return NULL;
}

static void refuse_now(struct net_task *t)
{
        struct refusal *x = container_of(t, struct refusal, task);
        struct engine *g = x->engine;
        struct asking *a = asking_of(g, x->request_id);

        if (a)
                end(a, NULL, -EBADF, &g->down);
        free(x);
        g->open--;
        engine__close_go_on(g);
}

static void refuse(struct engine *g, int64_t request_id)
{
        struct refusal *x = xnew(struct refusal);

        x->engine = g;
        x->request_id = request_id;
        net_task_init(&x->task, refuse_now);
        g->open++;
        net_task_queue(g->driver.loop, &x->task);
}

static void send_request(struct engine *g, const struct engine_request *q)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, ENGINE_FRAME_MAX);
        buf_mark_secret(&b);
        engine_request_encode(&b, q);
        if (buf_failed(&b)) {
                (void) err_set(&g->down, ERR_TOO_LARGE, "the request is too large");
                return refuse(g, q->request_id);
        }
        channel_send(&g->channel, buf_str(&b), -EBADF);
}

struct asking *engine__ask(struct engine *g, struct engine_request *q, const struct asking_ops *ops,
                           void *data)
{
        struct asking *a = xnew(struct asking);

        q->request_id = ++g->last_request_id;
        a->engine = g;
        a->ops = ops;
        a->request_id = q->request_id;
        a->call = q->call;
        a->data = data;
        list_append(&g->asked, &a->node);
        if (g->talking)
                send_request(g, q);
        else
                refuse(g, q->request_id);
        return a;
}

void engine__forget(struct asking *a)
{
        list_remove(&a->node);
        free(a);
}

void engine__ask_cancel(struct asking *a)
{
        struct engine_request q = { .call = ENGINE_CANCEL,
                                    .request_id = ++a->engine->last_request_id,
                                    .other = a->request_id };

        if (a->engine->talking)
                send_request(a->engine, &q);
}

int engine__result(const struct engine_message *m, const struct err *none, struct err *ret)
{
        if (!m) {
                *ret = *none;
                return ERR_RETURN(none->code);
        }
        if (m->code == 0)
                return 0;
        return err_set(ret, (enum err_code)(m->code - 1), "%.*s", STR_ARG(m->text));
}

/* --- what it says --- */

static void on_answer(struct engine *g, const struct engine_message *m, int fd)
{
        struct asking *a = asking_of(g, m->request_id);

        if (!a)
                (void) fd_close(fd);
        else if (m->done)
                end(a, m, fd, NULL);
        else if (a->ops->part)
                a->ops->part(a, m);
}

static void on_message(struct engine *g, const struct engine_message *m, int fd)
{
        if (m->request_id > 0)
                return on_answer(g, m, fd);
        if (m->watching)
                engine__compare(g);
        if (m->died.p)
                engine__died(g, m->died, m->state);
}

static void channel_ended(struct channel *c, int r)
{
        struct engine *g = container_of(c, struct engine, channel);

        (void) err_set(&g->down, ERR_UNAVAILABLE, "the worker of %s has gone silent",
                       engine_kind_to_string((int) g->kind));
        g->talking = false;
        /* Its end is told by the process; one that talks nonsense is ended. */
        if (r < 0 && g->pid > 0)
                (void) kill(g->pid, SIGKILL);
        channel_close(c);
}

static void channel_closed(struct channel *c)
{
        struct engine *g = container_of(c, struct engine, channel);

        g->channel_open = false;
        g->open--;
        /* The end of a process of ours is told by itself. */
        if (g->is_service && !g->closing) {
                fail_all(g, &g->down);
                worker_is_down(g);
        }
        engine__close_go_on(g);
}

static void on_frame(struct channel *c, struct str text)
{
        struct engine *g = container_of(c, struct engine, channel);
        struct engine_message m;
        struct arena a;
        struct err e;
        int fd = -EBADF, r;

        arena_init(&a, 4 * ENGINE_FRAME_MAX);
        r = engine_message_decode(text, &a, &m, &e);
        if (r == 0 && m.has_fd) {
                fd = channel_take_fd(c);
                r = fd < 0 ? err_set(&e, ERR_INVALID, "a descriptor is missing") : 0;
        }
        if (r == 0)
                on_message(g, &m, fd);
        arena_done(&a);
        if (r < 0) {
                log_fields(g->log, LOG_ERROR, "the engine worker talks nonsense",
                           LOG_F_STR("error", str_from(e.message)));
                channel_ended(c, -EPROTO);
        }
}

static const struct channel_ops channel_ops = {
        .frame = on_frame,
        .ended = channel_ended,
        .closed = channel_closed,
};

/* --- its life --- */

static void start_again(uv_timer_t *t)
{
        struct engine *g = container_of(t, struct engine, timer);

        if (!g->closing)
                return start_worker(g);
        if (g->pid > 0)
                (void) kill(g->pid, SIGKILL);
}

static void worker_is_down(struct engine *g)
{
        if (g->closing)
                return;
        (void) uv_timer_start(&g->timer, start_again, g->wait_ms, 0);
        g->wait_ms = MIN_OF(g->wait_ms * 2, (unsigned) WAIT_MAX_MS);
}

static void describe_end(struct engine *g, const siginfo_t *info)
{
        (void) err_set(&g->down, ERR_UNAVAILABLE,
                       "the worker of %s has ended (%s %d) and is being started anew",
                       engine_kind_to_string((int) g->kind),
                       info->si_code == CLD_EXITED ? "status" : "signal", info->si_status);
        if (!g->closing)
                log_fields(g->log, LOG_WARN, "the engine worker has ended",
                           LOG_F_STR("driver", str_from(engine_kind_to_string((int) g->kind))),
                           LOG_F_I64("status", info->si_status));
}

static void exit_closed(uv_handle_t *h)
{
        struct engine *g = container_of((uv_poll_t *) (void *) h, struct engine, exit_poll);

        g->pidfd = fd_close(g->pidfd);
        g->open--;
        worker_is_down(g);
        engine__close_go_on(g);
}

static void worker_ended(uv_poll_t *poll, int status, int events)
{
        struct engine *g = container_of(poll, struct engine, exit_poll);
        siginfo_t info = { 0 };

        (void) status, (void) events;
        if (waitid(P_PIDFD, (id_t) g->pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
                return;
        describe_end(g, &info);
        g->pid = 0;
        g->talking = false;
        if (g->channel_open)
                channel_close(&g->channel);
        uv_close((uv_handle_t *) poll, exit_closed);
        fail_all(g, &g->down);
}

static void greeted(struct asking *a, const struct engine_message *m, int fd, const struct err *e)
{
        struct engine *g = a->engine;

        (void) fd_close(fd);
        if (engine__result(m, e, &g->down) < 0) {
                log_fields(g->log, LOG_ERROR, "the engine worker is not to be talked to",
                           LOG_F_STR("error", str_from(g->down.message)));
                return;
        }
        g->wait_ms = WAIT_MIN_MS;
}

static const struct asking_ops greeting = { .end = greeted };

static int spawn_worker(struct engine *g, int socket)
{
        char *envp[] = { NULL };

        return spawn_program(&(struct spawn){ .argv = g->argv,
                                              .envp = envp,
                                              .fds = { socket, STDERR_FILENO, STDERR_FILENO } },
                             &g->pid);
}

static int watch_worker(struct engine *g)
{
        int r;

        g->pidfd = pidfd_open(g->pid, 0);
        if (g->pidfd < 0)
                return -errno;
        r = uv_poll_init(&g->driver.loop->uv, &g->exit_poll, g->pidfd);
        if (r == 0)
                r = uv_poll_start(&g->exit_poll, UV_READABLE, worker_ended);
        return r;
}

static int talk(struct engine *g, int fd)
{
        int r;

        g->channel.frame_max = ENGINE_FRAME_MAX;
        g->channel.may_receive_fds = true;
        r = channel_open(&g->channel, g->driver.loop, fd, &channel_ops);
        if (r < 0)
                return r;
        g->channel_open = g->talking = true;
        g->open++;
        return 0;
}

/* It talks before it is known to live: the socket keeps what is said. */
static int try_start(struct engine *g)
{
        scoped(fd_closep) int ours = -EBADF, its = -EBADF;
        int pair[2], r;

        if (g->is_service) {
                r = sock_connect(&g->service, &ours);
                return r < 0 ? r : talk(g, TAKE_FD(ours));
        }
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        ours = pair[0];
        its = pair[1];
        r = spawn_worker(g, its);
        if (r < 0)
                return r;
        r = watch_worker(g);
        if (r < 0) {
                (void) kill(g->pid, SIGKILL);
                (void) waitpid(g->pid, NULL, 0);
                g->pid = 0;
                return r;
        }
        g->open++;
        return talk(g, TAKE_FD(ours));
}

static void start_worker(struct engine *g)
{
        struct engine_request hello = { .call = ENGINE_HELLO,
                                        .version = ENGINE_PROTOCOL_VERSION,
                                        .installation = str_from(g->installation) };
        int r;

        if (g->channel_open || g->pid > 0)
                return worker_is_down(g); /* the last one is not quite gone */
        r = try_start(g);
        if (r < 0) {
                (void) err_errno(&g->down, r, "%s %s", g->is_service ? "connect to" : "start",
                                 g->argv[0]);
                g->down.code = ERR_UNAVAILABLE;
                log_fields(g->log, LOG_ERROR, "the engine worker can't be started",
                           LOG_F_STR("error", str_from(g->down.message)));
                if (g->pid > 0)
                        (void) kill(g->pid, SIGKILL);
                else
                        worker_is_down(g);
                return;
        }
        (void) engine__ask(g, &hello, &greeting, NULL);
}

/* --- its command line --- */

static void add(struct engine *g, size_t *n, const char *name, const char *value)
{
        size_t size = strlen(name) + strlen(value) + 1;

        g->argv = xrealloc(g->argv, *n + 2, sizeof(char *));
        g->argv[*n] = xcalloc(1, size);
        (void) snprintf(g->argv[*n], size, "%s%s", name, value);
        g->argv[++*n] = NULL;
}

/* Beside the agent, unless said otherwise. */
static const char *worker_path(const struct driver_setup *setup, const struct engine_config *config,
                               char *text, size_t size)
{
        const char *slash = strrchr(setup->agent, '/');

        if (config->worker)
                return config->worker;
        (void) snprintf(text, size, "%.*s/hutch-engine", (int) (slash - setup->agent),
                        setup->agent);
        return text;
}

static void make_argv(struct engine *g, const struct driver_setup *setup,
                      const struct engine_config *config)
{
        const char *socket = config->socket ? config->socket : engine_default_socket(g->kind);
        char text[PATH_MAX_TEXT];
        size_t n = 0;

        add(g, &n, "", worker_path(setup, config, text, sizeof(text)));
        add(g, &n, "--engine=", engine_kind_to_string((int) g->kind));
        add(g, &n, "--socket=", socket);
        add(g, &n, "--folder=", setup->folder);
        add(g, &n, "--agent=", setup->agent);
        (void) snprintf(text, sizeof(text), "%.*s", STR_ARG(setup->installation));
        add(g, &n, "--installation=", text);
        add(g, &n, "--reach=", engine_reach_to_string(config->reach));
        add(g, &n, "--network=", engine_network_to_string(config->network));
        for (size_t i = 0; i < config->host_folders.n; i++) {
                (void) snprintf(text, sizeof(text), "%.*s", STR_ARG(config->host_folders.items[i]));
                add(g, &n, "--host-folder=", text);
        }
        if (g->log && g->log->sink) {
                add(g, &n, "--log-level=", log_level_to_string((int) g->log->sink->level));
                add(g, &n, "--log-format=", log_format_to_string((int) g->log->sink->format));
        }
}

static void begin(struct engine *g)
{
        g->wait_ms = WAIT_MIN_MS;
        (void) uv_timer_init(&g->driver.loop->uv, &g->timer);
        g->open++;
        start_worker(g);
}

/* A worker that somebody else starts, as another user: then hutchd has no right to the engine at all. */
static int find_service(struct engine *g, const char *worker, struct err *e)
{
        int r;

        g->is_service = worker && strncmp(worker, "unix:", 5) == 0;
        if (!g->is_service)
                return 0;
        r = sock_addr_from_string(str_from(worker), &g->service);
        return r < 0 ? err_errno(e, r, "the engine worker '%s'", worker) : 0;
}

int engine__worker_open(struct engine *g, const struct driver_setup *setup,
                        const struct engine_config *config, struct err *e)
{
        int r = find_service(g, config->worker, e);

        make_argv(g, setup, config);
        (void) snprintf(g->installation, sizeof(g->installation), "%.*s",
                        STR_ARG(setup->installation));
        if (r == 0 && !g->is_service && access(g->argv[0], X_OK) < 0)
                r = err_errno(e, -errno, "the engine worker '%s' cannot be run", g->argv[0]);
        if (r == 0)
                begin(g);
        return r;
}

static void timer_closed(uv_handle_t *h)
{
        struct engine *g = container_of((uv_timer_t *) (void *) h, struct engine, timer);

        g->open--;
        engine__close_go_on(g);
}

void engine__worker_close(struct engine *g)
{
        g->talking = false;
        if (g->channel_open)
                channel_close(&g->channel);
        (void) uv_timer_start(&g->timer, start_again, CLOSE_TIMEOUT_MS, 0);
}

/* The timer last: it is what ends a worker that does not end. */
void engine__close_go_on(struct engine *g)
{
        if (!g->closing)
                return;
        if (g->open == 1 && !uv_is_closing((uv_handle_t *) &g->timer)) {
                uv_close((uv_handle_t *) &g->timer, timer_closed);
                return;
        }
        if (g->open > 0)
                return;
        for (char **a = g->argv; *a; a++)
                free(*a);
        free(g->argv);
        map_done(&g->watched);
        driver_closed(&g->driver);
}
