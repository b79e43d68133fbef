/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/registry_world.h"

#define E(code) ERR_RETURN(ERR_##code)

/*
 * One scenario, with each of its requests failing in every way, against a model of what was
 * acknowledged. Whatever fails, memory shows what was acknowledged and nothing else; once the store is
 * back, a second attempt succeeds; and what the next process loads is what this one has seen.
 */

enum act {
        REGISTER,
        REGISTER_BOUND,
        UPDATE,
        UNBIND,
        UNREGISTER,
};

static const struct step {
        enum act act;
        const char *id;
        const char *user;
        int state;
} story[] = {
        { REGISTER_BOUND, "a", "u", STATE_PENDING },
        { REGISTER, "b", "u", STATE_PENDING },
        { UPDATE, "a", "u", STATE_RUNNING },
        { UPDATE, "b", "u", STATE_RUNNING },
        { REGISTER_BOUND, "c", "v", STATE_PENDING },
        { UNREGISTER, "a", "u", 0 },
        { REGISTER_BOUND, "d", "u", STATE_PENDING },
        { UPDATE, "c", "v", STATE_FAILED },
        { UNBIND, "c", "v", STATE_STOPPING },
        { REGISTER_BOUND, "a", "v", STATE_PENDING },
        { UPDATE, "d", "u", STATE_TERMINATED },
        { UNREGISTER, "d", "u", 0 },
        { UNREGISTER, "b", "u", 0 },
        { REGISTER_BOUND, "b", "u", STATE_PENDING },
};

#define REQUESTS_MAX 80 /* more than the story has, with all that follows a failure */

/* What was acknowledged. */
struct known {
        bool there;
        int state;
        bool bound;
        const char *user;
};

struct scenario {
        struct registry_world w;
        struct known known[4]; /* a, b, c, d */
};

static struct known *known_of(struct scenario *t, const char *id)
{
        return &t->known[id[0] - 'a'];
}

static struct sandbox *unbound(const struct registry *r, const struct step *s)
{
        struct sandbox *next = rw_changed(r, s->id, (enum state) s->state);

        next->owner_bound = false;
        return next;
}

static int attempt(struct scenario *t, const struct step *s)
{
        switch (s->act) {
        case REGISTER:
        case REGISTER_BOUND:
                return rw_register(&t->w, &(struct sample){ .id = s->id,
                                                            .user = s->user,
                                                            .bound = s->act == REGISTER_BOUND,
                                                            .metadata = "\"k\":\"v\"" });
        case UPDATE:
                return rw_update(&t->w, rw_changed(t->w.r, s->id, (enum state) s->state));
        case UNBIND:
                return rw_update(&t->w, unbound(t->w.r, s));
        case UNREGISTER:
                return rw_unregister(&t->w, s->id);
        default:
                fail_msg("no such act");
                return 0;
        }
}

static void acknowledge(struct scenario *t, const struct step *s)
{
        struct known *k = known_of(t, s->id);

        if (s->act == REGISTER || s->act == REGISTER_BOUND)
                *k = (struct known){ true, STATE_PENDING, s->act == REGISTER_BOUND, s->user };
        else if (s->act == UNREGISTER)
                *k = (struct known){ 0 };
        else
                k->state = s->state;
        if (s->act == UNBIND)
                k->bound = false;
}

static void check_memory(struct scenario *t)
{
        size_t n = 0, counted = 0;

        for (size_t i = 0; i < ARRAY_SIZE(t->known); i++) {
                const struct known *k = &t->known[i];
                const struct sandbox *s = registry_peek(t->w.r, str_of(&"abcd"[i], 1));

                check_true(!!s == k->there);
                n += k->there;
                if (!s)
                        continue;
                check_i64_eq(s->status.state, k->state);
                check_true(s->owner_bound == k->bound);
        }
        for (unsigned s = 0; s < STATE_MAX_; s++)
                counted += registry_count(t->w.r, STR("t"), STR("fake"), (enum state) s);
        check_u64_eq(counted, n);
}

static void check_owners(struct scenario *t)
{
        static const char *const users[] = { "u", "v" };

        for (size_t u = 0; u < ARRAY_SIZE(users); u++) {
                char should[64] = "", id[64];

                for (size_t i = 0; i < ARRAY_SIZE(t->known); i++)
                        if (t->known[i].there && t->known[i].bound
                            && strcmp(t->known[i].user, users[u]) == 0)
                                (void) snprintf(should, sizeof(should), "%c", "abcd"[i]);
                check_i64_eq(rw_find(&t->w, users[u], id), should[0] ? 0 : E(NOT_FOUND));
                check_z_eq(id, should);
        }
}

static void restart(struct scenario *t)
{
        struct registry_load load;
        char damaged[128];

        rw_restart(&t->w);
        check_i64_eq(rw_load(&t->w, t->w.r, &load, damaged), 0);
        check_u64_eq(load.damaged, 0);
}

/* An update whose first attempt took effect unnoticed conflicts with itself; then what was written is visible. */
static int attempt_again(struct scenario *t, const struct step *s)
{
        int result = attempt(t, s);

        if (result != E(CONFLICT))
                return result;
        check_true(s->act == UPDATE || s->act == UNBIND);
        check_i64_eq(registry_peek(t->w.r, str_from(s->id))->status.state, s->state);
        return 0;
}

static void stop_failing(struct scenario *t)
{
        rw_plan(&t->w, &(struct store_failing_plan){ 0 });
}

/* Returns whether anything was made to fail. */
static bool notify(const struct store_failing_plan *plan)
{
        struct scenario t = { 0 };
        bool failed;

        rw_open(&t.w);
        rw_plan(&t.w, plan);
        for (size_t i = 0; i < ARRAY_SIZE(story); i++) {
                int result = attempt(&t, &story[i]);

                if (result < 0) {
                        check_i64_eq(result, ERR_RETURN(plan->code ? plan->code : ERR_UNAVAILABLE));
                        check_memory(&t);
                        stop_failing(&t);
                        check_i64_eq(attempt_again(&t, &story[i]), 0);
                }
                acknowledge(&t, &story[i]);
                check_memory(&t);
        }
        failed = store_failing_count(t.w.store.store) > 0;
        stop_failing(&t);
        check_owners(&t);
        restart(&t);
        check_memory(&t);
        check_owners(&t);
        rw_close(&t.w);
        return failed;
}

static void run_with_each_failing(struct store_failing_plan plan)
{
        unsigned n = 0;
        char name[64];

        for (plan.n = 1; plan.n <= REQUESTS_MAX; plan.n++) {
                (void) snprintf(name, sizeof(name), "%s %u %s",
                                plan.when == STORE_FAILING_NTH ? "only request" : "from request",
                                plan.n, plan.after ? "after" : "before");
                check_case(name);
                (void) notify(&plan);
                n++;
        }
        check_u64_eq(n, REQUESTS_MAX);
}

static void nothing_fails(void **state)
{
        check_false(notify(&(struct store_failing_plan){ 0 }));
        /* The story is shorter than what the tests below go through. */
        check_false(notify(&(struct store_failing_plan){ STORE_FAILING_NTH, .n = REQUESTS_MAX }));
}

static void one_request_is_lost(void **state)
{
        run_with_each_failing((struct store_failing_plan){ STORE_FAILING_NTH });
}

static void one_answer_is_lost(void **state)
{
        run_with_each_failing((struct store_failing_plan){ STORE_FAILING_NTH, .after = true });
}

/* Until the step has failed: the write and the reading behind it. */
static void the_store_is_away(void **state)
{
        run_with_each_failing((struct store_failing_plan){ STORE_FAILING_FROM });
}

static void answers_are_lost(void **state)
{
        run_with_each_failing((struct store_failing_plan){ STORE_FAILING_FROM, .after = true });
}

static void the_disk_is_full(void **state)
{
        run_with_each_failing((struct store_failing_plan){ STORE_FAILING_FROM, .writes_only = true,
                                                           .code = ERR_EXHAUSTED });
}

static void the_store_is_damaged(void **state)
{
        run_with_each_failing(
                (struct store_failing_plan){ STORE_FAILING_FROM, .code = ERR_TIMEOUT });
}

/* --- a full disk --- */

static void a_full_disk_leaves_everything_as_it_was(void **state)
{
        struct registry_world w;

        rw_open(&w);
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "a", .bound = true }), 0);
        for (unsigned n = 1; n <= 2; n++) { /* the index, the record */
                rw_plan(&w,
                        &(struct store_failing_plan){ STORE_FAILING_NTH, .n = n,
                                                      .writes_only = true, .code = ERR_EXHAUSTED });
                check_i64_eq(rw_register(&w,
                                         &(struct sample){ .id = "b", .user = "v", .bound = true }),
                             E(EXHAUSTED));
                check_u64_eq(rw_stored(&w, ""), 2);
        }
        rw_close(&w);
}

/* --- kill -9 --- */

/* The story ends in the middle of a step. What was acknowledged is there, the step's own record is as
 * before or as after it, and every owner can go on. */
static void crash(const struct store_failing_plan *plan)
{
        static const char *const users[] = { "u", "v" };
        struct scenario t = { 0 };
        const struct step *last = NULL;
        char id[64], fresh[2][8] = { "x0", "x1" };

        rw_open(&t.w);
        rw_plan(&t.w, plan);
        for (size_t i = 0; i < ARRAY_SIZE(story) && !last; i++) {
                if (attempt(&t, &story[i]) < 0)
                        last = &story[i];
                else
                        acknowledge(&t, &story[i]);
        }
        rw_restart(&t.w); /* while it fails: what is not waited for is lost, too */
        stop_failing(&t);
        restart(&t);
        if (last) {
                struct scenario after = t;
                const struct sandbox *s = registry_peek(t.w.r, str_from(last->id));

                acknowledge(&after, last);
                if (!!s == known_of(&after, last->id)->there
                    && (!s || s->status.state == known_of(&after, last->id)->state))
                        *known_of(&t, last->id) = *known_of(&after, last->id);
        }
        check_memory(&t);
        check_owners(&t);
        for (size_t i = 0; i < ARRAY_SIZE(t.known); i++) {
                (void) snprintf(id, sizeof(id), "%c", "abcd"[i]);
                check_i64_eq(rw_unregister(&t.w, id), 0);
        }
        for (size_t u = 0; u < ARRAY_SIZE(users); u++) {
                check_i64_eq(rw_register(&t.w, &(struct sample){ .id = fresh[u],
                                                                 .user = users[u],
                                                                 .bound = true }),
                             0);
                check_i64_eq(rw_unregister(&t.w, fresh[u]), 0);
        }
        check_u64_eq(rw_stored(&t.w, ""), 0);
        rw_close(&t.w);
}

static void a_crash_at_any_request_loses_nothing(void **state)
{
        for (unsigned n = 1; n <= REQUESTS_MAX; n++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "request %u", n);
                check_case(name);
                crash(&(struct store_failing_plan){ STORE_FAILING_FROM, .n = n });
                crash(&(struct store_failing_plan){ STORE_FAILING_FROM, .n = n, .after = true });
        }
}

/* --- at random --- */

static void random_failures_heal(void **state)
{
        for (unsigned seed = 1; seed <= 200; seed++) {
                struct scenario t = { 0 };
                char name[32];

                (void) snprintf(name, sizeof(name), "seed %u", seed);
                check_case(name);
                rw_open(&t.w);
                for (size_t i = 0; i < ARRAY_SIZE(story); i++) {
                        int result = -1;

                        rw_plan(&t.w, &(struct store_failing_plan){ STORE_FAILING_RANDOM, .n = 400,
                                                                    .seed = seed * 1000 + i,
                                                                    .after = seed % 2 });
                        for (int k = 0; k < 3 && result < 0; k++) {
                                result = attempt(&t, &story[i]);
                                if (result == E(CONFLICT))
                                        result = 0;
                                if (result < 0)
                                        check_memory(&t);
                        }
                        stop_failing(&t);
                        if (result < 0)
                                check_i64_eq(attempt_again(&t, &story[i]), 0);
                        acknowledge(&t, &story[i]);
                        check_memory(&t);
                }
                check_owners(&t);
                restart(&t);
                check_memory(&t);
                check_owners(&t);
                rw_close(&t.w);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_fails),
                cmocka_unit_test(one_request_is_lost),
                cmocka_unit_test(one_answer_is_lost),
                cmocka_unit_test(the_store_is_away),
                cmocka_unit_test(answers_are_lost),
                cmocka_unit_test(the_disk_is_full),
                cmocka_unit_test(the_store_is_damaged),
                cmocka_unit_test(a_full_disk_leaves_everything_as_it_was),
                cmocka_unit_test(a_crash_at_any_request_loses_nothing),
                cmocka_unit_test(random_failures_heal),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
