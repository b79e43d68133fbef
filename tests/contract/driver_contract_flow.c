/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "os/fd.h"
#include "tests/contract/driver_contract.h"

#define w (driver_contract_world())

#define FOUND_SIZE 16384

/* --- records come back --- */

struct comparing {
        struct driver_scan scan;
        const char *text; /* of the record that was created */
        bool done;
};

static void compared(struct op *op, int result)
{
        struct comparing *c = container_of(op, struct comparing, scan.req.op);
        struct sandbox *found;
        struct buf b;

        check_i64_eq(result, 0);
        check_i64_eq(c->scan.n, 1);
        check_i64_eq(c->scan.skipped, 0);
        check_i64_eq(c->scan.found[0].status, RUNTIME_RUNNING);
        found = c->scan.found[0].record;
        check_str_eq(found->owner.organization_id, "o:1");
        check_str_eq(found->owner.scope.key, "c/1");
        /* The driver's own notes aside, to the letter. */
        found->handle = STR_NULL;
        buf_init(&b, RECORD_TEXT_MAX);
        sandbox_encode(&b, found);
        check_str_eq(buf_str(&b), c->text);
        buf_done(&b);
        c->done = true;
}

static void scan_gives_the_record_back(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        struct buf text;

        buf_init(&text, RECORD_TEXT_MAX);
        sandbox_encode(&text, s);
        check_i64_eq(driver_world_create(w, s), 0);
        for (int restarted = 0; restarted < 2; restarted++) {
                struct comparing c = { .text = buf_str(&text).p };

                op_init(&c.scan.req.op, compared);
                driver_start(w->driver, driver_scan_req(&c.scan));
                driver_world_until(w, c.done);
                driver_world_restart(w);
        }
        buf_done(&text);
}

struct handling {
        struct driver_create create;
        struct driver_scan scan;
        char created[256], found[256];
        unsigned done;
};

static void handle_created(struct op *op, int result)
{
        struct handling *h = container_of(op, struct handling, create.req.op);

        check_i64_eq(result, 0);
        (void) snprintf(h->created, sizeof(h->created), "%.*s", STR_ARG(h->create.handle));
        h->done++;
}

static void handle_found(struct op *op, int result)
{
        struct handling *h = container_of(op, struct handling, scan.req.op);

        check_i64_eq(result, 0);
        check_i64_eq(h->scan.n, 1);
        (void) snprintf(h->found, sizeof(h->found), "%.*s",
                        STR_ARG(h->scan.found[0].record->handle));
        h->done++;
}

static void scan_gives_the_handle_of_create(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        struct create_request request = { 0 };
        struct handling h = { 0 };

        op_init(&h.create.req.op, handle_created);
        driver_start(w->driver, driver_create_req(&h.create, s, &request));
        driver_world_until(w, h.done == 1);
        driver_world_restart(w);
        op_init(&h.scan.req.op, handle_found);
        driver_start(w->driver, driver_scan_req(&h.scan));
        driver_world_until(w, h.done == 2);
        check_z_eq(h.found, h.created);
}

static void what_cannot_be_read_back_is_skipped(void **state)
{
        scoped(sandbox_freep) struct sandbox *a = driver_world_record("sb-a");
        scoped(sandbox_freep) struct sandbox *b = driver_world_record("sb-b");
        char found[256];
        size_t skipped;

        check_i64_eq(driver_world_create(w, a), 0);
        check_i64_eq(driver_world_create(w, b), 0);
        w->maker->spoil(w, a->id);
        driver_world_restart(w);
        w->notified = 0;
        check_i64_eq(driver_world_scan(w, found, sizeof(found), &skipped), 0);
        check_z_eq(found, "sb-b:running");
        check_i64_eq(skipped, 1);
        /* Who knows it all the same can look at it, hears of its end, and can destroy it. */
        check_i64_eq(driver_world_status(w, a), RUNTIME_RUNNING);
        w->maker->kill(w, a->id, RUNTIME_DEAD);
        driver_world_until(w, w->notified > 0);
        check_z_eq(w->died_id, "sb-a");
        check_i64_eq(driver_world_destroy(w, a), 0);
        check_i64_eq(driver_world_scan(w, found, sizeof(found), &skipped), 0);
        check_i64_eq(skipped, 0);
}

/* --- restart --- */

static void a_restart_finds_all_and_watches_them(void **state)
{
        static const char *const ids[] = { "sb-a", "sb-b", "sb-c", "sb-d" };
        struct sandbox *s[ARRAY_SIZE(ids)];
        bool pauses = driver_can(w->driver, DRIVER_PAUSE);
        char found[256];

        for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
                s[i] = driver_world_record(ids[i]);
                check_i64_eq(driver_world_create(w, s[i]), 0);
        }
        if (pauses)
                check_i64_eq(driver_world_pause(w, s[1]), 0);
        w->maker->kill(w, s[2]->id, RUNTIME_DEAD);
        driver_world_until(w, w->notified > 0);
        w->notified = 0;

        driver_world_restart(w);
        check_i64_eq(driver_world_scan(w, found, sizeof(found), NULL), 0);
        check_z_eq(found, pauses ? "sb-a:running sb-b:paused sb-c:dead sb-d:running"
                                 : "sb-a:running sb-b:running sb-c:dead sb-d:running");
        check_i64_eq(driver_world_ping(w, s[0]), 0);
        if (pauses)
                check_i64_eq(driver_world_resume(w, s[1]), 0);
        check_i64_eq(driver_world_ping(w, s[1]), 0);
        w->maker->kill(w, s[3]->id, RUNTIME_ENDED);
        driver_world_until(w, w->notified > 0);
        check_z_eq(w->died_id, "sb-d");
        check_i64_eq(w->died_health.status, RUNTIME_ENDED);
        for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
                check_i64_eq(driver_world_destroy(w, s[i]), 0);
                sandbox_free(s[i]);
        }
        check_i64_eq(driver_world_scan(w, found, sizeof(found), NULL), 0);
        check_z_eq(found, "");
}

/* After a crash destroy may be the first call. */
static void what_was_not_scanned_can_be_destroyed(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

        check_i64_eq(driver_world_create(w, s), 0);
        driver_world_restart(w);
        check_i64_eq(driver_world_destroy(w, s), 0);
        check_i64_eq(driver_world_status(w, s), RUNTIME_GONE);
        check_i64_eq(driver_world_connect(w, s, NULL), CODE(NOT_FOUND));
}

/* --- several installations --- */

static void installations_do_not_see_each_other(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        struct driver *first = w->driver;
        struct driver *second = driver_world_open_as(w, "22222222222222222222222222222222");
        char found[256];
        size_t skipped;

        check_i64_eq(driver_world_create(w, s), 0);
        w->driver = second;
        check_i64_eq(driver_world_status(w, s), RUNTIME_GONE);
        check_i64_eq(driver_world_scan(w, found, sizeof(found), &skipped), 0);
        check_z_eq(found, "");
        check_i64_eq(skipped, 0);
        check_i64_eq(driver_world_destroy(w, s), 0);
        check_i64_eq(driver_world_connect(w, s, NULL), CODE(NOT_FOUND));
        /* The same name in both. */
        check_i64_eq(driver_world_create(w, s), 0);
        check_i64_eq(driver_world_destroy(w, s), 0);
        driver_world_close_driver(w, second);
        w->driver = first;
        check_i64_eq(driver_world_status(w, s), RUNTIME_RUNNING);
        check_i64_eq(driver_world_ping(w, s), 0);
        check_i64_eq(w->notified, 0);
}

/* --- many at a time --- */

struct one {
        union {
                struct driver_create create;
                struct driver_destroy destroy;
        };
        struct sandbox *record;
        unsigned *left;
};

static void one_created(struct op *op, int result)
{
        struct one *o = container_of(op, struct one, create.req.op);

        check_i64_eq(result, 0);
        --*o->left;
}

static void one_destroyed(struct op *op, int result)
{
        struct one *o = container_of(op, struct one, destroy.req.op);

        check_i64_eq(result, 0);
        --*o->left;
}

static void many_are_made_and_ended_at_once(void **state)
{
        static const struct create_request request;
        unsigned n = w->maker->many, left = n;
        struct one *all = xcalloc(n, sizeof(*all));
        char found[256];

        for (unsigned i = 0; i < n; i++) {
                char id[32];

                (void) snprintf(id, sizeof(id), "sb-%u", i);
                all[i] = (struct one){ .record = driver_world_record(id), .left = &left };
                op_init(&all[i].create.req.op, one_created);
                driver_start(w->driver, driver_create_req(&all[i].create, all[i].record, &request));
        }
        driver_world_until(w, left == 0);
        for (unsigned i = 0; i < n; i++) {
                all[i].destroy = (struct driver_destroy){ 0 };
                op_init(&all[i].destroy.req.op, one_destroyed);
                driver_start(w->driver, driver_destroy_req(&all[i].destroy, all[i].record));
        }
        left = n;
        driver_world_until(w, left == 0);
        check_i64_eq(driver_world_scan(w, found, sizeof(found), NULL), 0);
        check_z_eq(found, "");
        for (unsigned i = 0; i < n; i++)
                sandbox_free(all[i].record);
        free(all);
}

/* --- cancel and close --- */

struct started {
        union {
                struct driver_req req;
                struct driver_create create;
                struct driver_destroy destroy;
                struct driver_inspect inspect;
                struct driver_scan scan;
                struct driver_connect connect;
                struct driver_probe probe;
        };
        unsigned done;
        int result;
};

static void started_done(struct op *op, int result)
{
        struct started *x = container_of(op, struct started, req.op);

        x->done++;
        x->result = result;
}

static void started_init(struct started *x)
{
        *x = (struct started){ 0 };
        op_init(&x->req.op, started_done);
}

static void a_canceled_create_leaves_nothing(void **state)
{
        static const struct create_request request;

        /* At the start, and after some turns: wherever it is then. */
        for (int turns = 0; turns < 12; turns++) {
                scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
                struct started x;
                char found[256];
                size_t skipped;

                started_init(&x);
                driver_start(w->driver, driver_create_req(&x.create, s, &request));
                for (int i = 0; i < turns && !x.done; i++)
                        net_loop_run_once(&w->loop, /* wait= */ false);
                op_cancel(&x.req.op);
                driver_world_until(w, x.done);
                check_i64_eq(x.done, 1);
                check_true(x.result == 0 || x.result == CODE(CANCELED));
                if (x.result == 0)
                        check_i64_eq(driver_world_destroy(w, s), 0);
                check_i64_eq(driver_world_status(w, s), RUNTIME_GONE);
                check_i64_eq(driver_world_scan(w, found, sizeof(found), &skipped), 0);
                check_z_eq(found, "");
                check_i64_eq(skipped, 0);
        }
        check_i64_eq(w->notified, 0);
}

static void a_canceled_connect_ends_and_leaks_nothing(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        int before;

        check_i64_eq(driver_world_create(w, s), 0);
        check_i64_eq(driver_world_ping(w, s), 0);
        before = driver_world_descriptors();
        for (int turns = 0; turns < 8; turns++)
                for (int i = 0; i < 8; i++) {
                        struct started x;

                        started_init(&x);
                        driver_start(w->driver, driver_connect_req(&x.connect, s));
                        for (int t = 0; t < turns && !x.done; t++)
                                net_loop_run_once(&w->loop, /* wait= */ false);
                        op_cancel(&x.req.op);
                        driver_world_until(w, x.done);
                        check_true(x.result == 0 || x.result == CODE(CANCELED));
                        check_true((x.result == 0) == (x.connect.fd >= 0));
                        (void) fd_close(x.connect.fd);
                }
        driver_world_until(w, driver_world_descriptors() <= before);
        check_i64_eq(driver_world_ping(w, s), 0);
}

static void close_ends_what_is_under_way(void **state)
{
        static const struct create_request request;
        scoped(sandbox_freep) struct sandbox *a = driver_world_record("sb-a");
        scoped(sandbox_freep) struct sandbox *b = driver_world_record("sb-b");
        struct started x[6];
        char found[256];

        check_i64_eq(driver_world_create(w, a), 0);
        for (size_t i = 0; i < ARRAY_SIZE(x); i++)
                started_init(&x[i]);
        driver_start(w->driver, driver_create_req(&x[0].create, b, &request));
        driver_start(w->driver, driver_scan_req(&x[1].scan));
        driver_start(w->driver, driver_inspect_req(&x[2].inspect, a));
        driver_start(w->driver, driver_connect_req(&x[3].connect, a));
        driver_start(w->driver, driver_probe_req(&x[4].probe));
        driver_start(w->driver, driver_destroy_req(&x[5].destroy, a));
        driver_world_restart(w);
        for (size_t i = 0; i < ARRAY_SIZE(x); i++) {
                check_i64_eq(x[i].done, 1);
                check_true(x[i].result == 0 || x[i].result == CODE(CANCELED));
        }
        if (x[3].result == 0)
                (void) fd_close(x[3].connect.fd);
        /* Each of the two is there as a complete or not at all. */
        check_i64_eq(driver_world_scan(w, found, sizeof(found), NULL), 0);
        check_true((strstr(found, "sb-a") == NULL) == (x[5].result == 0));
        check_true((strstr(found, "sb-b") != NULL) == (x[0].result == 0));
}

struct late {
        struct driver_close close;
        bool done;
};

static void late_done(struct op *op, int result)
{
        container_of(op, struct late, close.op)->done = true;
}

static void nothing_begins_after_close(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        static const struct create_request request;
        struct late c = { 0 };
        struct started x[3];

        for (size_t i = 0; i < ARRAY_SIZE(x); i++)
                started_init(&x[i]);
        op_init(&c.close.op, late_done);
        driver_close(w->driver, &c.close);
        driver_start(w->driver, driver_create_req(&x[0].create, s, &request));
        driver_start(w->driver, driver_scan_req(&x[1].scan));
        driver_start(w->driver, driver_inspect_req(&x[2].inspect, s));
        driver_world_until(w, c.done);
        for (size_t i = 0; i < ARRAY_SIZE(x); i++) {
                check_i64_eq(x[i].done, 1);
                check_i64_eq(x[i].result, CODE(UNAVAILABLE));
        }
        w->driver = driver_world_open_as(w, WORLD_INSTALLATION);
        check_i64_eq(driver_world_status(w, s), RUNTIME_GONE);
}

const struct CMUnitTest driver_contract_flow[] = {
        DRIVER_TEST(scan_gives_the_record_back),
        DRIVER_TEST(scan_gives_the_handle_of_create),
        DRIVER_TEST(what_cannot_be_read_back_is_skipped),
        DRIVER_TEST(a_restart_finds_all_and_watches_them),
        DRIVER_TEST(what_was_not_scanned_can_be_destroyed),
        DRIVER_TEST(installations_do_not_see_each_other),
        DRIVER_TEST(many_are_made_and_ended_at_once),
        DRIVER_TEST(a_canceled_create_leaves_nothing),
        DRIVER_TEST(a_canceled_connect_ends_and_leaks_nothing),
        DRIVER_TEST(close_ends_what_is_under_way),
        DRIVER_TEST(nothing_begins_after_close),
};
const size_t driver_contract_flow_n = ARRAY_SIZE(driver_contract_flow);
