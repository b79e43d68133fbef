/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The WebSocket parser, in both roles, tells the same story however its input is cut; the UTF-8
 * check agrees with the one for complete texts; what is encoded decodes. The first byte chooses role
 * and maximum, the second the size of the pieces.
 */

#include "tests/fuzz/fuzz.h"

#include "tests/lib/ws_trace.h"

static void check_parser(enum ws_role role, struct str in, uint64_t max, size_t piece)
{
        const struct cut cuts[] = { CUT_BYTES, CUT_EVERY(piece), CUT_AT(piece) };
        struct buf complete, log;

        ws_trace_run(role, in, CUT_NONE, max, &complete);
        for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
                ws_trace_run(role, in, cuts[i], max, &log);
                ASSERT(str_eq(buf_str(&complete), buf_str(&log)));
                buf_done(&log);
        }
        buf_done(&complete);
}

static int feed_utf8(void *arg, char *p, size_t n)
{
        size_t bad = SIZE_MAX;
        int r = utf8_check_feed(arg, p, n, &bad);

        ASSERT(r == 0 || bad < n);
        return r;
}

static void check_utf8(struct str in, size_t piece)
{
        struct utf8_check c;
        int r;

        utf8_check_init(&c);
        r = pieces_feed(in, CUT_EVERY(piece), feed_utf8, &c);
        if (r == 0)
                r = utf8_check_finish(&c);
        ASSERT((r == 0) == str_is_utf8(in));
}

static void check_close(struct str in)
{
        uint8_t out[WS_CONTROL_MAX];
        struct str reason;
        uint16_t code;
        size_t n;

        if (in.n > WS_CONTROL_MAX || ws_close_parse(in, &code, &reason) < 0)
                return;
        n = ws_close_encode(code, reason, out);
        ASSERT(str_eq(str_of((char *) out, n), in));
}

static void check_head(enum ws_role role, struct str in)
{
        struct ws_head_decoder d;
        uint8_t out[WS_HEAD_MAX];
        struct ws_head h;
        size_t used, n;

        ws_head_decoder_init(&d, role, 7);
        if (ws_head_feed(&d, in.p, in.n, &used, &h) != 1)
                return;
        n = ws_head_encode(&h, out);
        ASSERT(str_eq(str_of((char *) out, n), str_of(in.p, used)));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        char answer[WS_ACCEPT_SIZE];
        enum ws_role role;
        struct str in;
        size_t piece;

        if (n < 2)
                return 0;
        role = p[0] & 1 ? WS_SERVER : WS_CLIENT;
        piece = (size_t) p[1] + 1;
        in = str_of((const char *) p + 2, n - 2);

        check_parser(role, in, p[0] & 2 ? 20 : UINT64_MAX, piece);
        check_utf8(in, piece);
        check_close(in);
        check_head(role, in);
        (void) !ws_accept_key(in, answer);
        return 0;
}
