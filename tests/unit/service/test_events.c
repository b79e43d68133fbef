/* SPDX-License-Identifier: Apache-2.0 */
#include "service/events.h"

#include "base/base.h"
#include "tests/lib/service_world.h"

static struct service_world w;

static int set_up(void **state)
{
        service_world_open(&w, NULL);
        return 0;
}

static int tear_down(void **state)
{
        service_world_close(&w);
        return 0;
}

static const struct create_options plain = { .timeout = 600 };

/* --- listeners --- */

struct hearer {
        struct service_listener listener;
        struct buf heard;
        uint64_t last;
        struct service_listener *drops; /* who is to be taken out with the first event */
};

static void hear(struct service_listener *l, const struct service_event *e)
{
        struct hearer *h = container_of(l, struct hearer, listener);

        check_true(h->last == 0 || e->seq == h->last + 1);
        h->last = e->seq;
        check_i64_eq(e->at, w.clock.wall_now);
        buf_addf(&h->heard, "%s%s:%s", h->heard.n ? " " : "", e->type + strlen("sandbox."),
                 state_to_string(e->record->status.state));
        if (h->drops)
                service_unlisten(TAKE_PTR(h->drops));
}

static void hearer_init(struct hearer *h)
{
        *h = (struct hearer){ .listener.event = hear };
        buf_init(&h->heard, 64 * KiB);
        service_listen(w.service, &h->listener);
}

static void changes_are_reported_in_order(void **state)
{
        struct hearer h;
        struct made m;

        hearer_init(&h);
        m = world_create(&w, &plain);
        check_i64_eq(world_command(&w, service_pause, m.id), 0);
        check_i64_eq(world_renew(&w, m.id, w.clock.wall_now + 10 * USEC_PER_SEC), 0);
        check_i64_eq(world_patch(&w, m.id, "k", "v"), 0);
        check_i64_eq(world_command(&w, service_delete, m.id), 0);
        check_str_eq(buf_str(&h.heard),
                     "created:Pending state:Running state:Pausing state:Paused renewed:Paused "
                     "metadata:Paused state:Stopping deleted:Stopping");
        service_unlisten(&h.listener);
        buf_done(&h.heard);
}

static void listeners_may_leave_while_they_are_notified(void **state)
{
        /* Which listener removes which: itself, the one before, the one after. */
        for (int at = 0; at < 3; at++)
                for (int dropped = 0; dropped < 3; dropped++) {
                        struct hearer h[3];

                        for (int i = 0; i < 3; i++)
                                hearer_init(&h[i]);
                        h[at].drops = &h[dropped].listener;
                        check_i64_eq(world_create(&w, &plain).result, 0);
                        for (int i = 0; i < 3; i++) {
                                size_t should = i != dropped ? 2 : dropped <= at ? 1 : 0;

                                check_i64_eq(h[i].heard.n > 0, should > 0);
                                check_i64_eq(strchr(buf_str(&h[i].heard).p, ' ') != NULL,
                                             should == 2);
                                service_unlisten(&h[i].listener);
                                buf_done(&h[i].heard);
                        }
                }
}

/* --- history --- */

static void the_last_changes_of_a_sandbox_are_remembered(void **state)
{
        struct service_history_entry notes[SERVICE_HISTORY_MAX];
        struct made m = world_create(&w, &plain);

        check_i64_eq(service_history(w.service, world_caller("t"), str_from(m.id), notes), 2);
        check_z_eq(notes[0].type, "sandbox.created");
        check_i64_eq(notes[0].state, STATE_PENDING);
        check_true(notes[0].reason.p == NULL);
        check_z_eq(notes[1].type, "sandbox.state");
        check_str_eq(notes[1].reason, "CONTAINER_RUNNING");
        check_i64_eq(service_history(w.service, world_caller("u"), str_from(m.id), notes), 0);

        for (int i = 0; i < 20; i++) {
                check_i64_eq(world_command(&w, service_pause, m.id), 0);
                check_i64_eq(world_command(&w, service_resume, m.id), 0);
        }
        check_i64_eq(service_history(w.service, world_caller("t"), str_from(m.id), notes),
                     SERVICE_HISTORY_MAX);
        check_i64_eq(notes[SERVICE_HISTORY_MAX - 1].state, STATE_RUNNING);
        check_i64_eq(notes[SERVICE_HISTORY_MAX - 2].state, STATE_RESUMING);
        check_i64_eq(notes[0].state, STATE_PAUSING);
}

/* --- numbers --- */

static void numbers_are_counted(void **state)
{
        struct made m = world_create(&w, &plain);
        struct service_stats s;

        check_z_eq(service_driver_name(w.service, 0), "fake");
        check_true(service_driver_name(w.service, 1) == NULL);
        check_i64_eq(service_count(w.service, "fake", STATE_RUNNING), 1);
        check_i64_eq(service_count(w.service, "other", STATE_RUNNING), 0);
        check_i64_eq(world_command(&w, service_delete, m.id), 0);
        s = service_stats(w.service);
        check_i64_eq(s.creates, 1);
        check_i64_eq(s.create_buckets[0], 1); /* the clock stood still */
        check_i64_eq(s.deletes, 1);
        check_i64_eq(s.reconciles, 1);
        check_i64_eq(s.under_way, 0);
        for (size_t i = 1; i < SERVICE_CREATE_BUCKETS; i++)
                check_true(service_create_bounds[i] > service_create_bounds[i - 1]);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                T(changes_are_reported_in_order),
                T(listeners_may_leave_while_they_are_notified),
                T(the_last_changes_of_a_sandbox_are_remembered),
                T(numbers_are_counted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
