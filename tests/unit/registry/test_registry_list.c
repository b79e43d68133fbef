/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "model/labels.h"
#include "tests/lib/check.h"
#include "tests/lib/registry_world.h"

/* A generator of our own, so that a failure can be seen again. */
static uint32_t random_state = 1;

static uint32_t roll(uint32_t n)
{
        random_state = random_state * 1664525 + 1013904223;
        return (random_state >> 8) % n;
}

/* --- the model: an array, sorted and filtered anew for each question --- */

struct item {
        const struct sandbox *s;
};

static int newest_first(const void *a, const void *b)
{
        const struct sandbox *x = ((const struct item *) a)->s, *y = ((const struct item *) b)->s;

        if (x->created_ms != y->created_ms)
                return x->created_ms > y->created_ms ? -1 : 1;
        return str_cmp(x->id, y->id);
}

static bool matches(const struct registry_query *q, const struct sandbox *s)
{
        bool state_ok = q->states ? q->states & STATE_SET((unsigned) s->status.state)
                                  : state_is_live((enum state) s->status.state);

        return state_ok && (!q->tenant.p || str_eq(q->tenant, s->tenant))
               && labels_match(&s->metadata, &q->metadata);
}

static void check_query(const struct registry *r, const struct registry_query *q)
{
        struct item *all = xcalloc(4096, sizeof(*all));
        struct registry_page *page = xnew(struct registry_page);
        size_t n = 0;

        for (const struct sandbox *s = registry_next(r, STR_NULL); s; s = registry_next(r, s->id))
                if (matches(q, s))
                        all[n++].s = s;
        qsort(all, n, sizeof(*all), newest_first);
        registry_list(r, q, page);
        check_u64_eq(page->total, n);
        check_u64_eq(page->n, q->skip >= n ? 0 : MIN_OF(n - q->skip, (size_t) q->limit));
        for (unsigned i = 0; i < page->n; i++)
                check_true(page->items[i] == all[q->skip + i].s);
        free(all);
        free(page);
}

/* Few different values, so that everything meets. */
static struct sample random_sample(char id[static 64], char metadata[static 256])
{
        static const char *const tenants[] = { "t1", "t2", "t3" };
        static const char *const drivers[] = { "fake", "native" };

        (void) snprintf(id, 64, "s%u", roll(400));
        (void) snprintf(metadata, 256, "\"a\":\"%u\",\"b\":\"%u\",\"only\":\"%s\"", roll(3),
                        roll(20), id);
        return (struct sample){
                .id = id,
                .tenant = tenants[roll(3)],
                .driver = drivers[roll(2)],
                .metadata = roll(4) ? metadata : NULL,
                .state = (int) roll(STATE_MAX_),
                .created_ms = roll(50),
        };
}

static void random_query(struct registry_query *q, struct json_pair labels[static 3],
                         char texts[3][16])
{
        static const char *const keys[] = { "a", "b", "only" };
        static const struct str tenants[] = { { NULL, 0 }, STR("t1"), STR("t2"), STR("nobody") };

        *q = (struct registry_query){
                .tenant = tenants[roll(4)],
                .states = roll(3) == 0 ? 0 : roll(1u << STATE_MAX_),
                .skip = roll(2) ? 0 : roll(300),
                .limit = 1 + roll(roll(2) ? 5 : REGISTRY_PAGE_MAX),
                .metadata = { labels, roll(2) ? 0 : roll(4) },
        };
        for (size_t i = 0; i < 3; i++) {
                (void) snprintf(texts[i], 16, i == 2 ? "s%u" : "%u", roll(i == 0 ? 4 : 21));
                labels[i] = (struct json_pair){ str_from(keys[i]), str_from(texts[i]) };
        }
}

static void change_something(struct registry_world *w)
{
        char id[64], metadata[256];
        struct sample sample = random_sample(id, metadata);
        const struct sandbox *now = registry_peek(w->r, str_from(id));
        struct sandbox *next;
        struct err e = { 0 };

        if (!now) {
                check_i64_eq(rw_register(w, &sample), 0);
        } else if (roll(4) == 0) {
                check_i64_eq(rw_unregister(w, id), 0);
        } else {
                next = rw_changed(w->r, id, (enum state) sample.state);
                if (roll(3) == 0) {
                        struct json_pair pair = { STR("a"), roll(2) ? STR("2") : STR_NULL };
                        struct json_map patch = { &pair, 1 };

                        check_i64_eq(sandbox_patch_metadata(next, &patch, &e), 0);
                }
                check_i64_eq(rw_update(w, next), 0);
        }
}

static void check_counts(const struct registry *r)
{
        static const struct str tenants[] = { { NULL, 0 }, STR("t1"), STR("nobody") };
        static const struct str drivers[] = { { NULL, 0 }, STR("fake"), STR("none") };

        for (size_t i = 0; i < 9 * STATE_MAX_; i++) {
                struct str tenant = tenants[i % 3], driver = drivers[i / 3 % 3];
                enum state state = (enum state)(i / 9);
                size_t n = 0;

                for (const struct sandbox *s = registry_next(r, STR_NULL); s;
                     s = registry_next(r, s->id))
                        n += s->status.state == (int) state
                             && (!tenant.p || str_eq(tenant, s->tenant))
                             && (!driver.p || str_eq(driver, s->driver));
                check_u64_eq(registry_count(r, tenant, driver, state), n);
        }
}

static void lists_agree_with_a_sorted_array(void **state)
{
        struct registry_world w;

        rw_open(&w);
        for (int step = 0; step < 3000; step++) {
                struct json_pair labels[3];
                struct registry_query q;
                char texts[3][16];

                change_something(&w);
                if (step < 300 && step % 10)
                        continue;
                random_query(&q, labels, texts);
                check_query(w.r, &q);
                if (step % 100 == 0)
                        check_counts(w.r);
        }
        /* And down to nothing: tenants, labels and counts go. */
        for (const struct sandbox *s; (s = registry_next(w.r, STR_NULL));) {
                char id[64];

                (void) snprintf(id, sizeof(id), "%.*s", STR_ARG(s->id));
                check_i64_eq(rw_unregister(&w, id), 0);
        }
        check_counts(w.r);
        check_query(w.r, &(struct registry_query){ .limit = 10, .states = ~0u });
        rw_close(&w);
}

static void labels_are_compared_to_the_letter(void **state)
{
        static const struct {
                const char *key, *value;
                uint64_t total;
        } cases[] = {
                { "a", "b", 1 }, { "a", "", 0 },       { "a", "b=", 0 }, { "a=b", "", 0 },
                { "", "", 0 },   { "x/empty", "", 1 }, { "A", "b", 0 },
        };
        char long_text[2000];
        struct json_pair pair;
        struct registry_query q = { .limit = 1, .metadata = { &pair, 1 } };
        struct registry_page page;
        struct registry_world w;

        rw_open(&w);
        check_i64_eq(rw_register(&w,
                                 &(struct sample){ .id = "s",
                                                   .metadata = "\"a\":\"b\",\"x/empty\":\"\"" }),
                     0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                pair = (struct json_pair){ str_from(cases[i].key), str_from(cases[i].value) };
                registry_list(w.r, &q, &page);
                check_u64_eq(page.total, cases[i].total);
        }
        memset(long_text, 'a', sizeof(long_text));
        pair = (struct json_pair){ str_of(long_text, sizeof(long_text)), STR("b") };
        registry_list(w.r, &q, &page);
        check_u64_eq(page.total, 0);
        rw_close(&w);
}

/* --- cost --- */

#define MANY 10000

static void fill(struct registry_world *w, const char *metadata)
{
        for (unsigned i = 0; i < MANY; i++) {
                char id[32];

                (void) snprintf(id, sizeof(id), "s%u", i);
                rw_put_sample(w, &(struct sample){
                                         .id = id,
                                         .metadata = i % 100 == 7 ? "\"a\":\"b\",\"rare\":\"x\""
                                                                  : metadata,
                                         .state = i % 2 ? STATE_RUNNING : STATE_PAUSED,
                                         .created_ms = i,
                                 });
        }
}

/* Records, not time: what a page looks at does not grow with what is there or where it begins. */
static void a_deep_page_examines_its_own_records_only(void **state)
{
        static struct json_pair a = { STR("a"), STR("b") };
        static struct json_pair both[] = { { STR("a"), STR("b") }, { STR("rare"), STR("x") } };
        static const struct {
                const char *name;
                struct registry_query q;
                uint64_t total, examined;
        } cases[] = {
                { "all", { .skip = MANY - 50, .limit = 20 }, MANY, 20 },
                { "a tenant's", { .tenant = STR("t"), .skip = MANY / 2, .limit = 20 }, MANY, 20 },
                { "one state",
                  { .states = STATE_SET(STATE_PAUSED), .skip = MANY / 2 - 30, .limit = 20 },
                  MANY / 2,
                  20 },
                { "two states",
                  { .states = STATE_SET(STATE_PAUSED) | STATE_SET(STATE_RUNNING),
                    .skip = MANY - 100,
                    .limit = 50 },
                  MANY,
                  50 },
                { "one label",
                  { .metadata = { &a, 1 }, .skip = MANY - 40, .limit = 20 },
                  MANY,
                  20 },
                { "two labels: the rare one's",
                  { .metadata = { both, 2 }, .skip = 90, .limit = 20 },
                  MANY / 100,
                  MANY / 100 },
                { "behind the end", { .skip = MANY, .limit = 20 }, MANY, 0 },
                { "far behind the end", { .skip = UINT64_MAX, .limit = 20 }, MANY, 0 },
        };
        struct registry_load load;
        struct registry_world w;
        char damaged[128];

        rw_open(&w);
        fill(&w, "\"a\":\"b\"");
        rw_restart(&w);
        check_i64_eq(rw_load(&w, w.r, &load, damaged), 0);
        check_u64_eq(load.loaded, MANY);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct registry_page page;

                check_case(cases[i].name);
                registry_list(w.r, &cases[i].q, &page);
                check_u64_eq(page.total, cases[i].total);
                check_u64_eq(page.examined, cases[i].examined);
        }
        rw_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(lists_agree_with_a_sorted_array),
                cmocka_unit_test(labels_are_compared_to_the_letter),
                cmocka_unit_test(a_deep_page_examines_its_own_records_only),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
