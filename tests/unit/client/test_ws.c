/* SPDX-License-Identifier: Apache-2.0 */
#include "client/ws.h"

#include "tests/lib/check.h"

/* The example of RFC 6455. */
static void accepts_the_key(void **state)
{
        char text[WS_ACCEPT_TEXT];

        ws_accept_text(STR("dGhlIHNhbXBsZSBub25jZQ=="), text);
        check_view_eq(str_of(text, sizeof(text)), STR("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
}

static void frames_of_every_length(void **state)
{
        static const size_t sizes[] = { 0, 1, 125, 126, 127, 65535, 65536, 70000 };
        static const uint8_t mask[4] = { 1, 2, 3, 4 };

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                size_t n = sizes[i], head = n < 126 ? 2 : n < 65536 ? 4 : 10;
                char *bytes = calloc(1, n + 1);
                scoped(buf_done) struct buf b;
                struct str s;

                buf_init(&b, 128 * KiB);
                memset(bytes, 'x', n);
                ws_add_frame(&b, WS_BYTES, str_of(bytes, n), mask);
                s = buf_str(&b);
                check_u64_eq(s.n, head + 4 + n);
                check_i64_eq((uint8_t) s.p[0], 0x82);
                check_i64_eq((uint8_t) s.p[1] & 0x80, 0x80);
                for (size_t k = 0; k < n; k++)
                        if ((s.p[head + 4 + k] ^ mask[k & 3]) != 'x')
                                fail();
                free(bytes);
        }
}

#define FRAMES     \
        "\x82\x03" \
        "abc"      \
        "\x89\x01" \
        "p"        \
        "\x02\x01" \
        "d"        \
        "\x80\x02" \
        "ef"       \
        "\x88\x02\x03\xe8"

/* Pieces as they are, "[9:p]" for a control frame. */
static void read_all(struct str input, size_t piece, size_t max, struct buf *out)
{
        struct ws_reader r = { 0 };

        while (input.n > 0) {
                struct str now = str_of(input.p, MIN_OF(piece, input.n)), got;
                size_t given = now.n;
                int event;

                while ((event = ws_read(&r, &now, max, &got)) != WS_NEED_MORE) {
                        check_true(event > 0);
                        if (event == WS_FRAME)
                                buf_addf(out, "[%d:%zu]", (int) r.op, got.n);
                        else
                                buf_add_str(out, got);
                }
                check_u64_eq(now.n, 0);
                input = str_skip(input, given);
        }
}

static void reads_whatever_the_pieces(void **state)
{
        for (size_t piece = 1; piece <= sizeof(FRAMES); piece++)
                for (size_t max = 1; max < 4; max++) {
                        scoped(buf_done) struct buf b;

                        buf_init(&b, 4 * KiB);
                        read_all(STR(FRAMES), piece, max, &b);
                        check_str_eq(buf_str(&b), "abc[9:1]def[8:2]");
                }
}

static void refuses_what_a_server_does_not_send(void **state)
{
        static const struct {
                const char *name;
                struct str frame;
        } cases[] = {
                { "masked", STR("\x82\x81\0\0\0\0x") },
                { "reserved bits", STR("\xc2\x01x") },
                { "an unknown kind", STR("\x83\x01x") },
                { "an unknown control", STR("\x8b\x01x") },
                { "a long control", STR("\x89\x7e\0\x7e") },
                { "a control in parts", STR("\x09\x01x") },
                { "a negative length", STR("\x82\x7f\x80\0\0\0\0\0\0\0") },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct ws_reader r = { 0 };
                struct str input = cases[i].frame, got;

                check_case(cases[i].name);
                check_i64_eq(ws_read(&r, &input, 100, &got), -EPROTO);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(accepts_the_key),
                cmocka_unit_test(frames_of_every_length),
                cmocka_unit_test(reads_whatever_the_pieces),
                cmocka_unit_test(refuses_what_a_server_does_not_send),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
