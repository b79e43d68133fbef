/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/json.h"
#include "os/fd.h"
#include "tests/lib/agent_world.h"

/* Information, removal, permissions, moves and directories. */

static struct agent_world w;

static int setup(void **state)
{
        (void) state;
        (void) umask(022);
        agent_world_open(&w);
        return 0;
}

static int teardown(void **state)
{
        (void) state;
        agent_world_close(&w);
        return 0;
}

/* The code of an error, in one of a few static buffers. */
static const char *code_of(struct reply r)
{
        static char code[64];
        struct json_error e;
        json_t *doc = NULL;

        code[0] = '\0';
        if (json_parse(r.body, 0, &doc, &e) < 0)
                return code;
        (void) snprintf(code, sizeof(code), "%s",
                        json_string_value(json_object_get(doc, "code"))
                                ? json_string_value(json_object_get(doc, "code"))
                                : "");
        json_decref(doc);
        return code;
}

/* Checks an error. */
struct row {
        const char *name, *method, *target, *body;
        int status;
        const char *code; /* NULL: none, and the body is empty */
};

static void check_rows(const struct row *rows, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                struct reply r = call(&w, rows[i].method, rows[i].target, rows[i].body);

                check_case(rows[i].name);
                check_i64_eq(r.status, rows[i].status);
                if (rows[i].code)
                        check_z_eq(code_of(r), rows[i].code);
                else
                        check_str_eq(r.body, "");
        }
}

static bool exists(const char *name)
{
        struct stat st;

        return lstat(path_in(&w, name), &st) == 0;
}

static mode_t mode_of(const char *name)
{
        struct stat st;

        check_i64_eq(lstat(path_in(&w, name), &st), 0);
        return st.st_mode & 07777;
}

static void make_zoo(void)
{
        put_file(&w, "plain", STR("12345"));
        put_file(&w, "other", STR("x"));
        check_i64_eq(mkdir(path_in(&w, "dir"), 0755), 0);
        check_i64_eq(mkfifo(path_in(&w, "fifo"), 0600), 0);
        check_i64_eq(symlink("plain", path_in(&w, "link")), 0);
        check_i64_eq(symlink("dir", path_in(&w, "dirlink")), 0);
        check_i64_eq(symlink("nowhere", path_in(&w, "dangling")), 0);
        check_i64_eq(symlink("loop", path_in(&w, "loop")), 0);
}

/* --- information --- */

static const char *info_str(json_t *doc, const char *path, const char *key)
{
        const char *s = json_string_value(json_object_get(json_object_get(doc, path), key));

        return s ? s : "";
}

static void info_reports_what_files_are(void **state)
{
        static const struct {
                const char *name, *type;
        } cases[] = {
                { "plain", "file" },   { "dir", "directory" },   { "fifo", "other" },
                { "link", "symlink" }, { "dirlink", "symlink" }, { "dangling", "symlink" },
                { "loop", "symlink" },
        };
        struct json_error e;
        struct reply r;
        json_t *doc, *plain;

        make_zoo();
        check_i64_eq(chmod(path_in(&w, "plain"), 0640), 0);
        r = call(&w, "GET",
                 "/files/info?path=plain&path=dir&path=fifo&path=link&path=dirlink&path=dangling"
                 "&path=plain&path=loop&other=no",
                 NULL);
        check_i64_eq(r.status, 200);
        check_i64_eq(json_parse(r.body, 0, &doc, &e), 0);
        check_u64_eq(json_object_size(doc), ARRAY_SIZE(cases));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                usec_t t;

                check_case(cases[i].name);
                check_z_eq(info_str(doc, cases[i].name, "type"), cases[i].type);
                check_z_eq(info_str(doc, cases[i].name, "path"), path_in(&w, cases[i].name));
                check_i64_eq(time_from_rfc3339(
                                     str_from(info_str(doc, cases[i].name, "modified_at")), &t),
                             0);
                check_i64_eq(time_from_rfc3339(str_from(info_str(doc, cases[i].name, "created_at")),
                                               &t),
                             0);
                check_true(info_str(doc, cases[i].name, "owner")[0] != '\0');
                check_true(info_str(doc, cases[i].name, "group")[0] != '\0');
        }
        plain = json_object_get(doc, "plain");
        check_i64_eq(json_integer_value(json_object_get(plain, "size")), 5);
        check_i64_eq(json_integer_value(json_object_get(plain, "mode")), 640);
        check_true(json_object_get(plain, "uri") == NULL);
        json_decref(doc);
}

static void owners_without_a_name_are_numbers(void **state)
{
        struct reply r;

        if (geteuid() != 0)
                skip_because("needs root");
        put_file(&w, "x", STR(""));
        check_i64_eq(chown(path_in(&w, "x"), 0, 3456789), 0);
        r = call(&w, "GET", "/files/info?path=x", NULL);
        check_true(memmem(r.body.p, r.body.n, "\"owner\":\"root\"", 14) != NULL);
        check_true(memmem(r.body.p, r.body.n, "\"group\":\"3456789\"", 17) != NULL);
}

static void info_refuses(void **state)
{
        static const struct row rows[] = {
                { "missing", "GET", "/files/info?path=no", NULL, 404, "FILE_NOT_FOUND" },
                { "one of two missing", "GET", "/files/info?path=plain&path=no", NULL, 404,
                  "FILE_NOT_FOUND" },
                { "file as directory", "GET", "/files/info?path=plain/x", NULL, 500,
                  "RUNTIME_ERROR" },
                { "loop", "GET", "/files/info?path=loop/x", NULL, 500, "RUNTIME_ERROR" },
                { "undefined variable", "GET", "/files/info?path=$NO_SUCH_VARIABLE", NULL, 500,
                  "RUNTIME_ERROR" },
                { "unknown user", "GET", "/files/info?path=~nosuchuser/x", NULL, 500,
                  "RUNTIME_ERROR" },
                { "empty", "GET", "/files/info?path=", NULL, 400, "INVALID_REQUEST_BODY" },
                { "bad encoding", "GET", "/files/info?path=%zz", NULL, 400,
                  "INVALID_REQUEST_BODY" },
                { "NUL", "GET", "/files/info?path=a%00b", NULL, 400, "INVALID_REQUEST_BODY" },
        };
        char target[400] = "/files/info?path=";
        struct reply r;

        make_zoo();
        check_rows(rows, ARRAY_SIZE(rows));
        memset(target + strlen(target), 'x', 300);
        r = call(&w, "GET", target, NULL);
        check_i64_eq(r.status, 500);
        check_z_eq(code_of(r), "RUNTIME_ERROR");
        r = call(&w, "GET", "/files/info", NULL);
        check_i64_eq(r.status, 200);
        check_str_eq(r.body, "{}");
}

/* --- names that are not UTF-8 --- */

static void names_that_are_not_UTF_8_go_round(void **state)
{
        char body[600], uri[300];
        struct json_error e;
        struct reply r;
        json_t *doc;

        put_file(&w, "a\xff z", STR("x"));
        r = call(&w, "GET", "/files/info?path=a%FF%20z", NULL);
        check_i64_eq(r.status, 200);
        check_i64_eq(json_parse(r.body, 0, &doc, &e), 0);
        (void) snprintf(uri, sizeof(uri), "%s",
                        info_str(doc, json_object_iter_key(json_object_iter(doc)), "uri"));
        json_decref(doc);
        (void) snprintf(body, sizeof(body), "file://%s/a%%FF%%20z", w.dir);
        check_z_eq(uri, body);

        (void) snprintf(body, sizeof(body), "{\"%s\":{\"mode\":600}}", uri);
        check_i64_eq(call(&w, "POST", "/files/permissions", body).status, 200);
        check_i64_eq(mode_of("a\xff z"), 0600);
        (void) snprintf(body, sizeof(body), "[{\"src\":\"%s\",\"dest\":\"file://%s/d%%FE/b%%FE\"}]",
                        uri, w.dir);
        check_i64_eq(call(&w, "POST", "/files/mv", body).status, 200);
        check_true(file_is(&w, "d\xfe/b\xfe", STR("x")));
        (void) snprintf(body, sizeof(body),
                        "{\"file://%s/d%%FE/b%%FE\":{\"old\":\"x\",\"new\":\"y\"}}", w.dir);
        check_i64_eq(call(&w, "POST", "/files/replace", body).status, 200);
        check_true(file_is(&w, "d\xfe/b\xfe", STR("y")));
        r = call(&w, "GET", "/files/download?path=d%FE/b%FE", NULL);
        check_str_eq(r.body, "y");
        check_i64_eq(call(&w, "DELETE", "/files?path=d%FE/b%FE", NULL).status, 200);
        check_false(exists("d\xfe/b\xfe"));
}

/* --- removal --- */

static void files_are_removed(void **state)
{
        make_zoo();
        check_i64_eq(call(&w, "DELETE", "/files?path=plain&path=no&path=dangling&path=fifo", NULL)
                             .status,
                     200);
        check_false(exists("plain") || exists("dangling") || exists("fifo"));
        check_i64_eq(call(&w, "DELETE", "/files?path=dirlink", NULL).status, 200);
        check_true(exists("dir") && !exists("dirlink"));
        check_i64_eq(call(&w, "DELETE", "/files", NULL).status, 200);
}

static void nothing_is_removed_if_one_can_not_be(void **state)
{
        static const struct row rows[] = {
                { "directory", "DELETE", "/files?path=plain&path=dir", NULL, 500, "RUNTIME_ERROR" },
                { "file as directory", "DELETE", "/files?path=plain&path=plain/x", NULL, 500,
                  "RUNTIME_ERROR" },
                { "undefined", "DELETE", "/files?path=plain&path=$NO_SUCH_VARIABLE", NULL, 500,
                  "RUNTIME_ERROR" },
                { "loop", "DELETE", "/files?path=plain&path=loop/x", NULL, 500, "RUNTIME_ERROR" },
        };

        make_zoo();
        check_rows(rows, ARRAY_SIZE(rows));
        check_true(exists("plain"));
}

/* --- permissions --- */

static void permissions_are_set(void **state)
{
        struct stat st;

        make_zoo();
        check_i64_eq(call(&w, "POST", "/files/permissions",
                          "{\"plain\":{\"mode\":600},\"link\":{},\"dir\":{\"mode\":1777},"
                          "\"other\":{\"owner\":\"\",\"group\":null,\"mode\":0,\"x\":1}} trailing")
                             .status,
                     200);
        check_i64_eq(mode_of("plain"), 0600);
        check_i64_eq(mode_of("dir"), 01777);
        check_i64_eq(mode_of("other"), 0644);
        if (geteuid() != 0)
                return;
        check_i64_eq(call(&w, "POST", "/files/permissions",
                          "{\"link\":{\"owner\":\"root\",\"group\":\"77\",\"mode\":2755}}")
                             .status,
                     200);
        check_i64_eq(stat(path_in(&w, "plain"), &st), 0);
        check_u64_eq(st.st_gid, 77);
        check_i64_eq(mode_of("plain"), 02755);
}

static void permissions_refuse_and_change_nothing(void **state)
{
#define FIRST "{\"plain\":{\"mode\":600},"
        static const struct row rows[] = {
                { "missing", "POST", "/files/permissions", FIRST "\"no\":{\"mode\":600}}", 500,
                  "RUNTIME_ERROR" },
                { "unknown user", "POST", "/files/permissions",
                  FIRST "\"other\":{\"owner\":\"nosuchuser\"}}", 500, "RUNTIME_ERROR" },
                { "unknown group", "POST", "/files/permissions",
                  FIRST "\"other\":{\"group\":\"nosuchgroup\"}}", 500, "RUNTIME_ERROR" },
                { "number too large", "POST", "/files/permissions",
                  FIRST "\"other\":{\"owner\":\"4294967295\"}}", 500, "RUNTIME_ERROR" },
                { "bad digit", "POST", "/files/permissions", FIRST "\"other\":{\"mode\":648}}", 400,
                  "INVALID_REQUEST_BODY" },
                { "too many digits", "POST", "/files/permissions",
                  FIRST "\"other\":{\"mode\":10000}}", 400, "INVALID_REQUEST_BODY" },
                { "negative", "POST", "/files/permissions", FIRST "\"other\":{\"mode\":-1}}", 400,
                  "INVALID_REQUEST_BODY" },
                { "mode as text", "POST", "/files/permissions",
                  FIRST "\"other\":{\"mode\":\"644\"}}", 400, "INVALID_REQUEST_BODY" },
                { "no object", "POST", "/files/permissions", FIRST "\"other\":5}", 400,
                  "INVALID_REQUEST_BODY" },
                { "loop", "POST", "/files/permissions", FIRST "\"loop\":{\"mode\":600}}", 500,
                  "RUNTIME_ERROR" },
                { "empty path", "POST", "/files/permissions", FIRST "\"\":{}}", 400,
                  "INVALID_REQUEST_BODY" },
                { "bad JSON", "POST", "/files/permissions", FIRST, 400, "INVALID_REQUEST_BODY" },
                { "no body", "POST", "/files/permissions", NULL, 400, "INVALID_REQUEST_BODY" },
                { "array", "POST", "/files/permissions", "[]", 400, "INVALID_REQUEST_BODY" },
        };

        make_zoo();
        check_rows(rows, ARRAY_SIZE(rows));
        check_i64_eq(mode_of("plain"), 0644);
}

/* --- moves --- */

static void files_move_in_order(void **state)
{
        make_zoo();
        check_i64_eq(call(&w, "POST", "/files/mv",
                          "[{\"src\":\"plain\",\"dest\":\"new/deep/er\"},"
                          "{\"src\":\"new/deep\",\"dest\":\"moved\"},"
                          "{\"src\":\"dangling\",\"dest\":\"moved/dangling\"},"
                          "{\"src\":\"fifo\",\"dest\":\"moved/fifo\"}]")
                             .status,
                     200);
        check_true(file_is(&w, "moved/er", STR("12345")));
        check_true(exists("moved/dangling") && exists("moved/fifo") && !exists("plain"));
        check_i64_eq(mode_of("new"), 0755);
        check_i64_eq(call(&w, "POST", "/files/mv", "[]").status, 200);
}

static void moves_refuse(void **state)
{
        static const struct row rows[] = {
                { "no source", "POST", "/files/mv", "[{\"src\":\"no\",\"dest\":\"x\"}]", 404,
                  "FILE_NOT_FOUND" },
                { "dest exists", "POST", "/files/mv", "[{\"src\":\"plain\",\"dest\":\"other\"}]",
                  500, "RUNTIME_ERROR" },
                { "dest is itself", "POST", "/files/mv", "[{\"src\":\"plain\",\"dest\":\"plain\"}]",
                  500, "RUNTIME_ERROR" },
                { "dest is a directory", "POST", "/files/mv",
                  "[{\"src\":\"plain\",\"dest\":\"dir\"}]", 500, "RUNTIME_ERROR" },
                { "dest is a dangling link", "POST", "/files/mv",
                  "[{\"src\":\"plain\",\"dest\":\"dangling\"}]", 500, "RUNTIME_ERROR" },
                { "parent is a file", "POST", "/files/mv",
                  "[{\"src\":\"plain\",\"dest\":\"other/x\"}]", 500, "RUNTIME_ERROR" },
                { "into itself", "POST", "/files/mv", "[{\"src\":\"dir\",\"dest\":\"dir/x\"}]", 500,
                  "RUNTIME_ERROR" },
                { "second is bad", "POST", "/files/mv",
                  "[{\"src\":\"plain\",\"dest\":\"x\"},{\"src\":\"plain\"}]", 400,
                  "INVALID_REQUEST_BODY" },
                { "undefined variable", "POST", "/files/mv",
                  "[{\"src\":\"plain\",\"dest\":\"$NO_SUCH_VARIABLE\"}]", 500, "RUNTIME_ERROR" },
                { "map", "POST", "/files/mv", "{}", 400, "INVALID_REQUEST_BODY" },
                { "bad JSON", "POST", "/files/mv", "[", 400, "INVALID_REQUEST_BODY" },
        };

        make_zoo();
        check_rows(rows, ARRAY_SIZE(rows));
        check_true(file_is(&w, "plain", STR("12345")) && file_is(&w, "other", STR("x")));
}

/* --- directories --- */

static void directories_are_created(void **state)
{
        struct stat st;

        make_zoo();
        check_i64_eq(call(&w, "POST", "/directories",
                          "{\"a/b\":{\"mode\":750},\"dir\":{\"mode\":700},\"dirlink/in\":{}}")
                             .status,
                     200);
        check_i64_eq(mode_of("a"), 0755);
        check_i64_eq(mode_of("a/b"), 0750);
        check_i64_eq(mode_of("dir"), 0755);
        check_true(exists("dir/in"));
        if (geteuid() != 0)
                return;
        check_i64_eq(
                call(&w, "POST", "/directories",
                     "{\"o/p\":{\"owner\":\"11\",\"group\":\"12\"},\"dir\":{\"owner\":\"13\"}}")
                        .status,
                200);
        check_i64_eq(stat(path_in(&w, "o"), &st), 0);
        check_true(st.st_uid == 11 && st.st_gid == 12);
        check_i64_eq(stat(path_in(&w, "dir"), &st), 0);
        check_true(st.st_uid == 13 && st.st_gid == getegid());
}

static void directories_are_refused(void **state)
{
        static const struct row rows[] = {
                { "file", "POST", "/directories", "{\"plain\":{}}", 500, "RUNTIME_ERROR" },
                { "below a file", "POST", "/directories", "{\"plain/x\":{}}", 500,
                  "RUNTIME_ERROR" },
                { "below a FIFO", "POST", "/directories", "{\"fifo/x\":{}}", 500, "RUNTIME_ERROR" },
                { "loop", "POST", "/directories", "{\"loop/x\":{}}", 500, "RUNTIME_ERROR" },
                { "unknown user changes nothing", "POST", "/directories",
                  "{\"fresh\":{},\"fresher\":{\"owner\":\"nosuchuser\"}}", 500, "RUNTIME_ERROR" },
                { "bad mode", "POST", "/directories", "{\"fresh\":{\"mode\":9}}", 400,
                  "INVALID_REQUEST_BODY" },
                { "bad JSON", "POST", "/directories", "{", 400, "INVALID_REQUEST_BODY" },
        };

        make_zoo();
        check_rows(rows, ARRAY_SIZE(rows));
        check_false(exists("fresh"));
}

/* --- what the kernel forbids --- */

static void a_read_only_file_system_is_reported(void **state)
{
        static const struct row rows[] = {
                { "remove", "DELETE", "/files?path=/proc/version", NULL, 500, "RUNTIME_ERROR" },
                { "mkdir", "POST", "/directories", "{\"/proc/x/y\":{}}", 404, "FILE_NOT_FOUND" },
                { "mv", "POST", "/files/mv", "[{\"src\":\"/proc/version\",\"dest\":\"v\"}]", 500,
                  "RUNTIME_ERROR" },
        };

        check_rows(rows, ARRAY_SIZE(rows));
}

/* A batch larger than a slice takes several turns, and its client may disconnect. */
static void a_long_batch_may_lose_its_client(void **state)
{
        struct http_loopback lb;
        struct buf body;

        buf_init(&body, MiB);
        buf_add_char(&body, '{');
        for (int i = 0; i < 1000; i++)
                buf_addf(&body, "%s\"many/d%d\":{}", i ? "," : "", i);
        buf_add_char(&body, '}');
        http_loopback_init(&lb, w.agent->server);
        http_loopback_start(&lb, "POST", "/directories", buf_str(&body));
        check_false(lb.ended);
        http_loopback_abort(&lb, -ECONNRESET);
        http_loopback_done(&lb);
        check_false(exists("many/d999"));
        check_i64_eq(call_with(&w, "POST", "/directories", NULL, NULL, buf_str(&body)).status, 200);
        check_true(exists("many/d999"));
        buf_done(&body);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(info_reports_what_files_are),
                TEST(owners_without_a_name_are_numbers),
                TEST(info_refuses),
                TEST(names_that_are_not_UTF_8_go_round),
                TEST(files_are_removed),
                TEST(nothing_is_removed_if_one_can_not_be),
                TEST(permissions_are_set),
                TEST(permissions_refuse_and_change_nothing),
                TEST(files_move_in_order),
                TEST(moves_refuse),
                TEST(directories_are_created),
                TEST(directories_are_refused),
                TEST(a_read_only_file_system_is_reported),
                TEST(a_long_batch_may_lose_its_client),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
