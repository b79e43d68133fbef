/* SPDX-License-Identifier: Apache-2.0 */
#include "execd/api.h"

#include <signal.h>
#include <sys/resource.h>

#include "base/base.h"
#include "tests/lib/agent_world.h"
#include "tests/lib/run.h"
#include "tests/lib/tar_trace.h"
#include "tests/lib/tree.h"

static struct agent_world w;
static int root;
static struct buf archive; /* being built */

static int setup(void **state)
{
        (void) state;
        check_case("");
        agent_world_open(&w);
        root = open(w.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        check_true(root >= 0);
        buf_init(&archive, 16 * MiB);
        return 0;
}

static int teardown(void **state)
{
        (void) state;
        buf_done(&archive);
        root = fd_close(root);
        agent_world_close(&w);
        return 0;
}

static bool has(struct str s, const char *text)
{
        return memmem(s.p, s.n, text, strlen(text)) != NULL;
}

static struct reply get(const char *target)
{
        return call(&w, "GET", target, NULL);
}

static struct reply post(const char *target, struct str body)
{
        return call_with(&w, "POST", target, "Content-Type", "application/x-tar", body);
}

static struct stat stat_of(const char *name)
{
        struct stat st;

        check_i64_eq(fstatat(root, name, &st, AT_SYMLINK_NOFOLLOW), 0);
        return st;
}

/* --- building archives --- */

static void begin(void)
{
        buf_reset(&archive);
}

static void add(const struct tar_entry *e, struct str content)
{
        static const char zeros[TAR_BLOCK];

        tar_write_header(&archive, e, TAR_WRITE_NSEC);
        buf_add_str(&archive, content);
        buf_add(&archive, zeros, tar_padding(content.n));
}

static void add_file(const char *name, struct str content)
{
        add(&(struct tar_entry){ .type = TAR_FILE,
                                 .name = str_from(name),
                                 .size = content.n,
                                 .mode = 0640,
                                 .mtime = 1000,
                                 .mtime_nsec = 5 },
            content);
}

static void add_other(enum tar_type type, const char *name, const char *link)
{
        add(&(struct tar_entry){ .type = type,
                                 .name = str_from(name),
                                 .link = str_from(link),
                                 .mode = 0755 },
            STR(""));
}

static struct str finished(void)
{
        tar_write_end(&archive);
        return buf_str(&archive);
}

/* No hidden file is left in the workspace or the directories the tests use. */
static void check_no_leftovers(const char *name)
{
        const char *const argv[] = { "find", path_in(&w, name), "-name", ".hutch-*", NULL };
        scoped(buf_done) struct buf out;

        buf_init(&out, 4096);
        check_i64_eq(run_program(argv, STR(""), &out), 0);
        check_str_eq(buf_str(&out), "");
}

/* --- reading --- */

static const char *const sample[] = {
        "d/",    "d/a",    "d/e/",           "d/e/f", "d/l -> /etc/passwd",
        "d/p |", "d/\xFF", "d/\xC3\xBC.txt", "other", NULL,
};

static void test_get_directory(void **state)
{
        scoped(buf_done) struct buf log;
        struct reply r;

        tree_fill(root, sample);
        check_i64_eq(fchmodat(root, "d/a", 04755, 0), 0);
        r = get("/files/archive?path=d");
        check_i64_eq(r.status, 200);
        check_false(r.failed);
        check_str_eq(reply_header(&w, "Content-Type"), "application/x-tar");
        check_str_eq(reply_header(&w, "Content-Disposition"), "attachment; filename=\"d.tar\"");
        check_i64_eq(tar_trace_run(r.body, CUT_NONE, &log), 0);
        check_true(has(buf_str(&log), "file \"a\" \"\" size=3 mode=4755 "));
        check_true(has(buf_str(&log), "\nd/a\nend\n"));
        check_true(has(buf_str(&log), "dir \"e/\" \"\""));
        check_true(has(buf_str(&log), "file \"e/f\" \"\" size=5"));
        check_true(has(buf_str(&log), "symlink \"l\" \"/etc/passwd\""));
        check_true(has(buf_str(&log), "file \"\xEF\xBF\xBD\""));
        check_true(has(buf_str(&log), "file \"\xC3\xBC.txt\""));
        check_false(has(buf_str(&log), "fifo"));
        check_false(has(buf_str(&log), "other"));
}

static void test_get_one_file_or_link(void **state)
{
        static const struct {
                const char *target, *want;
        } cases[] = {
                { "/files/archive?path=d/a", "file \"a\" \"\" size=3" },
                { "/files/archive?path=d/l", "symlink \"l\" \"/etc/passwd\"" },
        };

        tree_fill(root, sample);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(buf_done) struct buf log;
                struct reply r = get(cases[i].target);

                check_case(cases[i].target);
                check_i64_eq(r.status, 200);
                check_i64_eq(tar_trace_run(r.body, CUT_NONE, &log), 0);
                check_true(str_starts_with(buf_str(&log), str_from(cases[i].want)));
        }
}

static void test_get_empty(void **state)
{
        struct reply r;

        tree_add(root, "empty/");
        r = get("/files/archive?path=empty/");
        check_i64_eq(r.status, 200);
        check_u64_eq(r.body.n, 2 * TAR_BLOCK);
        r = call(&w, "HEAD", "/files/archive?path=.", NULL);
        check_i64_eq(r.status, 200);
        check_u64_eq(r.body.n, 0);
}

static void test_errors(void **state)
{
        static const struct {
                const char *method, *target;
                int status;
                const char *code;
        } cases[] = {
                { "GET", "/files/archive", 400, "MISSING_QUERY" },
                { "GET", "/files/archive?path=nothing", 404, "FILE_NOT_FOUND" },
                { "GET", "/files/archive?path=d/p", 400, "INVALID_FILE" },
                { "GET", "/files/archive?path=/dev/null", 400, "INVALID_FILE" },
                { "GET", "/files/archive?path=other/x", 500, "RUNTIME_ERROR" },
                { "POST", "/files/archive", 400, "MISSING_QUERY" },
                { "POST", "/files/archive?path=other", 400, "INVALID_FILE" },
                { "POST", "/files/archive?path=other/x", 400, "INVALID_FILE" },
                { "POST", "/files/archive?path=d&owner=me", 400, "INVALID_REQUEST_BODY" },
                { "POST", "/files/archive?path=d", 400, "INVALID_FILE_CONTENT" },
        };

        tree_fill(root, sample);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(buf_done) struct buf want;
                struct reply r = call(&w, cases[i].method, cases[i].target, NULL);

                check_case(cases[i].target);
                check_i64_eq(r.status, cases[i].status);
                buf_init(&want, 100);
                buf_addf(&want, "{\"code\":\"%s\"", cases[i].code);
                check_true(str_starts_with(r.body, buf_str(&want)));
        }
}

/* Its header was sent when the size changes. */
static void test_file_that_changes_while_it_is_read(void **state)
{
        enum { SIZE = 12 * 1024 * 1024 };
        static const off_t sizes[] = { SIZE + 1000, 100 };

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                scoped(buf_done) struct buf log;
                struct http_loopback lb;

                check_case(sizes[i] > SIZE ? "grows" : "shrinks");
                put_file(&w, "f", STR("x"));
                check_i64_eq(truncate(path_in(&w, "f"), SIZE), 0);
                http_loopback_init(&lb, w.agent->server);
                http_loopback_start(&lb, "GET", "/files/archive?path=f", STR_NULL);
                check_false(lb.ended);
                check_i64_eq(truncate(path_in(&w, "f"), sizes[i]), 0);
                while (!lb.ended)
                        net_loop_run_once(&w.loop, /* wait= */ false);
                check_i64_eq(lb.status, 200);
                check_i64_eq(lb.failed, sizes[i] < SIZE);
                check_i64_eq(tar_trace_run(buf_str(&lb.body), CUT_NONE, &log),
                             sizes[i] < SIZE ? -EINVAL : 0);
                http_loopback_done(&lb);
        }
}

static void test_get_stops_when_the_client_leaves(void **state)
{
        struct http_loopback lb;
        unsigned fds;

        put_file(&w, "f", STR("x"));
        /* Sparse, and more than any host reads in one slice. */
        check_i64_eq(truncate(path_in(&w, "f"), 1024 * 1024 * 1024), 0);
        fds = tree_open_fds();
        http_loopback_init(&lb, w.agent->server);
        http_loopback_start(&lb, "GET", "/files/archive?path=.", STR_NULL);
        check_false(lb.ended);
        http_loopback_abort(&lb, -ECONNRESET);
        http_loopback_done(&lb);
        net_loop_run_once(&w.loop, /* wait= */ false);
        check_u64_eq(tree_open_fds(), fds);
}

/* --- writing --- */

static void test_post_makes_what_is_in_the_archive(void **state)
{
        struct reply r;

        begin();
        add_other(TAR_DIR, "./", "");
        add_other(TAR_DIR, "./d/", "");
        add_file("./d/a", STR("content"));
        add_file("made/on/the/way", STR(""));
        add_other(TAR_SYMLINK, "d/l", "/etc/passwd");
        add_other(TAR_HARDLINK, "h", "./d/a");
        add_file("d//.//\xFF", STR("1"));
        r = post("/files/archive?path=new/target", finished());
        check_str_eq(r.body, "{\"entries\":7,\"bytes\":8}");
        check_i64_eq(r.status, 200);
        check_str_eq(reply_header(&w, "Content-Type"), "application/json");
        check_true(file_is(&w, "new/target/d/a", STR("content")));
        check_true(file_is(&w, "new/target/made/on/the/way", STR("")));
        check_true(file_is(&w, "new/target/d/\xFF", STR("1")));
        check_i64_eq(stat_of("new/target/d/a").st_mode, S_IFREG | 0640);
        check_i64_eq(stat_of("new/target/d/a").st_mtim.tv_sec, 1000);
        check_i64_eq(stat_of("new/target/d/a").st_mtim.tv_nsec, 5);
        check_u64_eq(stat_of("new/target/d/a").st_ino, stat_of("new/target/h").st_ino);
        check_true(S_ISLNK(stat_of("new/target/d/l").st_mode));
        check_i64_eq(stat_of("new/target/d").st_mode, S_IFDIR | 0755);
        check_no_leftovers("new");
}

static void test_post_keeps_what_it_must_and_replaces_the_rest(void **state)
{
        static const char *const before[] = {
                "t/", "t/d/", "t/d/kept", "t/f", "t/l -> f", "outside", "t/out -> ../outside", NULL
        };

        tree_fill(root, before);
        check_i64_eq(fchmodat(root, "t/d", 0700, 0), 0);
        check_i64_eq(linkat(root, "t/f", root, "second-name", 0), 0);
        begin();
        add_other(TAR_DIR, "d", "");
        add_file("f", STR("new"));
        add_file("l", STR("no link any more"));
        add_file("out", STR("nor this"));
        check_i64_eq(post("/files/archive?path=t", finished()).status, 200);
        check_i64_eq(stat_of("t/d").st_mode, S_IFDIR | 0700);
        check_true(tree_has(root, "t/d/kept"));
        check_true(file_is(&w, "t/f", STR("new")));
        check_true(file_is(&w, "second-name", STR("t/f")));
        check_true(file_is(&w, "t/l", STR("no link any more")));
        check_true(file_is(&w, "t/out", STR("nor this")));
        check_true(file_is(&w, "outside", STR("outside")));
        /* An existing hard link must not leave a hidden one behind. */
        begin();
        add_other(TAR_HARDLINK, "f", "f");
        check_i64_eq(post("/files/archive?path=t", finished()).status, 200);
        check_true(file_is(&w, "t/f", STR("new")));
        check_no_leftovers("t");
}

static void test_modes(void **state)
{
        static const struct {
                const char *name;
                enum tar_type type;
                uint32_t mode, want;
        } cases[] = {
                { "setuid", TAR_FILE, 06755, 0755 },
                { "sticky", TAR_DIR, 07777, 01777 },
                { "nothing", TAR_FILE, 0, 0 },
                { "all", TAR_FILE, 0777, 0777 },
                { "read-only", TAR_DIR, 0555, 0555 },
                { "read-only/x", TAR_FILE, 0444, 0444 },
                { "read-only/y", TAR_DIR, 0444, 0444 },
                { "read-only/y/z", TAR_DIR, 0, 0 },
                { "read-only/y/z/f", TAR_FILE, 0600, 0600 },
        };
        mode_t umask_before = umask(077);

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                add(&(struct tar_entry){ .type = cases[i].type,
                                         .name = str_from(cases[i].name),
                                         .mode = cases[i].mode },
                    STR(""));
        check_i64_eq(post("/files/archive?path=.", finished()).status, 200);
        (void) umask(umask_before);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].name);
                check_i64_eq(stat_of(cases[i].name).st_mode & 07777, cases[i].want);
        }
}

static void test_owners(void **state)
{
        struct tar_entry e = { .name = STR("f"), .mode = 0644, .uid = 1234, .gid = 2345 };
        struct tar_entry link = {
                .type = TAR_SYMLINK, .name = STR("l"), .link = STR("f"), .uid = 1234, .gid = 2345
        };

        begin();
        add(&e, STR(""));
        check_i64_eq(post("/files/archive?path=.", finished()).status, 200);
        check_u64_eq(stat_of("f").st_uid, geteuid());
        begin();
        e.uid = UINT32_MAX;
        add(&e, STR(""));
        check_i64_eq(post("/files/archive?path=.&owner=keep", finished()).status, 400);
        if (geteuid() != 0)
                skip_because("only root gives files away");
        begin();
        e.uid = 1234;
        add(&e, STR(""));
        add(&link, STR(""));
        check_i64_eq(post("/files/archive?path=.&owner=keep", finished()).status, 200);
        check_u64_eq(stat_of("f").st_uid, 1234);
        check_u64_eq(stat_of("f").st_gid, 2345);
        check_u64_eq(stat_of("l").st_uid, 1234);
}

/* --- what is refused --- */

/* Each archive has a good file before and after its bad entry. */
static void test_entries_that_would_leave(void **state)
{
        static const struct {
                const char *what;
                enum tar_type type;
                const char *name, *link;
                const char *says; /* in the message */
        } cases[] = {
                { "up", TAR_FILE, "../outside", "", "'../outside'" },
                { "up from inside", TAR_FILE, "d/../../outside", "", "'d/../../outside'" },
                { "up and down", TAR_FILE, "d/../x", "", "component" },
                { "only up", TAR_DIR, "..", "", "component" },
                { "absolute", TAR_FILE, "/tmp/hutch-absolute", "", "absolute" },
                { "absolute directory", TAR_DIR, "//x", "", "absolute" },
                { "through a link", TAR_FILE, "l/x", "", "'l/x'" },
                { "through a link, deeper", TAR_FILE, "l/new/x", "", "link" },
                { "directory through a link", TAR_DIR, "l/newdir", "", "link" },
                { "directory in place of a link", TAR_DIR, "l", "", "in its place" },
                { "link through a link", TAR_SYMLINK, "l/x", "/etc", "link" },
                { "through a link to here", TAR_FILE, "here/x", "", "link" },
                { "through a file", TAR_FILE, "file/x", "", "other than a directory" },
                { "hard link up", TAR_HARDLINK, "h", "../outside", "component" },
                { "hard link absolute", TAR_HARDLINK, "h", "/etc/passwd", "absolute" },
                { "hard link through a link", TAR_HARDLINK, "h", "l/secret", "link" },
                { "hard link to a link", TAR_HARDLINK, "h", "l", "other than a file" },
                { "hard link to a directory", TAR_HARDLINK, "h", "d", "other than a file" },
                { "hard link to nothing", TAR_HARDLINK, "h", "nothing", "does not exist" },
                { "hard link to nothing deeper", TAR_HARDLINK, "h", "no/thing", "does not exist" },
                { "file in place of a directory", TAR_FILE, "d", "", "directory" },
                { "link in place of a directory", TAR_SYMLINK, "d", "x", "directory" },
                { "device", TAR_CHAR, "null", "", "devices" },
                { "device below", TAR_BLOCKDEV, "newdir/sda", "", "devices" },
                { "fifo", TAR_FIFO, "fifo", "", "FIFO" },
                { "file without a name", TAR_FILE, "./.", "", "no name" },
        };
        static const char *const before[] = { "t/",     "t/d/",          "t/d/f",
                                              "t/file", "t/l -> ../out", "t/here -> .",
                                              "out/",   "out/secret",    "outside",
                                              NULL };

        tree_fill(root, before);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct reply r;

                check_case(cases[i].what);
                begin();
                add_file("first", STR("1"));
                add_other(cases[i].type, cases[i].name, cases[i].link);
                add_file("last", STR("2"));
                r = post("/files/archive?path=t", finished());
                check_i64_eq(r.status, 400);
                check_true(str_starts_with(r.body, STR("{\"code\":\"INVALID_FILE_CONTENT\"")));
                check_true(has(r.body, cases[i].says));
                check_true(file_is(&w, "t/first", STR("1")));
                check_false(tree_has(root, "t/last"));
                check_false(tree_has(root, "t/h"));
                check_false(tree_has(root, "t/newdir"));
                check_false(tree_has(root, "x"));
                check_false(tree_has(root, "out/x"));
                check_false(tree_has(root, "out/new"));
                check_false(tree_has(root, "out/newdir"));
                check_true(file_is(&w, "outside", STR("outside")));
                check_true(file_is(&w, "out/secret", STR("out/secret")));
                check_true(file_is(&w, "t/d/f", STR("t/d/f")));
        }
        check_true(access("/tmp/hutch-absolute", F_OK) < 0);
        check_no_leftovers(".");
}

/* The classic: the archive brings its own link and then writes through it. */
static void test_link_of_the_archive_is_not_followed(void **state)
{
        static const char *const before[] = { "t/", "out/", NULL };
        struct reply r;

        tree_fill(root, before);
        begin();
        add_other(TAR_DIR, "a", "");
        add_file("a/1", STR("1"));
        add_other(TAR_SYMLINK, "b", "../out");
        add_file("b/x", STR("2"));
        r = post("/files/archive?path=t", finished());
        check_i64_eq(r.status, 400);
        check_true(has(r.body, "'b/x'"));
        check_false(tree_has(root, "out/x"));
        check_true(file_is(&w, "t/a/1", STR("1")));
}

static void test_bad_archives_leave_nothing_unfinished(void **state)
{
        static const struct {
                const char *what;
                size_t cut; /* bytes of the archive */
                const char *says;
        } cases[] = {
                { "in a header", 300, "truncated" },
                { "in the content", 700, "truncated" },
                { "in the padding", 1000, "truncated" },
                { "before the end marker", 1024, "truncated" },
        };
        struct reply r;

        put_file(&w, "f", STR("old"));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].what);
                begin();
                add_file("g", STR("the new content, which is a bit longer"));
                r = post("/files/archive?path=.", str_of(finished().p, cases[i].cut));
                check_i64_eq(r.status, 400);
                check_true(has(r.body, cases[i].says));
                check_true(file_is(&w, "f", STR("old")));
                if (cases[i].cut < 1024)
                        check_false(tree_has(root, "g"));
                check_no_leftovers(".");
        }
        r = post("/files/archive?path=.", STR("\x1F\x8B\x08 this is compressed, and short"));
        check_i64_eq(r.status, 400);
}

static void test_full_disk(void **state)
{
        static char content[100000];
        struct rlimit before, small = { 50000, RLIM_INFINITY };
        struct reply r;

        check_i64_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
        small.rlim_max = before.rlim_max;
        (void) signal(SIGXFSZ, SIG_IGN);
        put_file(&w, "f", STR("old"));
        begin();
        add_file("f", str_of(content, sizeof(content)));
        check_i64_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
        r = post("/files/archive?path=.", finished());
        check_i64_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
        check_i64_eq(r.status, 500);
        check_true(has(r.body, "\"RUNTIME_ERROR\""));
        check_true(has(r.body, "extract 'f': File too large"));
        check_true(file_is(&w, "f", STR("old")));
        check_no_leftovers(".");
}

static void test_client_leaves_in_the_middle(void **state)
{
        static char content[100000];
        struct http_loopback lb;
        unsigned fds = tree_open_fds();

        put_file(&w, "f", STR("old"));
        begin();
        add_file("f", str_of(content, sizeof(content)));
        http_loopback_init(&lb, w.agent->server);
        http_loopback_start(&lb, "POST", "/files/archive?path=.", str_of(archive.p, 50000));
        check_false(lb.ended);
        http_loopback_abort(&lb, -ECONNRESET);
        http_loopback_done(&lb);
        net_loop_run_once(&w.loop, /* wait= */ false);
        check_true(file_is(&w, "f", STR("old")));
        check_u64_eq(tree_open_fds(), fds);
        check_no_leftovers(".");
}

/* --- many, deep, and foreign --- */

static void test_many_small_files_with_others_served(void **state)
{
        struct http_loopback other;
        struct reply r;
        char name[64];

        begin();
        for (unsigned i = 0; i < 2000; i++) {
                (void) snprintf(name, sizeof(name), "d%u/f%u", i % 100, i);
                add_file(name, STR("x"));
        }
        (void) finished();
        http_loopback_init(&w.lb, w.agent->server);
        w.called = true;
        http_loopback_start(&w.lb, "POST", "/files/archive?path=t", buf_str(&archive));
        check_false(w.lb.ended);
        check_true(w.lb._req->_body_paused);
        http_loopback_init(&other, w.agent->server);
        http_loopback_run(&other, "GET", "/ping", STR_NULL);
        check_i64_eq(other.status, 200);
        check_false(w.lb.ended);
        http_loopback_done(&other);
        http_loopback_done(&w.lb);
        net_loop_run_once(&w.loop, /* wait= */ false);
        w.called = false;
        /* And once more to its end. */
        r = post("/files/archive?path=t", buf_str(&archive));
        check_str_eq(r.body, "{\"entries\":2000,\"bytes\":2000}");
        r = get("/files/archive?path=t");
        check_i64_eq(r.status, 200);
        check_no_leftovers("t");
}

static void test_copy_of_a_deep_tree(void **state)
{
        static const char *const more[] = { "f", NULL };
        struct reply r;

        check_i64_eq(mkdirat(root, "t", 0755), 0);
        {
                scoped(fd_closep) int t = openat(root, "t", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

                tree_add_deep(t, 500, more);
        }
        r = get("/files/archive?path=t");
        check_i64_eq(r.status, 200);
        check_false(r.failed);
        begin();
        buf_add_str(&archive, r.body);
        r = post("/files/archive?path=copy", buf_str(&archive));
        check_str_eq(r.body, "{\"entries\":1000,\"bytes\":500}");
}

/* Too deep to be named: the archive must not appear complete. */
static void test_archive_of_a_tree_too_deep_is_aborted(void **state)
{
        struct reply r;

        tree_add_deep(root, 2100, NULL);
        r = get("/files/archive?path=.");
        check_i64_eq(r.status, 200);
        check_true(r.failed);
        check_i64_eq(call(&w, "DELETE", "/directories?path=a", NULL).status, 200);
}

static void test_copy_between_us_and_gnu_tar(void **state)
{
        const char *const unpack[] = { "tar", "-xf", "-", "-C", path_in(&w, "theirs"), NULL };
        const char *const pack[] = { "tar", "-C", path_in(&w, "d"), "-cf", "-", ".", NULL };
        const char *compare[] = { "diff", "-r", "--no-dereference", NULL, NULL, NULL };
        scoped(buf_done) struct buf out;
        struct reply r;

        tree_fill(root, sample);
        check_i64_eq(unlinkat(root, "d/p", 0), 0);
        tree_add(root, "theirs/");
        r = get("/files/archive?path=d");
        check_i64_eq(r.status, 200);
        buf_init(&out, MiB);
        if (run_program(unpack, r.body, &out) == 127)
                skip_because("no tar");
        compare[3] = path_in(&w, "d");
        compare[4] = path_in(&w, "theirs");
        check_i64_eq(run_program(compare, STR(""), &out), 0);
        check_str_eq(buf_str(&out), "");
        check_i64_eq(run_program(pack, STR(""), &out), 0);
        r = post("/files/archive?path=ours", buf_str(&out));
        check_i64_eq(r.status, 200);
        buf_reset(&out);
        compare[4] = path_in(&w, "ours");
        check_i64_eq(run_program(compare, STR(""), &out), 0);
        check_str_eq(buf_str(&out), "");
}

#define t(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                t(test_get_directory),
                t(test_get_one_file_or_link),
                t(test_get_empty),
                t(test_errors),
                t(test_file_that_changes_while_it_is_read),
                t(test_get_stops_when_the_client_leaves),
                t(test_post_makes_what_is_in_the_archive),
                t(test_post_keeps_what_it_must_and_replaces_the_rest),
                t(test_modes),
                t(test_owners),
                t(test_entries_that_would_leave),
                t(test_link_of_the_archive_is_not_followed),
                t(test_bad_archives_leave_nothing_unfinished),
                t(test_full_disk),
                t(test_client_leaves_in_the_middle),
                t(test_many_small_files_with_others_served),
                t(test_copy_of_a_deep_tree),
                t(test_archive_of_a_tree_too_deep_is_aborted),
                t(test_copy_between_us_and_gnu_tar),
        };

        tree_use_memory();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
