/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "store/nats_protocol.h"
#include "tests/lib/check.h"

static void frames_come_back_by_whatever_pieces(void **state)
{
        scoped(buf_done) struct buf b;
        struct nats_frame f;

        buf_init(&b, NATS_FRAME_MAX);
        nats_frame_add(&b, (struct nats_frame){
                                   .head = { .what = 3, .request_id = 7, .version = 9, .limit = 1 },
                                   .first = STR("key"),
                                   .second = STR("value") });
        for (size_t n = 0; n < b.n; n++)
                check_i64_eq(nats_frame_read(str_of(buf_str(&b).p, n), &f), 0);
        check_i64_eq(nats_frame_read(buf_str(&b), &f), (int64_t) b.n);
        check_u64_eq(f.head.what, 3);
        check_u64_eq(f.head.request_id, 7);
        check_u64_eq(f.head.version, 9);
        check_u64_eq(f.head.limit, 1);
        check_str_eq(f.first, "key");
        check_str_eq(f.second, "value");
}

static void what_is_no_frame_is_refused(void **state)
{
        static const struct nats_head heads[] = {
                { .n = 0 },
                { .n = sizeof(struct nats_head) - 1 },
                { .n = (uint32_t) NATS_FRAME_MAX + 1 },
                { .n = UINT32_MAX },
                { .n = sizeof(struct nats_head), .first = 1 },
                { .n = sizeof(struct nats_head) + 4, .first = UINT32_MAX },
        };
        struct nats_frame f;

        for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
                check_i64_eq(nats_frame_read(str_of((const char *) &heads[i], sizeof(heads[i])),
                                             &f),
                             -EBADMSG);
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
                cmocka_unit_test(entries_come_back),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
