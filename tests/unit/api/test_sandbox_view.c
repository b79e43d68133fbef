/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/sandbox_view.h"

#include "base/base.h"
#include "tests/lib/check.h"
#include "tests/lib/sandbox_sample.h"

static struct sandbox *decoded(const char *text)
{
        struct sandbox *s;
        struct err e;

        if (sandbox_decode(str_from(text), &s, &e) < 0)
                CHECK_FAIL_("%s", e.message);
        return s;
}

#define REST_OF_FULL                                                                              \
        "\"platform\":{\"os\":\"linux\",\"arch\":\"amd64\"},\"status\":{\"state\":\"Running\","   \
        "\"reason\":\"CONTAINER_RUNNING\",\"message\":\"fine\","                                  \
        "\"lastTransitionAt\":\"2023-11-14T22:13:21.000Z\"},"                                     \
        "\"metadata\":{\"name\":\"a\",\"team/x\":\"\"},"                                          \
        "\"entrypoint\":[\"sh\",\"-c\",\"\",\"a\\nb\"],"                                          \
        "\"expiresAt\":\"2023-11-14T22:23:20.123Z\",\"expires_at\":\"2023-11-14T22:23:20.123Z\"," \
        "\"createdAt\":\"2023-11-14T22:13:20.123Z\",\"created_at\":\"2023-11-14T22:13:20.123Z\"}"

static void test_shows_a_record_that_has_everything(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = decoded(SAMPLE_FULL);
        scoped(buf_done) struct buf b;

        buf_init(&b, BUF_MAX_JSON);
        sandbox_view_add(&b, s);
        check_str_eq(buf_str(&b),
                     "{\"id\":\"sb-1\",\"image\":{\"uri\":\"debian:12\"}," REST_OF_FULL);
        buf_reset(&b);
        sandbox_view_add_created(&b, s);
        check_str_eq(buf_str(&b), "{\"id\":\"sb-1\"," REST_OF_FULL);
}

static void test_absent_members_are_left_out(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = decoded(SAMPLE_SMALL);
        scoped(buf_done) struct buf b;

        buf_init(&b, BUF_MAX_JSON);
        sandbox_view_add(&b, s);
        check_str_eq(buf_str(&b),
                     "{\"id\":\"a\",\"snapshotId\":\"s\",\"status\":{\"state\":\"Pending\","
                     "\"lastTransitionAt\":\"1970-01-01T00:00:00.000Z\"},\"metadata\":{},"
                     "\"entrypoint\":[\"sh\"],\"createdAt\":\"1970-01-01T00:00:00.000Z\","
                     "\"created_at\":\"1970-01-01T00:00:00.000Z\"}");
}

static void test_shows_only_extensions_that_are_kept_for_the_client(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = decoded(SAMPLE_SMALL);
        struct json_pair pairs[] = {
                { STR("access.renew.extend.seconds"), STR("300") },
                { STR("opensandbox.extensions.a"), STR("1") },
                { STR("other"), STR("x") },
                { STR("opensandbox.extensions.b"), STR("") },
        };
        scoped(buf_done) struct buf b;

        s->extensions = (struct json_map){ pairs, ARRAY_SIZE(pairs) };
        buf_init(&b, BUF_MAX_JSON);
        sandbox_view_add(&b, s);
        check_true(strstr(buf_str(&b).p, "\"extensions\":{\"opensandbox.extensions.a\":\"1\","
                                         "\"opensandbox.extensions.b\":\"\"},"));
        check_false(strstr(buf_str(&b).p, "300"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_shows_a_record_that_has_everything),
                cmocka_unit_test(test_absent_members_are_left_out),
                cmocka_unit_test(test_shows_only_extensions_that_are_kept_for_the_client),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
