/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/lib/api_world.h"

static struct api_world w;
static char id[64];

/* --- an agent that plays --- */

enum play { PLAY_TEXT, PLAY_ENDLESS, PLAY_ERROR, PLAY_NONE, PLAY_CUT, PLAY_SILENT };

static enum play play;
static struct str text;
static struct http_req *silent;

static void pour(struct http_req *req)
{
        static char piece[64 * KiB];

        memset(piece, 'x', sizeof(piece));
        while (http_stream_writable(req))
                http_stream_write(req, str_of(piece, sizeof(piece)));
}

static void stop_pouring(struct http_req *req, int reason)
{
        req->data = NULL;
}

static void agent_logs(struct http_req *req)
{
        static const struct http_hooks pouring = { .drain = pour, .abort = stop_pouring };

        switch (play) {
        case PLAY_TEXT:
                http_reply(req, 200, STR("text/plain"), text);
                break;
        case PLAY_ENDLESS:
                http_req_set_hooks(req, &pouring, NULL);
                http_stream_begin(req, 200, HTTP_LENGTH_UNKNOWN);
                pour(req);
                break;
        case PLAY_ERROR:
                http_reply_error(req, 500, "RUNTIME_ERROR", "<script>");
                break;
        case PLAY_NONE:
                http_reply_error(req, 404, "CONTEXT_NOT_FOUND", "none");
                break;
        case PLAY_CUT:
                http_stream_begin(req, 200, 100);
                http_stream_write(req, STR("half"));
                http_stream_fail(req);
                break;
        case PLAY_SILENT:
        default:
                silent = http_req_ref(req);
        }
}

static void agent_ok(struct http_req *req)
{
        http_reply(req, 200, STR("application/json"), STR("{\"version\":\"" HUTCH_VERSION "\"}"));
}

static const struct http_route agent_routes[] = {
        { METHOD_GET, "/entrypoint/logs", HTTP_SCOPE_PUBLIC, .exec = agent_logs },
        { METHOD_GET, "/version", HTTP_SCOPE_PUBLIC, .exec = agent_ok },
        { METHOD_GET, "/ping", HTTP_SCOPE_PUBLIC, .exec = agent_ok },
};
static const struct http_api agent = {
        .name = "agent", .prefix = "", .routes = agent_routes, .n_routes = ARRAY_SIZE(agent_routes)
};

static int set_up(void **state)
{
        api_world_open(&w);
        driver_fake_set_agent(w.below.runtime, &agent, NULL);
        play = PLAY_TEXT;
        text = STR("one\ntwo\n");
        silent = NULL;
        api_create(&w, NULL, id);
        return 0;
}

static int tear_down(void **state)
{
        if (silent)
                http_req_unref(silent);
        api_world_close(&w);
        return 0;
}

static bool body_has(const char *part)
{
        return memmem(w.body.p, w.body.n, part, strlen(part)) != NULL;
}

#define check_body_has(part)                                                       \
        do {                                                                       \
                if (!body_has(part))                                               \
                        CHECK_FAIL_("no '%s' in '%.*s'", (part), STR_ARG(w.body)); \
        } while (0)

static void request(const char *tail)
{
        api_request(&w, NULL, "GET",
                    api_path("/v1/sandboxes/", id, api_path("/diagnostics", tail, "")), NULL);
}

/* --- logs --- */

static void test_logs_as_json(void **state)
{
        char expected[512];

        request("/logs?scope=container");
        check_i64_eq(w.status, 200);
        (void) snprintf(expected, sizeof(expected),
                        "{\"sandboxId\":\"%s\",\"kind\":\"logs\",\"scope\":\"container\","
                        "\"delivery\":\"inline\",\"contentType\":\"text/plain; charset=utf-8\","
                        "\"content\":\"one\\ntwo\\n\",\"contentLength\":8,\"truncated\":false}",
                        id);
        check_str_eq(w.body, expected);
        check_false(api_header(&w, "Deprecation").p);
        request("/logs?scope=all");
        check_body_has("\"scope\":\"all\"");
}

static void test_logs_as_text(void **state)
{
        static const struct {
                const char *tail;
                const char *body;
        } cases[] = {
                { "/logs", "one\ntwo\n" },
                { "/logs?tail=1", "two\n" },
                { "/logs?tail=2&since=10m", "one\ntwo\n" },
                { "/logs?tail=10000&since=1h", "one\ntwo\n" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].tail);
                request(cases[i].tail);
                check_i64_eq(w.status, 200);
                check_str_eq(w.body, cases[i].body);
                check_str_eq(api_header(&w, "Deprecation"), "true");
                check_str_eq(api_header(&w, "Content-Type"), "text/plain; charset=utf-8");
        }
}

static void test_the_last_hundred_lines_are_returned(void **state)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, MiB);
        for (int i = 0; i < 300; i++)
                buf_addf(&b, "line %d\n", i);
        text = buf_str(&b);
        request("/logs?scope=container");
        check_body_has("\"content\":\"line 200\\nline 201\\n");
        check_body_has("line 299\\n\",");
        check_body_has("\"truncated\":true}");
        text = STR("without an end");
        request("/logs?scope=container");
        check_body_has("\"content\":\"without an end\"");
        text = STR("");
        request("/logs?scope=container");
        check_body_has("\"content\":\"\",\"contentLength\":0,\"truncated\":false}");
}

static void test_unreadable_logs_are_reported(void **state)
{
        static const struct {
                enum play play;
                const char *warning;
        } cases[] = {
                { PLAY_NONE, "\"warnings\":[\"the sandbox has no program of its own\"]" },
                { PLAY_ERROR, "replied with status 500" },
                { PLAY_CUT, "\"warnings\":[\"read the log from the sandbox's agent: " },
                { PLAY_ENDLESS, "\"warnings\":[\"read the log from the sandbox's agent: " },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].warning);
                play = cases[i].play;
                request("/logs?scope=container");
                check_i64_eq(w.status, 200);
                check_body_has(cases[i].warning);
                check_body_has("\"content\":\"\"");
                check_false(body_has("<script>"));
        }
        api_request(&w, NULL, "POST", api_path("/v1/sandboxes/", id, "/pause"), NULL);
        check_i64_eq(w.status, 202);
        request("/logs?scope=container");
        check_i64_eq(w.status, 200);
        check_body_has("\"warnings\":[");
}

static void test_a_silent_agent_times_out(void **state)
{
        play = PLAY_SILENT;
        w.api.agent_deadline.length = 20 * USEC_PER_MSEC;
        request("/logs?scope=container");
        check_i64_eq(w.status, 200);
        check_true(silent != NULL);
        check_body_has("\"warnings\":[\"read the log from the sandbox's agent: ");
}

static void test_a_client_that_leaves_ends_it(void **state)
{
        struct http_loopback lb;

        play = PLAY_SILENT;
        http_loopback_init(&lb, w.server);
        http_loopback_header(&lb, STR("Host"), STR("localhost"));
        http_loopback_start(&lb, "GET", api_path("/sandboxes/", id, "/diagnostics/logs"), STR_NULL);
        service_world_until(&w.below, silent != NULL);
        http_loopback_abort(&lb, -ECONNRESET);
        http_loopback_done(&lb);
        /* The world closes only if nothing is left. */
}

/* --- the others --- */

static void test_events(void **state)
{
        request("/events?scope=runtime");
        check_i64_eq(w.status, 200);
        check_body_has("\"kind\":\"events\",\"scope\":\"runtime\",\"delivery\":\"inline\"");
        check_body_has(" runtime Normal sandbox.");
        check_body_has(" Running CONTAINER_RUNNING");
        request("/events");
        check_str_eq(api_header(&w, "Deprecation"), "true");
        check_body_has(" runtime Normal sandbox.");
        request("/events?limit=1");
        check_i64_eq(w.status, 200);
        check_true(str_find(w.body, '\n') == (ssize_t) w.body.n - 1);
}

static void test_inspect_and_summary(void **state)
{
        request("/inspect");
        check_i64_eq(w.status, 200);
        check_body_has(api_path("id           ", id, "\n"));
        check_body_has("state        Running\n");
        check_body_has("limit        \"memory\" = \"64Mi\"\n");
        request("/summary?tail=1&event_limit=5");
        check_i64_eq(w.status, 200);
        check_body_has("\n--- events ---\n");
        check_body_has("\n--- logs ---\ntwo\n");
}

static void test_refuses(void **state)
{
        static const struct {
                const char *tail;
                int status;
                const char *response;
        } cases[] = {
                { "/logs?scope=network", 400, "{\"code\":\"DIAGNOSTICS_SCOPE_UNSUPPORTED\"" },
                { "/logs?scope=", 400, "{\"code\":\"DIAGNOSTICS_SCOPE_UNSUPPORTED\"" },
                { "/logs?scope=runtime", 400, "{\"code\":\"DIAGNOSTICS_SCOPE_UNSUPPORTED\"" },
                { "/events?scope=container", 400, "{\"code\":\"DIAGNOSTICS_SCOPE_UNSUPPORTED\"" },
                { "/logs?tail=0", 422, "[\"query\",\"tail\"]" },
                { "/logs?tail=10001", 422, "[\"query\",\"tail\"]" },
                { "/logs?since=soon", 422, "[\"query\",\"since\"]" },
                { "/events?limit=501", 422, "[\"query\",\"limit\"]" },
                { "/summary?event_limit=x", 422, "[\"query\",\"event_limit\"]" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].tail);
                request(cases[i].tail);
                check_i64_eq(w.status, cases[i].status);
                check_body_has(cases[i].response);
        }
}

/* Bytes that are not UTF-8, which JSON escapes: the end of them is kept. */
static void test_a_program_may_print_anything(void **state)
{
        size_t n = MiB;
        char *bytes = xcalloc(1, n);

        text = str_of(bytes, n);
        bytes[n - 1] = '!';
        api_request(&w, NULL, "GET", api_path("/sandboxes/", id, "/diagnostics/logs?scope=all"),
                    NULL);
        check_i64_eq(w.status, 200);
        check_true(memmem(w.body.p, w.body.n, "\\u0000!\"", 8) != NULL);
        check_true(memmem(w.body.p, w.body.n, "\"truncated\":true", 16) != NULL);
        memset(bytes, 0xff, n - 1);
        api_request(&w, NULL, "GET", api_path("/sandboxes/", id, "/diagnostics/logs?scope=all"),
                    NULL);
        check_i64_eq(w.status, 200);
        api_request(&w, NULL, "GET", api_path("/sandboxes/", id, "/diagnostics/logs"), NULL);
        check_i64_eq(w.status, 200);
        check_u64_eq(w.body.n, n);
        free(bytes);
}

/* A reader can't keep a sandbox alive by it. */
static void test_reading_the_log_renews_nothing(void **state)
{
        static const char body[] =
                "{\"image\":{\"uri\":\"debian:12\"},\"entrypoint\":[\"sh\"],\"timeout\":600,"
                "\"resourceLimits\":{},\"extensions\":{\"access.renew.extend.seconds\":\"3600\"}}";
        const char *logs, *ping;

        api_request(&w, NULL, "POST", "/v1/sandboxes", body);
        check_i64_eq(w.status, 202);
        (void) snprintf(id, sizeof(id), "%.*s", ID_UUID_LEN, w.body.p + 7);
        logs = api_path("/sandboxes/", id, "/diagnostics/logs");
        ping = api_path("/sandboxes/", id, "/proxy/44772/ping");
        service_world_advance(&w.below, 60 * USEC_PER_SEC);
        api_request(&w, NULL, "GET", logs, NULL);
        check_i64_eq(w.status, 200);
        service_world_idle(&w.below);
        check_u64_eq(service_stats(w.below.service).renewed, 0);
        api_request(&w, NULL, "GET", ping, NULL);
        check_i64_eq(w.status, 200);
        service_world_idle(&w.below);
        check_u64_eq(service_stats(w.below.service).renewed, 1);
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                test(test_reading_the_log_renews_nothing),
                test(test_a_program_may_print_anything),
                test(test_logs_as_json),
                test(test_logs_as_text),
                test(test_the_last_hundred_lines_are_returned),
                test(test_unreadable_logs_are_reported),
                test(test_a_silent_agent_times_out),
                test(test_a_client_that_leaves_ends_it),
                test(test_events),
                test(test_inspect_and_summary),
                test(test_refuses),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
