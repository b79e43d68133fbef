/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access/peer.h"

#include "base/base.h"
#include "service/service.h"
#include "tests/lib/check.h"

static const struct peer_binding binding = {
        .secret_key = STR("0123456789abcdef0123456789abcdef"),
        .from = STR("one"),
        .to = STR("process-two"),
        .method = STR("GET"),
        .target = STR("/v1/sandboxes/x?a=b"),
};

static const struct peer_identity ann = { .known = true,
                                          .tenant = STR("org \"1\""),
                                          .principal = STR("ann"),
                                          .key = STR("k-1"),
                                          .role = ROLE_USER };

static int read_as(struct str text, const struct peer_binding *as, struct peer_identity *ret)
{
        static struct arena a;
        struct peer_binding s = *as;

        arena_done(&a);
        arena_init(&a, 64 * KiB);
        s.from = STR_NULL;
        return peer_read(text, &s, &a, ret);
}

static struct str written(struct arena *a, const struct peer_identity *caller)
{
        struct str text;

        arena_init(a, 64 * KiB);
        check_i64_eq(peer_write(&binding, caller, a, &text), 0);
        return text;
}

static void identities_are_read_back(void **state)
{
        const struct peer_identity anonymous = { .role = ROLE_READ };
        struct peer_identity got;
        struct arena a;
        struct str text = written(&a, &ann);

        check_i64_eq(read_as(text, &binding, &got), 0);
        check_true(got.known && !got.bridge && !got.all_tenants && got.role == ROLE_USER);
        check_true(str_eq(got.tenant, ann.tenant) && str_eq(got.principal, ann.principal)
                   && str_eq(got.key, ann.key));
        arena_done(&a);
        text = written(&a, &anonymous);
        check_i64_eq(read_as(text, &binding, &got), 0);
        check_false(got.known);
        arena_done(&a);
}

static void it_is_for_one_request_to_one_process(void **state)
{
        struct peer_binding others[] = { binding, binding, binding, binding };
        struct peer_identity got;
        struct arena a;
        struct str text = written(&a, &ann);

        others[0].to = STR("process-three");
        others[1].method = STR("DELETE");
        others[2].target = STR("/v1/sandboxes/y");
        others[3].secret_key = STR("0123456789abcdef0123456789abcdeF");
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                check_i64_eq(read_as(text, &others[i], &got), -EACCES);
        others[3].secret_key = STR_NULL; /* a key that was forgotten opens nothing */
        check_i64_eq(read_as(text, &others[3], &got), -EACCES);
        arena_done(&a);
}

static void nothing_of_it_can_be_changed(void **state)
{
        struct peer_identity got;
        struct arena a;
        struct str text = written(&a, &ann);
        char *copy = xstrndup_str(text);

        for (size_t i = 0; i < text.n; i++) {
                copy[i] ^= 1;
                check_i64_eq(read_as(str_of(copy, text.n), &binding, &got), -EACCES);
                copy[i] ^= 1;
                check_i64_eq(read_as(str_of(copy, i), &binding, &got), -EACCES);
        }
        free(copy);
        arena_done(&a);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(identities_are_read_back),
                cmocka_unit_test(it_is_for_one_request_to_one_process),
                cmocka_unit_test(nothing_of_it_can_be_changed),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
