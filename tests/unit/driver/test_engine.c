/* SPDX-License-Identifier: Apache-2.0 */

/* The drivers of engines with the test in the place of the worker. */

#include "driver/engine/engine.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"
#include "net/channel.h"
#include "engine/protocol.h"
#include "net/listener.h"
#include "os/fd.h"
#include "tests/lib/check.h"
#include "tests/lib/driver_world.h"

static struct driver_world w;

static struct {
        struct net_listener listener;
        struct channel channel;
        bool listening, open;
        unsigned greetings;
        const char *replies[ENGINE_CALL_MAX_]; /* without the request_id; NULL: none */
        const char *part;                      /* before the answer to scan */
        unsigned requests[ENGINE_CALL_MAX_];
        char last[4096];
} worker;

/* --- the worker --- */

static void say(const char *text)
{
        channel_send(&worker.channel, str_from(text), -EBADF);
}

static void reply(int64_t request_id, const char *rest)
{
        char text[1024];

        (void) snprintf(text, sizeof(text), "{\"request_id\":%lld%s", (long long) request_id, rest);
        say(text);
}

static void on_frame(struct channel *c, struct str text)
{
        struct engine_request q;
        struct arena a;
        struct err e;

        arena_init(&a, MiB);
        if (engine_request_decode(text, &a, &q, &e) < 0)
                fail_msg("%s", e.message);
        (void) snprintf(worker.last, sizeof(worker.last), "%.*s", STR_ARG(text));
        worker.requests[q.call]++;
        worker.greetings += q.call == ENGINE_HELLO;
        if (q.call == ENGINE_SCAN && worker.part)
                reply(q.request_id, worker.part);
        if (worker.replies[q.call])
                reply(q.request_id, worker.replies[q.call]);
        arena_done(&a);
}

static void on_ended(struct channel *c, int r)
{
        channel_close(c);
}

static void on_closed(struct channel *c)
{
        worker.open = false;
}

static void accepted(struct net_listener *l, int fd, const struct sock_addr *peer)
{
        static const struct channel_ops ops = { .frame = on_frame,
                                                .ended = on_ended,
                                                .closed = on_closed };

        check_false(worker.open);
        worker.channel.frame_max = ENGINE_FRAME_MAX;
        check_i64_eq(channel_open(&worker.channel, &w.loop, fd, &ops), 0);
        worker.open = true;
}

static void listener_is_closed(struct net_listener *l)
{
        worker.listening = false;
}

static int set_up(void **state)
{
        static const struct net_listener_ops ops = { .accepted = accepted,
                                                     .closed = listener_is_closed };
        struct engine_config config = { 0 };
        struct driver_setup setup;
        struct sock_addr addr;
        char path[96];
        int fd;

        memset(&worker, 0, sizeof(worker));
        worker.replies[ENGINE_HELLO] = ",\"done\":true,\"version\":1}";
        driver_world_open(&w, NULL);
        (void) snprintf(path, sizeof(path), "unix:%s/worker.sock", w.dir);
        check_i64_eq(sock_addr_from_string(str_from(path), &addr), 0);
        check_i64_eq(sock_listen(&addr, &fd), 0);
        check_i64_eq(listener_open(&worker.listener, &w.loop, fd, &ops), 0);
        worker.listening = true;
        config.worker = path;
        setup = (struct driver_setup){ .loop = &w.loop,
                                       .installation = STR(WORLD_INSTALLATION),
                                       .dir = w.dir,
                                       .agent = "/bin/true" };
        if (driver_engine_open(&setup, ENGINE_DOCKER, &config, &w.driver, &w.err) < 0)
                fail_msg("%s", w.err.message);
        return 0;
}

static unsigned notified;
static int died_status;

static void died(struct driver_watcher *x, struct driver *d, struct str id,
                 const struct driver_health *how)
{
        notified++;
        died_status = how->status;
}

static struct driver_watcher watcher = { .died = died };

static int tear_down(void **state)
{
        driver_world_close_driver(&w, w.driver);
        w.driver = NULL;
        listener_close(&worker.listener);
        driver_world_until(&w, !worker.listening && !worker.open);
        driver_world_close(&w);
        return 0;
}

/* --- tests --- */

static void answers_become_results(void **state)
{
        static const struct {
                const char *reply;
                int result; /* status, or a code */
        } cases[] = {
                { ",\"done\":true,\"state\":{\"status\":\"running\"}}", RUNTIME_RUNNING },
                { ",\"done\":true,\"state\":{\"status\":\"gone\"}}", RUNTIME_GONE },
                { ",\"done\":true,\"state\":{\"status\":\"dead\",\"reason\":\"OOM_KILLED\","
                  "\"message\":\"x\"}}",
                  RUNTIME_DEAD },
                { ",\"done\":true,\"code\":11,\"text\":\"it is away\"}", CODE(UNAVAILABLE) },
                { ",\"done\":true}", CODE(INTERNAL) },
        };
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].reply);
                worker.replies[ENGINE_INSPECT] = cases[i].reply;
                check_i64_eq(driver_world_status(&w, s), cases[i].result);
        }
}

static void hello_names_the_installation(void **state)
{
        driver_world_until(&w, worker.greetings == 1);
        check_true(strstr(worker.last, WORLD_INSTALLATION) != NULL);
        check_i64_eq(worker.requests[ENGINE_HELLO], 1);
}

static void a_worker_that_goes_is_asked_again_when_it_is_back(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

        driver_world_until(&w, worker.greetings == 1);
        channel_close(&worker.channel);
        /* Under way, or too late: it is notified in both cases, and nothing waits for ever. */
        check_i64_eq(driver_world_status(&w, s), CODE(UNAVAILABLE));
        driver_world_until(&w, worker.greetings == 2);
        worker.replies[ENGINE_INSPECT] = ",\"done\":true,\"state\":{\"status\":\"running\"}}";
        check_i64_eq(driver_world_status(&w, s), RUNTIME_RUNNING);
}

static void nonsense_ends_the_conversation(void **state)
{
        static const char *const cases[] = {
                "{}", "[1]", "{\"request_id\":1,\"done\":true,\"more\":1}",
                "{\"request_id\":99999,\"done\":true,\"fd\":true}", /* and none came */
        };
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i]);
                driver_world_until(&w, worker.greetings == i + 1 && worker.open);
                say(cases[i]);
                check_i64_eq(driver_world_status(&w, s), CODE(UNAVAILABLE));
        }
        driver_world_until(&w, worker.greetings == ARRAY_SIZE(cases) + 1);
}

static void an_end_is_reported_once_and_only_of_what_is_watched(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

        notified = 0;
        driver_watch(w.driver, &watcher);
        worker.replies[ENGINE_INSPECT] = ",\"done\":true,\"state\":{\"status\":\"running\"}}";
        check_i64_eq(driver_world_status(&w, s), RUNTIME_RUNNING);
        say("{\"died\":\"sb-other\",\"state\":{\"status\":\"gone\"}}");
        say("{\"died\":\"sb-1\",\"state\":{\"status\":\"running\"}}");
        say("{\"died\":\"sb-1\",\"state\":{\"status\":\"dead\",\"reason\":\"SIGNALED\"}}");
        say("{\"died\":\"sb-1\",\"state\":{\"status\":\"gone\"}}");
        check_i64_eq(driver_world_status(&w, s), RUNTIME_RUNNING); /* behind these */
        check_i64_eq(notified, 1);
        check_i64_eq(died_status, RUNTIME_DEAD);
}

static void what_was_missed_is_found_by_comparing(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");

        notified = 0;
        driver_watch(w.driver, &watcher);
        worker.replies[ENGINE_INSPECT] = ",\"done\":true,\"state\":{\"status\":\"running\"}}";
        check_i64_eq(driver_world_status(&w, s), RUNTIME_RUNNING);
        /* A list that could not be read, or has holes, says nothing. */
        worker.replies[ENGINE_SCAN] = ",\"done\":true,\"code\":11,\"text\":\"away\"}";
        say("{\"watching\":true}");
        driver_world_until(&w, worker.requests[ENGINE_SCAN] == 1);
        worker.replies[ENGINE_SCAN] = ",\"done\":true,\"skipped\":1}";
        check_i64_eq(driver_world_status(&w, s), RUNTIME_RUNNING);
        say("{\"watching\":true}");
        driver_world_until(&w, worker.requests[ENGINE_SCAN] == 2);
        check_i64_eq(driver_world_status(&w, s), RUNTIME_RUNNING);
        check_i64_eq(notified, 0);
        worker.replies[ENGINE_SCAN] = ",\"done\":true}";
        say("{\"watching\":true}");
        driver_world_until(&w, notified == 1);
        check_i64_eq(died_status, RUNTIME_GONE);
}

struct measuring {
        struct driver_usage usage;
        bool done;
        int result;
};

static void measured(struct op *op, int result)
{
        struct measuring *m = container_of(op, struct measuring, usage.req.op);

        m->done = true;
        m->result = result;
}

static void a_canceled_call_ends_at_once_and_its_answer_is_dropped(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = driver_world_record("sb-1");
        struct measuring m = { 0 };

        op_init(&m.usage.req.op, measured);
        driver_start(w.driver, driver_usage_req(&m.usage, s));
        driver_world_until(&w, worker.requests[ENGINE_USAGE] == 1);
        op_cancel(&m.usage.req.op);
        driver_world_until(&w, m.done);
        check_i64_eq(m.result, CODE(CANCELED));
        driver_world_until(&w, worker.requests[ENGINE_CANCEL] == 1);
        reply(2, ",\"done\":true,\"usage\":{\"cpu\":1,\"memory\":1,\"processes\":1}}");
        worker.replies[ENGINE_INSPECT] = ",\"done\":true,\"state\":{\"status\":\"running\"}}";
        check_i64_eq(driver_world_status(&w, s), RUNTIME_RUNNING);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
        static const struct CMUnitTest tests[] = {
                T(answers_become_results),
                T(hello_names_the_installation),
                T(a_worker_that_goes_is_asked_again_when_it_is_back),
                T(nonsense_ends_the_conversation),
                T(an_end_is_reported_once_and_only_of_what_is_watched),
                T(what_was_missed_is_found_by_comparing),
                T(a_canceled_call_ends_at_once_and_its_answer_is_dropped),
        };

        (void) signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
