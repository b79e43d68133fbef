/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/driver_failing.h"

#include "base/base.h"
#include "os/fd.h"

struct failing {
        struct driver driver;
        struct driver_ops ops; /* with name and caps of the inner one */
        struct driver *inner;
        struct driver_close inner_close;
        struct driver_watcher watcher;
        struct driver_failing_plan plan;
        uint64_t random;
        unsigned seen;
        unsigned failed;
};

/* A call on its way; the outer request's _impl. */
struct passing {
        union {
                struct driver_req req;
                struct driver_create create;
                struct driver_destroy destroy;
                struct driver_pause pause;
                struct driver_inspect inspect;
                struct driver_scan scan;
                struct driver_connect connect;
                struct driver_usage usage;
                struct driver_probe probe;
                struct driver_snapshot snapshot;
                struct driver_snapshot_remove snapshot_remove;
                struct driver_snapshots snapshots;
        };
        struct failing *f;
        struct driver_req *outer;
        bool fail_after;
};

static struct failing *failing_of(struct driver *d)
{
        return container_of(d, struct failing, driver);
}

/* --- what fails --- */

static uint64_t next_random(struct failing *f)
{
        uint64_t z = f->random += 0x9e3779b97f4a7c15ULL; /* SplitMix64 */

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
        return z ^ z >> 31;
}

static bool is_due(struct failing *f, const struct driver_req *req)
{
        if (f->plan.calls && !(f->plan.calls & 1U << req->_call))
                return false;
        f->seen++;
        switch (f->plan.when) {
        case DRIVER_FAILING_NTH:
                return f->seen == f->plan.n;
        case DRIVER_FAILING_FROM:
                return f->seen >= f->plan.n;
        case DRIVER_FAILING_RANDOM:
                return next_random(f) % 1000 < f->plan.n;
        case DRIVER_FAILING_NEVER:
        default:
                return false;
        }
}

static int fail(struct failing *f, struct driver_req *req)
{
        enum err_code code = f->plan.code ? f->plan.code : ERR_UNAVAILABLE;

        f->failed++;
        return err_set(&req->err, code, "made to fail");
}

/* --- the way there and back --- */

static int give_text(struct driver_req *to, struct str from, struct str *ret)
{
        *ret = from.p ? driver_keep(to, from) : STR_NULL;
        if (from.p && !ret->p)
                return err_set(&to->err, ERR_EXHAUSTED, "no memory for a text");
        return 0;
}

static int give_health(struct driver_inspect *to, const struct driver_inspect *from)
{
        to->health = from->health;
        return give_text(&to->req, from->health.message, &to->health.message);
}

static int give_found(struct driver_scan *to, struct driver_scan *from)
{
        for (size_t i = 0; i < from->n; i++)
                driver_scan_add(to, TAKE_PTR(from->found[i].record), from->found[i].status);
        to->skipped = from->skipped;
        return 0;
}

static int give_facts(struct driver_probe *to, const struct driver_probe *from)
{
        for (size_t i = 0; i < from->n; i++)
                driver_probe_add(to, from->facts[i].name, from->facts[i].ok, "%.*s",
                                 STR_ARG(from->facts[i].text));
        return 0;
}

static int give_ids(struct driver_snapshots *to, const struct driver_snapshots *from)
{
        for (size_t i = 0; i < from->n; i++)
                driver_snapshots_add(to, str_from(from->ids[i].text));
        return 0;
}

static int give_result(struct driver_req *to, struct passing *from)
{
        switch ((enum driver_call) to->_call) {
        case DRIVER_CALL_CREATE:
                return give_text(to, from->create.handle, &DRIVER_AS(create, to)->handle);
        case DRIVER_CALL_INSPECT:
                return give_health(DRIVER_AS(inspect, to), &from->inspect);
        case DRIVER_CALL_SCAN:
                return give_found(DRIVER_AS(scan, to), &from->scan);
        case DRIVER_CALL_CONNECT:
                DRIVER_AS(connect, to)->fd = TAKE_FD(from->connect.fd);
                return 0;
        case DRIVER_CALL_USAGE:
                DRIVER_AS(usage, to)->cpu_usec = from->usage.cpu_usec;
                DRIVER_AS(usage, to)->memory_bytes = from->usage.memory_bytes;
                DRIVER_AS(usage, to)->processes = from->usage.processes;
                return 0;
        case DRIVER_CALL_PROBE:
                return give_facts(DRIVER_AS(probe, to), &from->probe);
        case DRIVER_CALL_SNAPSHOTS:
                return give_ids(DRIVER_AS(snapshots, to), &from->snapshots);
        case DRIVER_CALL_DESTROY:
        case DRIVER_CALL_PAUSE:
        case DRIVER_CALL_RESUME:
        case DRIVER_CALL_SNAPSHOT:
        case DRIVER_CALL_SNAPSHOT_REMOVE:
        case DRIVER_CALL_MAX_:
        default:
                return 0;
        }
}

static void passing_done(struct op *op, int result)
{
        struct passing *p = container_of(op, struct passing, req.op);
        struct driver_req *outer = p->outer;

        if (result < 0)
                outer->err = p->req.err;
        else if (p->fail_after)
                result = fail(p->f, outer);
        else
                result = give_result(outer, p);
        if (p->req._call == DRIVER_CALL_CONNECT)
                (void) fd_close(p->connect.fd);
        free(p);
        outer->_impl = NULL;
        driver_finish(outer, result);
}

static const size_t call_sizes[DRIVER_CALL_MAX_] = {
        [DRIVER_CALL_CREATE] = sizeof(struct driver_create),
        [DRIVER_CALL_DESTROY] = sizeof(struct driver_destroy),
        [DRIVER_CALL_PAUSE] = sizeof(struct driver_pause),
        [DRIVER_CALL_RESUME] = sizeof(struct driver_pause),
        [DRIVER_CALL_INSPECT] = sizeof(struct driver_inspect),
        [DRIVER_CALL_SCAN] = sizeof(struct driver_scan),
        [DRIVER_CALL_CONNECT] = sizeof(struct driver_connect),
        [DRIVER_CALL_USAGE] = sizeof(struct driver_usage),
        [DRIVER_CALL_PROBE] = sizeof(struct driver_probe),
        [DRIVER_CALL_SNAPSHOT] = sizeof(struct driver_snapshot),
        [DRIVER_CALL_SNAPSHOT_REMOVE] = sizeof(struct driver_snapshot_remove),
        [DRIVER_CALL_SNAPSHOTS] = sizeof(struct driver_snapshots),
};

static void failing_call(struct driver *d, struct driver_req *outer)
{
        struct failing *f = failing_of(d);
        struct passing *p;
        bool due = is_due(f, outer);

        if (due && !f->plan.after) {
                driver_finish(outer, fail(f, outer));
                return;
        }
        p = xnew(struct passing);
        /* Call and arguments; the rest is set anew. */
        memcpy(p, outer, call_sizes[outer->_call]);
        op_init(&p->req.op, passing_done);
        p->f = f;
        p->outer = outer;
        p->fail_after = due;
        outer->_impl = p;
        driver_start(f->inner, &p->req);
}

static void failing_cancel(struct driver *d, struct driver_req *req)
{
        struct passing *p = req->_impl;

        op_cancel(&p->req.op);
}

/* --- events --- */

static void failing_died(struct driver_watcher *w, struct driver *inner, struct str id,
                         const struct driver_health *how)
{
        driver_notify_died(&container_of(w, struct failing, watcher)->driver, id, how);
}

/* --- life cycle --- */

static void inner_closed(struct op *op, int result)
{
        driver_closed(&container_of(op, struct failing, inner_close.op)->driver);
}

static void failing_close(struct driver *d)
{
        struct failing *f = failing_of(d);

        op_init(&f->inner_close.op, inner_closed);
        driver_close(f->inner, &f->inner_close);
}

static const struct driver_ops failing_ops = {
        .calls = {
                [DRIVER_CALL_CREATE] = failing_call,  [DRIVER_CALL_DESTROY] = failing_call,
                [DRIVER_CALL_PAUSE] = failing_call,   [DRIVER_CALL_RESUME] = failing_call,
                [DRIVER_CALL_INSPECT] = failing_call, [DRIVER_CALL_SCAN] = failing_call,
                [DRIVER_CALL_CONNECT] = failing_call, [DRIVER_CALL_USAGE] = failing_call,
                [DRIVER_CALL_PROBE] = failing_call,   [DRIVER_CALL_SNAPSHOT] = failing_call,
                [DRIVER_CALL_SNAPSHOT_REMOVE] = failing_call,
                [DRIVER_CALL_SNAPSHOTS] = failing_call,
        },
        .cancel = failing_cancel,
        .close = failing_close,
};

struct driver *driver_failing_open(struct driver *inner)
{
        struct failing *f = xnew(struct failing);

        f->ops = failing_ops;
        f->ops.name = driver_name(inner);
        f->ops.caps = driver_caps(inner);
        driver_init(&f->driver, &f->ops, inner->loop);
        f->inner = inner;
        f->watcher.died = failing_died;
        driver_watch(inner, &f->watcher);
        return &f->driver;
}

void driver_failing_plan(struct driver *d, const struct driver_failing_plan *plan)
{
        struct failing *f = failing_of(d);

        f->plan = *plan;
        f->random = plan->seed;
        f->seen = 0;
        f->failed = 0;
}

unsigned driver_failing_count(const struct driver *d)
{
        return container_of(d, const struct failing, driver)->failed;
}
