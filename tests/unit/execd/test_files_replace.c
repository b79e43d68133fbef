/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "os/fd.h"
#include "tests/lib/agent_world.h"

static struct agent_world w;

static int setup(void **state)
{
        (void) state;
        (void) signal(SIGXFSZ, SIG_IGN);
        agent_world_open(&w);
        return 0;
}

static int teardown(void **state)
{
        (void) state;
        agent_world_close(&w);
        return 0;
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

static bool has(struct str s, const char *text)
{
        return memmem(s.p, s.n, text, strlen(text)) != NULL;
}

static void texts_are_replaced(void **state)
{
        static const struct {
                const char *content, *old, *new, *result;
                int count;
        } cases[] = {
                { "a-b-a", "a", "xyz", "xyz-b-xyz", 2 },
                { "aaaaa", "aa", "b", "bba", 2 },
                { "abc", "abc", "", "", 1 },
                { "abc", "d", "x", "abc", 0 },
                { "ab", "abc", "x", "ab", 0 },
                { "", "a", "x", "", 0 },
                { "aab", "ab", "b", "ab", 1 },
                { "xaa", "a", "a", "xaa", 2 },
        };
        char body[200], answer[100];

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct reply r;

                check_case(cases[i].content);
                put_file(&w, "x", str_from(cases[i].content));
                (void) snprintf(body, sizeof(body), "{\"x\":{\"old\":\"%s\",\"new\":\"%s\"}}",
                                cases[i].old, cases[i].new);
                (void) snprintf(answer, sizeof(answer), "{\"x\":{\"replacedCount\":%d}}",
                                cases[i].count);
                r = call(&w, "POST", "/files/replace?verbose=true", body);
                check_i64_eq(r.status, 200);
                check_str_eq(r.body, answer);
                check_true(file_is(&w, "x", str_from(cases[i].result)));
        }
        check_str_eq(call(&w, "POST", "/files/replace", "{\"x\":{\"old\":\"q\"}}").body, "");
        check_str_eq(call(&w, "POST", "/files/replace?verbose=1", "{\"x\":{\"old\":\"q\"}}").body,
                     "");
        check_str_eq(call(&w, "POST", "/files/replace?verbose=true", "{}").body, "{}");
        check_u64_eq(entries(), 1);
}

/* The occurrences lie at every place relative to the portions in which the file is read. */
static void occurrences_across_portions_are_found(void **state)
{
        struct buf in, out;
        char body[300], answer[100];
        size_t count = 0;

        buf_init(&in, 4 * MiB);
        buf_init(&out, 4 * MiB);
        for (size_t i = 0; in.n < 2 * MiB; i++) {
                size_t gap = i * 7919 % 1013;

                for (size_t k = 0; k < gap; k++) {
                        buf_add_char(&in, "needl-nee"[k % 9]);
                        buf_add_char(&out, "needl-nee"[k % 9]);
                }
                buf_add_str(&in, STR("|needle-in-a-haystack|"));
                buf_add_str(&out, STR("|<found it>|"));
                count++;
        }
        put_file(&w, "x", buf_str(&in));
        (void) snprintf(body, sizeof(body),
                        "{\"x\":{\"old\":\"|needle-in-a-haystack|\",\"new\":\"|<found it>|\"}}");
        (void) snprintf(answer, sizeof(answer), "{\"x\":{\"replacedCount\":%zu}}", count);
        check_str_eq(call(&w, "POST", "/files/replace?verbose=true", body).body, answer);
        check_true(file_is(&w, "x", buf_str(&out)));
        buf_done(&in);
        buf_done(&out);
}

/* A text longer than a portion; and one that becomes many. */
static void long_texts_are_replaced(void **state)
{
        scoped(freep) char *content = xcalloc(1, 2 * MiB);
        struct buf body;

        memset(content, 'y', 2 * MiB);
        memset(content + 700000, 'z', 200000);
        put_file(&w, "x", str_of(content, 2 * MiB));
        buf_init(&body, MiB);
        buf_add_str(&body, STR("{\"x\":{\"old\":\"y"));
        for (int i = 0; i < 200000; i++)
                buf_add_char(&body, 'z');
        buf_add_str(&body, STR("y\",\"new\":\"-\"}}"));
        check_i64_eq(call_with(&w, "POST", "/files/replace", NULL, NULL, buf_str(&body)).status,
                     200);
        memset(content, 'y', 2 * MiB);
        content[699999] = '-';
        check_true(file_is(&w, "x", str_of(content, 2 * MiB - 200001)));
        put_file(&w, "x", STR("a,b"));
        buf_reset(&body);
        buf_add_str(&body, STR("{\"x\":{\"old\":\",\",\"new\":\""));
        for (int i = 0; i < 300000; i++)
                buf_add_char(&body, 'y');
        buf_add_str(&body, STR("\"}}"));
        check_i64_eq(call_with(&w, "POST", "/files/replace", NULL, NULL, buf_str(&body)).status,
                     200);
        memset(content, 'y', 300002);
        content[0] = 'a';
        content[300001] = 'b';
        check_true(file_is(&w, "x", str_of(content, 300002)));
        buf_done(&body);
}

static void mode_and_owner_stay(void **state)
{
        struct stat before, after;

        put_file(&w, "x", STR("abc"));
        check_i64_eq(symlink("x", path_in(&w, "link")), 0);
        if (geteuid() == 0)
                check_i64_eq(chown(path_in(&w, "x"), 21, 22), 0);
        check_i64_eq(chmod(path_in(&w, "x"), 04711), 0);
        check_i64_eq(stat(path_in(&w, "x"), &before), 0);
        check_i64_eq(call(&w, "POST", "/files/replace", "{\"link\":{\"old\":\"b\",\"new\":\"\"}}")
                             .status,
                     200);
        check_true(file_is(&w, "x", STR("ac")));
        check_i64_eq(stat(path_in(&w, "x"), &after), 0);
        check_u64_eq(before.st_mode, after.st_mode);
        check_u64_eq(before.st_uid, after.st_uid);
        check_u64_eq(before.st_gid, after.st_gid);
        check_true(before.st_ino != after.st_ino);
}

static void a_file_without_occurrence_is_not_touched(void **state)
{
        struct stat before, after;

        put_file(&w, "x", STR("abc"));
        check_i64_eq(stat(path_in(&w, "x"), &before), 0);
        check_i64_eq(
                call(&w, "POST", "/files/replace", "{\"x\":{\"old\":\"q\",\"new\":\"r\"}}").status,
                200);
        check_i64_eq(stat(path_in(&w, "x"), &after), 0);
        check_u64_eq(before.st_ino, after.st_ino);
        check_i64_eq(before.st_ctim.tv_nsec, after.st_ctim.tv_nsec);
}

static void nothing_changes_if_one_is_refused(void **state)
{
#define FIRST "{\"x\":{\"old\":\"a\",\"new\":\"b\"},"
        static const struct {
                const char *body;
                int status;
                const char *code;
        } cases[] = {
                { FIRST "\"no\":{\"old\":\"a\",\"new\":\"b\"}}", 404, "FILE_NOT_FOUND" },
                { FIRST "\"y\":{\"old\":\"\",\"new\":\"b\"}}", 400, "INVALID_REQUEST_BODY" },
                { FIRST "\"y\":{\"new\":\"b\"}}", 400, "INVALID_REQUEST_BODY" },
                { FIRST "\"y\":{\"old\":1}}", 400, "INVALID_REQUEST_BODY" },
                { FIRST "\"y\":\"a\"}", 400, "INVALID_REQUEST_BODY" },
                { FIRST "\"dir\":{\"old\":\"a\"}}", 500, "RUNTIME_ERROR" },
                { FIRST "\"fifo\":{\"old\":\"a\"}}", 500, "RUNTIME_ERROR" },
                { FIRST "\"/dev/zero\":{\"old\":\"a\"}}", 500, "RUNTIME_ERROR" },
                { FIRST "\"loop\":{\"old\":\"a\"}}", 500, "RUNTIME_ERROR" },
                { FIRST "\"$NO_SUCH_VARIABLE\":{\"old\":\"a\"}}", 500, "RUNTIME_ERROR" },
                { "[]", 400, "INVALID_REQUEST_BODY" },
                { FIRST, 400, "INVALID_REQUEST_BODY" },
        };

        put_file(&w, "x", STR("aaa"));
        put_file(&w, "y", STR("aaa"));
        check_i64_eq(mkdir(path_in(&w, "dir"), 0755), 0);
        check_i64_eq(mkfifo(path_in(&w, "fifo"), 0600), 0);
        check_i64_eq(symlink("loop", path_in(&w, "loop")), 0);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct reply r = call(&w, "POST", "/files/replace", cases[i].body);

                check_case(cases[i].body);
                check_i64_eq(r.status, cases[i].status);
                check_true(has(r.body, cases[i].code));
        }
        check_true(file_is(&w, "x", STR("aaa")));
        check_u64_eq(entries(), 5);
}

static void a_failed_write_leaves_the_old_file(void **state)
{
        struct rlimit was, small;
        struct reply r;

        put_file(&w, "x", STR("a,b"));
        check_i64_eq(getrlimit(RLIMIT_FSIZE, &was), 0);
        small = (struct rlimit){ 8, was.rlim_max };
        check_i64_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
        r = call(&w, "POST", "/files/replace", "{\"x\":{\"old\":\",\",\"new\":\"much too long\"}}");
        check_i64_eq(setrlimit(RLIMIT_FSIZE, &was), 0);
        check_i64_eq(r.status, 500);
        check_true(has(r.body, "RUNTIME_ERROR"));
        check_true(file_is(&w, "x", STR("a,b")));
        check_u64_eq(entries(), 1);
}

/* A file is truncated before it is rewritten in place, so all of it must have been read; a file that is too
 * large stays unchanged. */
static void a_mounted_file_keeps_its_end(void **state)
{
        size_t n = 9 * MiB;
        scoped(freep) char *content = xcalloc(1, n);
        struct reply small, large;
        bool first, second;

        for (size_t i = 0; i < n; i++)
                content[i] = i % 1000 ? 'x' : ',';
        put_file(&w, "real", str_of(content, 300 * KiB));
        put_file(&w, "mounted", STR(""));
        if (mount(path_in(&w, "real"), path_in(&w, "mounted"), NULL, MS_BIND, NULL) < 0)
                skip_because("may not mount");
        small = call(&w, "POST", "/files/replace", "{\"mounted\":{\"old\":\",\",\"new\":\";\"}}");
        for (size_t i = 0; i < 300 * KiB; i += 1000)
                content[i] = ';';
        first = file_is(&w, "real", str_of(content, 300 * KiB));
        put_file(&w, "real", str_of(content, n));
        large = call(&w, "POST", "/files/replace", "{\"mounted\":{\"old\":\";\",\"new\":\",\"}}");
        second = file_is(&w, "real", str_of(content, n));
        check_i64_eq(umount(path_in(&w, "mounted")), 0);
        check_i64_eq(small.status, 200);
        check_true(first);
        check_i64_eq(large.status, 500);
        check_true(second);
        check_u64_eq(entries(), 2);
}

/* /proc/self/mem is a regular file that can't be read from its start. */
static void strange_files_do_not_hang(void **state)
{
        struct reply r = call(&w, "POST", "/files/replace", "{\"/proc/self/mem\":{\"old\":\"a\"}}");

        check_i64_eq(r.status, 500);
        r = call(&w, "POST", "/files/replace",
                 "{\"/proc/self/status\":{\"old\":\"Name\",\"new\":\"x\"}}");
        check_i64_eq(r.status, 500);
}

/* The client disconnects during a long replacement: the hidden file is removed. */
static void a_lost_client_leaves_no_trace(void **state)
{
        scoped(freep) char *content = xcalloc(1, 8 * MiB);
        usec_t started = clock_mono(&clock_system);
        struct http_loopback lb;

        for (size_t i = 0; i < 8 * MiB; i++)
                content[i] = "ab"[i % 2];
        put_file(&w, "x", str_of(content, 8 * MiB));
        http_loopback_init(&lb, w.agent->server);
        http_loopback_start(&lb, "POST", "/files/replace",
                            STR("{\"x\":{\"old\":\"ab\",\"new\":\"c\"}}"));
        check_false(lb.ended);
        while (entries() != 2) {
                check_false(lb.ended);
                check_true(clock_mono(&clock_system) - started < 10 * USEC_PER_SEC);
                net_loop_run_once(&w.loop, /* wait= */ false);
        }
        http_loopback_abort(&lb, -ECONNRESET);
        http_loopback_done(&lb);
        check_u64_eq(entries(), 1);
        check_true(file_is(&w, "x", str_of(content, 8 * MiB)));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(texts_are_replaced),
                TEST(occurrences_across_portions_are_found),
                TEST(long_texts_are_replaced),
                TEST(mode_and_owner_stay),
                TEST(a_file_without_occurrence_is_not_touched),
                TEST(nothing_changes_if_one_is_refused),
                TEST(a_failed_write_leaves_the_old_file),
                TEST(a_mounted_file_keeps_its_end),
                TEST(strange_files_do_not_hang),
                TEST(a_lost_client_leaves_no_trace),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
