/* SPDX-License-Identifier: Apache-2.0 */
#include "http/req.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/http_loopback.h"
#include "tests/lib/check.h"

/* What is counted, and what of a request gets into the log. */

static void paths_are_logged_without_secrets(void **state)
{
        static const struct {
                const char *path, *printed;
        } cases[] = {
                { "/", "/" },
                { "/v1/sandboxes/a/proxy/8080/x", "/v1/sandboxes/a/proxy/8080/x" },
                { "/s/a/proxy/8080~secret", "/s/a/proxy/8080~***" },
                { "/s/a/proxy/8080~secret/x/y", "/s/a/proxy/8080~***/x/y" },
                { "/s/a/proxy/8080~1z~secret/x", "/s/a/proxy/8080~***/x" },
                { "/s/a/proxy/8080%7Esecret/x", "/s/a/proxy/8080%7E***/x" },
                { "/s/a/proxy/8080%7esecret%2Fmore/x", "/s/a/proxy/8080%7e***/x" },
                { "/s/8080~a/t/9090~b", "/s/8080~***/t/9090~***" },
                { "/~", "/~***" },
                { "/a%7", "/a%7" },
                { "/a%", "/a%" },
                { "//x~", "//x~***" },
                { "/x?token=secret", "/x" },
                { "/x?token=secret/y~z", "/x" },
                { "*", "*" },
                { "", "-" },
                { "http://user:secret@host/", "-" },
                { "secret", "-" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct arena a;

                check_case(cases[i].path);
                arena_init(&a, 64 * KiB);
                check_str_eq(http_path_for_log(&a, str_from(cases[i].path)), cases[i].printed);
                arena_done(&a);
        }
}

static void without_memory_nothing_is_shown(void **state)
{
        struct arena a;

        arena_init(&a, 0);
        check_str_eq(http_path_for_log(&a, STR("/a~secret")), "-");
        check_str_eq(http_path_for_log(&a, STR("/a")), "/a");
        arena_done(&a);
}

/* --- with a server --- */

static struct net_loop loop;
static struct http_server *server;
static struct log_sink sink;
static struct log_ctx log_root;
static int log_fds[2];
static struct http_req *held;

static void exec_count(struct http_req *req)
{
        http_req_count(req);
        http_req_count(req); /* counts once */
        held = http_req_ref(req);
}

static void exec_plain(struct http_req *req)
{
        http_reply_empty(req, 204);
}

static const struct http_route routes[] = {
        { METHOD_GET, "/count", HTTP_SCOPE_PUBLIC, .exec = exec_count },
        { METHOD_GET, "/plain/{x}", HTTP_SCOPE_PUBLIC, .exec = exec_plain },
};

static const struct http_api api = { "test", "", routes, ARRAY_SIZE(routes) };

static int set_up(void **state)
{
        struct http_server_config config = http_server_defaults;

        config.access_log = &sink;
        assert_int_equal(pipe2(log_fds, O_CLOEXEC | O_NONBLOCK), 0);
        sink = (struct log_sink){
                .fd = log_fds[1], .level = LOG_INFO, .format = LOG_LOGFMT, .clock = &clock_system
        };
        log_ctx_init_root(&log_root, &sink);
        check_i64_eq(net_loop_init(&loop, &clock_system), 0);
        server = http_server_new(&loop, &config, &log_root);
        check_i64_eq(http_server_add_api(server, &api), 0);
        return 0;
}

static int tear_down(void **state)
{
        http_server_free(server, NULL, NULL);
        net_loop_done(&loop);
        close(log_fds[0]);
        close(log_fds[1]);
        return 0;
}

static void the_access_log_shows_no_token(void **state)
{
        static const char *const paths[] = { "/plain/8080~secret?a=secret", "/nowhere/1%7Esecret" };

        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                struct http_loopback lb;
                char line[1024];
                ssize_t n;

                check_case(paths[i]);
                http_loopback_init(&lb, server);
                http_loopback_run(&lb, "GET", paths[i], STR_NULL);
                http_loopback_done(&lb);
                n = read(log_fds[0], line, sizeof(line) - 1);
                check_true(n > 0);
                line[n] = '\0';
                check_true(strstr(line, "***"));
                check_false(strstr(line, "secret"));
        }
}

static void the_access_log_cuts_long_paths(void **state)
{
        static char path[HTTP_LOG_PATH_MAX + 100];
        struct str printed;
        struct arena a;

        arena_init(&a, 64 * KiB);
        memset(path, 'a', sizeof(path) - 1);
        path[0] = '/';
        printed = http_path_for_log(&a, str_from(path));
        check_u64_eq(printed.n, HTTP_LOG_PATH_MAX + strlen("…"));
        check_true(str_ends_with(printed, STR("aa…")));
        path[HTTP_LOG_PATH_MAX - 1] = '~';
        check_true(str_ends_with(http_path_for_log(&a, str_from(path)), STR("aa~***…")));
        arena_done(&a);
}

static void counted_requests_are_in_flight_until_they_are_gone(void **state)
{
        struct http_loopback a, b;

        check_u64_eq(http_server_stats(server).in_flight, 0);
        http_loopback_init(&a, server);
        http_loopback_start(&a, "GET", "/count", STR_NULL);
        check_u64_eq(http_server_stats(server).in_flight, 1);
        http_loopback_init(&b, server);
        http_loopback_run(&b, "GET", "/plain/x", STR_NULL);
        check_u64_eq(http_server_stats(server).in_flight, 1);
        http_loopback_done(&b);

        /* The client has left, the handler is still at work. */
        http_loopback_abort(&a, -ECONNRESET);
        http_loopback_done(&a);
        check_u64_eq(http_server_stats(server).in_flight, 1);
        http_req_unref(TAKE_PTR(held));
        check_u64_eq(http_server_stats(server).in_flight, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(paths_are_logged_without_secrets),
                cmocka_unit_test(without_memory_nothing_is_shown),
                cmocka_unit_test(the_access_log_shows_no_token),
                cmocka_unit_test(the_access_log_cuts_long_paths),
                cmocka_unit_test(counted_requests_are_in_flight_until_they_are_gone),
        };

        return cmocka_run_group_tests(tests, set_up, tear_down);
}
