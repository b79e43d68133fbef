/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "tests/lib/http_loopback.h"
#include "tests/lib/http_peer.h"

/* Whoever keeps the books is notified of each request once, however it ends. */

static struct world world;
static struct http_req *held;
static int notified, last_status;
static char last_path[64];

static void ended(const struct http_req *req, usec_t took)
{
        notified++;
        last_status = req->res.status;
        (void) snprintf(last_path, sizeof(last_path), "%.*s", STR_ARG(req->path));
        check_true(took < 60 * USEC_PER_SEC);
}

static void exec_now(struct http_req *req)
{
        http_reply_empty(req, 204);
}

static void exec_hold(struct http_req *req)
{
        held = http_req_ref(req);
        http_req_abort_on_eof(req);
}

static const struct http_route routes[] = {
        { METHOD_GET, "/now", HTTP_SCOPE_PUBLIC, .exec = exec_now },
        { METHOD_GET, "/hold", HTTP_SCOPE_PUBLIC, .exec = exec_hold },
};
static const struct http_api api = {
        .name = "test", .prefix = "", .routes = routes, .n_routes = 2
};

static int set_up(void **state)
{
        world_open(&world, NULL, &api);
        http_server_on_request_done(world.server, ended);
        notified = 0;
        return 0;
}

static int tear_down(void **state)
{
        world_close(&world);
        return 0;
}

static void until_notified(int n)
{
        for (int i = 0; i < 1000 && notified < n; i++)
                net_loop_run_once(&world.loop, false);
        check_i64_eq(notified, n);
}

static void test_of_responses(void **state)
{
        struct peer p;

        peer_open(&p, &world);
        (void) peer_request(&p, "GET /now HTTP/1.1\r\nHost: h\r\n\r\n");
        until_notified(1);
        check_i64_eq(last_status, 204);
        check_z_eq(last_path, "/now");
        (void) peer_request(&p, "GET /missing HTTP/1.1\r\nHost: h\r\n\r\n");
        until_notified(2);
        check_i64_eq(last_status, 404);
        peer_close(&p);
}

static void test_of_a_client_that_left(void **state)
{
        struct peer p;

        held = NULL;
        peer_open(&p, &world);
        peer_sendz(&p, "GET /hold HTTP/1.1\r\nHost: h\r\n\r\n");
        while (!held)
                net_loop_run_once(&world.loop, true);
        peer_close(&p);
        until_notified(1);
        check_i64_eq(last_status, 0);
        http_reply_empty(held, 204); /* no one hears it */
        http_req_unref(held);
        check_i64_eq(notified, 1);
}

static void test_of_requests_without_a_socket(void **state)
{
        struct http_loopback lb;

        http_loopback_init(&lb, world.server);
        http_loopback_run(&lb, "GET", "/now", STR_NULL);
        check_i64_eq(notified, 1);
        check_i64_eq(last_status, 204);
        http_loopback_done(&lb);
        http_loopback_init(&lb, world.server);
        http_loopback_start(&lb, "GET", "/hold", STR_NULL);
        http_loopback_abort(&lb, -ECONNRESET);
        check_i64_eq(notified, 2);
        check_i64_eq(last_status, 0);
        http_loopback_done(&lb);
        http_req_unref(held);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_of_responses, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_of_a_client_that_left, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_of_requests_without_a_socket, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
