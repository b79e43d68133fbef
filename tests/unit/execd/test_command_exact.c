/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/command.h"

#include <signal.h>
#include <unistd.h>

#include "base/base.h"
#include "os/virtual_file.h"
#include "tests/lib/agent_world.h"

/* Output byte for byte, and commands that end with their client. */

static struct agent_world w;

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

static void output_is_sent_in_base64(void **state)
{
        static const struct {
                const char *body, *expected;
        } cases[] = {
                { "{\"command\":\"printf 'a\\\\rb'\",\"output\":\"base64\"}",
                  "\"type\":\"stdout\",\"base64\":\"YQ1i\"," },
                { "{\"command\":\"printf '\\\\000\\\\377' >&2\",\"output\":\"base64\"}",
                  "\"type\":\"stderr\",\"base64\":\"AP8=\"," },
                { "{\"command\":\"printf a\",\"output\":\"text\"}",
                  "\"type\":\"stdout\",\"text\":\"a\"," },
                { "{\"command\":\"kill -9 $$\"}", "\"exitCode\":-1,\"durationMs\":" },
                { "{\"command\":\"kill -9 $$\"}", ",\"signal\":9,\"timestamp\"" },
                { "{\"command\":\"sleep 1000\",\"timeout\":50}",
                  ",\"signal\":9,\"timedOut\":true,\"timestamp\"" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct reply r = call(&w, "POST", "/command", cases[i].body);

                check_case(cases[i].body);
                check_i64_eq(r.status, 200);
                if (!memmem(r.body.p, r.body.n, cases[i].expected, strlen(cases[i].expected)))
                        fail_msg("%.*s", STR_ARG(r.body));
        }
}

/* --- time --- */

struct held {
        struct process *process;
        struct process_result result;
        size_t n;
        bool ended;
};

static void held_output(void *owner, enum process_stream stream, char *p, size_t n)
{
        struct held *h = owner;

        if (h->n == 0)
                process_pause_output(h->process);
        h->n += n;
}

static void held_ended(void *owner, const struct process_result *r)
{
        struct held *h = owner;

        h->result = *r;
        h->ended = true;
        process_release(h->process);
}

/* A slow client gets the last output after the timeout. */
static void a_command_that_ended_in_time_has_not_timed_out(void **state)
{
        static const struct process_ops ops = { .output = held_output, .ended = held_ended };
        /* More than a read, less than that and what a pipe holds. */
        const char *argv[] = { "/bin/sh", "-c", "head -c 70000 /dev/zero; exit 3", NULL };
        const char *envp[] = { "PATH=/usr/bin:/bin", NULL };
        const struct process_spec spec = { .argv = (char *const *) argv,
                                           .envp = (char *const *) envp,
                                           .cwd = "/" };
        struct held h = { 0 };
        usec_t until;

        check_i64_eq(process_start(&w.agent->processes, &spec, &ops, &h, &h.process), 0);
        while (!h.process->_exited)
                agent_world_turn(&w);
        check_false(h.ended);
        process_set_timeout(h.process, USEC_PER_MSEC);
        until = clock_mono(&clock_system) + 20 * USEC_PER_MSEC;
        while (clock_mono(&clock_system) < until)
                agent_world_turn(&w);
        process_resume_output(h.process);
        while (!h.ended)
                agent_world_turn(&w);
        check_u64_eq(h.n, 70000);
        check_i64_eq(h.result.status, 3 << 8);
        check_false(h.result.timed_out);
}

/* --- clients that disconnect --- */

static void until_pid(const char *name, pid_t *ret)
{
        usec_t started = clock_mono(&clock_system);
        char text[32];

        for (*ret = 0; *ret == 0;) {
                ssize_t n = virtual_file_read(path_in(&w, name), text, sizeof(text));

                check_true(clock_mono(&clock_system) - started < 20 * USEC_PER_SEC);
                if (n > 1 && text[n - 1] == '\n')
                        *ret = (pid_t) strtol(text, NULL, 10);
                agent_world_turn(&w);
        }
        check_true(*ret > 1);
}

static void until_gone(pid_t pid)
{
        usec_t started = clock_mono(&clock_system);

        while (kill(pid, 0) == 0) {
                check_true(clock_mono(&clock_system) - started < 20 * USEC_PER_SEC);
                agent_world_turn(&w);
        }
}

static void start_and_go_away(const char *body, pid_t *ret)
{
        struct http_loopback lb;

        (void) unlink(path_in(&w, "pid"));
        http_loopback_init(&lb, w.agent->server);
        http_loopback_header(&lb, STR("Content-Type"), STR("application/json"));
        http_loopback_start(&lb, "POST", "/command", str_from(body));
        until_pid("pid", ret);
        http_loopback_abort(&lb, -ECONNRESET);
        http_loopback_done(&lb);
}

static void an_attached_command_ends_with_its_client(void **state)
{
        static const char *const bodies[] = {
                "{\"command\":\"echo $$ >pid; exec sleep 1000\",\"attached\":true}",
                /* one that ignores signals */
                "{\"command\":\"trap '' TERM INT HUP; echo $$ >pid; while :; do sleep 1000; done\","
                "\"attached\":true}",
                /* one in a session of its own, that has lost its parent */
                "{\"command\":\"(setsid sh -c 'echo $$ >pid; exec sleep 1000' &); sleep 1000\","
                "\"attached\":true}",
                /* one whose output is held back: it is never read */
                "{\"command\":\"echo $$ >pid; exec yes\",\"attached\":true,"
                "\"output\":\"base64\"}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
                pid_t pid;

                check_case(bodies[i]);
                start_and_go_away(bodies[i], &pid);
                until_gone(pid);
        }
}

static void a_detached_command_continues(void **state)
{
        static const char *const bodies[] = {
                "{\"command\":\"echo $$ >pid; exec sleep 1000\"}",
                "{\"command\":\"echo $$ >pid; exec sleep 1000\",\"attached\":false}",
                /* in the background there is nothing to be attached to */
                "{\"command\":\"echo $$ >pid; exec sleep 999\",\"attached\":true,\"background\":true}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
                pid_t pid;

                check_case(bodies[i]);
                start_and_go_away(bodies[i], &pid);
                /* Long enough for a kill to have had its effect. */
                check_i64_eq(call(&w, "POST", "/command", "{\"command\":\"true\"}").status, 200);
                check_i64_eq(kill(pid, SIGKILL), 0);
                until_gone(pid);
        }
}

static void another_kind_of_output_is_refused(void **state)
{
        check_i64_eq(
                call(&w, "POST", "/command", "{\"command\":\"true\",\"output\":\"raw\"}").status,
                400);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(output_is_sent_in_base64, set_up, tear_down),
                cmocka_unit_test_setup_teardown(a_command_that_ended_in_time_has_not_timed_out,
                                                set_up, tear_down),
                cmocka_unit_test_setup_teardown(an_attached_command_ends_with_its_client, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(a_detached_command_continues, set_up, tear_down),
                cmocka_unit_test_setup_teardown(another_kind_of_output_is_refused, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
