/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <unistd.h>

#include "api/hutch/audit.h"
#include "base/base.h"
#include "tests/lib/api_world.h"

/* Which requests leave a line in the audit log, and what it says. */

static struct api_world w;
static int out;
static char line[16 * KiB];

static int set_up(void **state)
{
        struct log_file *file = NULL;
        char path[64];
        int fds[2];

        check_i64_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[1]);
        check_i64_eq(log_file_open(&(struct log_file_config){ .path = path }, &file), 0);
        (void) close(fds[1]);
        out = fds[0];
        api_world_open(&w);
        api_world_add_keys(&w);
        w.api.audit = audit_new(file, &w.below.clock.clock);
        return 0;
}

static int tear_down(void **state)
{
        struct audit *a = w.api.audit;

        api_world_close(&w);
        audit_free(a);
        (void) close(out);
        return 0;
}

/* What was recorded since the last call; "" if nothing was. */
static const char *recorded(void)
{
        ssize_t n = read(out, line, sizeof(line) - 1);

        line[n > 0 ? n : 0] = '\0';
        return line;
}

static void check_recorded(const char *part)
{
        if (!strstr(line, part))
                CHECK_FAIL_("no '%s' in '%s'", part, line);
}

static void test_changes_are_recorded(void **state)
{
        static const struct {
                const char *method, *tail, *body, *says;
        } cases[] = {
                { "PATCH", "/metadata", "{\"a\":\"1\"}", "\"operation\":\"patchSandboxMetadata\"" },
                { "POST", "/pause", NULL, "\"operation\":\"pauseSandbox\"" },
                { "POST", "/resume", NULL, "\"operation\":\"resumeSandbox\"" },
                { "POST", "/renew-expiration", "{\"expiresAt\":\"2999-01-01T00:00:00Z\"}",
                  "\"operation\":\"renewSandboxExpiration\"" },
                { "DELETE", "", NULL, "\"operation\":\"deleteSandbox\"" },
        };
        char id[64], sandbox[128];

        api_create(&w, KEY_ACME, id);
        (void) snprintf(sandbox, sizeof(sandbox), "\"sandbox\":\"%s\"", id);
        (void) recorded();
        check_recorded("\"tenant\":\"acme\",\"principal\":\"acme-key\",\"key\":\"k-00000001\","
                       "\"method\":\"POST\",\"operation\":\"createSandbox\"");
        check_recorded(sandbox);
        check_recorded("\"status\":202,\"peer\":\"loopback\"}\n");
        check_false(strstr(line, "\"key\":\"acme-key\""));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].says);
                api_request_with(&w, KEY_ACME, cases[i].method,
                                 api_path("/v1/sandboxes/", id, cases[i].tail), cases[i].body,
                                 (struct http_header){ STR("X-Request-ID"), STR("r-7") });
                check_true(w.status < 300);
                (void) recorded();
                check_recorded(cases[i].says);
                check_recorded(sandbox);
                check_recorded("\"request\":\"r-7\"");
        }
}

static void test_reading_is_not_recorded(void **state)
{
        static const char *const targets[] = { "/v1/sandboxes", "/v1/sandboxes/x", "/health",
                                               "/v1/keys",      "/openapi.json",   "/none" };

        for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
                check_case(targets[i]);
                api_request(&w, KEY_ADMIN, "GET", targets[i], NULL);
                check_z_eq(recorded(), "");
        }
        api_request(&w, KEY_ACME, "POST", "/v1/metrics/events",
                    "{\"eventType\":\"sandbox.create\",\"createDurationMs\":0,\"success\":true}");
        check_i64_eq(w.status, 204);
        check_z_eq(recorded(), "");
        api_request(&w, KEY_ACME, "POST", "/none", "{}");
        check_z_eq(recorded(), "");
}

static void test_refusals_are_recorded(void **state)
{
        static const struct {
                const char *key, *method, *target, *body, *says;
        } cases[] = {
                { NULL, "DELETE", "/v1/sandboxes/sb-1", NULL,
                  "\"operation\":\"deleteSandbox\",\"sandbox\":\"sb-1\",\"status\":401" },
                { "wrong", "POST", "/v1/sandboxes", "{}",
                  "\"operation\":\"createSandbox\",\"status\":401" },
                { KEY_READ, "DELETE", "/v1/sandboxes/sb-1", NULL,
                  "\"key\":\"k-00000003\",\"method\":\"DELETE\",\"operation\":\"deleteSandbox\","
                  "\"sandbox\":\"sb-1\",\"status\":403" },
                { KEY_ACME, "DELETE", "/v1/sandboxes/sb-1", NULL,
                  "\"sandbox\":\"sb-1\",\"status\":404" },
                { KEY_ACME, "POST", "/v1/sandboxes", "{}", "\"status\":422" },
                { KEY_ACME, "POST", "/v1/keys", "{\"role\":\"admin\"}",
                  "\"operation\":\"createKey\",\"status\":403" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].says);
                api_request(&w, cases[i].key, cases[i].method, cases[i].target, cases[i].body);
                (void) recorded();
                check_recorded(cases[i].says);
                check_false(strstr(line, "wrong"));
        }
}

static void test_secrets_are_not_recorded(void **state)
{
        char *key;
        char text[80];

        api_request(&w, KEY_ADMIN, "POST", "/v1/keys?api_key=q-secret", "{\"role\":\"user\"}");
        check_i64_eq(w.status, 201);
        key = memmem(w.body.p, w.body.n, KEY_PREFIX, sizeof(KEY_PREFIX) - 1);
        check_true(key != NULL);
        (void) snprintf(text, sizeof(text), "%.*s", 70, key);
        (void) recorded();
        check_recorded("\"operation\":\"createKey\",\"targetKey\":\"k-");
        check_recorded("\",\"status\":201");
        check_false(strstr(line, KEY_PREFIX));
        check_false(strstr(line, "q-secret"));
        api_request(&w, KEY_ADMIN, "DELETE", api_path("/v1/keys/", text, ""), NULL);
        check_i64_eq(w.status, 404);
        (void) recorded();
        check_recorded("\"operation\":\"deleteKey\",\"status\":404");
        check_false(strstr(line, KEY_PREFIX));
        api_request(&w, KEY_ADMIN, "DELETE", "/v1/keys/k-00000001", NULL);
        (void) recorded();
        check_recorded("\"operation\":\"deleteKey\",\"targetKey\":\"k-00000001\",\"status\":403");
        api_request(
                &w, KEY_ACME, "POST", "/v1/sandboxes",
                "{\"image\":{\"uri\":\"a\",\"auth\":{\"username\":\"u\",\"password\":\"s3cret\"}},"
                "\"env\":{\"T\":\"s3cret\"},\"entrypoint\":[\"a\"],\"resourceLimits\":{\"cpu\":\"1\"}}");
        check_i64_eq(w.status, 202);
        (void) recorded();
        check_recorded("\"status\":202");
        check_false(strstr(line, "s3cret"));
}

static void test_a_change_whose_client_left_has_no_status(void **state)
{
        struct http_loopback lb;
        const char *at;
        char id[64];

        driver_fake_hold(w.below.runtime, 1U << DRIVER_CALL_CREATE);
        http_loopback_init(&lb, w.server);
        http_loopback_header(&lb, STR("Host"), STR("localhost"));
        http_loopback_header(&lb, STR("X-API-Key"), STR(KEY_ACME));
        http_loopback_start(&lb, "POST", "/sandboxes", STR(CREATE_BODY));
        service_world_until(&w.below, driver_fake_held(w.below.runtime, DRIVER_CALL_CREATE) == 1);
        http_loopback_abort(&lb, -ECONNRESET);
        (void) recorded();
        check_recorded("\"operation\":\"createSandbox\",\"sandbox\":\"");
        check_recorded(",\"peer\":\"loopback\"}\n");
        check_false(strstr(line, "\"status\""));
        at = strstr(line, "\"sandbox\":\"") + 11;
        (void) snprintf(id, sizeof(id), "%.*s", (int) strcspn(at, "\""), at);
        http_loopback_done(&lb);
        driver_fake_release(w.below.runtime);
        service_world_idle(&w.below);
        check_u64_eq(driver_fake_count(w.below.runtime), 1); /* it continues without its client */
        api_request(&w, KEY_ACME, "GET", api_path("/sandboxes/", id, ""), NULL);
        check_i64_eq(w.status, 200); /* and it is known who made it */
}

/* Of unidentified callers only the first few have a line; a caller with a key always has one. */
static void test_refusals_without_a_key_are_limited(void **state)
{
        for (unsigned i = 0; i < LOG_BURST + 5; i++) {
                check_case("refused");
                api_request(&w, i % 2 ? NULL : "wrong", "DELETE", "/v1/sandboxes/sb-1", NULL);
                check_i64_eq(w.status, 401);
                check_u64_eq(*recorded() != '\0', i < LOG_BURST);
        }
        for (unsigned i = 0; i < LOG_BURST + 5; i++) {
                api_request(&w, KEY_READ, "DELETE", "/v1/sandboxes/sb-1", NULL);
                (void) recorded();
                check_recorded("\"key\":\"k-00000003\"");
        }
        audit_write_omitted(w.api.audit, &(struct http_anonymous_summary){
                                                 .omitted = 5,
                                                 .reasons = { .names = { { "MISSING_API_KEY", 3 } },
                                                              .other = 2 },
                                                 .peers = { .names = { { "192.0.2.7", 5 } } } });
        (void) recorded();
        check_recorded("\"omitted\":5,\"reasons\":{\"MISSING_API_KEY\":3,\"other\":2},"
                       "\"peers\":{\"192.0.2.7\":5}}\n");
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                test(test_changes_are_recorded),
                test(test_reading_is_not_recorded),
                test(test_refusals_are_recorded),
                test(test_refusals_without_a_key_are_limited),
                test(test_secrets_are_not_recorded),
                test(test_a_change_whose_client_left_has_no_status),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
