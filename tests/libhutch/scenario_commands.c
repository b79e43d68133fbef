/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/libhutch/scenario.h"

/* Commands in the foreground and the background, sessions, and all the ways to give one up. */

static void collected(struct world *w)
{
        struct hutch_command_options o = hutch_command_options_init();
        struct hutch_command_result *result;

        o.command = "echo one; echo two >&2; echo $GREETING; exit 3";
        WORKS(w, hutch_run_command(w->client, w->agent, &o, &result, &w->call));
        CHECK_TEXT(w, result->out, "one\nhello there\n");
        CHECK_TEXT(w, result->err, "two\n");
        CHECK(w, result->exit_code == 3 && result->out_n == 16 && result->err_n == 4);
        CHECK(w, !result->out_truncated && !result->err_truncated && !result->timed_out
                         && result->signal == 0);
        CHECK(w, result->id && result->id[0] && result->duration_ms >= 0);
        hutch_command_result_free(result);
        WORKS(w, hutch_run_command(w->client, w->agent, &o, NULL, &w->call));
}

static void exit_codes(struct world *w)
{
        static const struct {
                const char *command;
                int exit_code;
        } rows[] = { { "true", 0 },
                     { "false", 1 },
                     { "exit 127", 127 },
                     { "exit 255", 255 },
                     { "/no/such/program", 127 } };
        struct hutch_command_options o = hutch_command_options_init();

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct hutch_command_result *result;

                o.command = rows[i].command;
                WORKS(w, hutch_run_command(w->client, w->agent, &o, &result, &w->call));
                CHECK(w, result->exit_code == rows[i].exit_code);
                hutch_command_result_free(result);
        }
}

static void killed_by_a_signal(struct world *w)
{
        struct hutch_command_options o = hutch_command_options_init();
        struct hutch_command_result *result;

        o.command = "kill -9 $$";
        WORKS(w, hutch_run_command(w->client, w->agent, &o, &result, &w->call));
        CHECK(w, result->exit_code == -1 || result->exit_code == 137);
        CHECK(w, result->exit_code != -1 || result->error);
        hutch_command_result_free(result);
}

static void without_a_shell(struct world *w)
{
        static const char *const argv[] = { "printf", "%s|", "a b", "$HOME", "" };
        static const struct hutch_pair env[] = { { "A", "1" }, { "B", "x y" } };
        struct hutch_command_options o = hutch_command_options_init();
        struct hutch_command_result *result;

        o.argv = argv;
        o.n_argv = 5;
        WORKS(w, hutch_run_command(w->client, w->agent, &o, &result, &w->call));
        CHECK(w, strncmp(result->out, "a b|$HOME||", 11) == 0);
        hutch_command_result_free(result);
        o = hutch_command_options_init();
        o.command = "echo $A $B; pwd";
        o.env = env;
        o.n_env = 2;
        o.cwd = "/tmp";
        WORKS(w, hutch_run_command(w->client, w->agent, &o, &result, &w->call));
        CHECK_TEXT(w, result->out, "1 x y\n/tmp\n");
        hutch_command_result_free(result);
}

static void byte_for_byte(struct world *w)
{
        struct hutch_command_options o = hutch_command_options_init();
        struct hutch_command_result *result;

        o.command = "printf 'no newline'; printf 'a\\000b\\377' >&2";
        WORKS(w, hutch_run_command(w->client, w->agent, &o, &result, &w->call));
        CHECK_TEXT(w, result->out, "no newline");
        CHECK(w, result->err_n == 4 && memcmp(result->err, "a\0b\377", 4) == 0);
        hutch_command_result_free(result);
}

/* --- streams --- */

struct stream {
        char out[256], err[256], id[128];
        size_t out_n, err_n;
        size_t total;
        size_t give_up_at;
};

static int on_output(void *data, enum hutch_stream stream, const char *bytes, size_t n)
{
        struct stream *s = data;
        char *to = stream == HUTCH_STDOUT ? s->out : s->err;
        size_t *at = stream == HUTCH_STDOUT ? &s->out_n : &s->err_n;

        s->total += n;
        if (*at + n < sizeof(s->out)) {
                memcpy(to + *at, bytes, n);
                *at += n;
        }
        return s->give_up_at && s->total >= s->give_up_at;
}

static void on_started(void *data, const char *id)
{
        struct stream *s = data;

        (void) snprintf(s->id, sizeof(s->id), "%s", id);
}

static void streamed(struct world *w)
{
        struct hutch_command_options o = hutch_command_options_init();
        struct hutch_command_result *result;
        struct stream s = { .out_n = 0 };

        o.command = "echo one; echo two >&2; echo three; exit 2";
        o.output = on_output;
        o.started = on_started;
        o.data = &s;
        WORKS(w, hutch_run_command(w->client, w->agent, &o, &result, &w->call));
        CHECK_TEXT(w, s.out, "one\nthree\n");
        CHECK_TEXT(w, s.err, "two\n");
        CHECK_TEXT(w, s.id, result->id);
        CHECK(w, result->exit_code == 2 && result->out_n == 0 && result->err_n == 0);
        hutch_command_result_free(result);
}

static void much_output(struct world *w)
{
        struct hutch_command_options o = hutch_command_options_init();
        struct hutch_command_result *result;
        struct stream s = { .out_n = 0 };

        o.command = "yes 0123456789abcde | head -n 300000";
        o.output = on_output;
        o.data = &s;
        WORKS(w, hutch_run_command(w->client, w->agent, &o, &result, &w->call));
        CHECK(w, s.total == 300000 * 16 && result->exit_code == 0);
        hutch_command_result_free(result);
        o.output = NULL;
        o.output_max = 1000;
        WORKS(w, hutch_run_command(w->client, w->agent, &o, &result, &w->call));
        CHECK(w, result->out_n <= 1000 && result->out_n > 900 && result->out_truncated
                         && result->exit_code == 0);
        hutch_command_result_free(result);
}

/* --- giving up --- */

static void canceled_by_a_callback(struct world *w)
{
        struct hutch_command_options o = hutch_command_options_init();
        struct stream s = { .give_up_at = 100000 };

        o.command = "yes";
        o.output = on_output;
        o.attached = true;
        o.data = &s;
        CHECK(w, hutch_run_command(w->client, w->agent, &o, NULL, &w->call) == HUTCH_CANCELED);
        CHECK(w, s.total >= 100000);
}

static void canceled_by_a_descriptor(struct world *w)
{
        struct hutch_command_options o = hutch_command_options_init();

        w->call.cancel_fd = eventfd(1, EFD_CLOEXEC); /* readable at once */
        o.command = "sleep 1000";
        o.attached = true;
        CHECK(w, hutch_run_command(w->client, w->agent, &o, NULL, &w->call) == HUTCH_CANCELED);
        CHECK(w, hutch_list_sandboxes(w->client, NULL, NULL, &w->call) == HUTCH_CANCELED);
        (void) close(w->call.cancel_fd);
        w->call.cancel_fd = 987; /* nobody's */
        CHECK(w, hutch_ping(w->client, w->agent, &w->call) == HUTCH_INVALID);
        w->call.cancel_fd = 0;
        WORKS(w, hutch_ping(w->client, w->agent, &w->call));
}

static void canceled_by_the_deadline(struct world *w)
{
        struct hutch_command_options o = hutch_command_options_init();

        w->call.timeout_ms = 300;
        o.command = "sleep 1000";
        o.attached = true;
        CHECK(w, hutch_run_command(w->client, w->agent, &o, NULL, &w->call) == HUTCH_TIMEOUT);
        CHECK(w, w->call.error.code == HUTCH_TIMEOUT && w->call.error.message[0]);
}

static void killed_by_the_agents_limit(struct world *w)
{
        struct hutch_command_options o = hutch_command_options_init();
        struct hutch_command_result *result;

        o.command = "echo begun; sleep 1000";
        o.timeout_ms = 300;
        WORKS(w, hutch_run_command(w->client, w->agent, &o, &result, &w->call));
        CHECK(w, result->exit_code != 0 && result->error);
        CHECK_TEXT(w, result->out, "begun\n");
        hutch_command_result_free(result);
}

/* --- the background --- */

/* Asks again until it has ended. */
static int ended(struct world *w, const char *id, struct hutch_command_status **ret)
{
        for (;;) {
                int r = hutch_get_command_status(w->client, w->agent, id, ret, &w->call);

                if (r < 0 || !(*ret)->running)
                        return r;
                hutch_command_status_free(*ret);
        }
}

static void background(struct world *w)
{
        struct hutch_command_options o = hutch_command_options_init();
        struct hutch_logs_query q = hutch_logs_query_init();
        struct hutch_command_status *status;
        struct hutch_command_result *result;
        struct hutch_logs *logs;

        o.command = "echo one; echo two; exit 6";
        WORKS(w, hutch_start_command(w->client, w->agent, &o, &result, &w->call));
        CHECK(w, result->id && result->id[0]);
        WORKS(w, ended(w, result->id, &status));
        CHECK(w, status->has_exit_code && status->exit_code == 6 && status->started_at > 0);
        CHECK(w, status->finished_at >= status->started_at);
        CHECK_TEXT(w, status->id, result->id);
        hutch_command_status_free(status);
        q.command_id = result->id;
        WORKS(w, hutch_get_command_logs(w->client, w->agent, &q, &logs, &w->call));
        CHECK_TEXT(w, logs->data, "one\ntwo\n");
        CHECK(w, logs->cursor == 8 && logs->dropped == 0);
        q.cursor = 4;
        hutch_logs_free(logs);
        WORKS(w, hutch_get_command_logs(w->client, w->agent, &q, &logs, &w->call));
        CHECK_TEXT(w, logs->data, "two\n");
        hutch_logs_free(logs);
        hutch_command_result_free(result);
        q.command_id = "nonsense";
        CHECK(w, hutch_get_command_logs(w->client, w->agent, &q, &logs, &w->call) < 0);
        CHECK(w, hutch_get_command_status(w->client, w->agent, "nonsense", NULL, &w->call)
                         == HUTCH_NOT_FOUND);
}

static void input_and_signals(struct world *w)
{
        struct hutch_command_options o = hutch_command_options_init();
        struct hutch_stdin in = hutch_stdin_init();
        struct hutch_logs_query q = hutch_logs_query_init();
        struct hutch_command_status *status;
        struct hutch_command_result *result;
        struct hutch_logs *logs;

        o.command = "while read line; do echo \"got $line\"; done; echo end";
        o.open_stdin = true;
        WORKS(w, hutch_start_command(w->client, w->agent, &o, &result, &w->call));
        in.command_id = result->id;
        in.source.data = "first\n";
        in.source.n = 6;
        WORKS(w, hutch_write_stdin(w->client, w->agent, &in, &w->call));
        in.source.data = "second\n";
        in.source.n = 7;
        in.end = true;
        WORKS(w, hutch_write_stdin(w->client, w->agent, &in, &w->call));
        WORKS(w, ended(w, result->id, &status));
        CHECK(w, status->exit_code == 0);
        hutch_command_status_free(status);
        q.command_id = result->id;
        WORKS(w, hutch_get_command_logs(w->client, w->agent, &q, &logs, &w->call));
        CHECK_TEXT(w, logs->data, "got first\ngot second\nend\n");
        hutch_logs_free(logs);
        hutch_command_result_free(result);

        o = hutch_command_options_init();
        o.command = "trap 'exit 9' USR1; echo ready; while :; do sleep 0.05; done";
        WORKS(w, hutch_start_command(w->client, w->agent, &o, &result, &w->call));
        q = hutch_logs_query_init();
        q.command_id = result->id;
        do {
                WORKS(w, hutch_get_command_logs(w->client, w->agent, &q, &logs, &w->call));
                q.cursor += logs->n;
                hutch_logs_free(logs);
        } while (q.cursor < 6);
        WORKS(w, hutch_signal_command(w->client, w->agent, result->id, SIGUSR1, &w->call));
        WORKS(w, ended(w, result->id, &status));
        CHECK(w, status->exit_code == 9);
        hutch_command_status_free(status);
        hutch_command_result_free(result);
}

static void interrupted(struct world *w)
{
        struct hutch_command_options o = hutch_command_options_init();
        struct hutch_command_status *status;
        struct hutch_command_result *result;

        o.command = "sleep 1000";
        WORKS(w, hutch_start_command(w->client, w->agent, &o, &result, &w->call));
        WORKS(w, hutch_interrupt_command(w->client, w->agent, result->id, &w->call));
        WORKS(w, ended(w, result->id, &status));
        CHECK(w, !status->has_exit_code || status->exit_code != 0);
        hutch_command_status_free(status);
        hutch_command_result_free(result);
}

/* --- sessions --- */

static void sessions(struct world *w)
{
        struct hutch_command_options o = hutch_command_options_init();
        struct hutch_session_command what = hutch_session_command_init();
        struct hutch_command_result *result;
        struct hutch_session *session;

        WORKS(w, hutch_create_session(w->client, w->agent, "/tmp", &session, &w->call));
        what.session_id = session->id;
        what.options = &o;
        o.command = "X=kept; cd /; false";
        WORKS(w, hutch_run_in_session(w->client, w->agent, &what, &result, &w->call));
        CHECK(w, result->exit_code == 1);
        hutch_command_result_free(result);
        o.command = "echo $X; pwd";
        WORKS(w, hutch_run_in_session(w->client, w->agent, &what, &result, &w->call));
        CHECK_TEXT(w, result->out, "kept\n/\n");
        CHECK(w, result->exit_code == 0);
        hutch_command_result_free(result);
        WORKS(w, hutch_delete_session(w->client, w->agent, session->id, &w->call));
        CHECK(w, hutch_run_in_session(w->client, w->agent, &what, NULL, &w->call) < 0);
        hutch_session_free(session);
}

/* --- metrics --- */

static void metrics(struct world *w)
{
        struct hutch_metrics *m;

        WORKS(w, hutch_get_metrics(w->client, w->agent, &m, &w->call));
        CHECK(w, m->cpu_count > 0 && m->mem_total_mib > 0 && m->timestamp > 0);
        hutch_metrics_free(m);
}

static int on_metrics(void *data, const struct hutch_metrics *m)
{
        *(double *) data = m->mem_total_mib;
        return 1;
}

static void metrics_watched(struct world *w)
{
        struct hutch_metrics_watch watch = hutch_metrics_watch_init();
        double seen = 0;

        watch.metrics = on_metrics;
        watch.data = &seen;
        CHECK(w, hutch_watch_metrics(w->client, w->agent, &watch, &w->call) == HUTCH_CANCELED);
        CHECK(w, seen > 0);
}

const struct step command_steps[] = {
        { "a command, its output collected", collected },
        { "exit codes", exit_codes },
        { "killed by a signal", killed_by_a_signal },
        { "without a shell, with variables and a directory", without_a_shell },
        { "byte for byte", byte_for_byte },
        { "output as it comes", streamed },
        { "much output", much_output },
        { "canceled by a callback", canceled_by_a_callback },
        { "canceled by a descriptor", canceled_by_a_descriptor },
        { "canceled by the deadline", canceled_by_the_deadline },
        { "killed by the agent's limit", killed_by_the_agents_limit },
        { "in the background", background },
        { "input and signals", input_and_signals },
        { "interrupted", interrupted },
        { "sessions", sessions },
        { "metrics", metrics },
        { "metrics as they come", metrics_watched },
        { NULL },
};
