/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/lib/agent_world.h"
#include "tests/lib/events.h"

static struct agent_world w;
static struct events events;

static int set_up(void **state)
{
        agent_world_open(&w);
        return 0;
}

static int tear_down(void **state)
{
        agent_world_close(&w);
        return 0;
}

/* Runs one command to its end. */
static const char *run(const char *body)
{
        struct reply r = call(&w, "POST", "/command", body);

        check_i64_eq(r.status, 200);
        check_str_eq(reply_header(&w, "Content-Type"), "text/event-stream");
        events_read(&events, r.body);
        check_i64_eq(strlen(events.id), 32);
        return events.text;
}

/* Turns the loop until the file is there. */
static void until_file(const char *name)
{
        usec_t started = clock_mono(&clock_system);

        while (access(path_in(&w, name), F_OK) < 0) {
                check_true(clock_mono(&clock_system) - started < 20 * USEC_PER_SEC);
                agent_world_turn(&w);
        }
}

static void until_gone(pid_t pid)
{
        usec_t started = clock_mono(&clock_system);

        while (kill(pid, 0) == 0) {
                check_true(clock_mono(&clock_system) - started < 20 * USEC_PER_SEC);
                agent_world_turn(&w);
        }
}

static pid_t pid_from(const char *name)
{
        scoped(freep) char *line = NULL;
        FILE *f = fopen(path_in(&w, name), "re");
        size_t size = 0;
        long pid;

        check_true(f != NULL);
        check_true(getline(&line, &size, f) > 0);
        pid = strtol(line, NULL, 10);
        (void) fclose(f);
        return (pid_t) pid;
}

/* --- the event stream --- */

static void test_events_of_commands(void **state)
{
        static const struct {
                const char *name, *body, *should;
        } cases[] = {
                { "one line", "{\"command\":\"echo hi\"}", "init ping out(hi) done" },
                { "no newline", "{\"command\":\"printf abc\"}", "init ping out(abc) done" },
                { "empty line", "{\"command\":\"echo; echo a\"}", "init ping out(\n) out(a) done" },
                { "stderr", "{\"command\":\"echo e >&2\"}", "init ping err(e) done" },
                { "exit code", "{\"command\":\"exit 3\"}", "init ping error(3|exit status 3)" },
                { "unknown program", "{\"argv\":[\"/no/such\"]}",
                  "init ping error(No such file or directory|No such file or directory)" },
                { "not executable", "{\"argv\":[\"/etc/passwd\"]}",
                  "init ping error(Permission denied|Permission denied)" },
                { "signal", "{\"command\":\"kill -9 $$\"}", "init ping error(-1|signal: killed)" },
                { "another signal", "{\"command\":\"kill $$\"}",
                  "init ping error(-1|signal: terminated)" },
                { "argv", "{\"argv\":[\"printf\",\"%s,\",\"a b\",\"$HOME\",\"*\"]}",
                  "init ping out(a b,$HOME,*,) done" },
                { "stdin is empty", "{\"command\":\"cat; echo end\"}", "init ping out(end) done" },
                { "envs", "{\"command\":\"echo $A-$B\",\"envs\":{\"A\":\"x y\",\"B\":\"\"}}",
                  "init ping out(x y-) done" },
                { "a PATH without a shell",
                  "{\"command\":\"echo $PATH\",\"envs\":{\"PATH\":\"/none\"}}",
                  "init ping out(/none) done" },
                { "a timeout longer than the universe lasts",
                  "{\"command\":\"sleep 0.1\",\"timeout\":18446744073709551}", "init ping done" },
                { "timeout 0 is none", "{\"command\":\"echo a\",\"timeout\":0,\"cwd\":\"\"}",
                  "init ping out(a) done" },
                { "nulls are absent",
                  "{\"command\":\"echo a\",\"timeout\":null,\"cwd\":null,\"uid\":null,"
                  "\"argv\":null,\"envs\":null}",
                  "init ping out(a) done" },
                { "unknown keys", "{\"command\":\"echo a\",\"colour\":\"red\"}",
                  "init ping out(a) done" },
                { "carriage returns", "{\"command\":\"printf '1\\\\r2\\\\r\\\\n3'\"}",
                  "init ping out(1) out(2) out(3) done" },
                { "invalid UTF-8", "{\"command\":\"printf 'a\\\\377b'\"}",
                  "init ping out(a\xef\xbf\xbd"
                  "b) done" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].name);
                check_z_eq(run(cases[i].body), cases[i].should);
        }
}

static void test_cwd(void **state)
{
        char should[256];

        (void) snprintf(should, sizeof(should), "init ping out(%s) done", w.dir);
        check_z_eq(run("{\"command\":\"pwd\"}"), should);
        check_z_eq(run("{\"command\":\"pwd\",\"cwd\":\"/\"}"), "init ping out(/) done");
        check_i64_eq(mkdir(path_in(&w, "sub"), 0755), 0);
        (void) snprintf(should, sizeof(should), "init ping out(%s/sub) done", w.dir);
        check_z_eq(run("{\"command\":\"pwd\",\"cwd\":\"sub\"}"), should);
}

static void test_bad_requests_start_nothing(void **state)
{
        static const struct {
                const char *name, *body;
        } cases[] = {
                { "nothing", "{}" },
                { "empty command", "{\"command\":\"\"}" },
                { "both", "{\"command\":\"true\",\"argv\":[\"true\"]}" },
                { "empty argv", "{\"argv\":[]}" },
                { "empty program", "{\"argv\":[\"\"]}" },
                { "no JSON", "command=true" },
                { "no object", "[]" },
                { "wrong type", "{\"command\":1}" },
                { "negative timeout", "{\"command\":\"touch x\",\"timeout\":-1}" },
                { "fractional timeout", "{\"command\":\"touch x\",\"timeout\":1.5}" },
                { "gid alone", "{\"command\":\"touch x\",\"gid\":0}" },
                { "negative uid", "{\"command\":\"touch x\",\"uid\":-1}" },
                { "uid -1 in disguise", "{\"command\":\"touch x\",\"uid\":4294967295}" },
                { "no such cwd", "{\"command\":\"touch x\",\"cwd\":\"/no/such\"}" },
                { "cwd is a file", "{\"command\":\"touch x\",\"cwd\":\"/etc/passwd\"}" },
                { "cwd with unknown variable", "{\"command\":\"touch x\",\"cwd\":\"$NO_SUCH_V\"}" },
                { "NUL in command", "{\"command\":\"touch x\\u0000\"}" },
                { "NUL in argv", "{\"argv\":[\"touch\",\"x\\u0000\"]}" },
                { "env without name", "{\"command\":\"touch x\",\"envs\":{\"\":\"a\"}}" },
                { "env with =", "{\"command\":\"touch x\",\"envs\":{\"A=B\":\"a\"}}" },
                { "env of another type", "{\"command\":\"touch x\",\"envs\":{\"A\":1}}" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct reply r;

                check_case(cases[i].name);
                r = call(&w, "POST", "/command", cases[i].body);
                check_i64_eq(r.status, 400);
                check_true(str_starts_with(r.body, STR("{\"code\":\"INVALID_REQUEST_BODY\",")));
                check_true(access(path_in(&w, "x"), F_OK) < 0);
        }
}

static void test_large_arguments_and_environments(void **state)
{
        scoped(buf_done) struct buf b;
        struct reply r;

        buf_init(&b, 8 * MiB);
        /* More than the kernel accepts in one argument: the program cannot start, and the agent survives. */
        buf_add_str(&b, STR("{\"argv\":[\"true\",\""));
        for (size_t i = 0; i < MiB; i++)
                buf_add_char(&b, 'x');
        buf_add_str(&b, STR("\"]}"));
        r = call_with(&w, "POST", "/command", NULL, NULL, buf_str(&b));
        events_read(&events, r.body);
        check_z_eq(events.text, "init ping error(Argument list too long|Argument list too long)");
        buf_reset(&b);
        buf_add_str(&b, STR("{\"command\":\"echo $V9999\",\"envs\":{\"X\":\"\""));
        for (int i = 0; i < 10000; i++)
                buf_addf(&b, ",\"V%d\":\"value%d\"", i, i);
        buf_add_str(&b, STR("}}"));
        r = call_with(&w, "POST", "/command", NULL, NULL, buf_str(&b));
        events_read(&events, r.body);
        check_z_eq(events.text, "init ping out(value9999) done");
        buf_reset(&b);
        for (size_t i = 0; i < 5 * MiB; i++)
                buf_add_char(&b, ' ');
        check_i64_eq(call_with(&w, "POST", "/command", NULL, NULL, buf_str(&b)).status, 413);
        check_z_eq(run("{\"command\":\"echo alive\"}"), "init ping out(alive) done");
}

static void test_children_have_three_descriptors(void **state)
{
        check_z_eq(
                run("{\"argv\":[\"sh\",\"-c\",\"for i in $(seq 0 999); do [ -e /proc/$$/fd/$i ] && "
                    "echo $i; done; true\"]}"),
                "init ping out(0) out(1) out(2) done");
}

static void test_children_have_no_blocked_or_ignored_signals(void **state)
{
        check_z_eq(run("{\"argv\":[\"grep\",\"-E\",\"^Sig(Blk|Ign)\",\"/proc/self/status\"]}"),
                   "init ping out(SigBlk:\t0000000000000000) out(SigIgn:\t0000000000000000) "
                   "done");
}

static void test_agents_variables_stay_with_it(void **state)
{
        struct environment *env = &w.agent->env;
        const char *own[] = { "PATH=/usr/bin:/bin", "EXECD_ENVS=", "EXECD_X=1",
                              "HUTCH_EXECD_Y=1",    "Z=1",         NULL };

        environment_done(env);
        environment_init(env, (char *const *) own);
        check_z_eq(run("{\"argv\":[\"env\"]}"), "init ping out(PATH=/usr/bin:/bin) out(Z=1) done");
}

static void test_user_and_groups(void **state)
{
        if (geteuid() != 0)
                skip_because("changing users needs root");
        check_z_eq(run("{\"command\":\"id -u; id -g\",\"uid\":0}"), "init ping out(0) out(0) done");
        check_z_eq(run("{\"command\":\"id -u; id -g; id -G\",\"uid\":4242,\"cwd\":\"/\"}"),
                   "init ping out(4242) out(0) out(0) done");
        check_z_eq(run("{\"command\":\"id -u; id -G\",\"uid\":4242,\"gid\":77,\"cwd\":\"/\"}"),
                   "init ping out(4242) out(77) done");
        check_z_eq(run("{\"command\":\"id -un; id -gn\",\"uid\":65534,\"cwd\":\"/\"}"),
                   "init ping out(nobody) out(nogroup) done"); /* check-words: nobody */
}

/* --- the end --- */

static void test_timeout_kills_the_process_tree(void **state)
{
        static const char *const bodies[] = {
                /* its child */
                "{\"command\":\"sleep 1000 & echo $! >child; wait\",\"timeout\":300}",
                /* one in a session of its own, that has lost its parent */
                "{\"command\":\"(setsid sh -c 'echo $$ >child; exec sleep 1000' &); sleep 1000\","
                "\"timeout\":300}",
                /* one that ignores signals */
                "{\"command\":\"trap '' TERM INT HUP; echo $$ >child; while :; do sleep 1000; done\","
                "\"timeout\":300}",
                /* one that is stopped */
                "{\"command\":\"setsid sh -c 'echo $$ >child; kill -STOP $$' & sleep 1000\","
                "\"timeout\":300}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
                check_case(bodies[i]);
                check_z_eq(run(bodies[i]), "init ping error(-1|signal: killed)");
                until_gone(pid_from("child"));
                check_i64_eq(unlink(path_in(&w, "child")), 0);
        }
}

static void test_what_a_command_leaves_behind_runs_on(void **state)
{
        pid_t pid;

        (void) run("{\"command\":\"(while :; do echo noise; sleep 0.01; done) & echo $! >child\"}");
        check_true(str_ends_with(str_from(events.text), STR("done")));
        pid = pid_from("child");
        for (int i = 0; i < 50; i++) /* its output has nowhere to go, and does not kill it */
                check_z_eq(run("{\"command\":\"sleep 0.01\"}"), "init ping done");
        check_i64_eq(kill(pid, 0), 0);
        check_i64_eq(kill(pid, SIGKILL), 0);
        until_gone(pid);
}

static void test_a_flooding_leftover_does_not_hold_the_stream(void **state)
{
        struct reply r = call(&w, "POST", "/command", "{\"command\":\"yes & echo $! >child\"}");

        check_i64_eq(r.status, 200);
        check_true(memmem(r.body.p, r.body.n, "execution_complete", 18) != NULL);
        check_i64_eq(kill(pid_from("child"), SIGKILL), 0);
}

static void test_zombies_are_reaped(void **state)
{
        check_z_eq(
                run("{\"command\":\"for i in 1 2 3 4 5; do (sleep 0.01 &); done; sleep 0.2; ps -o "
                    "stat= --ppid $PPID | grep -c Z\"}"),
                "init ping out(0) error(1|exit status 1)");
}

/* --- output without end --- */

static void test_large_output(void **state)
{
        struct reply r = call(&w, "POST", "/command", "{\"command\":\"seq 100000\"}");
        size_t count = 0;

        for (struct str rest = r.body, line; str_split(&rest, '\n', &line);)
                count += str_starts_with(line, STR("{\"type\":\"stdout\""));
        check_u64_eq(count, 100000);
}

static void test_a_line_without_end(void **state)
{
        struct reply r = call(&w, "POST", "/command",
                              "{\"command\":\"head -c 3000000 /dev/zero | tr '\\\\0' x\"}");
        size_t bytes = 0;

        for (struct str rest = r.body, line; str_split(&rest, '\n', &line);) {
                json_t *doc = json_loadb(line.p, line.n, 0, NULL);

                check_true(line.n < 64 * KiB);
                if (str_starts_with(line, STR("{\"type\":\"stdout\"")))
                        bytes += json_string_length(json_object_get(doc, "text"));
                json_decref(doc);
        }
        check_u64_eq(bytes, 3000000);
}

/* --- background --- */

static struct str status_of(const char *id)
{
        char target[128];
        struct reply r;

        (void) snprintf(target, sizeof(target), "/command/status/%s", id);
        r = call(&w, "GET", target, NULL);
        check_i64_eq(r.status, 200);
        return r.body;
}

static struct reply logs_of(const char *id, const char *query)
{
        char target[128];

        (void) snprintf(target, sizeof(target), "/command/%s/logs%s", id, query);
        return call(&w, "GET", target, NULL);
}

static bool has(struct str s, const char *part)
{
        return memmem(s.p, s.n, part, strlen(part)) != NULL;
}

static void until_finished(const char *id)
{
        usec_t started = clock_mono(&clock_system);

        while (!has(status_of(id), "\"running\":false")) {
                check_true(clock_mono(&clock_system) - started < 20 * USEC_PER_SEC);
                agent_world_turn(&w);
        }
}

static void test_background(void **state)
{
        char id[64];
        struct reply r;
        int gate;

        check_i64_eq(mkfifo(path_in(&w, "gate"), 0600), 0);
        check_z_eq(run("{\"command\":\"echo one; echo two >&2; read x <gate; printf "
                       "'three\\\\377'; exit 5\",\"background\":true,\"stdin\":false}"),
                   "init ping done");
        (void) snprintf(id, sizeof(id), "%s", events.id);
        check_true(has(status_of(id), "\"running\":true"));
        check_false(has(status_of(id), "exit_code"));
        gate = open(path_in(&w, "gate"), O_RDWR | O_CLOEXEC);
        check_i64_eq(write(gate, "\n", 1), 1);
        until_finished(id);
        (void) fd_close(gate);
        check_true(has(status_of(id), "\"exit_code\":5"));
        check_true(has(status_of(id), "\"error\":\"exit status 5\""));
        check_true(has(status_of(id), "\"finished_at\":\"20"));
        check_true(has(status_of(id), "\"content\":\"echo one;"));
        r = logs_of(id, "");
        check_i64_eq(r.status, 200);
        check_true(str_starts_with(r.body, STR("one\ntwo\n")));
        check_true(str_ends_with(r.body, STR("three\xff")));
        check_str_eq(reply_header(&w, "Content-Type"), "text/plain; charset=utf-8");
        r = logs_of(id, "?cursor=4");
        check_true(str_starts_with(r.body, STR("two\n")));
        check_i64_eq(logs_of(id, "?cursor=nonsense").status, 200);
        r = logs_of(id, "?cursor=99999999");
        check_i64_eq(r.body.n, 0);
}

static void test_background_that_cannot_start(void **state)
{
        check_z_eq(run("{\"argv\":[\"/no/such\"],\"background\":true}"),
                   "init ping error(No such file or directory|No such file or directory)");
        check_true(has(status_of(events.id), "\"exit_code\":255"));
        check_true(has(status_of(events.id), "\"running\":false"));
}

/* The fixture keeps 1 MiB of output. */
static void test_the_oldest_output_is_dropped_and_reported(void **state)
{
        char id[64];
        struct reply r;

        check_z_eq(
                run("{\"command\":\"head -c 1500000 /dev/zero; printf end\",\"background\":true}"),
                "init ping done");
        (void) snprintf(id, sizeof(id), "%s", events.id);
        until_finished(id);
        check_true(has(status_of(id), "\"output_dropped\":451427"));
        r = logs_of(id, "");
        check_u64_eq(r.body.n, MiB);
        check_true(str_ends_with(r.body, STR("end")));
        check_str_eq(reply_header(&w, "EXECD-COMMANDS-DROPPED"), "451427");
        check_str_eq(reply_header(&w, "EXECD-COMMANDS-TAIL-CURSOR"), "1500003");
        r = logs_of(id, "?cursor=1500000");
        check_str_eq(r.body, "end");
        check_false(reply_header(&w, "EXECD-COMMANDS-DROPPED").p);
}

static void test_followed_logs_end_with_the_command(void **state)
{
        char id[64];
        struct reply r;

        check_z_eq(run("{\"command\":\"for i in 1 2 3; do echo $i; sleep 0.05; done\","
                       "\"background\":true}"),
                   "init ping done");
        (void) snprintf(id, sizeof(id), "%s", events.id);
        r = logs_of(id, "?follow=true");
        check_str_eq(r.body, "1\n2\n3\n");
}

static void test_head_of_followed_logs_waits_for_nothing(void **state)
{
        char id[64], target[128];

        check_z_eq(
                run("{\"command\":\"while [ ! -e go ]; do sleep 0.01; done\",\"background\":true}"),
                "init ping done");
        (void) snprintf(id, sizeof(id), "%s", events.id);
        (void) snprintf(target, sizeof(target), "/command/%s/logs?follow=true", id);
        check_i64_eq(call(&w, "HEAD", target, NULL).status, 200);
        check_true(has(status_of(id), "\"running\":true"));
        put_file(&w, "go", STR(""));
        until_finished(id);
}

static void test_unknown_ids(void **state)
{
        static const struct {
                const char *method, *target, *body;
                int status;
                const char *code;
        } cases[] = {
                { "GET", "/command/status/abc", NULL, 404, "INVALID_REQUEST_BODY" },
                { "GET", "/command/abc/logs", NULL, 400, "INVALID_REQUEST_BODY" },
                { "DELETE", "/command?id=abc", NULL, 500, "RUNTIME_ERROR" },
                { "DELETE", "/command", NULL, 400, "MISSING_QUERY" },
                { "DELETE", "/code", NULL, 400, "MISSING_QUERY" },
                { "POST", "/command/abc/signal", "{\"signal\":\"INT\"}", 404,
                  "INVALID_REQUEST_BODY" },
                { "POST", "/command/abc/stdin", "x", 404, "INVALID_REQUEST_BODY" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct reply r;

                check_case(cases[i].target);
                r = call(&w, cases[i].method, cases[i].target, cases[i].body);
                check_i64_eq(r.status, cases[i].status);
                check_true(has(r.body, cases[i].code));
        }
}

static void test_a_foreground_command_has_a_status_and_no_logs(void **state)
{
        check_z_eq(run("{\"command\":\"echo a\"}"), "init ping out(a) done");
        check_true(has(status_of(events.id), "\"running\":false,\"exit_code\":0,"));
        check_i64_eq(logs_of(events.id, "").status, 400);
}

static void test_old_records_are_dropped(void **state)
{
        char first[64];

        check_z_eq(run("{\"argv\":[\"true\"]}"), "init ping done");
        (void) snprintf(first, sizeof(first), "%s", events.id);
        for (int i = 0; i < COMMANDS_KEPT; i++)
                (void) call(&w, "POST", "/command", "{\"argv\":[\"/no\"]}");
        char target[128];

        (void) snprintf(target, sizeof(target), "/command/status/%s", first);
        check_i64_eq(call(&w, "GET", target, NULL).status, 404);
        check_u64_eq(w.agent->commands.by_id.n, COMMANDS_KEPT);
}

/* --- signals, interruption, input --- */

static const char *start_background(const char *body)
{
        static char id[64];

        check_z_eq(run(body), "init ping done");
        (void) snprintf(id, sizeof(id), "%s", events.id);
        return id;
}

static int post_to(const char *id, const char *what, const char *body)
{
        char target[128];

        (void) snprintf(target, sizeof(target), "/command/%s/%s", id, what);
        return call(&w, "POST", target, body).status;
}

static void test_interrupt(void **state)
{
        const char *id = start_background(
                "{\"command\":\"trap 'exit 9' TERM; touch up; while :; do sleep 0.01; done\","
                "\"background\":true}");
        char target[128];

        until_file("up");
        (void) snprintf(target, sizeof(target), "/command?id=%s", id);
        check_i64_eq(call(&w, "DELETE", target, NULL).status, 200);
        check_true(has(status_of(id), "\"exit_code\":9"));
        check_i64_eq(call(&w, "DELETE", target, NULL).status, 500); /* not running any more */
}

static void test_interrupt_of_a_program_that_ignores_sigterm(void **state)
{
        const char *id =
                start_background("{\"command\":\"trap '' TERM; touch up; while :; do sleep "
                                 "0.01; done\",\"background\":true}");
        char target[128];

        until_file("up");
        (void) snprintf(target, sizeof(target), "/code?id=%s", id);
        check_i64_eq(call(&w, "DELETE", target, NULL).status, 200); /* after PROCESS_GRACE */
        check_true(has(status_of(id), "\"error\":\"signal: killed\""));
}

static void test_signals(void **state)
{
        const char *id =
                start_background("{\"command\":\"trap 'echo usr1 >got' USR1; touch up; while "
                                 ":; do sleep 0.01; done\",\"background\":true}");

        until_file("up");
        check_i64_eq(post_to(id, "signal", "{\"signal\":\"NOSUCH\"}"), 400);
        check_i64_eq(post_to(id, "signal", "{\"signal\":0}"), 400);
        check_i64_eq(post_to(id, "signal", "{\"signal\":-9}"), 400);
        check_i64_eq(post_to(id, "signal", "{}"), 400);
        check_i64_eq(post_to(id, "signal", "{\"signal\":\"SIGUSR1\"}"), 200);
        until_file("got");
        check_i64_eq(post_to(id, "signal", "{\"signal\":9}"), 200);
        until_finished(id);
        check_i64_eq(post_to(id, "signal", "{\"signal\":\"kill\"}"), 409);
}

static void test_stdin(void **state)
{
        const char *id = start_background(
                "{\"command\":\"cat >copy; touch end\",\"background\":true,\"stdin\":true}");
        scoped(buf_done) struct buf b;
        char target[128];

        buf_init(&b, 4 * MiB);
        for (size_t i = 0; i < 300000; i++)
                buf_addf(&b, "%zu\n", i);
        (void) snprintf(target, sizeof(target), "/command/%s/stdin", id);
        check_i64_eq(call_with(&w, "POST", target, NULL, NULL, STR("first\n")).status, 200);
        check_i64_eq(call_with(&w, "POST", target, NULL, NULL, buf_str(&b)).status, 200);
        check_true(access(path_in(&w, "end"), F_OK) < 0);
        (void) snprintf(target, sizeof(target), "/command/%s/stdin?close=true", id);
        check_i64_eq(call(&w, "POST", target, NULL).status, 200);
        until_finished(id);
        check_i64_eq(post_to(id, "stdin", "late"), 409);
        struct stat st;

        check_i64_eq(stat(path_in(&w, "copy"), &st), 0);
        check_u64_eq((uint64_t) st.st_size, buf_str(&b).n + 6);
}

static void test_stdin_without_a_reader(void **state)
{
        const char *id =
                start_background("{\"command\":\"exec <&-; touch up; while [ ! -e go ]; do "
                                 "sleep 0.01; done\",\"background\":true,\"stdin\":true}");

        until_file("up");
        check_i64_eq(post_to(id, "stdin", "x"), 409);
        put_file(&w, "go", STR(""));
        until_finished(id);
        id = start_background("{\"command\":\"sleep 0.01\",\"background\":true}");
        check_i64_eq(post_to(id, "stdin", "x"), 409); /* not requested */
        until_finished(id);
}

static void test_a_client_that_leaves_does_not_stop_the_command(void **state)
{
        struct http_loopback lb;

        http_loopback_init(&lb, w.agent->server);
        http_loopback_start(
                &lb, "POST", "/command",
                STR("{\"command\":\"touch up; while [ ! -e go ]; do echo x; sleep 0.01; "
                    "done; touch end\"}"));
        until_file("up");
        http_loopback_abort(&lb, -ECONNRESET);
        http_loopback_done(&lb);
        put_file(&w, "go", STR(""));
        until_file("end");
}

static void set_flag(void *data)
{
        *(bool *) data = true;
}

/* The agent ends while requests wait for a command: they get a reply before its record is freed. */
static void test_the_agent_ends_while_others_wait(void **state)
{
        struct http_loopback interrupt, input;
        char target[128];
        bool freed = false;
        const char *id =
                start_background("{\"command\":\"trap '' TERM; touch up; while :; do sleep "
                                 "0.01; done\",\"background\":true,\"stdin\":true}");
        scoped(buf_done) struct buf b;

        buf_init(&b, MiB);
        for (size_t i = 0; i < 500 * KiB; i++)
                buf_add_char(&b, 'x');
        until_file("up");
        http_loopback_init(&interrupt, w.agent->server);
        http_loopback_init(&input, w.agent->server);
        (void) snprintf(target, sizeof(target), "/command?id=%s", id);
        http_loopback_start(&interrupt, "DELETE", target, STR_NULL);
        (void) snprintf(target, sizeof(target), "/command/%s/stdin", id);
        http_loopback_start(&input, "POST", target, buf_str(&b));
        agent_world_turn(&w);
        check_false(interrupt.ended || input.ended);

        http_loopback_done(&w.lb);
        w.called = false;
        agent_free(w.agent, set_flag, &freed);
        http_loopback_abort(&interrupt, -ESHUTDOWN);
        http_loopback_abort(&input, -ESHUTDOWN);
        http_loopback_done(&interrupt);
        http_loopback_done(&input);
        while (!freed)
                agent_world_turn(&w);
        uv_close((uv_handle_t *) &w.awake, NULL);
        net_loop_done(&w.loop);
        check_i64_eq(unlink(path_in(&w, "up")), 0);
        check_i64_eq(rmdir(w.dir), 0);
        agent_world_open(&w);
}

/* --- supervisors --- */

static void test_a_report_survives_a_late_order(void **state)
{
        const struct supervisor_report sent = { SUPERVISOR_EXITED, 3 << 8 };
        struct supervisor_report got;
        int pair[2];

        check_i64_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        check_i64_eq(supervisor_read(pair[0], &got), 0);
        supervisor_signal(pair[0], SIGTERM); /* is never read */
        check_i64_eq(send(pair[1], &sent, sizeof(sent), 0), sizeof(sent));
        check_i64_eq(close(pair[1]), 0);
        check_i64_eq(supervisor_read(pair[0], &got), 1);
        check_i64_eq(got.kind, SUPERVISOR_EXITED);
        check_i64_eq(got.value, 3 << 8);
        check_i64_eq(supervisor_read(pair[0], &got), -EPIPE);
        check_i64_eq(close(pair[0]), 0);
}

/* It may also fill the socket and stop the supervisor: the end is still reported. */
static void test_a_command_that_stops_its_supervisor(void **state)
{
        check_z_eq(run("{\"command\":\"kill -STOP $PPID; sleep 0.1; exit 4\"}"),
                   "init ping error(4|exit status 4)");
        check_z_eq(run("{\"command\":\"while :; do kill -STOP $PPID; done\",\"timeout\":300}"),
                   "init ping error(-1|signal: killed)");
}

static void test_killing_needs_no_room_in_the_socket(void **state)
{
        const char *id =
                start_background("{\"command\":\"trap '' TERM; touch up; while :; do sleep "
                                 "0.01; done\",\"background\":true}");
        struct command *c;

        until_file("up");
        c = command_find(&w.agent->commands, str_from(id));
        check_true(c && c->process);
        check_i64_eq(kill(c->process->_supervisor_pid, SIGSTOP), 0);
        for (int i = 0; i < 2000; i++)
                process_signal(c->process, SIGTERM);
        process_kill(c->process);
        until_finished(id);
        check_true(has(status_of(id), "\"error\":\"signal: killed\""));
}

/* --- records --- */

static void test_the_newest_record_stays_whatever_its_size(void **state)
{
        const char *id;

        w.agent->commands.output_kept = COMMANDS_OUTPUT_KEPT + 1;
        id = start_background("{\"command\":\"true\",\"background\":true}");
        until_finished(id);
        w.agent->commands.output_kept = 0;
}

static void test_what_leftovers_write_counts_as_kept(void **state)
{
        const char *id = start_background("{\"command\":\"(while [ ! -e go ]; do sleep 0.01; done; "
                                          "echo 12345; touch end) &\",\"background\":true}");

        until_finished(id);
        check_u64_eq(w.agent->commands.output_kept, 0);
        put_file(&w, "go", STR(""));
        until_file("end");
        agent_world_turn(&w);
        check_u64_eq(w.agent->commands.output_kept, 6);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(test_events_of_commands),
                T(test_cwd),
                T(test_bad_requests_start_nothing),
                T(test_large_arguments_and_environments),
                T(test_children_have_three_descriptors),
                T(test_children_have_no_blocked_or_ignored_signals),
                T(test_agents_variables_stay_with_it),
                T(test_user_and_groups),
                T(test_timeout_kills_the_process_tree),
                T(test_what_a_command_leaves_behind_runs_on),
                T(test_a_flooding_leftover_does_not_hold_the_stream),
                T(test_zombies_are_reaped),
                T(test_large_output),
                T(test_a_line_without_end),
                T(test_background),
                T(test_background_that_cannot_start),
                T(test_the_oldest_output_is_dropped_and_reported),
                T(test_followed_logs_end_with_the_command),
                T(test_head_of_followed_logs_waits_for_nothing),
                T(test_unknown_ids),
                T(test_a_foreground_command_has_a_status_and_no_logs),
                T(test_old_records_are_dropped),
                T(test_interrupt),
                T(test_interrupt_of_a_program_that_ignores_sigterm),
                T(test_signals),
                T(test_stdin),
                T(test_stdin_without_a_reader),
                T(test_a_client_that_leaves_does_not_stop_the_command),
                T(test_the_agent_ends_while_others_wait),
                T(test_a_report_survives_a_late_order),
                T(test_a_command_that_stops_its_supervisor),
                T(test_killing_needs_no_room_in_the_socket),
                T(test_the_newest_record_stays_whatever_its_size),
                T(test_what_leftovers_write_counts_as_kept),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
