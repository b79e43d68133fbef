/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include <stdlib.h>

#include "base/base.h"
#include "base/secret.h"

/* What holds for every buffer at any time. */
static void check_sane(const struct buf *b)
{
        check_true(b->n <= b->max);
        check_true(b->size <= b->max + 1);
        check_true(!b->p || b->start + b->n < b->size);
        check_true(b->n > 0 || b->start == 0);
        check_true(!b->p || b->p[b->start + b->n] == '\0');
}

static void adds_everything(void **state)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, 1000);
        check_view_eq(buf_str(&b), STR(""));
        check_u64_eq(b.size, 0);
        buf_add(&b, NULL, 0);
        buf_add_str(&b, STR_NULL);
        check_u64_eq(b.size, 0);
        buf_add_str(&b, STR("id="));
        buf_add_hex(&b, "\x01\xef", 2);
        buf_add_char(&b, '\0');
        buf_addf(&b, "%d-%s", 42, "x");
        buf_add_u64(&b, 0);
        buf_add_char(&b, ' ');
        buf_add_u64(&b, UINT64_MAX);
        check_view_eq(buf_str(&b), STR("id=01ef\00042-x0 18446744073709551615"));
        check_false(buf_failed(&b));
        check_sane(&b);
}

static void stops_at_its_maximum(void **state)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, 5);
        buf_add_str(&b, STR("abcde"));
        check_false(buf_failed(&b));
        check_u64_eq(buf_room(&b), 0);
        buf_add_char(&b, 'f');
        check_true(buf_failed(&b));
        check_str_eq(buf_str(&b), "abcde");
        check_sane(&b);
        buf_truncate(&b, 2);
        buf_add_char(&b, 'x'); /* failed stays failed */
        check_str_eq(buf_str(&b), "ab");
        check_true(buf_reserve(&b, 0) == NULL);
        buf_reset(&b);
        check_false(buf_failed(&b));
        buf_addf(&b, "%s", "123456");
        check_true(buf_failed(&b));
        check_str_eq(buf_str(&b), "");
        check_sane(&b);
}

static void refuses_absurd_sizes(void **state)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, 100);
        buf_add_char(&b, 'a');
        buf_add(&b, "x", SIZE_MAX);
        check_true(buf_failed(&b));
        buf_reset(&b);
        buf_add_hex(&b, "x", SIZE_MAX / 2 + 2);
        check_true(buf_failed(&b));
        buf_reset(&b);
        check_true(buf_reserve(&b, SIZE_MAX) == NULL);
        check_true(buf_failed(&b));
}

static void buffer_of_nothing(void **state)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, 0);
        check_true(buf_reserve(&b, 0) != NULL);
        buf_add_str(&b, STR(""));
        check_false(buf_failed(&b));
        buf_add_char(&b, 'a');
        check_true(buf_failed(&b));
        check_sane(&b);
}

static void consumes_without_moving(void **state)
{
        scoped(buf_done) struct buf b;
        const char *at;

        buf_init(&b, 1000);
        buf_add_str(&b, STR("0123456789"));
        at = buf_str(&b).p;
        buf_consume(&b, 4);
        check_str_eq(buf_str(&b), "456789");
        check_true(buf_str(&b).p == at + 4);
        buf_add_str(&b, STR("ab"));
        check_true(buf_str(&b).p == at + 4);
        check_str_eq(buf_str(&b), "456789ab");
        buf_consume(&b, 8);
        check_u64_eq(b.start, 0);
        check_sane(&b);
        buf_release(&b);
        check_u64_eq(b.size, 0);
        buf_consume(&b, 0);
        buf_add_str(&b, STR("again"));
        buf_release(&b);
        check_str_eq(buf_str(&b), "again");
}

static void full_buffer_moves_when_needed(void **state)
{
        scoped(buf_done) struct buf b;
        char want[9] = "";

        buf_init(&b, 8);
        buf_add_str(&b, STR("abcdefgh"));
        for (int i = 0; i < 100; i++) {
                buf_consume(&b, 1);
                buf_add_char(&b, (char) ('a' + (i + 8) % 26));
                check_sane(&b);
        }
        for (int i = 0; i < 8; i++)
                want[i] = (char) ('a' + (100 + i) % 26);
        check_false(buf_failed(&b));
        check_str_eq(buf_str(&b), want);
}

/* Random appends and consumptions against a plain array. */
static void behaves_like_a_queue(void **state)
{
        static char model[4096];
        size_t from = 0, to = 0;
        unsigned seed = 1;
        scoped(buf_done) struct buf b;

        buf_init(&b, 300);
        while (to + 64 < sizeof(model)) {
                size_t n = (size_t) rand_r(&seed) % 64;

                if (rand_r(&seed) % 2 && n <= buf_room(&b)) {
                        for (size_t i = 0; i < n; i++)
                                model[to + i] = (char) rand_r(&seed);
                        buf_add(&b, model + to, n);
                        to += n;
                } else if (n <= b.n) {
                        buf_consume(&b, n);
                        from += n;
                }
                check_sane(&b);
                check_view_eq(buf_str(&b), str_of(model + from, to - from));
        }
        check_false(buf_failed(&b));
}

static void reserves_and_advances(void **state)
{
        scoped(buf_done) struct buf b;
        char *p;

        buf_init(&b, 10);
        p = buf_reserve(&b, 10);
        check_true(p != NULL);
        memcpy(p, "abc", 3);
        buf_advance(&b, 3);
        check_str_eq(buf_str(&b), "abc");
        check_true(buf_reserve(&b, 8) == NULL);
        check_true(buf_failed(&b));
        check_str_eq(buf_str(&b), "abc");
}

static void formats_into_any_room(void **state)
{
        static char text[600];

        memset(text, 'x', sizeof(text) - 1);
        for (int n = 0; n < 600; n += 13) {
                struct buf b;

                buf_init(&b, 700);
                buf_add_str(&b, STR("12345"));
                buf_consume(&b, 2);
                buf_addf(&b, "%.*s|", n, text);
                check_u64_eq(b.n, (size_t) n + 4);
                check_sane(&b);
                buf_done(&b);
        }
}

static void works_on_fixed_storage(void **state)
{
        char storage[6];
        struct buf b;

        buf_init_fixed(&b, storage, sizeof(storage));
        buf_add_str(&b, STR("abcde"));
        check_str_eq(buf_str(&b), "abcde");
        check_true(buf_str(&b).p == storage);
        buf_consume(&b, 3);
        buf_add_str(&b, STR("xyz"));
        check_str_eq(buf_str(&b), "dexyz");
        check_true(buf_str(&b).p == storage);
        buf_add_char(&b, '!');
        check_true(buf_failed(&b));
        buf_release(&b);
        buf_done(&b);
        check_false(buf_failed(&b));
        buf_addf(&b, "%d", 12345);
        check_z_eq(storage, "12345");
}

/* In the place of base/secret.c's, which the linker then leaves out: freed memory can't be looked
 * at, so what is wiped is noted. */
static struct {
        unsigned calls;
        char text[64]; /* what the last call found */
} wiped;

void wipe(void *p, size_t n)
{
        wiped.calls++;
        (void) snprintf(wiped.text, sizeof(wiped.text), "%.*s", (int) n, (char *) p);
        memset(p, 0, n);
}

static void wipes_secrets(void **state)
{
        char storage[16];
        struct buf b;

        buf_init_fixed(&b, storage, sizeof(storage));
        buf_mark_secret(&b);
        buf_add_str(&b, STR("hunter2"));
        buf_consume(&b, 3);
        buf_done(&b);
        check_view_eq(str_of(storage, 7), STR("\0\0\0\0\0\0\0"));
}

static void wipes_what_it_outgrows(void **state)
{
        struct buf b;

        wiped.calls = 0;
        buf_init(&b, 1000);
        buf_mark_secret(&b);
        buf_done(&b);
        check_u64_eq(wiped.calls, 0);

        buf_add_str(&b, STR("hunter2"));
        check_true(buf_reserve(&b, 500) != NULL);
        check_u64_eq(wiped.calls, 1);
        check_z_eq(wiped.text, "hunter2");
        check_str_eq(buf_str(&b), "hunter2");
        buf_consume(&b, b.n);
        buf_release(&b);
        check_u64_eq(wiped.calls, 2);
        check_z_eq(wiped.text, ""); /* from its front on: the NUL of the consumed content */

        buf_add_str(&b, STR("still secret"));
        buf_done(&b);
        check_u64_eq(wiped.calls, 3);
        check_z_eq(wiped.text, "still secret");
}

static const struct {
        struct str in;
        const char *out;
} quoted[] = {
        { STR_NULL, "\"\"" },
        { STR(""), "\"\"" },
        { STR("plain text"), "\"plain text\"" },
        { STR("a\"b\\c/d"), "\"a\\\"b\\\\c/d\"" },
        { STR("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"" },
        { STR("\0\x01\x1b[2J\x7f"), "\"\\u0000\\u0001\\u001b[2J\\u007f\"" },
        { STR("\xc3\xa4\xf0\x9f\x98\x80"), "\"\xc3\xa4\xf0\x9f\x98\x80\"" },
        { STR("\xc2\x85\xc2\x9b\xc2\xa0"), "\"\\u0085\\u009b\xc2\xa0\"" },
        /* NOLINTNEXTLINE(misc-misleading-bidirectional): to be escaped, that is the point */
        { STR("\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xae"), "\"\\u2028\\u2029\\u202e\"" },
        { STR("\xff\xc0\xaf"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        { STR("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
        { STR("\xe2\x82"), "\"\xef\xbf\xbd\xef\xbf\xbd\"" },
};

static void quotes(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(quoted); i++) {
                scoped(buf_done) struct buf b;

                check_case(quoted[i].out);
                buf_init(&b, 100);
                buf_add_quoted(&b, quoted[i].in);
                check_str_eq(buf_str(&b), quoted[i].out);
                check_true(str_is_utf8(buf_str(&b)));
                buf_reset(&b);
                check_false(buf_add_quoted_cut(&b, quoted[i].in, 100));
                check_str_eq(buf_str(&b), quoted[i].out);
        }
}

static void quoting_is_all_or_nothing(void **state)
{
        scoped(buf_done) struct buf b;

        for (size_t max = 0; max < 12; max++) {
                buf_init(&b, max + 2);
                buf_add_str(&b, STR("x="));
                buf_add_quoted(&b, STR("ab\n\x01"
                                       "c")); /* 13 bytes */
                check_true(buf_failed(&b));
                check_str_eq(buf_str(&b), "x=");
                buf_done(&b);
        }
}

/* Plain text is looked at in blocks: what is not plain must be found in each place of one. */
static void quotes_every_byte_in_every_place(void **state)
{
        char text[40], expected[48];
        scoped(buf_done) struct buf b;

        (void) state;
        buf_init(&b, 1024);
        for (int c = 1; c < 0x80; c++)
                for (size_t at = 0; at < sizeof(text); at++) {
                        char one[8];
                        int n;

                        memset(text, 'x', sizeof(text));
                        text[at] = (char) c;
                        buf_reset(&b);
                        buf_add_quoted(&b, str_of(&text[at], 1));
                        (void) snprintf(one, sizeof(one), "%.*s", (int) b.n - 2, buf_str(&b).p + 1);
                        check_i64_eq(strlen(one) == 1, c >= 0x20 && c < 0x7f && !strchr("\"\\", c));
                        n = snprintf(expected, sizeof(expected), "\"%.*s%s%.*s\"", (int) at, text,
                                     one, (int) (sizeof(text) - at - 1), text + at + 1);
                        buf_reset(&b);
                        buf_add_quoted(&b, str_of(text, sizeof(text)));
                        check_view_eq(buf_str(&b), str_of(expected, (size_t) n));
                }
}

static void cuts_quoted_text(void **state)
{
        static const struct {
                const char *in;
                size_t max;
                const char *out;
                bool cut;
        } cases[] = {
                { "123456", 8, "\"123456\"", false },
                { "1234567", 8, "\"123\xe2\x80\xa6\"", true },
                { "12345678901", 12, "\"1234567\xe2\x80\xa6\"", true },
                { "\x01\x01", 8, "\"\xe2\x80\xa6\"", true },
                { "ab\x01\x01", 12, "\"ab\xe2\x80\xa6\"", true },
                { "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", 8, "\"\xe2\x82\xac\xe2\x80\xa6\"", true },
                { "", 8, "\"\"", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(buf_done) struct buf b;

                check_case(cases[i].in);
                buf_init(&b, 100);
                buf_add_char(&b, '>');
                check_i64_eq(buf_add_quoted_cut(&b, str_from(cases[i].in), cases[i].max),
                             cases[i].cut);
                check_str_eq(str_skip(buf_str(&b), 1), cases[i].out);
                check_true(b.n - 1 <= cases[i].max);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(adds_everything),
                cmocka_unit_test(stops_at_its_maximum),
                cmocka_unit_test(refuses_absurd_sizes),
                cmocka_unit_test(buffer_of_nothing),
                cmocka_unit_test(consumes_without_moving),
                cmocka_unit_test(full_buffer_moves_when_needed),
                cmocka_unit_test(behaves_like_a_queue),
                cmocka_unit_test(reserves_and_advances),
                cmocka_unit_test(formats_into_any_room),
                cmocka_unit_test(works_on_fixed_storage),
                cmocka_unit_test(wipes_secrets),
                cmocka_unit_test(wipes_what_it_outgrows),
                cmocka_unit_test(quotes),
                cmocka_unit_test(quoting_is_all_or_nothing),
                cmocka_unit_test(quotes_every_byte_in_every_place),
                cmocka_unit_test(cuts_quoted_text),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
