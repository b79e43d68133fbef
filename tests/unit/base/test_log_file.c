/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log_file.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/lib/check.h"

static char dir[64], path[80];

static unsigned reports;

static int set_up(void **state)
{
        reports = 0;
        (void) snprintf(dir, sizeof(dir), "/tmp/test_log_file-XXXXXX");
        check_true(mkdtemp(dir) != NULL);
        (void) snprintf(path, sizeof(path), "%s/log", dir);
        return 0;
}

static const char *name_of(unsigned number)
{
        static char name[100];

        (void) snprintf(name, sizeof(name), number > 0 ? "%s.%u" : "%s", path, number);
        return name;
}

static int tear_down(void **state)
{
        check_i64_eq(chmod(dir, 0700), 0);
        for (unsigned i = 0; i < 10; i++)
                (void) unlink(name_of(i));
        check_i64_eq(rmdir(dir), 0);
        return 0;
}

static void count_report(void *data, const char *where, const char *event, int error)
{
        check_true(data == &reports && error < 0 && *where == '/' && *event);
        reports++;
}

static struct log_file *open_log(uint64_t size_max, unsigned count)
{
        struct log_file *f = NULL;

        check_i64_eq(log_file_open(&(struct log_file_config){ .path = path,
                                                              .size_max = size_max,
                                                              .count = count,
                                                              .report = count_report,
                                                              .report_data = &reports },
                                   &f),
                     0);
        return f;
}

/* The content of a file; "-" if there is none. */
static const char *content(unsigned number)
{
        static char text[4096];
        int fd = open(name_of(number), O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

        if (n < 0)
                return "-";
        (void) close(fd);
        text[n] = '\0';
        return text;
}

static void put(unsigned number, const char *text)
{
        int fd = open(name_of(number), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

        check_i64_eq(write(fd, text, strlen(text)), (ssize_t) strlen(text));
        (void) close(fd);
}

static void rotates_before_a_line_that_does_not_fit(void **state)
{
        struct log_file *f = open_log(10, 2);

        log_file_write(f, STR("aaaa\n"));
        log_file_write(f, STR("bbbb\n"));
        check_z_eq(content(0), "aaaa\nbbbb\n");
        log_file_write(f, STR("cccc\n"));
        check_z_eq(content(0), "cccc\n");
        check_z_eq(content(1), "aaaa\nbbbb\n");
        log_file_write(f, STR("longer than a file\n")); /* it is whole all the same */
        check_z_eq(content(0), "longer than a file\n");
        check_z_eq(content(2), "aaaa\nbbbb\n");
        log_file_write(f, STR("d\n"));
        check_z_eq(content(0), "d\n");
        check_z_eq(content(1), "longer than a file\n");
        check_z_eq(content(2), "cccc\n"); /* the oldest is gone */
        check_z_eq(content(3), "-");
        check_u64_eq(log_file_lost(f), 0);
        log_file_close(f);
}

static void goes_on_in_a_file_that_exists(void **state)
{
        struct log_file *f;
        struct stat st;

        put(0, "aaaa\n");
        f = open_log(10, 1);
        log_file_write(f, STR("bbbb\n"));
        check_z_eq(content(0), "aaaa\nbbbb\n");
        log_file_write(f, STR("cccc\n"));
        check_z_eq(content(1), "aaaa\nbbbb\n");
        check_i64_eq(stat(path, &st), 0);
        check_u64_eq(st.st_mode & 0777, 0600);
        log_file_close(f);
}

/* A kill -9 between two renames leaves one. */
static void a_free_number_is_used_before_a_file_is_removed(void **state)
{
        struct log_file *f;

        put(0, "now\n");
        put(2, "old\n");
        put(3, "oldest\n");
        f = open_log(4, 3);
        log_file_write(f, STR("new\n"));
        check_z_eq(content(0), "new\n");
        check_z_eq(content(1), "now\n");
        check_z_eq(content(2), "old\n");
        check_z_eq(content(3), "oldest\n");
        log_file_close(f);
}

static void a_part_of_a_line_is_removed_at_the_start(void **state)
{
        struct log_file *f;

        put(0, "whole\npar");
        f = open_log(0, 1);
        log_file_write(f, STR("next\n"));
        check_z_eq(content(0), "whole\nnext\n");
        log_file_close(f);
        put(0, "par");
        f = open_log(0, 1);
        log_file_write(f, STR("next\n"));
        check_z_eq(content(0), "next\n");
        log_file_close(f);
}

static void someone_else_may_rotate(void **state)
{
        struct log_file *f = open_log(10, 3);

        log_file_write(f, STR("aaaa\n"));
        check_i64_eq(rename(path, name_of(1)), 0);
        log_file_write(f, STR("bbbb\n"));
        check_z_eq(content(1), "aaaa\nbbbb\n");
        log_file_write(f, STR("cccc\n")); /* does not fit; the path leads nowhere */
        check_z_eq(content(0), "cccc\n");
        check_z_eq(content(1), "aaaa\nbbbb\n");
        check_z_eq(content(2), "-");
        check_i64_eq(truncate(path, 0), 0); /* or empty it */
        log_file_write(f, STR("dddddddd\n"));
        check_z_eq(content(0), "dddddddd\n");
        check_z_eq(content(2), "-");
        log_file_replace(f, open_log(0, 1)); /* no rotation from now on */
        log_file_write(f, STR("eeee\n"));
        check_z_eq(content(0), "dddddddd\neeee\n");
        log_file_close(f);
}

static void if_it_cannot_rotate_lines_go_on(void **state)
{
        struct log_file *f = open_log(5, 1);

        log_file_write(f, STR("aaaa\n"));
        check_i64_eq(mkdir(name_of(1), 0700), 0); /* no file replaces a directory */
        log_file_write(f, STR("bbbb\n"));
        check_z_eq(content(0), "aaaa\nbbbb\n");
        check_u64_eq(reports, 1);
        check_i64_eq(rmdir(name_of(1)), 0);
        log_file_write(f, STR("cccc\n")); /* it is tried again */
        check_z_eq(content(1), "aaaa\nbbbb\n");
        check_z_eq(content(0), "cccc\n");
        check_u64_eq(log_file_lost(f), 0);
        log_file_close(f);
}

static void lost_lines_are_counted(void **state)
{
        struct log_file *f = NULL;

        check_i64_eq(log_file_open(&(struct log_file_config){ .path = "/dev/full",
                                                              .size_max = 5,
                                                              .report = count_report,
                                                              .report_data = &reports },
                                   &f),
                     0);
        for (unsigned i = 0; i < 3; i++)
                log_file_write(f, STR("aaaa\n"));
        check_u64_eq(log_file_lost(f), 3);
        check_u64_eq(reports, 1); /* the first of a series */
        log_file_replace(f, open_log(0, 1));
        log_file_write(f, STR("bbbb\n"));
        check_u64_eq(log_file_lost(f), 3);
        check_z_eq(content(0), "bbbb\n");
        log_file_close(f);
        check_u64_eq(log_file_lost(NULL), 0);
        check_i64_eq(access("/dev/full", F_OK), 0); /* not rotated */
}

static void errors_of_open(void **state)
{
        char name[PATH_MAX + 1];
        struct log_file *f = NULL;

        memset(name, '/', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        check_i64_eq(log_file_open(&(struct log_file_config){ .path = name }, &f), -ENAMETOOLONG);
        check_i64_eq(log_file_open(&(struct log_file_config){ .path = "/nowhere/log" }, &f),
                     -ENOENT);
        check_true(f == NULL);
        log_file_close(f);
}

#define test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                test(rotates_before_a_line_that_does_not_fit),
                test(goes_on_in_a_file_that_exists),
                test(a_free_number_is_used_before_a_file_is_removed),
                test(a_part_of_a_line_is_removed_at_the_start),
                test(someone_else_may_rotate),
                test(if_it_cannot_rotate_lines_go_on),
                test(lost_lines_are_counted),
                test(errors_of_open),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
