/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/token.h"
#include "base/base.h"
#include "tests/lib/ingress_world.h"

/* GET /sandboxes/{id}/endpoints/{port} */

static struct ingress_world w;

static int set_up(void **state)
{
        ingress_world_open(&w, true);
        return 0;
}

static int tear_down(void **state)
{
        ingress_world_close(&w);
        return 0;
}

static void request(const char *prefix, const char *port, const char *host, const char *key)
{
        ingress_call(&w, &(struct ingress_request){
                                 .target = ingress_text("%s/sandboxes/%s/endpoints/%s", prefix,
                                                        w.id, port),
                                 .host = host,
                                 .name = { "X-API-Key" },
                                 .value = { key } });
}

static void endpoints_have_address_and_token(void **state)
{
        static const struct {
                const char *prefix, *host;
                uint16_t port;
                const char *header, *name;
                int public_port;
        } cases[] = {
                { "", "127.0.0.1:8080", 44772, "X-EXECD-ACCESS-TOKEN", "127.0.0.1", 8080 },
                { "/v1", "localhost:1", 18080, "OPENSANDBOX-EGRESS-AUTH", "localhost", 1 },
                { "/v1", "hutch.example", 8080, "OpenSandbox-Secure-Access", "hutch.example", 80 },
                { "", "[::1]:8080", 65535, "OpenSandbox-Secure-Access", "::1", 8080 },
                { "", "a-b_c.example:65535", 1, "OpenSandbox-Secure-Access", "a-b_c.example",
                  65535 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *token = ingress_token(&w, w.id, cases[i].port, 0), *port_part;
                const char *end = ingress_text("%s/sandboxes/%s/proxy/%u", cases[i].prefix, w.id,
                                               cases[i].port);

                check_case(cases[i].host);
                port_part = strrchr(cases[i].host, ':');
                port_part = cases[i].public_port == 80 || !port_part ? "" : port_part;
                request(cases[i].prefix, ingress_text("%u?use_server_proxy=true", cases[i].port),
                        cases[i].host, KEY_MINE);
                check_i64_eq(ingress_status(&w), 200);
                check_str_eq(buf_str(&w.lb.body),
                             ingress_text("{\"endpoint\":\"%s%s\",\"headers\":{\"%s\":\"%s\"},"
                                          "\"url\":\"http://%s%s~%s\","
                                          "\"previewUrl\":\"http://%s-%u." PREVIEW
                                          "%s/?hutch_token=%s\",\"host\":\"%s\",\"port\":%d}",
                                          cases[i].host, end, cases[i].header, token, cases[i].host,
                                          end, token, w.id, cases[i].port, port_part, token,
                                          cases[i].name, cases[i].public_port));
        }
}

static void the_public_address_comes_first(void **state)
{
        w.api.public_address = STR("sandboxes.example:9000");
        w.api.preview_domain = STR_NULL;
        request("/v1", "8080", HOST, KEY_MINE);
        check_true(ingress_body_has(
                &w, ingress_text("{\"endpoint\":\"sandboxes.example:9000/v1/sandboxes/%s/"
                                 "proxy/8080\",",
                                 w.id)));
        check_false(ingress_body_has(&w, "127.0.0.1"));
        check_false(ingress_body_has(&w, "preview"));
        check_true(ingress_body_has(&w, "\"port\":9000"));
}

static void a_proxy_in_front_may_speak_https(void **state)
{
        ingress_call(&w, &(struct ingress_request){
                                 .target = ingress_text("/sandboxes/%s/endpoints/8080", w.id),
                                 .host = "hutch.example",
                                 .name = { "X-API-Key", "X-Forwarded-Proto" },
                                 .value = { KEY_MINE, "https" } });
        check_true(ingress_body_has(&w, "\"url\":\"https://hutch.example/"));
        check_true(ingress_body_has(&w, "\"port\":443"));
        ingress_call(&w, &(struct ingress_request){
                                 .target = ingress_text("/sandboxes/%s/endpoints/8080", w.id),
                                 .name = { "X-API-Key", "X-Forwarded-Proto" },
                                 .value = { KEY_MINE, "javascript" } });
        check_true(ingress_body_has(&w, "\"url\":\"http://127.0.0.1:8080/"));
}

static void a_reader_gets_no_token(void **state)
{
        request("", "8080", HOST, KEY_READ);
        check_i64_eq(ingress_status(&w), 200);
        check_true(ingress_body_has(
                &w, ingress_text("\"url\":\"http://" HOST "/sandboxes/%s/proxy/8080\"", w.id)));
        check_false(ingress_body_has(&w, ingress_token(&w, w.id, 8080, 0)));
        check_false(ingress_body_has(&w, "hutch_token"));
        check_false(ingress_body_has(&w, "~"));
}

static void invalid_requests(void **state)
{
        static const struct {
                const char *port, *host, *code;
        } cases[] = {
                { "0", HOST, "DOCKER::INVALID_PORT" },
                { "65536", HOST, "DOCKER::INVALID_PORT" },
                { "-1", HOST, "DOCKER::INVALID_PORT" },
                { "080", HOST, "DOCKER::INVALID_PORT" },
                { "http", HOST, "DOCKER::INVALID_PORT" },
                { "80%2F..", HOST, "DOCKER::INVALID_PORT" },
                { "8080~x", HOST, "DOCKER::INVALID_PORT" },
                { "80?expires=", HOST, "SANDBOX::INVALID_PARAMETER" },
                { "80?expires=0", HOST, "SANDBOX::INVALID_PARAMETER" },
                { "80?expires=1700000000", HOST, "SANDBOX::INVALID_PARAMETER" },
                { "80?expires=-5", HOST, "SANDBOX::INVALID_PARAMETER" },
                { "80?expires=soon", HOST, "SANDBOX::INVALID_PARAMETER" },
                { "80?expires=99999999999999999999", HOST, "SANDBOX::INVALID_PARAMETER" },
                { "80?expires=%zz", HOST, "SANDBOX::INVALID_PARAMETER" },
                { "80", "", "SANDBOX::INVALID_PARAMETER" },
                { "80", "a'b", "SANDBOX::INVALID_PARAMETER" },
                { "80", "a$b:80", "SANDBOX::INVALID_PARAMETER" },
                { "80", "a%41", "SANDBOX::INVALID_PARAMETER" },
                { "80", "a;b", "SANDBOX::INVALID_PARAMETER" },
                { "80", "a:", "SANDBOX::INVALID_PARAMETER" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(ingress_text("%s at %s", cases[i].port, cases[i].host));
                request("", cases[i].port, cases[i].host, KEY_MINE);
                check_i64_eq(ingress_status(&w), 400);
                check_true(ingress_body_has(&w, cases[i].code));
        }
}

static void a_path_token_may_expire(void **state)
{
        const uint64_t end = 1700000060; /* a minute from now */
        const char *token = ingress_token(&w, w.id, 8080, end);
        struct ingress_request q;

        request("", "8080?expires=1700000060", HOST, KEY_MINE);
        check_i64_eq(ingress_status(&w), 200);
        check_true(ingress_body_has(&w, ingress_text("proxy/8080~%s\"", token)));
        check_true(
                ingress_body_has(&w, ingress_text("\"OpenSandbox-Secure-Access\":\"%s\"", token)));
        check_false(ingress_body_has(&w, ingress_token(&w, w.id, 8080, 0)));

        q = (struct ingress_request){ .target = ingress_text("/sandboxes/%s/proxy/8080~%s/x", w.id,
                                                             token) };
        service_world_advance(&w.base, 59 * USEC_PER_SEC);
        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), 200);
        service_world_advance(&w.base, USEC_PER_SEC);
        ingress_call(&w, &q);
        check_i64_eq(ingress_status(&w), 401);
}

static void find_pending(char ret[static 64])
{
        ret[0] = '\0';
        for (const struct sandbox *s = registry_next(w.base.registry, STR_NULL); s;
             s = registry_next(w.base.registry, s->id))
                if (s->status.state == STATE_PENDING)
                        (void) snprintf(ret, 64, "%.*s", STR_ARG(s->id));
        check_true(ret[0]);
}

static void every_live_state_has_an_endpoint(void **state)
{
        struct creating *c;
        char id[64];

        check_i64_eq(world_command(&w.base, service_pause, w.id), 0);
        request("", "8080", HOST, KEY_MINE);
        check_i64_eq(ingress_status(&w), 200);

        driver_fake_hold(w.base.runtime, 1U << DRIVER_CALL_CREATE);
        c = world_create_start(&w.base, &(struct create_options){ .tenant = "t" });
        service_world_until(&w.base, driver_fake_held(w.base.runtime, DRIVER_CALL_CREATE) == 1);
        find_pending(id);
        ingress_call(&w, &(struct ingress_request){
                                 .target = ingress_text("/sandboxes/%s/endpoints/44772", id),
                                 .name = { "X-API-Key" },
                                 .value = { KEY_MINE } });
        check_i64_eq(ingress_status(&w), 200);

        /* Going in is another matter. */
        ingress_call(&w, &(struct ingress_request){
                                 .target = ingress_text("/sandboxes/%s/proxy/44772/ping", id),
                                 .name = { "X-API-Key" },
                                 .value = { KEY_MINE } });
        check_i64_eq(ingress_status(&w), 503);
        check_true(ingress_header(&w, "Retry-After"));
        driver_fake_release(w.base.runtime);
        service_world_until(&w.base, world_create_is_done(c));
        (void) world_create_end(c);

        check_i64_eq(world_command(&w.base, service_delete, w.id), 0);
        request("", "8080", HOST, KEY_MINE);
        check_i64_eq(ingress_status(&w), 404);
        check_true(ingress_body_has(&w, "DOCKER::SANDBOX_NOT_FOUND"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                T(endpoints_have_address_and_token),
                T(the_public_address_comes_first),
                T(a_proxy_in_front_may_speak_https),
                T(a_reader_gets_no_token),
                T(invalid_requests),
                T(a_path_token_may_expire),
                T(every_live_state_has_an_endpoint),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
