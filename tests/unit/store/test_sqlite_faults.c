/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/clock_fake.h"
#include "tests/lib/store_world.h"

/*
 * A disk that is full, that fails, and that is asked to be sure. The functions below take the place
 * of libc's for SQLite, too, so the test knows when it waits for the disk, and decides what the
 * disk says.
 */

#define TAKES_THE_PLACE __attribute__((visibility("default")))

static unsigned syncs;
static int sync_error;
static int write_error;

/* Parameters are named as in unistd.h. */
TAKES_THE_PLACE int fsync(int __fd)
{
        syncs++;
        if (sync_error) {
                errno = sync_error;
                return -1;
        }
        return (int) syscall(SYS_fsync, __fd);
}

TAKES_THE_PLACE int fdatasync(int __fildes)
{
        return fsync(__fildes);
}

/* Its name for the linker is pwrite64, as SQLite has it. */
TAKES_THE_PLACE ssize_t pwrite(int __fd, const void *__buf, size_t __nbytes, off_t __offset)
{
        if (write_error) {
                errno = write_error;
                return -1;
        }
        return syscall(SYS_pwrite64, __fd, __buf, __nbytes, __offset);
}

static const struct store_maker maker = { .name = "sqlite", .open = world_sqlite };
static struct store_world w;
static struct buf value;

static int set_up(void **state)
{
        world_open(&w, &maker);
        buf_init(&value, STORE_VALUE_MAX);
        return 0;
}

static int tear_down(void **state)
{
        sync_error = write_error = 0;
        buf_done(&value);
        world_close(&w);
        return 0;
}

/* --- the disk is asked --- */

static void each_acknowledged_write_waited_for_the_disk(void **state)
{
        for (int i = 0; i < 10; i++) {
                unsigned before = syncs;

                check_i64_eq(world_put(&w, STR("k"), STR("v"), NULL), 0);
                check_true(syncs > before);
                before = syncs;
                check_i64_eq(world_remove(&w, STR("k"), STORE_ANY), 0);
                check_true(syncs > before);
        }
}

static void reading_and_losing_do_not_wait(void **state)
{
        unsigned before;

        check_i64_eq(world_put(&w, STR("k"), STR("v"), NULL), 0);
        before = syncs;
        check_i64_eq(world_get(&w, STR("k"), &value, NULL), 0);
        check_i64_eq(world_cas(&w, STR("k"), STORE_ABSENT, STR("x"), NULL),
                     ERR_RETURN(ERR_CONFLICT));
        check_i64_eq(world_remove(&w, STR("none"), STORE_ANY), 0);
        check_u64_eq(syncs, before);
}

struct puts {
        struct store_put put;
        char key[16];
        unsigned *done;
        unsigned *failed;
};

static void puts_done(struct op *op, int result)
{
        struct puts *p = container_of(op, struct puts, put.req.op);

        (*p->done)++;
        *p->failed += result < 0;
}

/* Returns how many failed. */
static unsigned put_at_once(unsigned n)
{
        struct puts *p = xcalloc(n, sizeof(*p));
        unsigned done = 0, failed = 0;

        for (unsigned i = 0; i < n; i++) {
                (void) snprintf(p[i].key, sizeof(p[i].key), "%06u", i);
                p[i].done = &done;
                p[i].failed = &failed;
                op_init(&p[i].put.req.op, puts_done);
                store_start(w.store, store_put_req(&p[i].put, str_from(p[i].key), STR("value")));
        }
        world_until(&w, done == n);
        free(p);
        return failed;
}

static void the_writes_of_a_turn_wait_together(void **state)
{
        struct clock_fake still; /* nothing takes too long for one transaction */
        unsigned before = syncs;

        clock_fake_init(&still, 0, 0);
        w.loop.clock = &still.clock;
        check_u64_eq(put_at_once(1000), 0);
        check_true(syncs - before <= 2);
        w.loop.clock = &clock_system;
}

/* --- a full disk --- */

static void check_full(void)
{
        check_i64_eq(world_put(&w, STR("old"), STR("new"), NULL), ERR_RETURN(ERR_EXHAUSTED));
        check_true(strstr(world_err()->message, "is full") != NULL);
        check_i64_eq(world_get(&w, STR("old"), &value, NULL), 0);
        check_str_eq(buf_str(&value), "value");
        check_i64_eq(world_get(&w, STR("new"), NULL, NULL), ERR_RETURN(ERR_NOT_FOUND));
}

static void a_full_disk_refuses_writes_only(void **state)
{
        static const int errors[] = { ENOSPC, EDQUOT };
        struct buf keys;
        uint64_t before, after;

        buf_init(&keys, 256);
        check_i64_eq(world_put(&w, STR("old"), STR("value"), &before), 0);
        for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
                write_error = errors[i];
                check_full();
                check_i64_eq(world_cas(&w, STR("new"), STORE_ABSENT, STR("x"), NULL),
                             ERR_RETURN(ERR_EXHAUSTED));
                check_u64_eq(put_at_once(100), 100);
                world_keys(&w, STR(""), 10, &keys);
                check_str_eq(buf_str(&keys), "old");
        }
        write_error = 0;
        check_i64_eq(world_put(&w, STR("old"), STR("later"), &after), 0);
        check_true(after > before);
        buf_done(&keys);
}

/* hutchd must start, or no one can make room through it. */
static void a_store_opens_on_a_full_disk(void **state)
{
        check_i64_eq(world_put(&w, STR("old"), STR("value"), NULL), 0);
        write_error = ENOSPC;
        check_full();
        world_close_store(&w);
        w.store = world_sqlite(&w);
        check_full();
        write_error = 0;
        check_i64_eq(world_put(&w, STR("new"), STR("v"), NULL), 0);
        world_close_store(&w);
        w.store = world_sqlite(&w);
        check_i64_eq(world_get(&w, STR("new"), NULL, NULL), 0);
}

/* --- reads among writes that fail --- */

struct get {
        struct store_get get;
        bool done;
        int result;
};

static void get_done(struct op *op, int result)
{
        struct get *g = container_of(op, struct get, get.req.op);

        buf_reset(&value);
        buf_add_str(&value, g->get.value);
        g->result = result;
        g->done = true;
}

/* It was started behind the put and has seen its value; the commit then failed. */
static void what_was_not_committed_is_not_read(void **state)
{
        unsigned done = 0, failed = 0;
        struct puts p = { .done = &done, .failed = &failed };
        struct get g = { 0 };

        check_i64_eq(world_put(&w, STR("k"), STR("before"), NULL), 0);
        op_init(&p.put.req.op, puts_done);
        op_init(&g.get.req.op, get_done);
        write_error = ENOSPC;
        store_start(w.store, store_put_req(&p.put, STR("k"), STR("after")));
        store_start(w.store, store_get_req(&g.get, STR("k")));
        world_until(&w, g.done && done == 1);
        check_u64_eq(failed, 1);
        check_i64_eq(g.result, 0);
        check_str_eq(buf_str(&value), "before");
}

/* --- a disk that fails --- */

static void a_failing_disk_is_unavailable(void **state)
{
        check_i64_eq(world_put(&w, STR("k"), STR("before"), NULL), 0);
        sync_error = EIO;
        check_i64_eq(world_put(&w, STR("k"), STR("after"), NULL), ERR_RETURN(ERR_UNAVAILABLE));
        sync_error = ENOSPC; /* too late to say that nothing was written */
        check_i64_eq(world_put(&w, STR("k"), STR("after"), NULL), ERR_RETURN(ERR_UNAVAILABLE));
        sync_error = 0;
        write_error = EIO;
        check_i64_eq(world_put(&w, STR("k"), STR("after"), NULL), ERR_RETURN(ERR_UNAVAILABLE));
        write_error = 0;
        check_i64_eq(world_get(&w, STR("k"), &value, NULL), 0);
        check_str_eq(buf_str(&value), "before");
        check_i64_eq(world_put(&w, STR("k"), STR("after"), NULL), 0);
        world_close_store(&w);
        w.store = world_sqlite(&w);
        check_i64_eq(world_get(&w, STR("k"), &value, NULL), 0);
        check_str_eq(buf_str(&value), "after");
}

/* --- the real thing --- */

/* Fills the file system but for what a store needs to exist; then makes room again. */
static void a_small_file_system_runs_full_and_recovers(void **state)
{
        static const char bytes[64 * KiB];
        struct str big = { bytes, sizeof(bytes) };
        unsigned written = 0;
        char key[16];
        int r = 0;

        world_close_store(&w);
        if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
                skip_because("no mount namespace for us here");
        (void) mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
        if (mount("tmpfs", w.dir, "tmpfs", 0, "size=4m,mode=0700") < 0)
                skip_because("no tmpfs may be mounted here");
        w.store = world_sqlite(&w);
        check_i64_eq(world_put(&w, STR("old"), STR("value"), NULL), 0);
        for (; r == 0 && written < 1000; written++) {
                (void) snprintf(key, sizeof(key), "big%03u", written);
                r = world_put(&w, str_from(key), big, NULL);
        }
        check_i64_eq(r, ERR_RETURN(ERR_EXHAUSTED));
        check_true(written > 5 && written < 64);
        check_i64_eq(world_get(&w, STR("old"), &value, NULL), 0);
        check_i64_eq(world_get(&w, STR("big000"), &value, NULL), 0);
        world_close_store(&w);
        w.store = world_sqlite(&w);
        check_i64_eq(world_get(&w, STR("big000"), &value, NULL), 0);
        check_u64_eq(value.n, big.n);

        check_i64_eq(mount(NULL, w.dir, NULL, MS_REMOUNT, "size=16m"), 0);
        check_i64_eq(world_put(&w, STR("big999"), big, NULL), 0);
        check_i64_eq(world_get(&w, STR("big999"), &value, NULL), 0);
        world_close_store(&w);
        check_i64_eq(umount2(w.dir, MNT_DETACH), 0);
}

#define FAULT_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                FAULT_TEST(each_acknowledged_write_waited_for_the_disk),
                FAULT_TEST(reading_and_losing_do_not_wait),
                FAULT_TEST(the_writes_of_a_turn_wait_together),
                FAULT_TEST(a_full_disk_refuses_writes_only),
                FAULT_TEST(a_store_opens_on_a_full_disk),
                FAULT_TEST(what_was_not_committed_is_not_read),
                FAULT_TEST(a_failing_disk_is_unavailable),
                /* Last: it moves the process into another mount namespace. */
                FAULT_TEST(a_small_file_system_runs_full_and_recovers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
