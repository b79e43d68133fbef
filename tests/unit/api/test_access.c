/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/access.h"

#include "base/base.h"
#include "http/server_impl.h"
#include "tests/lib/ingress_world.h"

/* Who may use the API, from where, and how many at once. */

static struct ingress_world w;

static int with_keys(void **state)
{
        ingress_world_open(&w, true);
        return 0;
}

static int without_keys(void **state)
{
        ingress_world_open(&w, false);
        return 0;
}

static int tear_down(void **state)
{
        ingress_world_close(&w);
        return 0;
}

/* --- keys and roles --- */

static const struct {
        const char *name, *value; /* a header */
} credentials[] = {
        { NULL, NULL },
        { "OPEN-SANDBOX-API-KEY", "" },
        { "OPEN-SANDBOX-API-KEY", "wrong" },
        { "OPEN-SANDBOX-API-KEY", KEY_READ },
        { "OPEN-SANDBOX-API-KEY", KEY_OTHER },
        { "OPEN-SANDBOX-API-KEY", KEY_MINE },
        { "OPEN-SANDBOX-API-KEY", KEY_ADMIN },
        { "X-API-Key", KEY_MINE },
        { "Authorization", "Bearer " KEY_MINE },
        { "authorization", "bearer " KEY_MINE },
        { "Authorization", "Basic " KEY_MINE },
        { "Authorization", KEY_MINE },
        { "Cookie", "OPEN-SANDBOX-API-KEY=" KEY_MINE },
        { "X-EXECD-ACCESS-TOKEN", KEY_MINE }, /* for ingress, not for the API */
};

static void every_route_knows_its_roles(void **state)
{
        /* The statuses in the order of the credentials above. */
        static const struct {
                const char *method, *before, *after; /* around the id */
                int status[ARRAY_SIZE(credentials)];
        } routes[] = {
                { "GET",
                  "/sandboxes/",
                  "",
                  { 401, 401, 401, 200, 404, 200, 200, 200, 200, 200, 401, 401, 401, 401 } },
                { "GET",
                  "/v1/sandboxes/",
                  "",
                  { 401, 401, 401, 200, 404, 200, 200, 200, 200, 200, 401, 401, 401, 401 } },
                { "GET",
                  "/sandboxes/",
                  "/endpoints/8080",
                  { 401, 401, 401, 200, 404, 200, 200, 200, 200, 200, 401, 401, 401, 401 } },
                { "POST",
                  "/sandboxes/",
                  "/resume", /* which is a conflict to who may */
                  { 401, 401, 401, 403, 404, 409, 409, 409, 409, 409, 401, 401, 401, 401 } },
                { "GET",
                  "/v1/keys?",
                  "",
                  { 401, 401, 401, 403, 403, 403, 200, 403, 403, 403, 401, 401, 401, 401 } },
                { "GET",
                  "/health?",
                  "",
                  { 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200 } },
        };

        for (size_t r = 0; r < ARRAY_SIZE(routes); r++)
                for (size_t c = 0; c < ARRAY_SIZE(credentials); c++) {
                        check_case(ingress_text("%s %s…%s, %s: %s", routes[r].method,
                                                routes[r].before, routes[r].after,
                                                credentials[c].name, credentials[c].value));
                        ingress_call(&w, &(struct ingress_request){
                                                 .method = routes[r].method,
                                                 .target = ingress_text("%s%s%s", routes[r].before,
                                                                        w.id, routes[r].after),
                                                 .name = { credentials[c].name },
                                                 .value = { credentials[c].value } });
                        check_i64_eq(ingress_status(&w), routes[r].status[c]);
                }
}

static void a_missing_key_is_not_a_wrong_one(void **state)
{
        ingress_call(&w, &(struct ingress_request){ .target = "/sandboxes" });
        check_i64_eq(ingress_status(&w), 401);
        check_true(ingress_body_has(&w, "{\"code\":\"MISSING_API_KEY\",\"message\":"));
        check_true(ingress_header(&w, "X-Request-ID"));
        ingress_call(&w, &(struct ingress_request){ .target = "/sandboxes",
                                                    .name = { "X-API-Key" },
                                                    .value = { "x" } });
        check_i64_eq(ingress_status(&w), 401);
        check_true(ingress_body_has(&w, "{\"code\":\"INVALID_API_KEY\",\"message\":"));
        check_false(ingress_body_has(&w, "\"x\""));
}

static void the_first_key_decides(void **state)
{
        ingress_call(&w, &(struct ingress_request){ .target = "/sandboxes",
                                                    .name = { "OPEN-SANDBOX-API-KEY", "X-API-Key" },
                                                    .value = { "wrong", KEY_MINE } });
        check_i64_eq(ingress_status(&w), 401);
        ingress_call(&w, &(struct ingress_request){
                                 .target = "/sandboxes",
                                 .name = { "OPEN-SANDBOX-API-KEY", "open-sandbox-api-key" },
                                 .value = { "wrong", KEY_MINE } });
        check_i64_eq(ingress_status(&w), 401);
        ingress_call(&w, &(struct ingress_request){ .target = "/sandboxes",
                                                    .name = { "OPEN-SANDBOX-API-KEY", "X-API-Key" },
                                                    .value = { "", KEY_MINE } });
        check_i64_eq(ingress_status(&w), 200);
}

/* The same bytes, so that callers do not learn which ids exist. */
static void a_foreign_sandbox_is_a_missing_one(void **state)
{
        static const char *const after[] = { "", "/endpoints/8080", "/proxy/8080/x",
                                             "/endpoints/44772?expires=9999999999" };

        for (size_t i = 0; i < ARRAY_SIZE(after); i++) {
                struct ingress_request q = { .name = { "OPEN-SANDBOX-API-KEY" },
                                             .value = { KEY_MINE } };
                char body[512];

                check_case(after[i]);
                q.target = ingress_text("/sandboxes/%s%s", w.other, after[i]);
                ingress_call(&w, &q);
                check_i64_eq(ingress_status(&w), 404);
                check_true(ingress_body_has(&w, "DOCKER::SANDBOX_NOT_FOUND"));
                check_false(ingress_body_has(&w, w.other));
                (void) snprintf(body, sizeof(body), "%.*s", STR_ARG(buf_str(&w.lb.body)));
                q.target = ingress_text("/sandboxes/%s%s", "no-such-sandbox", after[i]);
                ingress_call(&w, &q);
                check_i64_eq(ingress_status(&w), 404);
                check_str_eq(buf_str(&w.lb.body), body);
        }
}

/* --- browsers --- */

struct from {
        const char *host, *origin;
        int status;
};

static void request_from(const struct from *f, const char *method, const char *key)
{
        struct ingress_request q = { .method = method,
                                     .target = ingress_text("/v1/sandboxes/%s%s", w.id,
                                                            strcmp(method, "GET") == 0 ? ""
                                                                                       : "/resume"),
                                     .host = f->host };
        size_t n = 0;

        check_case(ingress_text("%s from Host %s, Origin %s", method, f->host,
                                f->origin ? f->origin : "-"));
        if (key) {
                q.name[n] = "X-API-Key";
                q.value[n++] = key;
        }
        if (f->origin) {
                q.name[n] = "Origin";
                q.value[n++] = f->origin;
        }
        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), f->status == 200 && q.method[0] == 'P' ? 409 : f->status);
}

static void without_keys_pages_are_kept_out(void **state)
{
        static const struct from cases[] = {
                { "127.0.0.1:8080", NULL, 200 },
                { "localhost:8080", NULL, 200 },
                { "localhost", NULL, 200 },
                { "[::1]:8080", NULL, 200 },
                { "127.0.0.9", NULL, 200 },
                { "localhost:8080", "http://localhost:8080", 200 },
                /* rebinding */
                { "evil.example:8080", NULL, 403 },
                { "evil.example:8080", "http://evil.example:8080", 403 },
                { "127.0.0.1.nip.io", NULL, 403 },
                { "localhost.evil.example", NULL, 403 },
                { "192.168.0.7:8080", NULL, 403 },
                { "", NULL, 403 },
                /* other pages */
                { "localhost:8080", "null", 403 },
                { "localhost:8080", "http://evil.example", 403 },
                { "localhost:8080", "http://localhost:3000", 403 },
                { "localhost:8080", "https://localhost:8080.evil.example", 403 },
                { "localhost:8080", "file://", 403 },
                { "localhost:8080", "", 403 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                request_from(&cases[i], "GET", NULL);
                request_from(&cases[i], "POST", NULL);
        }
}

static void insecure_lifts_the_host_check_only(void **state)
{
        static const struct from cases[] = {
                { "hutch.lan:8080", NULL, 200 },
                { "", NULL, 200 },
                { "hutch.lan:8080", "http://hutch.lan:8080", 200 },
                { "hutch.lan:8080", "http://evil.example", 403 },
                { "hutch.lan:8080", "null", 403 },
        };

        w.api.insecure = true;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                request_from(&cases[i], "POST", NULL);
}

static void the_public_address_is_a_name_of_ours(void **state)
{
        static const struct from cases[] = {
                { "hutch.example", NULL, 200 },
                { "hutch.example:8080", NULL, 200 },
                { "127.0.0.1:8080", "https://hutch.example", 200 },
                { "other.example", NULL, 403 },
        };

        w.api.public_address = STR("Hutch.example");
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                request_from(&cases[i], "POST", NULL);
}

static void with_keys_foreign_pages_may_read_at_most(void **state)
{
        static const struct {
                struct from from;
                int get;
        } cases[] = {
                { { "hutch.example", NULL, 200 }, 200 },
                { { "hutch.example", "https://hutch.example", 200 }, 200 },
                { { "hutch.example", "https://ui.example", 403 }, 200 },
                { { "hutch.example", "null", 403 }, 403 },
                { { "hutch.example", "NULL", 403 }, 403 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct from get = cases[i].from;

                get.status = cases[i].get;
                request_from(&cases[i].from, "POST", KEY_MINE);
                request_from(&get, "GET", KEY_MINE);
        }
}

static void every_origin_must_pass(void **state)
{
        ingress_call(&w, &(struct ingress_request){ .target = "/sandboxes",
                                                    .name = { "Origin", "origin" },
                                                    .value = { "http://" HOST, "null" } });
        check_i64_eq(ingress_status(&w), 403);
        check_true(ingress_body_has(&w, "ORIGIN_NOT_ALLOWED"));
}

/* A form or an image of another site sends no Origin when it reads, but says where it comes from. */
static void without_keys_other_sites_are_refused(void **state)
{
        static const struct {
                const char *site;
                int status;
        } cases[] = {
                { "none", 200 },      { "same-origin", 200 }, { "cross-site", 403 },
                { "same-site", 403 }, { "Cross-Site", 403 },  { "", 403 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct ingress_request q = { .target = "/v1/sandboxes",
                                             .name = { "Sec-Fetch-Site", "Sec-Fetch-Dest" },
                                             .value = { cases[i].site, "document" } };

                check_case(cases[i].site);
                ingress_call(&w, &q);
                check_i64_eq(ingress_status(&w), cases[i].status);
                if (cases[i].status == 403)
                        check_true(ingress_body_has(&w, "CROSS_SITE_REQUEST"));
        }
        ingress_call(&w, &(struct ingress_request){ .target = "/v1/sandboxes",
                                                    .name = { "Sec-Fetch-Site", "sec-fetch-site" },
                                                    .value = { "none", "cross-site" } });
        check_i64_eq(ingress_status(&w), 403);
}

static void with_keys_the_key_decides_whatever_the_site(void **state)
{
        ingress_call(&w, &(struct ingress_request){ .target = "/v1/sandboxes",
                                                    .name = { "Sec-Fetch-Site", "X-API-Key" },
                                                    .value = { "cross-site", KEY_MINE } });
        check_i64_eq(ingress_status(&w), 200);
}

/* --- limits --- */

static void too_many_requests_are_told_to_come_back(void **state)
{
        struct http_loopback slow;
        struct ingress_request q = { .target = "/sandboxes",
                                     .name = { "X-API-Key" },
                                     .value = { KEY_MINE } };

        /* A request of an authenticated caller whose body does not arrive. */
        w.api.requests_max = 1;
        http_loopback_init(&slow, w.server);
        http_loopback_header(&slow, STR("Host"), STR(HOST));
        http_loopback_header(&slow, STR("X-API-Key"), STR(KEY_MINE));
        http_loopback_start(&slow, "POST", "/sandboxes",
                            STR("{\"image\":{\"uri\":\"debian:12\"},\"entrypoint\":[\"sh\"],"
                                "\"resourceLimits\":{}}"));
        check_i64_eq(slow.status, 0);
        check_u64_eq(http_server_stats(w.server).in_flight, 1);

        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), 503);
        check_true(ingress_body_has(&w, "SERVER_BUSY"));
        check_str_eq(str_from(ingress_header(&w, "Retry-After")), "1");

        /* Health, strangers, and what goes into sandboxes is not affected. */
        ingress_call(&w, &(struct ingress_request){ .target = "/health" });
        check_i64_eq(ingress_status(&w), 200);
        ingress_call(&w, &(struct ingress_request){ .target = "/sandboxes" });
        check_i64_eq(ingress_status(&w), 401);
        q.target = ingress_text("/sandboxes/%s/proxy/44772/ping", w.id);
        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), 200);

        service_world_until(&w.base, slow.ended);
        check_i64_eq(slow.status, 202);
        http_loopback_done(&slow);
        q.target = "/sandboxes";
        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), 200);
}

/* A cap of the tenant or the key is the caller's own: 429, and the neighbour is served. */
static void caps_name_their_setting(void **state)
{
        static const struct {
                enum http_party party;
                enum http_use use;
                const char *target, *why;
        } cases[] = {
                { HTTP_PARTY_TENANT, HTTP_USE_STREAMS, "/v1/events",
                  "this tenant has 1 open streams, as many as limits.tenant_streams allows" },
                { HTTP_PARTY_KEY, HTTP_USE_STREAMS, "/v1/events",
                  "this API key has 1 open streams, as many as limits.key_streams allows" },
                { HTTP_PARTY_TENANT, HTTP_USE_CONNECTIONS, "/v1/sandboxes",
                  "this tenant has 1 open connections, as many as limits.tenant_connections" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                unsigned *cap = &w.server->config.caps.max[cases[i].party][cases[i].use];
                struct http_loopback lasting;

                check_case(cases[i].why);
                *cap = 1;
                http_loopback_init(&lasting, w.server);
                http_loopback_header(&lasting, STR("Host"), STR(HOST));
                http_loopback_header(&lasting, STR("X-API-Key"), STR(KEY_MINE));
                http_loopback_start(&lasting, "GET", "/v1/events", STR(""));
                check_i64_eq(lasting.status, 200);

                ingress_call(&w, &(struct ingress_request){ .target = cases[i].target,
                                                            .name = { "X-API-Key" },
                                                            .value = { KEY_MINE } });
                check_i64_eq(ingress_status(&w), 429);
                check_true(ingress_body_has(&w, "TOO_MANY_REQUESTS"));
                check_true(ingress_body_has(&w, cases[i].why));
                check_str_eq(str_from(ingress_header(&w, "Retry-After")), "1");
                ingress_call(&w, &(struct ingress_request){ .target = "/v1/sandboxes",
                                                            .name = { "X-API-Key" },
                                                            .value = { KEY_OTHER } });
                check_i64_eq(ingress_status(&w), 200);
                *cap = 0;
                http_loopback_abort(&lasting, -ECONNRESET);
                http_loopback_done(&lasting);
        }
}

/* A token is the tenant's, whoever uses it. */
static void tokens_use_the_share_of_the_tenant(void **state)
{
        struct http_loopback lasting;
        struct ingress_request q = {
                .target = ingress_text("/sandboxes/%s/proxy/8080/x", w.id),
                .name = { HEADER_SECURE },
                .value = { ingress_token(&w, w.id, 8080, 0) },
        };

        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), 200);
        http_loopback_init(&lasting, w.server);
        http_loopback_header(&lasting, STR("Host"), STR(HOST));
        http_loopback_header(&lasting, STR("X-API-Key"), STR(KEY_MINE));
        http_loopback_start(&lasting, "GET", "/v1/events", STR(""));
        w.server->config.caps.max[HTTP_PARTY_TENANT][HTTP_USE_STREAMS] = 1;
        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), 429);
        http_loopback_abort(&lasting, -ECONNRESET);
        http_loopback_done(&lasting);
        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), 200);
}

static void without_a_key_a_locked_server_stays_locked(void **state)
{
        w.api.keys_needed = true;
        ingress_call(&w, &(struct ingress_request){ .target = "/sandboxes" });
        check_i64_eq(ingress_status(&w), 401);
        ingress_call(&w, &(struct ingress_request){
                                 .target = ingress_text("/sandboxes/%s/proxy/44772/ping", w.id) });
        check_i64_eq(ingress_status(&w), 401);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define KEYS(f) cmocka_unit_test_setup_teardown(f, with_keys, tear_down)
#define OPEN(f) cmocka_unit_test_setup_teardown(f, without_keys, tear_down)
                KEYS(every_route_knows_its_roles),
                KEYS(a_missing_key_is_not_a_wrong_one),
                KEYS(the_first_key_decides),
                KEYS(a_foreign_sandbox_is_a_missing_one),
                OPEN(without_keys_pages_are_kept_out),
                OPEN(insecure_lifts_the_host_check_only),
                OPEN(the_public_address_is_a_name_of_ours),
                KEYS(with_keys_foreign_pages_may_read_at_most),
                OPEN(every_origin_must_pass),
                OPEN(without_keys_other_sites_are_refused),
                KEYS(with_keys_the_key_decides_whatever_the_site),
                KEYS(too_many_requests_are_told_to_come_back),
                KEYS(caps_name_their_setting),
                KEYS(tokens_use_the_share_of_the_tenant),
                OPEN(without_a_key_a_locked_server_stays_locked),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
