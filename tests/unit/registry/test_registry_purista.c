/* SPDX-License-Identifier: Apache-2.0 */

/* The registry beside PURISTA's own: keys and values that both read. */

#include "base/base.h"
#include "registry/store_keys.h"
#include "tests/lib/check.h"
#include "tests/lib/registry_world.h"

#define E(code) ERR_RETURN(ERR_##code)

#define RECORD "sandbox:registry:"
#define INDEX  "sandbox:owner:"

/* As its generations write an entry: the second and the fourth, and one with what is to come. */
#define ENTRY(id, user, more)                                                             \
        "{\"sandboxId\":\"" id "\",\"organizationId\":\"o\",\"projectId\":\"p\","         \
        "\"userId\":\"" user "\",\"containerName\":\"purista-" id "\",\"createdAt\":1700" \
        "000000123" more "}"
#define SHARED ",\"gitConfigured\":true,\"scope\":{\"kind\":\"shared-project-user\"}"

/* --- keys --- */

static void keys_are_puristas(void **state)
{
        static const struct {
                struct owner o;
                const char *key, *older;
        } cases[] = {
                { { STR("org-1"), STR("proj-1"), STR("user-1"), { 0 } },
                  INDEX "org-1:proj-1:user-1:shared-project-user",
                  INDEX "org-1:proj-1:user-1" },
                { { STR("o"), STR("p"), STR("u"), { SCOPE_AGENT_RUN, STR("r-1") } },
                  INDEX "o:p:u:agent-run:r-1",
                  NULL },
                { { STR("o"), STR("p"), STR("u"), { SCOPE_CUSTOM, STR("shared-project-user") } },
                  INDEX "o:p:u:custom:shared-project-user",
                  NULL },
                { { STR("a:b"), STR("%"), STR("%3A:"), { 0 } },
                  INDEX "a%3Ab:%25:%253A%3A:shared-project-user",
                  INDEX "a%3Ab:%25:%253A%3A" },
                { { STR("\xc3\xbc"), STR("*?[x]"), STR("a b\\"), { 0 } },
                  INDEX "\xc3\xbc:*?[x]:a b\\:shared-project-user",
                  INDEX "\xc3\xbc:*?[x]:a b\\" },
        };
        char id_key[RECORD_KEY_SIZE];

        check_str_eq(record_key(STR("sb-1"), id_key), RECORD "sb-1");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                char storage[OWNER_KEY_SIZE];
                struct str older;
                struct buf b;

                check_case(cases[i].key);
                buf_init_fixed(&b, storage, sizeof(storage));
                add_owner_key(&b, OWNER_PREFIX, &cases[i].o);
                check_str_eq(buf_str(&b), cases[i].key);
                older = legacy_owner_key(buf_str(&b), &cases[i].o);
                check_i64_eq(older.p != NULL, cases[i].older != NULL);
                if (older.p)
                        check_str_eq(older, cases[i].older);
        }
}

/* A digest has no beginning that would mean anything. */
static void a_long_owner_has_no_older_key(void **state)
{
        char part[OWNER_PART_MAX], storage[OWNER_KEY_SIZE];
        struct owner o = {
                str_of(part, sizeof(part)), str_of(part, sizeof(part)), STR("u"), { 0 }
        };
        struct buf b;

        memset(part, 'a', sizeof(part));
        buf_init_fixed(&b, storage, sizeof(storage));
        add_owner_key(&b, OWNER_PREFIX, &o);
        check_true(str_starts_with(buf_str(&b), STR(INDEX "%sha256:")));
        check_true(legacy_owner_key(buf_str(&b), &o).p == NULL);
}

static void an_index_holds_a_json_text(void **state)
{
        static const struct {
                const char *value, *id;
        } cases[] = {
                { "\"sb-1\"", "sb-1" },
                { "\"c0ffee00-0000-4000-8000-000000000000\"",
                  "c0ffee00-0000-4000-8000-000000000000" },
                { "sb-1", NULL },
                { "\"sb-1", NULL },
                { "\"", NULL },
                { "", NULL },
                { "\"\"", NULL },
                { "\"../a\"", NULL },
                { "\"a\\u0062\"", NULL }, /* never written so */
                { "null", NULL },
                { "{\"sandboxId\":\"a\"}", NULL },
        };
        char storage[INDEX_VALUE_SIZE];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct str id = index_id(str_from(cases[i].value));

                check_case(cases[i].value);
                check_i64_eq(id.p != NULL, cases[i].id != NULL);
                if (!id.p)
                        continue;
                check_str_eq(id, cases[i].id);
                check_str_eq(index_value(id, storage), cases[i].value);
        }
}

/* --- what we write --- */

static void check_text(struct registry_world *w, const char *key, const char *want)
{
        struct buf text;

        buf_init(&text, STORE_VALUE_MAX);
        rw_text(w, key, &text);
        check_str_eq(buf_str(&text), want);
        buf_done(&text);
}

static void purista_finds_ours(void **state)
{
        struct registry_world w;
        struct buf text;

        rw_open(&w);
        check_i64_eq(rw_register(&w, &(struct sample){ .id = "sb-1",
                                                       .user = "a:b%",
                                                       .bound = true,
                                                       .created_ms = 7 }),
                     0);
        check_text(&w, INDEX "o:p:a%3Ab%25:shared-project-user", "\"sb-1\"");
        buf_init(&text, STORE_VALUE_MAX);
        rw_text(&w, RECORD "sb-1", &text);
        check_true(str_starts_with(
                buf_str(&text),
                STR("{\"schema\":1,\"sandboxId\":\"sb-1\",\"organizationId\":\"o\","
                    "\"projectId\":\"p\",\"userId\":\"a:b%\",\"containerName\":\"hutch-sb-1\","
                    "\"createdAt\":7,\"scope\":{\"kind\":\"shared-project-user\"},")));
        buf_done(&text);
        rw_close(&w);
}

/* --- what PURISTA wrote --- */

static const struct {
        const char *name, *index, *entry;
} theirs[] = {
        { "the second generation", INDEX "o:p:u", ENTRY("x", "u", "") },
        { "the third", INDEX "o:p:u:shared-project-user",
          ENTRY("x", "u", ",\"gitConfigured\":false") },
        { "the fourth", INDEX "o:p:u:shared-project-user", ENTRY("x", "u", SHARED) },
        { "with unknown members", INDEX "o:p:u:shared-project-user",
          ENTRY("x", "u", SHARED ",\"labels\":{\"a\":[1]}") },
};

static void an_owner_who_has_one_there_gets_none_here(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(theirs); i++) {
                struct registry_load load;
                struct registry_world w;
                char id[64], damaged[128];

                check_case(theirs[i].name);
                rw_open(&w);
                rw_put(&w, RECORD "x", theirs[i].entry);
                rw_put(&w, theirs[i].index, "\"x\"");
                check_i64_eq(rw_find(&w, "u", id), 0);
                check_z_eq(id, "x");
                check_i64_eq(rw_get(&w, "x", id), 0);
                check_i64_eq(rw_register(&w, &(struct sample){ .id = "a", .bound = true }),
                             E(EXISTS));
                check_z_eq(rw_other_id(), "x");
                check_i64_eq(rw_register(&w, &(struct sample){ .id = "x" }), E(EXISTS));
                check_i64_eq(rw_unregister(&w, "x"), E(CONFLICT));
                check_i64_eq(rw_find(&w, "v", id), E(NOT_FOUND));

                rw_restart(&w);
                check_i64_eq(rw_load(&w, w.r, &load, damaged), 0);
                check_u64_eq(load.foreign, 1);
                check_u64_eq(load.loaded + load.damaged, 0);
                check_text(&w, RECORD "x", theirs[i].entry);
                check_text(&w, theirs[i].index, "\"x\"");
                check_u64_eq(rw_stored(&w, ""), 2);
                rw_close(&w);
        }
}

static void what_is_no_entry_is_damaged(void **state)
{
        static const char *const entries[] = {
                "{\"sandboxId\":\"x\",\"createdAt\":1}",
                ENTRY("y", "u", ""),
                ENTRY("x", "", ""),
                ENTRY("x", "u", ",\"scope\":{\"kind\":\"none\"}"),
                ENTRY("x", "u", ",\"scope\":{\"kind\":\"custom\"}"),
                ENTRY("x", "u", ",\"schema\":1"),
                ENTRY("x", "u", ",\"sandboxId\":\"x\""),
                "[]",
                "\"x\"",
        };

        for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
                struct registry_load load;
                struct registry_world w;
                char id[64], damaged[128];

                check_case(entries[i]);
                rw_open(&w);
                rw_put(&w, RECORD "x", entries[i]);
                rw_put(&w, INDEX "o:p:u", "\"x\"");
                rw_restart(&w);
                check_i64_eq(rw_load(&w, w.r, &load, damaged), 0);
                check_z_eq(damaged, RECORD "x");
                check_i64_eq(rw_get(&w, "x", id), E(NOT_FOUND));
                check_i64_eq(rw_find(&w, "u", id), E(NOT_FOUND));
                check_i64_eq(rw_register(&w, &(struct sample){ .id = "a", .bound = true }), 0);
                check_text(&w, RECORD "x", entries[i]);
                rw_close(&w);
        }
}

/* --- keys without a scope --- */

/* Such a key is a hint like any other, but not ours to remove. */
static void an_older_index_that_means_nothing_is_passed_over(void **state)
{
        static const struct {
                const char *name, *value, *entry;
        } cases[] = {
                { "points to nothing", "\"x\"", NULL },
                { "is no id", "x", NULL },
                { "entry of another owner", "\"x\"", ENTRY("x", "v", "") },
                { "entry of another scope", "\"x\"",
                  ENTRY("x", "u", ",\"scope\":{\"kind\":\"custom\",\"key\":\"k\"}") },
                { "itself", "\"a\"", NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct registry_world w;
                char id[64];

                check_case(cases[i].name);
                rw_open(&w);
                if (cases[i].entry)
                        rw_put(&w, RECORD "x", cases[i].entry);
                rw_put(&w, INDEX "o:p:u", cases[i].value);
                check_i64_eq(rw_find(&w, "u", id), E(NOT_FOUND));
                check_i64_eq(rw_register(&w, &(struct sample){ .id = "a", .bound = true }), 0);
                check_i64_eq(rw_find(&w, "u", id), 0);
                check_z_eq(id, "a");
                check_text(&w, INDEX "o:p:u:shared-project-user", "\"a\"");
                check_i64_eq(rw_unregister(&w, "a"), 0);
                check_text(&w, INDEX "o:p:u", cases[i].value);
                check_i64_eq(rw_find(&w, "u", id), E(NOT_FOUND));
                rw_close(&w);
        }
}

static void an_older_index_counts_behind_a_stale_one(void **state)
{
        struct registry_world w;
        char id[64];

        rw_open(&w);
        rw_put(&w, RECORD "x", ENTRY("x", "u", ""));
        rw_put(&w, RECORD "y", ENTRY("y", "v", ""));
        rw_put(&w, INDEX "o:p:u", "\"x\"");
        rw_put(&w, INDEX "o:p:u:shared-project-user", "\"y\"");
        check_i64_eq(rw_find(&w, "u", id), 0);
        check_z_eq(id, "x");
        check_false(rw_has(&w, INDEX "o:p:u:shared-project-user"));
        rw_close(&w);
}

static void store_failures_are_reported(void **state)
{
        struct registry_world w;
        char id[64];

        rw_open(&w);
        for (unsigned n = 1; n <= 2; n++) {
                rw_plan(&w, &(struct store_failing_plan){ STORE_FAILING_FROM, .n = n });
                check_i64_eq(rw_find(&w, "u", id), E(UNAVAILABLE));
                rw_plan(&w, &(struct store_failing_plan){ STORE_FAILING_FROM, .n = n });
                check_i64_eq(rw_register(&w, &(struct sample){ .id = "a", .bound = true }),
                             E(UNAVAILABLE));
        }
        rw_plan(&w, &(struct store_failing_plan){ 0 });
        rw_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(keys_are_puristas),
                cmocka_unit_test(a_long_owner_has_no_older_key),
                cmocka_unit_test(an_index_holds_a_json_text),
                cmocka_unit_test(purista_finds_ours),
                cmocka_unit_test(an_owner_who_has_one_there_gets_none_here),
                cmocka_unit_test(what_is_no_entry_is_damaged),
                cmocka_unit_test(an_older_index_that_means_nothing_is_passed_over),
                cmocka_unit_test(an_older_index_counts_behind_a_stale_one),
                cmocka_unit_test(store_failures_are_reported),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
