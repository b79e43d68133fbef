/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/codec.h"
#include "store/nats_protocol.h"
#include "tests/lib/check.h"

static const struct nats_message sample = { .request_id = 7,
                                            .what = 3,
                                            .version = 9,
                                            .limit = 1,
                                            .first = STR("key"),
                                            .second = STR("value") };

static void frames_come_back_by_whatever_pieces(void **state)
{
        scoped(buf_done) struct buf b;
        struct nats_message m;

        buf_init(&b, NATS_FRAME_MAX);
        nats_frame_add(&b, &sample);
        check_u64_eq(b.n, 4 + NATS_MESSAGE_COST + 3 + 5);
        for (size_t n = 0; n < b.n; n++)
                check_i64_eq(nats_frame_read(str_of(buf_str(&b).p, n), &m), 0);
        check_i64_eq(nats_frame_read(buf_str(&b), &m), (int64_t) b.n);
        check_u64_eq(m.what, 3);
        check_u64_eq(m.request_id, 7);
        check_u64_eq(m.version, 9);
        check_u64_eq(m.limit, 1);
        check_str_eq(m.first, "key");
        check_str_eq(m.second, "value");
}

static void what_is_no_frame_is_refused(void **state)
{
        static const size_t lengths[] = { 0, NATS_MESSAGE_COST - 1, NATS_MESSAGE_MAX + 1,
                                          UINT32_MAX };
        scoped(buf_done) struct buf b;
        struct nats_message m;

        buf_init(&b, NATS_FRAME_MAX);
        for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
                buf_reset(&b);
                codec_put_u32(&b, lengths[i]);
                nats_message_add(&b, &sample);
                check_i64_eq(nats_frame_read(buf_str(&b), &m), -EBADMSG);
        }
}

static void a_message_is_exactly_as_long_as_it_says(void **state)
{
        scoped(buf_done) struct buf b;
        struct nats_message m;

        buf_init(&b, NATS_FRAME_MAX);
        nats_message_add(&b, &sample);
        check_i64_eq(nats_message_read(buf_str(&b), &m), 0);
        for (size_t n = 0; n < b.n; n++)
                check_i64_eq(nats_message_read(str_of(buf_str(&b).p, n), &m), -EBADMSG);
        buf_add_char(&b, 'x');
        check_i64_eq(nats_message_read(buf_str(&b), &m), -EBADMSG);
}

static void entries_come_back(void **state)
{
        scoped(buf_done) struct buf b;
        struct store_entry entry;
        struct str rest;

        buf_init(&b, 1 * KiB);
        nats_entry_add(&b, (struct store_entry){ STR("a"), STR(""), 1 });
        nats_entry_add(&b, (struct store_entry){ STR("b"), STR("value"), UINT64_MAX });
        rest = buf_str(&b);
        check_i64_eq(nats_entry_take(&rest, &entry), 1);
        check_str_eq(entry.key, "a");
        check_u64_eq(entry.value.n, 0);
        check_i64_eq(nats_entry_take(&rest, &entry), 1);
        check_str_eq(entry.value, "value");
        check_true(entry.version == UINT64_MAX);
        check_i64_eq(nats_entry_take(&rest, &entry), 0);
        for (size_t n = 1; n < NATS_ENTRY_COST + 1; n++) {
                rest = str_of(buf_str(&b).p, n);
                check_i64_eq(nats_entry_take(&rest, &entry), -EBADMSG);
        }
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(frames_come_back_by_whatever_pieces),
                cmocka_unit_test(what_is_no_frame_is_refused),
                cmocka_unit_test(a_message_is_exactly_as_long_as_it_says),
                cmocka_unit_test(entries_come_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
