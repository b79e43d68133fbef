/* SPDX-License-Identifier: Apache-2.0 */
#include "http/sse.h"

#include "base/base.h"
#include "tests/lib/http_peer.h"

static struct world world;
static struct http_sse_group group;
static struct http_sse sse;
static int drains, pings, gone_reason;

static void on_drain(struct http_sse *s)
{
        drains++;
}

static void on_ping(struct http_sse *s)
{
        pings++;
        check_i64_eq(http_sse_json(s, STR("{\"type\":\"ping\"}")), 0);
}

static void on_gone(struct http_sse *s, int reason)
{
        gone_reason = reason;
}

static const struct http_sse_ops ops = { .drain = on_drain, .gone = on_gone };
static const struct http_sse_ops ops_pinging = { .ping = on_ping, .gone = on_gone };

static void exec_events(struct http_req *req)
{
        check_i64_eq(http_sse_begin(&sse, req, &group, &ops),
                     req->method == METHOD_HEAD ? -ENODATA : 0);
}

static void exec_pinging(struct http_req *req)
{
        check_i64_eq(http_sse_begin(&sse, req, &group, &ops_pinging), 0);
}

static const struct http_route routes[] = {
        { METHOD_GET, "/events", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_events },
        { METHOD_GET, "/pinging", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_pinging },
};

static const struct http_api api = { "test", "", routes, ARRAY_SIZE(routes) };

/* HTTP/1.0, so that no chunks stand between the events. */
static void open_stream(struct peer *p, const char *path, enum http_sse_framing framing,
                        usec_t interval)
{
        char text[100];

        world_open(&world, NULL, &api);
        http_sse_group_init(&group, &world.loop, framing, interval);
        drains = pings = gone_reason = 0;
        peer_open(p, &world);
        (void) snprintf(text, sizeof(text), "GET %s HTTP/1.0\r\n\r\n", path);
        peer_sendz(p, text);
}

static void close_stream(struct peer *p)
{
        peer_close(p);
        http_sse_group_close(&group);
        world_close(&world);
}

/* HEAD is served by GET's route and must not wait for events that it will never be shown. */
static void head_ends_at_once(void **state)
{
        struct peer p;
        struct peer_reply a;

        world_open(&world, NULL, &api);
        http_sse_group_init(&group, &world.loop, HTTP_SSE_FIELDS, 0);
        peer_open(&p, &world);
        peer_sendz(&p, "HEAD /events HTTP/1.1\r\nHost: x\r\n\r\n"
                       "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n");
        a = peer_answer_head_only(&p);
        check_i64_eq(a.status, 200);
        check_str_eq(response_header(&a, "Content-Type"), "text/event-stream");
        check_i64_eq(peer_response(&p).status, 204);
        close_stream(&p);
}

static void heads(void **state)
{
        struct peer p;
        struct peer_reply a;

        open_stream(&p, "/events", HTTP_SSE_BARE, 0);
        a = peer_answer_head_only(&p);
        check_i64_eq(a.status, 200);
        check_str_eq(response_header(&a, "Content-Type"), "text/event-stream");
        check_str_eq(response_header(&a, "Cache-Control"), "no-cache");
        check_str_eq(response_header(&a, "X-Accel-Buffering"), "no");
        http_sse_end(&sse);
        http_sse_end(&sse);
        peer_until_eof(&p);
        close_stream(&p);
        check_i64_eq(gone_reason, 0);
}

static void frames_fields(void **state)
{
        static const struct {
                struct http_sse_event event;
                int r;
                const char *text;
        } cases[] = {
                { { .data = STR("one") }, 0, "data: one\n\n" },
                { { .event = STR("e"), .id = STR("7"), .data = STR("x") },
                  0,
                  "event: e\nid: 7\ndata: x\n\n" },
                { { .data = STR("a\nb\r\nc\rd") }, 0, "data: a\ndata: b\ndata: c\ndata: d\n\n" },
                { { .data = STR("a\n") }, 0, "data: a\ndata: \n\n" },
                { { .data = STR("") }, 0, "data: \n\n" },
                { { .event = STR("e\ndata: forged"), .data = STR("x") }, -EINVAL, "" },
                { { .id = STR("e\rx"), .data = STR("x") }, -EINVAL, "" },
                { { .id = STR("a\0b"), .data = STR("x") }, -EINVAL, "" },
        };
        struct peer p;

        open_stream(&p, "/events", HTTP_SSE_FIELDS, 0);
        (void) peer_answer_head_only(&p);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].text);
                check_i64_eq(http_sse_event(&sse, &cases[i].event), cases[i].r);
                peer_until_bytes(&p, strlen(cases[i].text));
                check_str_eq(buf_str(&p.in), cases[i].text);
                buf_reset(&p.in);
        }
        check_i64_eq(http_sse_json(&sse, STR("{\"a\":1}")), 0);
        peer_until_bytes(&p, 15);
        check_str_eq(buf_str(&p.in), "data: {\"a\":1}\n\n");
        http_sse_end(&sse);
        close_stream(&p);
}

static void frames_lines(void **state)
{
        struct peer p;

        open_stream(&p, "/events", HTTP_SSE_LINE, 0);
        (void) peer_answer_head_only(&p);
        check_i64_eq(http_sse_json(&sse, STR("{\n\"a\":1}")), 0);
        check_i64_eq(http_sse_json(&sse, STR("{}")), 0);
        peer_until_bytes(&p, 12);
        check_str_eq(buf_str(&p.in), "{ \"a\":1}\n{}\n");
        http_sse_end(&sse);
        close_stream(&p);
}

static void frames_bare_json(void **state)
{
        struct peer p;

        open_stream(&p, "/events", HTTP_SSE_BARE, 0);
        (void) peer_answer_head_only(&p);
        check_i64_eq(http_sse_json(&sse, STR("{\"a\":1}")), 0);
        check_i64_eq(http_sse_json(&sse, STR("{\n\"a\":\r\n2}")), 0);
        peer_until_bytes(&p, 21);
        check_str_eq(buf_str(&p.in), "{\"a\":1}\n\n{ \"a\":  2}\n\n");
        http_sse_end(&sse);
        close_stream(&p);
}

static void sizes(void **state)
{
        static char text[HTTP_WRITE_MAX];
        struct peer p;

        memset(text, '\n', sizeof(text));
        open_stream(&p, "/events", HTTP_SSE_FIELDS, 0);
        (void) peer_answer_head_only(&p);
        /* Grows past the stack's buffer while it is written. */
        check_i64_eq(http_sse_json(&sse, str_of(text, 2000)), 0);
        peer_until_bytes(&p, 2001 * 7 + 1);
        check_i64_eq(http_sse_json(&sse, str_of(text, sizeof(text))), -EMSGSIZE);
        memset(text, 'x', sizeof(text));
        check_i64_eq(http_sse_json(&sse, str_of(text, sizeof(text) - 8)), 0);
        peer_until_bytes(&p, 2001 * 7 + 1 + sizeof(text));
        http_sse_end(&sse);
        close_stream(&p);
}

static void holds_the_producer_back(void **state)
{
        static char text[8 * KiB];
        struct peer p;
        int r = 0, sent = 0;

        memset(text, 'x', sizeof(text));
        open_stream(&p, "/events", HTTP_SSE_BARE, 0);
        (void) peer_answer_head_only(&p);
        for (; r == 0; sent += r == 0) {
                r = http_sse_json(&sse, str_of(text, sizeof(text)));
                world_turn(&world, 1);
        }
        check_i64_eq(r, -EAGAIN);
        check_false(http_sse_writable(&sse));
        drains = 0;
        peer_until_bytes(&p, (size_t) sent * (sizeof(text) + 2));
        world_turn(&world, 2);
        check_true(drains > 0);
        check_true(http_sse_writable(&sse));
        http_sse_end(&sse);
        close_stream(&p);
}

static void pings_when_nothing_happens(void **state)
{
        struct peer p;

        open_stream(&p, "/events", HTTP_SSE_FIELDS, 10 * USEC_PER_MSEC);
        peer_until_text(&p, "\r\n\r\n:\n\n:\n\n");
        http_sse_end(&sse);
        close_stream(&p);

        open_stream(&p, "/pinging", HTTP_SSE_BARE, 10 * USEC_PER_MSEC);
        peer_until_text(&p, "\r\n\r\n{\"type\":\"ping\"}\n\n{\"type\":\"ping\"}\n\n");
        http_sse_end(&sse);
        check_true(pings >= 2);
        close_stream(&p);
}

static void tells_that_the_client_is_gone(void **state)
{
        struct peer p;

        open_stream(&p, "/events", HTTP_SSE_FIELDS, 0);
        (void) peer_answer_head_only(&p);
        peer_close(&p);
        while (gone_reason == 0)
                world_turn(&world, 1);
        check_i64_eq(gone_reason, -ECONNRESET);
        check_false(http_sse_writable(&sse));
        check_i64_eq(http_sse_json(&sse, STR("1")), -EAGAIN);
        http_sse_end(&sse);
        close_stream(&p);
}

static void a_failed_stream_is_incomplete(void **state)
{
        struct peer p;

        world_open(&world, NULL, &api);
        http_sse_group_init(&group, &world.loop, HTTP_SSE_BARE, 0);
        peer_open(&p, &world);
        peer_sendz(&p, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
        world_turn(&world, 2);
        check_i64_eq(http_sse_json(&sse, STR("1")), 0);
        peer_until_text(&p, "3\r\n1\n\n\r\n");
        http_stream_fail(sse.req);
        http_sse_end(&sse);
        peer_until_eof(&p);
        check_true(str_ends_with(buf_str(&p.in), STR("\n\n\r\n")));
        close_stream(&p);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(heads),
                cmocka_unit_test(head_ends_at_once),
                cmocka_unit_test(frames_fields),
                cmocka_unit_test(frames_bare_json),
                cmocka_unit_test(frames_lines),
                cmocka_unit_test(sizes),
                cmocka_unit_test(holds_the_producer_back),
                cmocka_unit_test(pings_when_nothing_happens),
                cmocka_unit_test(tells_that_the_client_is_gone),
                cmocka_unit_test(a_failed_stream_is_incomplete),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
