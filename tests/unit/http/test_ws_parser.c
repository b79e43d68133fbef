/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "http/ws_parser.h"
#include "tests/lib/ws_trace.h"

#define MESSAGE_MAX 16

/* Written as a server sends them; test_as_server masks them first. */
static const struct {
        struct str in;
        const char *out;
} cases[] = {
        { STR("\x81\x05Hello"), "text(Hello)\n" },
        { STR("\x82\x03\x01\x02\xff"), "binary(\x01\x02\xff)\n" },
        { STR("\x81\x00"), "text()\n" },
        { STR("\x81\x01"
              "a\x82\x01"
              "b"),
          "text(a)\nbinary(b)\n" },
        /* fragments */
        { STR("\x01\x03Hel\x80\x02lo"), "text(Hello)\n" },
        { STR("\x01\x00\x00\x00\x80\x00"), "text()\n" },
        { STR("\x01\x03Hel\x80\x00"), "text(Hel)\n" },
        { STR("\x01\x00\x80\x03Hel"), "text(Hel)\n" },
        { STR("\x02\x01"
              "a\x00\x01"
              "b\x00\x01"
              "c\x80\x01"
              "d\x81\x01"
              "e"),
          "binary(abcd)\ntext(e)\n" },
        { STR("\x01\x03Hel"), "text(Hel" },
        /* control frames, between and inside of messages */
        { STR("\x89\x00"), "ping()\n" },
        { STR("\x89\x02hi\x8a\x02ho"), "ping(hi)\npong(ho)\n" },
        { STR("\x01\x03Hel\x89\x01x\x80\x02lo"), "text(Hel<ping(x)>lo)\n" },
        { STR("\x01\x03Hel\x88\x02\x03\xe8"), "text(Helclose(1000,)\n" },
        /* nothing counts behind a close */
        { STR("\x88\x00\x81\x01x"), "close(1005,)\n" },
        { STR("\x88\x05\x03\xe8"
              "bye\xff\xff"),
          "close(1000,bye)\n" },
        { STR("\x88\x01\x03"), "EPROTO 1002 malformed close frame\n" },
        { STR("\x88\x02\x03\xed"), "EPROTO 1002 malformed close frame\n" },
        { STR("\x88\x03\x03\xe8\xff"), "EILSEQ 1007 reason of a close is not UTF-8\n" },
        /* order of frames */
        { STR("\x80\x01"
              "a"),
          "EPROTO 1002 continuation of nothing\n" },
        { STR("\x81\x01"
              "a\x80\x01"
              "b"),
          "text(a)\nEPROTO 1002 continuation of nothing\n" },
        { STR("\x01\x01"
              "a\x81\x01"
              "b"),
          "text(aEPROTO 1002 message inside a message\n" },
        { STR("\x02\x01"
              "a\x02\x01"
              "b"),
          "binary(aEPROTO 1002 message inside a message\n" },
        { STR("\x81\x01"
              "a\x83\x00"),
          "text(a)\nEPROTO 1002 unknown opcode\n" },
        { STR("\x09\x00"), "EPROTO 1002 fragmented control frame\n" },
        /* UTF-8 over pieces and frames */
        { STR("\x81\x04\xe2\x82\xac!"), "text(\xe2\x82\xac!)\n" },
        { STR("\x01\x01\xe2\x00\x01\x82\x80\x02\xac!"), "text(\xe2\x82\xac!)\n" },
        { STR("\x01\x01\xe2\x89\x01\xff\x80\x02\x82\xac"), "text(\xe2<ping(\xff)>\x82\xac)\n" },
        { STR("\x81\x03"
              "ab\xff"),
          "text(abEILSEQ 1007 text is not UTF-8\n" },
        { STR("\x81\x02\xff"
              "a"),
          "EILSEQ 1007 text is not UTF-8\n" },
        { STR("\x81\x03"
              "a\xe2\x82"),
          "text(a\xe2\x82"
          "EILSEQ 1007 text is not UTF-8\n" },
        { STR("\x01\x01\xe2\x80\x00"), "text(\xe2"
                                       "EILSEQ 1007 text is not UTF-8\n" },
        { STR("\x01\x01\xe2\x80\x01"
              "a"),
          "text(\xe2"
          "EILSEQ 1007 text is not UTF-8\n" },
        { STR("\x81\x02\xc3\xa9\x81\x01\xa9"), "text(\xc3\xa9)\nEILSEQ 1007 text is not UTF-8\n" },
        { STR("\x82\x02\xff\xfe"), "binary(\xff\xfe)\n" },
        /* size: 16 bytes are the most */
        { STR("\x81\x10"
              "0123456789abcdef"),
          "text(0123456789abcdef)\n" },
        { STR("\x81\x11"
              "0123456789abcdefg"),
          "EMSGSIZE 1009 message too big\n" },
        { STR("\x01\x08"
              "01234567\x80\x08"
              "89abcdef\x81\x01x"),
          "text(0123456789abcdef)\ntext(x)\n" },
        { STR("\x01\x08"
              "01234567\x80\x09"
              "89abcdefg"),
          "text(01234567EMSGSIZE 1009 message too big\n" },
        { STR("\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"), "EMSGSIZE 1009 message too big\n" },
        { STR("\x01\x01"
              "a\x00\x7f\x7f\xff\xff\xff\xff\xff\xff\xff"),
          "text(aEMSGSIZE 1009 message too big\n" },
        /* a ping does not count */
        { STR("\x01\x0f"
              "0123456789abcde\x89\x02xx\x80\x01"
              "f"),
          "text(0123456789abcde<ping(xx)>f)\n" },
};

static void expect_all(enum ws_role role, struct str in, const char *out)
{
        for (size_t i = 0; i <= in.n; i++) {
                struct buf log;

                ws_trace_run(role, in, i == 0 ? CUT_BYTES : CUT_AT(i), MESSAGE_MAX, &log);
                if (!str_eq(buf_str(&log), str_from(out)))
                        fail_msg("cut at %zu: '%s' instead of '%s'", i, buf_str(&log).p, out);
                buf_done(&log);
        }
}

static void test_as_client(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                expect_all(WS_CLIENT, cases[i].in, cases[i].out);
}

/* The same frames with a mask, each with another. What is no frame is taken over as it is. */
static void mask_frames(struct str in, struct buf *out)
{
        uint8_t mask[4] = { 0x12, 0x34, 0x56, 0x78 };

        while (in.n >= 2) {
                size_t len = (uint8_t) in.p[1];
                size_t head = len == 127 ? 10 : 2;
                size_t n = MIN_OF(len == 127 ? 0 : len, in.n - head);
                char *p;

                buf_add_char(out, in.p[0]);
                buf_add_char(out, (char) (in.p[1] | 0x80));
                buf_add(out, in.p + 2, head - 2);
                buf_add(out, mask, 4);
                p = buf_reserve(out, n);
                assert_non_null(p);
                if (n > 0)
                        memcpy(p, in.p + head, n);
                ws_mask(p, n, mask, 0);
                buf_advance(out, n);
                mask[0]++;
                in = str_skip(in, head + n);
        }
        buf_add_str(out, in);
}

static void test_as_server(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct buf in;

                buf_init(&in, 1 * KiB);
                mask_frames(cases[i].in, &in);
                expect_all(WS_SERVER, buf_str(&in), cases[i].out);
                buf_done(&in);
        }
}

static void test_masks_by_role(void **state)
{
        expect_all(WS_SERVER,
                   STR("\x81\x01"
                       "a"),
                   "EPROTO 1002 frame of a client is not masked\n");
        expect_all(WS_CLIENT,
                   STR("\x81\x81"
                       "abcde"),
                   "EPROTO 1002 frame of a server is masked\n");
}

/* Long control payloads are collected whole; long data is not, and is given from the fed memory. */
static void test_longest_control(void **state)
{
        char in[127] = "\x89\x7d";
        char out[140];

        memset(in + 2, 'p', 125);
        (void) snprintf(out, sizeof(out), "ping(%.125s)\n", in + 2);
        expect_all(WS_CLIENT, str_of(in, sizeof(in)), out);
}

/* --- callbacks that refuse --- */

static int calls;

static int refuse_data(struct ws_parser *w, enum ws_opcode opcode, unsigned flags, char *p,
                       size_t n)
{
        calls++;
        return -EXDEV;
}

static int refuse_control(struct ws_parser *w, struct str payload)
{
        calls++;
        return -EXDEV;
}

static int refuse_close(struct ws_parser *w, uint16_t code, struct str reason)
{
        calls++;
        return -EXDEV;
}

static void test_callback_stops(void **state)
{
        static const struct ws_parser_ops ops = {
                .data = refuse_data,
                .ping = refuse_control,
                .pong = refuse_control,
                .close = refuse_close,
        };
        static const char firsts[] = { '\x81', '\x82', '\x88', '\x89', '\x8a' };

        for (size_t i = 0; i < sizeof(firsts); i++) {
                char in[4] = { firsts[i], 0, firsts[i], 0 };
                struct ws_parser w;

                calls = 0;
                ws_parser_init(&w, WS_CLIENT, UINT64_MAX, &ops);
                check_i64_eq(ws_parser_feed(&w, in, sizeof(in)), -EXDEV);
                check_i64_eq(ws_parser_feed(&w, in, sizeof(in)), -EXDEV);
                check_i64_eq(calls, 1);
                check_i64_eq(w.close_code, 0);
                assert_null(w.reason);
        }
}

static void test_closed(void **state)
{
        char in[] = "\x81\x00\x88\x00";
        struct ws_trace t = { 0 };

        buf_init(&t.log, 1 * KiB);
        ws_parser_init(&t.parser, WS_CLIENT, UINT64_MAX, &ws_trace_ops);
        check_i64_eq(ws_parser_feed(&t.parser, in, 2), 0);
        check_false(ws_parser_closed(&t.parser));
        check_i64_eq(ws_parser_feed(&t.parser, in + 2, 2), 0);
        check_true(ws_parser_closed(&t.parser));
        buf_done(&t.log);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_as_client),      cmocka_unit_test(test_as_server),
                cmocka_unit_test(test_masks_by_role),  cmocka_unit_test(test_longest_control),
                cmocka_unit_test(test_callback_stops), cmocka_unit_test(test_closed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
