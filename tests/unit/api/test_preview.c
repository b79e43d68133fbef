/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/lib/ingress_world.h"
#include "tests/lib/wire.h"

/* {id}-{port}.{preview domain} */

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

static const char *host(void)
{
        return ingress_text("%s-8080." PREVIEW ":9000", w.id);
}

static const char *token(void)
{
        return ingress_token(&w, w.id, 8080, 0);
}

static void request(const char *method, const char *target, const char *name, const char *value)
{
        ingress_call(&w, &(struct ingress_request){ .method = method,
                                                    .target = target,
                                                    .host = host(),
                                                    .name = { "OpenSandbox-Secure-Access", name },
                                                    .value = { token(), value } });
}

static void an_app_has_all_paths(void **state)
{
        static const struct {
                const char *method, *target, *arrives;
        } cases[] = {
                { "GET", "/", "GET /proxy/8080/\n" },
                { "GET", "/a%2Fb?c", "GET /proxy/8080/a%2Fb?c\n" },
                { "POST", "/v1/sandboxes", "POST /proxy/8080/v1/sandboxes\n" },
                { "GET", "/health", "GET /proxy/8080/health\n" },
                { "GET", "/../x", "GET /proxy/8080/../x\n" },
                { "GET", "//x", "GET /proxy/8080//x\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].target);
                request(cases[i].method, cases[i].target, NULL, NULL);
                check_i64_eq(ingress_status(&w), 200);
                check_true(str_starts_with(buf_str(&w.lb.body), str_from(cases[i].arrives)));
                check_false(ingress_header(&w, "Content-Security-Policy"));
        }
}

static void the_api_is_not_below_the_domain(void **state)
{
        static const char *const hosts[] = {
                "api." PREVIEW,     "x-80." PREVIEW,        "a.b-80." PREVIEW,
                "-80." PREVIEW,     "8080." PREVIEW ":80",  "a_b-80." PREVIEW,
                "api." PREVIEW ".", "x-80." PREVIEW ".:80",
        };

        for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
                struct ingress_request q = { .target = "/v1/sandboxes",
                                             .host = hosts[i],
                                             .name = { "X-API-Key" },
                                             .value = { KEY_ADMIN } };

                check_case(hosts[i]);
                ingress_call(&w, &q);
                check_i64_eq(ingress_status(&w), 404);
                check_true(ingress_body_has(&w, "DOCKER::SANDBOX_NOT_FOUND"));
                q.value[0] = "wrong";
                ingress_call(&w, &q);
                check_i64_eq(ingress_status(&w), 401);
        }
        ingress_call(&w, &(struct ingress_request){ .target = "/v1/sandboxes",
                                                    .host = PREVIEW,
                                                    .name = { "X-API-Key" },
                                                    .value = { KEY_ADMIN } });
        check_i64_eq(ingress_status(&w), 200);
}

static void without_a_domain_there_are_no_previews(void **state)
{
        w.api.preview_domain = STR_NULL;
        request("GET", "/", NULL, NULL);
        check_i64_eq(ingress_status(&w), 404);
        check_true(ingress_body_has(&w, "\"NOT_FOUND\""));
}

static void cookies_and_authorization_are_the_apps(void **state)
{
        request("GET", "/", "Authorization", "Basic dTpw");
        check_true(ingress_body_has(&w, "Authorization: Basic dTpw\n"));
        request("GET", "/", "Authorization", "Bearer the-apps-own");
        check_true(ingress_body_has(&w, "Authorization: Bearer the-apps-own\n"));
        request("GET", "/", "Authorization", "Bearer " KEY_MINE);
        check_false(ingress_body_has(&w, "Authorization"));
        ingress_call(&w, &(struct ingress_request){
                                 .target = "/",
                                 .host = ingress_text("%s-8080." PREVIEW ".", w.id),
                                 .name = { "OpenSandbox-Secure-Access", "Authorization",
                                           "authorization" },
                                 .value = { token(), "Basic dTpw", "Bearer " KEY_MINE } });
        check_i64_eq(ingress_status(&w), 200);
        check_false(ingress_body_has(&w, KEY_MINE));
        request("GET", "/", "Cookie", "a=1; b=2");
        check_true(ingress_body_has(&w, "Cookie: a=1; b=2\n"));
        request("GET", "/", "Cookie", ingress_text("a=1; hutch_token=%s; b=2", token()));
        check_true(ingress_body_has(&w, "Cookie: a=1; b=2\n"));
        request("GET", "/", "Cookie", ingress_text("hutch_token=%s", token()));
        check_false(ingress_body_has(&w, "Cookie"));
        request("GET",
                "/answer?Set-Cookie=a%3D1%3B%20Domain%3D" PREVIEW "%3B%20Path%3D%2F&Location=%2Fx",
                NULL, NULL);
        check_str_eq(str_from(ingress_header(&w, "Set-Cookie")), "a=1; Path=/");
        check_str_eq(str_from(ingress_header(&w, "Location")), "/x");
}

static void responses_do_not_command_a_front_proxy(void **state)
{
        request("GET", "/answer?X-Accel-Redirect=%2Fetc%2Fpasswd&X-Sendfile=x&X-Mine=1", "A", "b");
        check_i64_eq(ingress_status(&w), 302);
        check_false(ingress_header(&w, "X-Accel-Redirect"));
        check_false(ingress_header(&w, "X-Sendfile"));
        check_true(ingress_header(&w, "X-Mine"));
        request("GET", "/answer?Content-Type=text%2Fevent-stream", "A", "b");
        check_str_eq(str_from(ingress_header(&w, "X-Accel-Buffering")), "no");
}

static void a_planted_cookie_does_not_hide_ours(void **state)
{
        ingress_call(&w, &(struct ingress_request){
                                 .target = "/",
                                 .host = host(),
                                 .name = { "Cookie", "Cookie" },
                                 .value = { "hutch_token=planted",
                                            ingress_text("x=y; hutch_token=%s", token()) } });
        check_i64_eq(ingress_status(&w), 200);
        check_true(ingress_body_has(&w, "Cookie: x=y\n"));
}

static void a_token_in_the_query_becomes_a_cookie(void **state)
{
        static const struct {
                const char *target; /* TOKEN is it */
                const char *location;
        } cases[] = {
                { "/?hutch_token=TOKEN", "/" },
                { "/a?b=c&hutch_token=TOKEN&d=%26", "/a?b=c&d=%26" },
                { "/a?hutch%5Ftoken=TOKEN&d", "/a?d" },
                { "/a?hutch_token=TOKEN&hutch_token=x", "/a" },
                { "//evil.example/?hutch_token=TOKEN", "//evil.example/" },
                { "/\\evil.example?hutch_token=TOKEN", "/\\evil.example" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *at = strstr(cases[i].target, "TOKEN");
                struct ingress_request q = {
                        .target = ingress_text("%.*s%s%s", (int) (at - cases[i].target),
                                               cases[i].target, token(), at + 5),
                        .host = host()
                };

                check_case(cases[i].target);
                ingress_call(&w, &q);
                check_i64_eq(ingress_status(&w), 303);
                check_str_eq(str_from(ingress_header(&w, "Location")),
                             ingress_text("//%s%s", host(), cases[i].location));
                check_str_eq(str_from(ingress_header(&w, "Set-Cookie")),
                             ingress_text("hutch_token=%s; HttpOnly; SameSite=Lax; Path=/",
                                          token()));
                check_str_eq(str_from(ingress_header(&w, "Cache-Control")), "no-store");
                q.method = "HEAD";
                ingress_call(&w, &q);
                check_i64_eq(ingress_status(&w), 303);
        }
}

static void other_methods_are_not_redirected(void **state)
{
        ingress_call(&w, &(struct ingress_request){
                                 .method = "POST",
                                 .target = ingress_text("/hook?a=1&hutch_token=%s", token()),
                                 .host = host(),
                                 .body = "x" });
        check_i64_eq(ingress_status(&w), 200);
        check_true(str_starts_with(buf_str(&w.lb.body), STR("POST /proxy/8080/hook?a=1\n")));
        check_false(ingress_body_has(&w, token()));
}

static void a_wrong_token_in_the_query_is_stripped_all_the_same(void **state)
{
        request("GET", "/x?hutch_token=wrong&a=1", NULL, NULL);
        check_i64_eq(ingress_status(&w), 200);
        check_true(str_starts_with(buf_str(&w.lb.body), STR("GET /proxy/8080/x?a=1\n")));
        check_false(ingress_header(&w, "Set-Cookie"));
}

static void behind_tls_the_cookie_is_secure(void **state)
{
        ingress_call(&w,
                     &(struct ingress_request){ .target = ingress_text("/?hutch_token=%s", token()),
                                                .host = host(),
                                                .name = { "X-Forwarded-Proto" },
                                                .value = { "https" } });
        check_str_eq(str_from(ingress_header(&w, "Set-Cookie")),
                     ingress_text("hutch_token=%s; HttpOnly; SameSite=Lax; Path=/; Secure",
                                  token()));
}

static void websockets_use_cookie_or_query(void **state)
{
        static const char *const how[] = { "/ws?hutch_token=TOKEN HTTP/1.1\r\n",
                                           "/ws HTTP/1.1\r\nCookie: hutch_token=TOKEN\r\n" };
        static const struct {
                const char *origin; /* NULL: the host's own */
                const char *status[2];
        } cases[] = {
                { NULL, { "HTTP/1.1 101 ", "HTTP/1.1 101 " } },
                /* A token in the address is the sender's own deed, a cookie is the browser's. */
                { "http://evil.example", { "HTTP/1.1 101 ", "HTTP/1.1 403 " } },
                { "http://other-80." PREVIEW, { "HTTP/1.1 101 ", "HTTP/1.1 403 " } },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                for (size_t k = 0; k < ARRAY_SIZE(how); k++) {
                        const char *at = strstr(how[k], "TOKEN");
                        const char *origin = cases[i].origin ? cases[i].origin
                                                             : ingress_text("http://%s", host());
                        struct wire_peer p;

                        check_case(ingress_text("%s from %s", how[k], origin));
                        wire_connect(&p, &w.addr);
                        wire_send(&w.base.loop, &p,
                                  str_from(ingress_text("GET %.*s%s%sHost: %s\r\nOrigin: %s\r\n"
                                                        "Connection: Upgrade\r\n"
                                                        "Upgrade: websocket\r\n\r\nhello",
                                                        (int) (at - how[k]), how[k], token(),
                                                        at + 5, host(), origin)));
                        wire_until(&w.base.loop, wire_has(&p, "\r\n\r\n"));
                        check_true(wire_has(&p, cases[i].status[k]));
                        if (cases[i].status[k][9] == '1')
                                wire_until(&w.base.loop, wire_has(&p, "\r\n\r\nhello"));
                        wire_done(&p);
                }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                T(an_app_has_all_paths),
                T(the_api_is_not_below_the_domain),
                T(without_a_domain_there_are_no_previews),
                T(cookies_and_authorization_are_the_apps),
                T(responses_do_not_command_a_front_proxy),
                T(a_planted_cookie_does_not_hide_ours),
                T(a_token_in_the_query_becomes_a_cookie),
                T(other_methods_are_not_redirected),
                T(a_wrong_token_in_the_query_is_stripped_all_the_same),
                T(behind_tls_the_cookie_is_secure),
                T(websockets_use_cookie_or_query),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
