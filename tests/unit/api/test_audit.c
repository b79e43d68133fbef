/* SPDX-License-Identifier: Apache-2.0 */
#include "api/hutch/audit.h"

#include <fcntl.h>
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

static struct audit *open_audit(struct pipe_reader *r)
{
        int fds[2];

        clock_fake_init(&now, 0, NOW);
        check_i64_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
        r->in = fds[0];
        return audit_new(fds[1], &now.clock, NULL);
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
        int old = r.in, fds[2];

        check_i64_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
        audit_reopen(a, fds[1]);
        audit_write(a, &(struct audit_entry){ .request = STR("r3") });
        check_i64_eq(read(old, r.text, sizeof(r.text)), 0); /* closed, nothing in it */
        r.in = fds[0];
        check_true(str_ends_with(written(&r), STR("\"request\":\"r3\"}\n")));
        audit_free(a);
        (void) close(old);
        (void) close(r.in);
}

static void test_lines_that_cannot_be_written_are_counted(void **state)
{
        int full = open("/dev/full", O_WRONLY | O_CLOEXEC), fds[2];
        struct pipe_reader r;
        struct audit *a;

        clock_fake_init(&now, 0, NOW);
        a = audit_new(full, &now.clock, NULL);
        audit_write(a, &(struct audit_entry){ .request = STR("r1") });
        audit_write(a, &(struct audit_entry){ .request = STR("r2") });
        check_u64_eq(audit_lost(a), 2);
        check_i64_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
        r.in = fds[0];
        audit_reopen(a, fds[1]);
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
