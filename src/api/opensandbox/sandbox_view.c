/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/sandbox_view.h"

#include "api/response.h"
#include "base/base.h"
#include "model/extensions.h"
#include "model/limits.h"

struct image_view {
        struct str uri;
};

struct status_view {
        int state;
        struct str reason, message, changed_at;
};

struct sandbox_view {
        struct str id;
        struct image_view *image;
        struct str snapshot_id;
        struct platform *platform;
        struct status_view status;
        struct json_map metadata, extensions;
        struct json_strs entrypoint;
        struct str created_at, expires_at;

        /* storage of the views above */
        struct image_view _image;
        struct json_pair _extensions[EXTENSIONS_MAX];
        char _changed[TIME_RFC3339_MAX], _created[TIME_RFC3339_MAX], _expires[TIME_RFC3339_MAX];
};

#define A struct sandbox_view

static const struct json_field image_fields[] = {
        JSON_STR(struct image_view, uri, "uri", JSON_REQUIRED),
        JSON_END,
};

static const struct json_field status_view_fields[] = {
        JSON_ENUM(struct status_view, state, "state", JSON_REQUIRED, &state_table),
        JSON_STR(struct status_view, reason, "reason", 0),
        JSON_STR(struct status_view, message, "message", 0),
        JSON_STR(struct status_view, changed_at, "lastTransitionAt", 0),
        JSON_END,
};

/* clang-format off */
#define COMMON_FIELDS                                                                         \
        JSON_OPT(A, platform, struct platform, "platform", 0, platform_fields),               \
        JSON_OBJECT(A, status, struct status_view, "status", JSON_REQUIRED,                  \
                    status_view_fields),                                                     \
        JSON_MAP(A, metadata, "metadata", JSON_REQUIRED),                                     \
        JSON_MAP(A, extensions, "extensions", JSON_OMIT_EMPTY),                               \
        JSON_STRS(A, entrypoint, "entrypoint", JSON_REQUIRED),                                \
        JSON_STR(A, expires_at, "expiresAt", 0), JSON_STR(A, expires_at, "expires_at", 0),    \
        JSON_STR(A, created_at, "createdAt", JSON_REQUIRED),                                  \
        JSON_STR(A, created_at, "created_at", JSON_REQUIRED)
/* clang-format on */

const struct json_field sandbox_view_fields[] = {
        JSON_STR(A, id, "id", JSON_REQUIRED),
        JSON_OPT(A, image, struct image_view, "image", 0, image_fields),
        JSON_STR(A, snapshot_id, "snapshotId", 0),
        COMMON_FIELDS,
        JSON_END,
};

const struct json_field sandbox_created_fields[] = {
        JSON_STR(A, id, "id", JSON_REQUIRED),
        COMMON_FIELDS,
        JSON_END,
};

/* Not cleared first: most of it is storage for extensions, of which there rarely are any. */
static void fill(struct sandbox_view *a, const struct sandbox *s)
{
        a->id = s->id;
        a->_image.uri = s->image;
        a->image = s->image.p ? &a->_image : NULL;
        a->snapshot_id = s->snapshot_id;
        a->platform = s->platform;
        a->status = (struct status_view){
                .state = s->status.state,
                .reason = s->status.reason,
                .message = s->status.message,
                .changed_at = response_time(s->status.changed_ms, a->_changed),
        };
        a->metadata = s->metadata;
        a->extensions = (struct json_map){ .items = a->_extensions };
        for (size_t i = 0; i < s->extensions.n && a->extensions.n < EXTENSIONS_MAX; i++)
                if (extension_is_public(s->extensions.items[i].key))
                        a->_extensions[a->extensions.n++] = s->extensions.items[i];
        a->entrypoint = s->entrypoint;
        a->created_at = response_time(s->created_ms, a->_created);
        a->expires_at = s->expiry ? response_time(s->expiry->wall_ms, a->_expires) : STR_NULL;
}

void sandbox_view_add(struct buf *b, const void *sandbox)
{
        struct sandbox_view view;

        fill(&view, sandbox);
        json_encode(b, sandbox_view_fields, &view);
}

void sandbox_view_add_created(struct buf *b, const void *sandbox)
{
        struct sandbox_view view;

        fill(&view, sandbox);
        json_encode(b, sandbox_created_fields, &view);
}
