/* SPDX-License-Identifier: Apache-2.0 */
#include "api/hutch/events.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/api.h"
#include "base/base.h"
#include "tests/lib/api_world.h"

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

static void listen_with(struct http_loopback *lb, const char *key)
{
        http_loopback_init(lb, w.server);
        http_loopback_header(lb, STR("Host"), STR("localhost"));
        if (key)
                http_loopback_header(lb, STR("OPEN-SANDBOX-API-KEY"), str_from(key));
        http_loopback_start(lb, "GET", "/v1/events", STR_NULL);
}

static bool has(const struct http_loopback *lb, const char *text)
{
        return memmem(buf_str(&lb->body).p, lb->body.n, text, strlen(text)) != NULL;
}

static void test_streams_events(void **state)
{
        struct http_loopback lb;
        char id[64], expected[256];

        listen_with(&lb, NULL);
        check_i64_eq(lb.status, 200);
        check_str_eq(http_headers_get(&lb.headers, STR("Content-Type")), "text/event-stream");
        check_u64_eq(event_hub_count(w.api.events), 1);
        api_create(&w, NULL, id);
        api_request(&w, NULL, "DELETE", api_path("/sandboxes/", id, ""), NULL);
        check_i64_eq(w.status, 204);
        check_true(str_starts_with(buf_str(&lb.body), STR("event: sandbox.")));
        check_true(has(&lb, "\nid: 1\ndata: {\"type\":\"sandbox."));
        (void) snprintf(
                expected, sizeof(expected),
                "\"tenant\":\"default\",\"sandboxId\":\"%s\",\"state\":\"Running\",\"reason\":"
                "\"CONTAINER_RUNNING\"",
                id);
        check_true(has(&lb, expected));
        check_true(has(&lb, "event: sandbox.deleted\n"));
        check_false(lb.ended);
        http_loopback_abort(&lb, -ECONNRESET);
        check_u64_eq(event_hub_count(w.api.events), 0);
        http_loopback_done(&lb);
}

static void test_tenants_get_their_own_events(void **state)
{
        struct http_loopback acme, other, admin;
        char id[64];

        api_world_add_keys(&w);
        listen_with(&acme, KEY_READ);
        listen_with(&other, KEY_OTHER);
        listen_with(&admin, KEY_ADMIN);
        api_create(&w, KEY_ACME, id);
        check_true(has(&acme, id));
        check_u64_eq(other.body.n, 0);
        check_true(has(&admin, id));
        api_request(&w, NULL, "GET", "/v1/events", NULL);
        check_i64_eq(w.status, 401);
        api_drain(&w.api);
        net_loop_run_once(http_server_loop(w.server), /* wait= */ false);
        check_true(acme.ended && other.ended && admin.ended);
        check_false(acme.failed);
        api_request(&w, KEY_ACME, "GET", "/v1/events", NULL);
        check_i64_eq(w.status, 503);
        http_loopback_done(&acme);
        http_loopback_done(&other);
        http_loopback_done(&admin);
}

/* One that is stored, of an admin. */
static void make_key(char ret[static 80])
{
        static const char before[] = "\"key\":\"";
        const char *at;

        api_request(&w, KEY_ADMIN, "POST", "/v1/keys", "{\"role\":\"admin\"}");
        check_i64_eq(w.status, 201);
        at = memmem(w.body.p, w.body.n, before, strlen(before));
        check_true(at != NULL);
        (void) snprintf(ret, 80, "%.*s", (int) strcspn(at + strlen(before), "\""),
                        at + strlen(before));
}

/* A stream gets only the events that its caller may see when they happen. */
static void test_a_stream_ends_with_its_key(void **state)
{
        struct http_loopback open, gone, stays;
        char id[64], key[80];
        struct err e;

        listen_with(&open, NULL);
        api_world_add_keys(&w);
        listen_with(&gone, KEY_READ);
        make_key(key);
        check_i64_eq(keyring_configure(w.keyring, NULL, 0, &e), 0);
        listen_with(&stays, key);
        api_create(&w, key, id);
        check_true(open.ended && !open.failed);
        check_u64_eq(open.body.n, 0);
        check_true(gone.ended && !gone.failed);
        check_u64_eq(gone.body.n, 0);
        check_false(stays.ended);
        check_true(has(&stays, id));
        check_u64_eq(event_hub_count(w.api.events), 1);
        http_loopback_abort(&stays, -ECONNRESET);
        http_loopback_done(&open);
        http_loopback_done(&gone);
        http_loopback_done(&stays);
}

static void test_head_gets_no_stream(void **state)
{
        api_request(&w, NULL, "HEAD", "/v1/events", NULL);
        check_i64_eq(w.status, 200);
        check_u64_eq(event_hub_count(w.api.events), 0);
}

/* --- a reader that does not read --- */

static int connected(char path[static 108])
{
        struct sockaddr_un a = { .sun_family = AF_UNIX };
        int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 4096;

        (void) snprintf(path, 108, "%s/events-%d", check_tmp(), (int) getpid());
        (void) snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
        (void) unlink(path);
        check_i64_eq(bind(listener, (struct sockaddr *) &a, sizeof(a)), 0);
        check_i64_eq(listen(listener, 1), 0);
        check_i64_eq(setsockopt(listener, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
        check_i64_eq(http_server_listen(w.server, listener), 0);
        check_i64_eq(connect(fd, (struct sockaddr *) &a, sizeof(a)), 0);
        return fd;
}

/* Reads all there is, and more as it comes, until the text is among it. */
static void read_until(int fd, struct buf *in, const char *text)
{
        for (;;) {
                char *p = buf_reserve(in, 64 * KiB);
                ssize_t n = recv(fd, p, 64 * KiB, MSG_DONTWAIT);

                if (n > 0)
                        buf_advance(in, (size_t) n);
                if (memmem(buf_str(in).p, in->n, text, strlen(text)))
                        return;
                service_world_turn(&w.below);
        }
}

static void test_a_slow_reader_learns_how_much_it_lost(void **state)
{
        char id[64], body[64], path[108];
        scoped(buf_done) struct buf in;
        size_t sent = 0;
        int fd = connected(path);

        buf_init(&in, 16 * MiB);
        check_true(write(fd, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n", 45) == 45);
        service_world_until(&w.below, event_hub_count(w.api.events) == 1);
        api_create(&w, NULL, id);
        /* Far more than socket and connection hold. */
        for (int i = 0; i < 4000; i++) {
                (void) snprintf(body, sizeof(body), "{\"n\":\"%d\"}", i);
                api_request(&w, NULL, "PATCH", api_path("/sandboxes/", id, "/metadata"), body);
                check_i64_eq(w.status, 200);
                api_request(&w, NULL, "POST",
                            api_path("/sandboxes/", id, i % 2 ? "/resume" : "/pause"), NULL);
                check_i64_eq(w.status, 202);
                sent += 2;
        }
        read_until(fd, &in, "\"type\":\"lost\",\"count\":");
        check_true(in.n < 4 * MiB);
        api_create(&w, NULL, id);
        read_until(fd, &in, id); /* it goes on */
        (void) close(fd);
        service_world_until(&w.below, event_hub_count(w.api.events) == 0);
        (void) unlink(path);
        check_true(sent > 0);
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                test(test_streams_events),
                test(test_tenants_get_their_own_events),
                test(test_a_stream_ends_with_its_key),
                test(test_head_gets_no_stream),
                test(test_a_slow_reader_learns_how_much_it_lost),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
