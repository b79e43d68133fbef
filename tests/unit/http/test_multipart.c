/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "http/multipart.h"
#include "tests/lib/multipart_trace.h"

#define CD   "Content-Disposition: form-data; "
#define PART "--b\r\n" CD "name=a\r\n\r\n"

static const struct {
        struct str in;
        const char *out;
} cases[] = {
        /* the shape of a body */
        { STR(PART "x\r\n--b--\r\n"), "part \"a\" null null\nx\nend\nok\n" },
        { STR(PART "x\r\n--b--"), "part \"a\" null null\nx\nend\nok\n" },
        { STR("--b--\r\n"), "ok\n" },
        { STR("\r\n--b--\r\n"), "ok\n" },
        { STR("preamble\r\n--\r\n-\r--b\r\n" PART "x\r\n--b--\r\nepilogue\r\n--b\r\n"),
          "part \"a\" null null\nx\nend\nok\n" },
        { STR("--b\r\n" PART "x\r\n--b--"), "EINVAL part 1: malformed header\n" },
        { STR("preamble\r\n--\r\n-\r\n\r\r\n" PART "x\r\n--b--\r\nepilogue\r\n--b\r\n"),
          "part \"a\" null null\nx\nend\nok\n" },
        { STR("x--b\r\n"), "EINVAL closing boundary missing\n" },
        { STR(""), "EINVAL closing boundary missing\n" },
        { STR(PART "x\r\n--b-"),
          "part \"a\" null null\nx\nend\nEINVAL part 1: closing boundary missing\n" },
        { STR(PART "x\r\n--b"),
          "part \"a\" null null\nx\nend\nEINVAL part 1: closing boundary missing\n" },
        { STR(PART "x\r\n--"), "part \"a\" null null\nxEINVAL part 1: closing boundary missing\n" },
        { STR(PART "1\r\n" PART "22\r\n" PART "\r\n--b--"),
          "part \"a\" null null\n1\nend\npart \"a\" null null\n22\nend\n"
          "part \"a\" null null\n\nend\nok\n" },
        { STR("--b \t \r\n" CD "name=a\r\n\r\nx\r\n--b\t\r\n" CD "name=b\r\n\r\ny\r\n--b-- \t\r\n"),
          "part \"a\" null null\nx\nend\npart \"b\" null null\ny\nend\nok\n" },
        /* a part without content, with and without its own line end */
        { STR(PART "\r\n--b--"), "part \"a\" null null\n\nend\nok\n" },
        { STR(PART "--b--"), "part \"a\" null null\n\nend\nok\n" },
        /* near misses of the delimiter are content */
        { STR(PART "--a\r\n--b--"), "part \"a\" null null\n--a\nend\nok\n" },
        { STR(PART "\r\r\r\n\r\n-\r\n--\r\n--c\n--b\r--b\r\r\n--b--"),
          "part \"a\" null null\n\r\r\r\n\r\n-\r\n--\r\n--c\n--b\r--b\r\nend\nok\n" },
        { STR(PART "\r\n\r\n--b--"), "part \"a\" null null\n\r\n\nend\nok\n" },
        { STR(PART "\n--b--\r\n--b--"), "part \"a\" null null\n\n--b--\nend\nok\n" },
        /* behind a delimiter */
        { STR("--bx\r\n"), "EINVAL boundary followed by other text\n" },
        { STR("--b-\r\n"), "EINVAL boundary followed by other text\n" },
        { STR("--b -\r\n"), "EINVAL boundary followed by other text\n" },
        { STR("--b\n" CD "name=a\r\n\r\n"), "EINVAL boundary followed by other text\n" },
        { STR("--b\rx"), "EINVAL carriage return without line feed\n" },
        /* header lines */
        { STR("--b\r\n" CD "name=a\n\r\nx"), "EINVAL part 1: line feed without carriage return\n" },
        { STR("--b\r\n" CD "name=a\r\n\nx"), "EINVAL part 1: line feed without carriage return\n" },
        { STR("--b\r\n" CD "name=a\r\r\n\r\n"), "EINVAL part 1: control character in a header\n" },
        { STR("--b\r\n" CD "name=\"\0\"\r\n\r\n"),
          "EINVAL part 1: control character in a header\n" },
        { STR("--b\r\n" CD "\r\n name=a\r\n\r\n"), "EINVAL part 1: folded header line\n" },
        { STR("--b\r\n: x\r\n\r\n"), "EINVAL part 1: malformed header\n" },
        { STR("--b\r\nX Y: x\r\n\r\n"), "EINVAL part 1: malformed header\n" },
        { STR("--b\r\nxy\r\n\r\n"), "EINVAL part 1: malformed header\n" },
        { STR("--b\r\n\r\nx\r\n--b--"), "EINVAL part 1: no Content-Disposition\n" },
        { STR("--b\r\nX-Y: z\r\ncontent-TYPE:text/plain; charset=utf-8 \r\n" CD
              "name=a\r\n\r\nx\r\n--b--"),
          "part \"a\" null \"text/plain; charset=utf-8\"\nx\nend\nok\n" },
        { STR("--b\r\n" CD "name=a\r\n" CD "name=b\r\n\r\n"),
          "EINVAL part 1: two Content-Disposition headers\n" },
        { STR("--b\r\n" CD "name=a\r\nContent-Type: a/b\r\nContent-Type: a/b\r\n\r\n"),
          "EINVAL part 1: two Content-Type headers\n" },
        { STR("--b\r\n" CD "name=a\r\nContent-Transfer-Encoding: base64\r\n\r\n"),
          "EINVAL part 1: transfer encoding not supported\n" },
        { STR("--b\r\n" CD "name=a\r\nContent-Transfer-Encoding: Binary\r\n\r\nx\r\n--b--"),
          "part \"a\" null null\nx\nend\nok\n" },
};

/* `Content-Disposition: ` <in> gives these names, or this reason. */
static const struct {
        struct str in;
        const char *out;
} dispositions[] = {
        { STR("form-data; name=\"a b\""), "part \"a b\" null null" },
        { STR("FORM-DATA;NAME=\"a\";FileName=\"f\""), "part \"a\" \"f\" null" },
        { STR("form-data ; ; name=a ;filename=f.txt;"), "part \"a\" \"f.txt\" null" },
        { STR("form-data; name=\"\"; filename=\"\""), "part \"\" \"\" null" },
        { STR("form-data; name=\"a\\\"b\\\\c\\d\""), "part \"a\\\"b\\\\c\\\\d\" null null" },
        { STR("form-data; name=\"%22%0D%0a%41%2\""), "part \"\\\"\\r\\n%41%2\" null null" },
        { STR("form-data; name=a; filename=\"\xc3\xa9;=.txt\""),
          "part \"a\" \"\xc3\xa9;=.txt\" null" },
        { STR("form-data; name=a; filename=\"C:\\dir\\x.txt\""),
          "part \"a\" \"C:\\\\dir\\\\x.txt\" null" },
        { STR("form-data; name=a; filename=plain; filename*=UTF-8''%e2%82%AC%20x"),
          "part \"a\" \"\xe2\x82\xac x\" null" },
        { STR("form-data; name=a; filename*=utf-8'en'%41; filename=\"plain\""),
          "part \"a\" \"A\" null" },
        { STR("form-data; name=a; filename*=iso-8859-1''%e9; filename=plain"),
          "part \"a\" \"plain\" null" },
        { STR("form-data; name*=utf-8''%41"), "part \"A\" null null" },
        { STR("form-data; name=a; filename*=UTF-8''%ff"),
          "EINVAL part 1: malformed encoded parameter" },
        { STR("form-data; name=a; filename*=UTF-8''a%00"),
          "EINVAL part 1: malformed encoded parameter" },
        { STR("form-data; name=a; filename*=UTF-8''a%4"),
          "EINVAL part 1: malformed encoded parameter" },
        { STR("form-data; name=a; filename*=UTF-8'a"),
          "EINVAL part 1: malformed encoded parameter" },
        { STR("form-data; name=a; filename*=a"), "EINVAL part 1: malformed encoded parameter" },
        { STR("form-data; name=a; name=b"), "EINVAL part 1: parameter given twice" },
        { STR("form-data; name=a; filename=x; FILENAME=y"),
          "EINVAL part 1: parameter given twice" },
        { STR("form-data; filename=x"), "EINVAL part 1: no name" },
        { STR("form-data"), "EINVAL part 1: no name" },
        { STR("attachment; name=a"), "EINVAL part 1: Content-Disposition is not form-data" },
        { STR(""), "EINVAL part 1: Content-Disposition is not form-data" },
        { STR("form-data; name=\"a"), "EINVAL part 1: malformed Content-Disposition" },
        { STR("form-data; name=\"a\\\""), "EINVAL part 1: malformed Content-Disposition" },
        { STR("form-data; name=\"a\"b"), "EINVAL part 1: malformed Content-Disposition" },
        { STR("form-data; name=a b"), "EINVAL part 1: malformed Content-Disposition" },
        { STR("form-data; name="), "EINVAL part 1: malformed Content-Disposition" },
        { STR("form-data; =a"), "EINVAL part 1: malformed Content-Disposition" },
        { STR("form-data; name"), "EINVAL part 1: malformed Content-Disposition" },
};

/* Whole, byte by byte and at every single place, always with the same result. The caller frees. */
static struct buf run_all(struct str boundary, struct str in, const struct multipart_limits *limits)
{
        struct buf complete, cut;

        multipart_trace_run(boundary, in, CUT_NONE, limits, &complete);
        for (size_t i = 0; i <= in.n; i++) {
                multipart_trace_run(boundary, in, i == 0 ? CUT_BYTES : CUT_AT(i), limits, &cut);
                if (!str_eq(buf_str(&complete), buf_str(&cut)))
                        fail_msg("cut at %zu: '%s' became '%s'", i, buf_str(&complete).p,
                                 buf_str(&cut).p);
                buf_done(&cut);
        }
        return complete;
}

static void test_bodies(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct buf log = run_all(STR("b"), cases[i].in, NULL);

                check_z_eq(buf_str(&log).p, cases[i].out);
                buf_done(&log);
        }
}

static void test_binary_content(void **state)
{
        struct buf log = run_all(STR("b"), STR(PART "\0\xff\0\r\n--b--"), NULL);

        check_true(str_eq(buf_str(&log), STR("part \"a\" null null\n\0\xff\0\nend\nok\n")));
        buf_done(&log);
}

static void test_dispositions(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(dispositions); i++) {
                struct buf in, log;

                buf_init(&in, 1 * KiB);
                buf_add_str(&in, STR("--b\r\nContent-Disposition: "));
                buf_add_str(&in, dispositions[i].in);
                buf_add_str(&in, STR("\r\n\r\n--b--"));
                log = run_all(STR("b"), buf_str(&in), NULL);
                *strchr(log.p + log.start, '\n') = '\0';
                check_z_eq(log.p + log.start, dispositions[i].out);
                buf_done(&log);
                buf_done(&in);
        }
}

static void expect_end(struct str in, const struct multipart_limits *limits, const char *end)
{
        struct buf log = run_all(STR("b"), in, limits);

        if (!str_ends_with(buf_str(&log), str_from(end)))
                fail_msg("expected '%s' at the end of '%s'", end, buf_str(&log).p);
        buf_done(&log);
}

static void test_limits(void **state)
{
        const struct multipart_limits two_parts = { .parts_max = 2 };
        const struct multipart_limits two_headers = { .headers_max = 2 };
        const struct multipart_limits small_head = { .header_bytes_max = 41 };
        const struct multipart_limits short_end = { .epilogue_max = 3 };

        expect_end(STR(PART "\r\n" PART "\r\n--b--"), &two_parts, "\nok\n");
        expect_end(STR(PART "\r\n" PART "\r\n" PART "\r\n--b--"), &two_parts,
                   "E2BIG part 2: too many parts\n");
        expect_end(STR("--b\r\n" CD "name=a\r\nA: 1\r\n\r\n--b--"), &two_headers, "\nok\n");
        expect_end(STR("--b\r\n" CD "name=a\r\nA: 1\r\nB: 2\r\n\r\n--b--"), &two_headers,
                   "E2BIG part 1: too many headers\n");
        /* 40 bytes for the line, its end and the empty line */
        expect_end(STR("--b\r\n" CD "name=a\r\n\r\n--b--"), &small_head,
                   "E2BIG part 1: header too long\n");
        expect_end(STR("--b\r\n" CD "name\r\n"), &small_head,
                   "EINVAL part 1: closing boundary missing\n");
        expect_end(STR("--b\r\n" CD "n=a\r\n\r\n--b--"), &small_head, "EINVAL part 1: no name\n");
        expect_end(STR("--b--\r\nx"), &short_end, "ok\n");
        expect_end(STR("--b--\r\nxy"), &short_end, "E2BIG too much text after the last part\n");
}

static void test_default_limits(void **state)
{
        struct buf in, log;

        buf_init(&in, 1 * MiB);
        for (size_t i = 0; i < 10001; i++)
                buf_add_str(&in, STR(PART "\r\n"));
        multipart_trace_run(STR("b"), buf_str(&in), CUT_NONE, NULL, &log);
        check_true(str_ends_with(buf_str(&log), STR("E2BIG part 10000: too many parts\n")));
        buf_done(&log);

        buf_reset(&in);
        buf_add_str(&in, STR("--b\r\nX: "));
        for (size_t i = 0; i < 8 * KiB; i++)
                buf_add_char(&in, 'x');
        multipart_trace_run(STR("b"), buf_str(&in), CUT_EVERY(100), NULL, &log);
        check_z_eq(buf_str(&log).p, "E2BIG part 1: header too long\n");
        buf_done(&log);
        buf_done(&in);
}

/* A boundary with characters that are also in the delimiter's frame, and the longest. */
static void test_boundaries_in_use(void **state)
{
        static const char seventy[] =
                "0123456789012345678901234567890123456789012345678901234567890123456789";
        struct buf log;

        log = run_all(STR("--b"),
                      STR("----b\r\n" CD "name=a\r\n\r\n\r\n--\r\n--b\r\n---b\r\n----b--"), NULL);
        check_z_eq(buf_str(&log).p, "part \"a\" null null\n\r\n--\r\n--b\r\n---b\nend\nok\n");
        buf_done(&log);

        log = run_all(
                str_from(seventy),
                STR("--0123456789012345678901234567890123456789012345678901234567890123456789"
                    "\r\n" CD "name=a\r\n\r\n"
                    "\r\n--012345678901234567890123456789012345678901234567890123456789012345678x"
                    "\r\n--"
                    "0123456789012345678901234567890123456789012345678901234567890123456789"
                    "--"),
                NULL);
        check_true(str_ends_with(buf_str(&log), STR("8x\nend\nok\n")));
        buf_done(&log);
}

/* At every distance from the start of the content, behind text that is nearly one. */
static void test_delimiter_everywhere(void **state)
{
        for (size_t n = 0; n < 70; n++) {
                struct buf in, log;

                buf_init(&in, 1 * KiB);
                buf_add_str(&in, STR(PART));
                for (size_t i = 0; i < n; i++)
                        buf_add_char(&in, "\r\n-\r\n--x"[i % 8]);
                buf_add_str(&in, STR("\r\n--b--"));
                log = run_all(STR("b"), buf_str(&in), NULL);
                check_u64_eq(log.n, strlen("part \"a\" null null\n") + n + strlen("\nend\nok\n"));
                buf_done(&log);
                buf_done(&in);
        }
}

/* --- callbacks that refuse --- */

struct refusing {
        struct multipart mp;
        int part, data, part_end;
        int calls;
};

static int refuse_part(struct multipart *mp, const struct multipart_part *part)
{
        container_of(mp, struct refusing, mp)->calls++;
        return container_of(mp, struct refusing, mp)->part;
}

static int refuse_data(struct multipart *mp, const char *p, size_t n)
{
        container_of(mp, struct refusing, mp)->calls++;
        return container_of(mp, struct refusing, mp)->data;
}

static int refuse_part_end(struct multipart *mp)
{
        container_of(mp, struct refusing, mp)->calls++;
        return container_of(mp, struct refusing, mp)->part_end;
}

static const struct multipart_ops refusing_ops = {
        .part = refuse_part,
        .data = refuse_data,
        .part_end = refuse_part_end,
};

static void test_callback_stops(void **state)
{
        struct str in = STR(PART "x\r\n--b--");

        for (int i = 0; i < 3; i++) {
                struct refusing t = {
                        .part = i == 0 ? -EXDEV : 0,
                        .data = i == 1 ? -EXDEV : 0,
                        .part_end = i == 2 ? -EXDEV : 0,
                };

                multipart_init(&t.mp, STR("b"), &refusing_ops, NULL);
                check_i64_eq(multipart_feed(&t.mp, in.p, in.n), -EXDEV);
                check_i64_eq(t.calls, i + 1);
                check_i64_eq(multipart_feed(&t.mp, in.p, in.n), -EXDEV);
                check_i64_eq(multipart_finish(&t.mp), -EXDEV);
                check_i64_eq(t.calls, i + 1);
                assert_null(t.mp.reason);
                multipart_done(&t.mp);
        }
}

/* Data is given from the fed memory, in one piece if there is no delimiter in it. */
static const char *seen_p;
static size_t seen_n;

static int note_data(struct multipart *mp, const char *p, size_t n)
{
        seen_p = p;
        seen_n = n;
        return 0;
}

static void test_zero_copy(void **state)
{
        static const struct multipart_ops ops = { refuse_part, note_data, refuse_part_end };
        static const char text[] = "line\r\nline\r\n--\r\nline";
        struct refusing t = { 0 };

        multipart_init(&t.mp, STR("b"), &ops, NULL);
        check_i64_eq(multipart_feed(&t.mp, PART, strlen(PART)), 0);
        check_i64_eq(multipart_feed(&t.mp, text, strlen(text)), 0);
        assert_ptr_equal(seen_p, text);
        check_i64_eq(seen_n, strlen(text));
        multipart_done(&t.mp);
}

/* --- Content-Type --- */

static void test_boundary_parameter(void **state)
{
        static const struct {
                struct str in;
                int r;
                const char *out;
        } types[] = {
                { STR("multipart/form-data; boundary=abc"), 0, "abc" },
                { STR("Multipart/Form-Data;BOUNDARY=abc"), 0, "abc" },
                { STR("multipart/form-data; charset=\"a;boundary=x\"; boundary=\"a b:c\""), 0,
                  "a b:c" },
                { STR("multipart/form-data; boundary=abc; charset=utf-8"), 0, "abc" },
                { STR("multipart/form-data; boundary=----WebKitFormBoundaryABC"), 0,
                  "----WebKitFormBoundaryABC" },
                { STR("multipart/form-data; boundary="
                      "0123456789012345678901234567890123456789012345678901234567890123456789"),
                  0, "0123456789012345678901234567890123456789012345678901234567890123456789" },
                { STR("multipart/form-data; boundary="
                      "01234567890123456789012345678901234567890123456789012345678901234567890"),
                  -EINVAL, NULL },
                { STR("multipart/form-data"), -EINVAL, NULL },
                { STR("multipart/form-data; boundary="), -EINVAL, NULL },
                { STR("multipart/form-data; boundary=\"\""), -EINVAL, NULL },
                { STR("multipart/form-data; boundary=\"a \""), -EINVAL, NULL },
                { STR("multipart/form-data; boundary=\"a"), -EINVAL, NULL },
                { STR("multipart/form-data; boundary=\"a\\\"b\""), -EINVAL, NULL },
                { STR("multipart/form-data; boundary=a^b"), -EINVAL, NULL },
                { STR("multipart/form-data; boundary=a\rb"), -EINVAL, NULL },
                { STR("multipart/form-data; boundary=a; boundary=b"), -EINVAL, NULL },
                { STR("multipart/form-data, boundary=a"), -ENOMSG, NULL },
                { STR("multipart/mixed; boundary=a"), -ENOMSG, NULL },
                { STR("text/plain"), -ENOMSG, NULL },
                { STR(""), -ENOMSG, NULL },
                { STR_NULL, -ENOMSG, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
                struct str b = STR_NULL;

                check_i64_eq(multipart_boundary(types[i].in, &b), types[i].r);
                if (types[i].out)
                        check_true(str_eq(b, str_from(types[i].out)));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bodies),
                cmocka_unit_test(test_binary_content),
                cmocka_unit_test(test_dispositions),
                cmocka_unit_test(test_limits),
                cmocka_unit_test(test_default_limits),
                cmocka_unit_test(test_boundaries_in_use),
                cmocka_unit_test(test_delimiter_everywhere),
                cmocka_unit_test(test_callback_stops),
                cmocka_unit_test(test_zero_copy),
                cmocka_unit_test(test_boundary_parameter),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
