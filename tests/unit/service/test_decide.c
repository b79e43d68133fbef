/* SPDX-License-Identifier: Apache-2.0 */
#include "service/decide.h"

#include "base/base.h"
#include "service/service.h"
#include "tests/lib/check.h"

#define NOW_MONO (100 * USEC_PER_SEC)
#define NOW_WALL (1700000000 * USEC_PER_SEC)

static const struct timestamp now = { .mono = NOW_MONO, .wall = NOW_WALL, .boot_id = STR("b1") };

static struct sandbox *record_in(enum state state, const char *reason)
{
        struct sandbox *s = sandbox_new();

        s->id = STR("a");
        s->status.state = (int) state;
        s->status.reason = str_from(reason);
        return s;
}

/* A decision as text: what is written, then what comes next. */
static const char *text_of(const struct decision *d)
{
        static const char *const calls[] = { "-",      "CREATE",  "DESTROY", "PAUSE",
                                             "RESUME", "INSPECT", "PING",    "SNAPSHOT" };
        static const char *const nexts[] = {
                "done", "refuse", "ask", "again", "unregister", "later"
        };
        static char text[200];
        struct buf b;

        buf_init_fixed(&b, text, sizeof(text));
        if (d->next == NEXT_REFUSE) {
                buf_addf(&b, "refuse %s", err_code_to_string((int) d->err.code));
                return text;
        }
        if (d->changes)
                buf_addf(&b, "%s/%.*s ", state_to_string((int) d->step.state),
                         STR_ARG(d->step.reason));
        if (d->explains)
                buf_addf(&b, "message ");
        if (d->renews)
                buf_addf(&b, "expiry ");
        if (d->patches)
                buf_addf(&b, "labels ");
        if (d->sets_handle)
                buf_addf(&b, "notes ");
        if (d->next == NEXT_CALL)
                buf_addf(&b, "%s", calls[d->call]);
        else
                buf_addf(&b, "%s", nexts[d->next]);
        if (d->fails)
                buf_addf(&b, " failed");
        return text;
}

static void check_decision(const struct decision *d, const char *should)
{
        check_z_eq(text_of(d), should);
}

/* --- every command in every state --- */

#define ALL_CAPS (~0u)

static const struct {
        enum command command;
        const char *in[STATE_MAX_];
} begins[] = {
        { COMMAND_CREATE, { "CREATE", "done", "done", "done", "done", "done", "done", "done" } },
        { COMMAND_DELETE,
          { "Stopping/DELETED DESTROY", "Stopping/DELETED DESTROY", "Stopping/DELETED DESTROY",
            "Stopping/DELETED DESTROY", "Stopping/DELETED DESTROY", "DESTROY", "DESTROY",
            "DESTROY" } },
        { COMMAND_PAUSE,
          { "refuse conflict", "Pausing/ PAUSE", "refuse conflict", "refuse conflict",
            "refuse conflict", "refuse conflict", "refuse conflict", "refuse conflict" } },
        { COMMAND_RESUME,
          { "refuse conflict", "refuse conflict", "refuse conflict", "Resuming/ RESUME",
            "refuse conflict", "refuse conflict", "refuse conflict", "refuse conflict" } },
        { COMMAND_RENEW,
          { "expiry done", "expiry done", "expiry done", "expiry done", "expiry done",
            "refuse conflict", "refuse conflict", "refuse conflict" } },
        { COMMAND_PATCH,
          { "labels done", "labels done", "labels done", "labels done", "labels done",
            "refuse conflict", "refuse conflict", "refuse conflict" } },
        { COMMAND_SNAPSHOT,
          { "refuse conflict", "SNAPSHOT", "refuse conflict", "refuse conflict", "refuse conflict",
            "refuse conflict", "refuse conflict", "refuse conflict" } },
        { COMMAND_ACCESS,
          { "done", "expiry done", "done", "done", "done", "done", "done", "done" } },
        { COMMAND_EXPIRE, /* its time is over */
          { "Stopping/EXPIRED DESTROY", "Stopping/EXPIRED DESTROY", "Stopping/EXPIRED DESTROY",
            "Stopping/EXPIRED DESTROY", "Stopping/EXPIRED DESTROY", "DESTROY", "DESTROY",
            "DESTROY" } },
        { COMMAND_FORGET,
          { "done", "done", "done", "done", "done", "done", "DESTROY", "DESTROY" } },
        { COMMAND_RECONCILE, /* its runtime status is unknown yet */
          { "INSPECT", "INSPECT", "INSPECT", "INSPECT", "INSPECT", "DESTROY", "INSPECT",
            "INSPECT" } },
};

static void every_command_in_every_state(void **state)
{
        struct json_pair extension = { STR("access.renew.extend.seconds"), STR("300") };

        check_i64_eq(ARRAY_SIZE(begins), COMMAND_MAX_);
        for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
                for (int s = 0; s < STATE_MAX_; s++) {
                        scoped(sandbox_freep) struct sandbox *r = record_in((enum state) s, NULL);
                        struct command_args w = { .command = begins[i].command,
                                                  .caps = ALL_CAPS,
                                                  .expires = NOW_WALL + 1 };
                        struct expiry x = expiry_after(&now, 0);
                        struct decision d;
                        char name[64];

                        (void) snprintf(name, sizeof(name), "%s %s",
                                        command_to_string((int) w.command), state_to_string(s));
                        check_case(name);
                        r->expiry = &x;
                        r->extensions = (struct json_map){ &extension, 1 };
                        d = decide(&now, r, &w, NULL);
                        check_decision(&d, begins[i].in[s]);
                        if (d.changes)
                                check_true(state_may_become((enum state) s, d.step.state));
                        check_true(d.next == NEXT_REFUSE || !d.fails);
                }
}

static void without_a_record_commands_are_refused_and_the_rest_is_done(void **state)
{
        for (int c = 0; c < COMMAND_MAX_; c++) {
                struct command_args w = { .command = (enum command) c };
                struct decision d = decide(&now, NULL, &w, NULL);

                check_case(command_to_string(c));
                check_decision(&d, c >= COMMAND_ACCESS ? "done" : "refuse not-found");
        }
}

/* --- what the runtime shows --- */

static const struct {
        enum state state;
        const char *reason;
        bool found;
        const char *by_status[RUNTIME_STATUS_MAX_]; /* running, paused, ended, dead, gone */
} matrix[] = {
        { STATE_PENDING, NULL, true, { "PING", "DESTROY", "DESTROY", "DESTROY", "DESTROY" } },
        { STATE_PENDING, NULL, false, { "DESTROY", "DESTROY", "DESTROY", "DESTROY", "DESTROY" } },
        { STATE_RUNNING,
          NULL,
          true,
          { "done", "Pausing/ again", "Terminated/EXITED DESTROY", "Failed/OOM_KILLED DESTROY",
            "Failed/GONE done" } },
        { STATE_PAUSING,
          NULL,
          true,
          { "Running/CONTAINER_RUNNING done", "Paused/CONTAINER_PAUSED done",
            "Terminated/EXITED DESTROY", "Failed/OOM_KILLED DESTROY", "Failed/GONE done" } },
        { STATE_PAUSED,
          NULL,
          true,
          { "Resuming/ again", "done", "Terminated/EXITED DESTROY", "Failed/OOM_KILLED DESTROY",
            "Failed/GONE done" } },
        { STATE_RESUMING,
          NULL,
          true,
          { "Running/CONTAINER_RUNNING done", "Paused/CONTAINER_PAUSED done",
            "Terminated/EXITED DESTROY", "Failed/OOM_KILLED DESTROY", "Failed/GONE done" } },
        { STATE_STOPPING,
          "DELETED",
          true,
          { "DESTROY", "DESTROY", "DESTROY", "DESTROY", "DESTROY" } },
        { STATE_STOPPING,
          "EXPIRED",
          true,
          { "DESTROY", "DESTROY", "DESTROY", "DESTROY", "DESTROY" } },
        { STATE_TERMINATED, NULL, true, { "DESTROY", "DESTROY", "DESTROY", "DESTROY", "done" } },
        { STATE_FAILED, NULL, true, { "DESTROY", "DESTROY", "DESTROY", "DESTROY", "done" } },
};

static void the_record_follows_what_the_runtime_shows(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(matrix); i++)
                for (int status = 0; status < RUNTIME_STATUS_MAX_; status++) {
                        scoped(sandbox_freep) struct sandbox *r =
                                record_in(matrix[i].state, matrix[i].reason);
                        struct driver_health h = { .status = status, .reason = "OOM_KILLED" };
                        struct command_args known = { .command = COMMAND_RECONCILE,
                                                      .found = matrix[i].found,
                                                      .health_known = true,
                                                      .health = h };
                        struct command_args unknown = { .command = COMMAND_RECONCILE,
                                                        .found = matrix[i].found };
                        struct call_result a = { .call = CALL_INSPECT, .health = h };
                        struct decision d = decide(&now, r, &known, NULL);
                        char name[64];

                        (void) snprintf(name, sizeof(name), "%s, %s",
                                        state_to_string((int) matrix[i].state),
                                        runtime_status_to_string(status));
                        check_case(name);
                        check_decision(&d, matrix[i].by_status[status]);
                        if (d.changes)
                                check_true(state_may_become(matrix[i].state, d.step.state));
                        if (matrix[i].state == STATE_STOPPING)
                                continue; /* is not asked how it is */
                        d = decide(&now, r, &unknown, &a);
                        check_decision(&d, matrix[i].by_status[status]);
                }
}

static void a_death_report_explains_why_it_is_gone(void **state)
{
        static const struct {
                int status;
                const char *reason, *should;
        } cases[] = {
                { RUNTIME_ENDED, "EXITED", "Terminated/EXITED DESTROY" },
                { RUNTIME_DEAD, "OOM_KILLED", "Failed/OOM_KILLED DESTROY" },
                { RUNTIME_DEAD, NULL, "Failed/DIED DESTROY" },
                { RUNTIME_DEAD, "no word", "Failed/DIED DESTROY" },
                { RUNTIME_RUNNING, NULL, "Failed/GONE done" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(sandbox_freep) struct sandbox *r = record_in(STATE_RUNNING, NULL);
                struct command_args w = { .command = COMMAND_RECONCILE,
                                          .health = { .status = cases[i].status,
                                                      .reason = cases[i].reason } };
                struct call_result gone = { .call = CALL_INSPECT, .health.status = RUNTIME_GONE };
                struct call_result running = { .call = CALL_INSPECT,
                                               .health.status = RUNTIME_RUNNING };
                struct decision d = decide(&now, r, &w, &gone);

                check_decision(&d, cases[i].should);
                d = decide(&now, r, &w, &running); /* they were old */
                check_decision(&d, "done");
        }
}

/* --- answers --- */

static const struct {
        const char *name;
        enum command command;
        enum state state;
        const char *reason;
        enum call call;
        enum err_code code; /* ERR_CODE_MAX_: success */
        bool preempted;
        const char *should;
} answers[] = {
#define OK ERR_CODE_MAX_
        { "created", COMMAND_CREATE, STATE_PENDING, NULL, CALL_CREATE, OK, false,
          "Running/CONTAINER_RUNNING notes done" },
        { "no such image", COMMAND_CREATE, STATE_PENDING, NULL, CALL_CREATE, ERR_NOT_FOUND, false,
          "Failed/IMAGE_NOT_FOUND DESTROY failed" },
        { "no room", COMMAND_CREATE, STATE_PENDING, NULL, CALL_CREATE, ERR_EXHAUSTED, false,
          "Failed/RESOURCES_EXHAUSTED DESTROY failed" },
        { "a bug", COMMAND_CREATE, STATE_PENDING, NULL, CALL_CREATE, ERR_INTERNAL, false,
          "Failed/CREATE_FAILED DESTROY failed" },
        { "overtaken", COMMAND_CREATE, STATE_PENDING, NULL, CALL_CREATE, ERR_CANCELED, true,
          "Failed/CANCELED DESTROY failed" },
        { "a failed create is cleared away", COMMAND_CREATE, STATE_FAILED, NULL, CALL_DESTROY, OK,
          false, "done" },
        { "a create that could not be stored is undone", COMMAND_CREATE, STATE_PENDING, NULL,
          CALL_DESTROY, OK, false, "Failed/INTERRUPTED done" },
        { "the same, which had been stored", COMMAND_CREATE, STATE_RUNNING, NULL, CALL_DESTROY, OK,
          false, "Failed/INTERRUPTED done" },
        { "deleted", COMMAND_DELETE, STATE_STOPPING, "DELETED", CALL_DESTROY, OK, false,
          "unregister" },
        { "deleted what was expiring", COMMAND_DELETE, STATE_STOPPING, "EXPIRED", CALL_DESTROY, OK,
          false, "unregister" },
        { "deleted a tombstone", COMMAND_DELETE, STATE_FAILED, "GONE", CALL_DESTROY, OK, false,
          "unregister" },
        { "not deleted", COMMAND_DELETE, STATE_STOPPING, "DELETED", CALL_DESTROY, ERR_UNAVAILABLE,
          false, "message later failed" },
        { "we stop", COMMAND_DELETE, STATE_STOPPING, "DELETED", CALL_DESTROY, ERR_CANCELED, false,
          "later failed" },
        { "expired", COMMAND_EXPIRE, STATE_STOPPING, "EXPIRED", CALL_DESTROY, OK, false,
          "Terminated/EXPIRED done" },
        { "not expired", COMMAND_EXPIRE, STATE_STOPPING, "EXPIRED", CALL_DESTROY, ERR_UNAVAILABLE,
          false, "message later failed" },
        { "remains that stay", COMMAND_RECONCILE, STATE_FAILED, "GONE", CALL_DESTROY,
          ERR_UNAVAILABLE, false, "later failed" },
        { "forgotten", COMMAND_FORGET, STATE_TERMINATED, "EXPIRED", CALL_DESTROY, OK, false,
          "unregister" },
        { "stopping to delete", COMMAND_RECONCILE, STATE_STOPPING, "DELETED", CALL_DESTROY, OK,
          false, "unregister" },
        { "stopping to expire", COMMAND_RECONCILE, STATE_STOPPING, "EXPIRED", CALL_DESTROY, OK,
          false, "Terminated/EXPIRED done" },
        { "undone", COMMAND_RECONCILE, STATE_PENDING, NULL, CALL_DESTROY, OK, false,
          "Failed/INTERRUPTED done" },
        { "adopted", COMMAND_RECONCILE, STATE_PENDING, NULL, CALL_PING, OK, false,
          "Running/CONTAINER_RUNNING notes done" },
        { "does not answer", COMMAND_RECONCILE, STATE_PENDING, NULL, CALL_PING, ERR_TIMEOUT, false,
          "DESTROY" },
        { "remains cleared away", COMMAND_RECONCILE, STATE_TERMINATED, "EXITED", CALL_DESTROY, OK,
          false, "done" },
        { "the runtime can't tell", COMMAND_RECONCILE, STATE_RUNNING, NULL, CALL_INSPECT,
          ERR_UNAVAILABLE, false, "later failed" },
        { "paused", COMMAND_PAUSE, STATE_PAUSING, NULL, CALL_PAUSE, OK, false,
          "Paused/CONTAINER_PAUSED done" },
        { "was paused already", COMMAND_PAUSE, STATE_PAUSING, NULL, CALL_PAUSE, ERR_CONFLICT, false,
          "Paused/CONTAINER_PAUSED done" },
        { "perhaps paused", COMMAND_PAUSE, STATE_PAUSING, NULL, CALL_PAUSE, ERR_TIMEOUT, false,
          "INSPECT" },
        { "a pause overtaken", COMMAND_PAUSE, STATE_PAUSING, NULL, CALL_PAUSE, ERR_CANCELED, true,
          "later failed" },
        { "resumed", COMMAND_RESUME, STATE_RESUMING, NULL, CALL_RESUME, OK, false,
          "Running/CONTAINER_RUNNING done" },
        { "perhaps resumed", COMMAND_RESUME, STATE_RESUMING, NULL, CALL_RESUME, ERR_UNAVAILABLE,
          false, "INSPECT" },
        { "runs after a pause that failed", COMMAND_PAUSE, STATE_PAUSING, NULL, CALL_INSPECT, OK,
          false, "Running/CONTAINER_RUNNING done failed" },
        { "runs after a resume that failed", COMMAND_RESUME, STATE_RESUMING, NULL, CALL_INSPECT, OK,
          false, "Running/CONTAINER_RUNNING done" },
#undef OK
};

static void answers_lead_on(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
                scoped(sandbox_freep) struct sandbox *r =
                        record_in(answers[i].state, answers[i].reason);
                struct err e = { .code = answers[i].code, .message = "why" };
                struct command_args w = { .command = answers[i].command,
                                          .caps = ALL_CAPS,
                                          .preempted = answers[i].preempted };
                struct call_result a = { .call = answers[i].call,
                                         .result = answers[i].code == ERR_CODE_MAX_
                                                           ? 0
                                                           : ERR_RETURN(answers[i].code),
                                         .err = &e };
                struct decision d = decide(&now, r, &w, &a);

                check_case(answers[i].name);
                check_decision(&d, answers[i].should);
                if (d.changes)
                        check_true(state_may_become(answers[i].state, d.step.state));
        }
}

static void what_could_not_be_written_is_undone_or_tried_again(void **state)
{
        static const struct {
                const char *name;
                enum command command;
                enum call call; /* NOTHING: it was the intent */
                const char *should;
        } cases[] = {
                { "a sandbox that runs", COMMAND_CREATE, CALL_CREATE, "DESTROY" },
                { "its undoing", COMMAND_CREATE, CALL_DESTROY, "later failed" },
                { "the intent to delete", COMMAND_DELETE, CALL_NOTHING, "done failed" },
                { "a renewal", COMMAND_RENEW, CALL_NOTHING, "done failed" },
                { "the intent to expire", COMMAND_EXPIRE, CALL_NOTHING, "later failed" },
                { "what was seen", COMMAND_RECONCILE, CALL_INSPECT, "later failed" },
                { "paused", COMMAND_PAUSE, CALL_PAUSE, "later failed" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct command_args w = { .command = cases[i].command };
                struct call_result a = { .call = cases[i].call };
                struct decision d = decide_unwritten(&w, cases[i].call ? &a : NULL);

                check_case(cases[i].name);
                check_decision(&d, cases[i].should);
        }
}

/* --- expiry --- */

static void a_renewal_must_lie_in_the_future_and_mean_something(void **state)
{
        scoped(sandbox_freep) struct sandbox *r = record_in(STATE_RUNNING, NULL);
        struct command_args w = { .command = COMMAND_RENEW, .expires = NOW_WALL };
        struct expiry x = expiry_after(&now, USEC_PER_SEC);
        struct decision d = decide(&now, r, &w, NULL);

        check_decision(&d, "refuse conflict"); /* never expires */
        r->expiry = &x;
        d = decide(&now, r, &w, NULL);
        check_decision(&d, "refuse invalid");
        w.expires = NOW_WALL + 10 * USEC_PER_SEC;
        d = decide(&now, r, &w, NULL);
        check_decision(&d, "expiry done");
        check_i64_eq(d.expiry.mono_usec, NOW_MONO + 10 * USEC_PER_SEC);
}

static void what_was_renewed_meanwhile_does_not_expire(void **state)
{
        scoped(sandbox_freep) struct sandbox *r = record_in(STATE_RUNNING, NULL);
        struct command_args w = { .command = COMMAND_EXPIRE };
        struct expiry x = expiry_after(&now, 1);
        struct decision d;

        r->expiry = &x;
        d = decide(&now, r, &w, NULL);
        check_decision(&d, "done");
        r->expiry = NULL;
        d = decide(&now, r, &w, NULL);
        check_decision(&d, "done");
}

static void an_access_never_shortens_the_expiry(void **state)
{
        scoped(sandbox_freep) struct sandbox *r = record_in(STATE_RUNNING, NULL);
        struct json_pair extension = { STR("access.renew.extend.seconds"), STR("300") };
        struct command_args w = { .command = COMMAND_ACCESS };
        struct expiry x = expiry_after(&now, 300 * USEC_PER_SEC);
        struct decision d;

        r->extensions = (struct json_map){ &extension, 1 };
        r->expiry = &x;
        d = decide(&now, r, &w, NULL);
        check_decision(&d, "done");
        x = expiry_after(&now, 299 * USEC_PER_SEC);
        d = decide(&now, r, &w, NULL);
        check_decision(&d, "expiry done");
        r->extensions.n = 0;
        d = decide(&now, r, &w, NULL);
        check_decision(&d, "done");
}

static void after_a_reboot_the_end_is_fixed_on_the_new_clock(void **state)
{
        const struct timestamp later = { .mono = USEC_PER_SEC,
                                         .wall = NOW_WALL + 50 * USEC_PER_SEC,
                                         .boot_id = STR("b2") };
        scoped(sandbox_freep) struct sandbox *r = record_in(STATE_RUNNING, NULL);
        struct command_args w = { .command = COMMAND_RECONCILE,
                                  .health_known = true,
                                  .found = true };
        struct expiry x = expiry_after(&now, 60 * USEC_PER_SEC);
        struct decision d;

        r->expiry = &x;
        d = decide(&now, r, &w, NULL);
        check_decision(&d, "done");
        d = decide(&later, r, &w, NULL);
        check_decision(&d, "expiry done");
        check_i64_eq(d.expiry.mono_usec, 11 * USEC_PER_SEC);
        check_view_eq(d.expiry.boot_id, STR("b2"));
        w.health.status = RUNTIME_GONE; /* what has ended needs no end */
        d = decide(&later, r, &w, NULL);
        check_decision(&d, "Failed/GONE done");
}

/* --- the rest --- */

static void a_driver_without_pause_is_not_called(void **state)
{
        scoped(sandbox_freep) struct sandbox *r = record_in(STATE_RUNNING, NULL);
        struct command_args w = { .command = COMMAND_PAUSE, .caps = ~(unsigned) DRIVER_PAUSE };
        struct decision d = decide(&now, r, &w, NULL);

        check_decision(&d, "refuse unsupported");
}

static void only_what_runs_may_be_entered(void **state)
{
        static const struct {
                int result;
                bool retry;
        } should[STATE_MAX_] = {
                [STATE_PENDING] = { ERR_RETURN(ERR_UNAVAILABLE), true },
                [STATE_RUNNING] = { 0, false },
                [STATE_PAUSING] = { ERR_RETURN(ERR_UNAVAILABLE), true },
                [STATE_PAUSED] = { ERR_RETURN(ERR_CONFLICT), false },
                [STATE_RESUMING] = { ERR_RETURN(ERR_UNAVAILABLE), true },
                [STATE_STOPPING] = { ERR_RETURN(ERR_NOT_FOUND), false },
                [STATE_TERMINATED] = { ERR_RETURN(ERR_NOT_FOUND), false },
                [STATE_FAILED] = { ERR_RETURN(ERR_NOT_FOUND), false },
        };

        for (int s = 0; s < STATE_MAX_; s++) {
                scoped(sandbox_freep) struct sandbox *r = record_in((enum state) s, NULL);
                usec_t retry_after = 0;
                struct err e;

                check_case(state_to_string(s));
                check_i64_eq(service_check_ingress(r, &retry_after, &e), should[s].result);
                check_i64_eq(retry_after > 0, should[s].retry);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_command_in_every_state),
                cmocka_unit_test(without_a_record_commands_are_refused_and_the_rest_is_done),
                cmocka_unit_test(the_record_follows_what_the_runtime_shows),
                cmocka_unit_test(a_death_report_explains_why_it_is_gone),
                cmocka_unit_test(answers_lead_on),
                cmocka_unit_test(what_could_not_be_written_is_undone_or_tried_again),
                cmocka_unit_test(a_renewal_must_lie_in_the_future_and_mean_something),
                cmocka_unit_test(what_was_renewed_meanwhile_does_not_expire),
                cmocka_unit_test(an_access_never_shortens_the_expiry),
                cmocka_unit_test(after_a_reboot_the_end_is_fixed_on_the_new_clock),
                cmocka_unit_test(a_driver_without_pause_is_not_called),
                cmocka_unit_test(only_what_runs_may_be_entered),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
