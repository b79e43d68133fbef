/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/protocol.h"

#include "base/base.h"
#include "base/codec.h"
#include "tests/lib/check.h"

/* Messages that are right, of all kinds. */

static const struct warden_found page[] = {
        { "a1", { RUNTIME_RUNNING, WARDEN_EXIT_NONE, 0 } },
        { "a2", { RUNTIME_PAUSED, WARDEN_EXIT_NONE, 0 } },
        { "b", { RUNTIME_DEAD, WARDEN_EXIT_OOM, 9 } },
};

static const struct warden_request requests[] = {
        { .call = WARDEN_MSG_HELLO, .request_id = 1, .version = WARDEN_PROTOCOL_VERSION },
        { .call = WARDEN_MSG_CREATE, .request_id = 2, .spec = { "a\0b", 3 } },
        { .call = WARDEN_MSG_DESTROY, .request_id = 3, .id = "a1" },
        { .call = WARDEN_MSG_PAUSE, .request_id = UINT64_MAX, .id = "a1" },
        { .call = WARDEN_MSG_RESUME, .request_id = 5, .id = "a1" },
        { .call = WARDEN_MSG_INSPECT, .request_id = 6, .id = "a1" },
        { .call = WARDEN_MSG_SCAN, .request_id = 7, .id = "" },
        { .call = WARDEN_MSG_SCAN, .request_id = 8, .id = "a1" },
        { .call = WARDEN_MSG_USAGE, .request_id = 9, .id = "a1" },
};

static const struct warden_reply answers[] = {
        { .call = WARDEN_MSG_HELLO, .request_id = 1, .version = WARDEN_PROTOCOL_VERSION },
        { .call = WARDEN_MSG_CREATE,
          .request_id = 2,
          .state = { RUNTIME_RUNNING, WARDEN_EXIT_NONE, 0 } },
        { .call = WARDEN_MSG_CREATE, .state = { RUNTIME_DEAD, WARDEN_EXIT_CODE, 127 } },
        { .call = WARDEN_MSG_CREATE, .result = ERR_RETURN(ERR_EXHAUSTED), .text = "full" },
        { .call = WARDEN_MSG_DESTROY,
          .request_id = 3,
          .result = ERR_RETURN(ERR_INTERNAL),
          .text = "" },
        { .call = WARDEN_MSG_PAUSE, .request_id = 4 },
        { .call = WARDEN_MSG_INSPECT, .state = { RUNTIME_RUNNING, WARDEN_EXIT_NONE, 0 } },
        { .call = WARDEN_MSG_INSPECT, .state = { RUNTIME_ENDED, WARDEN_EXIT_CODE, 0 } },
        { .call = WARDEN_MSG_INSPECT, .state = { RUNTIME_DEAD, WARDEN_EXIT_CODE, 3 } },
        { .call = WARDEN_MSG_SCAN, .found = page, .n_found = ARRAY_SIZE(page), .more = true },
        { .call = WARDEN_MSG_SCAN, .skipped = 2 },
        { .call = WARDEN_MSG_USAGE, .cpu_usec = 1, .memory_bytes = UINT64_MAX, .processes = 3 },
};

static const struct warden_event events[] = {
        { .kind = WARDEN_EVENT_STARTED, .id = "" },
        { .kind = WARDEN_EVENT_DIED,
          .id = "a1",
          .state = { RUNTIME_DEAD, WARDEN_EXIT_SIGNAL, 11 } },
        { .kind = WARDEN_EVENT_OOM, .id = "a1" },
};

static size_t fds_of_request(const struct warden_request *q)
{
        return warden_rules[q->call].fds;
}

/* --- there and back --- */

static void test_requests(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                scoped(buf_done) struct buf b;
                scoped(arena_done) struct arena a;
                const struct warden_request *q = &requests[i];
                struct warden_request out = { 0 };
                enum warden_msg call;
                uint64_t request_id;
                struct err e = { 0 };

                check_case(warden_msg_to_string((int) q->call));
                buf_init(&b, WARDEN_MSG_MAX);
                arena_init(&a, MiB);
                check_i64_eq(warden_request_encode(q, &b, &e), 0);
                check_i64_eq(warden_request_decode(&(struct warden_packet){ buf_str(&b),
                                                                            fds_of_request(q) },
                                                   WARDEN_PHASE_READY, &a, &out, &e),
                             0);
                check_u64_eq(out.call, q->call);
                check_u64_eq(out.request_id, q->request_id);
                check_u64_eq(out.version, q->version);
                check_z_eq(out.id, q->id ? q->id : "");
                check_true(str_eq(out.spec, q->spec));
                check_true(warden_request_peek(buf_str(&b), &call, &request_id));
                check_u64_eq(call, q->call);
                check_u64_eq(request_id, q->request_id);
                check_false(warden_is_event(buf_str(&b)));
        }
}

static void check_same_answer(const struct warden_reply *is, const struct warden_reply *should)
{
        check_u64_eq(is->call, should->call);
        check_u64_eq(is->request_id, should->request_id);
        check_i64_eq(is->result, should->result);
        check_z_eq(is->text, should->text ? should->text : "");
        check_u64_eq(is->version, should->version);
        check_u64_eq(is->state.status, should->state.status);
        check_u64_eq(is->state.reason, should->state.reason);
        check_u64_eq(is->state.code, should->state.code);
        check_u64_eq(is->cpu_usec, should->cpu_usec);
        check_u64_eq(is->memory_bytes, should->memory_bytes);
        check_u64_eq(is->processes, should->processes);
        check_u64_eq(is->more, should->more);
        check_u64_eq(is->skipped, should->skipped);
        check_u64_eq(is->n_found, should->n_found);
        for (size_t i = 0; i < is->n_found; i++) {
                check_z_eq(is->found[i].id, should->found[i].id);
                check_u64_eq(is->found[i].state.status, should->found[i].state.status);
                check_u64_eq(is->found[i].state.reason, should->found[i].state.reason);
        }
}

static void test_answers(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
                scoped(buf_done) struct buf b;
                scoped(arena_done) struct arena a;
                struct warden_packet m;
                struct warden_reply out = { 0 };
                struct err e = { 0 };

                check_case(warden_msg_to_string((int) answers[i].call));
                buf_init(&b, WARDEN_MSG_MAX);
                arena_init(&a, MiB);
                check_i64_eq(warden_reply_encode(&answers[i], &b, &e), 0);
                m = (struct warden_packet){ buf_str(&b), warden_reply_fds(&answers[i]) };
                check_i64_eq(warden_reply_decode(&m, &a, &out, &e), 0);
                check_same_answer(&out, &answers[i]);
                m.n_fds++;
                check_i64_eq(warden_reply_decode(&m, &a, &out, &e), ERR_RETURN(ERR_INVALID));
        }
}

static void test_events(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
                scoped(buf_done) struct buf b;
                scoped(arena_done) struct arena a;
                struct warden_packet m;
                struct warden_event out;
                struct err e = { 0 };

                check_case(warden_event_kind_to_string((int) events[i].kind));
                buf_init(&b, WARDEN_MSG_MAX);
                arena_init(&a, MiB);
                check_i64_eq(warden_event_encode(&events[i], &b, &e), 0);
                m = (struct warden_packet){ buf_str(&b), 0 };
                check_true(warden_is_event(m.message));
                check_i64_eq(warden_event_decode(&m, &a, &out, &e), 0);
                check_u64_eq(out.kind, events[i].kind);
                check_z_eq(out.id, events[i].id);
                check_u64_eq(out.state.reason, events[i].state.reason);
                check_u64_eq(out.state.code, events[i].state.code);
                m.n_fds = 1;
                check_i64_eq(warden_event_decode(&m, &a, &out, &e), ERR_RETURN(ERR_INVALID));
        }
}

/* --- the table --- */

static void test_each_in_its_phase(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                scoped(buf_done) struct buf b;
                scoped(arena_done) struct arena a;
                const struct warden_request *q = &requests[i];
                struct warden_request out;
                struct warden_packet m;
                struct err e = { 0 };

                check_case(warden_msg_to_string((int) q->call));
                buf_init(&b, WARDEN_MSG_MAX);
                arena_init(&a, MiB);
                check_i64_eq(warden_request_encode(q, &b, &e), 0);
                m = (struct warden_packet){ buf_str(&b), fds_of_request(q) };
                check_i64_eq(warden_request_decode(&m, WARDEN_PHASE_NEW, &a, &out, &e),
                             q->call == WARDEN_MSG_HELLO ? 0 : ERR_RETURN(ERR_CONFLICT));
                m.n_fds++;
                check_i64_eq(warden_request_decode(&m, WARDEN_PHASE_READY, &a, &out, &e),
                             ERR_RETURN(ERR_INVALID));
        }
}

/* --- messages that are none --- */

/* Each in a copy of exactly its size, so that a read past its end is seen. */
static int decode_request_copy(struct str s, size_t n_fds)
{
        scoped(freep) char *copy = xcalloc(1, s.n + 1);
        scoped(arena_done) struct arena a;
        struct warden_request out;
        struct err e = { 0 };

        arena_init(&a, MiB);
        memcpy(copy, s.p, s.n);
        return warden_request_decode(&(struct warden_packet){ str_of(copy, s.n), n_fds },
                                     WARDEN_PHASE_READY, &a, &out, &e);
}

static int decode_answer_copy(struct str s, size_t n_fds)
{
        scoped(freep) char *copy = xcalloc(1, s.n + 1);
        scoped(arena_done) struct arena a;
        struct warden_reply out;
        struct err e = { 0 };

        arena_init(&a, MiB);
        memcpy(copy, s.p, s.n);
        return warden_reply_decode(&(struct warden_packet){ str_of(copy, s.n), n_fds }, &a, &out,
                                   &e);
}

static void test_cut_or_longer(void **state)
{
        scoped(buf_done) struct buf b;
        struct err e = { 0 };

        (void) state;
        buf_init(&b, WARDEN_MSG_MAX);
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                buf_reset(&b);
                check_i64_eq(warden_request_encode(&requests[i], &b, &e), 0);
                for (size_t n = 0; n < b.n; n++)
                        check_i64_eq(decode_request_copy(str_of(buf_str(&b).p, n),
                                                         fds_of_request(&requests[i])),
                                     ERR_RETURN(ERR_INVALID));
                buf_add_char(&b, 0);
                check_i64_eq(decode_request_copy(buf_str(&b), fds_of_request(&requests[i])),
                             ERR_RETURN(ERR_INVALID));
        }
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
                buf_reset(&b);
                check_i64_eq(warden_reply_encode(&answers[i], &b, &e), 0);
                for (size_t n = 0; n < b.n; n++)
                        check_i64_eq(decode_answer_copy(str_of(buf_str(&b).p, n),
                                                        warden_reply_fds(&answers[i])),
                                     ERR_RETURN(ERR_INVALID));
                buf_add_char(&b, 0);
                check_i64_eq(decode_answer_copy(buf_str(&b), warden_reply_fds(&answers[i])),
                             ERR_RETURN(ERR_INVALID));
        }
}

static const struct {
        const char *name;
        struct warden_request q;
} refused[] = {
        { "id that leads up", { .call = WARDEN_MSG_DESTROY, .id = ".." } },
        { "id with a slash", { .call = WARDEN_MSG_PAUSE, .id = "a/b" } },
        { "empty id", { .call = WARDEN_MSG_INSPECT, .id = "" } },
        { "cursor that is no id", { .call = WARDEN_MSG_SCAN, .id = "A" } },
        { "no such request", { .call = WARDEN_MSG_KIND_MAX_, .id = "a" } },
        { "id of 64",
          { .call = WARDEN_MSG_USAGE,
            .id = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" } },
};

static void test_refused(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
                scoped(buf_done) struct buf b;
                struct err e = { 0 };

                check_case(refused[i].name);
                buf_init(&b, WARDEN_MSG_MAX);
                check_i64_eq(warden_request_encode(&refused[i].q, &b, &e), 0);
                check_i64_eq(decode_request_copy(buf_str(&b), 0), ERR_RETURN(ERR_INVALID));
        }
}

static const struct {
        const char *name;
        struct instance_status state;
} unsound[] = {
        { "alive with a reason", { RUNTIME_RUNNING, WARDEN_EXIT_CODE, 0 } },
        { "alive with a status", { RUNTIME_PAUSED, WARDEN_EXIT_NONE, 1 } },
        { "ended with a failure", { RUNTIME_ENDED, WARDEN_EXIT_CODE, 1 } },
        { "dead without a reason", { RUNTIME_DEAD, WARDEN_EXIT_NONE, 0 } },
        { "dead by success", { RUNTIME_DEAD, WARDEN_EXIT_CODE, 0 } },
        { "gone", { RUNTIME_GONE, WARDEN_EXIT_LOST, 0 } },
        { "no such status", { RUNTIME_STATUS_MAX_, WARDEN_EXIT_LOST, 0 } },
        { "no such reason", { RUNTIME_DEAD, WARDEN_EXIT_MAX_, 0 } },
};

static void test_unsound_states(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(unsound); i++) {
                scoped(buf_done) struct buf b;
                const struct warden_reply w = { .call = WARDEN_MSG_INSPECT,
                                                .state = unsound[i].state };
                struct err e = { 0 };

                check_case(unsound[i].name);
                buf_init(&b, WARDEN_MSG_MAX);
                check_i64_eq(warden_reply_encode(&w, &b, &e), 0);
                check_i64_eq(decode_answer_copy(buf_str(&b), warden_reply_fds(&w)),
                             ERR_RETURN(ERR_INVALID));
        }
}

static void test_pages_that_lead_back(void **state)
{
        static const struct warden_found back[] = {
                { "b", { RUNTIME_RUNNING, WARDEN_EXIT_NONE, 0 } },
                { "a", { RUNTIME_RUNNING, WARDEN_EXIT_NONE, 0 } },
        };
        static const struct warden_reply bad[] = {
                { .call = WARDEN_MSG_SCAN, .found = back, .n_found = 2 },
                { .call = WARDEN_MSG_SCAN, .more = true },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                scoped(buf_done) struct buf b;
                struct err e = { 0 };

                buf_init(&b, WARDEN_MSG_MAX);
                check_i64_eq(warden_reply_encode(&bad[i], &b, &e), 0);
                check_i64_eq(decode_answer_copy(buf_str(&b), bad[i].n_found),
                             ERR_RETURN(ERR_INVALID));
        }
}

/* The largest spec still is a message; one byte more is none. */
static void test_largest(void **state)
{
        scoped(freep) char *text = xcalloc(1, PLAN_SPEC_MAX + WARDEN_MSG_MAX);
        scoped(buf_done) struct buf b;
        struct warden_request q = { .call = WARDEN_MSG_CREATE, .spec = { text, PLAN_SPEC_MAX } };
        struct err e = { 0 };

        (void) state;
        buf_init(&b, MiB);
        check_i64_eq(warden_request_encode(&q, &b, &e), 0);
        check_i64_eq(decode_request_copy(buf_str(&b), 1), 0);
        buf_reset(&b);
        q.spec.n++;
        check_i64_eq(warden_request_encode(&q, &b, &e), 0);
        check_i64_eq(decode_request_copy(buf_str(&b), 1), ERR_RETURN(ERR_INVALID));
        buf_reset(&b);
        q.spec.n = WARDEN_MSG_MAX;
        check_i64_eq(warden_request_encode(&q, &b, &e), ERR_RETURN(ERR_TOO_LARGE));
        check_u64_eq(b.n, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_requests),       cmocka_unit_test(test_answers),
                cmocka_unit_test(test_events),         cmocka_unit_test(test_each_in_its_phase),
                cmocka_unit_test(test_cut_or_longer),  cmocka_unit_test(test_refused),
                cmocka_unit_test(test_unsound_states), cmocka_unit_test(test_pages_that_lead_back),
                cmocka_unit_test(test_largest),
        };

        return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
