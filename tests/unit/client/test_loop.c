/* SPDX-License-Identifier: Apache-2.0 */
#include <hutch/hutch.h>

#include "base/base.h"
#include "tests/lib/check.h"

/* Calls that fail at once, because there is no server: no descriptor ever gets ready for them, so only the
 * timer brings the loop back to what it has left undone. */

#define CALLS_MAX 8
#define IN_A_ROW  12

struct world {
        struct hutch_loop *loop;
        struct hutch_client *client;
        int64_t timer; /* milliseconds, negative: none */
        int watched;
        struct row {
                struct world *w;
                struct hutch_call call;
                int left, result;
        } rows[CALLS_MAX];
};

static void on_watch(void *data, int fd, unsigned events)
{
        struct world *w = data;

        (void) fd;
        w->watched += events != 0;
}

static void on_timer(void *data, int64_t ms)
{
        struct world *w = data;

        w->timer = ms;
}

static void on_done(struct hutch_call *call, int result)
{
        struct row *r = call->data;

        r->result = result;
        if (--r->left > 0 && hutch_delete_sandbox(r->w->client, "a1", &r->call) != 0)
                r->left = -1;
}

static void setup(struct world *w)
{
        struct hutch_loop_options on = hutch_loop_options_init();
        struct hutch_client_options o = hutch_client_options_init();

        *w = (struct world){ .timer = -1 };
        on.watch = on_watch;
        on.timer = on_timer;
        on.data = w;
        o.unix_socket = "/nonexistent/hutchd.sock";
        check_i64_eq(hutch_loop_new(&on, &w->loop), 0);
        check_i64_eq(hutch_client_new("http://localhost", NULL, &o, &w->client), 0);
}

static void start(struct world *w, struct row *r)
{
        r->w = w;
        r->left = IN_A_ROW;
        r->call = hutch_call_init();
        r->call.loop = w->loop;
        r->call.done = on_done;
        r->call.data = r;
        check_i64_eq(hutch_delete_sandbox(w->client, "a1", &r->call), 0);
}

static void test_what_a_turn_leaves_brings_another_one(void **state)
{
        (void) state;
        for (int n = 1; n <= CALLS_MAX; n++) {
                struct world w;

                check_case(n == 1 ? "one" : "several");
                setup(&w);
                for (int i = 0; i < n; i++)
                        start(&w, &w.rows[i]);
                while (hutch_loop_calls(w.loop) > 0) {
                        check_i64_eq(w.watched, 0);
                        check_i64_eq(w.timer, 0); /* at once: there is nothing to wait for */
                        w.timer = -1;
                        hutch_loop_timeout(w.loop);
                }
                for (int i = 0; i < n; i++) {
                        check_i64_eq(w.rows[i].left, 0);
                        check_true(w.rows[i].result != 0);
                }
                hutch_loop_free(w.loop);
                hutch_client_free(w.client);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_a_turn_leaves_brings_another_one),
        };

        return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
