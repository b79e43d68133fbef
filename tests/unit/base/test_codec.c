/* SPDX-License-Identifier: Apache-2.0 */
#include "base/codec.h"

#include "base/base.h"
#include "tests/lib/check.h"

static void numbers_are_little_endian(void **state)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, 64);
        codec_put_u8(&b, 0x01);
        codec_put_u16(&b, 0x0203);
        codec_put_u32(&b, 0x04050607);
        codec_put_u64(&b, 0x08090a0b0c0d0e0fULL);
        check_view_eq(buf_str(&b),
                      STR("\x01\x03\x02\x07\x06\x05\x04\x0f\x0e\x0d\x0c\x0b\x0a\x09\x08"));
}

static void what_is_written_is_read(void **state)
{
        scoped(arena_done) struct arena a;
        scoped(buf_done) struct buf b;
        struct codec_reader r;

        arena_init(&a, 4 * KiB);
        buf_init(&b, 1 * KiB);
        codec_put_u8(&b, UINT8_MAX);
        codec_put_u16(&b, UINT16_MAX);
        codec_put_u32(&b, UINT32_MAX);
        codec_put_u64(&b, UINT64_MAX);
        codec_put_str(&b, STR("a\0b"));
        codec_put_cstr(&b, "text");
        codec_put_cstr(&b, "");
        check_false(buf_failed(&b));

        r = (struct codec_reader){ .left = buf_str(&b), .arena = &a };
        check_u64_eq(codec_u8(&r), UINT8_MAX);
        check_u64_eq(codec_u16(&r), UINT16_MAX);
        check_u64_eq(codec_u32(&r), UINT32_MAX);
        check_u64_eq(codec_u64(&r), UINT64_MAX);
        check_view_eq(codec_str(&r), STR("a\0b"));
        check_z_eq(codec_cstr(&r), "text");
        check_false(codec_complete(&r));
        check_z_eq(codec_cstr(&r), "");
        check_true(codec_complete(&r));
}

/* Whatever is cut off, the reader fails, stays failed, and yields nothing. */
static void a_cut_message_fails_for_good(void **state)
{
        scoped(arena_done) struct arena a;
        scoped(buf_done) struct buf b;

        arena_init(&a, 4 * KiB);
        buf_init(&b, 64);
        codec_put_u16(&b, 7);
        codec_put_cstr(&b, "text");
        for (size_t n = 0; n < b.n; n++) {
                struct codec_reader r = { .left = str_of(buf_str(&b).p, n), .arena = &a };

                (void) codec_u16(&r);
                check_z_eq(codec_cstr(&r), "");
                check_true(r.failed);
                check_u64_eq(codec_u8(&r), 0);
                check_view_eq(codec_str(&r), STR(""));
                check_false(codec_complete(&r));
        }
}

static void what_does_not_fit_fails_the_buffer(void **state)
{
        static void (*const put[])(struct buf *, uint64_t) = { codec_put_u8, codec_put_u16,
                                                               codec_put_u32 };

        for (size_t i = 0; i < ARRAY_SIZE(put); i++) {
                const uint64_t largest = (UINT64_C(1) << (8U << i)) - 1;
                scoped(buf_done) struct buf b;

                buf_init(&b, 64);
                put[i](&b, largest);
                check_false(buf_failed(&b));
                put[i](&b, largest + 1);
                check_true(buf_failed(&b));
                check_u64_eq(b.n, 1U << i);
        }
}

static void lengths_are_checked(void **state)
{
        struct codec_reader r = { .left = STR("\xff\xff\xff\xff"
                                              "abc") };

        check_view_eq(codec_str(&r), STR(""));
        check_true(r.failed);
}

static void a_c_string_has_no_nul(void **state)
{
        scoped(arena_done) struct arena a;
        struct codec_reader r = { .left = STR("\x03\0\0\0a\0b"), .arena = &a };

        arena_init(&a, 4 * KiB);
        check_z_eq(codec_cstr(&r), "");
        check_true(r.failed);
}

static void a_full_buffer_and_a_full_arena_fail(void **state)
{
        scoped(arena_done) struct arena a;
        struct codec_reader r = { .left = STR("\x02\0\0\0ab"), .arena = &a };
        scoped(buf_done) struct buf b;

        buf_init(&b, 6);
        codec_put_u32(&b, 1);
        codec_put_u32(&b, 2);
        check_true(buf_failed(&b));
        check_i64_eq(b.n, 4);
        codec_put_u8(&b, 3); /* would fit, but comes after what did not */
        check_i64_eq(b.n, 4);

        arena_init(&a, 0);
        check_z_eq(codec_cstr(&r), "");
        check_true(r.failed);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(numbers_are_little_endian),
                cmocka_unit_test(what_is_written_is_read),
                cmocka_unit_test(a_cut_message_fails_for_good),
                cmocka_unit_test(what_does_not_fit_fails_the_buffer),
                cmocka_unit_test(lengths_are_checked),
                cmocka_unit_test(a_c_string_has_no_nul),
                cmocka_unit_test(a_full_buffer_and_a_full_arena_fail),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
