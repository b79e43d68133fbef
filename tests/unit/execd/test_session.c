/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/session.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/session_world.h"

/* --- what persists from run to run --- */

struct step {
        const char *what;
        const char *command;
        const char *output; /* "…x": ends in x */
};

static void check_output(const char *output, const char *should)
{
        struct str dots = STR("…");

        if (!str_starts_with(str_from(should), dots))
                check_z_eq(output, should);
        else if (!str_ends_with(str_from(output), str_skip(str_from(should), dots.n)))
                check_z_eq(output, should);
}

static void play(struct session_world *s, const struct step *steps, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                check_case(steps[i].what);
                check_output(run_command(s, steps[i].command), steps[i].output);
        }
}

static void test_a_shell_persists_from_run_to_run(void **state)
{
        static const struct step steps[] = {
                { "output", "echo hi; echo there >&2", "hi\nthere|0" },
                { "blank lines are left out", "printf 'a\\n\\n\\r\\nb'", "a\nb|0" },
                { "nothing", ":", "|0" },
                { "exports", "export E=1", "|0" },
                { "are there for children",
                  "env | tr = '\\n' | { while read n; do "
                  "[ \"$n\" = E ] && echo yes; done; :; }",
                  "yes|0" },
                { "variables", "V='a  b'", "|0" },
                { "unexported", "echo \"$V\"; sh -c 'echo \"<$V>\"'", "a  b\n<>|0" },
                { "functions", "f() { echo f $1; }", "|0" },
                { "called later", "f 2", "f 2|0" },
                { "aliases", "alias say='echo said'", "|0" },
                { "used later", "say so", "said so|0" },
                { "options", "set -f", "|0" },
                { "are kept", "echo /*; set +f", "/*|0" },
                { "positional parameters", "set -- x y", "|0" },
                { "are kept too", "echo $2", "y|0" },
                { "umask", "umask 027", "|0" },
                { "stays", "umask", "0027|0" },
                { "exit code", "sh -c 'exit 7'", "|7" },
                { "of the last command", "false; true", "|0" },
                { "return", "return 3", "|3" },
                { "a killed child", "sh -c 'kill -9 $$'", "…|137" },
                { "stdin is empty", "cat; read x; echo \"$? <$x>\"", "1 <>|0" },
                { "descriptors", "ls /proc/self/fd", "0\n1\n2\n3|0" },
                { "cd", "mkdir -p d/e; cd d", "|0" },
                { "stays there", "cd e; pwd | { read x; echo \"${x##*/}\"; }", "e|0" },
                { "a job", "mkfifo ../../j; { read x <../../j; echo late $x; } & echo started",
                  "started|0" },
                { "lives on", "echo go >../../j; wait; echo done", "late go\ndone|0" },
        };
        struct session_world s;

        session_world_open(&s, *state);
        play(&s, steps, ARRAY_SIZE(steps));
        session_world_close(&s);
}

/* --- the end of a shell, and a fresh one --- */

static void test_a_fresh_shell_has_what_was_saved(void **state)
{
        static const struct step ends[] = {
                { "exit", "export A=lost; exit 7", "|7" },
                { "exit 0", "exit", "|0" },
                { "in a function", "g() { exit 4; }; g; echo no", "|4" },
                { "set -e", "set -e; false; echo no", "|1" },
                { "set -e in an earlier run", "false", "|1" },
                { "exec", "exec sh -c 'echo other; exit 5'", "other|5" },
                { "killed", "kill -9 $$", "|-1" },
                { "a strange umask", "umask 777; exit 6", "|6" },
                { "terminated", "kill $$; read x", "|-1" },
                { "with a trap", "trap 'echo bye' EXIT; exit 2", "bye|2" },
                { "by saving, after the run", "ulimit -f 0; echo done", "done|0" },
                { "all descriptors closed",
                  "for n in 0 1 2 10 11 12 13 255; do eval \"exec $n>&-\"; done", "…" },
        };
        struct session_world s;

        session_world_open(&s, *state);
        for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
                check_case(ends[i].what);
                if (strcmp(*state, "busybox") == 0
                    && strcmp(ends[i].what, "all descriptors closed") == 0)
                        continue; /* it polls a closed stdin forever */
                check_z_eq(run_command(&s, "export A=\"it's\nhere\"; B=2; cd / && cd /proc"), "|0");
                if (strcmp(ends[i].what, "set -e in an earlier run") == 0)
                        check_z_eq(run_command(&s, "set -e"), "|0");
                check_output(run_command(&s, ends[i].command), ends[i].output);
                check_z_eq(run_command(&s, "echo \"$A\"; pwd"), "it's\nhere\n/proc|0");
        }
        session_world_close(&s);
}

static void test_a_shell_that_died_between_runs_is_replaced(void **state)
{
        struct session_world s;
        long pid;

        session_world_open(&s, *state);
        check_z_eq(run_command(&s, "echo $$ >pid; export A=1; mkfifo f"), "|0");
        check_z_eq(run_command(&s, "{ read x <f; kill -9 $$; } &"), "|0");
        pid = number_in(&s, "pid");
        put_fifo(&s, "f", "go\n");
        while (access(path_in(&s.w, "pid"), F_OK) == 0 && kill((pid_t) pid, 0) == 0)
                ; /* the agent is not notified */
        check_z_eq(run_command(&s, "echo $A"), "1|0");
        session_world_close(&s);
}

static void test_a_lost_directory_is_recreated(void **state)
{
        struct session_world s;

        session_world_open(&s, *state);
        check_z_eq(run_command(&s, "A=1; rm -r hutch-session-*; echo gone"), "gone|0");
        check_i64_eq(count_dirs(&s), 0);
        check_z_eq(run_command(&s, "echo $A"), "1|0");
        check_i64_eq(count_dirs(&s), 1);
        check_z_eq(run_command(&s, "export B=2"), "|0");
        check_z_eq(run_command(&s, "exit 1"), "|1");
        check_z_eq(run_command(&s, "echo $B; mkdir gone; cd gone"), "2|0");
        check_case("one that others could write to is not used");
        check_z_eq(run_command(&s, "cd ..; chmod 770 hutch-session-*"), "|0");
        check_z_eq(run_command(&s, "echo $B; cd gone; rm -r ../hutch-session-*"), "2|0");
        check_case("a cwd that is gone");
        check_z_eq(run_command(&s, "export B=2"), "|0");
        check_z_eq(run_command(&s, "rmdir ../gone; exit 1"), "|1");
        check_z_eq(run_command(&s, "echo $B; [ -d hutch-session* ] && echo home"), "2\nhome|0");
        session_world_close(&s);
}

/* In POSIX mode a read-only variable ends the shell that takes over what was saved. */
static void test_variables_that_end_a_shell_are_forgotten(void **state)
{
        struct session_world s;

        session_world_open(&s, *state);
        check_z_eq(run_command(&s, "export A=1 POSIXLY_CORRECT=1 UID"), "|0");
        check_z_eq(run_command(&s, "exit 3"), "|3");
        check_z_eq(run_command(&s, "echo not yet"), "|1");
        check_z_eq(run_command(&s, "echo \"<$A>\""), "<>|0");
        check_case("an ordinary end forgets nothing");
        check_z_eq(run_command(&s, "export A=2"), "|0");
        for (int i = 0; i < 3; i++)
                check_z_eq(run_command(&s, "echo $A; exit 3"), "2|3");
        session_world_close(&s);
}

/* Runs as a user that permissions apply to; the TMPDIR of the test would be closed to it. The saved id is
 * restored before anything is checked. */
static void test_a_shell_leaves_a_locked_directory(void **state)
{
        enum { UNPRIVILEGED = 65534 };
        static const char *const commands[] = { "mkdir locked; cd locked; chmod 0 .", "exit 3",
                                                "rmdir locked && echo out" };
        bool root = geteuid() == 0;
        struct session_world s;
        char output[ARRAY_SIZE(commands)][80];
        scoped(freep) char *tmp = xstrndup_str(str_from(check_tmp()));

        check_i64_eq(setenv("TMPDIR", "/tmp", 1), 0);
        session_world_open(&s, *state);
        check_i64_eq(setenv("TMPDIR", tmp, 1), 0);
        check_i64_eq(chmod(s.w.dir, 0777), 0);
        if (root)
                check_i64_eq(setresuid(UNPRIVILEGED, UNPRIVILEGED, 0), 0);
        for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
                (void) snprintf(output[i], sizeof(output[i]), "%s", run_command(&s, commands[i]));
        if (root)
                check_i64_eq(setresuid(0, 0, 0), 0);
        check_z_eq(output[0], "|0");
        check_z_eq(output[1], "|3");
        check_z_eq(output[2], "out|0");
        session_world_close(&s);
}

static void test_without_a_shell_runs_fail_and_sessions_stay(void **state)
{
        struct session_world s;

        session_world_open(&s, "none");
        check_z_eq(run_command(&s, "echo no"), "|No such file or directory");
        check_z_eq(run_command(&s, "echo no"), "|No such file or directory");
        session_world_close(&s);
}

/* --- what users do to a shell --- */

static void test_nothing_a_run_does_gets_in_the_way(void **state)
{
        static const struct step steps[] = {
                { "syntax error", "if then fi", "…|2" },
                { "open quote", "echo 'abc", "…|2" },
                { "open brace", "f() {", "…|2" },
                { "alive", "echo alive", "alive|0" },
                { "quotes in the command", "echo '\"'\"'\"'$x'", "\"'$x|0" },
                { "comment at the end", "echo a # b", "a|0" },
                { "backslash at the end", "echo a\\", "a\\|0" },
                { "here document", "cat <<EOF\nx y\nEOF", "x y|0" },
                { "unended here document", "cat <<EOF\nx z", "…x z|0" },
                { "functions", "printf() { echo bad; }; cd() { echo bad; }; pwd() { echo bad; }",
                  "|0" },
                { "stay", "cd; unset -f printf cd pwd", "bad|0" },
                { "aliases", "alias printf=bad cd=bad pwd=bad command=bad", "|0" },
                { "stay too", "unalias -a; echo ok", "ok|0" },
                { "nounset", "set -u; unset PWD OLDPWD", "|0" },
                { "still there", "echo ok; set +u", "ok|0" },
                { "noclobber", "set -C; echo x >f; echo y >f; :", "…|0" },
                { "IFS", "set +C; IFS=0123456789abcdef/", "|0" },
                { "after IFS", "sh -c 'exit 12'", "|12" },
                { "positional", "IFS=' '; set -- '*' ; echo \"$1\"", "*|0" },
                { "exec >file", "exec >g 2>&1; echo hidden", "|0" },
                { "ends with the run", "cat g", "hidden|0" },
                { "exec <file", "exec <g; cat", "hidden|0" },
                { "ends as well", "cat", "|0" },
                { "closed", "exec <&- >&- 2>&-; echo no; :", "|0" },
                { "open again", "echo yes; echo err >&2; cat", "yes\nerr|0" },
                { "PATH", "P=$PATH; PATH=", "|0" },
                { "back", "PATH=$P; ls g", "g|0" },
                { "PWD", "PWD=relative", "|0" },
                { "verbose", "set -v", "|0" },
                { "off", "set +v; echo ok", "…ok|0" },
                { "a child that stops reading", "cat </dev/zero | head -c 1 | wc -c", "1|0" },
                { "trap", "trap 'echo got' USR1", "|0" },
                { "later", "kill -USR1 $$; echo then", "got\nthen|0" },
                { "allexport", "set -a; N=1", "|0" },
                { "exported", "sh -c 'echo $N'; set +a", "1|0" },
        };
        struct session_world s;

        session_world_open(&s, *state);
        play(&s, steps, ARRAY_SIZE(steps));
        session_world_close(&s);
}

static void test_traces_do_not_show_our_own_lines(void **state)
{
        struct session_world s;
        const char *output;

        session_world_open(&s, *state);
        check_z_eq(run_command(&s, "set -x"), "|0");
        output = run_command(&s, "echo seen");
        check_true(strstr(output, "+ echo seen\nseen|0") != NULL);
        check_true(strstr(output, "hutch") == NULL);
        check_z_eq(run_command(&s, "{ set +x; } 2>/dev/null; set -v"), "|0");
        output = run_command(&s, "echo more");
        check_true(str_ends_with(str_from(output), STR("more|0")));
        check_true(strstr(output, "hutch") == NULL);
        session_world_close(&s);
}

static void test_bash_has_more_to_break(void **state)
{
        static const struct step steps[] = {
                { "export", "export() { echo bad; }", "|0" },
                { "source", "source() { echo bad; }; .() { echo bad; }; eval() { :; }", "|0" },
                { "printf", "printf() { echo bad; }; true", "|0" },
                { "saved all the same", "declare -x K=1; exit 3", "|3" },
                { "before it", "echo \"<$K>\"", "<>|0" },
                { "DEBUG", "trap 'echo D' DEBUG", "…|0" },
                { "DEBUG later", ":", "…|0" },
                { "as in any sourced file", "set -T", "…|0" },
                { "no more", "trap - DEBUG; set +T", "…|0" },
                { "ERR", "trap 'echo E' ERR; true", "|0" },
                { "posix", "trap - ERR; set -o posix", "|0" },
                { "error in posix mode", "export 1x=2; echo on", "…" },
                { "after it", "set +o posix; echo on", "on|0" },
                { "pipefail", "set -o pipefail; false | true", "|1" },
                { "errtrace", "set -E -T; echo on", "on|0" },
                { "array", "a=(1 2 3)", "|0" },
                { "kept", "echo ${a[1]}", "2|0" },
                { "exported array", "export a; declare -rx R=5", "|0" },
                { "end", "exit 0", "|0" },
                { "read-only comes back", "echo $R", "5|0" },
                { "coprocess", "coproc cat; echo x >&${COPROC[1]}; read -u ${COPROC[0]} y; echo $y",
                  "x|0" },
        };
        struct session_world s;

        session_world_open(&s, *state);
        play(&s, steps, ARRAY_SIZE(steps));
        session_world_close(&s);
}

/* --- directories --- */

static void test_a_run_may_name_its_directory(void **state)
{
        struct session_world s;
        char id[ID_UUID_LEN + 1], body[160];

        session_world_open(&s, *state);
        (void) snprintf(body, sizeof(body), "{\"cwd\":\"%s/a/b c\"}", s.w.dir);
        session_open(&s, body, id);
        check_case("made for the session");
        check_true(strstr(run_command_in(&s, id, "pwd", ""), "/a/b c|0") != NULL);
        check_case("of one run, by name");
        check_z_eq(run_command_in(&s, id, "pwd", ",\"cwd\":\"/usr\""), "/usr|0");
        check_case("stays");
        check_z_eq(run_command_in(&s, id, "pwd", ",\"cwd\":null"), "/usr|0");
        check_case("the end of the run counts");
        check_z_eq(run_command_in(&s, id, "cd /proc", ",\"cwd\":\"/\""), "|0");
        check_z_eq(run_command_in(&s, id, "pwd", ""), "/proc|0");
        check_case("relative");
        check_true(strstr(run_command_in(&s, id, "pwd", ",\"cwd\":\"a\""), "/a|0") != NULL);
        check_case("missing");
        check_z_eq(run_command_in(&s, id, "echo no", ",\"cwd\":\"/nope\""),
                   "400 INVALID_REQUEST_BODY");
        check_true(strstr(run_command_in(&s, id, "pwd", ""), "/a|0") != NULL);
        check_case("odd names");
        (void) snprintf(body, sizeof(body), "{\"cwd\":\"q'$x\\n\"}");
        session_open(&s, "{\"cwd\":\"q'\\\"\\n y\"}", id);
        check_true(strstr(run_command_in(&s, id, "export A=1; pwd", ""), "/q'\"\n y|0") != NULL);
        check_z_eq(run_command_in(&s, id, "exit", ""), "|0");
        check_true(strstr(run_command_in(&s, id, "echo $A; pwd", ""), "/q'\"\n y|0") != NULL);
        session_world_close(&s);
}

/* --- sizes --- */

static void test_large_commands_and_binary_output(void **state)
{
        enum { SIZE = 1000000 };
        scoped(freep) char *command = xcalloc(1, SIZE + 32);
        struct session_world s;
        int n;

        session_world_open(&s, *state);
        n = snprintf(command, SIZE + 32, "X='");
        memset(command + n, 'x', SIZE);
        (void) snprintf(command + n + SIZE, 24, "'; echo ${#X}");
        check_z_eq(run_command(&s, command), "1000000|0");
        check_z_eq(run_command(&s, "printf '\\377\\376ok \\303\\251\\000\\n'"),
                   "\xef\xbf\xbd\xef\xbf\xbdok \xc3\xa9|0");
        check_z_eq(run_command(&s, "echo 'h\xc3\xa9 \xe2\x82\xac'"), "h\xc3\xa9 \xe2\x82\xac|0");
        session_world_close(&s);
}

static void test_errors_have_their_codes(void **state)
{
        static const struct {
                const char *name, *method, *target, *body;
                int status;
                const char *code;
        } cases[] = {
                { "unknown session", "POST", "/session/nope/run", "{\"command\":\"true\"}", 500,
                  "RUNTIME_ERROR" },
                { "no command", "POST", "/session/@/run", "{}", 400, "INVALID_REQUEST_BODY" },
                { "empty command", "POST", "/session/@/run", "{\"command\":\"\"}", 400,
                  "INVALID_REQUEST_BODY" },
                { "no body", "POST", "/session/@/run", NULL, 400, "INVALID_REQUEST_BODY" },
                { "no JSON", "POST", "/session/@/run", "x", 400, "INVALID_REQUEST_BODY" },
                { "NUL", "POST", "/session/@/run", "{\"command\":\"a\\u0000\"}", 400,
                  "INVALID_REQUEST_BODY" },
                { "timeout", "POST", "/session/@/run", "{\"command\":\"true\",\"timeout\":-1}", 400,
                  "INVALID_REQUEST_BODY" },
                { "cwd", "POST", "/session/@/run", "{\"command\":\"true\",\"cwd\":\"~nobody9/\"}",
                  400, "INVALID_REQUEST_BODY" },
                { "cwd is a file", "POST", "/session", "{\"cwd\":\"/etc/passwd\"}", 400,
                  "INVALID_REQUEST_BODY" },
                { "cwd below a file", "POST", "/session", "{\"cwd\":\"/etc/passwd/x\"}", 400,
                  "INVALID_REQUEST_BODY" },
                { "cwd is a number", "POST", "/session", "{\"cwd\":1}", 400,
                  "INVALID_REQUEST_BODY" },
                { "delete unknown", "DELETE", "/session/nope", NULL, 404, "CONTEXT_NOT_FOUND" },
                { "interrupt unknown", "DELETE", "/command?id=nope", NULL, 500, "RUNTIME_ERROR" },
        };
        struct session_world s;

        session_world_open(&s, *state);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char target[100], code[64];
                const char *at = strchr(cases[i].target, '@');
                struct reply r;

                check_case(cases[i].name);
                if (at)
                        (void) snprintf(target, sizeof(target), "/session/%s%s", s.id, at + 1);
                r = call(&s.w, cases[i].method, at ? target : cases[i].target, cases[i].body);
                check_i64_eq(r.status, cases[i].status);
                (void) snprintf(code, sizeof(code), "{\"code\":\"%s\",\"message\":\"",
                                cases[i].code);
                check_true(str_starts_with(r.body, str_from(code)));
        }
        check_z_eq(run_command(&s, "echo fine"), "fine|0");
        session_world_close(&s);
}

static void test_the_agents_own_variables_are_not_there(void **state)
{
        struct session_world s;

        (void) setenv("EXECD_SECRET", "x", 1);
        (void) setenv("VISIBLE", "y", 1);
        session_world_open(&s, *state);
        check_z_eq(run_command(&s, "echo \"<$EXECD_SECRET$EXECD_ENVS> $VISIBLE\""), "<> y|0");
        session_world_close(&s);
        (void) unsetenv("EXECD_SECRET");
        (void) unsetenv("VISIBLE");
}

#define WITH(shell, f)                                       \
        {                                                    \
                shell ": " #f, f, NULL, NULL, (void *) shell \
        }
#define WITH_ALL(f) WITH("bash", f), WITH("dash", f), WITH("busybox", f)

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_ALL(test_a_shell_persists_from_run_to_run),
                WITH_ALL(test_a_fresh_shell_has_what_was_saved),
                WITH_ALL(test_a_shell_that_died_between_runs_is_replaced),
                WITH("bash", test_variables_that_end_a_shell_are_forgotten),
                WITH_ALL(test_a_shell_leaves_a_locked_directory),
                WITH_ALL(test_a_lost_directory_is_recreated),
                cmocka_unit_test(test_without_a_shell_runs_fail_and_sessions_stay),
                WITH_ALL(test_nothing_a_run_does_gets_in_the_way),
                WITH_ALL(test_traces_do_not_show_our_own_lines),
                WITH("bash", test_bash_has_more_to_break),
                WITH_ALL(test_a_run_may_name_its_directory),
                WITH_ALL(test_large_commands_and_binary_output),
                WITH("bash", test_errors_have_their_codes),
                WITH_ALL(test_the_agents_own_variables_are_not_there),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
