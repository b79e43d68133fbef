/* SPDX-License-Identifier: Apache-2.0 */
#include "warden/host_image.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "tests/lib/fake_root.h"

/* A host with what must come along, and what must not. */
static const struct fake_root_file host_files[] = {
        { "/usr/bin/env", "" },
        { "/usr/lib/x", "" },
        { "/usr/share/app/plain", "" },
        { "/etc/ld.so.cache", "cache" },
        { "/etc/passwd", "secret" },
        { "/etc/shadow", "secret" },
        { "/etc/ssh/ssh_host_key", "secret" },
        { "/etc/ssl/certs/ca.crt", "certificate" },
        { "/etc/ssl/certs/private.key", "secret" },
        { "/etc/ssl/private/key", "secret" },
        { "/etc/app/config", "linked" },
        { "/etc/app2/deep/file", "linked, a directory" },
        { "/etc/app3/closed", "secret" },
        { "/etc/ssl/certs/shut/key", "secret" },
        { "/etc/app4/shut/key", "secret" },
        { "/etc/unknown", "secret" },
        { "/etc/environment", "secret" },
        { "/etc/pam.d/su", "module" },
        { "/etc/security/opasswd", "secret" },
        { "/etc/machine-id", "secret" },
        { "/etc/hutch/key", "secret" },
        { "/etc/profile", "export TOKEN=secret" },
        { "/etc/profile.d/token.sh", "export TOKEN=secret" },
        { "/etc/skel/.netrc", "secret" },
        { "/etc/default/locale", "secret" },
        { "/etc/security/access.conf", "secret" },
        { "/etc/security/limits.conf", "limits" },
        { "/etc/postfix/sasl", "secret" },
        { "/etc/fonts/of-a-user", "secret" },
        { "/etc/fonts/fonts.conf", "fonts" },
        { "/root/.ssh/id", "secret" },
        { NULL, NULL },
};

static const char *const host_links[][2] = {
        { "usr/bin", "/bin" },
        { "/usr/lib", "/lib" },
        { "/etc/app/config", "/usr/share/app/config" },
        { "../../../etc/app2", "/usr/share/app/app2" },
        { "/etc/shadow", "/usr/share/app/trick" },
        { "../../../etc/ssl/../ssh/ssh_host_key", "/usr/share/app/trick2" },
        { "/etc/app3/closed", "/usr/share/app/closed" },
        { "../../../../../../root/.ssh/id", "/usr/share/app/trick3" },
        { "/etc/hutch/key", "/usr/share/app/trick4" },
        { "/usr/bin/vi", "/etc/alternatives-link" },
        { "/usr/bin/env", "/etc/ssl/certs/link" },
        { "nowhere", "/usr/share/app/dangling" },
        { "/etc/environment", "/usr/share/app/trick5" },
        { "/etc/app4/shut/key", "/usr/share/app/shut" },
        { "/etc/ssh", "/etc/app5" },
        { "/etc/app5/ssh_host_key", "/usr/share/app/around" },
        { "/etc/postfix/sasl", "/usr/share/app/mail" },
        { "/etc/profile.d/token.sh", "/usr/share/app/trick6" },
};

struct images {
        struct fake_root host, image;
        int host_fd, image_fd;
};

static void images_open(struct images *t)
{
        fake_root_open(&t->host);
        fake_root_open(&t->image);
        fake_root_put_all(&t->host, host_files);
        for (size_t i = 0; i < ARRAY_SIZE(host_links); i++)
                check_i64_eq(symlink(host_links[i][0], fake_root_path(&t->host, host_links[i][1])),
                             0);
        check_i64_eq(chmod(fake_root_path(&t->host, "/etc/app3/closed"), 0640), 0);
        check_i64_eq(chmod(fake_root_path(&t->host, "/etc/ssl/certs/private.key"), 0600), 0);
        check_i64_eq(chmod(fake_root_path(&t->host, "/etc/ssl/certs/shut"), 0700), 0);
        check_i64_eq(chmod(fake_root_path(&t->host, "/etc/app4/shut"), 0700), 0);
        check_i64_eq(chown(fake_root_path(&t->host, "/etc/fonts/of-a-user"), 1000, 0), 0);
        t->host_fd = open(t->host.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
        t->image_fd = open(t->image.root, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void images_close(struct images *t)
{
        (void) fd_close(t->host_fd);
        (void) fd_close(t->image_fd);
        fake_root_close(&t->host);
        fake_root_close(&t->image);
}

static const struct {
        const char *path;
        const char *content; /* NULL: is not there; "@x": a link to x */
} expected[] = {
        { "bin", "@usr/bin" },
        { "lib", "@/usr/lib" },
        { "etc/ld.so.cache", "cache" },
        { "etc/ssl/certs/ca.crt", "certificate" },
        { "etc/ssl/certs/link", "@/usr/bin/env" },
        { "etc/app/config", "linked" },
        { "etc/app2/deep/file", "linked, a directory" },
        { "etc/resolv.conf", "" },
        { "etc/mtab", "@/proc/self/mounts" },
        { "var/run", "@/run" },
        { "etc/ssl/certs/private.key", NULL },
        { "etc/ssl/private", NULL },
        { "etc/ssh", NULL },
        { "etc/shadow", NULL },
        { "etc/app3/closed", NULL },
        { "etc/ssl/certs/shut", NULL },
        { "etc/app4", NULL },
        { "etc/app5", NULL },
        { "etc/unknown", NULL },
        { "etc/environment", NULL },
        { "etc/pam.d/su", "module" },
        { "etc/security/opasswd", NULL },
        { "etc/machine-id", NULL },
        { "etc/hutch", NULL },
        { "etc/profile.d", NULL },
        { "etc/skel", NULL },
        { "etc/default", NULL },
        { "etc/security/access.conf", NULL },
        { "etc/security/limits.conf", "limits" },
        { "etc/postfix", NULL },
        { "etc/fonts/of-a-user", NULL },
        { "etc/fonts/fonts.conf", "fonts" },
        { "root/.ssh", NULL },
        { "usr/bin", NULL },
};

static void check_entry(struct images *t, const char *path, const char *content)
{
        char is[256] = "";

        check_case(path);
        if (!content) {
                check_i64_eq(faccessat(t->image_fd, path, F_OK, AT_SYMLINK_NOFOLLOW), -1);
        } else if (*content == '@') {
                check_true(readlinkat(t->image_fd, path, is, sizeof(is) - 1) > 0);
                check_z_eq(is, content + 1);
        } else {
                scoped(fd_closep) int fd = openat(t->image_fd, path, O_RDONLY | O_NOFOLLOW);

                check_true(fd >= 0);
                check_true(read(fd, is, sizeof(is) - 1) >= 0);
                check_z_eq(is, content);
        }
}

static void test_what_comes_along(void **state)
{
        struct images t;
        struct stat st;

        (void) state;
        if (geteuid() != 0)
                skip_because("an image belongs to root");
        images_open(&t);
        (void) umask(022);
        check_i64_eq(host_image_fill(t.host_fd, t.image_fd), 0);
        for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
                check_entry(&t, expected[i].path, expected[i].content);
        check_case("a profile of our own");
        check_i64_eq(fstatat(t.image_fd, "etc/profile", &st, 0), 0);
        check_true(st.st_size != (off_t) strlen("export TOKEN=secret"));
        check_case("directories");
        check_i64_eq(fstatat(t.image_fd, "tmp", &st, 0), 0);
        check_u64_eq(st.st_mode & 07777, 01777);
        check_i64_eq(fstatat(t.image_fd, "root", &st, 0), 0);
        check_u64_eq(st.st_mode & 07777, 0700);
        check_i64_eq(fstatat(t.image_fd, "etc/passwd", &st, 0), 0);
        check_true(st.st_size > 100);
        images_close(&t);
}

static void test_programs_outside_of_usr(void **state)
{
        struct images t;

        (void) state;
        if (geteuid() != 0)
                skip_because("an image belongs to root");
        images_open(&t);
        check_i64_eq(unlink(fake_root_path(&t.host, "/bin")), 0);
        check_i64_eq(mkdir(fake_root_path(&t.host, "/bin"), 0755), 0);
        check_i64_eq(host_image_fill(t.host_fd, t.image_fd), -ENOTSUP);
        images_close(&t);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_comes_along),
                cmocka_unit_test(test_programs_outside_of_usr),
        };

        return cmocka_run_group_tests_name("host_image", tests, NULL, NULL);
}
