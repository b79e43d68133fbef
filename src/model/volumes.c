/* SPDX-License-Identifier: Apache-2.0 */
#include "model/volumes.h"

#include <stdio.h>

#include "base/base.h"
#include "model/limits.h"
#include "model/text.h"

static const char *const volume_code_names[] = {
#define X(name) [VOLUME_##name] = "VOLUME::" #name,
        VOLUME_CODE_MAP(X)
#undef X
};
ENUM_TABLE(volume_code, volume_code_names, VOLUME_CODE_MAX_);

/* --- tables --- */

/* ^\d+(\.\d+)?(Ki|Mi|Gi|Ti|Pi|Ei)?$, the API's own pattern. */
static const char *check_storage(const void *v)
{
        static const struct str suffixes[] = { STR("Ki"), STR("Mi"), STR("Gi"),
                                               STR("Ti"), STR("Pi"), STR("Ei") };
        struct str s = *(const struct str *) v, part;
        size_t parts = 0;

        for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
                if (!str_ends_with(s, suffixes[i]))
                        continue;
                s.n -= 2;
                break;
        }
        for (; str_split(&s, '.', &part); parts++)
                if (parse_u64(part, &(uint64_t){ 0 }) < 0)
                        return "must be a size such as 10Gi";
        return parts > 2 ? "must be a size such as 10Gi" : NULL;
}

static const char *check_word(const void *v)
{
        return text_is_label(*(const struct str *) v, DNS_NAME_MAX) ? NULL : "is not a name";
}

static const char *check_words(const void *v)
{
        const struct json_strs *words = v;
        const char *wrong = NULL;

        for (size_t i = 0; !wrong && i < words->n; i++)
                wrong = check_word(&words->items[i]);
        return wrong;
}

static const struct json_field host_fields[] = {
        JSON_STR(struct volume_host, path, "path", JSON_REQUIRED),
        JSON_END,
};

static const struct json_field pvc_fields[] = {
        JSON_STR(struct volume_pvc, claim_name, "claimName", JSON_REQUIRED, .alias = "claim_name"),
        JSON_BOOL(struct volume_pvc, create_if_not_exists, "createIfNotExists", JSON_NULL_OK,
                  .alias = "create_if_not_exists",
                  JSON_HAS(struct volume_pvc, has_create_if_not_exists)),
        JSON_BOOL(struct volume_pvc, delete_on_termination, "deleteOnSandboxTermination",
                  JSON_NULL_OK | JSON_OMIT_EMPTY, .alias = "delete_on_sandbox_termination"),
        JSON_STR(struct volume_pvc, storage_class, "storageClass", JSON_NULL_OK,
                 .alias = "storage_class", .check = check_word),
        JSON_STR(struct volume_pvc, storage, "storage", JSON_NULL_OK, .check = check_storage),
        JSON_STRS(struct volume_pvc, access_modes, "accessModes", JSON_NULL_OK,
                  .alias = "access_modes", .items_max = 8, .check = check_words),
        JSON_END,
};

#define OSSFS_FIELDS                                                                \
        JSON_STR(struct volume_ossfs, bucket, "bucket", JSON_REQUIRED),             \
                JSON_STR(struct volume_ossfs, endpoint, "endpoint", JSON_REQUIRED), \
                JSON_STR(struct volume_ossfs, version, "version", JSON_NULL_OK),    \
                JSON_STRS(struct volume_ossfs, options, "options", JSON_NULL_OK,    \
                          .items_max = OSSFS_OPTIONS_MAX)

static const struct json_field ossfs_record_fields[] = { OSSFS_FIELDS, JSON_END };

static const struct json_field ossfs_fields[] = {
        OSSFS_FIELDS,
        JSON_STR(struct volume_ossfs, secret_access_key_id, "accessKeyId",
                 JSON_NULL_OK | JSON_NO_ENCODE, .alias = "access_key_id"),
        JSON_STR(struct volume_ossfs, secret_access_key_secret, "accessKeySecret",
                 JSON_NULL_OK | JSON_NO_ENCODE, .alias = "access_key_secret"),
        JSON_END,
};

#define VOLUME_FIELDS(ossfs_table)                                                                \
        JSON_STR(struct volume, name, "name", JSON_REQUIRED),                                     \
                JSON_STR(struct volume, mount_path, "mountPath", JSON_REQUIRED,                   \
                         .alias = "mount_path"),                                                  \
                JSON_STR(struct volume, sub_path, "subPath", JSON_NULL_OK, .alias = "sub_path"),  \
                JSON_BOOL(struct volume, read_only, "readOnly", JSON_NULL_OK | JSON_OMIT_EMPTY,   \
                          .alias = "read_only"),                                                  \
                JSON_OPT(struct volume, host, struct volume_host, "host", JSON_NULL_OK,           \
                         host_fields),                                                            \
                JSON_OPT(struct volume, pvc, struct volume_pvc, "pvc", JSON_NULL_OK, pvc_fields), \
                JSON_OPT(struct volume, ossfs, struct volume_ossfs, "ossfs", JSON_NULL_OK,        \
                         ossfs_table),                                                            \
                JSON_END

const struct json_field volume_fields[] = { VOLUME_FIELDS(ossfs_fields) };
const struct json_field volume_record_fields[] = { VOLUME_FIELDS(ossfs_record_fields) };

void volumes_set_defaults(struct json_list *volumes)
{
        struct volume *v = volumes->items;

        for (size_t i = 0; i < volumes->n; i++) {
                if (v[i].sub_path.n == 0)
                        v[i].sub_path = STR_NULL;
                if (v[i].pvc && !v[i].pvc->has_create_if_not_exists) {
                        v[i].pvc->create_if_not_exists = true;
                        v[i].pvc->has_create_if_not_exists = true;
                }
                if (v[i].ossfs && !v[i].ossfs->version.p)
                        v[i].ossfs->version = STR("2.0");
        }
}

/* --- rules --- */

static int fail(struct volume_problem *reterr, enum volume_code code, size_t i, const char *member,
                const char *what)
{
        reterr->code = code;
        (void) snprintf(reterr->message, sizeof(reterr->message), "volumes[%zu].%s: %s", i, member,
                        what);
        return -EINVAL;
}

static bool sub_path_ok(struct str s)
{
        struct str part;

        if (!text_is_clean(s, PATH_MAX_TEXT) || s.p[0] == '/')
                return false;
        while (str_split(&s, '/', &part))
                if (str_eq(part, STR("..")))
                        return false;
        return true;
}

/* Like a DNS name, but a label may be longer than 63. */
static bool claim_ok(struct str name)
{
        for (size_t i = 0; i < name.n; i++)
                if ((name.p[i] >= 'A' && name.p[i] <= 'Z') || name.p[i] == '_')
                        return false;
        return text_is_label(name, DNS_NAME_MAX);
}

static int check_ossfs(const struct volume_ossfs *o, size_t at, bool with_secrets,
                       struct volume_problem *reterr)
{
        if (!str_eq(o->version, STR("1.0")) && !str_eq(o->version, STR("2.0")))
                return fail(reterr, VOLUME_INVALID_OSSFS_VERSION, at, "ossfs.version",
                            "must be 1.0 or 2.0");
        if (!text_is_clean(o->endpoint, DNS_NAME_MAX))
                return fail(reterr, VOLUME_INVALID_OSSFS_ENDPOINT, at, "ossfs.endpoint",
                            "must not be empty");
        if (o->bucket.n < 3 || !text_is_dns_label(o->bucket))
                return fail(reterr, VOLUME_INVALID_OSSFS_BUCKET, at, "ossfs.bucket",
                            "must be 3 to 63 lower case letters, digits or '-'");
        for (size_t i = 0; i < o->options.n; i++)
                if (!text_is_clean(o->options.items[i], EXTENSION_VALUE_MAX)
                    || o->options.items[i].p[0] == '-')
                        return fail(reterr, VOLUME_INVALID_OSSFS_OPTION, at, "ossfs.options",
                                    "must not be empty or begin with '-'");
        if (with_secrets && (o->secret_access_key_id.n == 0 || o->secret_access_key_secret.n == 0))
                return fail(reterr, VOLUME_INVALID_OSSFS_CREDENTIALS, at, "ossfs.accessKeyId",
                            "accessKeyId and accessKeySecret are required");
        return 0;
}

static int check_one(const struct volume *v, size_t at, bool with_secrets,
                     struct volume_problem *reterr)
{
        if (!text_is_dns_label(v->name))
                return fail(reterr, VOLUME_INVALID_NAME, at, "name",
                            "must be 1 to 63 lower case letters, digits or '-', and begin and end "
                            "with a letter or digit");
        /* A mount over "/" would hide the sandbox from itself. */
        if (!text_is_plain_path(v->mount_path) || v->mount_path.n == 1)
                return fail(reterr, VOLUME_INVALID_MOUNT_PATH, at, "mountPath",
                            "must be an absolute path without '.', '..' and empty components, and "
                            "not '/'");
        if (v->sub_path.p && !sub_path_ok(v->sub_path))
                return fail(reterr, VOLUME_INVALID_SUB_PATH, at, "subPath",
                            "must be a relative path without '..' components");
        if (!!v->host + !!v->pvc + !!v->ossfs != 1)
                return fail(reterr, VOLUME_INVALID_BACKEND, at, "host",
                            "exactly one of host, pvc and ossfs must be given");
        if (v->host && !text_is_plain_path(v->host->path))
                return fail(reterr, VOLUME_INVALID_HOST_PATH, at, "host.path",
                            "must be an absolute path without '.', '..' and empty components");
        if (v->pvc && !claim_ok(v->pvc->claim_name))
                return fail(reterr, VOLUME_INVALID_PVC_NAME, at, "pvc.claimName",
                            "must be 1 to 253 lower case letters, digits, '-' or '.'");
        return v->ossfs ? check_ossfs(v->ossfs, at, with_secrets, reterr) : 0;
}

int volumes_check(const struct json_list *volumes, bool with_secrets, struct volume_problem *reterr)
{
        const struct volume *v = volumes->items;

        for (size_t at = 0; at < volumes->n; at++) {
                int r = check_one(&v[at], at, with_secrets, reterr);

                if (r < 0)
                        return r;
                for (size_t i = 0; i < at; i++) {
                        if (str_eq(v[i].name, v[at].name))
                                return fail(reterr, VOLUME_DUPLICATE_NAME, at, "name",
                                            "is used twice");
                        if (str_eq(v[i].mount_path, v[at].mount_path))
                                return fail(reterr, VOLUME_INVALID_MOUNT_PATH, at, "mountPath",
                                            "another volume is mounted there");
                }
        }
        return 0;
}

/* --- allowed dirs --- */

bool path_is_in(struct str path, struct str dir)
{
        if (dir.n > 0 && dir.p[dir.n - 1] == '/')
                dir.n--;
        return str_starts_with(path, dir) && (path.n == dir.n || path.p[dir.n] == '/');
}

int volumes_check_allowed(const struct json_list *volumes, const struct json_strs *dirs,
                          struct volume_problem *reterr)
{
        const struct volume *v = volumes->items;

        for (size_t i = 0; i < volumes->n; i++) {
                bool allowed = !v[i].host;

                for (size_t d = 0; !allowed && d < dirs->n; d++)
                        allowed = dirs->items[d].n > 0
                                  && path_is_in(v[i].host->path, dirs->items[d]);
                if (!allowed)
                        return fail(reterr, VOLUME_HOST_PATH_NOT_ALLOWED, i, "host.path",
                                    "is in none of the directories that this server allows");
        }
        return 0;
}
