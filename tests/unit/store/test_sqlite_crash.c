/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/store_world.h"

/*
 * kill -9 at any moment loses no acknowledged write.
 *
 * A child writes and removes keys, many at a time, and reports through a pipe what it is about to
 * start and what was acknowledged.
 * A timer of the kernel kills it: wherever it is, in our code, in SQLite, between two system calls
 * of a commit or of a checkpoint. Then the parent opens what was left behind and compares.
 *
 * Values carry the number of the operation that wrote them, rising from one life to the next, so
 * the parent can notify what it finds: what was acknowledged last for a key, or something that was
 * under way behind it. The kernel survives, so this shows nothing about power cuts; that each
 * acknowledgement waited for the disk is shown by test_sqlite_faults.
 */

#define ROUNDS        60
#define KEYS          40
#define AT_A_TIME     16
#define DEADLINE_USEC 30000 /* at most, from the first acknowledgement of a life */
#define VALUE_BYTES   6000  /* more than a page: torn writes would show */

struct report {
        uint16_t key;
        bool is_removal;
        bool is_start;
        uint64_t number;
        uint64_t version;
};

static struct store_world w;
static uint64_t seed = 42;

static uint64_t next_random(void)
{
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        return seed >> 33;
}

static void key_text(unsigned key, char ret[static 16])
{
        (void) snprintf(ret, 16, "key%02u", key);
}

/* "<number> " and then bytes that follow from it. */
static size_t value_bytes(uint64_t number, char ret[static VALUE_BYTES])
{
        size_t n = 100 + number * 977 % (VALUE_BYTES - 100);
        int head = snprintf(ret, VALUE_BYTES, "%llu ", (unsigned long long) number);

        for (size_t i = (size_t) head; i < n; i++)
                ret[i] = (char) (number * 31 + i * 7);
        return n;
}

/* --- the child --- */

struct writer {
        union {
                struct store_req req;
                struct store_put put;
                struct store_remove remove;
        };
        struct report report;
        char key[16];
        char value[VALUE_BYTES];
};

static uint64_t child_number;
static int child_out;

static void child_kill_within(uint64_t usec)
{
        struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
        struct itimerspec at = { .it_value.tv_nsec = 1 + (long) (next_random() % usec) * 1000 };
        timer_t timer;

        if (timer_create(CLOCK_MONOTONIC, &event, &timer) < 0
            || timer_settime(timer, 0, &at, NULL) < 0)
                _exit(1);
}

/* Less than PIPE_BUF: whole or not at all. */
static void notify(const struct report *report)
{
        if (write(child_out, report, sizeof(*report)) != sizeof(*report))
                _exit(3);
}

static void writer_next(struct writer *x)
{
        x->report = (struct report){ .key = (uint16_t) (next_random() % KEYS),
                                     .is_removal = next_random() % 4 == 0,
                                     .is_start = true,
                                     .number = child_number++ };
        notify(&x->report);
        key_text(x->report.key, x->key);
        if (x->report.is_removal)
                store_start(w.store, store_remove_req(&x->remove, str_from(x->key), STORE_ANY));
        else
                store_start(w.store, store_put_req(&x->put, str_from(x->key),
                                                   str_of(x->value, value_bytes(x->report.number,
                                                                                x->value))));
}

static void writer_done(struct op *op, int result)
{
        struct writer *x = container_of(op, struct writer, req.op);
        static bool is_first = true;

        if (result < 0)
                _exit(2);
        if (!x->report.is_removal)
                x->report.version = x->put.version;
        x->report.is_start = false;
        notify(&x->report);
        if (is_first)
                child_kill_within(DEADLINE_USEC);
        is_first = false;
        writer_next(x);
}

static void child(int out, uint64_t first_number)
{
        struct writer *writers = xcalloc(AT_A_TIME, sizeof(*writers));

        child_out = out;
        child_number = first_number;
        w.store = world_sqlite(&w);
        for (size_t i = 0; i < AT_A_TIME; i++) {
                op_init(&writers[i].req.op, writer_done);
                writer_next(&writers[i]);
        }
        net_loop_run(&w.loop);
        _exit(4);
}

/* --- the parent --- */

/* What is known of each key: the last acknowledgement or what was found after a kill; number 0: it
 * was never written. */
static struct report last[KEYS];

/* Started and not acknowledged. */
static struct report under_way[AT_A_TIME];
static size_t under_way_n;

static const struct report *find_under_way(unsigned key, uint64_t number, bool is_removal)
{
        for (size_t i = 0; i < under_way_n; i++)
                if (under_way[i].key == key && under_way[i].is_removal == is_removal
                    && (is_removal || under_way[i].number == number))
                        return &under_way[i];
        return NULL;
}

static void note(const struct report *report)
{
        check_true(report->key < KEYS);
        if (report->is_start) {
                check_true(under_way_n < AT_A_TIME);
                under_way[under_way_n++] = *report;
                return;
        }
        check_true(report->number > last[report->key].number);
        last[report->key] = *report;
        for (size_t i = 0; i < under_way_n; i++)
                if (under_way[i].number == report->number)
                        under_way[i] = under_way[--under_way_n];
}

static bool read_report(int in, struct report *ret)
{
        char *p = (char *) ret;
        size_t have = 0;

        while (have < sizeof(*ret)) {
                ssize_t n = read(in, p + have, sizeof(*ret) - have);

                if (n <= 0)
                        return false;
                have += (size_t) n;
        }
        return true;
}

/* How many acknowledgements there were. */
static unsigned run_child(uint64_t first_number)
{
        struct report report;
        unsigned n = 0;
        int pipes[2], status;
        pid_t pid;

        under_way_n = 0;
        check_i64_eq(pipe2(pipes, O_CLOEXEC), 0);
        pid = fork();
        check_true(pid >= 0);
        if (pid == 0)
                child(pipes[1], first_number);
        (void) close(pipes[1]);
        while (read_report(pipes[0], &report)) {
                note(&report);
                n += !report.is_start;
        }
        (void) close(pipes[0]);
        check_i64_eq(waitpid(pid, &status, 0), pid);
        check_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        return n;
}

static void check_absent(unsigned key)
{
        const struct report *removal;

        if (last[key].is_removal || last[key].number == 0)
                return;
        removal = find_under_way(key, 0, /* is_removal= */ true);
        if (!removal)
                fail_msg("%u was acknowledged and is gone", key);
        else
                last[key] = *removal;
}

static void check_key(unsigned key, struct buf *value)
{
        char name[16], should[VALUE_BYTES];
        uint64_t number, version;
        int r;

        key_text(key, name);
        check_case(name);
        r = world_get(&w, str_from(name), value, &version);
        if (r < 0) {
                check_i64_eq(r, ERR_RETURN(ERR_NOT_FOUND));
                check_absent(key);
                return;
        }
        number = strtoull(value->p, NULL, 10);
        check_true(str_eq(buf_str(value), str_of(should, value_bytes(number, should))));
        if (number == last[key].number && !last[key].is_removal) {
                check_u64_eq(version, last[key].version);
                return;
        }
        check_true(find_under_way(key, number, /* is_removal= */ false) != NULL);
        check_true(version > last[key].version);
        last[key] = (struct report){ .key = (uint16_t) key, .number = number, .version = version };
}

static void no_acknowledged_write_is_lost(void **state)
{
        uint64_t first_number = 1;
        unsigned acknowledged = 0;
        struct buf value;

        world_open(&w, NULL);
        buf_init(&value, VALUE_BYTES);
        for (int round = 0; round < ROUNDS; round++) {
                (void) next_random(); /* another life of the child */
                acknowledged += run_child(first_number);
                first_number += 1000000;

                w.store = world_sqlite(&w);
                for (unsigned key = 0; key < KEYS; key++)
                        check_key(key, &value);
                world_close_store(&w);
        }
        print_message("# %d kills, %u acknowledged writes\n", ROUNDS, acknowledged);
        check_true(acknowledged >= ROUNDS);
        buf_done(&value);
        world_close(&w);
}

/* Killed while the file is made, or opened a second time: whatever is left behind can be opened. */
static void a_half_made_file_is_finished(void **state)
{
        unsigned survived = 0;

        world_open(&w, NULL);
        for (int round = 0; round < ROUNDS; round++) {
                char log[96];
                pid_t pid;
                int status;

                (void) next_random();
                pid = fork();
                check_true(pid >= 0);
                if (pid == 0) {
                        child_kill_within(4000);
                        w.store = world_sqlite(&w);
                        _exit(0);
                }
                check_i64_eq(waitpid(pid, &status, 0), pid);
                survived += WIFEXITED(status);
                w.store = world_sqlite(&w);
                check_i64_eq(world_put(&w, STR("k"), STR("v"), NULL), 0);
                world_close_store(&w);
                if (round % 2 == 0)
                        continue;
                (void) snprintf(log, sizeof(log), "%s-wal", w.path);
                check_i64_eq(unlink(w.path), 0);
                (void) unlink(log);
        }
        print_message("# %d openings, %u came through\n", ROUNDS, survived);
        check_true(survived < ROUNDS);
        world_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(no_acknowledged_write_is_lost),
                cmocka_unit_test(a_half_made_file_is_finished),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
