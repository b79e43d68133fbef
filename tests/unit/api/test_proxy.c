/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/lib/ingress_world.h"
#include "tests/lib/wire.h"

/* /sandboxes/{id}/proxy/{port}: what reaches the sandbox, what comes back, and failures. */

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

static void request(const char *method, const char *after)
{
        ingress_call(&w, &(struct ingress_request){
                                 .method = method,
                                 .target = ingress_text("/v1/sandboxes/%s/proxy/%s", w.id, after),
                                 .name = { "X-API-Key" },
                                 .value = { KEY_MINE } });
}

/* --- in --- */

static void targets(void **state)
{
        static const struct {
                const char *method, *after, *arrives;
        } cases[] = {
                { "GET", "44772/files/info?path=%2Ftmp", "GET /files/info?path=%2Ftmp\n" },
                { "GET", "44772", "GET /\n" },
                { "GET", "44772/", "GET /\n" },
                { "GET", "44772?x", "GET /?x\n" },
                { "POST", "44772/proxy/1/x", "POST /proxy/1/x\n" },
                { "GET", "8080", "GET /proxy/8080/\n" },
                { "GET", "8080/", "GET /proxy/8080/\n" },
                { "GET", "8080/a/b?c=d", "GET /proxy/8080/a/b?c=d\n" },
                { "DELETE", "1/a", "DELETE /proxy/1/a\n" },
                { "PATCH", "65535/a", "PATCH /proxy/65535/a\n" },
                { "OPTIONS", "8080/a", "OPTIONS /proxy/8080/a\n" },
                { "PROPFIND", "8080/a", "PROPFIND /proxy/8080/a\n" },
                /* Nothing is decoded, and no path leads out of the port. */
                { "GET", "8080/a%2Fb%00/", "GET /proxy/8080/a%2Fb%00/\n" },
                { "GET", "8080/../44772/command", "GET /proxy/8080/../44772/command\n" },
                { "GET", "8080/%2e%2e/%2e%2e/ping%2f", "GET /proxy/8080/%2e%2e/%2e%2e/ping%2f\n" },
                { "GET", "8080//evil.example/", "GET /proxy/8080//evil.example/\n" },
                { "GET", "8080/x?hutch_token=1", "GET /proxy/8080/x?hutch_token=1\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].after);
                request(cases[i].method, cases[i].after);
                check_i64_eq(ingress_status(&w), 200);
                check_true(str_starts_with(buf_str(&w.lb.body), str_from(cases[i].arrives)));
                check_true(ingress_body_has(&w, ingress_text("agent=%s\n", w.id)));
        }
}

static void credentials_stay_outside(void **state)
{
        static const char *const names[] = {
                "OPEN-SANDBOX-API-KEY",
                "open-sandbox-api-key",
                "X-API-Key",
                "X-EXECD-ACCESS-TOKEN",
                "OPENSANDBOX-EGRESS-AUTH",
                "OpenSandbox-Secure-Access",
                "Authorization",
                "Cookie",
                "COOKIE",
                "Cookie2",
                "Proxy-Authorization",
                "Forwarded",
                "X-Real-IP",
                "X-Forwarded-For",
                "X-Forwarded-Host",
        };

        /* Also when Connection says that it is about this connection only, or something else is. */
        for (size_t i = 0; i < 2 * ARRAY_SIZE(names); i++) {
                const char *name = names[i / 2];

                check_case(name);
                ingress_call(&w,
                             &(struct ingress_request){
                                     .target = ingress_text("/sandboxes/%s/proxy/8080~%s/x", w.id,
                                                            ingress_token(&w, w.id, 8080, 0)),
                                     .name = { name, name, "X-Mine", "Connection" },
                                     .value = { "s3cret", "s3cret-too", "passes",
                                                i % 2 ? name : "close" } });
                check_i64_eq(ingress_status(&w), 200);
                check_false(ingress_body_has(&w, "s3cret"));
                check_true(ingress_body_has(&w, "X-Mine: passes\n"));
        }
}

static void forwarded_headers_are_ours(void **state)
{
        ingress_call(&w, &(struct ingress_request){
                                 .target = ingress_text("/sandboxes/%s/proxy/8080/x", w.id),
                                 .host = "hutch.example:80",
                                 .name = { "X-API-Key", "X-Forwarded-For", "X-Forwarded-Proto",
                                           "Referer" },
                                 .value = { KEY_MINE, "6.6.6.6", "https", "http://a/b" } });
        check_true(ingress_body_has(&w, "X-Forwarded-For: loopback\n"));
        check_true(ingress_body_has(&w, "X-Forwarded-Proto: https\n"));
        check_true(ingress_body_has(&w, "X-Forwarded-Host: hutch.example:80\n"));
        check_true(ingress_body_has(&w, "\nHost: hutch.example:80\n"));
        check_true(ingress_body_has(&w, "Referer: http://a/b\n"));
        check_false(ingress_body_has(&w, "6.6.6.6"));
}

static void a_url_with_a_token_is_not_passed_on(void **state)
{
        const char *token = ingress_token(&w, w.id, 8080, 0);

        ingress_call(&w,
                     &(struct ingress_request){
                             .target = ingress_text("/sandboxes/%s/proxy/8080~%s/x", w.id, token),
                             .name = { "Referer" },
                             .value = { ingress_text("http://" HOST "/sandboxes/%s/proxy/8080~%s/",
                                                     w.id, token) } });
        check_i64_eq(ingress_status(&w), 200);
        check_false(ingress_body_has(&w, token));
        check_false(ingress_body_has(&w, "Referer"));
        check_str_eq(str_from(ingress_header(&w, "Referrer-Policy")), "no-referrer");
        request("GET", "8080/x");
        check_false(ingress_header(&w, "Referrer-Policy"));
}

static void bodies_are_forwarded(void **state)
{
        char big[40000];

        memset(big, 'x', sizeof(big) - 1);
        big[sizeof(big) - 1] = '\0';
        ingress_call(&w, &(struct ingress_request){
                                 .method = "PUT",
                                 .target = ingress_text("/sandboxes/%s/proxy/8080/x", w.id),
                                 .name = { "X-API-Key" },
                                 .value = { KEY_MINE },
                                 .body = big });
        check_i64_eq(ingress_status(&w), 200);
        check_true(ingress_body_has(&w, "Content-Length: 39999\n"));
}

/* --- out --- */

static void pages_are_kept_in_a_sandbox(void **state)
{
        static const char *const paths[] = { "8080/x", "44772/x", "8080/answer?A=b", "8080/close" };

        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                check_case(paths[i]);
                request("GET", paths[i]);
                check_u64_eq(ingress_count(&w, "Content-Security-Policy"), 1);
                check_str_eq(str_from(ingress_header(&w, "Content-Security-Policy")),
                             "sandbox allow-scripts allow-forms");
        }
        /* A policy of the app's own is kept beside ours. */
        request("GET", "8080/answer?Content-Security-Policy=sandbox%20allow-same-origin");
        check_u64_eq(ingress_count(&w, "Content-Security-Policy"), 2);
        check_str_eq(str_from(ingress_header(&w, "content-security-policy")),
                     "sandbox allow-scripts allow-forms");
}

static void responses_do_not_speak_for_our_origin(void **state)
{
        static const char *const names[] = {
                "Set-Cookie",      "set-cookie",
                "Set-Cookie2",     "Service-Worker-Allowed",
                "Clear-Site-Data", "NEL",
                "Report-To",       "Strict-Transport-Security",
                "Alt-Svc",         "Reporting-Endpoints",
        };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                check_case(names[i]);
                request("GET", ingress_text("8080/answer?%s=x&X-Mine=1&%s=y", names[i], names[i]));
                check_i64_eq(ingress_status(&w), 302);
                check_false(ingress_header(&w, names[i]));
                check_true(ingress_header(&w, "X-Mine"));
        }
}

/* A reverse proxy in front of us obeys these: it would send a file of its own host, or fetch another URL. */
static void responses_do_not_command_a_front_proxy(void **state)
{
        static const char *const names[] = {
                "X-Accel-Redirect", "x-accel-redirect", "X-Accel-Buffering",
                "X-Accel-Expires",  "X-Sendfile",       "X-LIGHTTPD-send-file",
                "X-Reproxy-URL",    "X-Reproxy-File",   "Surrogate-Control",
                "Surrogate-Key",    "X-Sendfile2",      "CDN-Cache-Control",
        };
        static const char *const ports[] = { "8080", "44772" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                for (size_t p = 0; p < ARRAY_SIZE(ports); p++) {
                        check_case(ingress_text("%s from %s", names[i], ports[p]));
                        request("GET", ingress_text("%s/answer?%s=x&X-Mine=1&%s=y", ports[p],
                                                    names[i], names[i]));
                        check_i64_eq(ingress_status(&w), 302);
                        check_false(ingress_header(&w, names[i]));
                        check_true(ingress_header(&w, "X-Mine"));
                }
}

/* The agent asks nginx not to buffer its event streams. The request is ours to make, and only that one. */
static void event_streams_are_not_buffered(void **state)
{
        request("GET", "8080/answer?Content-Type=text%2Fevent-stream%3Bcharset%3Dutf-8"
                       "&X-Accel-Buffering=yes");
        check_u64_eq(ingress_count(&w, "X-Accel-Buffering"), 1);
        check_str_eq(str_from(ingress_header(&w, "X-Accel-Buffering")), "no");
        request("GET", "8080/answer?X-Accel-Buffering=no");
        check_false(ingress_header(&w, "X-Accel-Buffering"));
}

static void redirects_stay_below_the_prefix(void **state)
{
        static const struct {
                const char *location, *becomes; /* a leading '+' stands for the prefix */
        } cases[] = {
                { "%2Flogin%3Fa=b", "+/login?a=b" },
                { "%2F", "+/" },
                { "relative", "relative" },
                { "..%2Fup", "../up" },
                { "", "" },
                { "https:%2F%2Felsewhere.example%2F", "https://elsewhere.example/" },
                { "%2F%2Felsewhere.example%2F", "//elsewhere.example/" },
                { "%2F%5Celsewhere", "/\\elsewhere" },
        };
        const char *token = ingress_token(&w, w.id, 8080, 0);

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (int with_token = 0; with_token < 2; with_token++) {
                        const char *prefix = ingress_text("/v1/sandboxes/%s/proxy/8080%s%s", w.id,
                                                          with_token ? "~" : "",
                                                          with_token ? token : "");
                        bool moved = cases[i].becomes[0] == '+';

                        check_case(cases[i].becomes);
                        ingress_call(&w, &(struct ingress_request){
                                                 .target = ingress_text("%s/answer?Location=%s",
                                                                        prefix, cases[i].location),
                                                 .name = { "X-API-Key" },
                                                 .value = { KEY_MINE } });
                        check_str_eq(str_from(ingress_header(&w, "Location")),
                                     ingress_text("%s%s", moved ? prefix : "",
                                                  cases[i].becomes + moved));
                }
}

/* --- states --- */

static void a_sandbox_that_does_not_run_is_refused_at_once(void **state)
{
        const char *token = ingress_token(&w, w.id, 8080, 0);

        check_i64_eq(world_command(&w.base, service_pause, w.id), 0);
        request("GET", "44772/ping");
        check_i64_eq(ingress_status(&w), 409);
        check_true(ingress_body_has(&w, "DOCKER::SANDBOX_NOT_RUNNING"));
        check_i64_eq(world_command(&w.base, service_resume, w.id), 0);
        request("GET", "44772/ping");
        check_i64_eq(ingress_status(&w), 200);
        check_i64_eq(world_command(&w.base, service_delete, w.id), 0);
        request("GET", "44772/ping");
        check_i64_eq(ingress_status(&w), 404);
        ingress_call(&w, &(struct ingress_request){
                                 .target = ingress_text("/sandboxes/%s/proxy/8080~%s/x", w.id,
                                                        token) });
        check_i64_eq(ingress_status(&w), 401); /* what it opened is gone */
}

static void there_is_no_egress_proxy(void **state)
{
        request("GET", "18080/policy");
        check_i64_eq(ingress_status(&w), 501);
        check_true(ingress_body_has(&w, "egress"));
}

static void an_agent_that_does_not_respond(void **state)
{
        request("GET", "8080/close");
        check_i64_eq(ingress_status(&w), 502);
        check_true(ingress_body_has(&w, "{\"code\":\"GENERAL::UNKNOWN_ERROR\","
                                        "\"message\":\"Could not connect to the backend sandbox"));
        driver_failing_plan(w.base.driver,
                            &(struct driver_failing_plan){ .when = DRIVER_FAILING_FROM, .n = 1 });
        request("GET", "44772/ping");
        check_i64_eq(ingress_status(&w), 502);
        check_true(ingress_body_has(&w, "GENERAL::UNKNOWN_ERROR"));
        driver_failing_plan(w.base.driver, &(struct driver_failing_plan){ 0 });
}

/* --- over a socket --- */

static void say(struct wire_peer *p, const char *text)
{
        wire_connect(p, &w.addr);
        wire_send(&w.base.loop, p, str_from(text));
}

#define AUTH "Host: " HOST "\r\nX-API-Key: " KEY_MINE "\r\n"

static void ping_keeps_its_length(void **state)
{
        struct wire_peer p;

        say(&p,
            ingress_text("GET /v1/sandboxes/%s/proxy/44772/ping HTTP/1.1\r\n" AUTH "\r\n", w.id));
        wire_until(&w.base.loop, wire_has(&p, "\r\n\r\n"));
        check_true(wire_has(&p, "HTTP/1.1 200 OK\r\n"));
        check_true(wire_has(&p, "\r\nContent-Length: 0\r\n"));
        check_false(wire_has(&p, "chunked"));
        wire_done(&p);
}

static void streams_end_with_their_sandbox(void **state)
{
        struct wire_peer stream, ws;
        struct commanding *c;

        say(&stream,
            ingress_text("GET /sandboxes/%s/proxy/8080/stream HTTP/1.1\r\n" AUTH "\r\n", w.id));
        wire_until(&w.base.loop, wire_has(&stream, "data: first\n\n"));
        say(&ws, ingress_text("GET /sandboxes/%s/proxy/8080/ws HTTP/1.1\r\n" AUTH
                              "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello",
                              w.id));
        wire_until(&w.base.loop, wire_has(&ws, "\r\n\r\nhello"));
        check_true(wire_has(&ws, "HTTP/1.1 101 "));
        check_false(wire_has(&ws, "planted"));
        wire_send(&w.base.loop, &ws, STR(" again"));
        wire_until(&w.base.loop, wire_has(&ws, "hello again"));
        check_u64_eq(http_server_stats(w.server).in_flight, 0);

        c = world_command_start(&w.base, service_delete, w.id);
        service_world_until(&w.base, world_command_is_done(c));
        check_i64_eq(world_command_end(c), 0);
        wire_until(&w.base.loop, wire_at_end(&stream) && wire_at_end(&ws));
        /* The client does not take it for the end of the message. */
        check_false(wire_has(&stream, "\r\n0\r\n\r\n"));
        wire_done(&stream);
        wire_done(&ws);
}

static void a_client_may_leave_while_we_connect(void **state)
{
        struct wire_peer p;

        driver_fake_hold(w.base.runtime, 1U << DRIVER_CALL_CONNECT);
        say(&p, ingress_text("GET /sandboxes/%s/proxy/8080/x HTTP/1.1\r\n" AUTH "\r\n", w.id));
        service_world_until(&w.base, driver_fake_held(w.base.runtime, DRIVER_CALL_CONNECT) == 1);
        wire_done(&p);
        service_world_until(&w.base, driver_fake_held(w.base.runtime, DRIVER_CALL_CONNECT) == 0);
        service_world_idle(&w.base);
        service_world_until(&w.base, http_server_stats(w.server).connections == 0);
        driver_fake_release(w.base.runtime);
}

static void the_server_may_go_while_we_connect(void **state)
{
        struct wire_peer p;

        driver_fake_hold(w.base.runtime, 1U << DRIVER_CALL_CONNECT);
        say(&p, ingress_text("GET /sandboxes/%s/proxy/8080/x HTTP/1.1\r\n" AUTH "\r\n", w.id));
        service_world_until(&w.base, driver_fake_held(w.base.runtime, DRIVER_CALL_CONNECT) == 1);
        wire_done(&p); /* the tear-down finds it waiting */
}

static void smuggled_tokens_are_invalid(void **state)
{
        static const char *const heads[] = {
                /* What two parsers could read in two ways never gets this far. */
                "X-API-Key : " KEY_MINE "\r\n",
                " X-API-Key: " KEY_MINE "\r\n",
                "X-Other: a\r\n X-API-Key: " KEY_MINE "\r\n",
                "X-Other: a\nX-API-Key: " KEY_MINE "\r\n",
                "X-API\r\n-Key: " KEY_MINE "\r\n",
        };

        for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
                struct wire_peer p;

                check_case(heads[i]);
                say(&p, ingress_text("GET /sandboxes/%s/proxy/8080/x HTTP/1.1\r\nHost: " HOST
                                     "\r\n%s\r\n",
                                     w.id, heads[i]));
                wire_until(&w.base.loop, wire_has(&p, "\r\n\r\n"));
                check_true(wire_has(&p, "HTTP/1.1 400 ") || wire_has(&p, "HTTP/1.1 401 "));
                wire_done(&p);
        }
}

static void access_renews(void **state)
{
        struct made m =
                world_create(&w.base, &(struct create_options){
                                              .tenant = "t",
                                              .timeout = 600,
                                              .extension = "access.renew.extend.seconds=3600" });
        const struct sandbox *record;

        check_i64_eq(m.result, 0);
        service_world_advance(&w.base, 500 * USEC_PER_SEC);
        ingress_call(&w, &(struct ingress_request){
                                 .target = ingress_text("/sandboxes/%s/proxy/44772/ping", m.id),
                                 .name = { "X-API-Key" },
                                 .value = { KEY_MINE } });
        check_i64_eq(ingress_status(&w), 200);
        service_world_idle(&w.base);
        service_world_advance(&w.base, 200 * USEC_PER_SEC);
        service_world_idle(&w.base);
        record = world_find(&w.base, m.id);
        check_true(record && record->status.state == STATE_RUNNING);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                T(targets),
                T(credentials_stay_outside),
                T(forwarded_headers_are_ours),
                T(a_url_with_a_token_is_not_passed_on),
                T(bodies_are_forwarded),
                T(pages_are_kept_in_a_sandbox),
                T(responses_do_not_speak_for_our_origin),
                T(responses_do_not_command_a_front_proxy),
                T(event_streams_are_not_buffered),
                T(redirects_stay_below_the_prefix),
                T(a_sandbox_that_does_not_run_is_refused_at_once),
                T(there_is_no_egress_proxy),
                T(an_agent_that_does_not_respond),
                T(ping_keeps_its_length),
                T(streams_end_with_their_sandbox),
                T(a_client_may_leave_while_we_connect),
                T(the_server_may_go_while_we_connect),
                T(smuggled_tokens_are_invalid),
                T(access_renews),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
