/* SPDX-License-Identifier: Apache-2.0 */
#include "api/opensandbox/opensandbox.h"
#include "base/base.h"

/* No driver takes snapshots yet. */

static void not_implemented(struct http_req *req)
{
        http_reply_error(req, 501, "SNAPSHOT::NOT_IMPLEMENTED",
                         "no driver of this server can take snapshots");
}

#define TAG "Snapshots"

static const uint16_t errors[] = { 401, 403, 501, 0 };

static const struct http_doc create_doc = {
        "createSnapshot", "Keep the state of a sandbox", TAG, 202, .errors = errors,
};
static const struct http_doc list_doc = {
        "listSnapshots", "List snapshots", TAG, 200, .errors = errors,
};
static const struct http_doc get_doc = {
        "getSnapshot", "Show one snapshot", TAG, 200, .errors = errors,
};
static const struct http_doc delete_doc = {
        "deleteSnapshot", "Delete a snapshot", TAG, 204, .errors = errors,
};

static const struct http_route routes[] = {
        { METHOD_POST, "/sandboxes/{sandboxId}/snapshots", API_WRITE, .doc = &create_doc,
          .exec = not_implemented },
        { METHOD_GET, "/snapshots", API_READ, .doc = &list_doc, .exec = not_implemented },
        { METHOD_GET, "/snapshots/{snapshotId}", API_READ, .doc = &get_doc,
          .exec = not_implemented },
        { METHOD_DELETE, "/snapshots/{snapshotId}", API_WRITE, .doc = &delete_doc,
          .exec = not_implemented },
};

OPENSANDBOX_API(opensandbox_snapshots, "snapshots", routes);
