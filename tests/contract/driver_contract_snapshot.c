/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/contract/driver_contract.h"

#define w (driver_contract_world())

/* A record of what is made of a snapshot. */
static struct sandbox *restored(const char *id, const char *snapshot)
{
        struct sandbox *s = driver_world_record(id);

        s->image = STR_NULL;
        s->snapshot_id = str_from(snapshot);
        return s;
}

/* A driver that can't take any says so; that is what holds for it. */
static bool takes_none(void)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        char ids[64];

        if (driver_can(w->driver, DRIVER_SNAPSHOT))
                return false;
        check_i64_eq(driver_world_snapshot(w, s, "snap-1"), CODE(UNSUPPORTED));
        check_i64_eq(driver_world_snapshot_remove(w, "snap-1"), CODE(UNSUPPORTED));
        check_i64_eq(driver_world_snapshots(w, ids, sizeof(ids)), CODE(UNSUPPORTED));
        return true;
}

static void check_snapshots(const char *expected)
{
        char ids[256];

        check_i64_eq(driver_world_snapshots(w, ids, sizeof(ids)), 0);
        check_z_eq(ids, expected);
}

/* --- commands in a sandbox, where agents are real --- */

struct run {
        struct agent_exec exec;
        bool done;
        int result;
};

static void run_done(struct op *op, int result)
{
        struct run *r = container_of(op, struct run, exec.req.op);

        r->result = result;
        r->done = true;
}

static void check_run(const struct sandbox *sandbox, const char *command, const char *output)
{
        struct run r = { 0 };

        if (!w->maker->real_agent)
                return;
        op_init(&r.exec.req.op, run_done);
        r.exec.command = str_from(command);
        agent_exec(w->agents, &r.exec, w->driver, sandbox);
        driver_world_until(w, r.done);
        check_i64_eq(r.result, 0);
        check_str_eq(buf_str(&r.exec.out), output);
        agent_exec_done(&r.exec);
}

/* --- tests --- */

static void a_sandbox_is_made_of_a_snapshot(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        scoped(sandbox_freep) struct sandbox *next = restored("sb-2", "snap-1");

        if (takes_none())
                return;
        check_i64_eq(driver_world_create(w, s), 0);
        check_run(s, "printf kept >/kept; chmod 640 /kept; chown 5:6 /kept; printf done", "done");
        check_i64_eq(driver_world_snapshot(w, s, "snap-1"), 0);
        check_i64_eq(driver_world_status(w, s), RUNTIME_RUNNING);
        check_i64_eq(driver_world_ping(w, s), 0);
        check_run(s, "printf later >/kept; printf done", "done");
        check_i64_eq(driver_world_destroy(w, s), 0);
        check_snapshots("snap-1");
        check_i64_eq(driver_world_create(w, next), 0);
        check_i64_eq(driver_world_ping(w, next), 0);
        check_run(next, "cat /kept; stat -c ' %a %u %g' /kept | tr -d '\\n'", "kept 640 5 6");
        check_i64_eq(driver_world_destroy(w, next), 0);
        check_i64_eq(driver_world_snapshot_remove(w, "snap-1"), 0);
        check_snapshots("");
        check_i64_eq(w->notified, 0);
}

static void a_snapshot_that_is_needed_stays(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        scoped(sandbox_freep) struct sandbox *next = restored("sb-2", "snap-1");

        if (takes_none())
                return;
        check_i64_eq(driver_world_create(w, s), 0);
        check_i64_eq(driver_world_snapshot(w, s, "snap-1"), 0);
        check_i64_eq(driver_world_snapshot(w, s, "snap-1"), CODE(EXISTS));
        check_i64_eq(driver_world_create(w, next), 0);
        check_i64_eq(driver_world_snapshot_remove(w, "snap-1"), CODE(CONFLICT));
        check_i64_eq(driver_world_ping(w, next), 0);
        /* A snapshot of what was made of a snapshot stands by itself. */
        check_i64_eq(driver_world_snapshot(w, next, "snap-2"), 0);
        check_snapshots("snap-1 snap-2");
        check_i64_eq(driver_world_destroy(w, next), 0);
        check_i64_eq(driver_world_snapshot_remove(w, "snap-1"), 0);
        check_snapshots("snap-2");
        next->snapshot_id = STR("snap-2");
        check_i64_eq(driver_world_create(w, next), 0);
        check_i64_eq(driver_world_ping(w, next), 0);
        check_i64_eq(driver_world_destroy(w, next), 0);
        check_i64_eq(driver_world_snapshot_remove(w, "snap-2"), 0);
        check_i64_eq(driver_world_snapshot_remove(w, "snap-2"), 0);
        check_snapshots("");
}

static void what_cannot_be_kept_or_restored(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        scoped(sandbox_freep) struct sandbox *none = restored("sb-2", "snap-none");
        scoped(sandbox_freep) struct sandbox *other = restored("sb-3", "snap-1");

        if (takes_none())
                return;
        check_i64_eq(driver_world_snapshot(w, s, "snap-1"), CODE(NOT_FOUND));
        check_i64_eq(driver_world_create(w, s), 0);
        check_i64_eq(driver_world_snapshot(w, s, "../snap"), CODE(INVALID));
        check_i64_eq(driver_world_snapshot_remove(w, "a:b"), CODE(INVALID));
        check_i64_eq(driver_world_pause(w, s), 0);
        check_i64_eq(driver_world_snapshot(w, s, "snap-1"), CODE(CONFLICT));
        check_i64_eq(driver_world_resume(w, s), 0);
        check_i64_eq(driver_world_create(w, none), CODE(NOT_FOUND));
        check_i64_eq(driver_world_status(w, none), RUNTIME_GONE);
        check_snapshots("");
        /* Another tenant's. */
        check_i64_eq(driver_world_snapshot(w, s, "snap-1"), 0);
        other->tenant = STR("other");
        check_i64_eq(driver_world_create(w, other), CODE(NOT_FOUND));
        check_i64_eq(driver_world_status(w, other), RUNTIME_GONE);
        check_i64_eq(driver_world_snapshot_remove(w, "snap-1"), 0);
}

static void snapshots_are_found_again(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

        if (takes_none())
                return;
        check_i64_eq(driver_world_create(w, s), 0);
        check_i64_eq(driver_world_snapshot(w, s, "snap-1"), 0);
        driver_world_restart(w);
        check_snapshots("snap-1");
        check_i64_eq(driver_world_snapshot_remove(w, "snap-1"), 0);
        check_snapshots("");
}

const struct CMUnitTest driver_contract_snapshot[] = {
        DRIVER_TEST(a_sandbox_is_made_of_a_snapshot),
        DRIVER_TEST(a_snapshot_that_is_needed_stays),
        DRIVER_TEST(what_cannot_be_kept_or_restored),
        DRIVER_TEST(snapshots_are_found_again),
};
const size_t driver_contract_snapshot_n = ARRAY_SIZE(driver_contract_snapshot);
