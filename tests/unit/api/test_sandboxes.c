/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/lib/api_world.h"
#include "tests/lib/ids.h"

static struct api_world w;

static int set_up(void **state)
{
        api_world_open(&w);
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

#define check_body_has(text)                                                       \
        do {                                                                       \
                if (!body_has(text))                                               \
                        CHECK_FAIL_("no '%s' in '%.*s'", (text), STR_ARG(w.body)); \
        } while (0)

#define NOT_FOUND \
        "{\"code\":\"DOCKER::SANDBOX_NOT_FOUND\",\"message\":\"there is no such sandbox\"}"

/* --- the whole life, bare and under /v1 --- */

static void walk_through_a_life(const char *prefix)
{
        char id[64], at[128];

        api_request(&w, NULL, "POST", api_path(prefix, "/sandboxes", ""), CREATE_BODY);
        check_i64_eq(w.status, 202);
        (void) snprintf(id, sizeof(id), "%.*s", ID_UUID_LEN, w.body.p + 7);
        check_true(id_is_uuid(str_from(id)));
        (void) snprintf(at, sizeof(at), "%s/sandboxes/%s", prefix, id);
        check_body_has("\"status\":{\"state\":\"Running\"");
        check_body_has("\"entrypoint\":[\"sleep\",\"1\"]");
        check_false(body_has("\"image\""));

        api_request(&w, NULL, "GET", at, NULL);
        check_i64_eq(w.status, 200);
        check_body_has("\"image\":{\"uri\":\"debian:12\"}");

        api_request(&w, NULL, "POST", api_path(at, "/pause", ""), NULL);
        check_i64_eq(w.status, 202);
        check_u64_eq(w.body.n, 0);
        api_request(&w, NULL, "GET", at, NULL);
        check_body_has("\"state\":\"Paused\"");
        api_request(&w, NULL, "POST", api_path(at, "/pause", ""), NULL);
        check_i64_eq(w.status, 409);
        check_body_has("\"code\":\"DOCKER::SANDBOX_NOT_RUNNING\"");

        api_request(&w, NULL, "POST", api_path(at, "/resume", ""), NULL);
        check_i64_eq(w.status, 202);
        check_u64_eq(w.body.n, 0);
        api_request(&w, NULL, "POST", api_path(at, "/resume", ""), NULL);
        check_i64_eq(w.status, 409);
        check_body_has("\"code\":\"DOCKER::SANDBOX_NOT_PAUSED\"");

        api_request(&w, NULL, "DELETE", at, NULL);
        check_i64_eq(w.status, 204);
        check_u64_eq(w.body.n, 0);
        api_request(&w, NULL, "GET", at, NULL);
        check_i64_eq(w.status, 404);
        check_str_eq(w.body, NOT_FOUND);
        api_request(&w, NULL, "DELETE", at, NULL);
        check_i64_eq(w.status, 404);
        check_str_eq(w.body, NOT_FOUND);
}

static void test_a_life_cycle_on_bare_paths_and_under_v1(void **state)
{
        check_case("bare");
        walk_through_a_life("");
        check_case("/v1");
        walk_through_a_life("/v1");
}

/* --- create --- */

static void test_create_responds_exactly(void **state)
{
        char id[64], expected[1024], created[TIME_RFC3339_MAX], expires[TIME_RFC3339_MAX];
        usec_t now = w.below.clock.wall_now;

        (void) time_to_rfc3339(now, created);
        (void) time_to_rfc3339(now + 600 * USEC_PER_SEC, expires);
        api_request(
                &w, NULL, "POST", "/v1/sandboxes",
                "{\"image\":{\"uri\":\"debian:12\"},\"entrypoint\":[\"a\",\"b\"],\"timeout\":600,"
                "\"resource_limits\":{\"cpu\":\"1\"},\"metadata\":{\"team\":\"x\"},"
                "\"env\":{\"TOKEN\":\"s3cret\"},"
                "\"extensions\":{\"opensandbox.extensions.k\":\"v\","
                "\"access.renew.extend.seconds\":\"300\"}}");
        check_i64_eq(w.status, 202);
        (void) snprintf(id, sizeof(id), "%.*s", ID_UUID_LEN, w.body.p + 7);
        (void) snprintf(expected, sizeof(expected),
                        "{\"id\":\"%s\",\"status\":{\"state\":\"Running\",\"reason\":"
                        "\"CONTAINER_RUNNING\",\"lastTransitionAt\":\"%s\"},"
                        "\"metadata\":{\"team\":\"x\"},"
                        "\"extensions\":{\"opensandbox.extensions.k\":\"v\"},"
                        "\"entrypoint\":[\"a\",\"b\"],\"expiresAt\":\"%s\",\"expires_at\":\"%s\","
                        "\"createdAt\":\"%s\",\"created_at\":\"%s\"}",
                        id, created, expires, expires, created, created);
        check_str_eq(w.body, expected);
        check_str_eq(api_header(&w, "Content-Type"), "application/json");
        check_true(api_header(&w, "X-Request-ID").n == ID_HEX_LEN);
}

struct refused {
        const char *what;
        const char *body;
        int status;
        const char *response; /* a part of it */
};

static void test_create_refuses(void **state)
{
        static const struct refused cases[] = {
                { "no body", NULL, 422,
                  "{\"detail\":[{\"type\":\"missing\",\"loc\":[\"body\"],\"msg\":\"Field required\"}]}" },
                { "no JSON", "{", 422, "\"type\":\"json_invalid\",\"loc\":[\"body\",1]" },
                { "an array", "[]", 422, "\"loc\":[\"body\"]" },
                { "a key twice", "{\"timeout\":60,\"timeout\":61}", 422,
                  "\"type\":\"json_invalid\"" },
                { "a key and its alias", "{\"resourceLimits\":{},\"resource_limits\":{}}", 422,
                  "resourceLimits" },
                { "a wrong type", "{\"image\":{\"uri\":7}}", 422,
                  "{\"type\":\"string_type\",\"loc\":[\"body\",\"image\",\"uri\"]" },
                { "too short a life",
                  "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"a\"],\"resourceLimits\":{},\"timeout\":59}",
                  422, "{\"type\":\"greater_than_equal\",\"loc\":[\"body\",\"timeout\"]" },
                { "neither image nor snapshot",
                  "{\"entrypoint\":[\"a\"],\"resourceLimits\":{\"cpu\":\"1\"}}", 422,
                  "\"detail\":[" },
                { "no entrypoint", "{\"image\":{\"uri\":\"a\"},\"resourceLimits\":{\"cpu\":\"1\"}}",
                  422, "\"entrypoint\"" },
                { "no limits", "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"a\"]}", 422,
                  "\"resourceLimits\"" },
                { "a bad label",
                  "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"a\"],\"resourceLimits\":{\"cpu\":\"1\"},"
                  "\"metadata\":{\"a b\":\"c\"}}",
                  400, "{\"code\":\"SANDBOX::INVALID_METADATA_LABEL\"" },
                { "a bad quantity",
                  "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"a\"],\"resourceLimits\":{\"cpu\":\"x\"}}",
                  400, "{\"code\":\"SANDBOX::INVALID_PARAMETER\"" },
                { "a pool",
                  "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"a\"],\"resourceLimits\":{\"cpu\":\"1\"},"
                  "\"extensions\":{\"poolRef\":\"p\"}}",
                  400, "{\"code\":\"SANDBOX::UNSUPPORTED_POOL_REF\"" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].what);
                api_request(&w, NULL, "POST", "/sandboxes", cases[i].body);
                check_i64_eq(w.status, cases[i].status);
                check_body_has(cases[i].response);
        }
        check_u64_eq(driver_fake_count(w.below.runtime), 0);
        api_request(&w, NULL, "GET", "/sandboxes", NULL);
        check_body_has("\"totalItems\":0");
}

static void test_a_depth_bomb_is_refused(void **state)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, MiB);
        buf_add_str(&b, STR("{\"extensions\":"));
        for (int i = 0; i < 100000; i++)
                buf_add_char(&b, '[');
        api_request(&w, NULL, "POST", "/sandboxes", buf_str(&b).p);
        check_i64_eq(w.status, 422);
        check_body_has("\"type\":\"json_invalid\"");
}

static void test_too_large_a_body_is_refused(void **state)
{
        scoped(buf_done) struct buf b;
        char *p;

        buf_init(&b, 2 * MiB);
        p = buf_reserve(&b, MiB + 1);
        memset(p, ' ', MiB + 1);
        buf_advance(&b, MiB + 1);
        api_request(&w, NULL, "POST", "/sandboxes", buf_str(&b).p);
        check_i64_eq(w.status, 413);
}

static void test_a_failed_create_is_reported(void **state)
{
        static const struct {
                enum err_code code;
                int status;
                const char *says;
                bool come_back;
        } cases[] = {
                { ERR_UNAVAILABLE, 503, "SANDBOX::UNAVAILABLE", true },
                { ERR_EXHAUSTED, 429, "SANDBOX::QUOTA_EXCEEDED", true },
                { ERR_TIMEOUT, 504, "SANDBOX::TIMEOUT", false },
                { ERR_UNSUPPORTED, 501, "SANDBOX::API_NOT_SUPPORTED", false },
                /* of the runtime, about the image */
                { ERR_NOT_FOUND, 400, "DOCKER::SANDBOX_IMAGE_PULL_FAILED", false },
                { ERR_UNAUTHORIZED, 400, "DOCKER::SANDBOX_IMAGE_PULL_FAILED", false },
                { ERR_FORBIDDEN, 400, "DOCKER::SANDBOX_IMAGE_PULL_FAILED", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                driver_failing_plan(w.below.driver, &(struct driver_failing_plan){
                                                            .when = DRIVER_FAILING_FROM,
                                                            .n = 1,
                                                            .calls = 1U << DRIVER_CALL_CREATE,
                                                            .code = cases[i].code });
                check_case(cases[i].says);
                api_request(&w, NULL, "POST", "/sandboxes", CREATE_BODY);
                check_i64_eq(w.status, cases[i].status);
                check_body_has(cases[i].says);
                check_true((api_header(&w, "Retry-After").p != NULL) == cases[i].come_back);
                service_world_idle(&w.below);
                check_u64_eq(driver_fake_count(w.below.runtime), 0);
        }
}

static void test_a_slow_create_is_pending(void **state)
{
        char at[128];

        driver_fake_hold(w.below.runtime, 1U << DRIVER_CALL_CREATE);
        if (w.has_response)
                http_loopback_done(&w.lb);
        http_loopback_init(&w.lb, w.server);
        w.has_response = true;
        http_loopback_header(&w.lb, STR("Host"), STR("localhost"));
        http_loopback_start(&w.lb, "POST", "/sandboxes", STR(CREATE_BODY));
        service_world_until(&w.below, driver_fake_held(w.below.runtime, DRIVER_CALL_CREATE) == 1);
        check_false(w.lb.ended);
        service_world_advance(&w.below, 11 * USEC_PER_SEC);
        service_world_until(&w.below, w.lb.ended);
        w.body = buf_str(&w.lb.body);
        check_i64_eq(w.lb.status, 202);
        check_body_has("\"state\":\"Pending\"");
        (void) snprintf(at, sizeof(at), "/sandboxes/%.*s", ID_UUID_LEN, w.body.p + 7);
        driver_fake_release(w.below.runtime);
        service_world_idle(&w.below);
        api_request(&w, NULL, "GET", at, NULL);
        check_body_has("\"state\":\"Running\"");
}

/* --- idempotency --- */

#define HEADER(n, v) ((struct http_header){ STR(n), STR(v) })

static void test_the_same_key_gives_the_same_sandbox(void **state)
{
        char first[64];
        char *once;

        api_request_with(&w, NULL, "POST", "/v1/sandboxes", CREATE_BODY,
                         HEADER("Idempotency-Key", "a"));
        check_i64_eq(w.status, 202);
        once = xstrndup_str(w.body);
        (void) snprintf(first, sizeof(first), "%.*s", ID_UUID_LEN, w.body.p + 7);
        api_request_with(&w, NULL, "POST", "/v1/sandboxes", CREATE_BODY,
                         HEADER("Idempotency-Key", "a"));
        check_i64_eq(w.status, 202);
        check_str_eq(w.body, once);
        free(once);
        check_u64_eq(driver_fake_count(w.below.runtime), 1);
        api_request_with(&w, NULL, "POST", "/v1/sandboxes", CREATE_BODY,
                         HEADER("Idempotency-Key", "b"));
        check_i64_eq(w.status, 202);
        check_u64_eq(driver_fake_count(w.below.runtime), 2);
        api_request_with(&w, NULL, "POST", "/v1/sandboxes", CREATE_BODY " ",
                         HEADER("Idempotency-Key", "a"));
        check_i64_eq(w.status, 409);
        check_u64_eq(driver_fake_count(w.below.runtime), 2);
}

static void test_wrong_idempotency_keys_are_refused(void **state)
{
        char long_one[257];
        struct http_header bad[] = { HEADER("Idempotency-Key", ""),
                                     HEADER("Idempotency-Key", "a b"),
                                     HEADER("Idempotency-Key", "a\x7f"),
                                     HEADER("Idempotency-Key", "\xc3\xbc"),
                                     { STR("Idempotency-Key"), str_of(long_one, 256) } };

        memset(long_one, 'x', sizeof(long_one));
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                api_request_with(&w, NULL, "POST", "/sandboxes", CREATE_BODY, bad[i]);
                check_i64_eq(w.status, 400);
                check_body_has("Idempotency-Key");
        }
        check_u64_eq(driver_fake_count(w.below.runtime), 0);
        bad[4].value.n = 255;
        api_request_with(&w, NULL, "POST", "/sandboxes", CREATE_BODY, bad[4]);
        check_i64_eq(w.status, 202);
}

/* --- quotas --- */

static void test_over_a_quota_is_429_with_a_time(void **state)
{
        struct service_limits limits = { .each = { .sandboxes = 1 } };
        char id[64];
        struct err e;

        check_i64_eq(service_set_limits(w.below.service, &limits, &e), 0);
        api_create(&w, NULL, id);
        api_request(&w, NULL, "POST", "/sandboxes", CREATE_BODY);
        check_i64_eq(w.status, 429);
        check_true(api_header(&w, "Retry-After").n > 0);
        check_body_has("\"code\":\"SANDBOX::QUOTA_EXCEEDED\"");
        api_request(&w, NULL, "DELETE", api_path("/sandboxes/", id, ""), NULL);
        check_i64_eq(w.status, 204);
        api_create(&w, NULL, id);
}

/* --- list --- */

static void test_pages_are_newest_first_and_add_up(void **state)
{
        char ids[5][64];

        for (int i = 0; i < 5; i++) {
                service_world_advance(&w.below, USEC_PER_SEC);
                api_create(&w, NULL, ids[i]);
        }
        api_request(&w, NULL, "GET", "/v1/sandboxes?page=2&pageSize=2", NULL);
        check_i64_eq(w.status, 200);
        check_body_has(api_path("{\"items\":[{\"id\":\"", ids[2], ""));
        check_body_has(ids[1]);
        check_body_has("}],\"pagination\":{\"page\":2,\"pageSize\":2,\"totalItems\":5,"
                       "\"totalPages\":3,\"hasNextPage\":true}}");
        api_request(&w, NULL, "GET", "/v1/sandboxes?page=3&page_size=2", NULL);
        check_body_has(ids[0]);
        check_body_has("\"hasNextPage\":false}}");
        api_request(&w, NULL, "GET", "/v1/sandboxes?page=9", NULL);
        check_str_eq(w.body, "{\"items\":[],\"pagination\":{\"page\":9,\"pageSize\":20,"
                             "\"totalItems\":5,\"totalPages\":1,\"hasNextPage\":false}}");
        api_request(&w, NULL, "GET", "/v1/sandboxes?pageSize=201", NULL);
        check_i64_eq(w.status, 422);
        check_body_has("\"loc\":[\"query\",\"pageSize\"]");
}

static void test_lists_are_filtered(void **state)
{
        char plain[64], labelled[64];
        static const struct {
                const char *query;
                bool plain, labelled;
        } cases[] = {
                { "", true, true },
                { "?state=running", true, false },
                { "?state=Running&state=PAUSED", true, true },
                { "?state=Terminated", false, false },
                { "?state=nonsense", false, false },
                { "?metadata=team%3Dx", false, true },
                { "?metadata=team%3Dx%26b%3D2", false, true },
                { "?metadata=team%3Dx&metadata=b%3D2", false, true },
                { "?metadata=team%3Dy", false, false },
                { "?metadata=team%3Dx&state=Running", false, false },
        };

        api_create(&w, NULL, plain);
        api_request(
                &w, NULL, "POST", "/sandboxes",
                "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"a\"],\"resourceLimits\":{\"cpu\":\"1\"},"
                "\"metadata\":{\"team\":\"x\",\"b\":\"2\"}}");
        check_i64_eq(w.status, 202);
        check_false(body_has("expiresAt"));
        (void) snprintf(labelled, sizeof(labelled), "%.*s", ID_UUID_LEN, w.body.p + 7);
        api_request(&w, NULL, "POST", api_path("/sandboxes/", labelled, "/pause"), NULL);
        check_i64_eq(w.status, 202);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].query);
                api_request(&w, NULL, "GET", api_path("/sandboxes", cases[i].query, ""), NULL);
                check_i64_eq(w.status, 200);
                check_true(body_has(plain) == cases[i].plain);
                check_true(body_has(labelled) == cases[i].labelled);
        }
}

static void test_a_page_of_many_is_complete(void **state)
{
        struct json_error e;
        json_t *doc;
        char id[64];

        for (int i = 0; i < 120; i++)
                api_create(&w, NULL, id);
        api_request(&w, NULL, "GET", "/v1/sandboxes?pageSize=200", NULL);
        check_i64_eq(w.status, 200);
        check_true(w.body.n > HTTP_COPY_MAX);
        check_i64_eq(json_parse(w.body, 0, &doc, &e), 0);
        check_u64_eq(json_array_size(json_object_get(doc, "items")), 120);
        json_decref(doc);
}

/* Six sandboxes with almost a mebibyte of arguments each: more than a response may have. */
static void test_a_page_that_does_not_fit_is_refused(void **state)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, MiB);
        buf_add_str(&b, STR("{\"image\":{\"uri\":\"a\"},\"resourceLimits\":{\"cpu\":\"1\"},"
                            "\"entrypoint\":[\"a\""));
        for (int i = 0; i < 9; i++) {
                char *p;

                buf_add_str(&b, STR(",\""));
                p = buf_reserve(&b, 100000);
                memset(p, 'x', 100000);
                buf_advance(&b, 100000);
                buf_add_char(&b, '"');
        }
        buf_add_str(&b, STR("]}"));
        check_false(buf_failed(&b));
        for (int i = 0; i < 6; i++) {
                api_request(&w, NULL, "POST", "/sandboxes", buf_str(&b).p);
                check_i64_eq(w.status, 202);
                check_true(w.body.n > 900000);
        }
        api_request(&w, NULL, "GET", "/sandboxes?pageSize=2", NULL);
        check_i64_eq(w.status, 200);
        check_true(w.body.n > 1800000);
        api_request(&w, NULL, "GET", "/sandboxes", NULL);
        check_i64_eq(w.status, 400);
        check_body_has("smaller pageSize");
}

/* --- the dead --- */

static void test_a_failed_sandbox_is_listed_until_its_tombstone_ends(void **state)
{
        char id[64];
        const char *at;

        api_create(&w, NULL, id);
        at = api_path("/sandboxes/", id, "");
        check_true(driver_fake_kill(w.below.runtime, str_from(id),
                                    &(struct driver_health){ .status = RUNTIME_DEAD,
                                                             .reason = "OOM_KILLED",
                                                             .message = STR("out of memory") }));
        service_world_until(&w.below, service_count(w.below.service, driver_name(w.below.driver),
                                                    STATE_FAILED)
                                              == 1);
        api_request(&w, NULL, "GET", at, NULL);
        check_i64_eq(w.status, 200);
        check_body_has("\"state\":\"Failed\",\"reason\":\"OOM_KILLED\"");
        api_request(&w, NULL, "GET", "/sandboxes", NULL);
        check_body_has("\"totalItems\":0");
        api_request(&w, NULL, "GET", "/sandboxes?state=Failed", NULL);
        check_body_has(id);
        service_world_idle(&w.below);
        service_world_advance(&w.below, 3601 * USEC_PER_SEC);
        service_world_until(&w.below, service_count(w.below.service, driver_name(w.below.driver),
                                                    STATE_FAILED)
                                              == 0);
        api_request(&w, NULL, "GET", at, NULL);
        check_i64_eq(w.status, 404);
}

static void test_an_expired_sandbox_is_terminated(void **state)
{
        char id[64];

        api_create(&w, NULL, id);
        service_world_advance(&w.below, 601 * USEC_PER_SEC);
        service_world_until(&w.below, driver_fake_count(w.below.runtime) == 0);
        service_world_idle(&w.below);
        api_request(&w, NULL, "GET", api_path("/sandboxes/", id, ""), NULL);
        check_i64_eq(w.status, 200);
        check_body_has("\"state\":\"Terminated\",\"reason\":");
        api_request(&w, NULL, "POST", api_path("/sandboxes/", id, "/pause"), NULL);
        check_true(w.status == 409 || w.status == 404);
        api_request(&w, NULL, "DELETE", api_path("/sandboxes/", id, ""), NULL);
        check_i64_eq(w.status, 204);
        api_request(&w, NULL, "GET", api_path("/sandboxes/", id, ""), NULL);
        check_i64_eq(w.status, 404);
}

/* --- renew --- */

static void test_renews(void **state)
{
        char id[64], body[128], expected[256], text[TIME_RFC3339_MAX];
        usec_t then = w.below.clock.wall_now + 7200 * USEC_PER_SEC;
        const char *at;

        api_create(&w, NULL, id);
        at = api_path("/sandboxes/", id, "/renew-expiration");
        (void) time_to_rfc3339(then, text);
        (void) snprintf(expected, sizeof(expected), "{\"expiresAt\":\"%s\",\"expires_at\":\"%s\"}",
                        text, text);
        (void) snprintf(body, sizeof(body), "{\"expiresAt\":\"%s\"}", text);
        api_request(&w, NULL, "POST", at, body);
        check_i64_eq(w.status, 200);
        check_str_eq(w.body, expected);
        (void) snprintf(body, sizeof(body), "{\"expires_at\":\"%.19s\"}", text);
        api_request(&w, NULL, "POST", at, body);
        check_i64_eq(w.status, 200);
        check_str_eq(w.body, expected);
}

static void test_refuses_to_renew(void **state)
{
        char id[64];
        static const struct refused cases[] = {
                { "nothing", "{}", 422, "{\"type\":\"missing\",\"loc\":[\"body\",\"expiresAt\"]" },
                { "a number", "{\"expiresAt\":7}", 422, "string_type" },
                { "no time", "{\"expiresAt\":\"tomorrow\"}", 422, "[\"body\",\"expiresAt\"]" },
                { "the past", "{\"expiresAt\":\"2001-01-01T00:00:00Z\"}", 400,
                  "{\"code\":\"DOCKER::INVALID_EXPIRATION\"" },
        };

        api_create(&w, NULL, id);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].what);
                api_request(&w, NULL, "POST", api_path("/sandboxes/", id, "/renew-expiration"),
                            cases[i].body);
                check_i64_eq(w.status, cases[i].status);
                check_body_has(cases[i].response);
        }
        api_request(
                &w, NULL, "POST", "/sandboxes",
                "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"a\"],\"resourceLimits\":{\"cpu\":\"1\"}}");
        (void) snprintf(id, sizeof(id), "%.*s", ID_UUID_LEN, w.body.p + 7);
        api_request(&w, NULL, "POST", api_path("/sandboxes/", id, "/renew-expiration"),
                    "{\"expiresAt\":\"2999-01-01T00:00:00Z\"}");
        check_i64_eq(w.status, 409);
        check_body_has("{\"code\":\"DOCKER::INVALID_EXPIRATION\"");
}

/* --- metadata --- */

static void test_patches_metadata(void **state)
{
        char id[64];
        const char *at;

        api_create(&w, NULL, id);
        at = api_path("/v1/sandboxes/", id, "/metadata");
        api_request(&w, NULL, "PATCH", at, "{\"a\":\"1\",\"b\":\"2\"}");
        check_i64_eq(w.status, 200);
        check_body_has("\"metadata\":{\"a\":\"1\",\"b\":\"2\"}");
        check_body_has("\"image\":{\"uri\":\"debian:12\"}");
        api_request(&w, NULL, "PATCH", at, "{\"a\":null,\"c\":\"3\"}");
        check_body_has("\"metadata\":{\"b\":\"2\",\"c\":\"3\"}");
        api_request(&w, NULL, "PATCH", at, "{}");
        check_i64_eq(w.status, 200);
        api_request(&w, NULL, "PATCH", at, "{\"opensandbox.io/a\":\"1\"}");
        check_i64_eq(w.status, 400);
        check_body_has("{\"code\":\"SANDBOX::INVALID_METADATA_LABEL\"");
        api_request(&w, NULL, "PATCH", at, "{\"a\":1}");
        check_i64_eq(w.status, 422);
        check_body_has("[\"body\",\"a\"]");
        api_request(&w, NULL, "PATCH", at, "[]");
        check_i64_eq(w.status, 422);
        api_request(&w, NULL, "PATCH", at, NULL);
        check_i64_eq(w.status, 422);
        api_request(&w, NULL, "GET", api_path("/sandboxes/", id, ""), NULL);
        check_body_has("\"metadata\":{\"b\":\"2\",\"c\":\"3\"}");
}

/* --- who may not see it --- */

static void test_a_foreign_sandbox_is_a_missing_one(void **state)
{
        static const struct {
                const char *method, *tail, *body;
        } routes[] = {
                { "GET", "", NULL },
                { "DELETE", "", NULL },
                { "PATCH", "/metadata", "{}" },
                { "POST", "/pause", NULL },
                { "POST", "/resume", NULL },
                { "POST", "/renew-expiration", "{\"expiresAt\":\"2999-01-01T00:00:00Z\"}" },
                { "GET", "/diagnostics/logs", NULL },
                { "GET", "/diagnostics/logs?scope=container", NULL },
                { "GET", "/diagnostics/events", NULL },
                { "GET", "/diagnostics/events?scope=all", NULL },
                { "GET", "/diagnostics/inspect", NULL },
                { "GET", "/diagnostics/summary", NULL },
        };
        char id[64];

        api_world_add_keys(&w);
        api_create(&w, KEY_ACME, id);
        for (size_t i = 0; i < ARRAY_SIZE(routes); i++) {
                const char *missing = "00000000-0000-4000-8000-ffffffffffff";
                char *first;

                check_case(api_path(routes[i].method, routes[i].tail, ""));
                api_request_with(&w, KEY_OTHER, routes[i].method,
                                 api_path("/sandboxes/", missing, routes[i].tail), routes[i].body,
                                 HEADER("X-Request-ID", "r"));
                check_i64_eq(w.status, 404);
                first = xstrndup_str(w.body);
                api_request_with(&w, KEY_OTHER, routes[i].method,
                                 api_path("/sandboxes/", id, routes[i].tail), routes[i].body,
                                 HEADER("X-Request-ID", "r"));
                check_i64_eq(w.status, 404);
                check_str_eq(w.body, first);
                check_str_eq(w.body, NOT_FOUND);
                check_str_eq(api_header(&w, "X-Request-ID"), "r");
                free(first);
        }
        api_request(&w, KEY_OTHER, "GET", "/sandboxes", NULL);
        check_body_has("\"totalItems\":0");
        api_request(&w, KEY_ADMIN, "GET", "/sandboxes", NULL);
        check_body_has(id);
        api_request(&w, KEY_ACME, "GET", api_path("/sandboxes/", id, ""), NULL);
        check_i64_eq(w.status, 200);
        api_request(&w, KEY_READ, "DELETE", api_path("/sandboxes/", id, ""), NULL);
        check_i64_eq(w.status, 403);
}

static void test_ids_that_are_none_are_not_found(void **state)
{
        static const char *const ids[] = { "..", "%2e%2e", "a%2fb", "%2e%2e%2f%2e%2e", "x%00y",
                                           "A",  "%F0%9F", "-",     "sandbox*" };

        for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
                check_case(ids[i]);
                api_request(&w, NULL, "GET", api_path("/v1/sandboxes/", ids[i], ""), NULL);
                check_true(w.status == 404 || w.status == 400);
                api_request(&w, NULL, "DELETE", api_path("/v1/sandboxes/", ids[i], ""), NULL);
                check_true(w.status == 404 || w.status == 400);
        }
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                test(test_a_life_cycle_on_bare_paths_and_under_v1),
                test(test_create_responds_exactly),
                test(test_create_refuses),
                test(test_a_depth_bomb_is_refused),
                test(test_too_large_a_body_is_refused),
                test(test_a_failed_create_is_reported),
                test(test_a_slow_create_is_pending),
                test(test_the_same_key_gives_the_same_sandbox),
                test(test_wrong_idempotency_keys_are_refused),
                test(test_over_a_quota_is_429_with_a_time),
                test(test_pages_are_newest_first_and_add_up),
                test(test_lists_are_filtered),
                test(test_a_page_of_many_is_complete),
                test(test_a_page_that_does_not_fit_is_refused),
                test(test_a_failed_sandbox_is_listed_until_its_tombstone_ends),
                test(test_an_expired_sandbox_is_terminated),
                test(test_renews),
                test(test_refuses_to_renew),
                test(test_patches_metadata),
                test(test_a_foreign_sandbox_is_a_missing_one),
                test(test_ids_that_are_none_are_not_found),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
