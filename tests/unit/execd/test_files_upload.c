/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "os/socket.h"
#include "tests/lib/agent_world.h"

#define BOUNDARY "xYzZY"
#define TYPE     "multipart/form-data; boundary=" BOUNDARY

static struct agent_world w;
static struct buf body;

static int setup(void **state)
{
        (void) state;
        (void) signal(SIGXFSZ, SIG_IGN);
        (void) umask(022);
        agent_world_open(&w);
        buf_init(&body, 16 * MiB);
        return 0;
}

static int teardown(void **state)
{
        (void) state;
        buf_done(&body);
        agent_world_close(&w);
        return 0;
}

/* --- bodies --- */

static void add_part(const char *name, const char *filename, struct str content)
{
        buf_addf(&body, "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"%s\"", name);
        if (filename)
                buf_addf(&body, "; filename=\"%s\"", filename);
        buf_add_str(&body, STR("\r\nContent-Type: application/octet-stream\r\n\r\n"));
        buf_add_str(&body, content);
        buf_add_str(&body, STR("\r\n"));
}

static void add_pair(const char *metadata, struct str content)
{
        add_part("metadata", "metadata", str_from(metadata));
        add_part("file", "x", content);
}

static struct reply send_body(void)
{
        struct reply r;

        buf_add_str(&body, STR("--" BOUNDARY "--\r\n"));
        r = call_with(&w, "POST", "/files/upload", "Content-Type", TYPE, buf_str(&body));
        buf_reset(&body);
        return r;
}

static struct reply upload(const char *metadata, struct str content)
{
        add_pair(metadata, content);
        return send_body();
}

static bool has_code(struct reply r, const char *code)
{
        return memmem(r.body.p, r.body.n, code, strlen(code)) != NULL;
}

static mode_t mode_of(const char *name)
{
        struct stat st;

        check_i64_eq(lstat(path_in(&w, name), &st), 0);
        return st.st_mode & 07777;
}

static size_t entries(void)
{
        DIR *d = opendir(w.dir);
        size_t n = 0;

        check_true(d != NULL);
        while (readdir(d))
                n++;
        (void) closedir(d);
        return n - 2;
}

/* --- what is written --- */

static void files_are_written(void **state)
{
        struct reply r = upload("{\"path\":\"a/b/new\",\"mode\":640}", STR("hello\r\n--x"));

        check_i64_eq(r.status, 200);
        check_str_eq(r.body, "");
        check_true(file_is(&w, "a/b/new", STR("hello\r\n--x")));
        check_i64_eq(mode_of("a/b/new"), 0640);
        check_i64_eq(mode_of("a/b"), 0755);
        check_i64_eq(upload("{\"path\":\"plain\"}", STR("")).status, 200);
        check_true(file_is(&w, "plain", STR("")));
        check_i64_eq(mode_of("plain"), 0755);
        check_u64_eq(entries(), 2);
}

static void an_existing_file_keeps_unset_attributes(void **state)
{
        struct stat st;

        put_file(&w, "old", STR("a longer old content"));
        check_i64_eq(chmod(path_in(&w, "old"), 0600), 0);
        if (geteuid() == 0)
                check_i64_eq(chown(path_in(&w, "old"), 21, 22), 0);
        check_i64_eq(upload("{\"path\":\"old\",\"mode\":0}", STR("new")).status, 200);
        check_true(file_is(&w, "old", STR("new")));
        check_i64_eq(mode_of("old"), 0600);
        if (geteuid() != 0)
                return;
        check_i64_eq(upload("{\"path\":\"old\",\"group\":\"33\"}", STR("newer")).status, 200);
        check_i64_eq(stat(path_in(&w, "old"), &st), 0);
        check_true(st.st_uid == 21 && st.st_gid == 33);
        check_i64_eq(upload("{\"path\":\"p/q/r\",\"owner\":\"44\",\"mode\":4755}", STR("x")).status,
                     200);
        check_i64_eq(stat(path_in(&w, "p"), &st), 0);
        check_true(st.st_uid == 44 && (st.st_mode & 07777) == 0755);
        check_i64_eq(mode_of("p/q/r"), 04755);
}

static void pairs_are_made_by_order(void **state)
{
        add_part("metadata", NULL, STR("{\"path\":\"one\"}"));
        add_part("comment", NULL, STR("nothing"));
        add_part("metadata", "m", STR("{\"path\":\"two\"} and more"));
        add_part("file", NULL, STR("1"));
        add_part("file", "../../etc/passwd", STR("2"));
        add_part("metadata", "m", STR("{\"path\":\"three\"}"));
        add_part("file", "", STR("3"));
        check_i64_eq(send_body().status, 200);
        check_true(file_is(&w, "one", STR("1")));
        check_true(file_is(&w, "two", STR("2")));
        check_true(file_is(&w, "three", STR("3")));
}

static void large_content_arrives(void **state)
{
        scoped(freep) char *big = xcalloc(1, 9 * MiB);

        for (size_t i = 0; i < 9 * MiB; i++)
                big[i] = (char) (i * 31 >> 5);
        check_i64_eq(upload("{\"path\":\"big\"}", str_of(big, 9 * MiB)).status, 200);
        check_true(file_is(&w, "big", str_of(big, 9 * MiB)));
}

/* Many small files in one read, each waiting for the disk: other requests are served in between, and the files
 * appear in their order. */
static void many_files_do_not_keep_others_waiting(void **state)
{
        struct http_loopback lb;
        char text[64];

        for (int i = 0; i < 40; i++) {
                (void) snprintf(text, sizeof(text), "{\"path\":\"many/%d\"}", i);
                add_pair(text, str_from(text));
        }
        buf_add_str(&body, STR("--" BOUNDARY "--\r\n"));
        http_loopback_init(&lb, w.agent->server);
        http_loopback_header(&lb, STR("Content-Type"), STR(TYPE));
        http_loopback_start(&lb, "POST", "/files/upload", buf_str(&body));
        check_false(lb.ended);
        check_i64_eq(call(&w, "GET", "/ping", NULL).status, 200);
        check_false(lb.ended);
        http_loopback_abort(&lb, -ECONNRESET);
        http_loopback_done(&lb);
        check_i64_eq(
                call_with(&w, "POST", "/files/upload", "Content-Type", TYPE, buf_str(&body)).status,
                200);
        for (int i = 0; i < 40; i++) {
                char name[32];

                (void) snprintf(name, sizeof(name), "many/%d", i);
                (void) snprintf(text, sizeof(text), "{\"path\":\"many/%d\"}", i);
                check_true(file_is(&w, name, str_from(text)));
        }
}

/* The second file waits for its place while the third makes a directory there. */
static void a_file_that_finds_its_place_taken_is_reported(void **state)
{
        struct reply r;

        add_pair("{\"path\":\"first\"}", STR("1"));
        add_pair("{\"path\":\"taken\"}", STR("2"));
        add_pair("{\"path\":\"taken/third\"}", STR("3"));
        r = send_body();
        check_i64_eq(r.status, 500);
        check_true(has_code(r, "/taken': Is a directory"));
        check_str_eq(reply_header(&w, "EXECD-FAILED-FILE"), "1");
        check_true(file_is(&w, "first", STR("1")));
        check_i64_eq(rmdir(path_in(&w, "taken")), 0);
        check_u64_eq(entries(), 1);
}

/* A complete file is in place when the client gets the error of the next one. */
static void files_before_a_failure_stay(void **state)
{
        static const struct {
                const char *metadata;
                int status;
        } next[] = {
                { "{", 400 },
                { "{\"path\":\"x\",\"mode\":9}", 400 },
                { "{\"path\":\"x\",\"owner\":\"nosuchuser\"}", 500 },
                { "{\"path\":\".\"}", 500 },
                { "\x01", 400 },
                { NULL, 400 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(next); i++) {
                check_case(next[i].metadata ? next[i].metadata : "none");
                put_file(&w, "good", STR("old"));
                add_pair("{\"path\":\"good\"}", STR("new"));
                if (next[i].metadata)
                        add_part("metadata", "m", str_from(next[i].metadata));
                add_part("file", "f", STR("bad"));
                add_pair("{\"path\":\"never\"}", STR("never"));
                check_i64_eq(send_body().status, next[i].status);
                check_str_eq(reply_header(&w, "EXECD-FAILED-FILE"), "1");
                check_true(file_is(&w, "good", STR("new")));
                check_u64_eq(entries(), 1);
        }
}

static void links_are_written_through(void **state)
{
        put_file(&w, "target", STR("old"));
        check_i64_eq(symlink("target", path_in(&w, "link")), 0);
        check_i64_eq(symlink("made", path_in(&w, "dangling")), 0);
        check_i64_eq(upload("{\"path\":\"link\"}", STR("new")).status, 200);
        check_true(file_is(&w, "target", STR("new")));
        check_i64_eq(upload("{\"path\":\"dangling\"}", STR("x")).status, 200);
        check_true(file_is(&w, "made", STR("x")));
        check_u64_eq(entries(), 4);
}

/* --- what is refused --- */

static void bodies_that_make_no_pairs_are_refused(void **state)
{
        struct reply r;

        r = call_with(&w, "POST", "/files/upload", "Content-Type", "application/json", STR("{}"));
        check_i64_eq(r.status, 400);
        check_true(has_code(r, "\"INVALID_FILE\""));
        r = call_with(&w, "POST", "/files/upload", "Content-Type", "multipart/form-data", STR("x"));
        check_i64_eq(r.status, 400);
        check_true(has_code(r, "\"INVALID_FILE\""));
        r = send_body();
        check_i64_eq(r.status, 400);
        check_true(has_code(r, "\"INVALID_FILE_METADATA\""));
        add_part("file", "x", STR("x"));
        r = send_body();
        check_i64_eq(r.status, 400);
        check_true(has_code(r, "\"INVALID_FILE_METADATA\""));
        add_part("metadata", "m", STR("{\"path\":\"one\"}"));
        r = send_body();
        check_i64_eq(r.status, 400);
        check_true(has_code(r, "\"INVALID_FILE_CONTENT\""));
        add_pair("{\"path\":\"one\"}", STR("1"));
        add_part("file", "x", STR("2"));
        r = send_body();
        check_i64_eq(r.status, 400);
        check_true(has_code(r, "\"INVALID_FILE\""));
        add_pair("{\"path\":\"one\"}", STR("1"));
        add_part("metadata", "x", STR("{\"path\":\"two\"}"));
        r = send_body();
        check_i64_eq(r.status, 400);
        check_true(has_code(r, "\"INVALID_FILE\""));
        check_u64_eq(entries(), 1);
}

static void every_bad_target_is_refused(void **state)
{
        static const struct {
                const char *metadata;
                int status;
                const char *code;
        } cases[] = {
                { "", 400, "INVALID_FILE_METADATA" },
                { "{", 400, "INVALID_FILE_METADATA" },
                { "[]", 400, "INVALID_FILE_METADATA" },
                { "{}", 400, "INVALID_FILE_METADATA" },
                { "{\"path\":\"\"}", 400, "INVALID_FILE_METADATA" },
                { "{\"path\":\"x\",\"mode\":800}", 400, "INVALID_FILE_METADATA" },
                { "{\"path\":\"file://host/x\"}", 400, "INVALID_FILE_METADATA" },
                { "{\"path\":\"x\",\"owner\":\"nosuchuser\"}", 500, "RUNTIME_ERROR" },
                { "{\"path\":\"x\",\"group\":\"nosuchgroup\"}", 500, "RUNTIME_ERROR" },
                { "{\"path\":\"$NO_SUCH_VARIABLE/x\"}", 500, "RUNTIME_ERROR" },
                { "{\"path\":\"dir\"}", 500, "RUNTIME_ERROR" },
                { "{\"path\":\"dir/\"}", 500, "RUNTIME_ERROR" },
                { "{\"path\":\"fifo\"}", 500, "RUNTIME_ERROR" },
                { "{\"path\":\"fifolink\"}", 500, "RUNTIME_ERROR" },
                { "{\"path\":\"loop\"}", 500, "RUNTIME_ERROR" },
                { "{\"path\":\"plain/x\"}", 500, "RUNTIME_ERROR" },
                { "{\"path\":\"/dev/null\"}", 500, "RUNTIME_ERROR" },
                { "{\"path\":\"/dev/zero\"}", 500, "RUNTIME_ERROR" },
                { "{\"path\":\"/proc/self/mem\"}", 500, "RUNTIME_ERROR" },
                { "{\"path\":\"/proc/nothing/x\"}", 500, "RUNTIME_ERROR" },
        };
        size_t before;

        put_file(&w, "plain", STR("old"));
        check_i64_eq(mkdir(path_in(&w, "dir"), 0755), 0);
        check_i64_eq(mkfifo(path_in(&w, "fifo"), 0600), 0);
        check_i64_eq(symlink("fifo", path_in(&w, "fifolink")), 0);
        check_i64_eq(symlink("loop", path_in(&w, "loop")), 0);
        before = entries();
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct reply r = upload(cases[i].metadata, STR("content"));

                check_case(cases[i].metadata);
                check_i64_eq(r.status, cases[i].status);
                check_true(has_code(r, cases[i].code));
        }
        check_u64_eq(entries(), before);
        check_true(file_is(&w, "plain", STR("old")));
}

static void too_much_is_refused(void **state)
{
        scoped(freep) char *big = xcalloc(1, 70 * KiB);
        struct reply r;

        memset(big, ' ', 70 * KiB);
        add_part("metadata", "m", str_of(big, 70 * KiB));
        r = send_body();
        check_i64_eq(r.status, 400);
        check_true(has_code(r, "INVALID_FILE_METADATA"));
        for (int i = 0; i < 40; i++)
                add_part("metadata", "m", str_of(big, 60 * KiB));
        r = send_body();
        check_i64_eq(r.status, 400);
        check_true(has_code(r, "INVALID_FILE_METADATA"));
        for (int i = 0; i < 20001; i++)
                add_part("z", NULL, STR(""));
        r = send_body();
        check_i64_eq(r.status, 400);
        check_true(has_code(r, "INVALID_FILE"));
        check_u64_eq(entries(), 0);
}

/* The last metadata has no bytes, and there is not even room for its end. */
static void metadata_that_fill_their_room_are_refused(void **state)
{
        static const char text[] = "{\"path\":\"full\"}";
        scoped(freep) char *big = xcalloc(1, 64 * KiB);
        size_t left = MiB;
        struct reply r;

        memset(big, ' ', 64 * KiB);
        memcpy(big, text, sizeof(text) - 1);
        for (; left > 0; left -= MIN_OF(left, 64 * KiB + 1))
                add_part("metadata", "m", str_of(big, MIN_OF(left - 1, 64 * KiB)));
        add_part("metadata", "m", STR(""));
        for (int i = 0; i < 17; i++)
                add_part("file", "f", STR("x"));
        r = send_body();
        check_i64_eq(r.status, 400);
        check_true(has_code(r, "INVALID_FILE_METADATA"));
        check_u64_eq(entries(), 0);
}

static void a_broken_body_leaves_no_trace(void **state)
{
        struct reply r;

        put_file(&w, "old", STR("old"));
        add_pair("{\"path\":\"old\"}", STR("unfinished"));
        r = call_with(&w, "POST", "/files/upload", "Content-Type", TYPE, buf_str(&body));
        check_i64_eq(r.status, 400);
        check_true(has_code(r, "INVALID_FILE"));
        check_true(file_is(&w, "old", STR("old")));
        check_u64_eq(entries(), 1);
}

static void a_file_over_the_limit_leaves_the_old_one(void **state)
{
        scoped(freep) char *big = xcalloc(1, 256 * KiB);
        struct rlimit was, small;
        struct reply r;

        put_file(&w, "old", STR("old"));
        check_i64_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
        small = (struct rlimit){ 64 * KiB, was.rlim_max };
        check_i64_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
        r = upload("{\"path\":\"old\"}", str_of(big, 256 * KiB));
        check_i64_eq(setrlimit(RLIMIT_FSIZE, &was), 0);
        check_i64_eq(r.status, 500);
        check_true(has_code(r, "RUNTIME_ERROR"));
        check_true(file_is(&w, "old", STR("old")));
        check_u64_eq(entries(), 1);
}

/* --- over sockets --- */

struct client {
        int fd;
        char in[1024];
        size_t n;
};

static void client_open(struct client *c, struct sock_addr *a)
{
        int r = sock_connect(a, &c->fd);

        check_true(r == 0 || r == -EINPROGRESS);
        c->n = 0;
}

static void client_send(struct client *c, struct str bytes)
{
        while (bytes.n > 0) {
                ssize_t n = send(c->fd, bytes.p, bytes.n, MSG_DONTWAIT | MSG_NOSIGNAL);

                check_true(n > 0 || errno == EAGAIN);
                bytes = str_skip(bytes, n > 0 ? (size_t) n : 0);
                net_loop_run_once(&w.loop, /* wait= */ false);
        }
}

static int client_status(struct client *c)
{
        usec_t started = clock_mono(&clock_system);

        while (c->n < 12) {
                ssize_t n = recv(c->fd, c->in + c->n, sizeof(c->in) - c->n, MSG_DONTWAIT);

                check_true(n > 0 || (n < 0 && errno == EAGAIN));
                c->n += n > 0 ? (size_t) n : 0;
                check_true(clock_mono(&clock_system) - started < 20 * USEC_PER_SEC);
                net_loop_run_once(&w.loop, /* wait= */ false);
        }
        return (c->in[9] - '0') * 100 + (c->in[10] - '0') * 10 + c->in[11] - '0';
}

static void listen_at(struct sock_addr *a)
{
        char text[128];
        int fd;

        (void) snprintf(text, sizeof(text), "unix:%s/sock", w.dir);
        check_i64_eq(sock_addr_from_string(str_from(text), a), 0);
        check_i64_eq(sock_listen(a, &fd), 0);
        check_i64_eq(http_server_listen(w.agent->server, fd), 0);
}

static struct str make_request(struct buf *b, char fill, size_t n)
{
        char head[256];

        buf_reset(&body);
        add_part("metadata", "m", STR("{\"path\":\"shared\"}"));
        (void) memset(buf_reserve(b, n), fill, n);
        buf_advance(b, n);
        add_part("file", "f", buf_str(b));
        buf_add_str(&body, STR("--" BOUNDARY "--\r\n"));
        buf_reset(b);
        (void) snprintf(head, sizeof(head),
                        "POST /files/upload HTTP/1.1\r\nHost: x\r\nContent-Type: " TYPE
                        "\r\nContent-Length: %zu\r\n\r\n",
                        body.n);
        buf_add_str(b, str_from(head));
        buf_add_str(b, buf_str(&body));
        return buf_str(b);
}

/* More files than the queue holds arrive in one read, and one path twice: the last one stays. */
static void more_files_arrive_than_the_queue_holds(void **state)
{
        struct sock_addr addr;
        struct client c;
        char text[256];

        listen_at(&addr);
        for (int i = 0; i < 160; i++) {
                (void) snprintf(text, sizeof(text), "{\"path\":\"f%d\"}", i % 140);
                add_pair(text, i < 140 ? STR("first") : STR("second"));
        }
        buf_add_str(&body, STR("--" BOUNDARY "--\r\n"));
        (void) snprintf(text, sizeof(text),
                        "POST /files/upload HTTP/1.1\r\nHost: x\r\nContent-Type: " TYPE
                        "\r\nContent-Length: %zu\r\n\r\n",
                        body.n);
        client_open(&c, &addr);
        check_i64_eq(send(c.fd, text, strlen(text), MSG_NOSIGNAL | MSG_MORE), strlen(text));
        client_send(&c, buf_str(&body));
        check_i64_eq(client_status(&c), 200);
        (void) fd_close(c.fd);
        check_true(file_is(&w, "f19", STR("second")) && file_is(&w, "f20", STR("first")));
        check_u64_eq(entries(), 141);
}

/* Two clients send to one path, piece by piece in turns; the result is one of the two, complete. */
static void of_two_writers_one_wins_completely(void **state)
{
        size_t n = 300 * KiB, seen_a = 0;
        scoped(freep) char *got = xcalloc(1, n + 1);
        struct client c[2];
        struct str text[2];
        struct sock_addr addr;
        struct buf b[2];
        int fd;

        listen_at(&addr);
        for (int i = 0; i < 2; i++) {
                buf_init(&b[i], MiB);
                text[i] = make_request(&b[i], i ? 'b' : 'a', n);
                client_open(&c[i], &addr);
        }
        while (text[0].n > 0 || text[1].n > 0) {
                for (int i = 0; i < 2; i++) {
                        size_t piece = MIN_OF(text[i].n, 7000);

                        client_send(&c[i], str_of(text[i].p, piece));
                        text[i] = str_skip(text[i], piece);
                }
        }
        for (int i = 0; i < 2; i++) {
                check_i64_eq(client_status(&c[i]), 200);
                (void) fd_close(c[i].fd);
                buf_done(&b[i]);
        }
        fd = open(path_in(&w, "shared"), O_RDONLY | O_CLOEXEC);
        check_i64_eq(read(fd, got, n + 1), n);
        (void) fd_close(fd);
        for (size_t i = 0; i < n; i++)
                seen_a += got[i] == 'a';
        check_true(seen_a == 0 || seen_a == n);
        check_u64_eq(entries(), 2);
}

/* The client disappears in the middle of a file. */
static void a_lost_client_leaves_no_trace(void **state)
{
        struct sock_addr addr;
        struct client c;
        struct buf b;
        struct str text;
        usec_t started = clock_mono(&clock_system);

        put_file(&w, "shared", STR("old"));
        listen_at(&addr);
        buf_init(&b, MiB);
        text = make_request(&b, 'x', 100 * KiB);
        client_open(&c, &addr);
        client_send(&c, str_of(text.p, text.n / 2));
        while (entries() != 3) {
                check_true(clock_mono(&clock_system) - started < 20 * USEC_PER_SEC);
                net_loop_run_once(&w.loop, /* wait= */ false);
        }
        (void) fd_close(c.fd);
        while (entries() != 2) {
                check_true(clock_mono(&clock_system) - started < 20 * USEC_PER_SEC);
                net_loop_run_once(&w.loop, /* wait= */ false);
        }
        check_true(file_is(&w, "shared", STR("old")));
        buf_done(&b);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(files_are_written),
                TEST(an_existing_file_keeps_unset_attributes),
                TEST(pairs_are_made_by_order),
                TEST(large_content_arrives),
                TEST(many_files_do_not_keep_others_waiting),
                TEST(a_file_that_finds_its_place_taken_is_reported),
                TEST(files_before_a_failure_stay),
                TEST(links_are_written_through),
                TEST(bodies_that_make_no_pairs_are_refused),
                TEST(every_bad_target_is_refused),
                TEST(too_much_is_refused),
                TEST(metadata_that_fill_their_room_are_refused),
                TEST(a_broken_body_leaves_no_trace),
                TEST(a_file_over_the_limit_leaves_the_old_one),
                TEST(more_files_arrive_than_the_queue_holds),
                TEST(of_two_writers_one_wins_completely),
                TEST(a_lost_client_leaves_no_trace),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
