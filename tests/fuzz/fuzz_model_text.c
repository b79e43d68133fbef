/* SPDX-License-Identifier: Apache-2.0 */

/* The small texts of the model, one text through all of them: what is accepted is written again as
 * the same, and what is normalised is stable. */

#include "tests/fuzz/fuzz.h"

#include "base/base.h"
#include "model/labels.h"
#include "model/limits.h"
#include "model/network.h"
#include "model/owner.h"
#include "model/resources.h"
#include "model/text.h"
#include "model/volumes.h"

static void try_quantities(struct str s)
{
        char text[RESOURCE_TEXT_MAX];
        int64_t v = -7, back = 0;

        if (quantity_parse(s, 0, &v) == 0) {
                ASSERT(v > 0);
                ASSERT(quantity_parse(str_of(text, memory_to_text(v, text)), 0, &back) == 0
                       || v > INT64_C(999999999999999999));
                ASSERT(back == 0 || back == v);
        } else {
                ASSERT(v == -7);
        }
        if (quantity_parse(s, -3, &v) == 0)
                ASSERT(quantity_parse(str_of(text, cpu_to_text(v, text)), -3, &back) < 0
                       || back == v);
}

static void try_targets(struct str s)
{
        struct target t, again;

        if (target_parse(s, &t) < 0)
                return;
        ASSERT(target_parse(str_from(t.text), &again) == 0);
        ASSERT(str_eq(str_from(t.text), str_from(again.text)) && t.kind == again.kind);
}

static void try_labels(struct str s, struct arena *a)
{
        ssize_t at = str_find(s, '=');
        struct json_pair pair = { str_of(s.p, at < 0 ? s.n : (size_t) at),
                                  at < 0 ? STR("") : str_skip(s, (size_t) at + 1) };
        struct json_map map = { &pair, 1 }, ret = { 0 };
        struct resources r;

        if (labels_check(&map, NULL) == 0) {
                ASSERT(labels_patch(&(struct json_map){ 0 }, &map, a, &ret, NULL) == 0);
                ASSERT(labels_match(&ret, &map));
                pair.value = STR_NULL;
                ASSERT(labels_patch(&ret, &map, a, &ret, NULL) == 0 && ret.n == 0);
        }
        if (pair.value.p && resources_parse(&map, a, &r, NULL) == 0)
                ASSERT(resources_parse(&r.texts, a, &r, NULL) == 0);
}

/* Unescapes as it compares. */
static void check_key_part(struct str part, struct str original)
{
        for (; part.n > 0; original = str_skip(original, 1)) {
                bool colon = str_starts_with(part, STR("%3A"));
                bool percent = str_starts_with(part, STR("%25"));

                ASSERT(part.p[0] != '%' || colon || percent);
                ASSERT(original.n > 0
                       && original.p[0]
                                  == (colon     ? ':'
                                      : percent ? '%'
                                                : part.p[0]));
                part = str_skip(part, colon || percent ? 3 : 1);
        }
        ASSERT(original.n == 0);
}

/* The text cut into parts at its lines: two owners have the same key only if they are the same, because the parts can be
 * read from the key again. */
static void try_owner(struct str s)
{
        struct owner o = { .scope.kind = SCOPE_CUSTOM };
        scoped(buf_done) struct buf b;
        struct str key, part;

        buf_init(&b, 16 * KiB);
        if (!str_split(&s, '\n', &o.organization_id) || !str_split(&s, '\n', &o.project_id)
            || !str_split(&s, '\n', &o.user_id) || !str_split(&s, '\n', &o.scope.key)
            || owner_check(&o, NULL) < 0)
                return;
        owner_add_key(&b, &o);
        key = buf_str(&b);
        ASSERT(str_split(&key, ':', &part));
        check_key_part(part, o.organization_id);
        ASSERT(str_split(&key, ':', &part));
        check_key_part(part, o.project_id);
        ASSERT(str_split(&key, ':', &part));
        check_key_part(part, o.user_id);
        ASSERT(str_split(&key, ':', &part) && str_eq(part, STR("custom")));
        ASSERT(str_split(&key, ':', &part));
        check_key_part(part, o.scope.key);
        ASSERT(!key.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
        struct str s = str_of((const char *) p, n);
        struct arena a;

        arena_init(&a, 4 * MiB);
        try_quantities(s);
        try_targets(s);
        if (n > 0)
                try_labels(s, &a);
        try_owner(s);
        ASSERT(!text_is_plain_path(s) || path_is_in(s, STR("/")));
        arena_done(&a);
        return 0;
}
