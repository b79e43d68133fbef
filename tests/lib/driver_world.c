/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/driver_world.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/walk.h"
#include "tests/lib/check.h"

#define TIMEOUT (30 * USEC_PER_SEC)

static const char *image = "debian:12"; /* of records: what the last world's maker says */

/* --- time --- */

usec_t driver_world_deadline(void)
{
        return clock_mono(&clock_system) + check_timeout(TIMEOUT);
}

static void wake(uv_timer_t *t)
{
        (void) t;
}

/* Waits for events. Some of what tests wait for is none of the loop (a file appears), so a turn is short, and
 * what never comes does not hang. One timer for all: a loop with a handle that is to be closed does not wait. */
void driver_world_turn(struct driver_world *w, usec_t until)
{
        check_true(clock_mono(&clock_system) < until);
        (void) uv_timer_start(&w->timer, wake, 20, 0);
        net_loop_run_once(&w->loop, /* wait= */ true);
        (void) uv_timer_stop(&w->timer);
}

/* --- life cycle --- */

static void died(struct driver_watcher *watcher, struct driver *d, struct str id,
                 const struct driver_health *how)
{
        struct driver_world *w = container_of(watcher, struct driver_world, watcher);

        w->notified++;
        w->died_health = *how;
        (void) snprintf(w->died_id, sizeof(w->died_id), "%.*s", STR_ARG(id));
}

struct driver *driver_world_open_as(struct driver_world *w, const char *installation)
{
        const char *agent = getenv("HUTCH_EXECD");
        struct driver_setup setup = {
                .loop = &w->loop,
                .installation = str_from(installation),
                .dir = w->dir,
                .agent = agent ? agent : "/nonexistent",
        };
        struct driver *d = NULL;

        if (w->maker->open(w, &setup, &d, &w->err) < 0)
                fail_msg("%s", w->err.message);
        return d;
}

void driver_world_open(struct driver_world *w, const struct driver_maker *maker)
{
        (void) signal(SIGPIPE, SIG_IGN);
        *w = (struct driver_world){ .maker = maker, .watcher.died = died };
        check_i64_eq(net_loop_init(&w->loop, &clock_system), 0);
        check_i64_eq(uv_timer_init(&w->loop.uv, &w->timer), 0);
        (void) snprintf(w->dir, sizeof(w->dir), "%s/drvXXXXXX", check_tmp());
        check_true(mkdtemp(w->dir) != NULL);
        w->agents = agents_new(&w->loop);
        if (!maker)
                return;
        image = maker->image ? maker->image : "debian:12";
        if (maker->begin)
                maker->begin(w);
        w->driver = driver_world_open_as(w, WORLD_INSTALLATION);
        driver_watch(w->driver, &w->watcher);
}

struct closing {
        struct driver_close close;
        bool done;
};

static void closing_done(struct op *op, int result)
{
        check_i64_eq(result, 0);
        container_of(op, struct closing, close.op)->done = true;
}

void driver_world_close_driver(struct driver_world *w, struct driver *d)
{
        struct closing c = { 0 };

        op_init(&c.close.op, closing_done);
        driver_close(d, &c.close);
        driver_world_until(w, c.done);
}

void driver_world_restart(struct driver_world *w)
{
        driver_world_close_driver(w, w->driver);
        w->driver = driver_world_open_as(w, WORLD_INSTALLATION);
        driver_watch(w->driver, &w->watcher);
}

static void set_flag(void *data)
{
        *(bool *) data = true;
}

static void remove_dir(const char *path)
{
        struct walk_remove rm;
        int r;

        walk_remove_init(&rm, AT_FDCWD, path);
        do
                r = walk_remove_step(&rm);
        while (r > 0);
        walk_remove_done(&rm);
        check_i64_eq(r, 0);
}

struct destroying {
        struct driver_destroy op;
        bool done;
};

static void destroying_done(struct op *op, int result)
{
        container_of(op, struct destroying, op.req.op)->done = true;
}

/* A test that leaves a sandbox behind must not leave a process. */
static void destroy_found(struct driver_world *w, struct driver_scan *s)
{
        for (size_t i = 0; i < s->n; i++) {
                struct sandbox *record = TAKE_PTR(s->found[i].record);
                struct destroying x = { 0 };

                op_init(&x.op.req.op, destroying_done);
                driver_start(w->driver, driver_destroy_req(&x.op, record));
                driver_world_until(w, x.done);
                sandbox_free(record);
        }
}

struct cleaning {
        struct driver_scan scan;
        struct driver_scan copy;
        bool done;
};

static void cleaning_done(struct op *op, int result)
{
        struct cleaning *c = container_of(op, struct cleaning, scan.req.op);

        c->copy.n = c->scan.n;
        c->copy.found = xcalloc(c->scan.n + 1, sizeof(struct driver_found));
        for (size_t i = 0; i < c->scan.n; i++)
                c->copy.found[i].record = TAKE_PTR(c->scan.found[i].record);
        c->done = true;
}

static void clean_up(struct driver_world *w)
{
        struct cleaning c = { 0 };

        op_init(&c.scan.req.op, cleaning_done);
        driver_start(w->driver, driver_scan_req(&c.scan));
        driver_world_until(w, c.done);
        destroy_found(w, &c.copy);
        free(c.copy.found);
}

void driver_world_close(struct driver_world *w)
{
        bool freed = false;

        if (w->driver) {
                clean_up(w);
                driver_world_close_driver(w, w->driver);
        }
        if (w->agents) {
                agents_free(w->agents, set_flag, &freed);
                driver_world_until(w, freed);
        }
        if (w->maker && w->maker->end)
                w->maker->end(w);
        uv_close((uv_handle_t *) &w->timer, NULL);
        net_loop_done(&w->loop);
        remove_dir(w->dir);
}

/* --- records --- */

struct sandbox *driver_world_record(const char *id)
{
        struct sandbox *s = NULL;
        struct err e;
        char text[1024];

        (void) snprintf(
                text, sizeof(text),
                "{\"schema\":1,\"sandboxId\":\"%s\",\"organizationId\":\"o:1\","
                "\"projectId\":\"p\",\"userId\":\"\xc3\xbc\",\"containerName\":\"hutch-%s\","
                "\"createdAt\":1700000000123,"
                "\"scope\":{\"kind\":\"conversation\",\"key\":\"c/1\"},"
                "\"ownerBound\":true,\"tenant\":\"acme\",\"node\":\"n1\","
                "\"driver\":\"any\",\"image\":\"%s\",\"entrypoint\":[\"sh\",\"-c\","
                "\"trap 'exit 0' TERM; : >.ready; while :; do sleep 1000 & wait; done\"],"
                "\"envNames\":[\"SECRET\"],\"metadata\":{\"name\":\"a\"},"
                "\"status\":{\"state\":\"Pending\",\"lastTransitionAt\":0},\"version\":1}",
                id, id, image);
        if (sandbox_decode(str_from(text), &s, &e) < 0)
                fail_msg("%s", e.message);
        return s;
}

/* --- calls that wait --- */

struct waiting {
        union {
                struct driver_req req;
                struct driver_create create;
                struct driver_destroy destroy;
                struct driver_pause pause;
                struct driver_inspect inspect;
                struct driver_connect connect;
                struct driver_snapshot snapshot;
                struct driver_snapshot_remove snapshot_remove;
        };
        bool done;
        int result;
};

static void waiting_done(struct op *op, int result)
{
        struct waiting *x = container_of(op, struct waiting, req.op);

        x->result = result;
        x->done = true;
}

static int await(struct driver_world *w, struct waiting *x)
{
        check_false(x->done); /* never from inside the start */
        driver_world_until(w, x->done);
        w->err = x->req.err;
        check_true(x->result == 0 || x->result == ERR_RETURN(w->err.code));
        check_true(x->result == 0 || w->err.message[0] != '\0');
        return x->result;
}

static struct json_pair env_items[] = { { { "SECRET", 6 }, { "s3cret value", 12 } } };
static const struct create_request request = { .secret_env = { env_items, 1 } };

int driver_world_create(struct driver_world *w, const struct sandbox *record)
{
        struct waiting x = { 0 };

        op_init(&x.req.op, waiting_done);
        driver_start(w->driver, driver_create_req(&x.create, record, &request));
        return await(w, &x);
}

int driver_world_destroy(struct driver_world *w, const struct sandbox *record)
{
        struct waiting x = { 0 };

        op_init(&x.req.op, waiting_done);
        driver_start(w->driver, driver_destroy_req(&x.destroy, record));
        return await(w, &x);
}

int driver_world_pause(struct driver_world *w, const struct sandbox *record)
{
        struct waiting x = { 0 };

        op_init(&x.req.op, waiting_done);
        driver_start(w->driver, driver_pause_req(&x.pause, record));
        return await(w, &x);
}

int driver_world_resume(struct driver_world *w, const struct sandbox *record)
{
        struct waiting x = { 0 };

        op_init(&x.req.op, waiting_done);
        driver_start(w->driver, driver_resume_req(&x.pause, record));
        return await(w, &x);
}

int driver_world_snapshot(struct driver_world *w, const struct sandbox *record, const char *id)
{
        struct waiting x = { 0 };

        op_init(&x.req.op, waiting_done);
        driver_start(w->driver, driver_snapshot_req(&x.snapshot, record, str_from(id)));
        return await(w, &x);
}

int driver_world_snapshot_remove(struct driver_world *w, const char *id)
{
        struct waiting x = { 0 };

        op_init(&x.req.op, waiting_done);
        driver_start(w->driver, driver_snapshot_remove_req(&x.snapshot_remove, str_from(id)));
        return await(w, &x);
}

struct listing {
        struct driver_snapshots call;
        bool done;
        int result;
        struct buf *ids;
};

static int by_text(const void *a, const void *b)
{
        return strcmp(((const struct driver_snapshot_id *) a)->text,
                      ((const struct driver_snapshot_id *) b)->text);
}

static void listing_done(struct op *op, int result)
{
        struct listing *l = container_of(op, struct listing, call.req.op);

        if (l->call.n > 0)
                qsort(l->call.ids, l->call.n, sizeof(*l->call.ids), by_text);
        for (size_t i = 0; i < l->call.n; i++)
                buf_addf(l->ids, "%s%s", i > 0 ? " " : "", l->call.ids[i].text);
        l->result = result;
        l->done = true;
}

int driver_world_snapshots(struct driver_world *w, char *ret, size_t size)
{
        struct buf ids;
        struct listing l = { .ids = &ids };

        buf_init_fixed(&ids, ret, size - 1);
        op_init(&l.call.req.op, listing_done);
        driver_start(w->driver, driver_snapshots_req(&l.call));
        driver_world_until(w, l.done);
        ret[ids.n] = '\0';
        w->err = l.call.req.err;
        return l.result;
}

int driver_world_status(struct driver_world *w, const struct sandbox *record)
{
        struct waiting x = { 0 };
        int status, r;

        op_init(&x.req.op, waiting_done);
        driver_start(w->driver, driver_inspect_req(&x.inspect, record));
        r = await(w, &x);
        status = x.inspect.health.status;
        if (r == 0)
                check_true(!x.inspect.health.reason
                           == (status != RUNTIME_ENDED && status != RUNTIME_DEAD));
        return r < 0 ? r : status;
}

int driver_world_connect(struct driver_world *w, const struct sandbox *record, int *ret_fd)
{
        struct waiting x = { 0 };
        int r;

        op_init(&x.req.op, waiting_done);
        driver_start(w->driver, driver_connect_req(&x.connect, record));
        r = await(w, &x);
        check_true((r == 0) == (x.connect.fd >= 0));
        if (ret_fd)
                *ret_fd = x.connect.fd;
        else
                (void) fd_close(x.connect.fd);
        return r;
}

struct scanning {
        struct driver_scan scan;
        char *text;
        size_t size;
        bool done;
        int result;
};

static int by_id(const void *a, const void *b)
{
        const struct driver_found *fa = a, *fb = b;

        return str_cmp(fa->record->id, fb->record->id);
}

static void scanning_done(struct op *op, int result)
{
        struct scanning *x = container_of(op, struct scanning, scan.req.op);
        struct buf b;

        buf_init_fixed(&b, x->text, x->size);
        if (x->scan.n > 0)
                qsort(x->scan.found, x->scan.n, sizeof(struct driver_found), by_id);
        for (size_t i = 0; i < x->scan.n; i++)
                buf_addf(&b, "%s%.*s:%s", i ? " " : "", STR_ARG(x->scan.found[i].record->id),
                         runtime_status_to_string(x->scan.found[i].status));
        x->result = result;
        x->done = true;
}

int driver_world_scan(struct driver_world *w, char *ret, size_t size, size_t *skipped)
{
        struct scanning x = { .size = size };

        x.text = ret;
        op_init(&x.scan.req.op, scanning_done);
        driver_start(w->driver, driver_scan_req(&x.scan));
        driver_world_until(w, x.done);
        w->err = x.scan.req.err;
        if (skipped)
                *skipped = x.scan.skipped;
        return x.result;
}

int driver_world_descriptors(void)
{
        DIR *dir = opendir("/proc/self/fd");
        int n = 0;

        check_true(dir != NULL);
        while (readdir(dir))
                n++;
        (void) closedir(dir);
        return n;
}

struct pinging {
        struct agent_ping ping;
        bool done;
        int result;
};

static void pinging_done(struct op *op, int result)
{
        struct pinging *x = container_of(op, struct pinging, ping.req.op);

        x->result = result;
        x->done = true;
}

int driver_world_ping_within(struct driver_world *w, const struct sandbox *record, usec_t timeout)
{
        struct pinging x = { .ping.req.timeout = timeout };

        op_init(&x.ping.req.op, pinging_done);
        agent_ping(w->agents, &x.ping, w->driver, record);
        driver_world_until(w, x.done);
        w->err = x.ping.req.err;
        return x.result;
}

int driver_world_ping(struct driver_world *w, const struct sandbox *record)
{
        return driver_world_ping_within(w, record, AGENT_TIMEOUT);
}
