/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/lib/api_world.h"

static size_t count_keys(const struct keyring *kr)
{
        size_t n = 0;

        for (const struct api_key *k = keyring_next(kr, STR_NULL); k; k = keyring_next(kr, k->id))
                n++;
        return n;
}

static struct api_world w;

static int set_up(void **state)
{
        api_world_open(&w);
        api_world_add_keys(&w);
        return 0;
}

static int tear_down(void **state)
{
        api_world_close(&w);
        return 0;
}

static bool body_has(const char *text)
{
        return memmem(w.body.p, w.body.n, text, strlen(text)) != NULL;
}

/* The value of a member of the last response. */
static const char *member(const char *name, char ret[static 128])
{
        char begins[64];
        const char *at;
        int n = snprintf(begins, sizeof(begins), "\"%s\":\"", name);

        at = memmem(w.body.p, w.body.n, begins, (size_t) n);
        check_true(at != NULL);
        (void) snprintf(ret, 128, "%.*s", (int) strcspn(at + n, "\""), at + n);
        return ret;
}

static void test_a_created_key_is_valid(void **state)
{
        char key[128], id[128], time[TIME_RFC3339_MAX], expected[512];

        (void) time_to_rfc3339(w.below.clock.wall_now, time);
        api_request(
                &w, KEY_ADMIN, "POST", "/v1/keys",
                "{\"name\":\"ci\",\"tenant\":\"acme\",\"principal\":\"bot\",\"role\":\"user\"}");
        check_i64_eq(w.status, 201);
        check_str_eq(api_header(&w, "Cache-Control"), "no-store");
        (void) member("key", key);
        (void) member("id", id);
        check_true(str_starts_with(str_from(key), STR(KEY_PREFIX)));
        check_u64_eq(strlen(key), 6 + 64);
        check_u64_eq(strlen(id), 10);
        (void) snprintf(expected, sizeof(expected),
                        "{\"id\":\"%s\",\"name\":\"ci\",\"tenant\":\"acme\",\"principal\":\"bot\","
                        "\"role\":\"user\",\"createdAt\":\"%s\",\"key\":\"%s\"}",
                        id, time, key);
        check_str_eq(w.body, expected);

        api_request(&w, key, "GET", "/v1/sandboxes", NULL);
        check_i64_eq(w.status, 200);
        api_request(&w, KEY_ADMIN, "GET", "/v1/keys", NULL);
        check_i64_eq(w.status, 200);
        check_true(body_has(id));
        check_false(body_has(key));
        check_false(body_has(key + 6));
        check_true(
                body_has("{\"id\":\"k-00000001\",\"name\":\"\",\"tenant\":\"acme\",\"principal\":"
                         "\"acme-key\",\"role\":\"user\",\"configured\":true}"));

        api_request(&w, KEY_ADMIN, "DELETE", api_path("/v1/keys/", id, ""), NULL);
        check_i64_eq(w.status, 204);
        api_request(&w, key, "GET", "/v1/sandboxes", NULL);
        check_i64_eq(w.status, 401);
        api_request(&w, KEY_ADMIN, "DELETE", api_path("/v1/keys/", id, ""), NULL);
        check_i64_eq(w.status, 404);
        check_true(body_has("KEY::NOT_FOUND"));
}

static void test_defaults_are_the_callers(void **state)
{
        api_request(&w, KEY_ADMIN, "POST", "/v1/keys", "{\"role\":\"read\"}");
        check_i64_eq(w.status, 201);
        check_true(body_has("\"name\":\"\",\"tenant\":\"ops\",\"principal\":\"admin-key\",\"role\":"
                            "\"read\""));
}

static void test_requests_are_checked(void **state)
{
        static const char *const bad[] = {
                "{}",
                "{\"role\":\"root\"}",
                "{\"role\":\"user\",\"tenant\":\"\"}",
                "{\"role\":\"user\",\"tenant\":\"a\\nb\"}",
                "{\"role\":\"user\",\"principal\":7}",
                "{\"role\":\"user\",\"name\":\"\\u0007\"}",
        };

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                check_case(bad[i]);
                api_request(&w, KEY_ADMIN, "POST", "/v1/keys", bad[i]);
                check_i64_eq(w.status, 422);
        }
        check_u64_eq(count_keys(w.keyring), 4);
}

static void test_only_admins_see_keys(void **state)
{
        static const struct {
                const char *method, *target, *body;
        } routes[] = {
                { "GET", "/v1/keys", NULL },
                { "POST", "/v1/keys", "{\"role\":\"admin\"}" },
                { "DELETE", "/v1/keys/k-00000001", NULL },
        };
        static const struct {
                const char *key;
                int status;
        } caller[] = { { NULL, 401 }, { "wrong", 401 }, { KEY_ACME, 403 }, { KEY_READ, 403 } };

        for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
                for (size_t j = 0; j < ARRAY_SIZE(caller); j++) {
                        api_request(&w, caller[j].key, routes[i].method, routes[i].target,
                                    routes[i].body);
                        check_i64_eq(w.status, caller[j].status);
                }
        check_u64_eq(count_keys(w.keyring), 4);
}

static void test_keys_of_the_configuration_stay(void **state)
{
        api_request(&w, KEY_ADMIN, "DELETE", "/v1/keys/k-00000001", NULL);
        check_i64_eq(w.status, 403);
        api_request(&w, KEY_ACME, "GET", "/v1/sandboxes", NULL);
        check_i64_eq(w.status, 200);
}

static int set_up_open(void **state)
{
        api_world_open(&w);
        return 0;
}

static void test_the_first_key_is_an_administrators(void **state)
{
        api_request(&w, NULL, "POST", "/v1/keys", "{\"role\":\"user\"}");
        check_i64_eq(w.status, 409);
        api_request(&w, NULL, "GET", "/v1/keys", NULL);
        check_i64_eq(w.status, 200);
}

/* A server on 127.0.0.1 may have the world in front of it, by a proxy. */
static void test_the_end_of_the_last_key_opens_nothing(void **state)
{
        char key[128], id[128];

        api_request(&w, NULL, "POST", "/v1/keys", "{\"role\":\"admin\"}");
        check_i64_eq(w.status, 201);
        (void) member("key", key);
        (void) member("id", id);
        api_request(&w, NULL, "GET", "/v1/sandboxes", NULL);
        check_i64_eq(w.status, 401);
        api_request(&w, key, "DELETE", api_path("/v1/keys/", id, ""), NULL);
        check_i64_eq(w.status, 204);
        check_u64_eq(count_keys(w.keyring), 0);
        api_request(&w, NULL, "GET", "/v1/sandboxes", NULL);
        check_i64_eq(w.status, 401);
        api_request(&w, NULL, "GET", "/sandboxes/x/proxy/80", NULL);
        check_i64_eq(w.status, 401);
}

static void test_removing_the_configured_keys_locks_the_api(void **state)
{
        struct err e;

        check_i64_eq(keyring_configure(w.keyring, NULL, 0, &e), 0);
        check_u64_eq(count_keys(w.keyring), 0);
        api_request(&w, NULL, "GET", "/v1/sandboxes", NULL);
        check_i64_eq(w.status, 401);
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                test(test_a_created_key_is_valid),
                test(test_defaults_are_the_callers),
                test(test_requests_are_checked),
                test(test_only_admins_see_keys),
                test(test_keys_of_the_configuration_stay),
                cmocka_unit_test_setup_teardown(test_the_first_key_is_an_administrators,
                                                set_up_open, tear_down),
                cmocka_unit_test_setup_teardown(test_the_end_of_the_last_key_opens_nothing,
                                                set_up_open, tear_down),
                test(test_removing_the_configured_keys_locks_the_api),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
