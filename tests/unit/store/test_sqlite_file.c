/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/store_world.h"

/* Which files are taken and which are refused, and that the refused ones stay as they are. */

static const struct store_maker maker = { .name = "sqlite", .open = world_sqlite };
static struct store_world w;
static struct err e;

static int set_up(void **state)
{
        world_open(&w, NULL);
        w.maker = &maker;
        e = (struct err){ 0 };
        return 0;
}

static int tear_down(void **state)
{
        world_close(&w);
        return 0;
}

static void check_refused(enum err_code code, const char *text)
{
        struct store *s = NULL;

        check_i64_eq(store_sqlite_open(&w.loop, w.path, &s, &e), ERR_RETURN(code));
        check_true(s == NULL);
        if (!strstr(e.message, text))
                fail_msg("'%s' does not say '%s'", e.message, text);
}

static void check_taken(void)
{
        w.store = world_sqlite(&w);
        world_close_store(&w);
}

static void sql(const char *text)
{
        sqlite3 *db = NULL;
        char *message = NULL;

        check_i64_eq(sqlite3_open(w.path, &db), SQLITE_OK);
        if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK)
                fail_msg("%s: %s", text, message);
        check_i64_eq(sqlite3_close(db), SQLITE_OK);
        check_i64_eq(chmod(w.path, 0600), 0);
}

/* All bytes of the file and of its log. */
static void read_files(struct buf *all)
{
        static const char *const suffixes[] = { "", "-wal" };
        char path[96];
        char piece[8192];

        buf_init(all, 64 * MiB);
        for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
                ssize_t n;
                int fd;

                (void) snprintf(path, sizeof(path), "%s%s", w.path, suffixes[i]);
                fd = open(path, O_RDONLY | O_CLOEXEC);
                buf_addf(all, "<%s %d>", suffixes[i], fd >= 0);
                while (fd >= 0 && (n = read(fd, piece, sizeof(piece))) > 0)
                        buf_add(all, piece, (size_t) n);
                if (fd >= 0)
                        (void) close(fd);
        }
        check_false(buf_failed(all));
}

/* In a child, which ends without closing the store: its log stays behind. */
static void fill_and_die(void)
{
        pid_t pid = fork();
        int status;

        check_true(pid >= 0);
        if (pid == 0) {
                char key[16], value[512];

                w.store = world_sqlite(&w);
                memset(value, 'v', sizeof(value));
                for (unsigned i = 0; i < 200; i++) {
                        (void) snprintf(key, sizeof(key), "key%05u", i);
                        if (world_put(&w, str_from(key), str_of(value, sizeof(value)), NULL) < 0)
                                _exit(1);
                }
                _exit(0);
        }
        check_i64_eq(waitpid(pid, &status, 0), pid);
        check_i64_eq(status, 0);
}

/* --- files --- */

static void a_new_file_is_ours_alone(void **state)
{
        mode_t before = umask(0);
        struct stat st;
        char log[96];

        w.store = world_sqlite(&w);
        check_i64_eq(world_put(&w, STR("k"), STR("v"), NULL), 0);
        (void) umask(before);
        check_i64_eq(stat(w.path, &st), 0);
        check_i64_eq(st.st_mode & 07777, 0600);
        (void) snprintf(log, sizeof(log), "%s-wal", w.path);
        check_i64_eq(stat(log, &st), 0);
        check_i64_eq(st.st_mode & 07777, 0600);
}

static void an_empty_file_is_a_new_one(void **state)
{
        int fd = open(w.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

        check_true(fd >= 0);
        (void) close(fd);
        check_taken();
}

static void what_is_no_file_of_ours_is_refused(void **state)
{
        char target[96];

        (void) snprintf(w.path, sizeof(w.path), "%s/none/store.db", w.dir);
        check_refused(ERR_NOT_FOUND, "the directory of");
        (void) snprintf(w.path, sizeof(w.path), "%s/store.db", w.dir);

        check_i64_eq(mkdir(w.path, 0700), 0);
        check_refused(ERR_INVALID, "is not a file");
        check_i64_eq(rmdir(w.path), 0);

        (void) snprintf(target, sizeof(target), "%s/other", w.dir);
        check_i64_eq(symlink(target, w.path), 0);
        check_refused(ERR_INVALID, "is not a file");
        check_i64_eq(unlink(w.path), 0);

        check_taken();
        check_i64_eq(chmod(w.path, 0640), 0);
        check_refused(ERR_FORBIDDEN, "chmod 600");
        check_i64_eq(chmod(w.path, 0600), 0);
        check_taken();
}

static void a_database_of_another_program_is_refused(void **state)
{
        static const char *const texts[] = {
                "CREATE TABLE photos (id)",
                "PRAGMA application_id = 7",
                "PRAGMA application_id = 7; CREATE TABLE meta (name, value)",
        };

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                struct buf before, after;

                check_case(texts[i]);
                sql(texts[i]);
                read_files(&before);
                check_refused(ERR_INVALID, "another program");
                read_files(&after);
                check_true(str_eq(buf_str(&before), buf_str(&after)));
                buf_done(&before);
                buf_done(&after);
                check_i64_eq(unlink(w.path), 0);
        }
}

/* --- one owner --- */

static void a_second_owner_is_refused(void **state)
{
        w.store = world_sqlite(&w);
        check_refused(ERR_CONFLICT, "in use by another process");
        /* Having looked at it, the second must not have taken away the lock of the first. */
        check_refused(ERR_CONFLICT, "in use by another process");
        check_i64_eq(world_put(&w, STR("k"), STR("v"), NULL), 0);
}

static void the_lock_goes_with_its_process(void **state)
{
        int pipes[2];
        pid_t pid;
        char c;

        check_i64_eq(pipe2(pipes, O_CLOEXEC), 0);
        pid = fork();
        check_true(pid >= 0);
        if (pid == 0) {
                w.store = world_sqlite(&w);
                (void) !write(pipes[1], "x", 1);
                for (;;)
                        (void) pause();
        }
        check_i64_eq(read(pipes[0], &c, 1), 1);
        check_refused(ERR_CONFLICT, "in use by another process");
        check_i64_eq(kill(pid, SIGKILL), 0);
        check_i64_eq(waitpid(pid, NULL, 0), pid);
        check_taken();
        (void) close(pipes[0]);
        (void) close(pipes[1]);
}

/* --- damage --- */

static void overwrite(off_t at, size_t n, unsigned char with)
{
        int fd = open(w.path, O_WRONLY | O_CLOEXEC);

        check_true(fd >= 0);
        for (size_t i = 0; i < n; i++)
                check_i64_eq(pwrite(fd, &with, 1, at + (off_t) i), 1);
        (void) close(fd);
}

static void cut(off_t size)
{
        check_i64_eq(truncate(w.path, size), 0);
}

static void head_gone(void)
{
        overwrite(0, 100, 'x');
}

static void pages_gone(void)
{
        overwrite(3 * 4096, 20 * 4096, 0x5a);
}

static void half_gone(void)
{
        cut(10 * 4096);
}

static void schema_gone(void)
{
        overwrite(100, 3900, 0);
}

static void a_damaged_file_is_refused_and_left_alone(void **state)
{
        static const struct {
                const char *name;
                void (*damage)(void);
        } cases[] = {
                { "head", head_gone },
                { "pages", pages_gone },
                { "half", half_gone },
                { "schema", schema_gone },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct buf before, after;

                check_case(cases[i].name);
                fill_and_die();
                check_taken(); /* carries the log over */
                cases[i].damage();
                read_files(&before);
                check_refused(ERR_INTERNAL, "is damaged");
                check_true(strstr(e.message, "restore it from a backup") != NULL);
                read_files(&after);
                check_true(str_eq(buf_str(&before), buf_str(&after)));
                buf_done(&before);
                buf_done(&after);
                check_i64_eq(unlink(w.path), 0);
        }
}

/* --- schema --- */

#define NEWER "UPDATE meta SET value = 1000 WHERE name = 'schema'"

static void a_newer_file_is_refused_and_left_alone(void **state)
{
        struct buf before, after;

        check_taken();
        sql(NEWER);
        read_files(&before);
        check_refused(ERR_UNSUPPORTED, "a newer Hutch (schema 1000");
        read_files(&after);
        check_true(str_eq(buf_str(&before), buf_str(&after)));
        buf_done(&before);
        buf_done(&after);
}

/* The same with a log that was left behind: it is not carried over into the file. */
static void a_refused_file_keeps_its_log(void **state)
{
        struct buf before, after;
        pid_t pid;

        fill_and_die();
        pid = fork();
        check_true(pid >= 0);
        if (pid == 0) {
                sqlite3 *db = NULL;

                (void) sqlite3_open(w.path, &db);
                _exit(sqlite3_exec(db, NEWER, NULL, NULL, NULL));
        }
        check_i64_eq(waitpid(pid, NULL, 0), pid);
        read_files(&before);
        check_true(before.n > 100000);
        check_refused(ERR_UNSUPPORTED, "a newer Hutch");
        read_files(&after);
        check_true(str_eq(buf_str(&before), buf_str(&after)));
        buf_done(&before);
        buf_done(&after);
}

static int open_schema(const char *const *steps, int n, int64_t *ret_rows)
{
        struct sqlite_schema schema = { .application_id = 99, .steps = steps, .n = n };
        scoped(sqlite_file_closep) sqlite3 *db = NULL;
        int r = sqlite_file_open(w.path, &schema, &db, &e);

        if (r < 0)
                return r;
        return sqlite_file_number(db, "SELECT count(*) FROM t", ret_rows, &e);
}

static void an_older_file_is_brought_forward(void **state)
{
        static const char one[] = "CREATE TABLE t (a)";
        static const char two[] = "INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)";
        static const char *const steps[] = { one, two, "INSERT INTO t VALUES (3)" };
        static const char *const broken[] = { one, two, "INSERT INTO nowhere VALUES (1)" };
        int64_t rows = -1;

        check_i64_eq(open_schema(steps, 1, &rows), 0);
        check_i64_eq(rows, 0);
        /* All steps or none. */
        check_true(open_schema(broken, 3, &rows) < 0);
        check_i64_eq(open_schema(steps, 1, &rows), 0);
        check_i64_eq(rows, 0);
        check_i64_eq(open_schema(steps, 3, &rows), 0);
        check_i64_eq(rows, 3);
        check_i64_eq(open_schema(steps, 3, &rows), 0);
        check_i64_eq(rows, 3);
        check_i64_eq(open_schema(steps, 2, &rows), ERR_RETURN(ERR_UNSUPPORTED));
}

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                FILE_TEST(a_new_file_is_ours_alone),
                FILE_TEST(an_empty_file_is_a_new_one),
                FILE_TEST(what_is_no_file_of_ours_is_refused),
                FILE_TEST(a_database_of_another_program_is_refused),
                FILE_TEST(a_second_owner_is_refused),
                FILE_TEST(the_lock_goes_with_its_process),
                FILE_TEST(a_damaged_file_is_refused_and_left_alone),
                FILE_TEST(a_newer_file_is_refused_and_left_alone),
                FILE_TEST(a_refused_file_keeps_its_log),
                FILE_TEST(an_older_file_is_brought_forward),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
