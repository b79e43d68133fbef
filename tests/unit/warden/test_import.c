/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/import.h"

#include <dirent.h>
#include <sys/stat.h>

#include "archive/tar.h"
#include "os/walk.h"
#include "tests/lib/instance_world.h"
#include "tests/lib/sealed_text.h"

#define NEEDS "images are imported by root"
#define RANGE (PLAN_SAMPLE_BASE + 100 * PLAN_UIDS)

static struct instance_world world;

static int open_world(void **state)
{
        (void) state;
        if (instance_world_possible())
                instance_world_open(&world, getenv("HUTCH_EXECD"));
        return 0;
}

static int close_world(void **state)
{
        (void) state;
        if (instance_world_possible())
                instance_world_close(&world);
        return 0;
}

/* --- archives --- */

struct entry {
        enum tar_type type;
        const char *name, *link; /* link: also the content of a file */
        uint32_t mode;
        uint64_t uid;
};

#define ENTRIES_MAX 6

static void add(struct buf *b, const struct entry *e)
{
        const bool is_file = e->type == TAR_FILE;
        const struct str content = str_from(is_file && e->link ? e->link : "");
        const struct tar_entry t = { .type = e->type,
                                     .name = str_from(e->name),
                                     .link = str_from(!is_file && e->link ? e->link : ""),
                                     .size = content.n,
                                     .mode = e->mode ? e->mode : 0755,
                                     .uid = e->uid,
                                     .gid = e->uid };

        tar_write_header(b, &t, 0);
        buf_add_str(b, content);
        for (unsigned i = tar_padding(content.n); i > 0; i--)
                buf_add_char(b, '\0');
}

static int import(const char *name, struct str archive, struct err *e)
{
        scoped(fd_closep) int fd = sealed_text(archive);

        check_i64_eq(lseek(fd, 0, SEEK_SET), 0);
        return import_image(&(struct import){ world.root.root, name, fd, RANGE }, e);
}

static int import_entries(const char *name, const struct entry *entries, struct err *e)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, MiB);
        for (size_t i = 0; i < ENTRIES_MAX && entries[i].name; i++)
                add(&b, &entries[i]);
        tar_write_end(&b);
        return import(name, buf_str(&b), e);
}

static size_t count_layers(void)
{
        DIR *d = opendir(fake_root_path(&world.root, "/" DATA_LAYERS));
        size_t n = 0;

        check_true(d != NULL);
        while (readdir(d))
                n++;
        (void) closedir(d);
        return n - 2;
}

static struct stat stat_layer(const char *path)
{
        struct stat st = { 0 };
        char full[256];

        (void) snprintf(full, sizeof(full), "/" DATA_LAYERS "/%s", path);
        check_case(path);
        check_i64_eq(lstat(fake_root_path(&world.root, full), &st), 0);
        return st;
}

/* --- what comes of them --- */

static void test_an_image(void **state)
{
        static const struct entry entries[ENTRIES_MAX] = {
                { TAR_DIR, "./", NULL, 0755, 0 },
                { TAR_DIR, "./bin", NULL, 0755, 0 },
                { TAR_FILE, "./bin/su", "program", 04755, 0 },
                { TAR_FILE, "./of-user", "text", 0640, 1000 },
                { TAR_CHAR, "./dev/mem", NULL, 0666, 0 },
                { TAR_SYMLINK, "./link", "/etc/passwd", 0777, 0 },
        };
        struct err e = { 0 };

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        if (import_entries("small", entries, &e) < 0)
                fail_msg("%s", e.message);
        check_u64_eq(stat_layer("small").st_mode & 07777, 0755);
        check_u64_eq(stat_layer("small/bin/su").st_uid, 0);
        check_u64_eq(stat_layer("small/bin/su").st_mode & 07777, 0755); /* and not set-user-ID */
        check_u64_eq(stat_layer("small/of-user").st_uid, 1000);
        check_u64_eq(stat_layer("small/of-user").st_mode & 07777, 0640);
        check_true(S_ISLNK(stat_layer("small/link").st_mode));
        check_i64_eq(access(fake_root_path(&world.root, "/" DATA_LAYERS "/small/dev/mem"), F_OK),
                     -1);

        check_case("again");
        check_i64_eq(import_entries("small", entries, &e), ERR_RETURN(ERR_EXISTS));
        check_u64_eq(stat_layer("small/bin/su").st_uid, 0);
        check_u64_eq(count_layers(), 1);
        check_i64_eq(walk_remove_all(world.ctx.data, DATA_LAYERS "/small"), 0);
}

static const struct {
        const char *name;
        struct entry entries[ENTRIES_MAX];
} hostile[] = {
        { "absolute", { { TAR_FILE, "/tmp/hutch-evil", "x", 0, 0 } } },
        { "up", { { TAR_FILE, "a/../../evil", "x", 0, 0 } } },
        { "through an absolute link",
          { { TAR_SYMLINK, "etc", "/", 0, 0 }, { TAR_FILE, "etc/evil", "x", 0, 0 } } },
        { "through a link upwards",
          { { TAR_SYMLINK, "etc", "../..", 0, 0 }, { TAR_FILE, "etc/evil", "x", 0, 0 } } },
        { "hard link to the host", { { TAR_HARDLINK, "shadow", "/etc/shadow", 0, 0 } } },
        { "hard link upwards", { { TAR_HARDLINK, "shadow", "../../etc/shadow", 0, 0 } } },
        { "hard link through a link",
          { { TAR_SYMLINK, "etc", "/etc", 0, 0 }, { TAR_HARDLINK, "s", "etc/shadow", 0, 0 } } },
        { "an owner that no sandbox has", { { TAR_FILE, "a", "x", 0, 70000 } } },
        { "nothing", { { 0 } } },
};

static void test_hostile_archives(void **state)
{
        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        for (size_t i = 0; i < ARRAY_SIZE(hostile); i++) {
                struct err e = { 0 };

                check_case(hostile[i].name);
                check_true(import_entries("evil", hostile[i].entries, &e) < 0);
                check_true(strstr(e.message, "import 'evil'") != NULL);
                check_u64_eq(count_layers(), 0);
                check_i64_eq(access("/tmp/hutch-evil", F_OK), -1);
                check_i64_eq(access(fake_root_path(&world.root, "/evil"), F_OK), -1);
        }
}

static void test_what_is_no_archive(void **state)
{
        static const struct entry one[ENTRIES_MAX] = { { TAR_FILE, "a", "text", 0, 0 } };
        scoped(buf_done) struct buf b;
        struct err e;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        buf_init(&b, MiB);
        add(&b, &one[0]);
        check_case("cut off");
        check_i64_eq(import("cut", buf_str(&b), &e), ERR_RETURN(ERR_INVALID));
        check_case("text");
        check_i64_eq(import("text", STR("hello"), &e), ERR_RETURN(ERR_INVALID));
        check_case("names");
        check_i64_eq(import_entries("host", one, &e), ERR_RETURN(ERR_INVALID));
        check_i64_eq(import_entries("../boxes", one, &e), ERR_RETURN(ERR_INVALID));
        check_i64_eq(import_entries(".fresh-1", one, &e), ERR_RETURN(ERR_INVALID));
        check_u64_eq(count_layers(), 0);
}

/* Of one that was killed; not of one that is at work. */
static void test_leftovers_are_removed(void **state)
{
        static const struct entry one[ENTRIES_MAX] = { { TAR_FILE, "a", "text", 0, 0 } };
        struct err e;

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        fake_root_put(&world.root, "/" DATA_LAYERS "/.fresh-1/a/b", "");
        check_i64_eq(import_entries("one", one, &e), 0);
        check_u64_eq(count_layers(), 1);
        check_i64_eq(walk_remove_all(world.ctx.data, DATA_LAYERS "/one"), 0);
}

/* --- a sandbox of one --- */

static void add_file(struct buf *b, const char *name, const char *path)
{
        scoped(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        struct stat st;
        struct tar_entry t = { .type = TAR_FILE, .name = str_from(name), .mode = 0755 };
        char piece[4096];
        ssize_t n;

        check_i64_eq(fstat(fd, &st), 0);
        t.size = (uint64_t) st.st_size;
        tar_write_header(b, &t, 0);
        while ((n = read(fd, piece, sizeof(piece))) > 0)
                buf_add(b, piece, (size_t) n);
        for (unsigned i = tar_padding(t.size); i > 0; i--)
                buf_add_char(b, '\0');
}

static void test_busybox(void **state)
{
        const struct entry links[] = { { TAR_SYMLINK, "bin/sh", "busybox", 0777, 0 },
                                       { TAR_SYMLINK, "bin/stat", "busybox", 0777, 0 },
                                       { TAR_FILE, "etc/key", "mine", 0600, 0 } };
        const struct plan_list layers = PLAN_LIST("busybox");
        struct plan_spec spec = plan_sample_host();
        scoped(buf_done) struct buf b, answer;
        struct instance_case c;
        struct err e = { 0 };

        (void) state;
        if (!instance_world_possible())
                skip_because(NEEDS);
        if (access("/bin/busybox", X_OK) < 0)
                skip_because("this host has no busybox (package busybox-static)");
        buf_init(&b, 16 * MiB);
        buf_init(&answer, MiB);
        add_file(&b, "bin/busybox", "/bin/busybox");
        for (size_t i = 0; i < ARRAY_SIZE(links); i++)
                add(&b, &links[i]);
        tar_write_end(&b);
        if (import("busybox", buf_str(&b), &e) < 0)
                fail_msg("%s", e.message);
        spec.image = PLAN_IMAGE_LAYERS;
        spec.layers = layers;
        instance_case_init(&c, &spec);
        if (instance_case_create(&world, &c) < 0) {
                /* Under a sanitizer the agent wants libraries, which this image lacks. */
                if (!strstr(c.e.message, ", exec"))
                        fail_msg("%s", c.e.message);
        } else {
                instance_case_run(&world, &c,
                                  "stat -c '%u %a' /bin/busybox /etc/key; echo x > /bin/new "
                                  "&& echo written; cat /etc/key",
                                  &answer);
                check_true(instance_output_has(&answer, "0 755"));
                check_true(instance_output_has(&answer, "0 600"));
                check_true(instance_output_has(&answer, "written"));
                check_i64_eq(access(fake_root_path(&world.root, "/" DATA_LAYERS "/busybox/bin/new"),
                                    F_OK),
                             -1);
        }
        instance_case_end(&world, &c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_image),
                cmocka_unit_test(test_hostile_archives),
                cmocka_unit_test(test_what_is_no_archive),
                cmocka_unit_test(test_leftovers_are_removed),
                cmocka_unit_test(test_busybox),
        };

        return cmocka_run_group_tests_name("import", tests, open_world, close_world);
}
