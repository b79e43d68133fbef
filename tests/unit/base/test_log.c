/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"
#include "tests/lib/clock_fake.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base.h"

/* The sink is one end of a datagram pair: each write(2) arrives as one message, so the tests see
 * how many there were. */
struct fixture {
        struct clock_fake clock;
        struct log_sink sink;
        struct log_ctx ctx;
        int fd;
        char line[2 * BUF_MAX_LOG_LINE];
};

static void open_log(struct fixture *f, enum log_format format)
{
        int fds[2];

        check_i64_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
        clock_fake_init(&f->clock, 0, 1769903999123456);
        f->sink = (struct log_sink){
                .fd = fds[0], .level = LOG_INFO, .format = format, .clock = &f->clock.clock
        };
        log_ctx_init_root(&f->ctx, &f->sink);
        f->fd = fds[1];
}

static void close_log(struct fixture *f)
{
        (void) close(f->fd);
        (void) close(f->sink.fd);
}

/* The next line without its end, or the null view. */
static struct str next_line(struct fixture *f)
{
        ssize_t n = recv(f->fd, f->line, sizeof(f->line), 0);

        if (n < 0)
                return STR_NULL;
        check_true(n > 0 && f->line[n - 1] == '\n');
        check_true(memchr(f->line, '\n', (size_t) n) == f->line + n - 1);
        return str_of(f->line, (size_t) n - 1);
}

#define HEAD "ts=2026-01-31T23:59:59.123Z level=info "

static void writes_logfmt(void **state)
{
        struct log_ctx request, sandbox;
        struct fixture f;

        open_log(&f, LOG_LOGFMT);
        log_info(&f.ctx, "started");
        check_str_eq(next_line(&f), HEAD "msg=started");
        log_ctx_init(&request, &f.ctx);
        log_ctx_add_str(&request, "request", STR("6f"));
        log_ctx_add_str(&request, "absent", STR_NULL);
        log_ctx_add_str(&request, "empty", STR(""));
        log_ctx_init(&sandbox, &request);
        log_ctx_add_str(&sandbox, "pid", STR("18446744073709551615"));
        log_info(&sandbox, "sandbox %s", "created");
        check_str_eq(next_line(&f), HEAD "msg=\"sandbox created\" request=6f empty=\"\" "
                                         "pid=18446744073709551615");
        log_fields(&sandbox, LOG_INFO, "done", LOG_F_STR("path", STR("/v1/x=y")),
                   LOG_F_I64("low", INT64_MIN), LOG_F_U64("n", UINT64_MAX));
        check_str_eq(next_line(&f), HEAD "msg=done request=6f empty=\"\" pid=18446744073709551615 "
                                         "path=\"/v1/x=y\" low=-9223372036854775808 "
                                         "n=18446744073709551615");
        close_log(&f);
}

static void writes_json(void **state)
{
        struct fixture f;

        open_log(&f, LOG_JSON);
        log_ctx_add_str(&f.ctx, "name", STR("a\"}\n{\"b"));
        check_i64_eq(log_err(-ENOENT, &f.ctx, "cannot start"), -ENOENT);
        check_str_eq(next_line(&f),
                     "{\"ts\":\"2026-01-31T23:59:59.123Z\",\"level\":\"error\",\"msg\":\"cannot "
                     "start\",\"error\":\"No such file or directory\","
                     "\"name\":\"a\\\"}\\n{\\\"b\"}");
        close_log(&f);
}

static void returns_the_error(void **state)
{
        struct fixture f;

        open_log(&f, LOG_LOGFMT);
        errno = 99;
        check_i64_eq(log_err(ERR_RETURN(ERR_NOT_FOUND), &f.ctx, "x"), ERR_RETURN(ERR_NOT_FOUND));
        check_i64_eq(errno, 99);
        check_true(str_ends_with(next_line(&f), STR("level=error msg=x error=not-found")));
        check_i64_eq(log_err(-EPERM, NULL, "x"), -EPERM);
        log_info(NULL, "no one listens");
        log_debug(&f.ctx, "below the level");
        check_view_eq(next_line(&f), STR_NULL);
        close_log(&f);
        f.sink.fd = -EBADF;
        check_i64_eq(log_err(-EPERM, &f.ctx, "x"), -EPERM);
}

static void cannot_be_forged(void **state)
{
        static const struct {
                struct str in;
                const char *out;
        } cases[] = {
                { STR("a\nts=0 level=error msg=forged"), "\"a\\nts=0 level=error msg=forged\"" },
                { STR("a level=error"), "\"a level=error\"" },
                { STR("a\" level=\"error"), "\"a\\\" level=\\\"error\"" },
                { STR("\x1b[2J\x1b]0;x\x07"), "\"\\u001b[2J\\u001b]0;x\\u0007\"" },
                { STR("\xc2\x9b"
                      "2J"),
                  "\"\\u009b2J\"" },
                { STR("a\xe2\x80\xa8"
                      "b"),
                  "\"a\\u2028b\"" },
                { STR("a\0b"), "\"a\\u0000b\"" },
                { STR("\xff\xfe"), "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
                { STR("a\\"), "\"a\\\\\"" },
        };
        struct fixture f;

        open_log(&f, LOG_LOGFMT);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                check_case(cases[i].out);
                log_fields(&f.ctx, LOG_INFO, "x", LOG_F_STR("name", cases[i].in));
                check_str_eq(str_skip(next_line(&f), strlen(HEAD "msg=x name=")), cases[i].out);
        }
        close_log(&f);
}

/* Whatever is in it: a line is one write, not too long, valid, and says that it is cut. */
static void check_cut(enum log_format format, struct str value)
{
        struct fixture f;
        struct str line;

        open_log(&f, format);
        log_fields(&f.ctx, LOG_INFO, "x", LOG_F_STR("first", value), LOG_F_STR("second", value),
                   LOG_F_U64("third", UINT64_MAX));
        line = next_line(&f);
        check_true(line.p && line.n < BUF_MAX_LOG_LINE);
        check_true(str_is_utf8(line));
        if (format == LOG_JSON) {
                json_t *doc = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES, NULL);

                check_true(doc && json_is_true(json_object_get(doc, "cut")));
                json_decref(doc);
        } else {
                check_true(str_ends_with(line, STR(" cut=true")));
        }
        check_view_eq(next_line(&f), STR_NULL);
        close_log(&f);
}

static void cuts_long_lines(void **state)
{
        static const char *const fills[] = { "x", "\x01", "\xe2\x82\xac", "\"", "\xff", " a" };
        static char text[40000];

        for (size_t i = 0; i < ARRAY_SIZE(fills); i++) {
                size_t n = strlen(fills[i]);

                check_case(fills[i]);
                for (size_t at = 0; at + n < sizeof(text); at += n)
                        memcpy(text + at, fills[i], n);
                for (size_t len = 16000; len < 16500; len += 7) {
                        check_cut(LOG_LOGFMT, str_of(text, len));
                        check_cut(LOG_JSON, str_of(text, len));
                }
                check_cut(LOG_LOGFMT, str_of(text, sizeof(text)));
        }
}

static void cuts_long_messages(void **state)
{
        static char text[10000];
        struct fixture f;
        struct str line;

        memset(text, 'x', sizeof(text) - 1);
        open_log(&f, LOG_LOGFMT);
        log_info(&f.ctx, "%s", text);
        line = next_line(&f);
        check_true(line.n > 4000 && line.n < 5000);
        check_true(str_ends_with(line, STR("x cut=true")));
        close_log(&f);
}

static void chatter(struct fixture *f)
{
        log_info(&f->ctx, "again");
}

/* Fills the window and n more; returns how many lines came out. */
static int chatter_much(struct fixture *f, int n)
{
        int lines = 0;

        for (int i = 0; i < LOG_BURST + n; i++) {
                chatter(f);
                lines += next_line(f).p != NULL;
        }
        return lines;
}

static void limits_repetition(void **state)
{
        struct fixture f;

        open_log(&f, LOG_LOGFMT);
        check_i64_eq(chatter_much(&f, 17), LOG_BURST);
        clock_fake_advance(&f.clock, LOG_INTERVAL_USEC - 1);
        chatter(&f);
        check_view_eq(next_line(&f), STR_NULL);
        clock_fake_advance(&f.clock, 1);
        chatter(&f);
        check_true(str_ends_with(next_line(&f), STR("level=info msg=again suppressed=18")));
        chatter(&f);
        check_true(str_ends_with(next_line(&f), STR("level=info msg=again")));
        check_i64_eq(chatter_much(&f, 0), LOG_BURST - 2);
        close_log(&f);
}

static void does_not_limit_audit_lines(void **state)
{
        struct fixture f;

        open_log(&f, LOG_LOGFMT);
        for (int i = 0; i < 3 * LOG_BURST; i++) {
                log_fields(&f.ctx, LOG_INFO, "audit", LOG_F_U64("n", 1));
                check_true(next_line(&f).p != NULL);
        }
        close_log(&f);
}

static void has_names(void **state)
{
        check_i64_eq(log_level_from_string(STR("warn")), LOG_WARN);
        check_i64_eq(log_level_from_string(STR("warning")), LOG_LEVEL_INVALID);
        check_i64_eq(log_format_from_string(STR("json")), LOG_JSON);
        check_z_eq(log_format_to_string(LOG_LOGFMT), "logfmt");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(writes_logfmt),     cmocka_unit_test(writes_json),
                cmocka_unit_test(returns_the_error), cmocka_unit_test(cannot_be_forged),
                cmocka_unit_test(cuts_long_lines),   cmocka_unit_test(cuts_long_messages),
                cmocka_unit_test(limits_repetition), cmocka_unit_test(does_not_limit_audit_lines),
                cmocka_unit_test(has_names),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
