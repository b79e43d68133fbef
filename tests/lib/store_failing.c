/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/store_failing.h"

#include "base/base.h"
#include "store/store_impl.h"

struct failing {
        struct store store;
        struct store *inner;
        struct store_close inner_close;
        struct list passing;
        struct store_failing_plan plan;
        uint64_t random;
        unsigned seen;
        unsigned failed;
};

/* A request on its way. Answers are given in the order of the questions, so one that fails at once
 * waits for those before it. */
struct passing {
        union {
                struct store_req req;
                struct store_get get;
                struct store_put put;
                struct store_remove remove;
                struct store_cas cas;
                struct store_scan scan;
        };
        struct failing *f;
        struct store_req *outer;
        bool fail_after;
        bool answered;
        int result;
        struct list node;
};

static struct failing *failing_of(struct store *s)
{
        return container_of(s, struct failing, store);
}

/* --- what fails --- */

static uint64_t next_random(struct failing *f)
{
        uint64_t z = f->random += 0x9e3779b97f4a7c15ULL; /* SplitMix64 */

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
        return z ^ z >> 31;
}

static bool is_due(struct failing *f, const struct store_req *req)
{
        if (f->plan.writes_only && !store_call_writes(req))
                return false;
        f->seen++;
        switch (f->plan.when) {
        case STORE_FAILING_NTH:
                return f->seen == f->plan.n;
        case STORE_FAILING_FROM:
                return f->seen >= f->plan.n;
        case STORE_FAILING_RANDOM:
                return next_random(f) % 1000 < f->plan.n;
        case STORE_FAILING_NEVER:
        default:
                return false;
        }
}

static int fail(struct failing *f, struct store_req *req)
{
        enum err_code code = f->plan.code ? f->plan.code : ERR_UNAVAILABLE;

        f->failed++;
        return err_set(&req->err, code, "made to fail");
}

/* --- the way there and back --- */

static int give_get(struct store_get *to, const struct store_get *from)
{
        return store_get_set(to, from->value, from->version);
}

static int give_scan(struct store_scan *to, const struct store_scan *from)
{
        for (unsigned i = 0; i < from->n; i++)
                if (!store_scan_add(to, from->entries[i]))
                        break;
        to->more = from->more;
        return store_scan_result(to);
}

static int give_result(struct store_req *to, struct passing *from)
{
        switch ((enum store_call) to->_call) {
        case STORE_CALL_GET:
                return give_get(STORE_AS(get, to), &from->get);
        case STORE_CALL_PUT:
                STORE_AS(put, to)->version = from->put.version;
                return 0;
        case STORE_CALL_CAS:
                STORE_AS(cas, to)->version = from->cas.version;
                return 0;
        case STORE_CALL_SCAN:
                return give_scan(STORE_AS(scan, to), &from->scan);
        case STORE_CALL_REMOVE:
        case STORE_CALL_MAX_:
        default:
                return 0;
        }
}

static void answer(struct passing *p, int result)
{
        struct failing *f = p->f;

        p->answered = true;
        p->result = result;
        list_for_each (n, &f->passing) {
                struct passing *first = container_of(n, struct passing, node);

                if (!first->answered)
                        return;
                list_remove(n);
                store_finish(first->outer, first->result);
                free(first);
        }
}

static void passing_done(struct op *op, int result)
{
        struct passing *p = container_of(op, struct passing, req.op);

        if (result < 0)
                p->outer->err = p->req.err;
        else if (p->fail_after)
                result = fail(p->f, p->outer);
        else
                result = give_result(p->outer, p);
        answer(p, result);
}

static const size_t call_sizes[STORE_CALL_MAX_] = {
        [STORE_CALL_GET] = sizeof(struct store_get),
        [STORE_CALL_PUT] = sizeof(struct store_put),
        [STORE_CALL_REMOVE] = sizeof(struct store_remove),
        [STORE_CALL_CAS] = sizeof(struct store_cas),
        [STORE_CALL_SCAN] = sizeof(struct store_scan),
};

static void begin(struct failing *f, struct store_req *outer)
{
        struct passing *p = xnew(struct passing);
        bool due = is_due(f, outer);

        /* Call and arguments; the rest is set anew. */
        memcpy(p, outer, call_sizes[outer->_call]);
        op_init(&p->req.op, passing_done);
        p->f = f;
        p->outer = outer;
        p->fail_after = due;
        list_append(&f->passing, &p->node);
        if (due && !f->plan.after)
                answer(p, fail(f, outer));
        else
                store_start(f->inner, &p->req);
}

static void failing_run(struct store *s)
{
        struct failing *f = failing_of(s);

        for (struct store_req *req; (req = store_next(s));)
                begin(f, req);
}

static void failing_cancel(struct store *s, struct store_req *req)
{
        struct failing *f = failing_of(s);

        list_for_each (n, &f->passing) {
                struct passing *p = container_of(n, struct passing, node);

                if (p->outer == req)
                        op_cancel(&p->req.op);
        }
}

/* --- life cycle --- */

static void inner_closed(struct op *op, int result)
{
        struct failing *f = container_of(op, struct failing, inner_close.op);

        store_closed(&f->store);
}

static void failing_close(struct store *s)
{
        struct failing *f = failing_of(s);

        op_init(&f->inner_close.op, inner_closed);
        store_close(f->inner, &f->inner_close);
}

static void failing_free(struct store *s)
{
        free(failing_of(s));
}

static const struct store_ops store_failing = {
        .name = "failing",
        .run = failing_run,
        .cancel = failing_cancel,
        .close = failing_close,
        .free = failing_free,
};

struct store *store_failing_open(struct store *inner)
{
        struct failing *f = xnew(struct failing);

        store_init(&f->store, &store_failing, inner->loop);
        list_init(&f->passing);
        f->inner = inner;
        return &f->store;
}

void store_failing_plan(struct store *s, const struct store_failing_plan *plan)
{
        struct failing *f = failing_of(s);

        f->plan = *plan;
        f->random = plan->seed;
        f->seen = 0;
        f->failed = 0;
}

unsigned store_failing_count(const struct store *s)
{
        return container_of(s, const struct failing, store)->failed;
}
