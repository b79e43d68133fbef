/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/keyring.h"

#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/registry_world.h"

#define E(code) ERR_RETURN(ERR_##code)

/* A key whose text is the id in capitals: "k-1" is opened by "K-1". */
static size_t count_keys(const struct keyring *kr)
{
        size_t n = 0;

        for (const struct api_key *k = keyring_next(kr, STR_NULL); k; k = keyring_next(kr, k->id))
                n++;
        return n;
}

static struct api_key key(const char *id)
{
        struct api_key k = {
                .id = str_from(id),
                .name = STR("for \"tests\""),
                .tenant = STR("t"),
                .principal = STR("p"),
                .role = ROLE_USER,
                .created_ms = 5,
        };
        char text[64];
        size_t n = strlen(id);

        for (size_t i = 0; i < n; i++)
                text[i] = (char) (id[i] == 'k' ? 'K' : id[i]);
        sha256(text, n, k.digest);
        return k;
}

/* --- calls that wait --- */

struct waiting {
        union {
                struct registry_req req;
                struct keyring_load load;
                struct keyring_add add;
                struct keyring_remove remove;
        };
        bool done;
        int result;
};

static void waiting_done(struct op *op, int result)
{
        struct waiting *x = container_of(op, struct waiting, req.op);

        x->result = result;
        x->done = true;
}

static int await(struct registry_world *w, struct waiting *x)
{
        check_false(x->done);
        world_until(&w->store, x->done);
        return x->result;
}

static int add_key(struct registry_world *w, struct keyring *kr, const struct api_key *k)
{
        struct waiting x = { 0 };

        op_init(&x.req.op, waiting_done);
        keyring_add(kr, &x.add, k);
        return await(w, &x);
}

static int add(struct registry_world *w, struct keyring *kr, const char *id)
{
        struct api_key k = key(id);

        return add_key(w, kr, &k);
}

static int drop(struct registry_world *w, struct keyring *kr, const char *id)
{
        struct waiting x = { 0 };

        op_init(&x.req.op, waiting_done);
        keyring_remove(kr, &x.remove, str_from(id));
        return await(w, &x);
}

static int load(struct registry_world *w, struct keyring *kr, size_t *loaded, size_t *damaged)
{
        struct waiting x = { 0 };

        op_init(&x.req.op, waiting_done);
        keyring_load(kr, &x.load);
        (void) await(w, &x);
        *loaded = x.load.loaded;
        *damaged = x.load.damaged;
        return x.result;
}

static struct keyring *open_ring(struct registry_world *w)
{
        return keyring_new(&w->store.loop, w->store.store);
}

static bool opens(const struct keyring *kr, const char *text)
{
        return keyring_find(kr, str_from(text)) != NULL;
}

/* --- tests --- */

static void a_key_opens_until_it_is_removed(void **state)
{
        const struct api_key *k;
        struct registry_world w;
        struct keyring *kr;

        rw_open(&w);
        kr = open_ring(&w);
        check_false(opens(kr, "K-1"));
        check_true(keyring_find(kr, STR_NULL) == NULL);
        check_i64_eq(add(&w, kr, "k-1"), 0);
        k = keyring_find(kr, STR("K-1"));
        check_true(k != NULL);
        check_str_eq(k->id, "k-1");
        check_str_eq(k->name, "for \"tests\"");
        check_str_eq(k->tenant, "t");
        check_str_eq(k->principal, "p");
        check_i64_eq(k->role, ROLE_USER);
        check_i64_eq(k->created_ms, 5);
        check_false(k->configured);
        check_false(opens(kr, "k-1"));
        check_false(opens(kr, ""));
        check_u64_eq(count_keys(kr), 1);

        check_i64_eq(add(&w, kr, "k-1"), E(EXISTS));
        check_i64_eq(drop(&w, kr, "k-2"), E(NOT_FOUND));
        check_i64_eq(drop(&w, kr, "k-1"), 0);
        check_false(opens(kr, "K-1"));
        check_u64_eq(count_keys(kr), 0);
        check_u64_eq(rw_stored(&w, ""), 0);
        check_i64_eq(drop(&w, kr, "k-1"), E(NOT_FOUND));
        keyring_free(kr);
        rw_close(&w);
}

/* What the store holds is of no use for authentication. */
static void the_store_knows_digests_only(void **state)
{
        struct registry_world w;
        struct keyring *kr;
        struct buf text;
        char name[sizeof("hutch:key:") + 64] = "hutch:key:";
        struct api_key k = key("k-1");

        rw_open(&w);
        kr = open_ring(&w);
        check_i64_eq(add(&w, kr, "k-1"), 0);
        hex_encode(name + strlen("hutch:key:"), k.digest, sizeof(k.digest));
        buf_init(&text, STORE_VALUE_MAX);
        rw_text(&w, name, &text);
        check_str_eq(buf_str(&text),
                     "{\"id\":\"k-1\",\"name\":\"for \\\"tests\\\"\",\"tenant\":\"t\","
                     "\"principal\":\"p\",\"role\":\"user\",\"createdAt\":5}");
        buf_done(&text);
        keyring_free(kr);
        rw_close(&w);
}

static void keys_survive_and_are_listed_in_order(void **state)
{
        enum { COUNT = 250 }; /* more than a page */
        size_t loaded, damaged, n = 0;
        struct registry_world w;
        struct keyring *kr;

        rw_open(&w);
        kr = open_ring(&w);
        for (unsigned i = 0; i < COUNT; i++) {
                char id[16];

                (void) snprintf(id, sizeof(id), "k-%08x", i * 7919 % COUNT);
                check_i64_eq(add(&w, kr, id), 0);
        }
        keyring_free(kr);
        rw_put(&w, "hutch:key:0123", "{}");
        rw_put(&w, "hutch:key:00000000000000000000000000000000000000000000000000000000000000zz",
               "{}");
        rw_put(&w, "hutch:key:0000000000000000000000000000000000000000000000000000000000000000",
               "{}");
        kr = open_ring(&w);
        check_i64_eq(load(&w, kr, &loaded, &damaged), 0);
        check_u64_eq(loaded, COUNT);
        check_u64_eq(damaged, 3);
        for (const struct api_key *k = keyring_next(kr, STR_NULL); k; k = keyring_next(kr, k->id)) {
                char id[16];

                (void) snprintf(id, sizeof(id), "k-%08x", (unsigned) n++);
                check_str_eq(k->id, id);
        }
        check_u64_eq(n, COUNT);
        check_true(opens(kr, "K-00000011"));
        rw_plan(&w, &(struct store_failing_plan){ STORE_FAILING_FROM, .n = 2 });
        keyring_free(kr);
        kr = open_ring(&w);
        check_i64_eq(load(&w, kr, &loaded, &damaged), E(UNAVAILABLE));
        keyring_free(kr);
        rw_close(&w);
}

static void the_configuration_is_replaced_completely(void **state)
{
        struct api_key first[] = { key("k-1"), key("k-2") }, second[] = { key("k-3") };
        struct api_key twice_id[] = { key("k-4"), key("k-4") }, twice_key[2], stored[1], bad[1];
        struct registry_world w;
        struct keyring *kr;
        struct err e = { 0 };

        twice_id[1].digest[0] ^= 1;
        twice_key[0] = twice_key[1] = key("k-4");
        twice_key[1].id = STR("k-5");
        stored[0] = key("k-9");
        bad[0] = key("k-8");
        bad[0].tenant = STR_NULL;

        rw_open(&w);
        kr = open_ring(&w);
        check_i64_eq(add(&w, kr, "k-9"), 0);
        check_i64_eq(keyring_configure(kr, first, 2, &e), 0);
        check_true(opens(kr, "K-1") && opens(kr, "K-2") && opens(kr, "K-9"));
        check_true(keyring_find(kr, STR("K-1"))->configured);
        check_u64_eq(count_keys(kr), 3);
        check_u64_eq(rw_stored(&w, "hutch:key:"), 1);
        check_i64_eq(drop(&w, kr, "k-1"), E(FORBIDDEN));
        check_i64_eq(add(&w, kr, "k-1"), E(EXISTS));

        check_i64_eq(keyring_configure(kr, twice_id, 2, &e), E(EXISTS));
        check_i64_eq(keyring_configure(kr, twice_key, 2, &e), E(EXISTS));
        check_i64_eq(keyring_configure(kr, stored, 1, &e), E(EXISTS));
        check_i64_eq(keyring_configure(kr, bad, 1, &e), E(INVALID));
        check_true(opens(kr, "K-1") && opens(kr, "K-2") && !opens(kr, "K-4"));

        check_i64_eq(keyring_configure(kr, first, 2, &e), 0); /* the same again */
        check_i64_eq(keyring_configure(kr, second, 1, &e), 0);
        check_true(!opens(kr, "K-1") && !opens(kr, "K-2") && opens(kr, "K-3") && opens(kr, "K-9"));
        check_i64_eq(keyring_configure(kr, NULL, 0, &e), 0);
        check_u64_eq(count_keys(kr), 1);
        keyring_free(kr);
        rw_close(&w);
}

/* A ring without a key is a door without a lock only if it never had one. */
static void once_locked_it_stays_so(void **state)
{
        struct api_key configured[] = { key("k-1") };
        struct registry_world w;
        size_t loaded, damaged;
        struct keyring *kr;
        struct err e = { 0 };

        rw_open(&w);
        kr = open_ring(&w);
        check_i64_eq(load(&w, kr, &loaded, &damaged), 0);
        check_false(keyring_is_enforced(kr));
        check_i64_eq(keyring_configure(kr, configured, 1, &e), 0);
        check_i64_eq(keyring_configure(kr, NULL, 0, &e), 0);
        check_true(keyring_is_enforced(kr));
        keyring_free(kr);

        kr = open_ring(&w);
        check_i64_eq(add(&w, kr, "k-1"), 0);
        check_str_eq(keyring_get(kr, STR("k-1"))->id, "k-1");
        check_i64_eq(drop(&w, kr, "k-1"), 0);
        check_true(!keyring_get(kr, STR("k-1")) && keyring_is_enforced(kr));
        keyring_free(kr);

        rw_put(&w, "hutch:key:0123", "{}");
        kr = open_ring(&w);
        check_i64_eq(load(&w, kr, &loaded, &damaged), 0);
        check_u64_eq(damaged, 1);
        check_true(keyring_is_enforced(kr));
        keyring_free(kr);
        rw_close(&w);
}

static void bad_keys_are_refused(void **state)
{
        struct api_key cases[] = { key("k-1"), key("k-1"), key("k-1"), key("k-1"), key("k-1") };
        struct registry_world w;
        struct keyring *kr;

        cases[0].id = STR("");
        cases[1].tenant = STR_NULL;
        cases[2].principal = STR("a\nb");
        cases[3].role = ROLE_MAX_;
        cases[4].created_ms = -1;
        rw_open(&w);
        kr = open_ring(&w);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check_i64_eq(add_key(&w, kr, &cases[i]), E(INVALID));
        check_u64_eq(rw_stored(&w, ""), 0);
        keyring_free(kr);
        rw_close(&w);
}

static void a_failed_add_opens_nothing(void **state)
{
        struct registry_world w;
        struct keyring *kr;

        rw_open(&w);
        kr = open_ring(&w);
        rw_plan(&w, &(struct store_failing_plan){ STORE_FAILING_FROM, .n = 1 });
        check_i64_eq(add(&w, kr, "k-1"), E(UNAVAILABLE));
        check_false(opens(kr, "K-1"));
        check_u64_eq(count_keys(kr), 0);
        check_case("a lost answer");
        rw_plan(&w, &(struct store_failing_plan){ STORE_FAILING_NTH, .n = 1, .after = true });
        check_i64_eq(add(&w, kr, "k-1"), 0);
        check_true(opens(kr, "K-1"));
        keyring_free(kr);
        rw_close(&w);
}

static void a_removed_key_opens_nothing_whatever_the_store_says(void **state)
{
        struct waiting x = { 0 }, y = { 0 };
        struct registry_world w;
        struct keyring *kr;

        rw_open(&w);
        kr = open_ring(&w);
        check_i64_eq(add(&w, kr, "k-1"), 0);
        rw_plan(&w, &(struct store_failing_plan){ STORE_FAILING_FROM, .n = 1 });
        op_init(&x.req.op, waiting_done);
        op_init(&y.req.op, waiting_done);
        keyring_remove(kr, &x.remove, STR("k-1"));
        check_false(opens(kr, "K-1")); /* before the store was asked */
        keyring_remove(kr, &y.remove, STR("k-1"));
        check_false(x.done || y.done);
        world_until(&w.store, x.done && y.done);
        check_i64_eq(y.result, E(CONFLICT));
        check_i64_eq(x.result, E(UNAVAILABLE));
        check_false(opens(kr, "K-1"));
        check_u64_eq(count_keys(kr), 1); /* so that people see that it is still there */
        rw_plan(&w, &(struct store_failing_plan){ STORE_FAILING_NTH, .n = 1, .writes_only = true });
        check_i64_eq(drop(&w, kr, "k-1"),
                     E(UNAVAILABLE)); /* it is there, and that is no conflict */
        rw_plan(&w, &(struct store_failing_plan){ 0 });
        check_i64_eq(drop(&w, kr, "k-1"), 0);
        check_u64_eq(count_keys(kr), 0);
        check_u64_eq(rw_stored(&w, ""), 0);
        keyring_free(kr);
        rw_close(&w);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_key_opens_until_it_is_removed),
                cmocka_unit_test(the_store_knows_digests_only),
                cmocka_unit_test(keys_survive_and_are_listed_in_order),
                cmocka_unit_test(the_configuration_is_replaced_completely),
                cmocka_unit_test(once_locked_it_stays_so),
                cmocka_unit_test(bad_keys_are_refused),
                cmocka_unit_test(a_failed_add_opens_nothing),
                cmocka_unit_test(a_removed_key_opens_nothing_whatever_the_store_says),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
