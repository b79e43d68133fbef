/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/contract/driver_contract.h"

#define w (driver_contract_world())

static struct sandbox *sandbox;

static int set_up(void **state)
{
        (void) driver_contract_set_up(state);
        sandbox = driver_world_record("sb-1");
        check_i64_eq(driver_world_create(w, sandbox), 0);
        return 0;
}

static int tear_down(void **state)
{
        sandbox_free(TAKE_PTR(sandbox));
        return driver_contract_tear_down(state);
}

/* --- commands --- */

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

static void run_start(struct run *r, const char *command)
{
        op_init(&r->exec.req.op, run_done);
        r->done = false;
        r->exec.command = str_from(command);
        agent_exec(w->agents, &r->exec, w->driver, sandbox);
}

static int run(struct run *r, const char *command)
{
        run_start(r, command);
        driver_world_until(w, r->done);
        w->err = r->exec.req.err;
        return r->result;
}

static void commands_have_exit_codes_and_exact_output(void **state)
{
        static const struct {
                const char *command;
                int exit_code;
                struct str out, err_out;
        } cases[] = {
                { "true", 0, STR(""), STR("") },
                { "exit 3", 3, STR(""), STR("") },
                { "exit 255", 255, STR(""), STR("") },
                { "kill -9 $$", 137, STR(""), STR("") },
                { "kill -TERM $$", 143, STR(""), STR("") },
                { "printf 'no line end'", 0, STR("no line end"), STR("") },
                { "printf 'a\\r\\nb\\rc\\n\\n\\n'", 0, STR("a\r\nb\rc\n\n\n"), STR("") },
                { "printf 'out'; printf 'err\\n' >&2; exit 7", 7, STR("out"), STR("err\n") },
                { "printf '\\000\\377\\n'", 0, STR("\0\377\n"), STR("") },
                { "printf '%s' \"$SECRET\"", 0, STR("s3cret value"), STR("") },
                { "cat", 0, STR(""), STR("") }, /* its input is empty */
                { "nosuchprogram 2>/dev/null", 127, STR(""), STR("") },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct run r = { 0 };

                check_case(cases[i].command);
                if (run(&r, cases[i].command) < 0)
                        fail_msg("%s", w->err.message);
                check_i64_eq(r.exec.exit_code, cases[i].exit_code);
                check_view_eq(buf_str(&r.exec.out), cases[i].out);
                check_view_eq(buf_str(&r.exec.err_out), cases[i].err_out);
                agent_exec_done(&r.exec);
        }
}

static void a_command_has_its_folder_and_variables(void **state)
{
        struct json_pair env[] = { { STR("A"), STR("one\ntwo") } };
        struct run r = { .exec = { .cwd = STR("/tmp"), .env = { env, 1 } } };
        struct run none = { .exec = { .cwd = STR("/no/such/dir") } };

        check_i64_eq(run(&r, "pwd; printf %s \"$A\""), 0);
        check_str_eq(buf_str(&r.exec.out), "/tmp\none\ntwo");
        agent_exec_done(&r.exec);
        check_i64_eq(run(&none, "true"), CODE(INVALID));
        agent_exec_done(&none.exec);
        r = (struct run){ 0 };
        check_i64_eq(run(&r, ""), CODE(INVALID));
        agent_exec_done(&r.exec);
}

static void large_output_is_exact(void **state)
{
        struct run r = { 0 };

        /* Longer than any line the agent would cut. */
        check_i64_eq(run(&r, "head -c 300000 /dev/zero | tr '\\0' x; echo; seq 1 20000"), 0);
        check_i64_eq(r.exec.out.n, 300001 + 108894);
        check_true(str_ends_with(buf_str(&r.exec.out), STR("\n19999\n20000\n")));
        check_true(memchr(buf_str(&r.exec.out).p, '\n', 300000) == NULL);
        agent_exec_done(&r.exec);
}

/* A lock is the kernel's to take back, at the holder's very end. */
#define HELD         "exec 9> held; flock 9; "
#define UNTIL_LET_GO "flock held true"

static void too_much_output_ends_the_command(void **state)
{
        struct run r = { .exec = { .out_max = 1000 } }, still = { 0 };

        check_i64_eq(run(&r, HELD "exec yes"), CODE(TOO_LARGE));
        check_i64_eq(r.exec.out.n, 1000);
        check_true(str_starts_with(buf_str(&r.exec.out), STR("y\ny\n")));
        agent_exec_done(&r.exec);
        /* Exactly as much is fine. */
        r = (struct run){ .exec = { .out_max = 1000 } };
        check_i64_eq(run(&r, "head -c 1000 /dev/zero"), 0);
        check_i64_eq(r.exec.out.n, 1000);
        agent_exec_done(&r.exec);
        /* It is killed when the agent notices that no one listens. */
        check_i64_eq(run(&still, UNTIL_LET_GO), 0);
        agent_exec_done(&still.exec);
}

static void a_command_has_its_time(void **state)
{
        struct run r = { .exec.req.timeout = check_timeout(USEC_PER_SEC / 2) }, still = { 0 };

        check_i64_eq(run(&r, "printf before; setsid sleep 1000 & echo $! > pid; wait"),
                     CODE(TIMEOUT));
        check_str_eq(buf_str(&r.exec.out), "before");
        agent_exec_done(&r.exec);
        check_i64_eq(run(&still, "! kill -0 $(cat pid) 2>/dev/null"), 0);
        check_i64_eq(still.exec.exit_code, 0);
        agent_exec_done(&still.exec);
}

static void a_canceled_command_is_killed(void **state)
{
        struct run r = { 0 }, still = { 0 };

        check_i64_eq(run(&still, "mkfifo up"), 0);
        agent_exec_done(&still.exec);
        still = (struct run){ 0 };
        run_start(&r, HELD "echo > up; exec sleep 1000");
        check_i64_eq(run(&still, "read nothing < up"), 0);
        agent_exec_done(&still.exec);
        op_cancel(&r.exec.req.op);
        driver_world_until(w, r.done);
        check_i64_eq(r.result, CODE(CANCELED));
        agent_exec_done(&r.exec);
        still = (struct run){ 0 };
        check_i64_eq(run(&still, UNTIL_LET_GO), 0);
        agent_exec_done(&still.exec);
}

/* --- files --- */

struct file_op {
        union {
                struct agent_req req;
                struct agent_read read;
                struct agent_write write;
        };
        bool done;
        int result;
};

static void file_done(struct op *op, int result)
{
        struct file_op *f = container_of(op, struct file_op, req.op);

        f->result = result;
        f->done = true;
}

static int read_file(struct file_op *f, const char *path, size_t max)
{
        *f = (struct file_op){ 0 };
        op_init(&f->req.op, file_done);
        f->read.path = str_from(path);
        f->read.max = max;
        agent_read(w->agents, &f->read, w->driver, sandbox);
        driver_world_until(w, f->done);
        w->err = f->req.err;
        return f->result;
}

static int write_files(struct file_op *f, const struct agent_file *files, size_t n)
{
        *f = (struct file_op){ 0 };
        op_init(&f->req.op, file_done);
        f->write.files = files;
        f->write.n = n;
        agent_write(w->agents, &f->write, w->driver, sandbox);
        driver_world_until(w, f->done);
        w->err = f->req.err;
        return f->result;
}

static void files_are_written_and_read(void **state)
{
        static char large[3 * 1000 * 1000];
        const struct agent_file files[] = {
                { STR("a.txt"), STR("text\r\n--boundary--\r\n"), 0 },
                { STR("deep/down/empty"), STR(""), 0600 },
                { STR("large"), str_of(large, sizeof(large)), 0755 },
                { STR("with \"quotes\" and \xc3\xbc"), STR("\0\377"), 0 },
                { STR("with\r\n\r\n--lines\t\x7f; filename=\"x\""), STR("\r\n"), 0 },
        };
        struct file_op f;
        struct run r = { 0 };

        for (size_t i = 0; i < sizeof(large); i++)
                large[i] = (char) (i * 2654435761U >> 13);
        if (write_files(&f, files, ARRAY_SIZE(files)) < 0)
                fail_msg("%s", w->err.message);
        check_i64_eq(f.write.failed, ARRAY_SIZE(files));
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                check_case(files[i].path.p);
                check_i64_eq(read_file(&f, files[i].path.p, 0), 0);
                check_true(str_eq(buf_str(&f.read.bytes), files[i].bytes));
                agent_read_done(&f.read);
        }
        check_i64_eq(run(&r, "stat -c %a a.txt deep/down/empty large; ls -q | wc -l"), 0);
        check_str_eq(buf_str(&r.exec.out), "644\n600\n755\n5\n");
        agent_exec_done(&r.exec);
}

/* Names that hold dollar signs, or are not UTF-8. */
static void a_path_may_be_taken_as_it_is(void **state)
{
        char path[64], command[128];
        struct agent_file file = { .bytes = STR("content") };
        struct file_op f;
        struct run r = { 0 };

        (void) snprintf(path, sizeof(path), "file:///tmp/%%24HOME%%ff%d", (int) getpid());
        (void) snprintf(command, sizeof(command),
                        "f=/tmp/'$HOME'$(printf '\\377')%d; cat \"$f\" && rm \"$f\"",
                        (int) getpid());
        file.path = str_from(path);
        check_i64_eq(write_files(&f, &file, 1), 0);
        check_i64_eq(read_file(&f, path, 0), 0);
        check_str_eq(buf_str(&f.read.bytes), "content");
        agent_read_done(&f.read);
        check_i64_eq(run(&r, command), 0);
        check_i64_eq(r.exec.exit_code, 0);
        check_str_eq(buf_str(&r.exec.out), "content");
        agent_exec_done(&r.exec);
}

static void what_cannot_be_read_or_written_is_told(void **state)
{
        const struct agent_file good[] = { { STR("x"), STR("1"), 0 } };
        const struct agent_file bad[] = {
                { STR("first"), STR("1"), 0 },
                { STR("/proc/version/x"), STR("2"), 0 },
                { STR("third"), STR("3"), 0 },
        };
        struct file_op f;

        check_i64_eq(read_file(&f, "no/such/file", 0), CODE(NOT_FOUND));
        agent_read_done(&f.read);
        check_i64_eq(read_file(&f, "/tmp", 0), CODE(INVALID));
        agent_read_done(&f.read);
        check_i64_eq(read_file(&f, "", 0), CODE(INVALID));
        agent_read_done(&f.read);
        check_i64_eq(write_files(&f, good, 1), 0);
        check_i64_eq(read_file(&f, "x", 1), 0);
        agent_read_done(&f.read);
        check_i64_eq(read_file(&f, "/etc/passwd", 3), CODE(TOO_LARGE));
        agent_read_done(&f.read);

        check_i64_eq(write_files(&f, bad, ARRAY_SIZE(bad)), CODE(CONFLICT));
        check_i64_eq(f.write.failed, 1);
        check_i64_eq(read_file(&f, "first", 0), 0);
        agent_read_done(&f.read);
        check_i64_eq(read_file(&f, "third", 0), CODE(NOT_FOUND));
        agent_read_done(&f.read);
        check_i64_eq(write_files(&f, NULL, 0), CODE(INVALID));
}

/* --- what a sandbox leaves behind --- */

static void destroy_ends_what_has_left_its_session(void **state)
{
        struct run r = { 0 };
        long pid;

        check_i64_eq(run(&r, "setsid sh -c 'setsid sleep 1000 & echo $! > pid' ; cat pid"), 0);
        pid = strtol(buf_str(&r.exec.out).p, NULL, 10);
        agent_exec_done(&r.exec);
        check_true(pid > 1);
        driver_world_restart(w);
        check_i64_eq(driver_world_destroy(w, sandbox), 0);
        if (!driver_can(w->driver, DRIVER_ISOLATION))
                check_true(kill((pid_t) pid, 0) < 0 && errno == ESRCH);
}

#define AGENT_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

const struct CMUnitTest driver_contract_agent[] = {
        AGENT_TEST(commands_have_exit_codes_and_exact_output),
        AGENT_TEST(a_command_has_its_folder_and_variables),
        AGENT_TEST(large_output_is_exact),
        AGENT_TEST(too_much_output_ends_the_command),
        AGENT_TEST(a_command_has_its_time),
        AGENT_TEST(a_canceled_command_is_killed),
        AGENT_TEST(files_are_written_and_read),
        AGENT_TEST(a_path_may_be_taken_as_it_is),
        AGENT_TEST(what_cannot_be_read_or_written_is_told),
        AGENT_TEST(destroy_ends_what_has_left_its_session),
};
const size_t driver_contract_agent_n = ARRAY_SIZE(driver_contract_agent);
