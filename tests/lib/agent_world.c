/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/agent_world.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"

#define TIMEOUT (20 * USEC_PER_SEC)

static void set_flag(void *data)
{
        *(bool *) data = true;
}

void agent_world_open(struct agent_world *w)
{
        agent_world_open_with(w,
                              &(struct agent_config){ .output_max = MiB, .entrypoint_max = MiB });
}

void agent_world_open_with(struct agent_world *w, const struct agent_config *config)
{
        struct agent_config c = *config;

        (void) signal(SIGPIPE, SIG_IGN);
        memset(w, 0, sizeof(*w));
        (void) snprintf(w->dir, sizeof(w->dir), "%s/execdXXXXXX", check_tmp());
        check_true(mkdtemp(w->dir) != NULL);
        c.workspace = c.state_dir = str_from(w->dir);
        check_i64_eq(net_loop_init(&w->loop, &clock_system), 0);
        check_i64_eq(uv_async_init(&w->loop.uv, &w->awake, NULL), 0);
        uv_unref((uv_handle_t *) &w->awake);
        w->agent = agent_new(&w->loop, &c, NULL, NULL);
}

void agent_world_turn(struct agent_world *w)
{
        uv_ref((uv_handle_t *) &w->awake);
        net_loop_run_once(&w->loop, /* wait= */ false);
        uv_unref((uv_handle_t *) &w->awake);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        (void) st;
        (void) flag;
        (void) ftw;
        return remove(path);
}

static void forget_reply(struct agent_world *w)
{
        if (w->called)
                http_loopback_done(&w->lb);
        w->called = false;
}

void agent_world_close(struct agent_world *w)
{
        usec_t started = clock_mono(&clock_system);

        forget_reply(w);
        agent_free(w->agent, set_flag, &w->freed);
        while (!w->freed) {
                check_true(clock_mono(&clock_system) - started < TIMEOUT);
                net_loop_run_once(&w->loop, /* wait= */ false);
        }
        uv_close((uv_handle_t *) &w->awake, NULL);
        net_loop_done(&w->loop);
        check_i64_eq(nftw(w->dir, remove_one, 32, FTW_DEPTH | FTW_PHYS), 0);
}

struct reply call_with(struct agent_world *w, const char *method, const char *target,
                       const char *header, const char *value, struct str body)
{
        forget_reply(w);
        http_loopback_init(&w->lb, w->agent->server);
        w->called = true;
        if (header)
                http_loopback_header(&w->lb, str_from(header), str_from(value));
        http_loopback_run(&w->lb, method, target, body);
        return (struct reply){ w->lb.status, buf_str(&w->lb.body), w->lb.failed };
}

struct reply call(struct agent_world *w, const char *method, const char *target, const char *body)
{
        return call_with(w, method, target, NULL, NULL, str_from(body));
}

struct str reply_header(const struct agent_world *w, const char *name)
{
        return http_headers_get(&w->lb.headers, str_from(name));
}

const char *path_in(const struct agent_world *w, const char *name)
{
        static char paths[4][512];
        static size_t next;
        char *p = paths[next++ % ARRAY_SIZE(paths)];

        (void) snprintf(p, sizeof(paths[0]), "%s/%s", w->dir, name);
        return p;
}

void put_file(const struct agent_world *w, const char *name, struct str content)
{
        scoped(fd_closep) int fd =
                open(path_in(w, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

        check_true(fd >= 0);
        check_i64_eq(write(fd, content.p, content.n), content.n);
}

bool file_is(const struct agent_world *w, const char *name, struct str content)
{
        scoped(fd_closep) int fd = open(path_in(w, name), O_RDONLY | O_CLOEXEC);
        scoped(freep) char *text = xcalloc(1, content.n + 2);
        ssize_t n = fd >= 0 ? read(fd, text, content.n + 1) : -1;

        return n >= 0 && str_eq(str_of(text, (size_t) n), content);
}
