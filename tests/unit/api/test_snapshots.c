/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/lib/api_world.h"

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

#define check_body_has(text)                                                       \
        do {                                                                       \
                if (!memmem(w.body.p, w.body.n, (text), strlen(text)))             \
                        CHECK_FAIL_("no '%s' in '%.*s'", (text), STR_ARG(w.body)); \
        } while (0)

static void request(const char *key, const char *method, const char *target, const char *body,
                    int status, const char *has)
{
        check_case(api_path(method, " ", target));
        api_request(&w, key, method, target, body);
        check_i64_eq(w.status, status);
        check_body_has(has);
}

/* Makes one, waits until it is Ready, and returns its id. */
static void create_snapshot(const char *sandbox, const char *body, char ret[static 64])
{
        struct str location;

        api_request(&w, KEY_ACME, "POST", api_path("/v1/sandboxes/", sandbox, "/snapshots"), body);
        check_i64_eq(w.status, 202);
        check_body_has("\"state\":\"Creating\"");
        location = api_header(&w, "Location");
        check_true(str_starts_with(location, STR("/v1/snapshots/")));
        (void) snprintf(ret, 64, "%.*s", STR_ARG(str_skip(location, strlen("/v1/snapshots/"))));
        service_world_idle(&w.below);
}

static void test_the_life_cycle_of_a_snapshot(void **state)
{
        char sandbox[64], id[64], body[256];

        api_create(&w, KEY_ACME, sandbox);
        create_snapshot(sandbox, "{\"name\":\"first\"}", id);
        request(KEY_ACME, "GET", api_path("/v1/snapshots/", id, ""), NULL, 200,
                "\"state\":\"Ready\"");
        check_body_has("\"name\":\"first\"");
        check_body_has("\"reason\":\"snapshot_ready\"");
        check_body_has("\"createdAt\":\"2023-11-14T22:13:20.000Z\"");
        (void) snprintf(body, sizeof(body), "{\"snapshotId\":\"%s\",\"resourceLimits\":{}}", id);
        request(KEY_ACME, "POST", "/v1/sandboxes", body, 202, "\"Running\"");
        request(KEY_ACME, "DELETE", api_path("/v1/snapshots/", id, ""), NULL, 409,
                "\"SNAPSHOT::DELETE_CONFLICT\"");
        request(KEY_ACME, "DELETE", api_path("/v1/sandboxes/", sandbox, ""), NULL, 204, "");
        /* It has no name, and no body made it. */
        api_create(&w, KEY_ACME, sandbox);
        create_snapshot(sandbox, NULL, id);
        check_true(!memmem(w.body.p, w.body.n, "\"name\"", 6));
        request(KEY_ACME, "DELETE", api_path("/v1/snapshots/", id, ""), NULL, 204, "");
        request(KEY_ACME, "DELETE", api_path("/v1/snapshots/", id, ""), NULL, 404,
                "\"SNAPSHOT::NOT_FOUND\"");
}

static void test_lists(void **state)
{
        char sandbox[64], other[64], a[64], b[64], c[64];

        api_create(&w, KEY_ACME, sandbox);
        api_create(&w, KEY_ACME, other);
        create_snapshot(sandbox, "{\"name\":\"x\"}", a);
        create_snapshot(sandbox, "{\"name\":\"y z\"}", b);
        create_snapshot(other, "{}", c);
        request(KEY_ACME, "GET", "/v1/snapshots", NULL, 200, "\"totalItems\":3");
        request(KEY_ACME, "GET", "/snapshots?pageSize=2&page=2", NULL, 200,
                "\"pagination\":{\"page\":2,\"pageSize\":2,\"totalItems\":3,\"totalPages\":2,"
                "\"hasNextPage\":false}");
        request(KEY_ACME, "GET", api_path("/v1/snapshots?sandboxId=", sandbox, ""), NULL, 200,
                "\"totalItems\":2");
        request(KEY_ACME, "GET", "/v1/snapshots?name=y%20z", NULL, 200, "\"totalItems\":1");
        check_body_has(b);
        request(KEY_ACME, "GET", "/v1/snapshots?state=ready&state=Failed", NULL, 200,
                "\"totalItems\":3");
        request(KEY_ACME, "GET", "/v1/snapshots?state=Deleting", NULL, 200, "\"items\":[]");
        request(KEY_ACME, "GET", "/v1/snapshots?state=none", NULL, 200, "\"items\":[]");
        request(KEY_ACME, "GET", "/v1/snapshots?page=0", NULL, 422, "\"loc\":[\"query\",\"page\"]");
        request(KEY_OTHER, "GET", "/v1/snapshots", NULL, 200, "\"items\":[]");
        request(KEY_ADMIN, "GET", "/v1/snapshots", NULL, 200, "\"totalItems\":3");
}

static void test_refusals(void **state)
{
        char sandbox[64], id[64], body[256];
        char of_sandbox[128];

        api_create(&w, KEY_ACME, sandbox);
        create_snapshot(sandbox, "{}", id);
        (void) snprintf(of_sandbox, sizeof(of_sandbox), "/v1/sandboxes/%s/snapshots", sandbox);
        request(KEY_ACME, "POST", "/v1/sandboxes/none/snapshots", "{}", 404,
                "\"DOCKER::SANDBOX_NOT_FOUND\"");
        request(KEY_OTHER, "POST", of_sandbox, "{}", 404, "\"DOCKER::SANDBOX_NOT_FOUND\"");
        request(KEY_READ, "POST", of_sandbox, "{}", 403, "");
        request(KEY_ACME, "POST", of_sandbox, "{\"name\":\"\"}", 422, "[\"body\",\"name\"]");
        request(KEY_ACME, "POST", of_sandbox, "{\"name\":\"a\\u0007\"}", 422,
                "[\"body\",\"name\"]");
        request(KEY_ACME, "POST", of_sandbox, "[]", 422, "");
        request(KEY_OTHER, "GET", api_path("/v1/snapshots/", id, ""), NULL, 404,
                "\"SNAPSHOT::NOT_FOUND\"");
        request(KEY_OTHER, "DELETE", api_path("/v1/snapshots/", id, ""), NULL, 404,
                "\"SNAPSHOT::NOT_FOUND\"");
        (void) snprintf(body, sizeof(body), "{\"snapshotId\":\"%s\",\"resourceLimits\":{}}", id);
        request(KEY_OTHER, "POST", "/v1/sandboxes", body, 404, "\"SNAPSHOT::NOT_FOUND\"");
        request(KEY_ACME, "POST", "/v1/sandboxes", "{\"snapshotId\":\"no\",\"resourceLimits\":{}}",
                404, "\"SNAPSHOT::NOT_FOUND\"");
        (void) snprintf(body, sizeof(body),
                        "{\"snapshotId\":\"%s\",\"resourceLimits\":{},\"extensions\":{"
                        "\"hutch.driver\":\"docker\"}}",
                        id);
        request(KEY_ACME, "POST", "/v1/sandboxes", body, 409,
                "\"SNAPSHOT::INVALID_RESTORE_CONFIG\"");
        request(KEY_ACME, "POST", api_path("/v1/sandboxes/", sandbox, "/pause"), NULL, 202, "");
        request(KEY_ACME, "POST", of_sandbox, "{}", 409, "\"SNAPSHOT::INVALID_SOURCE_STATE\"");
}

static void test_while_it_is_being_created(void **state)
{
        char sandbox[64], body[256];
        struct str id;
        char path[128];

        api_create(&w, KEY_ACME, sandbox);
        driver_fake_hold(w.below.runtime, 1U << DRIVER_CALL_SNAPSHOT);
        api_request(&w, KEY_ACME, "POST", api_path("/v1/sandboxes/", sandbox, "/snapshots"), NULL);
        check_i64_eq(w.status, 202);
        id = str_skip(api_header(&w, "Location"), strlen("/v1/snapshots/"));
        (void) snprintf(body, sizeof(body), "{\"snapshotId\":\"%.*s\",\"resourceLimits\":{}}",
                        STR_ARG(id));
        (void) snprintf(path, sizeof(path), "/v1/snapshots/%.*s", STR_ARG(id));
        request(KEY_ACME, "POST", "/v1/sandboxes", body, 409, "\"SNAPSHOT::NOT_READY\"");
        request(KEY_ACME, "DELETE", path, NULL, 409, "\"SNAPSHOT::INVALID_STATE\"");
        request(KEY_ACME, "GET", path, NULL, 200, "\"reason\":\"snapshot_accepted\"");
        driver_fake_release(w.below.runtime);
        service_world_idle(&w.below);
        request(KEY_ACME, "GET", path, NULL, 200, "\"Ready\"");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_the_life_cycle_of_a_snapshot),
                TEST(test_lists),
                TEST(test_refusals),
                TEST(test_while_it_is_being_created),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
