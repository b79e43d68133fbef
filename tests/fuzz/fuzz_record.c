/* SPDX-License-Identifier: Apache-2.0 */

/* A stored record, an entry of PURISTA's, and a create request with the same bytes: what is read complete is
 * written as what reads back the same, and so is the record that a request becomes. */

#include "tests/fuzz/fuzz.h"

#include "base/base.h"
#include "model/create.h"
#include "model/limits.h"
#include "model/sandbox.h"
#include "model/snapshot.h"

static void check_round_trip(const struct sandbox *s)
{
        scoped(sandbox_freep) struct sandbox *back = NULL;
        scoped(sandbox_freep) struct sandbox *copy = sandbox_copy(s);
        scoped(buf_done) struct buf first, second, third;

        buf_init(&first, RECORD_TEXT_MAX);
        buf_init(&second, RECORD_TEXT_MAX);
        buf_init(&third, RECORD_TEXT_MAX);
        ASSERT(copy && sandbox_check(s, NULL) == 0);
        sandbox_encode(&first, s);
        ASSERT(!buf_failed(&first));
        ASSERT(sandbox_decode(buf_str(&first), &back, &(struct err){ 0 }) == 0);
        sandbox_encode(&second, back);
        sandbox_encode(&third, copy);
        ASSERT(str_eq(buf_str(&first), buf_str(&second)));
        ASSERT(str_eq(buf_str(&first), buf_str(&third)));
}

static void try_record(struct str text)
{
        scoped(sandbox_freep) struct sandbox *s = NULL;
        struct err e = { 0 };

        if (sandbox_decode(text, &s, &e) == 0)
                check_round_trip(s);
        else
                ASSERT(!s && e.message[0]);
}

/* It is never both, and never written. */
static void try_purista(struct str text)
{
        scoped(sandbox_freep) struct sandbox *s = NULL, *ours = NULL;
        struct err e = { 0 };

        if (sandbox_decode_purista(text, &s, &e) < 0) {
                ASSERT(!s && e.message[0]);
                return;
        }
        ASSERT(sandbox_is_foreign(s) && owner_check(&s->owner, NULL) == 0
               && sandbox_id_is_valid(s->id));
        ASSERT(sandbox_check(s, NULL) < 0 && sandbox_decode(text, &ours, &e) < 0);
}

static void try_snapshot(struct str text)
{
        scoped(snapshot_freep) struct snapshot *s = NULL, *back = NULL;
        scoped(buf_done) struct buf first, second;
        struct err e = { 0 };

        buf_init(&first, RECORD_TEXT_MAX);
        buf_init(&second, RECORD_TEXT_MAX);
        if (snapshot_decode(text, &s, &e) < 0) {
                ASSERT(!s && e.message[0]);
                return;
        }
        snapshot_encode(&first, s);
        ASSERT(snapshot_decode(buf_str(&first), &back, &e) == 0);
        snapshot_encode(&second, back);
        ASSERT(str_eq(buf_str(&first), buf_str(&second)));
}

static void try_create(struct str text, struct arena *a)
{
        static struct str dirs[] = { STR("/srv") };
        const struct create_policy policy = { .host_dirs = { dirs, 1 } };
        const struct create_facts facts = {
                .id = STR("a"),
                .node = STR("n"),
                .tenant = STR("t"),
                .driver = STR("d"),
                .owner = { STR("o"), STR("p"), STR("u"), { 0 } },
                .now = { 1, 2, STR("b") },
        };
        scoped(sandbox_freep) struct sandbox *s = NULL;
        struct create_request c = { 0 };
        struct problems problems = { 0 };
        struct json_error je;

        if (json_decode(text, create_fields, 0, a, &c, &je) < 0)
                problems_add_json(&problems, a, &je);
        else if (create_check(&c, &policy, a, &problems) == 0) {
                ASSERT(create_to_sandbox(&c, &facts, &s, &(struct err){ 0 }) == 0);
                check_round_trip(s);
                return;
        }
        ASSERT(problems.detail.n > 0 && problems_message(&problems).n > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct str text = str_of((const char *) p, n);
        struct arena a;

        if (n > HTTP_BODY_MAX)
                return 0;
        arena_init(&a, ARENA_MAX_REQUEST);
        try_record(text);
        try_purista(text);
        try_snapshot(text);
        try_create(text, &a);
        arena_done(&a);
        return 0;
}
