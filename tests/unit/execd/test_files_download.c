/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/socket.h"
#include "tests/lib/agent_world.h"

static struct agent_world w;

static int setup(void **state)
{
        (void) state;
        agent_world_open(&w);
        return 0;
}

static int teardown(void **state)
{
        (void) state;
        agent_world_close(&w);
        return 0;
}

static bool has(struct str s, const char *text)
{
        return memmem(s.p, s.n, text, strlen(text)) != NULL;
}

/* --- bytes --- */

static void a_file_is_sent_as_it_is(void **state)
{
        struct reply r;

        put_file(&w, "na\xc3\xafve.bin", STR("a\0b\r\n"));
        check_i64_eq(symlink("na\xc3\xafve.bin", path_in(&w, "link.txt")), 0);
        r = call(&w, "GET", "/files/download?path=na%C3%AFve.bin", NULL);
        check_i64_eq(r.status, 200);
        check_view_eq(r.body, STR("a\0b\r\n"));
        check_str_eq(reply_header(&w, "Content-Type"), "application/octet-stream");
        check_str_eq(reply_header(&w, "Content-Disposition"),
                     "attachment; filename=\"na%C3%AFve.bin\"; filename*=UTF-8''na%C3%AFve.bin");
        check_true(reply_header(&w, "Last-Modified").p != NULL);
        r = call(&w, "GET", "/files/download?path=link.txt", NULL);
        check_u64_eq(r.body.n, 5);
        check_str_eq(reply_header(&w, "Content-Disposition"), "attachment; filename=\"link.txt\"");
        put_file(&w, "empty", STR(""));
        r = call(&w, "GET", "/files/download?path=empty", NULL);
        check_i64_eq(r.status, 200);
        check_str_eq(r.body, "");
        check_true(reply_header(&w, "Last-Modified").p != NULL);
}

static void ranges_are_served(void **state)
{
        static const struct {
                const char *range;
                int status;
                const char *body; /* NULL: an error of code UNKNOWN */
        } cases[] = {
                { "bytes=0-3", 206, "0123" },
                { "bytes=4-", 206, "456789" },
                { "bytes=-2", 206, "89" },
                { "bytes=2-3,5-6", 206, "23" },
                { "bytes=10-", 416, NULL },
                { "bytes=3-1", 416, NULL },
                { "lines=1-2", 416, NULL },
                { "bytes=x", 416, NULL },
                { "bytes=9223372036854775808-", 416, NULL },
                { "bytes=5-99999999999999999999", 206, "56789" },
        };

        put_file(&w, "x", STR("0123456789"));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct reply r = call_with(&w, "GET", "/files/download?path=x", "Range",
                                           cases[i].range, STR_NULL);

                check_case(cases[i].range);
                check_i64_eq(r.status, cases[i].status);
                if (cases[i].body)
                        check_str_eq(r.body, cases[i].body);
                else
                        check_true(has(r.body, "\"UNKNOWN\""));
        }
}

static void downloads_refuse(void **state)
{
        static const struct {
                const char *target;
                int status;
                const char *code;
        } cases[] = {
                { "/files/download", 400, "MISSING_QUERY" },
                { "/files/download?path=", 400, "MISSING_QUERY" },
                { "/files/download?path=no", 404, "FILE_NOT_FOUND" },
                { "/files/download?path=dangling", 404, "FILE_NOT_FOUND" },
                { "/files/download?path=dir", 400, "\"INVALID_FILE\"" },
                { "/files/download?path=fifo", 400, "\"INVALID_FILE\"" },
                { "/files/download?path=fifolink", 400, "\"INVALID_FILE\"" },
                { "/files/download?path=/dev/zero", 400, "\"INVALID_FILE\"" },
                { "/files/download?path=/dev/tty", 400, "\"INVALID_FILE\"" },
                { "/files/download?path=fifo&offset=1", 400, "\"INVALID_FILE\"" },
                { "/files/download?path=loop", 500, "RUNTIME_ERROR" },
                { "/files/download?path=x/y", 500, "RUNTIME_ERROR" },
                { "/files/download?path=/proc/self/mem", 500, "RUNTIME_ERROR" },
                { "/files/download?path=/proc/self/mem&limit=1", 500, "RUNTIME_ERROR" },
                { "/files/download?path=$NO_SUCH_VARIABLE", 500, "RUNTIME_ERROR" },
                { "/files/download?path=x&offset=0", 400, "INVALID_REQUEST_BODY" },
                { "/files/download?path=x&limit=0", 400, "INVALID_REQUEST_BODY" },
                { "/files/download?path=x&offset=-1", 400, "INVALID_REQUEST_BODY" },
                { "/files/download?path=x&limit=many", 400, "INVALID_REQUEST_BODY" },
        };

        put_file(&w, "x", STR("x"));
        check_i64_eq(mkdir(path_in(&w, "dir"), 0755), 0);
        check_i64_eq(mkfifo(path_in(&w, "fifo"), 0600), 0);
        check_i64_eq(symlink("fifo", path_in(&w, "fifolink")), 0);
        check_i64_eq(symlink("loop", path_in(&w, "loop")), 0);
        check_i64_eq(symlink("nowhere", path_in(&w, "dangling")), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct reply r = call(&w, "GET", cases[i].target, NULL);

                check_case(cases[i].target);
                check_i64_eq(r.status, cases[i].status);
                check_true(has(r.body, cases[i].code));
        }
        check_i64_eq(call_with(&w, "GET", "/files/download?path=x&offset=1", "Range", "bytes=0-0",
                               STR_NULL)
                             .status,
                     400);
}

/* Their size is 0 or wrong, their content is not. */
static void files_of_proc_and_sys_are_sent(void **state)
{
        struct reply r = call(&w, "GET", "/files/download?path=/proc/self/status", NULL);

        check_i64_eq(r.status, 200);
        check_true(has(r.body, "Name:"));
        check_str_eq(reply_header(&w, "Content-Disposition"), "attachment; filename=\"status\"");
        r = call(&w, "GET", "/files/download?path=/proc/self/status&limit=1", NULL);
        check_true(has(r.body, "Name:") && !has(r.body, "\n"));
        if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) < 0)
                return;
        r = call(&w, "GET", "/files/download?path=/sys/kernel/mm/transparent_hugepage/enabled",
                 NULL);
        check_i64_eq(r.status, 200);
        check_false(r.failed);
        check_true(has(r.body, "never"));
}

/* --- lines --- */

static void lines_are_chosen(void **state)
{
        static const struct {
                struct str content;
                const char *query;
                struct str body;
        } cases[] = {
                { STR("a\nb\nc\n"), "offset=2", STR("b\nc") },
                { STR("a\nb\nc"), "offset=2", STR("b\nc") },
                { STR("a\nb\nc\n"), "limit=2", STR("a\nb") },
                { STR("a\nb\nc\n"), "offset=2&limit=1", STR("b") },
                { STR("a\nb\nc\n"), "offset=3&limit=99", STR("c") },
                { STR("a\nb\nc\n"), "offset=4", STR("") },
                { STR("a\nb\n"), "offset=18446744073709551615&limit=18446744073709551615",
                  STR("") },
                { STR("a\n\n\nb\n\n"), "offset=1", STR("a\n\n\nb\n") },
                { STR("\n\n"), "offset=1", STR("\n") },
                { STR("\n"), "offset=1", STR("") },
                { STR(""), "offset=1", STR("") },
                { STR("a\r\nb\r\r\n\r\nc\rd\r"), "offset=1", STR("a\nb\r\n\nc\rd") },
                { STR("\xff\0\n"), "limit=1", STR("\xff\0") },
        };
        char target[200];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct reply r;

                check_case(cases[i].query);
                put_file(&w, "x", cases[i].content);
                (void) snprintf(target, sizeof(target), "/files/download?path=x&%s",
                                cases[i].query);
                r = call(&w, "GET", target, NULL);
                check_i64_eq(r.status, 200);
                check_view_eq(r.body, cases[i].body);
                check_str_eq(reply_header(&w, "Content-Type"), "text/plain; charset=utf-8");
        }
}

/* Line ends fall anywhere between two reads. */
static void lines_of_a_large_file_are_complete(void **state)
{
        struct buf b, expected;
        struct reply r;
        size_t n = 30000;

        buf_init(&b, 8 * MiB);
        buf_init(&expected, 8 * MiB);
        for (size_t i = 1; i <= n; i++) {
                buf_addf(&b, "line %zu %.*s\r\n", i, (int) (i % 97),
                         "......................................................................"
                         "...........................");
                if (i >= 12345)
                        buf_addf(&expected, "%sline %zu %.*s", i == 12345 ? "" : "\n", i,
                                 (int) (i % 97),
                                 "............................................................."
                                 "....................................");
        }
        put_file(&w, "x", buf_str(&b));
        r = call(&w, "GET", "/files/download?path=x&offset=12345", NULL);
        check_true(str_eq(r.body, buf_str(&expected)));
        buf_done(&b);
        buf_done(&expected);
}

/* --- a client that does not read --- */

static size_t read_some(int fd, struct buf *in)
{
        char piece[16 * 1024];
        ssize_t n = recv(fd, piece, sizeof(piece), MSG_DONTWAIT);

        if (n > 0)
                buf_add(in, piece, (size_t) n);
        return n > 0 ? (size_t) n : 0;
}

static void a_slow_client_gets_every_line(void **state)
{
        static const char head[] =
                "GET /files/download?path=x&offset=2 HTTP/1.1\r\nHost: x\r\n\r\n";
        scoped(freep) char *big = xcalloc(1, 6 * MiB);
        usec_t started = clock_mono(&clock_system);
        struct sock_addr addr;
        char text[128];
        int listener, fd;
        struct buf in;

        memset(big, 'x', 6 * MiB);
        for (size_t i = 99; i < 6 * MiB; i += 100)
                big[i] = '\n';
        put_file(&w, "x", str_of(big, 6 * MiB));
        (void) snprintf(text, sizeof(text), "unix:%s/sock", w.dir);
        check_i64_eq(sock_addr_from_string(str_from(text), &addr), 0);
        check_i64_eq(sock_listen(&addr, &listener), 0);
        check_i64_eq(http_server_listen(w.agent->server, listener), 0);
        check_i64_eq(sock_connect(&addr, &fd), 0);
        check_i64_eq(send(fd, head, sizeof(head) - 1, MSG_NOSIGNAL), sizeof(head) - 1);
        for (int i = 0; i < 200; i++) /* nothing is read, and the server does not run ahead */
                net_loop_run_once(&w.loop, /* wait= */ false);
        buf_init(&in, 8 * MiB);
        while (in.n < 5 || memcmp(buf_str(&in).p + in.n - 5, "0\r\n\r\n", 5) != 0) {
                (void) read_some(fd, &in);
                net_loop_run_once(&w.loop, /* wait= */ false);
                check_true(clock_mono(&clock_system) - started < 20 * USEC_PER_SEC);
        }
        check_true(in.n >= 6 * MiB - 101);
        check_true(has(buf_str(&in), "200 OK"));
        buf_done(&in);
        (void) fd_close(fd);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(a_file_is_sent_as_it_is),
                TEST(ranges_are_served),
                TEST(downloads_refuse),
                TEST(files_of_proc_and_sys_are_sent),
                TEST(lines_are_chosen),
                TEST(lines_of_a_large_file_are_complete),
                TEST(a_slow_client_gets_every_line),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
