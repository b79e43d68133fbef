/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HUTCH_MODEL_VOLUMES_H
#define HUTCH_MODEL_VOLUMES_H

/*
 * Volumes of a sandbox: a path of the host, a named volume ("pvc"), or an object store bucket ("ossfs").
 *
 * Everything that can be decided from the text alone is decided here; what needs the host (does the path exist? does the volume
 * exist?) is the driver's, with codes from the same list.
 *
 * The text can't guarantee two things: a host path below an allowed directory may still lead out of it through a symbolic
 * link, and so may a sub-path inside a volume. Drivers open them component by component below an open directory (openat2 with
 * RESOLVE_BENEATH), never by the text.
 *
 * ossfs has credentials. They are in the field table of requests and not in that of records (volume_record_fields), so they
 * can be neither stored nor read back nor copied into a record.
 */

#include "base/compiler.h"
#include "base/enum.h"
#include "base/err.h"
#include "base/json.h"

/* clang-format off */
#define VOLUME_CODE_MAP(X)                                      \
        X(INVALID_NAME)                                         \
        X(DUPLICATE_NAME)                                       \
        X(INVALID_BACKEND)                /* not exactly one */ \
        X(INVALID_MOUNT_PATH)                                   \
        X(INVALID_SUB_PATH)                                     \
        X(INVALID_HOST_PATH)                                    \
        X(HOST_PATH_NOT_ALLOWED)                                \
        X(INVALID_PVC_NAME)                                     \
        X(INVALID_OSSFS_VERSION)                                \
        X(INVALID_OSSFS_ENDPOINT)                               \
        X(INVALID_OSSFS_BUCKET)                                 \
        X(INVALID_OSSFS_OPTION)                                 \
        X(INVALID_OSSFS_CREDENTIALS)                            \
        /* of drivers */                                        \
        X(UNSUPPORTED_BACKEND)                                  \
        X(HOST_PATH_NOT_FOUND)                                  \
        X(HOST_PATH_CREATE_FAILED)                              \
        X(PVC_NOT_FOUND)                                        \
        X(PVC_INSPECT_FAILED)                                   \
        X(PVC_SUBPATH_UNSUPPORTED_DRIVER)                       \
        X(INVALID_OSSFS_MOUNT_ROOT)                             \
        X(OSSFS_PATH_NOT_FOUND)                                 \
        X(OSSFS_MOUNT_FAILED)                                   \
        X(OSSFS_UNMOUNT_FAILED)
/* clang-format on */

enum volume_code {
#define X(name) VOLUME_##name,
        VOLUME_CODE_MAP(X)
#undef X
                VOLUME_CODE_MAX_,
        VOLUME_CODE_INVALID_ = -EINVAL,
};

/* "VOLUME::INVALID_NAME" … */
ENUM_DECLARE(volume_code);

struct volume_host {
        struct str path;
};

struct volume_pvc {
        struct str claim_name;
        bool create_if_not_exists; /* true by default: see volumes_set_defaults */
        bool has_create_if_not_exists;
        bool delete_on_termination;
        struct str storage_class;
        struct str storage;
        struct json_strs access_modes;
};

struct volume_ossfs {
        struct str bucket;
        struct str endpoint;
        struct str version;
        struct json_strs options;
        struct str secret_access_key_id; /* in requests only */
        struct str secret_access_key_secret;
};

struct volume {
        struct str name;
        struct str mount_path;
        struct str sub_path; /* null: the whole volume */
        bool read_only;
        struct volume_host *host; /* exactly one of the three */
        struct volume_pvc *pvc;
        struct volume_ossfs *ossfs;
};

extern const struct json_field volume_fields[];        /* of requests */
extern const struct json_field volume_record_fields[]; /* of records */

/* The first violation; the message names the member. */
struct volume_problem {
        enum volume_code code;
        char message[256];
};

/* Sets the defaults of a request. */
void volumes_set_defaults(struct json_list *volumes);

/* All rules but the allow-list. `with_secrets` is for requests, where ossfs needs its credentials. -EINVAL with *reterr. */
int volumes_check(const struct json_list *volumes, bool with_secrets, struct volume_problem *reterr)
        must_check;

/* Host paths must be in one of the directories; an empty list allows none. -EINVAL with *reterr. */
int volumes_check_allowed(const struct json_list *volumes, const struct json_strs *dirs,
                          struct volume_problem *reterr) must_check;

/* Whether path is the directory or below it, by whole components: /data contains /data/a, not /database. Both are plain paths
 * (model/text.h); a trailing slash of the directory is ignored. */
bool path_is_in(struct str path, struct str dir);

#endif
