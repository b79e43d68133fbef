/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/check.h"

#include "base/base.h"
#include "model/limits.h"
#include "model/volumes.h"

struct mounts {
        struct json_list volumes;
};

static const struct json_field mounts_fields[] = {
        JSON_LIST(struct mounts, volumes, struct volume, "volumes", 0, volume_fields),
        JSON_END,
};

static const struct json_field mounts_record_fields[] = {
        JSON_LIST(struct mounts, volumes, struct volume, "volumes", 0, volume_record_fields),
        JSON_END,
};

#define OSSFS                                                                       \
        "\"ossfs\":{\"bucket\":\"abc\",\"endpoint\":\"e\",\"access_key_id\":\"i\"," \
        "\"accessKeySecret\":\"hunter2\""
#define HOST "\"host\":{\"path\":\"/srv\"}"

static const struct {
        const char *text;
        int code; /* -1 means fine */
} cases[] = {
        { "", -1 },
        { "{\"name\":\"a\",\"mountPath\":\"/a\"," HOST "}", -1 },
        { "{\"name\":\"a\",\"mount_path\":\"/a\",\"read_only\":true,\"sub_path\":\"x/y\"," HOST "}",
          -1 },
        { "{\"name\":\"a\",\"mountPath\":\"/a\",\"pvc\":{\"claimName\":\"my.claim-1\"}}", -1 },
        { "{\"name\":\"a\",\"mountPath\":\"/a\"," OSSFS "}}", -1 },
        { "{\"name\":\"a\",\"mountPath\":\"/a\"," OSSFS ",\"version\":\"1.0\"}}", -1 },
        { "{\"name\":\"A\",\"mountPath\":\"/a\"," HOST "}", VOLUME_INVALID_NAME },
        { "{\"name\":\"\",\"mountPath\":\"/a\"," HOST "}", VOLUME_INVALID_NAME },
        { "{\"name\":\"a_b\",\"mountPath\":\"/a\"," HOST "}", VOLUME_INVALID_NAME },
        { "{\"name\":\"a\",\"mountPath\":\"/a\"," HOST
          "},{\"name\":\"a\",\"mountPath\":\"/b\"," HOST "}",
          VOLUME_DUPLICATE_NAME },
        { "{\"name\":\"a\",\"mountPath\":\"/a\"," HOST
          "},{\"name\":\"b\",\"mountPath\":\"/a\"," HOST "}",
          VOLUME_INVALID_MOUNT_PATH },
        { "{\"name\":\"a\",\"mountPath\":\"a\"," HOST "}", VOLUME_INVALID_MOUNT_PATH },
        { "{\"name\":\"a\",\"mountPath\":\"\"," HOST "}", VOLUME_INVALID_MOUNT_PATH },
        { "{\"name\":\"a\",\"mountPath\":\"/\"," HOST "}", VOLUME_INVALID_MOUNT_PATH },
        { "{\"name\":\"a\",\"mountPath\":\"/a/../etc\"," HOST "}", VOLUME_INVALID_MOUNT_PATH },
        { "{\"name\":\"a\",\"mountPath\":\"/a\",\"subPath\":\"/x\"," HOST "}",
          VOLUME_INVALID_SUB_PATH },
        { "{\"name\":\"a\",\"mountPath\":\"/a\",\"subPath\":\"x/../..\"," HOST "}",
          VOLUME_INVALID_SUB_PATH },
        { "{\"name\":\"a\",\"mountPath\":\"/a\",\"subPath\":\"\"," HOST "}", -1 },
        { "{\"name\":\"a\",\"mountPath\":\"/a\",\"subPath\":\"..x/y..\"," HOST "}", -1 },
        { "{\"name\":\"a\",\"mountPath\":\"/a\"}", VOLUME_INVALID_BACKEND },
        { "{\"name\":\"a\",\"mountPath\":\"/a\",\"pvc\":{\"claimName\":\"c\"}," HOST "}",
          VOLUME_INVALID_BACKEND },
        { "{\"name\":\"a\",\"mountPath\":\"/a\",\"host\":{\"path\":\"srv\"}}",
          VOLUME_INVALID_HOST_PATH },
        { "{\"name\":\"a\",\"mountPath\":\"/a\",\"host\":{\"path\":\"/srv/\"}}",
          VOLUME_INVALID_HOST_PATH },
        { "{\"name\":\"a\",\"mountPath\":\"/a\",\"host\":{\"path\":\"//srv\"}}",
          VOLUME_INVALID_HOST_PATH },
        { "{\"name\":\"a\",\"mountPath\":\"/a\",\"host\":{\"path\":\"/srv/..\"}}",
          VOLUME_INVALID_HOST_PATH },
        { "{\"name\":\"a\",\"mountPath\":\"/a\",\"pvc\":{\"claimName\":\"C\"}}",
          VOLUME_INVALID_PVC_NAME },
        { "{\"name\":\"a\",\"mountPath\":\"/a\",\"pvc\":{\"claimName\":\"\"}}",
          VOLUME_INVALID_PVC_NAME },
        { "{\"name\":\"a\",\"mountPath\":\"/a\",\"pvc\":{\"claimName\":\"a/b\"}}",
          VOLUME_INVALID_PVC_NAME },
        { "{\"name\":\"a\",\"mountPath\":\"/a\"," OSSFS ",\"version\":\"3.0\"}}",
          VOLUME_INVALID_OSSFS_VERSION },
        { "{\"name\":\"a\",\"mountPath\":\"/a\"," OSSFS ",\"options\":[\"a=b\",\"-o x\"]}}",
          VOLUME_INVALID_OSSFS_OPTION },
        { "{\"name\":\"a\",\"mountPath\":\"/a\"," OSSFS ",\"options\":[\"\"]}}",
          VOLUME_INVALID_OSSFS_OPTION },
        { "{\"name\":\"a\",\"mountPath\":\"/a\",\"ossfs\":{\"bucket\":\"ab\",\"endpoint\":\"e\","
          "\"accessKeyId\":\"i\",\"accessKeySecret\":\"s\"}}",
          VOLUME_INVALID_OSSFS_BUCKET },
        { "{\"name\":\"a\",\"mountPath\":\"/a\",\"ossfs\":{\"bucket\":\"abc\",\"endpoint\":\"\","
          "\"accessKeyId\":\"i\",\"accessKeySecret\":\"s\"}}",
          VOLUME_INVALID_OSSFS_ENDPOINT },
        { "{\"name\":\"a\",\"mountPath\":\"/a\",\"ossfs\":{\"bucket\":\"abc\",\"endpoint\":\"e\","
          "\"accessKeyId\":\"i\"}}",
          VOLUME_INVALID_OSSFS_CREDENTIALS },
};

static void decode(const char *volumes, struct arena *a, struct mounts *ret)
{
        struct json_error e = { "" };
        char *text = arena_printf(a, "{\"volumes\":[%s]}", volumes);

        *ret = (struct mounts){ 0 };
        check_i64_eq(json_decode(str_from(text), mounts_fields, 0, a, ret, &e), 0);
        check_z_eq(e.message, "");
        volumes_set_defaults(&ret->volumes);
}

static void test_every_code(void **state)
{
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                struct volume_problem p;
                struct mounts mounts;
                struct arena a;
                int r;

                arena_init(&a, 64 * KiB);
                check_case(cases[i].text);
                decode(cases[i].text, &a, &mounts);
                r = volumes_check(&mounts.volumes, true, &p);
                check_i64_eq(r, cases[i].code < 0 ? 0 : -EINVAL);
                if (r < 0)
                        check_z_eq(volume_code_to_string((int) p.code),
                                   volume_code_to_string(cases[i].code));
                arena_done(&a);
        }
        check_z_eq(volume_code_to_string(VOLUME_OSSFS_UNMOUNT_FAILED),
                   "VOLUME::OSSFS_UNMOUNT_FAILED");
}

static void test_messages_name_the_member(void **state)
{
        struct volume_problem p;
        struct mounts mounts;
        struct arena a;

        arena_init(&a, 64 * KiB);
        decode("{\"name\":\"a\",\"mountPath\":\"/a\"," HOST
               "},{\"name\":\"b\",\"mountPath\":\"b\"," HOST "}",
               &a, &mounts);
        check_i64_eq(volumes_check(&mounts.volumes, true, &p), -EINVAL);
        check_z_eq(p.message,
                   "volumes[1].mountPath: must be an absolute path without '.', '..' and "
                   "empty components, and not '/'");
        arena_done(&a);
}

static void test_defaults(void **state)
{
        const struct volume *v;
        struct mounts mounts;
        struct arena a;

        arena_init(&a, 64 * KiB);
        decode("{\"name\":\"a\",\"mountPath\":\"/a\",\"pvc\":{\"claimName\":\"c\"}},"
               "{\"name\":\"b\",\"mountPath\":\"/b\",\"pvc\":{\"claimName\":\"c\","
               "\"create_if_not_exists\":false}},"
               "{\"name\":\"c\",\"mountPath\":\"/c\"," OSSFS "}}",
               &a, &mounts);
        v = mounts.volumes.items;
        check_true(v[0].pvc->create_if_not_exists && !v[0].pvc->delete_on_termination);
        check_false(v[1].pvc->create_if_not_exists);
        check_str_eq(v[2].ossfs->version, "2.0");
        check_false(v[0].read_only);
        arena_done(&a);
}

/* By neither of the two ways into a record. */
static void test_secrets_do_not_reach_a_record(void **state)
{
        scoped(buf_done) struct buf b;
        struct mounts mounts, copy = { 0 };
        const struct volume *v;
        struct arena a;

        buf_init(&b, 4 * KiB);
        arena_init(&a, 64 * KiB);
        decode("{\"name\":\"c\",\"mountPath\":\"/c\"," OSSFS "}}", &a, &mounts);
        v = mounts.volumes.items;
        check_str_eq(v->ossfs->secret_access_key_secret, "hunter2");
        json_encode(&b, mounts_fields, &mounts);
        json_encode(&b, mounts_record_fields, &mounts);
        check_true(!strstr(buf_str(&b).p, "hunter2") && !strstr(buf_str(&b).p, "accessKey"));
        check_i64_eq(json_copy_struct(mounts_record_fields, &mounts, &a, &copy), 0);
        v = copy.volumes.items;
        check_str_eq(v->ossfs->bucket, "abc");
        check_true(!v->ossfs->secret_access_key_secret.p && !v->ossfs->secret_access_key_id.p);
        arena_done(&a);
}

static void test_sizes_of_claims(void **state)
{
        static const struct {
                const char *size;
                bool ok;
        } sizes[] = {
                { "10Gi", true },   { "1.5Ti", true }, { "100", true },    { "", false },
                { "Gi", false },    { "10G", false },  { "1.", false },    { ".5Gi", false },
                { "1.2.3", false }, { "-1Gi", false }, { "10Gi ", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
                struct json_error e;
                struct mounts mounts = { 0 };
                struct arena a;
                char *text;

                arena_init(&a, 64 * KiB);
                check_case(sizes[i].size);
                text = arena_printf(&a,
                                    "{\"volumes\":[{\"name\":\"a\",\"mountPath\":\"/a\",\"pvc\":"
                                    "{\"claimName\":\"c\",\"storage\":\"%s\"}}]}",
                                    sizes[i].size);
                check_i64_eq(json_decode(str_from(text), mounts_fields, 0, &a, &mounts, &e),
                             sizes[i].ok ? 0 : -EINVAL);
                arena_done(&a);
        }
}

static void test_directories_by_complete_components(void **state)
{
        static const struct {
                const char *path, *dir;
                bool in;
        } pairs[] = {
                { "/data", "/data", true },
                { "/data/a", "/data", true },
                { "/data/a", "/data/", true },
                { "/data", "/data/", true },
                { "/database", "/data", false },
                { "/dat", "/data", false },
                { "/", "/data", false },
                { "/anything", "/", true },
                { "/", "/", true },
                { "/a/data", "/data", false },
        };

        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
                check_case(pairs[i].path);
                check_i64_eq(path_is_in(str_from(pairs[i].path), str_from(pairs[i].dir)),
                             pairs[i].in);
        }
}

static void test_only_allowed_directories(void **state)
{
        struct str dirs[] = { STR(""), STR("/opt"), STR("/srv") };
        struct volume_problem p;
        struct mounts mounts;
        struct arena a;

        arena_init(&a, 64 * KiB);
        decode("{\"name\":\"p\",\"mountPath\":\"/p\",\"pvc\":{\"claimName\":\"c\"}},"
               "{\"name\":\"a\",\"mountPath\":\"/a\"," HOST "}",
               &a, &mounts);
        check_i64_eq(volumes_check_allowed(&mounts.volumes, &(struct json_strs){ dirs, 3 }, &p), 0);
        check_i64_eq(volumes_check_allowed(&mounts.volumes, &(struct json_strs){ dirs, 2 }, &p),
                     -EINVAL);
        check_i64_eq(p.code, VOLUME_HOST_PATH_NOT_ALLOWED);
        /* None allowed, none mounted; an empty text is not the root. */
        check_i64_eq(volumes_check_allowed(&mounts.volumes, &(struct json_strs){ dirs, 1 }, &p),
                     -EINVAL);
        check_i64_eq(volumes_check_allowed(&mounts.volumes, &(struct json_strs){ 0 }, &p), -EINVAL);
        arena_done(&a);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_code),
                cmocka_unit_test(test_messages_name_the_member),
                cmocka_unit_test(test_defaults),
                cmocka_unit_test(test_secrets_do_not_reach_a_record),
                cmocka_unit_test(test_sizes_of_claims),
                cmocka_unit_test(test_directories_by_complete_components),
                cmocka_unit_test(test_only_allowed_directories),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
