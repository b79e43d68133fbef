/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "registry/store_keys.h"
#include "tests/lib/check.h"
#include "tests/lib/registry_world.h"

#define E(code) ERR_RETURN(ERR_##code)

static void a_record_comes_changes_and_goes(void **state)
{
        struct registry_world w;
        const struct sandbox *s;
        char id[64];

        rw_open(&w);
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "a" }), 0);
        s = registry_peek(w.r, STR("a"));
        check_true(s != NULL);
        check_i64_eq(s->version, 1);
        check_true(rw_has(&w, "sandbox:registry:a"));
        check_u64_eq(rw_stored(&w, ""), 1); /* no index: it is not bound */
        check_i64_eq(rw_get(&w, "a", id), 0);
        check_z_eq(id, "a");

        check_i64_eq(rw_update(&w, rw_changed(w.r, "a", STATE_RUNNING)), 0);
        s = registry_peek(w.r, STR("a"));
        check_i64_eq(s->version, 2);
        check_i64_eq(s->status.state, STATE_RUNNING);

        check_i64_eq(rw_unregister(&w, "a"), 0);
        check_true(registry_peek(w.r, STR("a")) == NULL);
        check_i64_eq(rw_get(&w, "a", id), E(NOT_FOUND));
        check_u64_eq(rw_stored(&w, ""), 0);
        check_i64_eq(rw_unregister(&w, "a"), 0);
        check_i64_eq(rw_unregister(&w, "../etc"), 0);
        check_i64_eq(rw_unregister(&w, ""), 0);
        check_i64_eq(rw_get(&w, "a/../b", id), E(NOT_FOUND));
        rw_close(&w);
}

static void what_is_written_is_read_back_by_the_next(void **state)
{
        struct registry_world w;
        struct registry_load load;
        char damaged[128];

        rw_open(&w);
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "a", .metadata = "\"k\":\"v\"" }), 0);
        check_i64_eq(rw_update(&w, rw_changed(w.r, "a", STATE_FAILED)), 0);
        rw_restart(&w);
        check_i64_eq(rw_load(&w, w.r, &load, damaged), 0);
        check_u64_eq(load.loaded, 1);
        check_i64_eq(registry_peek(w.r, STR("a"))->status.state, STATE_FAILED);
        /* The version in the store was learnt, too. */
        check_i64_eq(rw_update(&w, rw_changed(w.r, "a", STATE_STOPPING)), 0);
        check_i64_eq(rw_unregister(&w, "a"), 0);
        rw_close(&w);
}

static void an_id_is_there_once(void **state)
{
        struct registry_world w;

        rw_open(&w);
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "a" }), 0);
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "a" }), E(EXISTS));
        check_z_eq(rw_other_id(), "a");
        /* One that only the store knows: of another node. */
        rw_put_sample(&w, &(struct sample){ .id = "b", .node = "n2" });
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "b", .bound = true }), E(EXISTS));
        check_z_eq(rw_other_id(), "b");
        check_u64_eq(rw_stored(&w, "sandbox:owner:"), 0); /* the index was taken back */
        /* A damaged record is not overwritten. */
        rw_put(&w, "sandbox:registry:c", "{");
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "c" }), E(EXISTS));
        rw_close(&w);
}

static void bad_records_are_refused(void **state)
{
        struct registry_world w;
        struct sandbox *s;

        rw_open(&w);
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "a", .node = "n2" }), E(INVALID));
        s = sample_record(&(struct sample){ .id = "a" });
        s->tenant = STR_NULL;
        check_i64_eq(rw_register_record(&w, w.r, s), E(INVALID));
        s = sample_record(&(struct sample){ .id = "a" });
        s->id = STR("../a");
        check_i64_eq(rw_register_record(&w, w.r, s), E(INVALID));
        s = sandbox_new();
        check_i64_eq(rw_register_record(&w, w.r, s), E(INVALID));
        check_u64_eq(rw_stored(&w, ""), 0);
        rw_close(&w);
}

static void set_tenant(struct sandbox *s)
{
        s->tenant = STR("x");
}

static void set_driver(struct sandbox *s)
{
        s->driver = STR("x");
}

static void set_user(struct sandbox *s)
{
        s->owner.user_id = STR("x");
}

static void set_created(struct sandbox *s)
{
        s->created_ms++;
}

static void set_bound(struct sandbox *s)
{
        s->owner_bound = true;
}

static void set_image(struct sandbox *s)
{
        s->image = STR_NULL;
}

static void a_change_does_not_change_who_it_is(void **state)
{
        static const struct {
                const char *name;
                void (*change)(struct sandbox *s);
        } cases[] = {
                { "tenant", set_tenant },     { "driver", set_driver },
                { "owner", set_user },        { "time of creation", set_created },
                { "bound later", set_bound }, { "invalid record", set_image },
        };
        struct registry_world w;

        rw_open(&w);
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "a" }), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct sandbox *next = rw_changed(w.r, "a", STATE_RUNNING);

                check_case(cases[i].name);
                cases[i].change(next);
                check_i64_eq(rw_update(&w, next), E(INVALID));
                check_i64_eq(registry_peek(w.r, STR("a"))->version, 1);
        }
        check_i64_eq(rw_update(&w, sample_record(&(struct sample){ .id = "b" })), E(NOT_FOUND));
        rw_close(&w);
}

/* --- another process writes --- */

static void a_foreign_write_is_noticed_and_seen(void **state)
{
        struct registry_world w;

        rw_open(&w);
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "a" }), 0);
        rw_put_sample(&w, &(struct sample){ .id = "a", .state = STATE_PAUSED });
        check_i64_eq(rw_update(&w, rw_changed(w.r, "a", STATE_RUNNING)), E(CONFLICT));
        check_i64_eq(registry_peek(w.r, STR("a"))->status.state, STATE_PAUSED);
        check_u64_eq(registry_count(w.r, STR_NULL, STR_NULL, STATE_PAUSED), 1);
        check_i64_eq(rw_update(&w, rw_changed(w.r, "a", STATE_RUNNING)), 0);

        check_case("removed");
        check_i64_eq(world_remove(&w.store, STR("sandbox:registry:a"), STORE_ANY), 0);
        check_i64_eq(rw_update(&w, rw_changed(w.r, "a", STATE_PAUSED)), E(NOT_FOUND));
        check_true(registry_peek(w.r, STR("a")) == NULL);

        check_case("overwritten with something else");
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "a" }), 0);
        rw_put(&w, "sandbox:registry:a", "?");
        check_i64_eq(rw_update(&w, rw_changed(w.r, "a", STATE_RUNNING)), E(CONFLICT));
        check_i64_eq(registry_peek(w.r, STR("a"))->status.state, STATE_PENDING);
        check_i64_eq(rw_unregister(&w, "a"), E(CONFLICT));
        check_true(rw_has(&w, "sandbox:registry:a"));

        check_case("changed, then unregistered");
        rw_put_sample(&w, &(struct sample){ .id = "a", .state = STATE_PAUSED });
        check_i64_eq(rw_unregister(&w, "a"), 0);
        check_u64_eq(rw_stored(&w, ""), 0);
        rw_close(&w);
}

static void only_what_is_ours_is_unregistered(void **state)
{
        struct registry_world w;

        rw_open(&w);
        rw_put_sample(&w, &(struct sample){ .id = "a", .node = "n2" });
        rw_put(&w, "sandbox:registry:b", "{");
        rw_put_sample(&w, &(struct sample){ .id = "c" });
        check_i64_eq(rw_unregister(&w, "a"), E(CONFLICT));
        check_i64_eq(rw_unregister(&w, "b"), E(CONFLICT));
        check_i64_eq(rw_unregister(&w, "c"), 0);
        check_u64_eq(rw_stored(&w, ""), 2);
        rw_close(&w);
}

/* --- owners --- */

static void an_owner_has_one_bound_sandbox(void **state)
{
        struct registry_world w;
        char id[64];

        rw_open(&w);
        check_i64_eq(rw_find(&w, "u", id), E(NOT_FOUND));
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "a", .bound = true }), 0);
        check_true(rw_has(&w, "sandbox:owner:o:p:u:shared-project-user"));
        check_i64_eq(rw_find(&w, "u", id), 0);
        check_z_eq(id, "a");
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "b", .bound = true }), E(EXISTS));
        check_z_eq(rw_other_id(), "a");
        check_false(rw_has(&w, "sandbox:registry:b"));
        /* Others of the same owner, and the bound one of another. */
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "c" }), 0);
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "d", .bound = true, .user = "v" }), 0);
        check_i64_eq(rw_find(&w, "v", id), 0);
        check_z_eq(id, "d");
        check_i64_eq(rw_unregister(&w, "c"), 0);
        check_i64_eq(rw_find(&w, "u", id), 0);
        check_i64_eq(rw_unregister(&w, "a"), 0);
        check_i64_eq(rw_find(&w, "u", id), E(NOT_FOUND));
        check_u64_eq(rw_stored(&w, "sandbox:owner:"), 1);
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "b", .bound = true }), 0);
        rw_close(&w);
}

static void a_place_can_be_given_up(void **state)
{
        struct registry_world w;
        struct sandbox *next;
        char id[64];

        rw_open(&w);
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "a", .bound = true }), 0);
        next = rw_changed(w.r, "a", STATE_FAILED);
        next->owner_bound = false;
        check_i64_eq(rw_update(&w, next), 0);
        check_i64_eq(rw_find(&w, "u", id), E(NOT_FOUND));
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "b", .bound = true }), 0);
        check_i64_eq(rw_unregister(&w, "a"), 0);
        check_i64_eq(rw_find(&w, "u", id), 0);
        check_z_eq(id, "b");
        rw_close(&w);
}

/* What a crash, or a hand in the store, may leave under an owner's key. */
static const struct {
        const char *name;
        const char *value;           /* of the index */
        const struct sample *record; /* of "x" */
        const char *text;            /* of "x", if it is none */
        bool taken;                  /* the record has a right to it */
        bool kept;                   /* it is not known: nothing is repaired */
} stale_indexes[] = {
        { "points to nothing", "\"x\"", NULL, NULL, false, false },
        { "is no id", "\"../x\"", NULL, NULL, false, false },
        { "is no JSON", "x", &(struct sample){ .id = "x", .bound = true, .node = "n2" }, NULL,
          false, false },
        { "is half a text", "\"", NULL, NULL, false, false },
        { "is empty", "", NULL, NULL, false, false },
        { "record of another owner", "\"x\"",
          &(struct sample){ .id = "x", .user = "v", .bound = true }, NULL, false, false },
        { "record that is not bound", "\"x\"", &(struct sample){ .id = "x" }, NULL, false, false },
        { "damaged record", "\"x\"", NULL, "{\"schema\":1}", false, false },
        { "bound record of another node", "\"x\"",
          &(struct sample){ .id = "x", .bound = true, .node = "n2" }, NULL, true, false },
        { "record of a newer hutchd", "\"x\"", NULL, "{\"schema\":99}", true, true },
};

static void open_stale(struct registry_world *w, size_t i)
{
        check_case(stale_indexes[i].name);
        rw_open(w);
        if (stale_indexes[i].record)
                rw_put_sample(w, stale_indexes[i].record);
        if (stale_indexes[i].text)
                rw_put(w, "sandbox:registry:x", stale_indexes[i].text);
        rw_put(w, "sandbox:owner:o:p:u:shared-project-user", stale_indexes[i].value);
}

static void a_search_removes_a_stale_index(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(stale_indexes); i++) {
                bool taken = stale_indexes[i].taken, kept = stale_indexes[i].kept;
                size_t records;
                struct registry_world w;
                char id[64];

                open_stale(&w, i);
                records = rw_stored(&w, "sandbox:registry:");
                check_i64_eq(rw_find(&w, "u", id), taken && !kept ? 0 : E(NOT_FOUND));
                check_z_eq(id, taken && !kept ? "x" : "");
                check_u64_eq(rw_stored(&w, "sandbox:owner:"), taken);
                check_u64_eq(rw_stored(&w, "sandbox:registry:"), records); /* never touched */
                rw_close(&w);
        }
}

static void a_register_replaces_a_stale_index(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(stale_indexes); i++) {
                bool taken = stale_indexes[i].taken;
                size_t records;
                struct registry_world w;
                char id[64];

                open_stale(&w, i);
                records = rw_stored(&w, "sandbox:registry:");
                check_i64_eq(rw_register(&w, &(struct sample){ .id = "a", .bound = true }),
                             taken ? E(EXISTS) : 0);
                check_z_eq(rw_other_id(), taken ? "x" : "");
                check_u64_eq(rw_stored(&w, "sandbox:registry:"), records + !taken);
                if (!taken) {
                        check_i64_eq(rw_find(&w, "u", id), 0);
                        check_z_eq(id, "a");
                        check_i64_eq(rw_unregister(&w, "a"), 0);
                        check_u64_eq(rw_stored(&w, "sandbox:owner:"), 0);
                }
                rw_close(&w);
        }
}

static void an_index_of_its_own_is_used_again(void **state)
{
        struct registry_world w;
        char id[64];

        rw_open(&w);
        rw_put(&w, "sandbox:owner:o:p:u:shared-project-user", "\"a\"");
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "a", .bound = true }), 0);
        check_i64_eq(rw_find(&w, "u", id), 0);
        check_i64_eq(rw_unregister(&w, "a"), 0);
        check_u64_eq(rw_stored(&w, ""), 0);
        rw_close(&w);
}

struct call {
        struct registry_register reg;
        int result;
        bool done;
};

static void call_done(struct op *op, int result)
{
        struct call *c = container_of(op, struct call, reg.req.op);

        c->result = result;
        c->done = true;
}

static void two_at_once_do_not_share_an_owner(void **state)
{
        static const char *const ids[] = { "a", "b" };
        struct call calls[2] = { 0 };
        struct registry_world w;

        rw_open(&w);
        for (size_t i = 0; i < 2; i++) {
                op_init(&calls[i].reg.req.op, call_done);
                registry_register(w.r, &calls[i].reg,
                                  sample_record(&(struct sample){ .id = ids[i], .bound = true }));
        }
        world_until(&w.store, calls[0].done && calls[1].done);
        check_i64_eq(calls[0].result, 0);
        check_i64_eq(calls[1].result, E(EXISTS));
        check_z_eq(calls[1].reg.other_id, "a");
        check_u64_eq(rw_stored(&w, ""), 2);
        rw_close(&w);
}

/* Longer than a key of a store may be: two that differ at the end are two. */
static void long_owners_have_short_keys(void **state)
{
        char part[OWNER_PART_MAX], texts[2][OWNER_KEY_SIZE];
        struct buf keys[2];

        memset(part, ':', sizeof(part));
        for (size_t i = 0; i < 2; i++) {
                struct str long_part = str_of(part, sizeof(part));
                struct owner o = { long_part,
                                   long_part,
                                   long_part,
                                   { SCOPE_CUSTOM, str_of(part, sizeof(part) - i) } };

                buf_init_fixed(&keys[i], texts[i], sizeof(texts[i]));
                add_owner_key(&keys[i], OWNER_PREFIX, &o);
                check_true(str_starts_with(buf_str(&keys[i]), STR("sandbox:owner:%sha256:")));
                check_u64_eq(keys[i].n, strlen("sandbox:owner:%sha256:") + 64);
        }
        check_false(str_eq(buf_str(&keys[0]), buf_str(&keys[1])));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_record_comes_changes_and_goes),
                cmocka_unit_test(what_is_written_is_read_back_by_the_next),
                cmocka_unit_test(an_id_is_there_once),
                cmocka_unit_test(bad_records_are_refused),
                cmocka_unit_test(a_change_does_not_change_who_it_is),
                cmocka_unit_test(a_foreign_write_is_noticed_and_seen),
                cmocka_unit_test(only_what_is_ours_is_unregistered),
                cmocka_unit_test(an_owner_has_one_bound_sandbox),
                cmocka_unit_test(a_place_can_be_given_up),
                cmocka_unit_test(a_search_removes_a_stale_index),
                cmocka_unit_test(a_register_replaces_a_stale_index),
                cmocka_unit_test(an_index_of_its_own_is_used_again),
                cmocka_unit_test(two_at_once_do_not_share_an_owner),
                cmocka_unit_test(long_owners_have_short_keys),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
