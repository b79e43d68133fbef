/* SPDX-License-Identifier: Apache-2.0 */
#include "api/hutch/audit.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "api/api.h"
#include "base/base.h"
#include "tests/lib/clock_fake.h"
#include "tests/lib/http_loopback.h"
#include "tests/lib/check.h"

/* Friday, with a round second. */
#define NOW ((usec_t) 1700000000 * USEC_PER_SEC)

static struct clock_fake now;

struct pipe_reader {
        int in;
        char text[32 * KiB];
};

static struct log_file *open_file(const char *path)
{
        struct log_file *f = NULL;

        check_i64_eq(log_file_open(&(struct log_file_config){ .path = path }, &f), 0);
        return f;
}

/* A file whose lines can be read from the pipe. */
static struct log_file *open_pipe(struct pipe_reader *r)
{
        struct log_file *f;
        char path[64];
        int fds[2];

        check_i64_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[1]);
        f = open_file(path);
        (void) close(fds[1]);
        r->in = fds[0];
        return f;
}

static struct audit *open_audit(struct pipe_reader *r)
{
        clock_fake_init(&now, 0, NOW);
        return audit_new(open_pipe(r), &now.clock);
}

/* What was written since the last time. */
static struct str written(struct pipe_reader *r)
{
        ssize_t n = read(r->in, r->text, sizeof(r->text));

        return str_of(r->text, n > 0 ? (size_t) n : 0);
}

static void test_a_line_names_caller_operation_and_result(void **state)
{
        struct pipe_reader r;
        struct audit *a = open_audit(&r);

        audit_write(a, &(struct audit_entry){ .request = STR("r1"),
                                              .tenant = STR("acme"),
                                              .principal = STR("ci \"x\"\n"),
                                              .key = STR("k-01234567"),
                                              .method = STR("DELETE"),
                                              .operation = STR("deleteSandbox"),
                                              .sandbox = STR("sb-1"),
                                              .peer = STR("127.0.0.1"),
                                              .status = 204 });
        check_str_eq(written(&r),
                     "{\"time\":\"2023-11-14T22:13:20.000Z\",\"request\":\"r1\",\"tenant\":"
                     "\"acme\",\"principal\":\"ci \\\"x\\\"\\n\",\"key\":\"k-01234567\","
                     "\"method\":\"DELETE\",\"operation\":\"deleteSandbox\",\"sandbox\":\"sb-1\","
                     "\"status\":204,\"peer\":\"127.0.0.1\"}\n");
        audit_write(a, &(struct audit_entry){ .request = STR("r2") });
        check_str_eq(written(&r), "{\"time\":\"2023-11-14T22:13:20.000Z\",\"request\":\"r2\"}\n");
        audit_free(a);
        (void) close(r.in);
}

static void test_continues_in_a_new_file(void **state)
{
        struct pipe_reader r;
        struct audit *a = open_audit(&r);
        int old = r.in;

        audit_reopen(a, open_pipe(&r));
        audit_write(a, &(struct audit_entry){ .request = STR("r3") });
        check_i64_eq(read(old, r.text, sizeof(r.text)), 0); /* closed, nothing in it */
        check_true(str_ends_with(written(&r), STR("\"request\":\"r3\"}\n")));
        audit_free(a);
        (void) close(old);
        (void) close(r.in);
}

static void test_lines_that_cannot_be_written_are_counted(void **state)
{
        struct pipe_reader r;
        struct audit *a;

        clock_fake_init(&now, 0, NOW);
        a = audit_new(open_file("/dev/full"), &now.clock);
        audit_write(a, &(struct audit_entry){ .request = STR("r1") });
        audit_write(a, &(struct audit_entry){ .request = STR("r2") });
        check_u64_eq(audit_lost(a), 2);
        audit_reopen(a, open_pipe(&r));
        audit_write(a, &(struct audit_entry){ .request = STR("r3") });
        check_u64_eq(audit_lost(a), 2);
        check_true(str_starts_with(written(&r), STR("{\"time\"")));
        check_u64_eq(audit_lost(NULL), 0);
        audit_free(a);
        (void) close(r.in);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_line_names_caller_operation_and_result),
                cmocka_unit_test(test_continues_in_a_new_file),
                cmocka_unit_test(test_lines_that_cannot_be_written_are_counted),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
