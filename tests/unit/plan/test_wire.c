/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/wire.h"

#include "base/base.h"
#include "plan/bytes.h"
#include "tests/lib/check.h"

/* Messages that are right, of all kinds. */

static const struct wire_found page[] = {
        { "a1", { WIRE_RUNNING, WIRE_REASON_NONE, 0 } },
        { "a2", { WIRE_PAUSED, WIRE_REASON_NONE, 0 } },
        { "b", { WIRE_DEAD, WIRE_OOM_KILLED, 9 } },
};

static const struct wire_request requests[] = {
        { .call = WIRE_HELLO, .ticket = 1, .version = WIRE_VERSION },
        { .call = WIRE_CREATE, .ticket = 2, .spec = { "a\0b", 3 } },
        { .call = WIRE_DESTROY, .ticket = 3, .id = "a1" },
        { .call = WIRE_PAUSE, .ticket = UINT64_MAX, .id = "a1" },
        { .call = WIRE_RESUME, .ticket = 5, .id = "a1" },
        { .call = WIRE_INSPECT, .ticket = 6, .id = "a1" },
        { .call = WIRE_SCAN, .ticket = 7, .id = "" },
        { .call = WIRE_SCAN, .ticket = 8, .id = "a1" },
        { .call = WIRE_USAGE, .ticket = 9, .id = "a1" },
};

static const struct wire_answer answers[] = {
        { .call = WIRE_HELLO, .ticket = 1, .version = WIRE_VERSION },
        { .call = WIRE_CREATE, .ticket = 2 },
        { .call = WIRE_CREATE, .result = ERR_RETURN(ERR_EXHAUSTED), .text = "full" },
        { .call = WIRE_DESTROY, .ticket = 3, .result = ERR_RETURN(ERR_INTERNAL), .text = "" },
        { .call = WIRE_PAUSE, .ticket = 4 },
        { .call = WIRE_INSPECT, .state = { WIRE_RUNNING, WIRE_REASON_NONE, 0 } },
        { .call = WIRE_INSPECT, .state = { WIRE_ENDED, WIRE_EXITED, 0 } },
        { .call = WIRE_INSPECT, .state = { WIRE_DEAD, WIRE_EXITED, 3 } },
        { .call = WIRE_SCAN, .found = page, .n_found = ARRAY_SIZE(page), .more = true },
        { .call = WIRE_SCAN, .skipped = 2 },
        { .call = WIRE_USAGE, .cpu_usec = 1, .memory_bytes = UINT64_MAX, .processes = 3 },
};

static const struct wire_news news[] = {
        { .kind = WIRE_STARTED, .id = "" },
        { .kind = WIRE_DIED, .id = "a1", .state = { WIRE_DEAD, WIRE_SIGNALED, 11 } },
        { .kind = WIRE_OOM, .id = "a1" },
};

static size_t fds_of_request(const struct wire_request *q)
{
        return wire_rules[q->call].fds;
}

/* --- there and back --- */

static void test_requests(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                scoped(buf_done) struct buf b;
                scoped(arena_done) struct arena a;
                const struct wire_request *q = &requests[i];
                struct wire_request out = { 0 };
                enum wire_call call;
                uint64_t ticket;
                struct err e = { 0 };

                check_case(wire_call_to_string((int) q->call));
                buf_init(&b, WIRE_MESSAGE_MAX);
                arena_init(&a, MiB);
                check_i64_eq(wire_request_encode(q, &b, &e), 0);
                check_i64_eq(wire_request_decode(&(struct wire_envelope){ buf_str(&b),
                                                                          fds_of_request(q) },
                                                 WIRE_PHASE_READY, &a, &out, &e),
                             0);
                check_u64_eq(out.call, q->call);
                check_u64_eq(out.ticket, q->ticket);
                check_u64_eq(out.version, q->version);
                check_z_eq(out.id, q->id ? q->id : "");
                check_true(str_eq(out.spec, q->spec));
                check_true(wire_request_peek(buf_str(&b), &call, &ticket));
                check_u64_eq(call, q->call);
                check_u64_eq(ticket, q->ticket);
                check_false(wire_is_news(buf_str(&b)));
        }
}

static void check_same_answer(const struct wire_answer *is, const struct wire_answer *should)
{
        check_u64_eq(is->call, should->call);
        check_u64_eq(is->ticket, should->ticket);
        check_i64_eq(is->result, should->result);
        check_z_eq(is->text, should->text ? should->text : "");
        check_u64_eq(is->version, should->version);
        check_u64_eq(is->state.life, should->state.life);
        check_u64_eq(is->state.reason, should->state.reason);
        check_u64_eq(is->state.status, should->state.status);
        check_u64_eq(is->cpu_usec, should->cpu_usec);
        check_u64_eq(is->memory_bytes, should->memory_bytes);
        check_u64_eq(is->processes, should->processes);
        check_u64_eq(is->more, should->more);
        check_u64_eq(is->skipped, should->skipped);
        check_u64_eq(is->n_found, should->n_found);
        for (size_t i = 0; i < is->n_found; i++) {
                check_z_eq(is->found[i].id, should->found[i].id);
                check_u64_eq(is->found[i].state.life, should->found[i].state.life);
                check_u64_eq(is->found[i].state.reason, should->found[i].state.reason);
        }
}

static void test_answers(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
                scoped(buf_done) struct buf b;
                scoped(arena_done) struct arena a;
                struct wire_envelope m;
                struct wire_answer out = { 0 };
                struct err e = { 0 };

                check_case(wire_call_to_string((int) answers[i].call));
                buf_init(&b, WIRE_MESSAGE_MAX);
                arena_init(&a, MiB);
                check_i64_eq(wire_answer_encode(&answers[i], &b, &e), 0);
                m = (struct wire_envelope){ buf_str(&b), wire_answer_fds(&answers[i]) };
                check_i64_eq(wire_answer_decode(&m, &a, &out, &e), 0);
                check_same_answer(&out, &answers[i]);
                m.n_fds++;
                check_i64_eq(wire_answer_decode(&m, &a, &out, &e), ERR_RETURN(ERR_INVALID));
        }
}

static void test_news(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(news); i++) {
                scoped(buf_done) struct buf b;
                scoped(arena_done) struct arena a;
                struct wire_envelope m;
                struct wire_news out;
                struct err e = { 0 };

                check_case(wire_news_kind_to_string((int) news[i].kind));
                buf_init(&b, WIRE_MESSAGE_MAX);
                arena_init(&a, MiB);
                check_i64_eq(wire_news_encode(&news[i], &b, &e), 0);
                m = (struct wire_envelope){ buf_str(&b), 0 };
                check_true(wire_is_news(m.message));
                check_i64_eq(wire_news_decode(&m, &a, &out, &e), 0);
                check_u64_eq(out.kind, news[i].kind);
                check_z_eq(out.id, news[i].id);
                check_u64_eq(out.state.reason, news[i].state.reason);
                check_u64_eq(out.state.status, news[i].state.status);
                m.n_fds = 1;
                check_i64_eq(wire_news_decode(&m, &a, &out, &e), ERR_RETURN(ERR_INVALID));
        }
}

/* --- the table --- */

static void test_each_in_its_phase(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                scoped(buf_done) struct buf b;
                scoped(arena_done) struct arena a;
                const struct wire_request *q = &requests[i];
                struct wire_request out;
                struct wire_envelope m;
                struct err e = { 0 };

                check_case(wire_call_to_string((int) q->call));
                buf_init(&b, WIRE_MESSAGE_MAX);
                arena_init(&a, MiB);
                check_i64_eq(wire_request_encode(q, &b, &e), 0);
                m = (struct wire_envelope){ buf_str(&b), fds_of_request(q) };
                check_i64_eq(wire_request_decode(&m, WIRE_PHASE_NEW, &a, &out, &e),
                             q->call == WIRE_HELLO ? 0 : ERR_RETURN(ERR_CONFLICT));
                m.n_fds++;
                check_i64_eq(wire_request_decode(&m, WIRE_PHASE_READY, &a, &out, &e),
                             ERR_RETURN(ERR_INVALID));
        }
}

/* --- messages that are none --- */

/* Each in a copy of exactly its size, so that a read past its end is seen. */
static int decode_request_copy(struct str s, size_t n_fds)
{
        scoped(freep) char *copy = xcalloc(1, s.n + 1);
        scoped(arena_done) struct arena a;
        struct wire_request out;
        struct err e = { 0 };

        arena_init(&a, MiB);
        memcpy(copy, s.p, s.n);
        return wire_request_decode(&(struct wire_envelope){ str_of(copy, s.n), n_fds },
                                   WIRE_PHASE_READY, &a, &out, &e);
}

static int decode_answer_copy(struct str s, size_t n_fds)
{
        scoped(freep) char *copy = xcalloc(1, s.n + 1);
        scoped(arena_done) struct arena a;
        struct wire_answer out;
        struct err e = { 0 };

        arena_init(&a, MiB);
        memcpy(copy, s.p, s.n);
        return wire_answer_decode(&(struct wire_envelope){ str_of(copy, s.n), n_fds }, &a, &out,
                                  &e);
}

static void test_cut_or_longer(void **state)
{
        scoped(buf_done) struct buf b;
        struct err e = { 0 };

        (void) state;
        buf_init(&b, WIRE_MESSAGE_MAX);
        for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
                buf_reset(&b);
                check_i64_eq(wire_request_encode(&requests[i], &b, &e), 0);
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
                check_i64_eq(wire_answer_encode(&answers[i], &b, &e), 0);
                for (size_t n = 0; n < b.n; n++)
                        check_i64_eq(decode_answer_copy(str_of(buf_str(&b).p, n),
                                                        wire_answer_fds(&answers[i])),
                                     ERR_RETURN(ERR_INVALID));
                buf_add_char(&b, 0);
                check_i64_eq(decode_answer_copy(buf_str(&b), wire_answer_fds(&answers[i])),
                             ERR_RETURN(ERR_INVALID));
        }
}

static const struct {
        const char *name;
        struct wire_request q;
} refused[] = {
        { "id that leads up", { .call = WIRE_DESTROY, .id = ".." } },
        { "id with a slash", { .call = WIRE_PAUSE, .id = "a/b" } },
        { "empty id", { .call = WIRE_INSPECT, .id = "" } },
        { "cursor that is no id", { .call = WIRE_SCAN, .id = "A" } },
        { "no such request", { .call = WIRE_CALL_MAX_, .id = "a" } },
        { "id of 64",
          { .call = WIRE_USAGE,
            .id = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" } },
};

static void test_refused(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
                scoped(buf_done) struct buf b;
                struct err e = { 0 };

                check_case(refused[i].name);
                buf_init(&b, WIRE_MESSAGE_MAX);
                check_i64_eq(wire_request_encode(&refused[i].q, &b, &e), 0);
                check_i64_eq(decode_request_copy(buf_str(&b), 0), ERR_RETURN(ERR_INVALID));
        }
}

static const struct {
        const char *name;
        struct wire_state state;
} unsound[] = {
        { "alive with a reason", { WIRE_RUNNING, WIRE_EXITED, 0 } },
        { "alive with a status", { WIRE_PAUSED, WIRE_REASON_NONE, 1 } },
        { "ended with a failure", { WIRE_ENDED, WIRE_EXITED, 1 } },
        { "dead without a reason", { WIRE_DEAD, WIRE_REASON_NONE, 0 } },
        { "dead by success", { WIRE_DEAD, WIRE_EXITED, 0 } },
        { "no such life", { WIRE_LIFE_MAX_, WIRE_LOST, 0 } },
        { "no such reason", { WIRE_DEAD, WIRE_REASON_MAX_, 0 } },
};

static void test_unsound_states(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(unsound); i++) {
                scoped(buf_done) struct buf b;
                const struct wire_answer w = { .call = WIRE_INSPECT, .state = unsound[i].state };
                struct err e = { 0 };

                check_case(unsound[i].name);
                buf_init(&b, WIRE_MESSAGE_MAX);
                check_i64_eq(wire_answer_encode(&w, &b, &e), 0);
                check_i64_eq(decode_answer_copy(buf_str(&b), wire_answer_fds(&w)),
                             ERR_RETURN(ERR_INVALID));
        }
}

static void test_pages_that_lead_back(void **state)
{
        static const struct wire_found back[] = {
                { "b", { WIRE_RUNNING, WIRE_REASON_NONE, 0 } },
                { "a", { WIRE_RUNNING, WIRE_REASON_NONE, 0 } },
        };
        static const struct wire_answer bad[] = {
                { .call = WIRE_SCAN, .found = back, .n_found = 2 },
                { .call = WIRE_SCAN, .more = true },
        };

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                scoped(buf_done) struct buf b;
                struct err e = { 0 };

                buf_init(&b, WIRE_MESSAGE_MAX);
                check_i64_eq(wire_answer_encode(&bad[i], &b, &e), 0);
                check_i64_eq(decode_answer_copy(buf_str(&b), bad[i].n_found),
                             ERR_RETURN(ERR_INVALID));
        }
}

/* The largest spec still is a message; one byte more is none. */
static void test_largest(void **state)
{
        scoped(freep) char *text = xcalloc(1, PLAN_SPEC_MAX + WIRE_MESSAGE_MAX);
        scoped(buf_done) struct buf b;
        struct wire_request q = { .call = WIRE_CREATE, .spec = { text, PLAN_SPEC_MAX } };
        struct err e = { 0 };

        (void) state;
        buf_init(&b, MiB);
        check_i64_eq(wire_request_encode(&q, &b, &e), 0);
        check_i64_eq(decode_request_copy(buf_str(&b), 1), 0);
        buf_reset(&b);
        q.spec.n++;
        check_i64_eq(wire_request_encode(&q, &b, &e), 0);
        check_i64_eq(decode_request_copy(buf_str(&b), 1), ERR_RETURN(ERR_INVALID));
        buf_reset(&b);
        q.spec.n = WIRE_MESSAGE_MAX;
        check_i64_eq(wire_request_encode(&q, &b, &e), ERR_RETURN(ERR_TOO_LARGE));
        check_u64_eq(b.n, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_requests),       cmocka_unit_test(test_answers),
                cmocka_unit_test(test_news),           cmocka_unit_test(test_each_in_its_phase),
                cmocka_unit_test(test_cut_or_longer),  cmocka_unit_test(test_refused),
                cmocka_unit_test(test_unsound_states), cmocka_unit_test(test_pages_that_lead_back),
                cmocka_unit_test(test_largest),
        };

        return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
