/* SPDX-License-Identifier: Apache-2.0 */
#include "http/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/http_loopback.h"
#include "os/fd.h"
#include "tests/lib/http_peer.h"

static struct world world;
static struct http_file_options options;
static int source; /* what /file serves; each response gets a copy of the descriptor */
static int result; /* of http_reply_file */

static void exec_file(struct http_req *req)
{
        result = http_reply_file(req, fcntl(source, F_DUPFD_CLOEXEC, 0), &options);
        if (result < 0)
                http_reply_error(req, 404, "NOT_A_FILE", "no");
}

static void exec_hello(struct http_req *req)
{
        http_reply(req, 200, STR("text/plain"), STR("hello\n"));
}

static const struct http_route routes[] = {
        { METHOD_GET, "/file", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_file },
        { METHOD_GET, "/hello", .scope = HTTP_SCOPE_PUBLIC, .exec = exec_hello },
};

static const struct http_api api = { "test", "", routes, ARRAY_SIZE(routes) };

/* 2026-01-31 23:59:59 UTC */
#define MODIFIED      1769903999
#define MODIFIED_TEXT "Sat, 31 Jan 2026 23:59:59 GMT"

static char byte_at(size_t i)
{
        return (char) (i * 31 + i / 251);
}

static void fill(size_t n)
{
        static char piece[64 * 1024];
        const struct timespec times[2] = { { .tv_sec = MODIFIED }, { .tv_sec = MODIFIED } };

        check_i64_eq(ftruncate(source, 0), 0);
        for (size_t at = 0; at < n; at += sizeof(piece)) {
                size_t now = MIN_OF(n - at, sizeof(piece));

                for (size_t i = 0; i < now; i++)
                        piece[i] = byte_at(at + i);
                check_i64_eq(pwrite(source, piece, now, (off_t) at), now);
        }
        check_i64_eq(futimens(source, times), 0);
}

static void check_bytes(struct str body, size_t from, size_t n)
{
        check_u64_eq(body.n, n);
        for (size_t i = 0; i < n; i++)
                if (body.p[i] != byte_at(from + i))
                        fail_msg("byte %zu is wrong", i);
}

static int set_up(void **state)
{
        options = (struct http_file_options){ 0 };
        source = memfd_create("source", MFD_CLOEXEC);
        world_open(&world, NULL, &api);
        return source < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
        world_close(&world);
        source = fd_close(source);
        return 0;
}

#define GET(fields) "GET /file HTTP/1.1\r\nHost: x\r\n" fields "\r\n"

static void complete_file(void **state)
{
        struct peer p;
        struct peer_reply a;

        fill(100000);
        peer_open(&p, &world);
        for (int i = 0; i < 2; i++) {
                a = peer_request(&p, GET(""));
                check_i64_eq(a.status, 200);
                check_str_eq(response_header(&a, "Content-Type"), "application/octet-stream");
                check_str_eq(response_header(&a, "Content-Length"), "100000");
                check_str_eq(response_header(&a, "Accept-Ranges"), "bytes");
                check_str_eq(response_header(&a, "Last-Modified"), MODIFIED_TEXT);
                check_true(response_header(&a, "ETag").p == NULL);
                check_bytes(a.body, 0, 100000);
        }
        fill(0);
        a = peer_request(&p, GET("Range: bytes=0-1\r\n"));
        check_i64_eq(a.status, 416);
        a = peer_request(&p, GET(""));
        check_str_eq(response_header(&a, "Content-Length"), "0");
        peer_close(&p);
}

static void ranges(void **state)
{
        static const struct {
                const char *text;
                unsigned flags;
                int status;
                const char *content_range;
                size_t from, n;
        } cases[] = {
                { GET("Range: bytes=0-9\r\n"), 0, 206, "bytes 0-9/1000", 0, 10 },
                { GET("Range: bytes=990-\r\n"), 0, 206, "bytes 990-999/1000", 990, 10 },
                { GET("Range: bytes=-1\r\n"), 0, 206, "bytes 999-999/1000", 999, 1 },
                { GET("Range: bytes=0-99999\r\n"), 0, 206, "bytes 0-999/1000", 0, 1000 },
                { GET("Range: bytes=5-6, 8-9\r\n"), 0, 206, "bytes 5-6/1000", 5, 2 },
                { GET("Range: bytes=1000-\r\n"), 0, 416, "bytes */1000", 0, 0 },
                { GET("Range: rows=1-2\r\n"), 0, 200, NULL, 0, 1000 },
                { GET("Range: bytes=x\r\n"), 0, 200, NULL, 0, 1000 },
                { GET("Range: bytes=x\r\n"), HTTP_FILE_STRICT_RANGE, 416, "bytes */1000", 0, 0 },
                { GET("Range: bytes=0-9\r\nIf-Range: " MODIFIED_TEXT "\r\n"), 0, 206,
                  "bytes 0-9/1000", 0, 10 },
                { GET("Range: bytes=0-9\r\nIf-Range: Sat, 31 Jan 2026 23:59:58 GMT\r\n"), 0, 200,
                  NULL, 0, 1000 },
                { GET("Range: bytes=0-9\r\nIf-Range: \"other\"\r\n"), HTTP_FILE_ETAG, 200, NULL, 0,
                  1000 },
        };
        struct peer p;

        fill(1000);
        peer_open(&p, &world);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct peer_reply a;

                check_case(cases[i].text);
                options.flags = cases[i].flags;
                options.range_code = "UNKNOWN";
                a = peer_request(&p, cases[i].text);
                check_i64_eq(a.status, cases[i].status);
                check_view_eq(response_header(&a, "Content-Range"),
                              str_from(cases[i].content_range));
                if (a.status == 416)
                        check_true(str_starts_with(a.body, STR("{\"code\":\"UNKNOWN\"")));
                else
                        check_bytes(a.body, cases[i].from, cases[i].n);
        }
        peer_close(&p);
}

static void conditions(void **state)
{
        struct peer p;
        struct peer_reply a;
        char tag[80], text[256];

        fill(1000);
        options.flags = HTTP_FILE_ETAG;
        peer_open(&p, &world);
        a = peer_request(&p, GET(""));
        (void) snprintf(tag, sizeof(tag), "%.*s", STR_ARG(response_header(&a, "ETag")));
        check_true(tag[0] == '"');

        (void) snprintf(text, sizeof(text), GET("If-None-Match: %s\r\n"), tag);
        a = peer_request(&p, text);
        check_i64_eq(a.status, 304);
        check_str_eq(response_header(&a, "ETag"), tag);
        check_true(response_header(&a, "Content-Length").p == NULL);
        a = peer_request(&p, GET("If-Modified-Since: " MODIFIED_TEXT "\r\n"));
        check_i64_eq(a.status, 304);
        a = peer_request(&p, GET("If-Modified-Since: Sat, 31 Jan 2026 23:59:58 GMT\r\n"));
        check_i64_eq(a.status, 200);
        (void) snprintf(text, sizeof(text), GET("Range: bytes=3-4\r\nIf-Range: %s\r\n"), tag);
        a = peer_request(&p, text);
        check_i64_eq(a.status, 206);

        fill(1001);
        (void) snprintf(text, sizeof(text), GET("If-None-Match: %s\r\n"), tag);
        a = peer_request(&p, text);
        check_i64_eq(a.status, 200);
        peer_close(&p);
}

static void head(void **state)
{
        struct peer p;
        struct peer_reply a;

        fill(1000);
        peer_open(&p, &world);
        peer_sendz(&p, "HEAD /file HTTP/1.1\r\nHost: x\r\nRange: bytes=0-1\r\n\r\n");
        a = peer_answer_head_only(&p);
        check_i64_eq(a.status, 200);
        check_str_eq(response_header(&a, "Content-Length"), "1000");
        a = peer_request(&p, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        check_str_eq(a.body, "hello\n");
        peer_close(&p);
}

static void other_kinds_are_the_callers(void **state)
{
        static const struct {
                const char *path;
                int r;
        } cases[] = { { "/", -EISDIR }, { "/dev/null", -EINVAL } };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct peer p;

                check_case(cases[i].path);
                source = fd_close(source);
                source = open(cases[i].path, O_RDONLY | O_CLOEXEC);
                peer_open(&p, &world);
                check_i64_eq(peer_request(&p, GET("")).status, 404);
                check_i64_eq(result, cases[i].r);
                peer_close(&p);
        }
}

static void dispositions(void **state)
{
        static const struct {
                struct str name;
                const char *field;
        } cases[] = {
                { STR("a.txt"), "attachment; filename=\"a.txt\"" },
                { STR("/some/where/a b.txt"), "attachment; filename=\"a b.txt\"" },
                { STR("\xc3\xa9.txt"),
                  "attachment; filename=\"%C3%A9.txt\"; filename*=UTF-8''%C3%A9.txt" },
                { STR("a\"b\\c"),
                  "attachment; filename=\"a%22b%5Cc\"; filename*=UTF-8''a%22b%5Cc" },
                { STR("a\r\nSet-Cookie: b"), "attachment; filename=\"a%0D%0ASet-Cookie: b\"; "
                                             "filename*=UTF-8''a%0D%0ASet-Cookie%3A%20b" },
                { STR("100%"), "attachment; filename=\"100%25\"; filename*=UTF-8''100%25" },
                { STR("a\0b"), "attachment; filename=\"a%00b\"; filename*=UTF-8''a%00b" },
        };
        struct peer p;

        fill(3);
        peer_open(&p, &world);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct peer_reply a;

                check_case(cases[i].field);
                options.name = cases[i].name;
                a = peer_request(&p, GET(""));
                check_i64_eq(a.status, 200);
                check_str_eq(response_header(&a, "Content-Disposition"), cases[i].field);
        }
        peer_close(&p);
}

/* The promised length can't be kept: the connection must not go on. */
static void a_shrinking_file_breaks_the_connection(void **state)
{
        struct peer p;

        fill(8 * MiB);
        peer_open(&p, &world);
        peer_sendz(&p, GET("") "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        world_turn(&world, 3);
        check_i64_eq(ftruncate(source, 4 * MiB), 0);
        peer_until_eof(&p);
        check_true(p.in.n >= 4 * MiB && p.in.n < 5 * MiB);
        check_true(memmem(buf_str(&p.in).p + p.in.n - 64, 64, "hello", 5) == NULL);
        peer_close(&p);
}

static void a_growing_file_is_sent_as_promised(void **state)
{
        struct peer p;
        struct peer_reply a;

        fill(4 * MiB);
        peer_open(&p, &world);
        peer_sendz(&p, GET("") "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n");
        world_turn(&world, 3);
        check_i64_eq(ftruncate(source, 8 * MiB), 0);
        a = peer_response(&p);
        check_bytes(a.body, 0, 4 * MiB);
        a = peer_response(&p);
        check_str_eq(a.body, "hello\n");
        peer_close(&p);
}

static void a_client_may_leave_half_way(void **state)
{
        struct peer p;

        fill(8 * MiB);
        peer_open(&p, &world);
        peer_sendz(&p, GET(""));
        peer_until_bytes(&p, 100000);
        peer_close(&p);
        while (http_server_stats(world.server).connections > 0)
                world_turn(&world, 1);
}

static void over_the_loopback(void **state)
{
        struct http_loopback lb;

        fill(1000);
        http_loopback_init(&lb, world.server);
        http_loopback_header(&lb, STR("Range"), STR("bytes=10-19"));
        http_loopback_run(&lb, "GET", "/file", STR_NULL);
        check_i64_eq(lb.status, 206);
        check_bytes(buf_str(&lb.body), 10, 10);
        http_loopback_done(&lb);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
                TEST(complete_file),
                TEST(ranges),
                TEST(conditions),
                TEST(head),
                TEST(other_kinds_are_the_callers),
                TEST(dispositions),
                TEST(a_shrinking_file_breaks_the_connection),
                TEST(a_growing_file_is_sent_as_promised),
                TEST(a_client_may_leave_half_way),
                TEST(over_the_loopback),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
