/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "http/ws_frame.h"

/* --- heads --- */

/* Feeds in pieces of this size; the result of the last call, and how many bytes were used. */
static int decode(enum ws_role role, struct str in, size_t piece, struct ws_head *ret,
                  size_t *ret_used)
{
        struct ws_head_decoder d;
        int r = 0;

        ws_head_decoder_init(&d, role, 0);
        *ret_used = 0;
        for (size_t at = 0; at < in.n && r == 0; at += piece) {
                size_t used = 0;

                r = ws_head_feed(&d, in.p + at, MIN_OF(piece, in.n - at), &used, ret);
                *ret_used += used;
        }
        if (r < 0)
                assert_non_null(d.reason);
        return r;
}

static void test_decode(void **state)
{
        static const struct {
                struct str in;
                int r;
                enum ws_role role;
                enum ws_opcode opcode;
                bool fin;
                uint64_t length;
        } cases[] = {
                { STR("\x81\x85"
                      "abcd"),
                  1, WS_SERVER, WS_TEXT, true, 5 },
                { STR("\x02\x80"
                      "abcd"),
                  1, WS_SERVER, WS_BINARY, false, 0 },
                { STR("\x80\xfd"
                      "abcd"),
                  1, WS_SERVER, WS_CONTINUATION, true, 125 },
                { STR("\x81\xfe\x00\x7e"
                      "abcd"),
                  1, WS_SERVER, WS_TEXT, true, 126 },
                { STR("\x81\xfe\xff\xff"
                      "abcd"),
                  1, WS_SERVER, WS_TEXT, true, 65535 },
                { STR("\x81\xff\0\0\0\0\0\1\0\0"
                      "abcd"),
                  1, WS_SERVER, WS_TEXT, true, 65536 },
                { STR("\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff"
                      "abcd"),
                  1, WS_SERVER, WS_TEXT, true, INT64_MAX },
                { STR("\x81\x05"), 1, WS_CLIENT, WS_TEXT, true, 5 },
                { STR("\x88\x7d"), 1, WS_CLIENT, WS_CLOSE, true, 125 },
                { STR("\x89\x00"), 1, WS_CLIENT, WS_PING, true, 0 },
                { STR("\x8a\x00"), 1, WS_CLIENT, WS_PONG, true, 0 },
                { STR("\x82\x7e\x01\x00"), 1, WS_CLIENT, WS_BINARY, true, 256 },
                /* not yet complete */
                { STR("\x81"), 0, WS_SERVER, 0, false, 0 },
                { STR("\x81\x85"
                      "abc"),
                  0, WS_SERVER, 0, false, 0 },
                { STR("\x81\x7e\x01"), 0, WS_CLIENT, 0, false, 0 },
                /* refused */
                { STR("\x81\x05"), -EPROTO, WS_SERVER, 0, false, 0 },
                { STR("\x81\x85"), -EPROTO, WS_CLIENT, 0, false, 0 },
                { STR("\xc1\x85"), -EPROTO, WS_SERVER, 0, false, 0 },
                { STR("\xa1\x85"), -EPROTO, WS_SERVER, 0, false, 0 },
                { STR("\x91\x85"), -EPROTO, WS_SERVER, 0, false, 0 },
                { STR("\x83\x80"), -EPROTO, WS_SERVER, 0, false, 0 },
                { STR("\x87\x80"), -EPROTO, WS_SERVER, 0, false, 0 },
                { STR("\x8b\x80"), -EPROTO, WS_SERVER, 0, false, 0 },
                { STR("\x8f\x80"), -EPROTO, WS_SERVER, 0, false, 0 },
                { STR("\x08\x80"), -EPROTO, WS_SERVER, 0, false, 0 },
                { STR("\x09\x80"), -EPROTO, WS_SERVER, 0, false, 0 },
                { STR("\x89\xfe"), -EPROTO, WS_SERVER, 0, false, 0 },
                { STR("\x8a\xff"), -EPROTO, WS_SERVER, 0, false, 0 },
                { STR("\x81\xfe\x00\x7d"
                      "abcd"),
                  -EPROTO, WS_SERVER, 0, false, 0 },
                { STR("\x81\xff\0\0\0\0\0\0\xff\xff"
                      "abcd"),
                  -EPROTO, WS_SERVER, 0, false, 0 },
                { STR("\x81\xff\x80\0\0\0\0\0\0\0"
                      "abcd"),
                  -EPROTO, WS_SERVER, 0, false, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                for (size_t piece = 1; piece <= cases[i].in.n; piece++) {
                        struct ws_head h = { 0 };
                        size_t used;

                        check_i64_eq(decode(cases[i].role, cases[i].in, piece, &h, &used),
                                     cases[i].r);
                        if (cases[i].r != 1)
                                continue;
                        check_i64_eq(used, cases[i].in.n);
                        check_i64_eq(h.opcode, cases[i].opcode);
                        check_i64_eq(h.fin, cases[i].fin);
                        check_i64_eq(h.length, cases[i].length);
                        check_i64_eq(h.masked, cases[i].role == WS_SERVER);
                        if (h.masked)
                                assert_memory_equal(h.mask, "abcd", 4);
                }
        }
}

static void test_negotiated_bits(void **state)
{
        struct ws_head_decoder d;
        struct ws_head h;
        size_t used;

        ws_head_decoder_init(&d, WS_CLIENT, /* rsv_allowed= */ 4);
        check_i64_eq(ws_head_feed(&d, "\xc1\x01x", 3, &used, &h), 1);
        check_i64_eq(used, 2);
        check_i64_eq(h.rsv, 4);
        check_i64_eq(ws_head_feed(&d, "\xa1\x01", 2, &used, &h), -EPROTO);
}

static void test_encode_decodes_back(void **state)
{
        static const uint64_t lengths[] = { 0, 1, 125, 126, 65535, 65536, INT64_MAX };

        for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
                for (int masked = 0; masked < 2; masked++) {
                        struct ws_head in = { .opcode = WS_BINARY,
                                              .fin = i & 1,
                                              .masked = masked,
                                              .mask = { 1, 2, 3, 4 },
                                              .length = lengths[i] };
                        struct ws_head out = { 0 };
                        uint8_t bytes[WS_HEAD_MAX];
                        size_t n = ws_head_encode(&in, bytes), used;

                        check_i64_eq(decode(masked ? WS_SERVER : WS_CLIENT,
                                            str_of((char *) bytes, n), n, &out, &used),
                                     1);
                        check_i64_eq(used, n);
                        check_i64_eq(out.length, in.length);
                        check_i64_eq(out.fin, in.fin);
                        check_i64_eq(out.opcode, in.opcode);
                        if (masked)
                                assert_memory_equal(out.mask, in.mask, 4);
                }
        }
}

/* --- masks --- */

static void test_mask(void **state)
{
        static const uint8_t mask[4] = { 0x37, 0xfa, 0x21, 0x3d };
        uint8_t want[100] = { 0 }, got[100] = { 0 };

        for (size_t n = 0; n <= sizeof(want); n++) {
                for (size_t offset = 0; offset < 9; offset++) {
                        for (size_t i = 0; i < n; i++) {
                                got[i] = (uint8_t) (i * 7);
                                want[i] = (uint8_t) (got[i] ^ mask[(offset + i) % 4]);
                        }
                        ws_mask(got, n, mask, offset);
                        assert_memory_equal(got, want, n);
                }
        }
}

static void test_mask_in_pieces(void **state)
{
        static const uint8_t mask[4] = { 1, 2, 4, 8 };
        uint8_t complete[67] = { 0 }, cut[67];

        ws_mask(complete, sizeof(complete), mask, 0);
        for (size_t at = 0; at <= sizeof(cut); at++) {
                memset(cut, 0, sizeof(cut));
                ws_mask(cut, at, mask, 0);
                ws_mask(cut + at, sizeof(cut) - at, mask, at);
                assert_memory_equal(cut, complete, sizeof(cut));
        }
}

/* --- close --- */

static void test_close_codes(void **state)
{
        for (unsigned code = 0; code <= 65535; code++) {
                bool want = (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014)
                            || (code >= 3000 && code <= 4999);

                check_i64_eq(ws_close_code_is_valid((uint16_t) code), want);
        }
}

static void test_close_parse(void **state)
{
        static const struct {
                struct str in;
                int r;
                uint16_t code;
                const char *reason;
        } cases[] = {
                { STR(""), 0, WS_CLOSE_NO_CODE, "" },
                { STR("\x03\xe8"), 0, 1000, "" },
                { STR("\x03\xe9"
                      "away"),
                  0, 1001, "away" },
                { STR("\x0f\xa0\xc3\xa9"), 0, 4000, "\xc3\xa9" },
                { STR("\x03"), -EPROTO, 0, NULL },
                { STR("\x03\xed"), -EPROTO, 0, NULL }, /* 1005 */
                { STR("\x03\xee"), -EPROTO, 0, NULL }, /* 1006 */
                { STR("\x03\xf7"), -EPROTO, 0, NULL }, /* 1015 */
                { STR("\x00\x00"), -EPROTO, 0, NULL },
                { STR("\xff\xff"), -EPROTO, 0, NULL },
                { STR("\x03\xe8\xff"), -EILSEQ, 0, NULL },
                { STR("\x03\xe8\xe2\x82"), -EILSEQ, 0, NULL },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct str reason;
                uint16_t code;

                check_i64_eq(ws_close_parse(cases[i].in, &code, &reason), cases[i].r);
                if (cases[i].r < 0)
                        continue;
                check_i64_eq(code, cases[i].code);
                check_true(str_eq(reason, str_from(cases[i].reason)));
        }
}

static void test_close_encode(void **state)
{
        uint8_t out[WS_CONTROL_MAX];
        char text[200];

        check_i64_eq(ws_close_encode(WS_CLOSE_NO_CODE, STR("x"), out), 0);
        check_i64_eq(ws_close_encode(1000, STR_NULL, out), 2);
        assert_memory_equal(out, "\x03\xe8", 2);
        check_i64_eq(ws_close_encode(1009, STR("big"), out), 5);
        assert_memory_equal(out,
                            "\x03\xf1"
                            "big",
                            5);

        memset(text, 'a', sizeof(text));
        check_i64_eq(ws_close_encode(1000, str_of(text, 200), out), 125);
        memcpy(text + 122, "\xe2\x82\xac", 3); /* would end beyond the last byte */
        check_i64_eq(ws_close_encode(1000, str_of(text, 200), out), 124);
}

/* --- handshake --- */

static void test_accept_key(void **state)
{
        char out[WS_ACCEPT_SIZE];

        /* the example of RFC 6455, 1.3 */
        check_i64_eq(ws_accept_key(STR("dGhlIHNhbXBsZSBub25jZQ=="), out), 0);
        assert_memory_equal(out, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", WS_ACCEPT_SIZE);

        check_i64_eq(ws_accept_key(STR_NULL, out), -EINVAL);
        check_i64_eq(ws_accept_key(STR("dGhlIHNhbXBsZSBub25jZQ="), out), -EINVAL);
        check_i64_eq(ws_accept_key(STR("dGhlIHNhbXBsZSBub25jZQ=!"), out), -EINVAL);
        check_i64_eq(ws_accept_key(STR("dGhlIHNhbXBsZSBub25jZSE="), out), -EINVAL);
        check_i64_eq(ws_accept_key(STR("dGhlIHNhbXBsZSBub25jZSEh"), out), -EINVAL);
        check_i64_eq(ws_accept_key(STR("dGhlIHNhbXBsZSBub25jZR=="), out), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_decode),
                cmocka_unit_test(test_negotiated_bits),
                cmocka_unit_test(test_encode_decodes_back),
                cmocka_unit_test(test_mask),
                cmocka_unit_test(test_mask_in_pieces),
                cmocka_unit_test(test_close_codes),
                cmocka_unit_test(test_close_parse),
                cmocka_unit_test(test_close_encode),
                cmocka_unit_test(test_accept_key),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
