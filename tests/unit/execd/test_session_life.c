/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/session.h"

#include <signal.h>

#include "base/base.h"
#include "tests/lib/session_world.h"

static bool is_dead(long pid)
{
        return kill((pid_t) pid, 0) < 0 && errno == ESRCH;
}

/* --- ways to end a run --- */

static void test_a_timeout_kills_the_process_tree(void **state)
{
        static const char command[] = "setsid sleep 1000 & echo $! >child; "
                                      "echo $$ >shell; echo up; sleep 1000; echo no";
        struct session_world s;

        session_world_open(&s, *state);
        check_z_eq(run_command(&s, "export A=1; cd /proc; X=1; sleep 1000 & "), "|0");
        check_z_eq(run_command(&s, "cd ->/dev/null; echo $! >earlier; cd - >/dev/null"), "|0");
        check_z_eq(run_command_in(&s, s.id, command, ",\"timeout\":300,\"cwd\":\".\""),
                   "up|timeout");
        check_true(is_dead(number_in(&s, "child")));
        check_true(is_dead(number_in(&s, "shell")));
        check_case("processes of earlier runs die with their shell");
        check_true(is_dead(number_in(&s, "earlier")));
        check_case("the next shell has what was saved");
        check_z_eq(run_command(&s, "echo $A$X; pwd"), "1\n/proc|0");
        check_case("a timeout is of one run");
        check_z_eq(run_command_in(&s, s.id, "echo a", ",\"timeout\":60000"), "a|0");
        check_z_eq(run_command_in(&s, s.id, "echo b", ",\"timeout\":9223372036854775807"), "b|0");
        check_z_eq(run_command_in(&s, s.id, "echo c", ",\"timeout\":18446744073709551"), "c|0");
        check_z_eq(run_command_in(&s, s.id, "echo d", ",\"timeout\":0"), "d|0");
        session_world_close(&s);
}

/* The timer must not run while the shell waits for the next run. */
static void test_a_timeout_ends_with_its_run(void **state)
{
        struct session_world s;
        struct session *session;

        session_world_open(&s, *state);
        check_z_eq(run_command_in(&s, s.id, "X=kept", ",\"timeout\":60000"), "|0");
        session = session_find(&s.w.agent->sessions, str_from(s.id));
        check_false(uv_is_active((uv_handle_t *) &session->_shell._process->_timer));
        check_z_eq(run_command(&s, "echo $X"), "kept|0");
        session_world_close(&s);
}

static void test_a_shell_that_can_not_report_lasts_until_the_timeout(void **state)
{
        struct session_world s;

        session_world_open(&s, *state);
        check_z_eq(run_command(&s, "export A=1"), "|0");
        check_z_eq(run_command_in(&s, s.id, "command() { :; }; echo a", ",\"timeout\":200"),
                   "a|timeout");
        check_z_eq(run_command(&s, "echo $A"), "1|0");
        check_z_eq(run_command_in(&s, s.id, "set -n", ",\"timeout\":200"), "|timeout");
        check_z_eq(run_command(&s, "echo $A"), "1|0");
        session_world_close(&s);
}

static void test_a_run_ends_with_its_client(void **state)
{
        struct session_world s;
        struct pending p;
        long pid, child;

        session_world_open(&s, *state);
        check_z_eq(run_command(&s, "export A=1; X=1"), "|0");
        pending_start(&p, &s, s.id,
                      "setsid sleep 1000 & echo $! >child; echo $$ >pid; echo up; sleep 1000");
        pending_until(&p, "\"up\"");
        pid = number_in(&s, "pid");
        child = number_in(&s, "child");
        check_false(is_dead(pid));
        http_loopback_abort(&p.lb, -ECONNRESET);
        check_case("the next run comes when all is gone");
        check_z_eq(run_command(&s, "echo $A$X"), "1|0");
        check_true(is_dead(pid));
        check_true(is_dead(child));
        http_loopback_done(&p.lb);
        buf_done(&p.body);
        session_world_close(&s);
}

/* --- output of no run --- */

static void test_output_between_runs_is_dropped_and_does_not_block(void **state)
{
        struct session_world s;
        const char *output;

        session_world_open(&s, *state);
        check_z_eq(run_command(&s, "mkfifo f"), "|0");
        check_z_eq(run_command(&s, "{ read x <f; head -c 300000 /dev/zero | tr '\\0' a; echo; "
                                   "echo 1 >done; read x <f; echo later; } & echo on"),
                   "on|0");
        put_fifo(&s, "f", "go\n");
        check_i64_eq(number_in(&s, "done"), 1);
        output = run_command(&s, "echo next");
        check_z_eq(output, "next|0");
        check_case("and during a run belongs to it");
        check_z_eq(run_command(&s, "echo go >f; wait"), "later|0");
        session_world_close(&s);
}

/* --- the queue --- */

static void test_runs_queue_in_order(void **state)
{
        struct session_world s;
        struct pending p[4];

        session_world_open(&s, *state);
        check_z_eq(run_command(&s, "mkfifo f"), "|0");
        pending_start(&p[0], &s, s.id, "echo up; read x <f; echo 1 >>order; mkdir new");
        for (int i = 1; i < 4; i++) {
                char command[64];

                (void) snprintf(command, sizeof(command), "echo %d >>order; cat order", i + 1);
                pending_start(&p[i], &s, s.id, command);
        }
        pending_until(&p[0], "\"up\"");
        for (int i = 1; i < 4; i++)
                check_i64_eq(p[i].lb.status, 0);
        check_case("one that went away is left out");
        http_loopback_abort(&p[2].lb, -ECONNRESET);
        http_loopback_done(&p[2].lb);
        buf_done(&p[2].body);
        put_fifo(&s, "f", "go\n");
        check_z_eq(pending_end(&p[0]), "up|0");
        check_z_eq(pending_end(&p[1]), "1\n2|0");
        check_z_eq(pending_end(&p[3]), "1\n2\n4|0");
        session_world_close(&s);
}

static void test_a_queued_run_finds_what_the_one_before_made(void **state)
{
        struct session_world s;
        struct pending first, second, third;

        session_world_open(&s, *state);
        check_z_eq(run_command(&s, "mkfifo f"), "|0");
        pending_start(&first, &s, s.id, "read x <f; mkdir new; exit 9");
        pending_start(&second, &s, s.id, "cd new && echo in");
        pending_start(&third, &s, s.id, "exec sh -c 'exit 8'");
        put_fifo(&s, "f", "go\n");
        check_z_eq(pending_end(&first), "|9");
        check_z_eq(pending_end(&second), "in|0");
        check_z_eq(pending_end(&third), "|8");
        session_world_close(&s);
}

static void test_the_queue_has_an_end(void **state)
{
        struct session_world s;
        struct pending p[SESSION_QUEUE_MAX + 2];

        session_world_open(&s, *state);
        check_z_eq(run_command(&s, "mkfifo f"), "|0");
        pending_start(&p[0], &s, s.id, "read x <f");
        for (size_t i = 1; i < ARRAY_SIZE(p); i++)
                pending_start(&p[i], &s, s.id, "echo x");
        check_z_eq(pending_end(&p[ARRAY_SIZE(p) - 1]), "503 SERVICE_UNAVAILABLE");
        put_fifo(&s, "f", "go\n");
        check_z_eq(pending_end(&p[0]), "|0");
        for (size_t i = 1; i < ARRAY_SIZE(p) - 1; i++)
                check_z_eq(pending_end(&p[i]), "x|0");
        session_world_close(&s);
}

/* --- closing --- */

static void test_closing_ends_everything(void **state)
{
        static const char *const ways[] = { "/session/", "/command?id=", "/code?id=" };
        struct session_world s;

        session_world_open(&s, *state);
        for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
                struct pending running, queued;
                char id[ID_UUID_LEN + 1], target[80];
                long pid, child;
                struct reply r;

                check_case(ways[i]);
                session_open(&s, NULL, id);
                pending_start(&running, &s, id,
                              "rm -f pid child; setsid sleep 1000 & echo $! >child; "
                              "echo $$ >pid; echo up; sleep 1000");
                pending_start(&queued, &s, id, "echo never");
                pending_until(&running, "\"up\"");
                pid = number_in(&s, "pid");
                child = number_in(&s, "child");
                check_i64_eq(count_dirs(&s), 2);
                (void) snprintf(target, sizeof(target), "%s%s", ways[i], id);
                r = call(&s.w, "DELETE", target, NULL);
                check_i64_eq(r.status, 200);
                check_i64_eq(r.body.n, 0);
                check_true(is_dead(pid));
                check_true(is_dead(child));
                check_i64_eq(count_dirs(&s), 1);
                check_z_eq(pending_end(&running), "up|-1");
                check_z_eq(pending_end(&queued), "500 RUNTIME_ERROR");
                check_z_eq(run_command_in(&s, id, "echo no", ""), "500 RUNTIME_ERROR");
        }
        session_world_close(&s);
}

static void test_closing_without_a_shell(void **state)
{
        struct session_world s;
        char target[80];

        session_world_open(&s, *state);
        (void) snprintf(target, sizeof(target), "/session/%s", s.id);
        check_i64_eq(call(&s.w, "DELETE", target, NULL).status, 200);
        check_i64_eq(call(&s.w, "DELETE", target, NULL).status, 404);
        check_i64_eq(count_dirs(&s), 0);
        session_world_close(&s);
}

static void test_the_agents_end_is_the_sessions_end(void **state)
{
        struct session_world s;
        struct pending running, queued;

        session_world_open(&s, *state);
        pending_start(&running, &s, s.id, "echo $$ >pid; echo up; sleep 1000");
        pending_start(&queued, &s, s.id, "echo never");
        pending_until(&running, "\"up\"");
        /* The loopback has no connection that the server could abort. */
        http_loopback_abort(&running.lb, -ECONNRESET);
        http_loopback_done(&running.lb);
        buf_done(&running.body);
        processes_close(&s.w.agent->processes);
        sessions_done(&s.w.agent->sessions);
        sessions_init(&s.w.agent->sessions, s.w.agent);
        check_i64_eq(count_dirs(&s), 0);
        check_z_eq(pending_end(&queued), "500 RUNTIME_ERROR");
        session_world_close(&s);
}

static void test_many_sessions_up_to_the_limit(void **state)
{
        enum { LIVING = 12 };
        scoped(freep) char(*ids)[ID_UUID_LEN + 1] = xcalloc(SESSIONS_MAX, ID_UUID_LEN + 1);
        struct session_world s;
        char text[80];

        session_world_open(&s, *state);
        for (size_t i = 1; i < SESSIONS_MAX; i++)
                session_open(&s, NULL, ids[i]);
        check_i64_eq(call(&s.w, "POST", "/session", NULL).status, 503);
        for (int round = 0; round < 2; round++)
                for (int i = 1; i <= LIVING; i++) {
                        char command[64];

                        (void) snprintf(command, sizeof(command), "X=${X-%d}; echo $X",
                                        round ? 0 : i);
                        (void) snprintf(text, sizeof(text), "%d|0", i);
                        check_z_eq(run_command_in(&s, ids[i], command, ""), text);
                }
        for (size_t i = 1; i < SESSIONS_MAX; i++) {
                (void) snprintf(text, sizeof(text), "/session/%s", ids[i]);
                check_i64_eq(call(&s.w, "DELETE", text, NULL).status, 200);
        }
        check_i64_eq(count_dirs(&s), 1);
        session_world_close(&s);
}

#define WITH(shell, f)                                       \
        {                                                    \
                shell ": " #f, f, NULL, NULL, (void *) shell \
        }
#define WITH_ALL(f) WITH("bash", f), WITH("dash", f), WITH("busybox", f)

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_ALL(test_a_timeout_kills_the_process_tree),
                WITH("bash", test_a_timeout_ends_with_its_run),
                WITH_ALL(test_a_shell_that_can_not_report_lasts_until_the_timeout),
                WITH_ALL(test_a_run_ends_with_its_client),
                WITH_ALL(test_output_between_runs_is_dropped_and_does_not_block),
                WITH_ALL(test_runs_queue_in_order),
                WITH_ALL(test_a_queued_run_finds_what_the_one_before_made),
                WITH("bash", test_the_queue_has_an_end),
                WITH_ALL(test_closing_ends_everything),
                WITH("bash", test_closing_without_a_shell),
                WITH("bash", test_the_agents_end_is_the_sessions_end),
                WITH("bash", test_many_sessions_up_to_the_limit),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
