/* SPDX-License-Identifier: Apache-2.0 */
#include <malloc.h>
#include <sys/resource.h>

#include "base/base.h"
#include "base/json.h"
#include "http/url.h"
#include "os/walk.h"
#include "tests/lib/agent_world.h"
#include "tests/lib/tree.h"
#include "tests/lib/wire.h"

/* GET /files/search, GET /directories/list, DELETE /directories. */

static struct agent_world w;
static int root;

static int setup(void **state)
{
        (void) state;
        check_case("");
        agent_world_open(&w);
        root = open(w.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        check_true(root >= 0);
        return 0;
}

static int teardown(void **state)
{
        (void) state;
        root = fd_close(root);
        agent_world_close(&w);
        return 0;
}

static struct reply call_path(const char *method, const char *target)
{
        return call(&w, method, target, NULL);
}

/* The paths of a response, relative to the workspace, each followed by a space; directories end in
 * a slash and links in an '@'. */
static void paths_of(struct reply r, struct buf *ret)
{
        struct json_error e;
        json_t *doc;

        check_i64_eq(r.status, 200);
        check_false(r.failed);
        check_i64_eq(json_parse(r.body, 0, &doc, &e), 0);
        buf_init(ret, MiB);
        for (size_t i = 0; i < json_array_size(doc); i++) {
                const json_t *o = json_array_get(doc, i);
                const char *path = json_string_value(json_object_get(o, "path"));
                const char *type = json_string_value(json_object_get(o, "type"));

                check_true(str_starts_with(str_from(path), str_from(w.dir)));
                buf_add_str(ret, str_from(path + strlen(w.dir) + 1));
                if (strcmp(type, "directory") == 0)
                        buf_add_char(ret, '/');
                if (strcmp(type, "symlink") == 0)
                        buf_add_char(ret, '@');
                buf_add_char(ret, ' ');
        }
        json_decref(doc);
}

static void check_paths(const char *target, const char *want)
{
        scoped(buf_done) struct buf b;

        paths_of(call_path("GET", target), &b);
        check_str_eq(buf_str(&b), want);
}

static const char *const sample[] = {
        "src/",
        "src/a.c",
        "src/a.h",
        "src/deep/",
        "src/deep/b.c",
        "README.md",
        "src/out -> ..",
        "src/p |",
        "empty/",
        "to-src -> src",
        "dangling -> nowhere",
        ".hidden",
        NULL,
};

/* --- search --- */

static void test_search(void **state)
{
        static const struct {
                const char *target, *want;
        } cases[] = {
                { "/files/search?path=.", ".hidden README.md dangling@ src/a.c src/a.h "
                                          "src/deep/b.c src/out@ src/p to-src@ " },
                { "/files/search?path=.&pattern=", ".hidden README.md dangling@ src/a.c src/a.h "
                                                   "src/deep/b.c src/out@ src/p to-src@ " },
                { "/files/search?path=src&pattern=*.c", "src/a.c src/deep/b.c " },
                { "/files/search?path=./src//&pattern=**/*.c", "src/a.c src/deep/b.c " },
                { "/files/search?path=src&pattern=%7Ba,b%7D.[ch]",
                  "src/a.c src/a.h src/deep/b.c " },
                { "/files/search?path=src&pattern=deep", "" },
                { "/files/search?path=src&pattern=src/a.c", "" },
                { "/files/search?path=empty", "" },
                { "/files/search?path=README.md", "README.md " },
                { "/files/search?path=README.md&pattern=*.c", "" },
                { "/files/search?path=to-src", "to-src@ " },
                { "/files/search?path=to-src/&pattern=a.c", "to-src/a.c " },
        };

        tree_fill(root, sample);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].target);
                check_paths(cases[i].target, cases[i].want);
                check_str_eq(reply_header(&w, "Content-Type"), "application/json");
        }
}

struct error_case {
        const char *method, *target;
        int status;
        const char *code;
};

static void check_errors(const struct error_case *cases, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                scoped(buf_done) struct buf want;
                struct reply r;

                check_case(cases[i].target);
                r = call_path(cases[i].method, cases[i].target);
                check_i64_eq(r.status, cases[i].status);
                buf_init(&want, 100);
                buf_addf(&want, "{\"code\":\"%s\",\"message\":\"", cases[i].code);
                check_true(str_starts_with(r.body, buf_str(&want)));
        }
}

static void test_search_errors(void **state)
{
        static const struct error_case cases[] = {
                { "GET", "/files/search", 400, "MISSING_QUERY" },
                { "GET", "/files/search?path=", 400, "MISSING_QUERY" },
                { "GET", "/files/search?pattern=*", 400, "MISSING_QUERY" },
                { "GET", "/files/search?path=%zz", 400, "INVALID_REQUEST_BODY" },
                { "GET", "/files/search?path=nothing", 404, "FILE_NOT_FOUND" },
                { "GET", "/files/search?path=dangling", 404, "FILE_NOT_FOUND" },
                { "GET", "/files/search?path=$NO_SUCH_VARIABLE", 500, "RUNTIME_ERROR" },
                { "GET", "/files/search?path=.&pattern=[", 400, "INVALID_REQUEST_BODY" },
                { "GET", "/files/search?path=.&pattern=%7B", 400, "INVALID_REQUEST_BODY" },
                { "GET", "/files/search?path=.&pattern=%zz", 400, "INVALID_REQUEST_BODY" },
        };

        tree_fill(root, sample);
        check_errors(cases, ARRAY_SIZE(cases));
}

static void test_search_reports_what_info_reports(void **state)
{
        struct reply r;

        put_file(&w, "f", STR("12345"));
        r = call_path("GET", "/files/search?path=.");
        check_i64_eq(r.status, 200);
        check_true(memmem(r.body.p, r.body.n, "\"size\":5,", 9) != NULL);
        check_true(memmem(r.body.p, r.body.n, "\"mode\":644}", 11) != NULL);
}

static void test_names_that_are_not_utf8(void **state)
{
        static const char *const list[] = { "d\xFF/", "d\xFF/f\xFE", NULL };
        scoped(buf_done) struct buf target;
        struct reply r;

        tree_fill(root, list);
        r = call_path("GET", "/files/search?path=.");
        check_i64_eq(r.status, 200);
        check_true(memmem(r.body.p, r.body.n, "/d%FF/f%FE\"", 11) != NULL);
        r = call_path("GET", "/files/search?path=d%FF&pattern=f%FE");
        check_true(memmem(r.body.p, r.body.n, "/d%FF/f%FE\"", 11) != NULL);
        r = call_path("GET", "/directories/list?path=d%FF");
        check_true(memmem(r.body.p, r.body.n, "/d%FF/f%FE\"", 11) != NULL);
        buf_init(&target, 200);
        buf_addf(&target, "/directories?path=file://%s/d%%25FF", w.dir);
        r = call_path("DELETE", buf_str(&target).p);
        check_i64_eq(r.status, 200);
        check_false(tree_has(root, "d\xFF"));
}

/* Files too deep to be named are left out; what is above them is listed. */
static void test_search_in_a_very_deep_tree(void **state)
{
        static const char *const more[] = { "f", NULL };
        struct reply r;
        size_t n = 0;

        tree_add_deep(root, 2100, more);
        r = call_path("GET", "/files/search?path=.&pattern=f");
        check_i64_eq(r.status, 200);
        check_false(r.failed);
        for (size_t i = 0; i + 6 < r.body.n; i++)
                n += memcmp(r.body.p + i, "\"path\"", 6) == 0;
        check_true(n > 1900 && n < 2048);
        check_i64_eq(call_path("DELETE", "/directories?path=a").status, 200);
        check_false(tree_has(root, "a"));
}

/* --- lists --- */

static void test_list(void **state)
{
        static const struct {
                const char *target, *want;
        } cases[] = {
                { "/directories/list?path=.", ".hidden README.md dangling@ empty/ src/ to-src@ " },
                { "/directories/list?path=.&depth=0", "" },
                { "/directories/list?path=.&depth=1",
                  ".hidden README.md dangling@ empty/ src/ to-src@ " },
                { "/directories/list?path=src&depth=2",
                  "src/a.c src/a.h src/deep/ src/deep/b.c src/out@ src/p " },
                { "/directories/list?path=src/&depth=2147483647",
                  "src/a.c src/a.h src/deep/ src/deep/b.c src/out@ src/p " },
                { "/directories/list?path=empty", "" },
        };

        tree_fill(root, sample);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].target);
                check_paths(cases[i].target, cases[i].want);
        }
        check_str_eq(call_path("GET", "/directories/list?path=empty").body, "[]");
        check_str_eq(call_path("GET", "/directories/list?path=src&depth=0").body, "[]");
}

static void test_list_errors(void **state)
{
        static const struct error_case cases[] = {
                { "GET", "/directories/list", 400, "MISSING_QUERY" },
                { "GET", "/directories/list?path=nothing", 404, "FILE_NOT_FOUND" },
                { "GET", "/directories/list?path=README.md", 400, "INVALID_REQUEST_BODY" },
                { "GET", "/directories/list?path=to-src", 400, "INVALID_REQUEST_BODY" },
                { "GET", "/directories/list?path=src/p", 400, "INVALID_REQUEST_BODY" },
                { "GET", "/directories/list?path=dangling", 400, "INVALID_REQUEST_BODY" },
                { "GET", "/directories/list?path=src&depth=-1", 400, "INVALID_REQUEST_BODY" },
                { "GET", "/directories/list?path=src&depth=x", 400, "INVALID_REQUEST_BODY" },
                { "GET", "/directories/list?path=src&depth=1e3", 400, "INVALID_REQUEST_BODY" },
                { "GET", "/directories/list?path=nothing&depth=0", 404, "FILE_NOT_FOUND" },
        };

        tree_fill(root, sample);
        check_errors(cases, ARRAY_SIZE(cases));
}

static void test_head_has_no_content(void **state)
{
        tree_fill(root, sample);
        check_i64_eq(call_path("HEAD", "/directories/list?path=.").status, 200);
        check_u64_eq(w.lb.body.n, 0);
}

/* --- removal --- */

static void test_delete(void **state)
{
        tree_fill(root, sample);
        check_i64_eq(call_path("DELETE", "/directories?path=empty&path=nothing&path=src/").status,
                     200);
        check_u64_eq(w.lb.body.n, 0);
        check_false(tree_has(root, "empty"));
        check_false(tree_has(root, "src"));
        check_true(tree_has(root, "README.md"));
        /* A link goes, not what it points to. */
        tree_add(root, "kept/");
        tree_add(root, "link -> kept");
        check_i64_eq(call_path("DELETE", "/directories?path=link").status, 200);
        check_false(tree_has(root, "link"));
        check_true(tree_has(root, "kept"));
        check_i64_eq(call_path("DELETE", "/directories?path=README.md").status, 200);
        check_false(tree_has(root, "README.md"));
        check_i64_eq(call_path("DELETE", "/directories").status, 200);
}

static void test_delete_refuses_the_root_before_anything(void **state)
{
        static const struct error_case cases[] = {
                { "DELETE", "/directories?path=src&path=/", 400, "INVALID_REQUEST_BODY" },
                { "DELETE", "/directories?path=src&path=//.///", 400, "INVALID_REQUEST_BODY" },
                { "DELETE", "/directories?path=src&path=file:///", 400, "INVALID_REQUEST_BODY" },
                { "DELETE", "/directories?path=src&path=src/..", 400, "INVALID_REQUEST_BODY" },
                { "DELETE", "/directories?path=src&path=/tmp/../", 400, "INVALID_REQUEST_BODY" },
                { "DELETE", "/directories?path=src&path=", 400, "INVALID_REQUEST_BODY" },
                { "DELETE", "/directories?path=src&path=README.md/x", 500, "RUNTIME_ERROR" },
        };

        tree_fill(root, sample);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_errors(&cases[i], 1);
                if (cases[i].status == 400)
                        check_true(tree_has(root, "src/deep/b.c"));
        }
}

static void test_delete_of_ten_thousand_levels(void **state)
{
        tree_add_deep(root, 10000, NULL);
        check_i64_eq(call_path("DELETE", "/directories?path=a").status, 200);
        check_false(tree_has(root, "a"));
}

/* --- many files, other requests, clients that disconnect --- */

static void make_files(unsigned n)
{
        char name[32];

        check_i64_eq(mkdirat(root, "many", 0755), 0);
        for (unsigned i = 0; i < n; i++) {
                (void) snprintf(name, sizeof(name), "many/%u", i);
                check_i64_eq(mknodat(root, name, S_IFREG | 0600, 0), 0);
        }
}

static size_t heap_in_use(void)
{
        struct mallinfo2 m = mallinfo2();

        return m.uordblks + m.hblkhd;
}

/* While a long response is produced, other requests are served, and memory stays bounded. */
static void test_many_files_in_bounded_memory_with_others_served(void **state)
{
        struct http_loopback lb, other;
        size_t before, most = 0, turns = 0;

        make_files(100000);
        http_loopback_init(&lb, w.agent->server);
        before = heap_in_use();
        http_loopback_start(&lb, "GET", "/files/search?path=many&pattern=*99999", STR_NULL);
        check_false(lb.ended);
        while (!lb.ended) {
                http_loopback_init(&other, w.agent->server);
                http_loopback_start(&other, "GET", "/ping", STR_NULL);
                check_i64_eq(other.status, 200);
                http_loopback_done(&other);
                net_loop_run_once(&w.loop, /* wait= */ false);
                most = MAX_OF(most, heap_in_use());
                turns++;
        }
        check_i64_eq(lb.status, 200);
        check_true(memmem(lb.body.p, lb.body.n, "/many/99999\"", 12) != NULL);
        check_true(most - before < 2 * WALK_SORT_MAX);
        check_true(turns > 5);
        http_loopback_done(&lb);
        check_i64_eq(call_path("DELETE", "/directories?path=many").status, 200);
        check_false(tree_has(root, "many"));
}

/* A client that does not read holds the response back; once it reads, everything arrives. */
static void test_client_that_does_not_read(void **state)
{
        struct sock_addr addr;
        struct wire_peer slow;
        char text[128];
        size_t before;
        int fd;

        make_files(50000);
        (void) snprintf(text, sizeof(text), "unix:%s/sock", w.dir);
        check_i64_eq(sock_addr_from_string(str_from(text), &addr), 0);
        check_i64_eq(sock_listen(&addr, &fd), 0);
        check_i64_eq(http_server_listen(w.agent->server, fd), 0);
        wire_connect(&slow, &addr);
        before = heap_in_use();
        wire_send(&w.loop, &slow, STR("GET /files/search?path=many HTTP/1.1\r\nHost: x\r\n\r\n"));
        wire_settle(&w.loop);
        wire_until(&w.loop, list_empty(&w.loop.tasks));
        wire_settle(&w.loop);
        check_true(list_empty(&w.loop.tasks));
        check_true(heap_in_use() - before < 5 * MiB); /* the names; the response has twice that */
        wire_until(&w.loop, wire_read(&slow, MiB));
        check_true(str_starts_with(buf_str(&slow.in), STR("HTTP/1.1 200")));
        wire_until(&w.loop, !wire_read(&slow, MiB)
                                    && str_ends_with(buf_str(&slow.in), STR("\r\n0\r\n\r\n")));
        check_true(slow.in.n > 8 * MiB);
        check_true(memmem(slow.in.p, slow.in.n, "/many/49999\"", 12) != NULL);
        wire_done(&slow);
}

/* A directory that cannot be opened for lack of descriptors is not silently left out. */
static void test_without_descriptors_no_response_is_complete(void **state)
{
        static const char *const files[] = { "d/", "d/sub/", "d/sub/file", NULL };
        struct rlimit was, small;
        struct reply r;

        tree_fill(root, files);
        check_i64_eq(call_path("GET", "/files/search?path=d").status, 200);
        check_i64_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
        small = (struct rlimit){ (rlim_t) fcntl(root, F_DUPFD_CLOEXEC, 0) + 1, was.rlim_max };
        check_i64_eq(close((int) small.rlim_cur - 1), 0);
        check_i64_eq(setrlimit(RLIMIT_NOFILE, &small), 0);
        r = call_path("GET", "/files/search?path=d");
        check_i64_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
        check_i64_eq(r.status, 200);
        check_true(r.failed);
}

static void test_client_leaves(void **state)
{
        unsigned fds;

        make_files(5000);
        fds = tree_open_fds();
        for (int i = 0; i < 2; i++) {
                struct http_loopback lb;

                http_loopback_init(&lb, w.agent->server);
                http_loopback_start(&lb, i ? "DELETE" : "GET",
                                    i ? "/directories?path=many" : "/files/search?path=many",
                                    STR_NULL);
                check_false(lb.ended);
                check_true(tree_open_fds() > fds);
                http_loopback_abort(&lb, -ECONNRESET);
                http_loopback_done(&lb);
                net_loop_run_once(&w.loop, /* wait= */ false);
                check_u64_eq(tree_open_fds(), fds);
        }
}

/* Entries come and go while the tree is listed. */
static void test_changes_meanwhile(void **state)
{
        struct http_loopback lb;
        char name[32];
        unsigned i = 0;

        make_files(5000);
        http_loopback_init(&lb, w.agent->server);
        http_loopback_start(&lb, "GET", "/files/search?path=many", STR_NULL);
        while (!lb.ended) {
                (void) snprintf(name, sizeof(name), "many/%u", i++);
                (void) unlinkat(root, name, 0);
                (void) snprintf(name, sizeof(name), "many/new%u", i);
                (void) mknodat(root, name, S_IFREG | 0600, 0);
                net_loop_run_once(&w.loop, /* wait= */ false);
        }
        check_i64_eq(lb.status, 200);
        check_false(lb.failed);
        check_true(memmem(lb.body.p, lb.body.n, "/many/4999\"", 11) != NULL);
        check_true(str_ends_with(buf_str(&lb.body), STR("}]")));
        http_loopback_done(&lb);
}

#define t(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                t(test_search),
                t(test_search_errors),
                t(test_search_reports_what_info_reports),
                t(test_names_that_are_not_utf8),
                t(test_search_in_a_very_deep_tree),
                t(test_list),
                t(test_list_errors),
                t(test_head_has_no_content),
                t(test_delete),
                t(test_delete_refuses_the_root_before_anything),
                t(test_delete_of_ten_thousand_levels),
                t(test_many_files_in_bounded_memory_with_others_served),
                t(test_client_that_does_not_read),
                t(test_without_descriptors_no_response_is_complete),
                t(test_client_leaves),
                t(test_changes_meanwhile),
        };

        tree_use_memory();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
