/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "model/limits.h"
#include "model/sandbox.h"

#include "tests/lib/sandbox_sample.h"

static void test_a_record_reads_back_as_it_was_written(void **state)
{
        static const char *const cases[] = { SAMPLE_FULL, SAMPLE_SMALL };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                scoped(sandbox_freep) struct sandbox *s = NULL;
                scoped(buf_done) struct buf b;
                struct err e = { 0 };

                buf_init(&b, RECORD_TEXT_MAX);
                check_i64_eq(sandbox_decode(str_from(cases[i]), &s, &e), 0);
                check_z_eq(e.message, "");
                check_i64_eq(sandbox_check(s, &e), 0);
                sandbox_encode(&b, s);
                check_str_eq(buf_str(&b), cases[i]);
        }
}

/* Takes away what the bits of the mask name. */
static void thin_out(struct sandbox *s, unsigned mask)
{
        if (mask & 1)
                s->platform = NULL;
        if (mask & 2)
                s->env_names = (struct json_strs){ 0 };
        if (mask & 4)
                s->limits = (struct resources){ 0 };
        if (mask & 8)
                s->network_policy = NULL;
        if (mask & 16)
                s->volumes = (struct json_list){ 0 };
        if (mask & 32)
                s->metadata = (struct json_map){ 0 };
        if (mask & 64)
                s->extensions = (struct json_map){ 0 };
        if (mask & 128)
                s->expiry = NULL;
        if (mask & 256)
                s->status.reason = STR_NULL;
        if (mask & 512)
                s->status.message = STR_NULL;
        if (mask & 1024)
                s->handle = STR_NULL;
        s->git_configured = mask & 1;
        s->owner_bound = mask & 2;
        s->secure_access = mask & 4;
        s->status.state = (int) (mask % STATE_MAX_);
}

/* decode(encode(x)) == x, for every choice of the optional members; and so for copies. */
static void test_every_record_reads_back(void **state)
{
        scoped(buf_done) struct buf first, second;

        buf_init(&first, RECORD_TEXT_MAX);
        buf_init(&second, RECORD_TEXT_MAX);
        for (unsigned mask = 0; mask < 1u << 11; mask++) {
                scoped(sandbox_freep) struct sandbox *s = NULL, *back = NULL, *copy = NULL;
                struct err e = { 0 };

                buf_reset(&first);
                buf_reset(&second);
                check_i64_eq(sandbox_decode(STR(SAMPLE_FULL), &s, &e), 0);
                thin_out(s, mask);
                check_i64_eq(sandbox_check(s, &e), 0);
                sandbox_encode(&first, s);
                check_i64_eq(sandbox_decode(buf_str(&first), &back, &e), 0);
                sandbox_encode(&second, back);
                check_view_eq(buf_str(&second), buf_str(&first));
                check_i64_eq(back->limits.cpu_milli, s->limits.cpu_milli);
                copy = sandbox_copy(s);
                assert_non_null(copy);
                buf_reset(&second);
                sandbox_encode(&second, copy);
                check_view_eq(buf_str(&second), buf_str(&first));
        }
}

static void test_members(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = NULL;
        struct err e;

        check_i64_eq(sandbox_decode(STR(SAMPLE_FULL), &s, &e), 0);
        check_str_eq(s->id, "sb-1");
        check_str_eq(s->owner.organization_id, "o:1");
        check_i64_eq(s->owner.scope.kind, SCOPE_CONVERSATION);
        check_i64_eq(s->limits.cpu_milli, 500);
        check_i64_eq(s->limits.memory_bytes, 256 * (int64_t) MiB);
        check_i64_eq(s->limits.gpus, GPU_ALL);
        check_u64_eq(s->volumes.n, 3);
        check_i64_eq(s->expiry->mono_usec, 600000000);
        check_i64_eq(s->status.state, STATE_RUNNING);
        check_str_eq(s->handle, "{\"pid\":7,\"x\":[1,null,1.5]}");
        check_i64_eq(s->version, 3);
}

/* One thing is changed in a good record, and it is refused. */
struct tampering {
        const char *from, *to, *message;
};

static const struct tampering tamperings[] = {
        { "{\"schema\":1,", "{", "sandbox record: schema: is required" },
        { "\"schema\":1", "\"schema\":\"1\"", "sandbox record: schema: must be an integer" },
        { "\"schema\":1", "\"schema\":0", "sandbox record: schema: must be at least 1" },
        { "\"version\":3", "\"version\":3,\"more\":1", "sandbox record: unknown key \"more\"" },
        { "\"version\":3", "\"version\":0", "sandbox record: version: must be at least 1" },
        { "\"version\":3}", "\"version\":3", NULL },
        { "\"version\":3}", "\"version\":3}{}", NULL },
        { "\"version\":3", "\"version\":3,\"version\":3", NULL },
        { "\"sandboxId\":\"sb-1\"", "\"sandboxId\":\"sb-2\"",
          "sandbox record of \"sb-2\": containerName: does not belong to the id" },
        { "\"containerName\":\"hutch-sb-1\"", "\"containerName\":\"sb-1\"",
          "sandbox record of \"sb-1\": containerName: does not belong to the id" },
        { "\"sandboxId\":\"sb-1\"", "\"sandboxId\":\"../x\"",
          "sandbox record of \"../x\": sandboxId: is not an id" },
        { "\"organizationId\":\"o:1\"", "\"organizationId\":\"\"",
          "sandbox record of \"sb-1\": organizationId: must not be empty" },
        { "\"organizationId\":\"o:1\",", "", "sandbox record: organizationId: is required" },
        { "\"userId\":\"\xc3\xbc\"", "\"userId\":\"a\\u001b\"", NULL },
        { "{\"kind\":\"conversation\",\"key\":\"c/1\"}", "{\"kind\":\"conversation\"}",
          "sandbox record of \"sb-1\": scope.key: must not be empty" },
        { "{\"kind\":\"conversation\",\"key\":\"c/1\"}", "{\"kind\":\"agent\",\"key\":\"c\"}",
          NULL },
        { "\"tenant\":\"acme\"", "\"tenant\":\"\"",
          "sandbox record of \"sb-1\": tenant: is empty, too long or not clean text" },
        { "\"node\":\"n1\"", "\"node\":7", "sandbox record: node: must be a string" },
        { "\"image\":\"debian:12\",", "",
          "sandbox record of \"sb-1\": image: exactly one of image and snapshotId must be there" },
        { "\"image\":\"debian:12\",", "\"image\":\"debian:12\",\"snapshotId\":\"s\",",
          "sandbox record of \"sb-1\": image: exactly one of image and snapshotId must be there" },
        { "\"entrypoint\":[\"sh\",", "\"entrypoint\":[\"\",",
          "sandbox record of \"sb-1\": entrypoint: is empty or too long" },
        { "\"envNames\":[\"A\",", "\"envNames\":[\"A=secret\",",
          "sandbox record of \"sb-1\": envNames: has what is not a name" },
        { "\"cpu\":\"500m\"", "\"cpu\":\"0.5\"",
          "sandbox record of \"sb-1\": resourceLimits: are not in their canonical form" },
        { "\"cpu\":\"500m\"", "\"cpu\":\"\"", NULL },
        { "\"target\":\"10.0.0.0/8\"", "\"target\":\"10.0.0.1/8\"",
          "sandbox record of \"sb-1\": networkPolicy.egress[1].target: is not normalised" },
        { "\"path\":\"/srv/h\"", "\"path\":\"/srv/../etc\"",
          "sandbox record of \"sb-1\": volumes[0].host.path: must be an absolute path without '.', "
          "'..' and empty components" },
        { "\"bucket\":\"bkt\",", "\"bucket\":\"bkt\",\"accessKeySecret\":\"s\",",
          "sandbox record: volumes[2].ossfs: unknown key \"accessKeySecret\"" },
        { "\"name\":\"a\",\"team/x\"", "\"name\":\"a b\",\"team/x\"", NULL },
        { "extend.seconds\":\"300\"", "extend.seconds\":\"1\"", NULL },
        { "\"bootId\":\"b-1\"", "\"bootId\":\"\"",
          "sandbox record of \"sb-1\": expiry: bootId is not a boot id" },
        { "\"mono\":600000000,", "", "sandbox record: expiry.mono: is required" },
        { "\"mono\":600000000", "\"mono\":-1", "sandbox record: expiry.mono: must be at least 0" },
        { "\"state\":\"Running\"", "\"state\":\"running\"", NULL },
        { "\"reason\":\"CONTAINER_RUNNING\"", "\"reason\":\"two words\"",
          "sandbox record of \"sb-1\": status: reason is not a label" },
        { "\"handle\":{\"pid\":7,\"x\":[1,null,1.5]}", "\"handle\":[]",
          "sandbox record of \"sb-1\": handle: must be an object that is not too large" },
        { "\"handle\":{\"pid\":7,\"x\":[1,null,1.5]}", "\"handle\":null",
          "sandbox record of \"sb-1\": handle: must be an object that is not too large" },
        { "\"createdAt\":1700000000123", "\"createdAt\":-1",
          "sandbox record: createdAt: must be at least 0" },
        { "\"createdAt\":1700000000123", "\"createdAt\":1e3",
          "sandbox record: createdAt: must be an integer" },
        { "\"gitConfigured\":true", "\"gitConfigured\":\"yes\"",
          "sandbox record: gitConfigured: must be true or false" },
};

static bool replace_once(struct buf *b, const char *text, const struct tampering *t)
{
        const char *at = strstr(text, t->from);

        buf_reset(b);
        if (!at)
                return false;
        buf_add(b, text, (size_t) (at - text));
        buf_add_str(b, str_from(t->to));
        buf_add_str(b, str_from(at + strlen(t->from)));
        return true;
}

static void test_tampered_records_are_refused(void **state)
{
        scoped(buf_done) struct buf b;

        buf_init(&b, MiB);
        for (size_t i = 0; i < ARRAY_SIZE(tamperings); i++) {
                struct sandbox *s = NULL;
                struct err e = { 0 };

                check_case(tamperings[i].to);
                check_true(replace_once(&b, SAMPLE_FULL, &tamperings[i]));
                check_i64_eq(sandbox_decode(buf_str(&b), &s, &e), ERR_RETURN(ERR_INVALID));
                check_true(!s);
                if (tamperings[i].message)
                        check_z_eq(e.message, tamperings[i].message);
        }
}

/* Whatever else it contains: it is distinguished from a damaged one. */
static void test_a_newer_schema_is_refused(void **state)
{
        struct sandbox *s = NULL;
        struct err e;

        check_i64_eq(sandbox_decode(STR("{\"schema\":2,\"id\":{\"new\":\"form\"}}"), &s, &e),
                     ERR_RETURN(ERR_UNSUPPORTED));
        check_z_eq(e.message, "sandbox record: schema 2 was written by a newer hutchd; this one "
                              "knows 1");
        check_true(!s);
}

static void test_invalid_records(void **state)
{
        static const char *const cases[] = { "", "{}", "[]", "null", "7", "{\"schema\":1}", "{" };

        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct sandbox *s = NULL;
                struct err e;

                check_case(cases[i]);
                check_i64_eq(sandbox_decode(str_from(cases[i]), &s, &e), ERR_RETURN(ERR_INVALID));
        }
}

/* With an owner, and with nothing that could be mistaken for a sandbox of ours. */
static void test_an_entry_of_purista_is_read_and_never_written(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = NULL, *copy = NULL;
        struct err e = { 0 };

        check_i64_eq(sandbox_decode_purista(
                             STR("{\"sandboxId\":\"sb-1\",\"organizationId\":\"o\","
                                 "\"projectId\":\"p\",\"userId\":\"u\",\"containerName\":\"c\","
                                 "\"createdAt\":7,\"gitConfigured\":true,\"more\":1}"),
                             &s, &e),
                     0);
        check_true(sandbox_is_foreign(s) && s->owner_bound && s->git_configured);
        check_str_eq(s->id, "sb-1");
        check_str_eq(s->tenant, "o");
        check_i64_eq(s->owner.scope.kind, SCOPE_SHARED_PROJECT_USER);
        check_i64_eq(s->created_ms, 7);
        check_true(!s->node.p && !s->driver.p && !s->image.p);
        check_i64_eq(sandbox_check(s, &e), ERR_RETURN(ERR_INVALID));
        copy = sandbox_copy(s);
        check_true(copy && sandbox_is_foreign(copy) && owner_eq(&copy->owner, &s->owner));
        check_i64_eq(sandbox_decode_purista(STR(SAMPLE_SMALL), &s, &e), ERR_RETURN(ERR_INVALID));
        check_z_eq(e.message, "entry of PURISTA: schema: is a record of Hutch");
}

static void test_a_record_that_is_too_large(void **state)
{
        char *text = malloc(RECORD_TEXT_MAX + 1);
        struct sandbox *s = NULL;
        struct err e;

        assert_non_null(text);
        memset(text, ' ', RECORD_TEXT_MAX + 1);
        check_i64_eq(sandbox_decode(str_of(text, RECORD_TEXT_MAX + 1), &s, &e),
                     ERR_RETURN(ERR_TOO_LARGE));
        free(text);
}

/* The numbers of a record made by hand must be those of its texts. */
static void test_derived_numbers_are_checked(void **state)
{
        scoped(sandbox_freep) struct sandbox *s = NULL;
        struct err e;

        check_i64_eq(sandbox_decode(STR(SAMPLE_FULL), &s, &e), 0);
        s->limits.memory_bytes++;
        check_i64_eq(sandbox_check(s, &e), ERR_RETURN(ERR_INVALID));
        check_z_eq(e.message, "resourceLimits: differ from their texts");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_record_reads_back_as_it_was_written),
                cmocka_unit_test(test_every_record_reads_back),
                cmocka_unit_test(test_members),
                cmocka_unit_test(test_tampered_records_are_refused),
                cmocka_unit_test(test_a_newer_schema_is_refused),
                cmocka_unit_test(test_an_entry_of_purista_is_read_and_never_written),
                cmocka_unit_test(test_invalid_records),
                cmocka_unit_test(test_a_record_that_is_too_large),
                cmocka_unit_test(test_derived_numbers_are_checked),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
